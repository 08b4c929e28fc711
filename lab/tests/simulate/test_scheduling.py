"""Jobs that start as they are decided start the same as by plans: same records, for every policy of the registry."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import topoplace as tp
from thoroughness import thorough
from topoplace.engine.driver import queue_walk
from topoplace.engine.machines.machine_options import Option
from topoplace.policies import Explanation, Plan, Policy, QueuedJob
from topoplace.testing.strategies import job_graphs, topologies
from topoplace_lab.papers.sc17.measured import authors_profile
from topoplace_lab.simulate import (
    FixedTime,
    JobRecord,
    PerformanceModel,
    ProfiledTime,
    Workload,
    simulate,
)

PROFILE = authors_profile()
HOST = tp.HostResources(cpus=16, memory_gb=64.0, drives=1)


class PlansOnly:
    """A policy of which only the public methods are visible."""

    def __init__(self, policy: Policy) -> None:
        self._policy = policy
        self.name = policy.name

    def place(self, job: tp.JobGraph, cluster: tp.Cluster) -> tp.Placement | None:
        return self._policy.place(job, cluster)

    def explain(self, job: tp.JobGraph, cluster: tp.Cluster, top: int = 5) -> Explanation:
        return self._policy.explain(job, cluster, top)

    def plan(self, queue: Sequence[QueuedJob], cluster: tp.Cluster, now: float) -> Plan:
        return self._policy.plan(queue, cluster, now)


class Patient(tp.policies.TopoAware):
    """A policy of somebody else, whose jobs ask for less the more often they were deferred."""

    name = "patient"

    def least_utility(self, job: tp.JobGraph, postponed: int = 0) -> float:
        return job.min_utility - 0.05 * postponed


class Sociable(tp.policies.TopoAware):
    """A policy of somebody else: on machines with fewer free GPUs, jobs have more utility. So starts help others."""

    name = "sociable"

    def options(self, request: Any, machine_class: Any, state: Any, free: int) -> Iterator[Option]:
        for option in super().options(request, machine_class, state, free):
            yield option._replace(utility=1.0 - 0.25 * state.free.bit_count() + 0.1 * request.size)

    def scores(self, details: Any) -> dict[str, float]:
        return {**super().scores(details), "utility": 0.5}

    def least_utility(self, job: tp.JobGraph, postponed: int = 0) -> float:
        return job.min_utility if postponed < 6 else -math.inf


def shown(record: JobRecord) -> object:
    placement = record.placement
    placed = placement and (placement, placement.job, dict(placement.scores))
    times = [repr(time) for time in (record.start, record.end, record.run_time)]
    return record.submitted, placed, times, record.postponed, record.rejected


def check_same(
    topology: tp.Topology,
    workload: Workload,
    policies: Sequence[Policy],
    performance: PerformanceModel | None = None,
    hosts: tp.HostResources | None = None,
) -> list[JobRecord]:
    """Check that both ways give the same records, and return these."""
    both: list[Any] = []
    for policy in policies:
        result = simulate(topology, workload, policy, performance=performance, hosts=hosts)
        both.append(result.records)
    first, second = ([shown(record) for record in records] for records in both)
    for one, other in zip(first, second, strict=True):
        assert one == other
    records: list[JobRecord] = list(both[0])
    return records


def both_ways(make: Any) -> list[Policy]:
    return [make(), PlansOnly(make())]


@st.composite
def workloads(draw: st.DrawFn) -> Workload:
    """Few kinds of jobs and few different times: zero run times too, and jobs that end together."""
    kinds = draw(st.lists(job_graphs(max_tasks=4), min_size=1, max_size=4))
    kinds += [kind.with_(gpu_model="unknown") for kind in kinds[:1]]
    jobs = draw(st.lists(st.sampled_from(kinds), min_size=1, max_size=16))
    times = st.lists(st.sampled_from([0.0, 1.0, 2.0, 3.5]), min_size=len(jobs), max_size=len(jobs))
    return Workload(jobs, draw(times), draw(times))


@given(topology=topologies(), workload=workloads(), name=st.sampled_from(tp.policies.names()))
def test_any_topology(topology: tp.Topology, workload: Workload, name: str) -> None:
    speeds = topology.bandwidth_matrix() + np.eye(topology.num_gpus)
    # Some policies take GPUs without a path, on which no step ends.
    performance = None if speeds.all() else FixedTime()
    check_same(topology, workload, both_ways(lambda: tp.policies.get(name)), performance)


def stream(rng: random.Random, *, hosts: bool, size: int = 80) -> Workload:
    """Return jobs of few kinds, which queue for a long time; some can never run."""
    rings = [tp.JobGraph.ring(k).with_(profile=f"bvlc_alexnet/{b}") for k in (1, 2, 3) for b in (1, 64)]
    kinds = [*rings, tp.JobGraph.clique(2).with_(single_machine=True), tp.JobGraph.ring(5)]
    kinds += [tp.JobGraph.ring(9).with_(single_machine=True), tp.JobGraph.ring(2).with_(gpu_fraction=0.5)]
    if hosts:
        kinds += [ring.with_(cpus=6, memory_gb=20.0) for ring in rings[:3]]
    utilities = [0.0, 0.4, 0.55, 0.7, 0.9]
    jobs = [rng.choice(kinds) for _ in range(size)]
    jobs = [job.with_(min_utility=rng.choice(utilities)) if rng.random() < 0.7 else job for job in jobs]
    gap = rng.choice([0, 1, 4])
    submit = np.cumsum([rng.randint(0, gap) for _ in jobs]).astype(float)
    return Workload(jobs, submit, [float(rng.choice([0, 5, 10, 10, 30])) for _ in jobs])


MAKERS: dict[str, Any] = {
    **{name: lambda name=name: tp.policies.get(name) for name in tp.policies.names()},
    "best-fit profile": lambda: tp.policies.get("best-fit", profile=PROFILE),
    "fcfs profile": lambda: tp.policies.get("fcfs", profile=PROFILE),
    "topo-aware-p profile": lambda: tp.policies.get("topo-aware-p", profile=PROFILE),
    **{
        f"topo-aware-p {n}": lambda n=n: tp.policies.get("topo-aware-p", profile=PROFILE, max_postponements=n)
        for n in (0, 1, 3)
    },
    "patient": lambda: Patient(profile=PROFILE),
    "sociable": Sociable,
    "mapa-preserve waits": lambda: tp.policies.Preserve(min_effective_bandwidth=30.0),
}


@pytest.mark.parametrize("name", MAKERS)
@pytest.mark.parametrize("hosts", [None, HOST], ids=["gpus", "hosts"])
def test_long_queues(name: str, hosts: tp.HostResources | None) -> None:
    topology = tp.Topology.cluster(tp.machines.get("minsky"), count=3)
    postponed = 0
    waits = ("topo-aware-p" in name and not name.endswith("0")) or name in ("patient", "sociable")
    for seed in range(thorough(40, 4 if waits else 2)):
        workload = stream(random.Random(f"{name} {seed}"), hosts=hosts is not None)
        if "min_utility" not in getattr(MAKERS[name](), "honours", ()):
            workload = workload.without("min_utility")
        model = ProfiledTime(PROFILE) if seed % 2 else None
        records = check_same(topology, workload, both_ways(MAKERS[name]), model, hosts)
        assert sum(record.placement is not None for record in records) > len(records) // 2
        postponed += sum(record.postponed for record in records)
    assert postponed > 0 or not waits


@pytest.mark.parametrize("name", tp.policies.names())
def test_who_decides_job_by_job(name: str) -> None:
    cluster = tp.Cluster(tp.machines.get("minsky"))
    policy = tp.policies.get(name)
    assert (queue_walk(policy, cluster) is None) == (name == "drmaestro")
    assert queue_walk(PlansOnly(policy), cluster) is None


def test_a_subclass_with_its_own_plan_is_asked_for_plans() -> None:
    class StartsNothing(tp.policies.FirstComeFirstServed):
        def plan(self, queue: Sequence[QueuedJob], cluster: tp.Cluster, now: float) -> Plan:
            return Plan()

    class Renamed(tp.policies.FirstComeFirstServed):
        name = "renamed"

    cluster = tp.Cluster(tp.machines.get("minsky"))
    assert queue_walk(StartsNothing(), cluster) is None
    assert queue_walk(Renamed(), cluster) is not None
    of_one_object = Renamed()
    of_one_object.plan = lambda queue, cluster, now: Plan()  # type: ignore[method-assign]
    assert queue_walk(of_one_object, cluster) is None
