"""Checks that a policy keeps the contract of `Policy`, for the policies of this package and of third parties."""

from __future__ import annotations

import random
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from topoplace import machines
from topoplace.cluster.cluster import Cluster
from topoplace.engine.plan import QueuedJob
from topoplace.engine.policy import Policy
from topoplace.jobs.job_graph import JobGraph
from topoplace.topology.topology import Topology

if TYPE_CHECKING:
    from topoplace.placement import Placement

_Answer = TypeVar("_Answer")
PolicyFactory = Callable[[], Policy]


@dataclass(frozen=True, slots=True)
class Report:
    """The result of `check_policy`: the policy's name, the number of decisions, and how many of them placed the job."""

    policy: str
    decisions: int
    placed: int


def check_policy(
    policy: Policy | PolicyFactory,
    *,
    topologies: Sequence[Topology] | None = None,
    jobs: Sequence[JobGraph] | None = None,
    states: int = 6,
    seed: int = 0,
) -> Report:
    """Check a policy, or a factory of one, against its contract; AssertionError states the broken clause and the case.

    topologies: by default three built-in machines and a topology of two machines.
    jobs: by default patterns of 1 to 5 tasks with and without requirements, and a chain of 32 tasks.
    states: besides the idle cluster, how many busy clusters to try for each topology. The first has no free GPU; in the
    others random GPUs are busy.
    These clauses are checked for each case:
    - `place` returns None or a placement with one GPU per task. Each GPU is free, meets the job's requirements and is
      listed once.
    - `place` gives the same answer again, also for a new policy from the factory.
    - `explain` agrees with `place` and ranks no set of GPUs twice.
    - `plan` starts only jobs of the queue, each on GPUs that are still free.
    - No method changes the cluster, topology or job.
    """
    build: PolicyFactory = _factory(policy)
    subject = build()
    lacking = [part for part in ("name", "place", "explain", "plan") if not hasattr(subject, part)]
    _require(not lacking, f"{subject!r} lacks {', '.join(lacking)}")
    _require(str(subject.name) == subject.name != "", f"name = {subject.name!r} is not a non-empty string")
    chosen_jobs = _default_jobs() if jobs is None else jobs
    decisions = placed = 0
    for cluster in _clusters(
        _default_topologies() if topologies is None else topologies, states, random.Random(seed)
    ):
        for job in chosen_jobs:
            placed += _Check(subject, build, job, cluster).place() is not None
            decisions += 1
        _check_plan(subject, chosen_jobs, cluster)
    return Report(subject.name, decisions, placed)


def _require(holds: object, message: str) -> None:
    """Raise AssertionError with `message` unless `holds`; unlike `assert`, also under `python -O`."""
    if not holds:
        raise AssertionError(message)


@contextmanager
def _no_exception(where: str) -> Generator[None]:
    try:
        yield
    except Exception as error:
        raise AssertionError(f"{where} raised {type(error).__name__}: {error}") from error


class _Check:
    """The checks of a policy's answers for one job and one state of a cluster."""

    def __init__(self, policy: Policy, build: PolicyFactory, job: JobGraph, cluster: Cluster) -> None:
        self.policy = policy
        self.build = build
        self.job = job
        self.cluster = cluster
        busy = sorted(set(range(cluster.topology.num_gpus)) - set(cluster.free_gpus()))
        self.where = f"{policy.name}: {job.name} of {job.num_tasks} on {cluster.topology.name}, busy {busy}"

    def place(self) -> Placement | None:
        """Check the policy's `place` and `explain` against every clause; return what `place` returns."""
        before = self._shown()
        placement = self._asked(self.policy.place)
        _require(
            self._shown() == before, f"{self.where}: place changed the cluster, topology or job it was shown"
        )
        if placement is not None:
            self._check_gpus(placement.gpus)
        for again in (self.policy, self.build()):
            other = self._asked(again.place)
            answers = f"{_gpus(placement)}, then {_gpus(other)}"
            _require(_gpus(other) == _gpus(placement), f"{self.where}: not deterministic: {answers}")
        self._check_explain(placement)
        _require(
            self._shown() == before,
            f"{self.where}: explain changed the cluster, topology or job it was shown",
        )
        return placement

    def _asked(self, method: Callable[[JobGraph, Cluster], _Answer]) -> _Answer:
        with _no_exception(f"{self.where}: {method.__name__}"):
            return method(self.job, self.cluster)

    def _shown(self) -> tuple[bytes, str, str]:
        # The contents as text, not the objects: a policy that changes an object changes every reference to it.
        return self.cluster.snapshot(), self.cluster.topology.to_json(), repr(self.job)

    def _check_gpus(self, gpus: tuple[int, ...]) -> None:
        job, topology = self.job, self.cluster.topology
        _require(
            len(gpus) == job.num_tasks, f"{self.where}: {len(gpus)} GPUs {gpus} for {job.num_tasks} tasks"
        )
        _require(len(set(gpus)) == len(gpus), f"{self.where}: {gpus} lists a GPU twice")
        taken = sorted(set(gpus) - set(self.cluster.free_gpus()))
        _require(not taken, f"{self.where}: GPUs {taken} are not free")
        if job.single_machine:
            spread = {topology.gpus[gpu].machine for gpu in gpus}
            _require(len(spread) == 1, f"{self.where}: single_machine, but on machines {sorted(spread)}")
        if job.anti_affinity:
            machines_used = [topology.gpus[gpu].machine for gpu in gpus]
            _require(
                len(set(machines_used)) == len(gpus), f"{self.where}: anti_affinity, but on {machines_used}"
            )
        for gpu in gpus:
            fault = _unsuitable(job, topology, gpu)
            _require(not fault, f"{self.where}: GPU {gpu} {fault}")

    def _check_explain(self, placement: Placement | None) -> None:
        explained = self._asked(self.policy.explain)
        if placement is None:
            reason = explained.refusal.reason if explained.refusal else ""
            _require(reason, f"{self.where}: place returns None, but explain gives no reason")
            return
        answer = f"{self.where}: place returns {placement.gpus}"
        _require(explained.candidates, f"{answer}, but explain lists no candidate")
        first = explained.candidates[0].gpus
        _require(first == placement.gpus, f"{answer}, but explain ranks {first} first")
        sets = [frozenset(candidate.gpus) for candidate in explained.candidates]
        _require(len(set(sets)) == len(sets), f"{self.where}: explain ranks a GPU set twice")
        for candidate in explained.candidates:
            self._check_gpus(candidate.gpus)


