"""Checks of a policy's decisions: `place` and `explain` for one job, and `plan` for a queue."""

from __future__ import annotations

import re
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeVar

from topoplace.engine.plan import Explanation, Plan, check_answer
from topoplace.engine.policy import Policy, SearchPolicy
from topoplace.errors import AllocationError, PolicyError
from topoplace.objectives.effective_bandwidth import EffectiveBandwidth
from topoplace.placement import Placement, Refusal
from topoplace.testing.answers import explained_text, placed_text, plan_text, queue_of, refused_text
from topoplace.testing.placements import check_placement, gpu_fault
from topoplace.testing.reference import better_placement, num_orders
from topoplace.testing.verified import SLACK, TIME, verify_decision

if TYPE_CHECKING:
    from topoplace.cluster.cluster import Cluster
    from topoplace.engine.plan import QueuedJob
    from topoplace.jobs.job_graph import JobGraph

PolicyFactory = Callable[[], Policy]
_Answer = TypeVar("_Answer")
_MOST_ORDERS: Final = 2000
"""Limit on the orders of GPUs to try in the check of a claim to be optimal."""
_MOST_TIMED_ORDERS: Final = 500
"""Limit on those whose communication time is computed."""


@dataclass(frozen=True, slots=True)
class CheckOutcome:
    """The answers of `place` and `explain` for one job.

    placement: that of `place`, or None. refusal: that of `explain`, or None. refused: True if `place` raised ValueError
    naming a requirement. texts: both answers as text.
    """

    placement: Placement | None
    refusal: Refusal | None
    refused: bool
    texts: tuple[str, str]


def require(holds: object, message: str) -> None:
    """Raise AssertionError with `message` unless `holds`; unlike `assert`, also under `python -O`."""
    if not holds:
        raise AssertionError(message)


def require_kind(
    answer: object, kind: type, policy: Policy, method: str, where: str, *, or_none: bool = False
) -> None:
    """Raise AssertionError, which begins with `where`, unless a method has returned a `kind`, or None if allowed."""
    try:
        check_answer(answer, kind, policy, method, or_none=or_none)
    except PolicyError as error:
        raise AssertionError(f"{where}: {str(error).removeprefix(f'policy {policy.name!r}: ')}") from None


class LighterFaultError(AssertionError):
    """A placement has GPUs that the job can get, but breaks another clause, such as a requirement of the job."""


