"""Checks that a policy keeps the contract of `Policy`, for the policies of this package and of third parties."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from topoplace import _checks
from topoplace.engine.policy import Policy
from topoplace.testing import second_process
from topoplace.testing.answers import plan_text, queue_of
from topoplace.testing.decisions import DecisionCheck, LighterFaultError, PolicyFactory, check_plan, require
from topoplace.testing.default_cases import clusters_on, default_jobs, default_topologies
from topoplace.testing.reference import task_orders
from topoplace.testing.second_process import Answers, NoSecondProcessError, other_hash_seed

if TYPE_CHECKING:
    from topoplace.cluster.cluster import Cluster
    from topoplace.engine.plan import Plan
    from topoplace.jobs.job_graph import JobGraph
    from topoplace.testing.decisions import CheckOutcome
    from topoplace.topology.topology import Topology

_MOST_TASKS: Final = 5


@dataclass(frozen=True, slots=True)
class Report:
    """The result of `check_policy`: the policy's name, the number of decisions, and of those that placed the job."""

    policy: str
    decisions: int
    placed: int
    unchecked: tuple[str, ...] = ()
    """The clauses that could not be checked, with the reason; normally none."""


def check_policy(
    policy: Policy | PolicyFactory,
    *,
    topologies: Sequence[Topology] | None = None,
    jobs: Sequence[JobGraph] | None = None,
    states: int = 6,
    seed: int = 0,
) -> Report:
    """Check a policy, or a factory of one, against its contract; AssertionError states the broken clause and the case.

    Raise ValueError for any other object.
    topologies: by default three built-in machines, a partitioned one, MIG slices, and four clusters of two to five
    machines.
    jobs: by default patterns of 1 to 5 tasks, jobs with each requirement, and a chain of 32 tasks.
    states: besides the idle cluster, how many busy clusters to try for each topology. The first has no free GPU. In the
    others, jobs hold random GPUs and others are drained; every second one knows its hosts, as the idle cluster does.
    These clauses are checked for each case; GPUs that no job can have, in any case, are reported before other faults:
    - `place` returns None or a placement with one free GPU per task, which meets the job's requirements and fits the
      hosts, or raises ValueError naming a requirement. Known scores are true (`check_placement`).
    - A placement that claims to be optimal is not worse than any other (`better_placement`); small cases only.
    - `place`, `explain` and `plan` give the same answer again, also for a new policy from the factory, and in a second
      process with another hash seed.
    - `explain` agrees with `place` and ranks no set of GPUs twice.
    - `plan` starts only jobs of the queue, each on GPUs and host resources that are still free.
    - No job that `place` placed here, or in an earlier state of the topology, is rejected by `plan` or refused
    permanently by `explain`.
    - No method changes the cluster, topology or job.
    - Some job is placed, and some job is started, if one of up to 5 tasks without requirements fits an idle machine.
    """
    build = _factory(policy)
    subject = build()
    lacking = [part for part in ("name", "place", "explain", "plan") if not hasattr(subject, part)]
    require(not lacking, f"{subject!r} lacks {', '.join(lacking)}")
    require(str(subject.name) == subject.name != "", f"name = {subject.name!r} is not a non-empty string")
    rng = random.Random(seed)
    clusters = [
        cluster
        for topology in (default_topologies() if topologies is None else topologies)
        for cluster in clusters_on(topology, states, rng)
    ]
    run = _CheckRun(subject, build, tuple(default_jobs() if jobs is None else jobs), clusters)
    unchecked = run.compared(policy)
    cases = len(clusters) * len(run.jobs)
    if any(_fits_idle_machine(job, cluster) for cluster in clusters for job in run.jobs):
        require(run.placed, f"{subject.name} places none of {cases} jobs")
        require(run.started, f"{subject.name} starts no job in any plan")
    return Report(subject.name, cases, run.placed, unchecked)


def _factory(policy: Policy | PolicyFactory) -> PolicyFactory:
    if isinstance(policy, Policy) and not isinstance(policy, type):
        return lambda: policy
    if not callable(policy):
        raise ValueError(
            f"policy = {_checks.shown(policy)} is neither a policy nor a function that makes one"
        )
    return policy