def _check_plan(policy: Policy, jobs: Sequence[JobGraph], cluster: Cluster) -> None:
    queue = [QueuedJob(f"queued-{i}", job, float(i)) for i, job in enumerate(jobs)]
    before = cluster.snapshot()
    where = f"{policy.name}: plan on {cluster.topology.name}"
    with _no_exception(where):
        plan = policy.plan(tuple(queue), cluster, float(len(queue)))
    _require(cluster.snapshot() == before, f"{where} changed the cluster it was shown")
    known = {entry.job_id: entry.job for entry in queue}
    named = [job_id for job_id, _ in (*plan.start, *plan.reject)]
    _require(set(named) <= set(known), f"{where} names {sorted(set(named) - set(known))}, not in the queue")
    _require(len(set(named)) == len(named), f"{where} names a job twice")
    state = cluster.copy()
    for job_id, placement in plan.start:
        wanted, given = known[job_id].num_tasks, len(placement.gpus)
        _require(given == wanted, f"{where}: {job_id} gets {given} GPUs for {wanted} tasks")
        busy = sorted(set(placement.gpus) - set(state.free_gpus()))
        _require(not busy, f"{where}: {job_id} gets {busy}, which are not free by then")
        state.allocate(job_id, placement)


def _factory(policy: Policy | PolicyFactory) -> PolicyFactory:
    if isinstance(policy, type) or not isinstance(policy, Policy):
        return policy
    return lambda: policy


def _gpus(placement: Placement | None) -> tuple[int, ...] | None:
    return None if placement is None else placement.gpus


def _unsuitable(job: JobGraph, topology: Topology, gpu: int) -> str:
    described = topology.gpus[gpu]
    if job.gpu_model and described.model != job.gpu_model:
        return f"is a {described.model}, the job needs a {job.gpu_model}"
    if job.gpu_memory_gb and (described.memory_gb or 0.0) < job.gpu_memory_gb:
        return f"has {described.memory_gb} GB, the job needs {job.gpu_memory_gb}"
    return ""


def _default_topologies() -> list[Topology]:
    pairs = [(0, 1, 50.0), (2, 3, 50.0)]
    machine_of = ["a", "a", "b", "b"]
    two = Topology.from_links(
        4, pairs, machines=machine_of, name="two-machines", model="V100", memory_gb=16.0
    )
    return [two, *(machines.get(name) for name in ("summit", "dgx1-v100", "cubemesh-16"))]


def _default_jobs() -> list[JobGraph]:
    patterns = [JobGraph.ring(size) for size in range(1, 6)] + [JobGraph.star(4), JobGraph.clique(3)]
    return [
        *patterns,
        *(job.with_(bandwidth_sensitive=True) for job in patterns),
        JobGraph.ring(2).with_(single_machine=True),
        JobGraph.ring(3).with_(single_machine=True, bandwidth_sensitive=True),
        JobGraph.ring(2).with_(anti_affinity=True),
        JobGraph.ring(2).with_(gpu_model="V100"),
        JobGraph.ring(2).with_(gpu_model="none such"),
        JobGraph.ring(2).with_(gpu_memory_gb=80.0),
        JobGraph.chain(32),
    ]


def _clusters(topologies: Sequence[Topology], states: int, rng: random.Random) -> Iterator[Cluster]:
    """Yield, for each topology, an idle cluster and `states` busy ones: the first fully, the others on random GPUs."""
    for topology in topologies:
        yield Cluster(topology)
        for number in range(states):
            cluster = Cluster(topology)
            count = topology.num_gpus if number == 0 else rng.randrange(1, topology.num_gpus)
            cluster.allocate("running", rng.sample(range(topology.num_gpus), count))
            yield cluster
