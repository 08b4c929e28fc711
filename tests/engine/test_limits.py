"""Documented limits of the engine act exactly where they say: how much is tried, searched and kept."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import repeat
from typing import Any

import numpy as np
import pytest

import topoplace as tp
from topoplace import kernels
from topoplace.engine.admission import GpuSet, joined_gpu_sets
from topoplace.engine.effort import Effort
from topoplace.engine.gangs.assignments import candidates, connected_assignment, least_communication
from topoplace.engine.gangs.offers import offers_of
from topoplace.engine.gangs.task_orders import Block, InnerOrders, in_blocks
from topoplace.engine.machine_state import ClusterView
from topoplace.engine.memo import Memo
from topoplace.engine.policy import SearchPolicy
from topoplace.engine.request import JobRequest
from topoplace.kernels import WorkBudget
from topoplace.topology.devices import Nic


class StoppedError(Exception):
    """Ends a test once a kernel was asked."""


def all_tasks(request: JobRequest, *_: object) -> int:
    return request.size


def view_of(machine: tp.Topology, count: int) -> ClusterView:
    return tp.Cluster(tp.Topology.cluster(machine, count=count, network=12.5)).view(ClusterView)


def bare(size: int, **fields: Any) -> tp.Topology:
    return replace(tp.Topology.from_links(size, [], 12.0), **fields)


def test_256_unions_of_partitions_are_tried() -> None:
    cluster = view_of(bare(4, partitions=((0,), (1,), (2,), (3,))), 6).cluster
    assert len(list(joined_gpu_sets(tp.JobGraph.ring(4), cluster))) == 256
    few = view_of(bare(4, partitions=((0,), (1,), (2,), (3,))), 4).cluster
    assert len(list(joined_gpu_sets(tp.JobGraph.ring(4), few))) == 256  # all that there are


class Repeating:
    """A rule with one split, which it gives again and again."""

    def __init__(self, machines: int) -> None:
        self.machines = machines

    def splits(self, request: JobRequest, offers: Sequence[Any], view: ClusterView) -> Iterator[Any]:
        return repeat([(machine, 0b11) for machine in range(self.machines)])

    def task_order(self, request: JobRequest, gpus: Sequence[int], view: ClusterView) -> Sequence[int]:
        return gpus[: request.size]

    max_tasks = staticmethod(all_tasks)


@pytest.mark.parametrize(
    ("job", "machine", "number"),
    [
        (tp.JobGraph.ring(4), bare(2), 17),
        (tp.JobGraph.ring(2).with_(anti_affinity=True), bare(2), 16),
        (tp.JobGraph.ring(4), bare(2, partitions=((0, 1),)), 16),
        (tp.JobGraph.ring(7), bare(2), 16),
    ],
    ids=["any", "apart", "partitions", "too few GPUs for another mapping"],
)
def test_16_splits_of_a_rule_are_tried_and_one_mapping_onto_all_gpus(
    job: tp.JobGraph, machine: tp.Topology, number: int
) -> None:
    view = view_of(machine, 3)
    rule, request = Repeating(3), view.request(job)
    found = list(candidates(rule, request, view, offers_of(rule.max_tasks, request, view)))
    assert len(found) == number
    assert found[:16] == [list(range(job.num_tasks))[:6]] * 16


def test_one_machine_with_partitions_is_enough_to_leave_out_the_mapping_onto_all_gpus() -> None:
    topology = tp.Topology.cluster([bare(2), bare(2, partitions=((0, 1),)), bare(2)], network=12.5)
    view = tp.Cluster(topology).view(ClusterView)
    rule, request = Repeating(2), view.request(tp.JobGraph.ring(4))
    assert len(list(candidates(rule, request, view, offers_of(rule.max_tasks, request, view)))) == 16


@pytest.mark.parametrize(("num_edges", "is_shared"), [(256, True), (257, False)])
def test_jobs_of_up_to_256_equal_edges_share_a_request(num_edges: int, is_shared: bool) -> None:
    view = tp.Cluster(bare(2)).view(ClusterView)
    edges = [(task, task + 1) for task in range(num_edges)]
    first, second = (tp.JobGraph.from_edges(num_edges + 1, edges) for _ in range(2))
    assert (view.request(first) is view.request(second)) == is_shared
    assert view.request(first) is view.request(first.with_(priority=1))


@pytest.mark.parametrize(("size", "method"), [(8, "exact"), (9, "drb")])
def test_mappings_into_up_to_8_gpus_are_exact(
    monkeypatch: pytest.MonkeyPatch, size: int, method: str
) -> None:
    methods: list[object] = []

    def map_graph(*_: object, method: object, **__: object) -> None:
        methods.append(method)
        raise StoppedError

    monkeypatch.setattr(kernels, "map_graph", map_graph)
    view = tp.Cluster(bare(10)).view(ClusterView)
    with pytest.raises(StoppedError):
        view.request(tp.JobGraph.ring(3)).mapped(view.classes.of(0), (1 << size) - 1)
    with pytest.raises(StoppedError):
        InnerOrders(1 - np.eye(10)).of((1 << size) - 1, 2, np.array([[0.0, 1.0, 1.0]]))
    assert methods == [method, method]


@pytest.mark.parametrize(("num_tasks", "starts"), [(2, 4), (256, 4), (257, 3), (341, 3), (342, 2), (2000, 2)])
def test_a_gang_is_bisected_two_to_four_times_up_to_1024_tasks(
    monkeypatch: pytest.MonkeyPatch, num_tasks: int, starts: int
) -> None:
    def distribute(*_: object, starts: int) -> None:
        raise StoppedError(starts)

    monkeypatch.setattr(kernels, "distribute", distribute)
    orders = InnerOrders(np.zeros((1, 1)))
    blocks = [Block([number], 1, orders) for number in range(2)]
    with pytest.raises(StoppedError, match=f"^{starts}$"):
        in_blocks(tp.JobGraph.chain(num_tasks), blocks, np.ones((2, 2)))


@pytest.mark.parametrize(("machines", "mapped"), [(2, [4]), (16, [32]), (17, [])])
def test_a_gang_is_mapped_onto_all_gpus_at_once_on_up_to_16_machines(
    monkeypatch: pytest.MonkeyPatch, machines: int, mapped: list[int]
) -> None:
    """GPUs have adapters of their own, so that a mapping machine by machine proves nothing."""
    sizes: list[int] = []
    map_graph = kernels.map_graph

    def noted(graph: Any, target: Any, **named: Any) -> Any:
        if isinstance(target, np.ndarray):
            sizes.append(len(target))
        return map_graph(graph, target, **named)

    monkeypatch.setattr(kernels, "map_graph", noted)
    nics = tuple(Nic(f"NIC{i}", ("PIX", "SYS")[:: 1 if i == 0 else -1], 25.0, i) for i in range(2))
    names = tuple(f"m{i}" for i in range(machines))
    rails = tp.Fabric(names, (tp.Level("rails", ("x",) * machines, rail=True),))
    topology = tp.Topology.cluster(bare(2, nics=nics), fabric=rails, network=12.5)
    view = tp.Cluster(topology).view(ClusterView)
    request = view.request(tp.JobGraph.chain(2 * machines))
    assert sorted(least_communication(request, range(2 * machines), view)) == list(range(2 * machines))
    assert sizes == mapped


@pytest.mark.parametrize(("num_tasks", "searched"), [(2, 512), (512, 512), (514, 514)])
def test_a_search_for_connected_gpus_looks_at_512_or_as_many_as_the_job_needs(
    monkeypatch: pytest.MonkeyPatch, num_tasks: int, searched: int
) -> None:
    def best_subgraph(_: object, nearness: Any, *, max_nodes: int, **__: object) -> None:
        raise StoppedError(len(nearness), max_nodes)

    monkeypatch.setattr(kernels, "best_subgraph", best_subgraph)
    view = view_of(bare(2), 300)
    request = view.request(tp.JobGraph.chain(num_tasks))
    with pytest.raises(StoppedError) as stopped:
        connected_assignment(request, view, offers_of(all_tasks, request, view))
    assert stopped.value.args == (searched, 20_000)


@pytest.mark.parametrize(
    ("nodes", "shares", "first"), [(1_000_000, 4, 250_000), (100_000, 10, 32_768), (20_000, 10, 20_000)]
)
def test_a_search_for_another_candidate_gets_its_share_of_the_nodes_or_32768(
    nodes: int, shares: int, first: int
) -> None:
    seen: list[int | None] = []
    effort = Effort(WorkBudget(), nodes, shares)
    effort.extend(lambda budget: seen.append(budget.left))
    effort.extend(lambda budget: seen.append(budget.left))
    assert seen == [first, min(nodes - 500, max(32_768, (nodes - 500) // shares))]
    assert effort.complete


class Seeing(SearchPolicy):
    """Finds nothing, and notes how many GPUs and nodes each search has."""

    name = "seeing"

    def __init__(self, nodes: int | None) -> None:
        self.nodes, self.seen = nodes, list[tuple[int, int | None]]()

    def decision_budget(self) -> WorkBudget:
        return WorkBudget(self.nodes)

    def best(
        self, job: tp.JobGraph, cluster: tp.Cluster, free: GpuSet, required: GpuSet = frozenset()
    ) -> None:
        raise AssertionError

    def best_within(
        self, job: tp.JobGraph, cluster: tp.Cluster, free: GpuSet, required: GpuSet, budget: WorkBudget
    ) -> None:
        self.seen.append((cluster.topology.num_gpus, budget.left))


@pytest.mark.parametrize(
    ("nodes", "each"), [(400_000, 100_000), (132_000, 33_000), (130_000, 32_768), (None, None)]
)
def test_machines_get_equal_parts_of_the_nodes_or_32768(nodes: int | None, each: int | None) -> None:
    policy = Seeing(nodes)
    machines = [tp.Topology.from_links(4, [(0, i, 25.0)], 12.0) for i in (1, 2, 3)]
    assert policy.place(tp.JobGraph.ring(4), tp.Cluster(tp.Topology.cluster([*machines, bare(4)]))) is None
    assert policy.seen[:4] == [(4, each)] * 4


@pytest.mark.parametrize(("nodes", "each"), [(1_600_000, 100_000), (400_000, 32_768), (None, None)])
def test_splits_get_a_sixteenth_of_the_nodes_or_32768(nodes: int | None, each: int | None) -> None:
    policy = Seeing(nodes)
    assert policy.place(tp.JobGraph.ring(4), view_of(bare(2), 2).cluster) is None
    assert policy.seen == [(4, each), (4, each)]  # the only split, and all GPUs


@pytest.mark.parametrize("last", [2, 3])
def test_all_gpus_are_searched_together_up_to_512(last: int) -> None:
    policy = Seeing(None)
    topology = tp.Topology.cluster([*[bare(2)] * 255, bare(last)], network=12.5)
    assert policy.place(tp.JobGraph.ring(4), tp.Cluster(topology)) is None
    assert ((512, None) in policy.seen) == (last == 2)
    assert max(gpus for gpus, _ in policy.seen) == (512 if last == 2 else 5)


def test_a_full_memo_forgets_its_older_half_and_says_so() -> None:
    times: list[int] = []
    memo = Memo[int, str](4, lambda: times.append(1))
    for key in range(4):
        assert memo.get_or_build(key, lambda: "built") == "built"
    assert not times
    memo[4] = "set"
    assert (list(memo), len(times)) == ([2, 3, 4], 1)
    assert memo.get_or_build(4, lambda: "again") == "set"
    usual = Memo[int, int]()
    for key in range(1 << 16):
        usual[key] = key
    assert len(usual) == 1 << 16
    usual[-1] = 0
    assert len(usual) == (1 << 15) + 1


def test_requests_are_forgotten_together_with_the_jobs_that_made_them() -> None:
    view = tp.Cluster(bare(2)).view(ClusterView)
    jobs = [tp.JobGraph.independent(1).with_(cpus=number / 1000) for number in range(1, (1 << 14) + 2)]
    first, *_, last = [view.request(job) for job in jobs]
    assert view.request(jobs[-1]) is last
    assert view.request(jobs[0]) is not first


class Spending(Seeing):
    """Takes the lowest GPUs, and as many nodes of each search as it is told."""

    def __init__(self, nodes: int | None, spent: int) -> None:
        super().__init__(nodes)
        self.spent = spent

    def best_within(  # type: ignore[override]
        self, job: tp.JobGraph, cluster: tp.Cluster, free: GpuSet, required: GpuSet, budget: WorkBudget
    ) -> tp.Placement:
        super().best_within(job, cluster, free, required, budget)
        budget.charge(self.spent)
        gpus = (*sorted(required), *sorted(free - required))[: job.num_tasks]
        return tp.Placement(gpus, topology=cluster.topology, job=job, optimal=True)


def test_other_candidates_share_four_million_nodes_by_the_size_of_the_job() -> None:
    policy = Spending(None, 100)
    explained = policy.explain(tp.JobGraph.ring(2), tp.Cluster(bare(3)), 3)
    assert [one.gpus for one in explained.candidates] == [(0, 1), (0, 2), (1, 2)]
    assert [left for _, left in policy.seen] == [None, 2_000_000, 1_999_750]


def test_sets_of_gpus_that_no_nodes_are_left_for_are_not_searched_and_nothing_is_proven() -> None:
    """The job must be on one of three machines that no fabric joins, each a set of its own GPUs."""
    topology = tp.Topology.from_links(6, [], 12.0, machines=["a", "a", "b", "b", "c", "c"])
    job = tp.JobGraph.ring(2).with_(single_machine=True)
    for nodes, searched in ((150, 2), (200, 2), (201, 3)):
        policy = Spending(nodes, 100)
        placement = policy.place(job, tp.Cluster(topology))
        assert placement is not None
        assert (placement.gpus, len(policy.seen)) == ((0, 1), searched)
        assert placement.optimal == (searched == 3)
