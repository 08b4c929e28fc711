"""What carries a job: the GB/s from which the communication time of a job with one ring of all its tasks follows.

Bytes here are those that each GPU sends, 2 b (n - 1) / n of an all-reduce of b among n tasks: so GB/s are bus
bandwidths.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

from topoplace.collective.bandwidth import DEFAULT_RATES, ring_bandwidth
from topoplace.collective.networks import collective_network
from topoplace.collective.nvls import all_reduce_bandwidth
from topoplace.collective.several_machines import bandwidth_over
from topoplace.objectives.communication import RING_KINDS
from topoplace.topology.links.rates import Rates

if TYPE_CHECKING:
    from topoplace.jobs.collectives import Batch
    from topoplace.jobs.job_graph import JobGraph
    from topoplace.placement import Placement
    from topoplace.topology.topology import Topology


class JobBandwidth(NamedTuple):
    """What carries the bytes of a job."""

    gb_per_s: float
    """0 if there are no rings."""
    by_switches: bool
    """True if NVSwitches reduce (NVLS), which is faster than rings."""


def job_bandwidth(
    job: JobGraph, gpus: Sequence[int], topology: Topology, rates: Rates | str = DEFAULT_RATES
) -> JobBandwidth:
    """Return the bandwidth of rings among the GPUs of a job; of an all-reduce in NVSwitches if that is the job.

    Args:
        gpus: The GPU of each task; at least two.
        rates: As in `topoplace.collective`.

    Raises:
        ValueError: As for `ring_bandwidth`.
    """
    ring = only_ring(job)
    ordered = gpus if ring is None else _in_order(ring, gpus)
    if ring is not None and ring.kind == "broadcast":  # a ring without the way back, which may share ports
        return JobBandwidth(bandwidth_over(topology, ordered, rates, "chain"), by_switches=False)
    rings = ring_bandwidth(topology, ordered, rates=rates)
    if ring is None or ring.kind != "all_reduce":
        return JobBandwidth(rings, by_switches=False)
    best = all_reduce_bandwidth(topology, ordered, rates=rates)
    return JobBandwidth(max(best, rings), by_switches=best > rings)


def placed_bandwidth(placement: Placement) -> JobBandwidth:
    """Return what carries the bytes of a placed job; 0 GB/s where nothing does, or it is not known."""
    job = placement.job
    if len(placement.gpus) > 1 and job is not None and job.edges and not placement.remote:
        with suppress(ValueError):  # of a machine that is too large for NCCL
            return job_bandwidth(job, placement.gpus, placement.topology, placement.rates or DEFAULT_RATES)
    return JobBandwidth(0.0, by_switches=False)


def bandwidth_scores(
    job: JobGraph, seconds: float, gpus: Sequence[int], topology: Topology, rates: Rates | str
) -> dict[str, float]:
    """Return "ring_bandwidth" of a job with one ring of all its tasks, of an all-reduce also "all_reduce_bandwidth".

    GB/s, as bus bandwidths; {} for other jobs, and without rings.

    Args:
        seconds: The communication time of the job on these GPUs.
        gpus: The GPU of each task.
    """
    ring = only_ring(job)
    if ring is None or not seconds:
        return {}
    carried = float(ring.carried[0]) / seconds
    if ring.kind != "all_reduce":
        return {"ring_bandwidth": carried}
    rings = carried
    if collective_network(topology, rates).reduces:
        rings = ring_bandwidth(topology, _in_order(ring, gpus), rates=rates)
    return {"ring_bandwidth": rings, "all_reduce_bandwidth": carried}


def only_ring(job: JobGraph) -> Batch | None:
    """Return what a job exchanges, if that is one ring collective of all its tasks; None otherwise."""
    batches = [batch for listed in job.traffic.values() for batch in listed]
    if len(batches) != 1 or batches[0].kind not in RING_KINDS:
        return None
    return batches[0] if batches[0].tasks.shape == (1, job.num_tasks) else None


def _in_order(ring: Batch, gpus: Sequence[int]) -> list[int]:
    """Return the GPUs in the order of a ring of all tasks."""
    tasks: list[int] = ring.tasks[0].tolist()
    return [gpus[task] for task in tasks]
