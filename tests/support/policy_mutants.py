"""Policies with one fault each, which `check_policy` must find with its defaults.

They differ from `Correct` by one method. They are importable, so that a second process can have them too.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import replace
from typing import ClassVar

import topoplace as tp
from topoplace.engine.machine_state import ClusterView
from topoplace.engine.plan import Explanation, Plan, QueuedJob
from topoplace.kernels import WorkBudget
from topoplace.policies import Baseline, Greedy, Preserve, RQueue, TopoAware
from topoplace.policies.tsubame.node_needs import NodeNeeds

Job, Cluster = tp.JobGraph, tp.Cluster


class Correct(Baseline):
    """What most of those below differ from by one method."""

    def place(self, job: Job, cluster: Cluster) -> tp.Placement | None:
        placement = super().place(job, cluster)
        return placement and self.change(placement, job, cluster)

    def explain(self, job: Job, cluster: Cluster, top: int = 5) -> Explanation:
        explained = super().explain(job, cluster, top)
        first = tuple(self.change(candidate, job, cluster) for candidate in explained.candidates[:1])
        return replace(explained, candidates=first)

    def change(self, placement: tp.Placement, job: Job, cluster: Cluster) -> tp.Placement:
        return placement


def on(placement: tp.Placement, gpus: Sequence[int]) -> tp.Placement:
    """Return a placement on other GPUs, with neither scores nor hosts."""
    return tp.Placement(gpus=tuple(gpus), topology=placement.topology, job=placement.job)


def scored(placement: tp.Placement, gpus: Sequence[int], cluster: Cluster) -> tp.Placement:
    """Return the placement on other GPUs, with true scores."""
    assert placement.job
    scores = tp.objectives.scores_of(placement.job, gpus, placement.topology, cluster.free_gpus())
    return replace(placement, gpus=tuple(gpus), scores=scores)


# ---- GPUs ----------------------------------------------------------------------------------------------------


class TakesBusyGpus(Correct):
    def change(self, placement: tp.Placement, job: Job, cluster: Cluster) -> tp.Placement:
        return placement if job.requirements else on(placement, range(job.num_tasks))


class TakesDrainedGpus(Correct):
    """It looks at who holds a GPU, and not whether it is drained."""

    def change(self, placement: tp.Placement, job: Job, cluster: Cluster) -> tp.Placement:
        unheld = [gpu for gpu in range(cluster.topology.num_gpus) if cluster.owner(gpu) is None]
        if job.requirements or cluster.topology.partitions:
            return placement
        return on(placement, unheld[: job.num_tasks])


class TakesHeldGpus(Correct):
    """It looks at what is drained, and not at what is held."""

    def place(self, job: Job, cluster: Cluster) -> tp.Placement | None:
        return super().place(job, self.without_holds(cluster))

    def explain(self, job: Job, cluster: Cluster, top: int = 5) -> Explanation:
        return super().explain(job, self.without_holds(cluster), top)

    @staticmethod
    def without_holds(cluster: Cluster) -> Cluster:
        other = cluster.copy()
        other.unhold(list(other.held_gpus()))
        return other


class TakesTooFew(Correct):
    def change(self, placement: tp.Placement, job: Job, cluster: Cluster) -> tp.Placement:
        return on(placement, placement.gpus[1:] or placement.gpus)


class IgnoresPartitions(Correct):
    def change(self, placement: tp.Placement, job: Job, cluster: Cluster) -> tp.Placement:
        return placement if job.requirements else on(placement, cluster.free_gpus()[: job.num_tasks])


# ---- requirements --------------------------------------------------------------------------------------------


class Forgetful(Baseline):
    """It forgets one requirement of each job."""

    forgets: ClassVar[dict[str, object]]
    only_with_fabric: ClassVar[bool] = False

    def place(self, job: Job, cluster: Cluster) -> tp.Placement | None:
        return super().place(self.forgotten(job, cluster), cluster)

    def explain(self, job: Job, cluster: Cluster, top: int = 5) -> Explanation:
        return super().explain(self.forgotten(job, cluster), cluster, top)

    def plan(self, queue: Sequence[QueuedJob], cluster: Cluster, now: float) -> Plan:
        forgotten = [replace(entry, job=self.forgotten(entry.job, cluster)) for entry in queue]
        return super().plan(forgotten, cluster, now)

    def forgotten(self, job: Job, cluster: Cluster) -> Job:
        levels = cluster.topology.fabric.levels if cluster.topology.fabric else ()
        return job if self.only_with_fabric and not levels else job.with_(**self.forgets)


class IgnoresTheMachine(Forgetful):
    forgets: ClassVar = {"single_machine": False}


class SharesAMachine(Forgetful):
    forgets: ClassVar = {"anti_affinity": False}


class IgnoresTheModel(Forgetful):
    forgets: ClassVar = {"gpu_model": None}


class IgnoresTheMemory(Forgetful):
    forgets: ClassVar = {"gpu_memory_gb": None}


class IgnoresCpus(Forgetful):
    forgets: ClassVar = {"cpus": None}


class IgnoresHostMemory(Forgetful):
    forgets: ClassVar = {"memory_gb": None}


class IgnoresProcesses(Forgetful):
    forgets: ClassVar = {"processes": 1}


class IgnoresDrives(Forgetful):
    forgets: ClassVar = {"drives": 0}


class OvercommitsGpus(Forgetful):
    """Gives a job that shares GPUs the first ones of which anything is left."""

    forgets: ClassVar = {"gpu_fraction": 1.0}

    def place(self, job: tp.JobGraph, cluster: tp.Cluster) -> tp.Placement | None:
        gpus = cluster.gpus_with(0.001)[: job.num_tasks]
        if job.gpu_fraction == 1 or len(gpus) < job.num_tasks or job.requirements != ("gpu_fraction",):
            return super().place(job, cluster)
        return tp.Placement(gpus, topology=cluster.topology, job=job)

    def explain(self, job: tp.JobGraph, cluster: tp.Cluster, top: int = 5) -> Explanation:
        known = super().explain(job, cluster, top)
        if job.requirements != ("gpu_fraction",) or (placement := self.place(job, cluster)) is None:
            return known
        return replace(known, candidates=(placement, *known.candidates[1:]), refusal=None)


class IgnoresTheUtility(Forgetful):
    forgets: ClassVar = {"min_utility": 0.0}


class IgnoresMemoryBandwidth(Forgetful):
    forgets: ClassVar = {"memory_bandwidth": None}


class IgnoresTheDomain(Forgetful):
    forgets: ClassVar = {"within": None}


class IgnoresTheSpread(Forgetful):
    forgets: ClassVar = {"spread": None}


class LeavesTheDomain(IgnoresTheDomain):
    only_with_fabric = True


class SharesADomain(IgnoresTheSpread):
    only_with_fabric = True


class IgnoresThePreference(Forgetful):
    """On a cluster without the level; where there is one, a preference binds nobody."""

    forgets: ClassVar = {"prefer": None}


class UsesManyMachines(Forgetful):
    forgets: ClassVar = {"max_machines": None}


class TakesOtherGpusOnEachMachine(Forgetful):
    forgets: ClassVar = {"same_gpus": False}


class CountsCpusOfIdleMachines(Correct):
    """It forgets the CPUs that running jobs hold."""

    def place(self, job: Job, cluster: Cluster) -> tp.Placement | None:
        return super().place(job, self.without_shares(cluster))

    def explain(self, job: Job, cluster: Cluster, top: int = 5) -> Explanation:
        return super().explain(job, self.without_shares(cluster), top)

    @staticmethod
    def without_shares(cluster: Cluster) -> Cluster:
        idle = Cluster(cluster.topology, cluster.hosts.resources or None)
        for job_id, gpus in cluster.allocations.items():
            idle.allocate(job_id, gpus)
        for gpu in cluster.drained_gpus():
            idle.drain(gpu)
        idle.hold([*cluster.held_gpus(), *(cluster.hosts.names[i] for i in cluster.hosts.held_back)])
        return idle


class RefusesWithoutName(Correct):
    def place(self, job: Job, cluster: Cluster) -> tp.Placement | None:
        try:
            return super().place(job, cluster)
        except ValueError:
            raise ValueError("this job is too demanding") from None


class RefusesInPlaceOnly(Correct):
    def place(self, job: Job, cluster: Cluster) -> tp.Placement | None:
        if job.anti_affinity:
            raise ValueError("anti_affinity = True cannot be honoured")
        return super().place(job, cluster)


# ---- scores and proofs ---------------------------------------------------------------------------------------


class ReversesTasks(Correct):
    """It keeps the scores of the right order."""

    def change(self, placement: tp.Placement, job: Job, cluster: Cluster) -> tp.Placement:
        return placement if placement.hosts else replace(placement, gpus=placement.gpus[::-1])


class MapsTasksBadly(Correct):
    """It states true scores, but calls the wrong order of tasks optimal."""

    def change(self, placement: tp.Placement, job: Job, cluster: Cluster) -> tp.Placement:
        return placement if placement.hosts else scored(placement, sorted(placement.gpus), cluster)


class ProvesNothing(Greedy):
    """It takes the first GPUs it finds, and calls them optimal."""

    name = "proves-nothing"

    def best_within(
        self,
        job: Job,
        cluster: Cluster,
        free: frozenset[int],
        required: frozenset[int],
        budget: WorkBudget,
    ) -> tp.Placement | None:
        placement = self.first_fit(job, cluster, free, required, budget)
        return placement and replace(placement, optimal=True)


class Flatters(Preserve):
    """It states higher scores than are true."""

    name = "flatters"

    def scored(self, job: Job, cluster: Cluster, gpus: Sequence[int], optimal: bool) -> tp.Placement:
        placement = super().scored(job, cluster, gpus, optimal)
        preserved = placement.scores["preserved_bandwidth"] + 1.0
        return replace(placement, scores={**placement.scores, "preserved_bandwidth": preserved})


class StatesOldCosts(TopoAware):
    """Its communication cost is that of the first placement it ever made."""

    def scores(self, details: object) -> dict[str, float]:
        return {**super().scores(details), "communication_cost": 20.0}


class StatesHalfOfTheTime(Correct):
    def change(self, placement: tp.Placement, job: Job, cluster: Cluster) -> tp.Placement:
        return replace(placement, scores={**placement.scores, "communication_time": placement.time / 2})


class BoundsTooHigh(Correct):
    def change(self, placement: tp.Placement, job: Job, cluster: Cluster) -> tp.Placement:
        return replace(placement, bound=2 * placement.time)


class HidesRemoteGpus(RQueue):
    def search(
        self, job: Job, needs: NodeNeeds, view: ClusterView, avoid: frozenset[int] = frozenset()
    ) -> tp.Placement | None:
        placement = super().search(job, needs, view, avoid)
        return placement and replace(placement, remote=(), scores={})


class SharesDoNotAddUp(RQueue):
    def search(
        self, job: Job, needs: NodeNeeds, view: ClusterView, avoid: frozenset[int] = frozenset()
    ) -> tp.Placement | None:
        placement = super().search(job, needs, view, avoid)
        return placement and replace(placement, hosts=tuple(replace(one, cpus=1) for one in placement.hosts))


# ---- the same answer -----------------------------------------------------------------------------------------


class ChangesItsMind(Correct):
    calls: ClassVar = itertools.count()

    def change(self, placement: tp.Placement, job: Job, cluster: Cluster) -> tp.Placement:
        return on(placement, placement.gpus[::-1]) if next(self.calls) % 2 else placement


class HashesNames(Correct):
    """It begins with a GPU whose name Python happens to hash first."""

    def change(self, placement: tp.Placement, job: Job, cluster: Cluster) -> tp.Placement:
        topology, free = cluster.topology, set(cluster.free_gpus())
        if job.requirements or topology.partitions:
            return placement
        numbers = {(gpu.machine, gpu.name): i for i, gpu in enumerate(topology.gpus)}
        order = [numbers[name] for name in {*numbers} if numbers[name] in free]
        return on(placement, order[: job.num_tasks])


class ExplainsByHash(Correct):
    """Its reasons list requirements in the order of a set."""

    def explain(self, job: Job, cluster: Cluster, top: int = 5) -> Explanation:
        explained = super().explain(job, cluster, top)
        words = " ".join({"waits", "for", "GPUs", "that", "are", "free"})
        plain = explained.refusal and not explained.refusal.permanent
        return replace(explained, refusal=tp.Refusal(words)) if plain else explained


# ---- the rest of the contract --------------------------------------------------------------------------------


class Allocates(Correct):
    def change(self, placement: tp.Placement, job: Job, cluster: Cluster) -> tp.Placement:
        cluster.allocate("mine", placement)
        return placement


class ChangesTheJob(Correct):
    def change(self, placement: tp.Placement, job: Job, cluster: Cluster) -> tp.Placement:
        # Jobs without requirements are shared by the whole process: other tests would see the change.
        if job.requirements:
            object.__setattr__(job, "profile", f"{job.profile}x")
        return placement


class ExplainsNothing(Correct):
    def explain(self, job: Job, cluster: Cluster, top: int = 5) -> Explanation:
        return Explanation(self.name, (), super().explain(job, cluster, top).refusal)


class ExplainsAnother(Correct):
    def explain(self, job: Job, cluster: Cluster, top: int = 5) -> Explanation:
        explained = Baseline.explain(self, job, cluster, top)
        return replace(explained, candidates=explained.candidates[::-1])


class ExplainsOtherScores(Correct):
    def explain(self, job: Job, cluster: Cluster, top: int = 5) -> Explanation:
        explained = super().explain(job, cluster, top)
        candidates = tuple(replace(one, scores={}) for one in explained.candidates)
        return replace(explained, candidates=candidates)


class RefusesWhatItPlaces(Correct):
    def explain(self, job: Job, cluster: Cluster, top: int = 5) -> Explanation:
        explained = super().explain(job, cluster, top)
        return replace(explained, refusal=explained.refusal or tp.Refusal("rather not"))


class RanksASetTwice(Correct):
    def explain(self, job: Job, cluster: Cluster, top: int = 5) -> Explanation:
        explained = super().explain(job, cluster, top)
        return replace(explained, candidates=explained.candidates[:1] * 2)


class Crashes(Correct):
    def change(self, placement: tp.Placement, job: Job, cluster: Cluster) -> tp.Placement:
        raise RuntimeError("out of cheese")


class NeverPlaces(Correct):
    def place(self, job: Job, cluster: Cluster) -> tp.Placement | None:
        super().place(job, cluster)
        return None

    def explain(self, job: Job, cluster: Cluster, top: int = 5) -> Explanation:
        explained = super().explain(job, cluster, top)
        return replace(explained, candidates=(), refusal=explained.refusal or tp.Refusal("not today"))


class NeverStarts(Correct):
    def plan(self, queue: Sequence[QueuedJob], cluster: Cluster, now: float) -> Plan:
        return Plan(reject=super().plan(queue, cluster, now).reject)


class PlansOverlap(Correct):
    """It also starts the first job that has to wait, on GPUs that it has just handed out."""

    def plan(self, queue: Sequence[QueuedJob], cluster: Cluster, now: float) -> Plan:
        plan = super().plan(queue, cluster, now)
        jobs = {entry.job_id: entry.job for entry in queue}
        placements = ((job_id, self.place(jobs[job_id], cluster)) for job_id in first_waiting(queue, plan))
        return replace(plan, defer=(), start=(*plan.start, *((i, one) for i, one in placements if one)))


class PlansStrangers(Correct):
    def plan(self, queue: Sequence[QueuedJob], cluster: Cluster, now: float) -> Plan:
        plan = super().plan(queue, cluster, now)
        return replace(plan, reject=(*plan.reject, ("stranger", tp.Refusal("no", permanent=True))))


class PlansByAllocating(Correct):
    def plan(self, queue: Sequence[QueuedJob], cluster: Cluster, now: float) -> Plan:
        plan = super().plan(queue, cluster, now)
        if cluster.num_free and not cluster.topology.partitions:
            cluster.allocate("mine", cluster.free_gpus()[:1])
        return plan


class RejectsWhatFits(Correct):
    """It rejects the first job that has to wait."""

    def plan(self, queue: Sequence[QueuedJob], cluster: Cluster, now: float) -> Plan:
        plan = super().plan(queue, cluster, now)
        late = tuple((job_id, tp.Refusal("full", permanent=True)) for job_id in first_waiting(queue, plan))
        return replace(plan, defer=(), reject=(*plan.reject, *late))


class DefersWithoutReason(Correct):
    def plan(self, queue: Sequence[QueuedJob], cluster: Cluster, now: float) -> Plan:
        plan = super().plan(queue, cluster, now)
        return replace(plan, defer=tuple((job_id, tp.Refusal("")) for job_id in first_waiting(queue, plan)))


def first_waiting(queue: Sequence[QueuedJob], plan: Plan) -> list[str]:
    """Return the id of the first job that the plan neither starts nor rejects, if any."""
    decided = dict((*plan.start, *plan.reject))
    return [entry.job_id for entry in queue if entry.job_id not in decided][:1]


MUTANTS: dict[type[tp.Policy], str] = {
    TakesBusyGpus: "GPUs .* are not free|is held by",
    TakesDrainedGpus: "GPUs .* are (drained|held)",
    TakesHeldGpus: "GPUs .* are held",
    TakesTooFew: "1 GPUs .* for 2 tasks",
    IgnoresPartitions: "is not a partition",
    IgnoresTheMachine: "single_machine, but on machines",
    SharesAMachine: "anti_affinity, but on",
    IgnoresTheModel: "is a V100 of .* gpu_model = ",
    IgnoresTheMemory: "gpu_memory_gb = ",
    IgnoresTheDomain: "within = 'rack', which is no level",
    LeavesTheDomain: "within = 'rack', but on machines",
    IgnoresTheSpread: "spread = 'rack', which is no level",
    SharesADomain: "spread = 'rack', but on machines",
    IgnoresThePreference: "prefer = 'rack', which is no level",
    UsesManyMachines: "max_machines = 1, but on machines",
    TakesOtherGpusOnEachMachine: "same_gpus, but GPUs",
    IgnoresCpus: "0 host shares for 1 processes",
    IgnoresHostMemory: "the host shares add up to 0 GB",
    IgnoresProcesses: "1 host shares for 2 processes of 4 tasks",
    IgnoresDrives: "0 drives, the job needs 1",
    OvercommitsGpus: "are not free to a share of 0.5",
    IgnoresTheUtility: "does not state the score 'utility'",
    IgnoresMemoryBandwidth: "memory_bandwidth = 1e.06, which no machine has",
    CountsCpusOfIdleMachines: "does not fit: .* CPUs on machine",
    RefusesWithoutName: "place raised ValueError: this job is too demanding",
    RefusesInPlaceOnly: "place refuses: anti_affinity = True",
    ReversesTasks: "states .* where it is",
    MapsTasksBadly: "optimal = True for",
    ProvesNothing: "optimal = True for",
    Flatters: "states preserved_bandwidth",
    StatesHalfOfTheTime: "states communication_time .* where it is",
    BoundsTooHigh: "bound = .* is above the time",
    StatesOldCosts: "states communication_cost 20",
    HidesRemoteGpus: "but remote = ",
    SharesDoNotAddUp: "the host shares add up to 1 CPUs, the job needs",
    ChangesItsMind: "not deterministic",
    HashesNames: "depends on the hash seed",
    ExplainsByHash: "depends on the hash seed",
    Allocates: "place changed the cluster",
    ChangesTheJob: "place changed the cluster, topology or job",
    ExplainsNothing: "explain lists no candidate",
    ExplainsAnother: "ranks .* first",
    ExplainsOtherScores: "place returns .* explain GPUs",
    RefusesWhatItPlaces: "but explain refuses",
    RanksASetTwice: "ranks a GPU set twice",
    Crashes: "place raised RuntimeError: out of cheese",
    NeverPlaces: "places none of",
    NeverStarts: "starts no job",
    PlansOverlap: "are not free",
    PlansStrangers: "not in the queue",
    PlansByAllocating: "plan .*changed the cluster",
    RejectsWhatFits: "refused for ever",
    DefersWithoutReason: "defers .* with Refusal",
}
"""The faulty policies, and what `check_policy` says about each."""
