"""`check_policy` catches a broken policy of every kind."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import ClassVar

import pytest

import topoplace as tp
from topoplace.engine.plan import Explanation, Plan, QueuedJob
from topoplace.policies import Baseline
from topoplace.testing import Report, check_policy

Job, Cluster = tp.JobGraph, tp.Cluster


class Correct(Baseline):
    """What the broken ones below differ from by one method."""

    def place(self, job: Job, cluster: Cluster) -> tp.Placement | None:
        placement = super().place(job, cluster)
        return placement and self.change(placement, job, cluster)

    def change(self, placement: tp.Placement, job: Job, cluster: Cluster) -> tp.Placement | None:
        return placement


def on(placement: tp.Placement, gpus: Sequence[int]) -> tp.Placement:
    return tp.Placement(gpus=tuple(gpus), topology=placement.topology)


class TakesBusyGpus(Correct):
    def change(self, placement: tp.Placement, job: Job, cluster: Cluster) -> tp.Placement:
        return placement if job.anti_affinity else on(placement, range(job.num_tasks))


class TakesTooFew(Correct):
    def change(self, placement: tp.Placement, job: Job, cluster: Cluster) -> tp.Placement:
        return on(placement, placement.gpus[1:] or placement.gpus)


class IgnoresTheMachine(Correct):
    def place(self, job: Job, cluster: Cluster) -> tp.Placement | None:
        return super().place(job.with_(single_machine=False), cluster)


class SharesAMachine(Correct):
    def place(self, job: Job, cluster: Cluster) -> tp.Placement | None:
        return super().place(job.with_(anti_affinity=False), cluster)


class IgnoresTheModel(Correct):
    def place(self, job: Job, cluster: Cluster) -> tp.Placement | None:
        return super().place(job.with_(gpu_model=None), cluster)


class IgnoresTheMemory(Correct):
    def place(self, job: Job, cluster: Cluster) -> tp.Placement | None:
        return super().place(job.with_(gpu_memory_gb=None), cluster)


class ChangesItsMind(Correct):
    calls: ClassVar = itertools.count()

    def change(self, placement: tp.Placement, job: Job, cluster: Cluster) -> tp.Placement:
        return on(placement, placement.gpus[::-1]) if next(self.calls) % 2 else placement


class Allocates(Correct):
    def change(self, placement: tp.Placement, job: Job, cluster: Cluster) -> tp.Placement:
        cluster.allocate("mine", placement)
        return placement


class ChangesTheJob(Correct):
    def change(self, placement: tp.Placement, job: Job, cluster: Cluster) -> tp.Placement:
        object.__setattr__(job, "profile", f"{job.profile}x")
        return placement


class ExplainsNothing(Correct):
    def explain(self, job: Job, cluster: Cluster, top: int = 5) -> Explanation:
        return Explanation(self.name, ())


class ExplainsAnother(Correct):
    def explain(self, job: Job, cluster: Cluster, top: int = 5) -> Explanation:
        explained = super().explain(job, cluster, top)
        return Explanation(self.name, explained.candidates[::-1], explained.refusal)


class RanksASetTwice(Correct):
    def explain(self, job: Job, cluster: Cluster, top: int = 5) -> Explanation:
        explained = super().explain(job, cluster, top)
        return Explanation(self.name, explained.candidates[:1] * 2, explained.refusal)


class Crashes(Correct):
    def change(self, placement: tp.Placement, job: Job, cluster: Cluster) -> tp.Placement:
        raise RuntimeError("out of cheese")


class PlansOverlap(Correct):
    def plan(self, queue: Sequence[QueuedJob], cluster: Cluster, now: float) -> Plan:
        placements = ((entry.job_id, self.place(entry.job, cluster)) for entry in queue)
        return Plan(start=tuple((job_id, placement) for job_id, placement in placements if placement))


class PlansStrangers(Correct):
    def plan(self, queue: Sequence[QueuedJob], cluster: Cluster, now: float) -> Plan:
        return Plan(reject=(("stranger", tp.Refusal("no")),))


class PlansByAllocating(Correct):
    def plan(self, queue: Sequence[QueuedJob], cluster: Cluster, now: float) -> Plan:
        if cluster.num_free:
            cluster.allocate("mine", cluster.free_gpus()[:1])
        return Plan()


BROKEN: dict[type[Correct], str] = {
    TakesBusyGpus: "are not free|is held by",
    TakesTooFew: "1 GPUs .* for 2 tasks",
    IgnoresTheMachine: "single_machine, but on machines",
    SharesAMachine: "anti_affinity, but on",
    IgnoresTheModel: "is a V100, the job needs a none such",
    IgnoresTheMemory: "the job needs 80",
    ChangesItsMind: "not deterministic",
    Allocates: "place changed the cluster",
    ChangesTheJob: "place changed the cluster, topology or job",
    ExplainsNothing: "explain lists no candidate",
    ExplainsAnother: "ranks .* first",
    RanksASetTwice: "ranks a GPU set twice",
    Crashes: "place raised RuntimeError: out of cheese",
    PlansOverlap: "which are not free by then",
    PlansStrangers: "not in the queue",
    PlansByAllocating: "plan on .* changed the cluster",
}


@pytest.mark.parametrize("policy", BROKEN, ids=lambda policy: policy.__name__)
def test_a_broken_policy_is_caught(policy: type[Correct]) -> None:
    with pytest.raises(AssertionError, match=BROKEN[policy]):
        check_policy(policy)


@pytest.mark.parametrize(
    "policy", [Correct, Correct(), lambda: Correct()], ids=["class", "object", "function"]
)
def test_a_correct_policy_passes_however_it_is_given(policy: Correct | Callable[[], Correct]) -> None:
    report = check_policy(policy, states=2)
    assert report == Report("baseline", 252, report.placed)
    assert 0 < report.placed < report.decisions


def test_what_is_no_policy_is_told_what_it_lacks() -> None:
    with pytest.raises(AssertionError, match="lacks plan"):
        check_policy(lambda: type("Half", (), {"name": "half", "place": 1, "explain": 1})())  # type: ignore[arg-type]


def test_own_topologies_and_jobs() -> None:
    report = check_policy(
        Correct, topologies=[tp.machines.get("minsky")], jobs=[tp.JobGraph.ring(2)], states=1
    )
    assert (report.decisions, report.placed) == (2, 1)
