"""`defragment`: a few moves of running jobs after which more jobs of one job class fit."""

from __future__ import annotations

import math
import time
from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from topoplace import _checks, policies
from topoplace.cluster.cluster import Cluster
from topoplace.engine.plan import Plan
from topoplace.engine.policy import Policy
from topoplace.errors import DeadlineError
from topoplace.jobs.job_graph import JobGraph
from topoplace.kernels.limits import deadline
from topoplace.moving.move_costs import MoveCosts
from topoplace.moving.movers import movers_of
from topoplace.moving.rearrangement import unused_id
from topoplace.moving.room import make_room

if TYPE_CHECKING:
    from topoplace.placement import Placement

_ONE_EACH: Final = MoveCosts(move=1.0, move_per_gpu=0.0, preempt=math.inf)


@dataclass(frozen=True, slots=True)
class Defragmentation(Plan):
    """A plan that only moves jobs, with the number of jobs of the wanted class that fit before and after it."""

    before: int = 0
    after: int = 0


def defragment(
    cluster: Cluster,
    job: JobGraph | None = None,
    *,
    moves: int = 8,
    movable: Iterable[str] | None = None,
    policy: Policy | str = policies.DEFAULT,
    min_bandwidth: float | None = None,
    excluded: Mapping[str, Collection[str]] | None = None,
    timeout: float = 10.0,
) -> Defragmentation:
    """Return up to `moves` moves of running jobs, after which as many jobs equal to `job` fit as the search finds.

    The cluster is not changed. First, jobs equal to `job` are placed where they fit. Each further one gets room by the
    fewest moves (`make_room`), until the remaining moves are too few. No job moves twice, and no job is pre-empted.

    Args:
        job: The job that should fit; None for a job on all GPUs of the largest machine, so that whole machines become
            free.
        movable: Ids of the jobs that may move; None for all.
        policy: As for `make_room`.
        min_bandwidth: As for `make_room`.
        excluded: The names of the machines that a job must not get, by the id of the job that moves.
        timeout: Seconds after which the moves found so far are returned.

    Raises:
        ValueError: Names a wrong argument.
        AllocationError: Names an id in `movable` that is no running job.
    """
    _checks.instance(cluster, Cluster, "cluster", ValueError)
    _checks.integer(moves, "moves", ValueError, low=0, high=1 << 30)
    end = time.monotonic() + _checks.positive(timeout, "timeout", ValueError)
    wanted = _whole_machine(cluster) if job is None else job
    _checks.instance(wanted, JobGraph, "job", ValueError)
    chosen = policies.get(policy) if isinstance(policy, str) else policy
    free_to_move: set[str] = set()
    with suppress(DeadlineError), deadline(end - time.monotonic()):
        free_to_move.update(mover.job_id for mover in movers_of(cluster, movable, _ONE_EACH))
    before = after = 0
    moved: dict[str, Placement] = {}
    with cluster.what_if():
        while (left := end - time.monotonic()) > 0:
            room = make_room(
                wanted,
                cluster,
                movable=sorted(free_to_move - moved.keys()),
                cost=_ONE_EACH,
                policy=chosen,
                min_bandwidth=min_bandwidth,
                excluded=excluded,
                job_id=unused_id(f"wanted {after}", cluster),
                timeout=left,
            )
            if not room.start or len(moved) + len(room.move) > moves:
                break
            room.carry_out(cluster)
            moved.update(room.move)
            after += 1
            before += not moved
    return Defragmentation(move=tuple(moved.items()), before=before, after=after)


def _whole_machine(cluster: Cluster) -> JobGraph:
    """Return a job that takes all GPUs of the largest machine."""
    size = max(len(gpus) for gpus in cluster.topology.gpus_of.values())
    return JobGraph.clique(size).with_(single_machine=True)
