"""The room that is missing for a job, in thousandths of GPUs: in the cluster, and on each machine."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from topoplace.kernels.limits import until_deadline
from topoplace.moving.cheapest_levels import Shortage

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from topoplace.cluster.cluster import Cluster
    from topoplace.jobs.job_graph import JobGraph
    from topoplace.moving.movers import Mover


def in_all(job: JobGraph, cluster: Cluster, movers: Sequence[Mover]) -> Shortage:
    """Return the room that pre-empted jobs must leave in the cluster; moved jobs need as much as they leave."""
    return Shortage(
        [mover.gains for mover in until_deadline(movers)], _needed(job) - sum(_free(cluster).values())
    )


def on_machines(
    job: JobGraph, cluster: Cluster, movers: Sequence[Mover], excluded: Collection[str] = ()
) -> Mapping[int, tuple[list[int], Shortage]]:
    """Return, for each machine that can hold the job, the numbers of the jobs there and the room that they must leave.

    excluded: the names of the machines that the job must not get.
    """
    machine_of, out = cluster.topology.machine_of.tolist(), set(cluster.out_of_service())
    free = _free(cluster)
    left: dict[int, dict[int, int]] = defaultdict(lambda: defaultdict(int))
    for number, mover in enumerate(until_deadline(movers)):
        for gpu in mover.gpus:
            left[machine_of[gpu]][number] += 0 if gpu in out else mover.share
    found: dict[int, tuple[list[int], Shortage]] = {}
    numbers = {name: number for number, name in enumerate(cluster.topology.machine_names)}
    closed = {numbers[name] for name in excluded}
    for machine, by_job in until_deadline(left.items()):
        if machine in closed:
            continue
        needed = _needed(job) - free.get(machine, 0)
        if sum(by_job.values()) >= needed:
            gains = [(0, gain, gain) for gain in by_job.values()]
            found[machine] = list(by_job), Shortage(gains, needed)
    return found


def _needed(job: JobGraph) -> int:
    return job.num_tasks * job.gpu_thousandths


def _free(cluster: Cluster) -> Mapping[int, int]:
    """Return the thousandths of GPUs that are left on each machine, except on those that have none left."""
    machine_of, state = cluster.topology.machine_of.tolist(), cluster.native
    free: dict[int, int] = defaultdict(int)
    for gpu in state.gpus_with(1):
        free[machine_of[gpu]] += state.share_left(gpu)
    return free
