"""The input and results of a policy: queued jobs, the plan for a queue, and the explanation of one decision."""

from __future__ import annotations

import math
import numbers
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final

from topoplace import _checks
from topoplace.cluster.cluster import Cluster
from topoplace.errors import PolicyError
from topoplace.jobs.job_graph import JobGraph

if TYPE_CHECKING:
    from topoplace.placement import Placement, Refusal
    from topoplace.topology.topology import Topology

FOR_EVER: Final = 1 << 30
"""A number of postponements above any policy's limit: the job no longer waits for a better placement."""


@dataclass(frozen=True, slots=True)
class QueuedJob:
    """A waiting job: its id, its job graph, and its submission time in seconds.

    Raises:
        ValueError: `job_id` is not a non-empty string, `job` is not a `JobGraph`, `submit_time` is not a finite number,
            `postponed` is negative, or `requested_time` is negative, infinite or not a number.
    """

    job_id: str
    job: JobGraph
    submit_time: float = 0.0
    postponed: int = 0
    """Number of earlier plans that deferred the job."""
    requested_time: float = field(default=math.nan, compare=False)
    """Run time limit in seconds that the user requested; NaN if unknown, so it is left out of comparisons by `==`."""

    def __post_init__(self) -> None:
        _checks.text(self.job_id, "job_id", ValueError)
        _checks.instance(self.job, JobGraph, "job", ValueError)
        _checks.real(self.submit_time, "submit_time", ValueError, low=-math.inf)
        _checks.integer(self.postponed, "postponed", ValueError, low=0, high=1 << 62)
        limit: object = self.requested_time
        if not (isinstance(limit, numbers.Real) and math.isnan(limit)):
            _checks.real(limit, "requested_time", ValueError)


@dataclass(frozen=True, slots=True)
class Plan:
    """A policy's decisions for a queue, as pairs of job id and decision. A job in no field waits without a reason.

    Jobs that move or stop leave their GPUs before any job gets new ones.

    Args:
        start: Jobs to start, in the order in which to allocate them.
        defer: Waiting jobs with the reason to wait.
        reject: Jobs that can never run on this cluster, or have a requirement that the policy cannot honour, with the
            reason.
        move: Running jobs with their new placements.
        preempt: Running jobs to stop.
    """

    start: tuple[tuple[str, Placement], ...] = ()
    defer: tuple[tuple[str, Refusal], ...] = ()
    reject: tuple[tuple[str, Refusal], ...] = ()
    move: tuple[tuple[str, Placement], ...] = ()
    preempt: tuple[str, ...] = ()

    def carry_out(self, cluster: Cluster) -> None:
        """Make the plan's changes to the cluster: jobs leave, jobs that move get their new GPUs, and others start.

        Raises:
            AllocationError: The cluster is not as the plan expects it, such as after another change; nothing changes
                then.
        """
        _checks.instance(cluster, Cluster, "cluster", ValueError)
        with cluster.transaction():
            graphs = {job_id: cluster.jobs.get(job_id) for job_id, _ in self.move}
            for job_id in (*self.preempt, *graphs):
                cluster.release(job_id)
            for job_id, placement in self.move:
                cluster.allocate(job_id, replace(placement, job=graphs[job_id]))
            for job_id, placement in self.start:
                cluster.allocate(job_id, placement)


@dataclass(frozen=True, slots=True)
class Explanation:
    """The explanation of a policy's decision about one job.

    Args:
        candidates: Possible placements on different GPU sets, best first.
        refusal: The reason why the job cannot start; None if `place` returns the first candidate. A policy that prefers
            to wait gives a refusal, and may also list candidates.
        complete: False if the search for the candidates after the first one ended at its limit, so that better ones may
            be missing.
    """

    policy: str
    candidates: tuple[Placement, ...]
    refusal: Refusal | None = None
    complete: bool = True

    def __str__(self) -> str:
        """Return a line with the policy and the reason, then a line for each candidate, with its scores."""
        first = f"{self.policy}: {self.refusal.reason}" if self.refusal else f"{self.policy}:"
        more = () if self.complete else ("  (the search ended early: better candidates may be missing)",)
        return "\n".join((first, *(f"  {_placement_as_text(one)}" for one in self.candidates), *more))

    def to_dict(self, topology: Topology) -> dict[str, Any]:
        """Return the explanation as a dictionary that JSON can represent; docs/schemas/place.json describes it.

        Args:
            topology: The topology of the cluster.

        Raises:
            AllocationError: GPUs that a pool lends have no UUID; see `Placement.env`.
        """
        from topoplace.engine.placement_json import as_dict

        placed = None if self.refusal else self.candidates[0]
        return {
            "topology": topology.name,
            "policy": self.policy,
            "placement": as_dict(placed) if placed else None,
            "reason": self.refusal.reason if self.refusal else None,
            "candidates": [as_dict(candidate) for candidate in self.candidates],
            "complete": self.complete,
            "assumed": [kind.name for kind in topology.assumed],
        }


def _placement_as_text(placement: Placement) -> str:
    names = placement.topology.machine_names
    own = _listed(placement.gpus) or f"no GPU, on {', '.join(names[one.machine] for one in placement.hosts)}"
    stated = (
        *([f"slices {', '.join(one.profile for one in placement.slices)}"] if placement.slices else ()),
        *([f"{_listed(placement.resliced)} resliced"] if placement.resliced else ()),
        *([f"{_listed(placement.remote)} over the network"] if placement.remote else ()),
        *(["proven best"] if placement.optimal else ()),
    )
    where = f"{own} ({'; '.join(stated)})" if stated else own
    scores = (f"{name} {round(value, 4):,}".removesuffix(".0") for name, value in placement.scores.items())
    return f"{where}: {', '.join(scores)}" if placement.scores else where


def _listed(gpus: tuple[int, ...]) -> str:
    """Return GPUs in words, such as "GPUs 0, 3"; "" if there are none."""
    return f"GPU{'s' * (len(gpus) > 1)} {', '.join(map(str, gpus))}" if gpus else ""


def check_answer(answer: object, kind: type, policy: object, method: str, *, or_none: bool = False) -> None:
    """Raise PolicyError unless the method of a policy has returned a `kind`, or None if `or_none` allows it."""
    if isinstance(answer, kind) or (or_none and answer is None):
        return
    article = "an" if kind.__name__[0] in "AEIOU" else "a"
    raise PolicyError(
        f"policy {getattr(policy, 'name', type(policy).__name__)!r}: {method} returned {_checks.shown(answer)}, "
        f"not {article} {kind.__name__}{' or None' if or_none else ''}"
    )
