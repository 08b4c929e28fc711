"""Bandwidth of a job with one ring of all its tasks, from which its communication time follows.

Bytes here are those that each GPU sends, 2 b (n - 1) / n in an all-reduce of b among n tasks. GB/s are therefore bus
bandwidths.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

from topoplace.collective.bandwidth import DEFAULT_RATES, all_reduce_bandwidth, ring_bandwidth
from topoplace.collective.networks import collective_network
from topoplace.collective.several_machines import bandwidth_over
from topoplace.kernels.job_traffic import KINDS
from topoplace.topology.links.nccl_rates import Rates

if TYPE_CHECKING:
    from topoplace.jobs.job_graph import JobGraph
    from topoplace.placement import Placement
    from topoplace.topology.topology import Topology


class JobBandwidth(NamedTuple):
    """The bandwidth of a job's rings, or of NVSwitches that reduce."""

    gb_per_s: float
    """Bus bandwidth, GB/s; 0 if there are no rings."""
    by_switches: bool
    """True if NVSwitches reduce (NVLS), which is faster than rings."""


def job_bandwidth(
    job: JobGraph, gpus: Sequence[int], topology: Topology, rates: Rates | str = DEFAULT_RATES
) -> JobBandwidth:
    """Return the bandwidth of rings among the GPUs of a job, or of NVSwitches if these do the job's all-reduce.

    Args:
        gpus: The GPU of each task; at least two.
        rates: The rates of links, as in `topoplace.collective`.

    Raises:
        ValueError: Names a wrong argument, as for `ring_bandwidth`.
    """
    ring = only_ring(job)
    ordered = gpus if ring is None else _in_order(ring, gpus)
    if ring is not None and ring.kind == "chain":  # a ring without the way back, which may share ports
        return JobBandwidth(bandwidth_over(topology, ordered, rates, "chain"), by_switches=False)
    rings = ring_bandwidth(topology, ordered, rates=rates)
    if ring is None or ring.kind != "reduce":
        return JobBandwidth(rings, by_switches=False)
    best = all_reduce_bandwidth(topology, ordered, rates=rates)
    return JobBandwidth(max(best, rings), by_switches=best > rings)


def placed_bandwidth(placement: Placement) -> JobBandwidth:
    """Return the bandwidth of a placed job; 0 GB/s if nothing carries its bytes, or it is unknown."""
    job = placement.job
    if len(placement.gpus) > 1 and job is not None and job.edges and not placement.remote:
        with suppress(ValueError):  # of a machine that is too large for NCCL
            return job_bandwidth(job, placement.gpus, placement.topology, placement.rates or DEFAULT_RATES)
    return JobBandwidth(0.0, by_switches=False)


def bandwidth_scores(
    job: JobGraph, seconds: float, gpus: Sequence[int], topology: Topology, rates: Rates | str
) -> dict[str, float]:
    """Return "ring_bandwidth" (GB/s) of a job with one ring of all its tasks; for an all-reduce, also
    "all_reduce_bandwidth".

    Both are bus bandwidths. Return {} for other jobs, and for a job without communication time.

    Args:
        seconds: Communication time of the job on these GPUs.
        gpus: The GPU of each task.
    """
    ring = only_ring(job)
    if ring is None or not seconds:
        return {}
    carried = ring.gigabytes / seconds
    if ring.kind != "reduce":
        return {"ring_bandwidth": carried}
    rings = carried
    if collective_network(topology, rates).reduces:
        rings = ring_bandwidth(topology, _in_order(ring, gpus), rates=rates)
    return {"ring_bandwidth": rings, "all_reduce_bandwidth": carried}


class OnlyRing(NamedTuple):
    """The only collective of a job, a ring of all its tasks."""

    kind: str
    """"reduce", "ring", or "chain" without the way back, as in `kernels.JobCollectives`."""
    tasks: list[int]
    """The tasks in the order of the ring."""
    gigabytes: float
    """GB between two neighbours."""


def only_ring(job: JobGraph) -> OnlyRing | None:
    """Return a job's only collective if that is one ring of all its tasks; None otherwise."""
    found = job.traffic_arrays.native.only_ring(job.num_tasks)
    return None if found is None else OnlyRing(KINDS[found[0]], *found[1:])


def _in_order(ring: OnlyRing, gpus: Sequence[int]) -> list[int]:
    """Return the GPUs in the order of a ring of all tasks."""
    return [gpus[task] for task in ring.tasks]
