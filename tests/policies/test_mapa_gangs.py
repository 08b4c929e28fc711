"""Gangs on several machines against all placements, on clusters small enough to list them."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import permutations
from random import Random
from typing import Literal

import pytest

import topoplace as tp
from topoplace.kernels import WorkBudget
from topoplace.objectives import pair_links
from topoplace.policies.mapa import gangs
from topoplace.topology.fabric import Fabric, Level, numbered

SPEEDS = (25.0, 50.0, 100.0)


def with_uneven_weights(size: int) -> tp.JobGraph:
    return tp.JobGraph.from_edges(size, [(0, 1, 2.0), *((1, task, 1.0) for task in range(2, size))])


def in_two_parts(size: int) -> tp.JobGraph:
    return tp.JobGraph.from_edges(size, [(0, 1, 1.0), *((task, 2, 1.0) for task in range(3, size))])


JOBS = [tp.JobGraph.ring, tp.JobGraph.star, tp.JobGraph.chain, tp.JobGraph.clique, with_uneven_weights]


def cases(count: int, seed: int) -> Iterator[tuple[tp.Topology, tp.JobGraph, frozenset[int]]]:
    """Clusters of two to four machines of two kinds in racks, with a job and free GPUs."""
    draws = Random(seed)
    for _ in range(count):
        sizes = [draws.randint(2, 3) for _ in "ab"]
        kinds = [
            tp.Topology.from_links(
                n, [(u, v, draws.choice(SPEEDS)) for u in range(n) for v in range(u)], 12.0
            )
            for n in sizes
        ]
        machines = [draws.choice(kinds) for _ in range(draws.randint(2, 4))]
        racks = tuple(draws.choice("ab") for _ in machines)
        fabric = Fabric(numbered("m", len(machines)), (Level("rack", racks, draws.choice(SPEEDS[:2])),))
        topology = tp.Topology.cluster(machines, fabric=fabric, network=draws.choice([0.0, 0.5, 12.5]))
        free = draws.sample(range(topology.num_gpus), draws.randint(4, min(7, topology.num_gpus)))
        size = draws.randint(3, min(5, len(free)))
        pattern = in_two_parts if size > 3 and draws.random() < 0.2 else draws.choice(JOBS)
        yield topology, pattern(size), frozenset(free)


def rating(job: tp.JobGraph, topology: tp.Topology, gpus: tuple[int, ...]) -> tuple[float, float]:
    """The slowest link used, and the sum of all."""
    links = [topology.bandwidth(gpus[a], gpus[b]) for a, b, _ in job.edges]
    return min(links), sum(links)


@pytest.fixture
def any_size(monkeypatch: pytest.MonkeyPatch) -> None:
    """Take small jobs for gangs, and look up links as for large ones."""
    monkeypatch.setattr(gangs, "_MIN_TASKS", 2)
    monkeypatch.setattr(pair_links, "FEW_PAIRS", 0)


@pytest.mark.usefixtures("any_size")
@pytest.mark.parametrize("objective", ["sum", "bottleneck_sum"])
def test_small_gangs_get_the_best_of_all_placements(objective: Literal["sum", "bottleneck_sum"]) -> None:
    proven = found = 0
    for topology, job, free in cases(50, seed=1):
        gang = gangs.on_machines(job, topology, free, objective)
        rooms = [len(free.intersection(gpus)) for gpus in topology.gpus_of.values()]
        ratings = [rating(job, topology, gpus) for gpus in permutations(sorted(free), job.num_tasks)]
        linked = [one for one in ratings if one[0] > 0]
        if max(rooms) >= job.num_tasks or not linked:
            assert gang is None
            continue
        assert gang is not None
        assert len(set(gang.gpus)) == job.num_tasks
        assert free.issuperset(gang.gpus)
        own = rating(job, topology, tuple(gang.gpus))
        assert own[1] == max(total for _, total in linked) if objective == "sum" else own == max(linked)
        found += 1
        proven += gang.proven
    assert 0 < proven < found


class SlowestLinkFirst(tp.policies.Greedy):
    """A policy that takes the fastest slowest link, and of these the largest sum."""

    def best_within(
        self,
        job: tp.JobGraph,
        cluster: tp.Cluster,
        free: frozenset[int],
        required: frozenset[int],
        budget: WorkBudget,
    ) -> tp.Placement | None:
        return self.embed(job, cluster, free, required, budget, "bottleneck_sum")


@pytest.mark.usefixtures("any_size")
@pytest.mark.parametrize("policy", [tp.policies.Greedy(), SlowestLinkFirst()], ids=str)
def test_required_gpus_are_part_of_the_best_placement(policy: tp.policies.SearchPolicy) -> None:
    draws = Random(3)
    for topology, job, free in cases(50, seed=2):
        rooms = [len(free.intersection(gpus)) for gpus in topology.gpus_of.values()]
        if max(rooms) >= job.num_tasks:
            continue
        cluster = tp.Cluster(topology)
        if busy := sorted(set(range(topology.num_gpus)) - free):
            cluster.allocate("busy", busy)
        required = frozenset(draws.sample(sorted(free), draws.choice([0, 0, 1, 2])))
        placement = policy.best(job, cluster, free, required)
        ratings = [
            rating(job, topology, gpus)
            for gpus in permutations(sorted(free), job.num_tasks)
            if required.issubset(gpus)
        ]
        best = max((one for one in ratings if one[0]), default=None)
        assert (placement is None) == (best is None)
        if placement is None:
            continue
        own = rating(job, topology, placement.gpus)
        assert required.issubset(placement.gpus)
        if isinstance(policy, SlowestLinkFirst):
            assert own == best
            assert placement.optimal  # as the search confirms what a division does not prove
        else:
            assert own[1] == max(total for slowest, total in ratings if slowest)
        scores = (placement.scores["bottleneck_bandwidth"], placement.scores["aggregated_bandwidth"])
        assert scores == pytest.approx(own)


def test_jobs_of_up_to_16_tasks_are_no_gangs() -> None:
    topology = tp.Topology.cluster(tp.machines.get("dgx1-v100"), count=3, network=12.5)
    for size in (16, 17):
        gang = gangs.on_machines(tp.JobGraph.ring(size), topology, frozenset(range(24)), "sum")
        assert (gang is not None) == (size > 16)
    few_edges = tp.JobGraph.from_edges(17, [(0, 1, 1.0), (1, 2, 1.0)])
    assert gangs.on_machines(few_edges, topology, frozenset(range(24)), "sum") is None
    with_room = tp.Topology.cluster(tp.Topology.from_links(17, [], 12.0), count=2)
    assert gangs.on_machines(tp.JobGraph.ring(17), with_room, frozenset(range(34)), "sum") is None
    alone = tp.Topology.from_links(34, [], 12.0)
    assert gangs.on_machines(tp.JobGraph.ring(17), alone, frozenset(range(34)), "sum") is None