class DecisionCheck:
    """The checks of a policy's answers for one job and one state of a cluster."""

    def __init__(
        self,
        policy: Policy,
        build: PolicyFactory,
        job: JobGraph,
        cluster: Cluster,
        snapshot: bytes | None = None,
    ) -> None:
        """Prepare to check `policy`; `build` returns a new one, which must give the same answers.

        snapshot: the cluster's snapshot; None to make one.
        """
        self.policy = policy
        self.build = build
        self.job = job
        self.cluster = cluster
        self._before = snapshot or cluster.snapshot(), repr(job)
        busy = sorted(set(range(cluster.topology.num_gpus)) - set(cluster.free_gpus()))
        wants = "".join(f", {name} = {getattr(job, name)!r}" for name in job.requirements)
        self.where = (
            f"{policy.name}: {job.name} of {job.num_tasks}{wants} on {cluster.topology.name}, busy {busy}"
        )

    def run(self) -> CheckOutcome:
        """Check `place` and `explain` against every clause; AssertionError states the broken clause and the case."""
        answer = self._place(self.policy)
        self._require_unchanged("place")
        for policy in (self.policy, self.build()):
            again = self._place(policy)
            agree = _text(again) == _text(answer)
            self._require(agree, f"not deterministic: {_text(answer)}, then {_text(again)}")
        if isinstance(answer, ValueError):
            explained, placement = self._check_refused(answer), None
        else:
            explained, placement = self._check_explained(answer), answer
        texts = _text(answer), explained_text(explained)
        return CheckOutcome(placement, explained.refusal, isinstance(answer, ValueError), texts)

    def gpu_fault(self) -> str | None:
        """Return why no job can get the GPUs of `place`, with the case; None if one can, or if `place` fails."""
        try:
            placement = self.policy.place(self.job, self.cluster)
        except Exception:
            return None
        fault = placement and gpu_fault(placement, self.job, self.cluster)
        return f"{self.where}: {fault}" if fault else None

    def _place(self, policy: Policy) -> Placement | ValueError | None:
        """Return what `place` returns, or the ValueError by which it refuses a requirement of the job."""
        try:
            placement = policy.place(self.job, self.cluster)
        except Exception as error:
            named = isinstance(error, ValueError) and _names_requirement(str(error), self.job)
            if isinstance(error, ValueError) and named:
                return error
            raise AssertionError(f"{self.where}: place raised {refused_text(error)}") from error
        require_kind(placement, Placement, policy, "place", self.where, or_none=True)
        return placement

    def _explain(self) -> Explanation:
        with no_exception(f"{self.where}: explain"):
            explained = self.policy.explain(self.job, self.cluster)
        require_kind(explained, Explanation, self.policy, "explain", self.where)
        for candidate in explained.candidates:
            require_kind(candidate, Placement, self.policy, "explain", self.where)
        require_kind(explained.refusal, Refusal, self.policy, "explain", self.where, or_none=True)
        self._require_unchanged("explain")
        return explained

    def _check_refused(self, error: ValueError) -> Explanation:
        """Check that `explain` and `plan` also refuse the job, whose requirement `place` refuses by `error`."""
        explained = self._explain()
        refusal = explained.refusal
        said = f"place refuses: {error}; but explain"
        self._require(not explained.candidates, f"{said} lists candidates")
        self._require(refusal is not None and refusal.permanent, f"{said} gives no permanent refusal")
        named = refusal is not None and _names_requirement(refusal.reason, self.job)
        self._require(named, f"{said} names no requirement: {refusal}")
        (entry,) = queue_of([self.job])
        with no_exception(f"{self.where}: plan"):
            plan = self.policy.plan((entry,), self.cluster, 0.0)
        require_kind(plan, Plan, self.policy, "plan", self.where)
        self._require_unchanged("plan")
        self._require(
            entry.job_id in dict(plan.reject), f"place refuses: {error}; but plan does not reject the job"
        )
        return explained

    def _check_explained(self, placement: Placement | None) -> Explanation:
        explained = self._explain()
        refusal, candidates = explained.refusal, explained.candidates
        if placement is None:
            self._require(refusal and refusal.reason, "place returns None, but explain gives no reason")
        else:
            answer = f"place returns {placement.gpus}"
            self._require(candidates, f"{answer}, but explain lists no candidate")
            self._require(refusal is None, f"{answer}, but explain refuses: {refusal}")
            first = candidates[0]
            self._require(first.gpus == placement.gpus, f"{answer}, but explain ranks {first.gpus} first")
            agree = placed_text(first) == placed_text(placement)
            self._require(agree, f"place returns {placed_text(placement)}, explain {placed_text(first)}")
        sets = [frozenset(candidate.gpus) for candidate in candidates]
        self._require(len(set(sets)) == len(sets), "explain ranks a GPU set twice")
        for candidate in candidates:
            self._check_placement(candidate)
        if placement is not None:
            self._check_placement(placement, _MOST_TIMED_ORDERS)
            self._check_optimal(placement)
        return explained

    def _check_placement(self, placement: Placement, most_orders: int = 0) -> None:
        """Check a placement, and what it states of its time; most_orders: up to which all are tried for that."""
        case, model = (placement, self.job, self.cluster), effective_model(self.policy)
        try:
            if placement.bound is None and TIME not in placement.scores:
                check_placement(*case, model)
            else:
                slack = float(getattr(self.policy, "slack", SLACK))
                verify_decision(*case, slack=slack, most_orders=most_orders, model=model)
        except AssertionError as error:
            kind = AssertionError if gpu_fault(placement, self.job, self.cluster) else LighterFaultError
            raise kind(f"{self.where}: {error}") from None

    def _check_optimal(self, placement: Placement) -> None:
        """Check by brute force that a placement that claims to be optimal is, if the case is small."""
        if not placement.optimal or num_orders(self.job, self.cluster) > _MOST_ORDERS:
            return
        order = self.policy.order if isinstance(self.policy, SearchPolicy) else None
        other = better_placement(placement, self.job, self.cluster, order, effective_model(self.policy))
        better = other and f"optimal = True for {placed_text(placement)}, but better is {placed_text(other)}"
        self._require(other is None, str(better))

    def _require_unchanged(self, method: str) -> None:
        # The contents as text, not the objects: a policy that changes an object changes every reference to it. The
        # snapshot contains the topology.
        same = (self.cluster.snapshot(), repr(self.job)) == self._before
        self._require(same, f"{method} changed the cluster, topology or job it was shown")

    def _require(self, holds: object, message: str) -> None:
        require(holds, f"{self.where}: {message}")


