"""A policy that moves running jobs when the oldest waiting job does not fit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from topoplace import _checks, policies
from topoplace.engine.plan import Plan, QueuedJob
from topoplace.engine.policy import Policy
from topoplace.moving.move_costs import MoveCosts
from topoplace.moving.room import make_room, refuse_reslicing

if TYPE_CHECKING:
    from topoplace.cluster.cluster import Cluster
    from topoplace.engine.plan import Explanation
    from topoplace.jobs.job_graph import JobGraph
    from topoplace.placement import Placement

_DEFAULT_COST: Final = MoveCosts()


class MakingRoom:
    """A policy that decides as another one, and moves running jobs if the oldest waiting job then fits (`make_room`).

    It never pre-empts: without priorities, two jobs would pre-empt each other for ever. It moves only jobs that hold
    GPUs, and no job if the other policy's plan moves or pre-empts jobs itself.

    policy: the policy that places all jobs. cost: the cost of moves; amounts for pre-empting are ignored. most: the
    largest cost of a plan. after: seconds that the oldest job must have waited; a simulation checks when a job arrives
    or ends, or at the times of `decide_every`. timeout: limit on the search for one plan, in seconds. Raise ValueError
    for a wrong argument.
    """

    def __init__(
        self,
        policy: Policy | str = policies.DEFAULT,
        *,
        cost: MoveCosts = _DEFAULT_COST,
        most: float = float("inf"),
        after: float = 0.0,
        timeout: float = 1.0,
    ) -> None:
        self._policy = policies.get(policy) if isinstance(policy, str) else policy
        _checks.instance(self._policy, Policy, "policy", ValueError)
        refuse_reslicing(self._policy)
        _checks.instance(cost, MoveCosts, "cost", ValueError)
        self._cost = replace(cost, preempt=float("inf"))
        self._most = most if most == float("inf") else _checks.real(most, "most", ValueError)
        self._after = _checks.real(after, "after", ValueError)
        self._timeout = _checks.positive(timeout, "timeout", ValueError)

    @property
    def name(self) -> str:
        """Return the name of the policy that places the jobs, with an addition for the moves."""
        return f"{self._policy.name} with moves"

    def place(self, job: JobGraph, cluster: Cluster) -> Placement | None:
        """Return the other policy's placement; no job moves."""
        return self._policy.place(job, cluster)

    def explain(self, job: JobGraph, cluster: Cluster, top: int = 5) -> Explanation:
        """Return the other policy's explanation."""
        return self._policy.explain(job, cluster, top)

    def plan(self, queue: Sequence[QueuedJob], cluster: Cluster, now: float) -> Plan:
        """Return the other policy's plan; if the oldest job still waits, add moves after which it starts."""
        plan = self._policy.plan(queue, cluster, now)
        if plan.move or plan.preempt:
            return plan
        gone = {job_id for job_id, _ in (*plan.start, *plan.reject)}
        oldest = next((entry for entry in queue if entry.job_id not in gone), None)
        if oldest is None or now - oldest.submit_time < self._after or oldest.job.mig is not None:
            return plan
        native = cluster.native
        running = tuple([job_id for job_id in cluster.allocations if not native.slices_of(job_id)])
        with cluster.what_if() as state:
            plan.carry_out(state)
            room = make_room(
                oldest.job,
                state,
                movable=running,
                cost=self._cost,
                policy=self._policy,
                job_id=oldest.job_id,
                timeout=self._timeout,
            )
        if not room.move or room.cost > self._most:
            return plan
        return replace(
            plan,
            start=(*plan.start, *room.start),
            move=room.move,
            defer=tuple((job_id, why) for job_id, why in plan.defer if job_id != oldest.job_id),
        )

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._policy!r})"
