"""Decisions and explanations take a counted amount of work, whatever the policy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import topoplace as tp
from topoplace import kernels
from topoplace.engine import effort
from topoplace.errors import SearchTimeoutError
from topoplace.kernels import WorkBudget, best_subgraph
from topoplace.policies import SearchPolicy

MAPA = tp.policies.names()[:4]
SEARCHES = 8
MAX_NODES = 20_000


@pytest.fixture
def visited(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Collect the nodes of every search that a policy makes."""
    nodes: list[int] = []
    charge = WorkBudget.charge

    def noted(budget: WorkBudget, count: int) -> None:
        nodes.append(count)
        charge(budget, count)

    monkeypatch.setattr(WorkBudget, "charge", noted)
    return nodes


@pytest.fixture(scope="module")
def cluster() -> tp.Cluster:
    return tp.Cluster(tp.Topology.cluster([tp.machines.get("dgx1-v100")] * 42))


def flat_machines(count: int) -> tp.Cluster:
    """Return machines of 24 GPUs, joined by links of random speeds: hard to search."""
    speeds = np.random.default_rng(7).integers(1, 99, (24, 24)).astype(float)
    machine = tp.Topology.from_matrix(np.triu(speeds, 1) + np.triu(speeds, 1).T)
    return tp.Cluster(tp.Topology.cluster([machine] * count))


@pytest.mark.parametrize("name", MAPA)
@pytest.mark.parametrize("sensitive", [False, True])
def test_explaining_visits_a_limited_number_of_nodes(
    name: str, sensitive: bool, visited: list[int], cluster: tp.Cluster
) -> None:
    policy = tp.policies.get(name, max_nodes=MAX_NODES)
    assert isinstance(policy, SearchPolicy)
    policy.num_ranking_nodes = 300_000
    job = tp.JobGraph.ring(32).with_(bandwidth_sensitive=sensitive)
    explained = policy.explain(job, cluster)
    assert sum(visited) <= SEARCHES * MAX_NODES + 300_000 + 1_024 * len(visited)
    assert len(visited) < 3 * 300_000 / 500
    assert not explained.complete
    assert explained.candidates[0] == policy.place(job, cluster)
    sets = {frozenset(candidate.gpus) for candidate in explained.candidates}
    assert len(sets) == len(explained.candidates) == 5


@pytest.mark.parametrize("name", MAPA)
def test_one_decision_on_many_machines_visits_a_limited_number_of_nodes(
    name: str, visited: list[int]
) -> None:
    cluster = flat_machines(30)
    job = tp.JobGraph.ring(18).with_(single_machine=True)
    placement = tp.policies.get(name, max_nodes=MAX_NODES).place(job, cluster)
    assert placement is not None
    assert not placement.optimal
    assert sum(visited) <= SEARCHES * MAX_NODES + 1_024 * len(visited)


def test_topo_aware_searches_no_socket_that_cannot_win(visited: list[int], cluster: tp.Cluster) -> None:
    placement = tp.policies.get("mapa-topo-aware").place(tp.JobGraph.ring(4), cluster)
    assert placement is not None
    assert placement.gpus == (0, 1, 2, 3)
    assert len(visited) == 1


def test_a_decision_visits_at_most_eight_times_the_nodes_of_a_search() -> None:
    assert tp.policies.Greedy(max_nodes=10).decision_budget().left == 80
    assert tp.policies.Greedy(max_nodes=None).decision_budget().left is None


def test_small_rankings_are_complete() -> None:
    explained = tp.policies.get("mapa-greedy").explain(
        tp.JobGraph.ring(4), tp.Cluster(tp.machines.get("dgx1-v100")), top=70
    )
    assert explained.complete
    assert len(explained.candidates) > 5
    assert all(candidate.optimal for candidate in explained.candidates)


class CountsCalls(SearchPolicy):
    """A policy of somebody else, whose searches count nothing."""

    name = "counts-calls"
    calls = 0

    def best(
        self,
        job: tp.JobGraph,
        cluster: tp.Cluster,
        free: frozenset[int],
        required: frozenset[int] = frozenset(),
    ) -> tp.Placement | None:
        self.calls += 1
        others = sorted(free - required)[: job.num_tasks - len(required)]
        return tp.Placement((*sorted(required), *others), topology=cluster.topology, job=job)


def test_the_searches_of_any_policy_are_counted() -> None:
    policy = CountsCalls()
    cluster = tp.Cluster(tp.Topology.cluster([tp.machines.get("dgx-a100")] * 4))
    explained = policy.explain(tp.JobGraph.independent(16), cluster, top=1 << 30)
    assert not explained.complete
    assert policy.calls <= 1 + policy.num_ranking_nodes // effort._LEAST_NODES


def test_a_budget_is_shared_by_searches() -> None:
    ring, machine = tp.JobGraph.ring(6).graph, tp.machines.get("cubemesh-16").graph
    alone = best_subgraph(ring, machine)
    assert alone is not None
    budget = WorkBudget(alone.nodes + 1)
    assert best_subgraph(ring, machine, budget=budget).optimal  # type: ignore[union-attr]
    assert budget.left == 1
    rest = best_subgraph(ring, machine, budget=budget)  # all of these GPUs are joined
    assert rest is not None
    assert not rest.optimal
    with pytest.raises(SearchTimeoutError, match="budget of nodes is spent"):
        best_subgraph(ring, machine, budget=budget)
    assert budget.spent
    assert WorkBudget().limit(5) == 5
    assert WorkBudget(3).limit(5) == 3
    with pytest.raises(ValueError, match="nodes = -1"):
        WorkBudget(-1)


def test_few_of_many_gpus_are_searched_in_a_graph_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes: list[int] = []
    search = kernels.best_subgraph

    def noted(pattern: kernels.Graph, target: kernels.Graph, **options: Any) -> kernels.Embedding | None:
        sizes.append(target.num_vertices)
        return search(pattern, target, **options)

    monkeypatch.setattr(kernels, "best_subgraph", noted)
    speeds = np.random.default_rng(3).integers(1, 9, (520, 520)).astype(float)
    speeds = np.triu(speeds, 1) + np.triu(speeds, 1).T
    large, small = (tp.Cluster(tp.Topology.from_matrix(speeds[:size, :size])) for size in (520, 512))
    for cluster in (large, small):
        cluster.allocate("busy", [1, 2, 8, 9])
    policy = tp.policies.get("baseline")
    for job in (tp.JobGraph.ring(6), tp.JobGraph.allreduce(9), tp.JobGraph.clique(5)):
        sizes.clear()
        placement, other = policy.place(job, large), policy.place(job, small)
        assert placement is not None
        assert other is not None
        assert placement.gpus == other.gpus
        assert sizes == [job.num_tasks, 512]
