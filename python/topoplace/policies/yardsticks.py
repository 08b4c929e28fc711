"""Comparison of a placement with the lowest free GPUs, and with the fastest placement on the cluster without jobs.

Both take a decision of their own, so this is for answers that people read; no policy uses it.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Self

from topoplace.collective.bandwidth import DEFAULT_RATES
from topoplace.deciding.least_time import LeastTime
from topoplace.objectives.communication import communication_time
from topoplace.objectives.job_bandwidth import only_ring, placed_bandwidth
from topoplace.placement import Placement
from topoplace.policies.sc17.first_come import FirstComeFirstServed
from topoplace.topology.accelerators import compute_seconds

if TYPE_CHECKING:
    from topoplace.cluster.cluster import Cluster
    from topoplace.jobs.job_graph import JobGraph

_SLACK: Final = 0.01
"""Times that differ by no more than this share count as equal, as in the policy least-time."""


class Speed(NamedTuple):
    """The times of a job on certain GPUs, alone on the topology."""

    gpus: tuple[int, ...]
    """The GPU of each task."""
    seconds: float
    """Seconds of communication in a step; for a job without bytes, per unit of its weights."""
    gb_per_s: float
    """Bandwidth of a job that is one ring collective of all its tasks: its GB divided by `seconds`; 0 for other jobs.
    """
    by_switches: bool
    """True if NVSwitches reduce (NVLS), and not rings."""
    compute_s: float | None
    """Seconds of computing in a step; None if the job does not state its operations, or a model's peak is unknown."""

    @classmethod
    def of(cls, placement: Placement, job: JobGraph) -> Self | None:
        """Return the speed of a job on a placement's GPUs; None if it does not communicate, or not over known links."""
        gpus, topology = placement.gpus, placement.topology
        if len(gpus) < 2 or not job.edges or placement.remote:
            return None
        rates = placement.rates or DEFAULT_RATES
        seconds = communication_time(job, gpus, topology, rates=rates).seconds
        if not 0 < seconds < math.inf:
            return None
        ring, compute_s = only_ring(job), compute_seconds(job.tflop, map(topology.gpus.__getitem__, gpus))
        if ring is None:
            return cls(gpus, seconds, 0.0, by_switches=False, compute_s=compute_s)
        by_switches = placed_bandwidth(replace(placement, job=job)).by_switches
        return cls(gpus, seconds, ring.gigabytes / seconds, by_switches, compute_s)

    @property
    def step_s(self) -> float | None:
        """Return the seconds of a step that computes and then communicates; None if `compute_s` is."""
        return None if self.compute_s is None else self.compute_s + self.seconds

    def equals(self, other: Speed) -> bool:
        """Return True if both times are equal to within 1 %, as in the policy least-time."""
        return abs(self.seconds - other.seconds) <= _SLACK * min(self.seconds, other.seconds) * (1 + _SLACK)

    def to_dict(self) -> dict[str, Any]:
        """Return the values that JSON can represent; docs/schemas/place.json describes them."""
        return {
            "gpus": list(self.gpus),
            "time": self.seconds,
            "gb_per_s": self.gb_per_s or None,
            "nvls": self.by_switches,
            "step": self.step_s,
        }


class Yardsticks(NamedTuple):
    """A placement, and the two placements with which it is compared."""

    placed: Speed
    lowest: Speed | None
    """The speed on the free GPUs with the lowest ids, on the first machine with room or on one machine after the other.
    None if these GPUs do not meet the job's requirements.
    """
    idle: Speed
    """The speed of the placement by least-time on the same cluster without jobs, with the GPUs in service."""
    is_idle_proven: bool
    """True if no placement on the cluster without jobs is more than 1 % faster than `idle`."""

    def to_dict(self) -> dict[str, Any]:
        """Return the values that JSON can represent; docs/schemas/place.json describes them."""
        return {
            "placed": self.placed.to_dict(),
            "lowest": None if self.lowest is None else self.lowest.to_dict(),
            "idle": self.idle.to_dict(),
        }


def yardsticks(placement: Placement, job: JobGraph, cluster: Cluster) -> Yardsticks | None:
    """Return the speeds of a placement, of the lowest free GPUs, and of the best placement on the cluster without jobs.

    The call takes two more decisions, one of them on a copy of the cluster.

    Args:
        placement: A policy's choice on the cluster, not yet allocated there.

    Returns:
        None if the job does not communicate, takes parts of GPUs, or has GPUs that it reaches over the network.
    """
    placed = None if job.takes_parts or placement.slices else Speed.of(placement, job)
    if placed is None:
        return None
    counted = FirstComeFirstServed().place(job, cluster)
    lowest = Speed.of(counted, job) if isinstance(counted, Placement) else None
    known = (placed,) if lowest is None else (placed, lowest)
    return Yardsticks(placed, lowest, *_fastest_if_idle(job, cluster, known))


def _fastest_if_idle(job: JobGraph, cluster: Cluster, known: tuple[Speed, ...]) -> tuple[Speed, bool]:
    """Return the fastest of the speeds that are `known` and of what least-time finds without jobs.

    The second value is True if least-time proves that nothing is faster.
    """
    idle = cluster.copy()
    for job_id in tuple(idle.allocations):
        idle.release(job_id)
    found = LeastTime(compact=0.0).place(job.with_(min_utility=0.0), idle)
    best = Speed.of(found, job) if isinstance(found, Placement) else None
    if found is None or best is None:
        return min(known, key=_seconds), False
    return min((*known, best), key=_seconds), found.optimal


def _seconds(speed: Speed) -> float:
    return speed.seconds