def _fits_idle_machine(job: JobGraph, cluster: Cluster) -> bool:
    """Return True if a small job without requirements fits the first machine of an idle cluster."""
    topology = cluster.topology
    gpus = topology.gpus_of[topology.machine_names[0]][: job.num_tasks]
    idle = not cluster.allocations and cluster.num_free == topology.num_gpus
    small = not job.requirements and 0 < job.num_tasks == len(gpus) <= _MOST_TASKS
    return idle and small and topology.is_legal(gpus) and any(task_orders(job, gpus, cluster))


@dataclass
class _CheckRun:
    """One run of the suite over all cases, with its counts."""

    policy: Policy
    build: PolicyFactory
    jobs: Sequence[JobGraph]
    clusters: Sequence[Cluster]
    placed: int = 0
    started: int = 0

    def compared(self, given: object) -> tuple[str, ...]:
        """Check all cases, and compare the answers with those of a second process; return the clauses not checked.

        given: the policy or its factory.
        """
        if second_process.running_here:
            self.answers()
            return ()
        own: list[Answers] = []
        try:
            with other_hash_seed(given, self.build, self.clusters, self.jobs) as elsewhere:
                own = self.answers()
                others = elsewhere()
        except NoSecondProcessError as error:
            own = own or self.answers()
            return (f"equal answers under another hash seed: {error}",)
        for cluster, mine, theirs in zip(self.clusters, own, others, strict=True):
            for answer, other in zip(mine, theirs, strict=True):
                where = f"{self.policy.name} on {cluster.topology.name}"
                require(answer == other, f"{where}: depends on the hash seed: {answer}, then {other}")
        return ()

    def answers(self) -> list[Answers]:
        """Check all cases; return the answers for each cluster."""
        found: list[Answers] = []
        fit: set[JobGraph] = set()
        for cluster in self.clusters:
            checks = self._checks(cluster, cluster.snapshot())
            try:
                outcomes = [check.run() for check in checks]
            except LighterFaultError as fault:
                raise AssertionError(self._gpu_fault() or str(fault)) from None
            plan = check_plan(self.policy, self.build, queue_of(self.jobs), cluster)
            placed = {job for job, outcome in zip(self.jobs, outcomes, strict=True) if outcome.placement}
            fit = fit | placed if cluster.allocations or cluster.out_of_service() else placed
            self._check_refusals(outcomes, plan, fit, cluster)
            self.placed += sum(outcome.placement is not None for outcome in outcomes)
            self.started += len(plan.start)
            found.append([*(text for outcome in outcomes for text in outcome.texts), plan_text(plan)])
        return found

    def _gpu_fault(self) -> str | None:
        """Return the first placement of any case whose GPUs cannot be had; it is reported before lighter faults."""
        checks = (check for cluster in self.clusters for check in self._checks(cluster, cluster.snapshot()))
        return next(filter(None, (check.gpu_fault() for check in checks)), None)

    def _checks(self, cluster: Cluster, snapshot: bytes) -> list[DecisionCheck]:
        return [DecisionCheck(self.policy, self.build, job, cluster, snapshot) for job in self.jobs]

    def _check_refusals(
        self, outcomes: Sequence[CheckOutcome], plan: Plan, fit: set[JobGraph], cluster: Cluster
    ) -> None:
        """Check that no job is refused for ever that fitted this or an earlier state of the topology.

        fit: the jobs that fitted. A job may be refused for the host resources that a cluster does not know.
        """
        rejected = dict(plan.reject)
        for entry, outcome in zip(queue_of(self.jobs), outcomes, strict=True):
            refusal = rejected.get(entry.job_id, outcome.refusal)
            for_ever = refusal is not None and refusal.permanent and not outcome.refused
            where = (
                f"{self.policy.name}: {entry.job.name} of {entry.job.num_tasks} on {cluster.topology.name}"
            )
            require(
                not for_ever or entry.job not in fit,
                f"{where}: refused for ever ({refusal}), but place placed it here or in an earlier state",
            )