def check_plan(policy: Policy, build: PolicyFactory, queue: Sequence[QueuedJob], cluster: Cluster) -> Plan:
    """Check the policy's plan for a queue against every clause, and return it."""
    where = f"{policy.name}: plan on {cluster.topology.name}"
    before, now = cluster.snapshot(), float(len(queue))
    with no_exception(where):
        plan = policy.plan(tuple(queue), cluster, now)
    require_kind(plan, Plan, policy, "plan", where)
    for _, placement in plan.start:
        require_kind(placement, Placement, policy, "plan", where)
    require(cluster.snapshot() == before, f"{where} changed the cluster it was shown")
    for other in (policy, build()):
        with no_exception(where):
            again = other.plan(tuple(queue), cluster, now)
        require_kind(again, Plan, policy, "plan", where)
        texts = plan_text(plan), plan_text(again)
        require(texts[0] == texts[1], f"{where} is not deterministic: {texts[0]}, then {texts[1]}")
    known = {entry.job_id: entry.job for entry in queue}
    named = [job_id for job_id, _ in (*plan.start, *plan.defer, *plan.reject)]
    require(set(named) <= set(known), f"{where} names {sorted(set(named) - set(known))}, not in the queue")
    require(len(set(named)) == len(named), f"{where} names a job twice")
    for permanent, refusals in ((False, plan.defer), (True, plan.reject)):
        for job_id, refusal in refusals:
            fits = refusal.reason and refusal.permanent == permanent
            require(fits, f"{where} {'rejects' if permanent else 'defers'} {job_id} with {refusal}")
    _check_start(policy, plan, known, cluster, where)
    return plan


def _check_start(policy: Policy, plan: Plan, jobs: dict[str, JobGraph], cluster: Cluster, where: str) -> None:
    """Check each placement of a plan in the state that the ones before it leave."""
    state = cluster.copy()
    for job_id, placement in plan.start:
        try:
            check_placement(placement, jobs[job_id], state, effective_model(policy))
            state.allocate(job_id, placement, jobs[job_id])
        except (AssertionError, AllocationError) as error:
            raise AssertionError(f"{where}: {job_id} gets {placement.gpus} by then: {error}") from None


def effective_model(policy: Policy) -> EffectiveBandwidth | None:
    """Return the model of the score effective_bandwidth that the policy has as its attribute `model`, if any."""
    model = getattr(policy, "model", None)
    return model if isinstance(model, EffectiveBandwidth) else None


@contextmanager
def no_exception(where: str) -> Generator[None]:
    """Turn any exception in the `with` block into an AssertionError that begins with `where`."""
    try:
        yield
    except Exception as error:
        raise AssertionError(f"{where} raised {refused_text(error)}") from error


def _names_requirement(text: str, job: JobGraph) -> bool:
    return any(re.search(rf"\b{name}\b", text) for name in job.requirements)


def _text(answer: Placement | Exception | None) -> str:
    return refused_text(answer) if isinstance(answer, Exception) else placed_text(answer)
