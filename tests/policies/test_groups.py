"""Groups under every policy, on small trees of machines, against every assignment of tasks."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from unittest.mock import Mock

import hypothesis.strategies as st
import pytest
from hypothesis import given

import topoplace as tp
from topoplace.errors import SearchTimeoutError
from topoplace.policies import DRMaestro, NodeQueue
from topoplace.testing.placements import check_placement
from topoplace_lab.policies.schedulers.scheduler_policy import SchedulerPolicy

GROUPING = tuple(
    name
    for name in tp.policies.names()
    if not isinstance(tp.policies.get(name), NodeQueue | DRMaestro | SchedulerPolicy)
)
"""The policies that honour all groups."""
Cell = tuple[int, int]
"""A machine and one of its sockets."""


def machine(sockets: int) -> tp.Topology:
    """Return a machine of two GPUs a socket, all with a path to each other."""
    gpus = [
        tp.Gpu(i, f"GPU{i}", "V100", socket=i // 2, numa_node=i // 2, memory_gb=32.0)
        for i in range(2 * sockets)
    ]
    return replace(tp.Topology.from_links(2 * sockets, [], 12.0), gpus=tuple(gpus))


@st.composite
def clusters(draw: st.DrawFn) -> tp.Cluster:
    """Up to four machines of two or four GPUs, in racks and rows, one perhaps in no rack; some GPUs are taken."""
    count = draw(st.integers(1, 4))
    racks = tuple(draw(st.lists(st.sampled_from(["a", "b", None]), min_size=count, max_size=count)))
    row_of = {"a": "x", "b": draw(st.sampled_from(["x", "y"])), None: None}
    rows = tuple(row_of[rack] for rack in racks)
    names = tuple(f"m{i}" for i in range(count))
    fabric = tp.Fabric(names, (tp.Level("rack", racks), tp.Level("row", rows)))
    kinds = {name: machine(draw(st.integers(1, 2))) for name in names}
    cluster = tp.Cluster(tp.Topology.cluster(kinds, fabric=fabric, network=12.5))
    taken = draw(st.sets(st.sampled_from(range(cluster.topology.num_gpus)), max_size=4))
    if taken:
        cluster.drain(sorted(taken)[0])
        if others := sorted(taken)[1:]:
            cluster.allocate("busy", others)
    return cluster


@st.composite
def grouped_jobs(draw: st.DrawFn) -> tp.JobGraph:
    """One to five tasks in nested groups of consecutive tasks, of even or uneven sizes, required or preferred."""
    size = draw(st.integers(1, 5))
    job = draw(st.sampled_from([tp.JobGraph.ring, tp.JobGraph.independent]))(size)
    level = draw(st.sampled_from(["socket", "machine", "rack"]))
    first = draw(st.integers(1, size))
    if draw(st.booleans()):
        job = job.grouped(first, within=level)
    else:  # the other tasks are in no group
        start = draw(st.integers(0, size - first))
        job = job.with_(groups=[tp.Group(tuple(range(start, start + first)), within=level)])
        return job.with_(balanced=draw(st.sampled_from([None, "machine", "rack"])))
    if draw(st.booleans()):
        job = job.grouped(
            first * draw(st.integers(1, max(size // first, 1))), within=draw(st.sampled_from(["rack", "row"]))
        )
    if draw(st.booleans()):
        job = job.grouped(
            draw(st.integers(1, size)), prefer=draw(st.sampled_from(["machine", "rack", "row"]))
        )
    if draw(st.booleans()):
        job = job.with_(balanced=draw(st.sampled_from(["machine", "rack"])))
    return job


def is_possible(job: tp.JobGraph, cluster: tp.Cluster) -> bool:
    """Try every machine and socket for every task."""
    topology = cluster.topology
    room: dict[Cell, int] = {}
    for gpu in cluster.free_gpus():
        cell = int(topology.machine_of[gpu]), topology.gpus[gpu].socket or 0
        room[cell] = room.get(cell, 0) + 1
    fabric = topology.fabric
    assert fabric is not None

    def together(cells: list[Cell], level: str) -> bool:
        machines = {one for one, _ in cells}
        if level == "socket":
            return len(set(cells)) == 1
        if len(machines) == 1:
            return True
        found = [one for one in fabric.levels if one.name == level]
        domains = {one.domains[i] for one in found for i in machines}
        return len(domains) == 1 and None not in domains

    for cells in product(room, repeat=job.num_tasks):
        fits = all(cells.count(cell) <= room[cell] for cell in set(cells))
        if fits and all(
            together([cells[task] for task in group.tasks], group.within)
            for group in job.groups
            if group.within is not None
        ):
            return True
    return False


@given(clusters(), grouped_jobs(), st.sampled_from(GROUPING))
def test_a_job_is_placed_with_its_groups_if_that_is_possible(
    cluster: tp.Cluster, job: tp.JobGraph, name: str
) -> None:
    policy = tp.policies.get(name)
    placement = policy.place(job, cluster)
    assert (placement is not None) == is_possible(job, cluster)
    if placement is not None:
        check_placement(placement, job, cluster)
    else:
        explained = policy.explain(job, cluster)
        assert explained.refusal is not None
        assert not explained.candidates


def rack_of_eight() -> tp.Cluster:
    fabric = tp.Fabric.regular(8, {"rack": 4})
    return tp.Cluster(tp.Topology.cluster(machine(2), fabric=fabric, network=12.5))


def test_refusals_count_groups_by_level_and_name_what_the_nearest_domain_lacks() -> None:
    cluster = rack_of_eight()
    cluster.allocate("busy", [0, 16])  # a GPU of m0 in the first rack, and of m4 in the second
    job = tp.JobGraph.ring(16).grouped(4, within="machine").grouped(16, within="rack")
    refusal = tp.policies.get("topo-aware").explain(job, cluster).refusal
    assert refusal is not None
    assert refusal.reason == (
        "cannot start now: 0 of 1 groups of 16 fit within a rack; 'rack0' lacks 1 machine with 4 free GPUs"
    )
    pairs = tp.JobGraph.ring(24).grouped(8, within="rack")
    refusal = tp.policies.get("topo-aware").explain(pairs, cluster).refusal
    assert refusal is not None
    assert refusal.reason == "cannot start now: 2 of 3 groups of 8 fit within a rack; 'rack0' lacks 1 GPU"


def test_preferred_groups_are_together_as_far_as_that_is_possible() -> None:
    cluster = rack_of_eight()
    cluster.allocate("busy", [0, 1, 2, 4, 5, 6])  # 10 are left in the first rack
    job = tp.JobGraph.ring(24).grouped(12, prefer="rack")
    placement = tp.policies.get("topo-aware").place(job, cluster)
    assert placement is not None
    racks = [[gpu // 16 for gpu in placement.gpus[first : first + 12]] for first in (0, 12)]
    assert sorted(len(set(one)) for one in racks) == [1, 2]


def test_a_preferred_group_may_cross_required_ones() -> None:
    cluster = rack_of_eight()
    job = (
        tp.JobGraph.parallel(tensor=4, data=4)
        .grouped("tensor", within="machine")
        .grouped("data", prefer="rack")
    )
    placement = tp.policies.get("mapa-greedy").place(job, cluster)
    assert placement is not None
    check_placement(placement, job, cluster)
    assert placement.spread("data", "rack") == (1, 1.0)


def test_equal_shares_use_no_more_domains_than_needed() -> None:
    cluster = rack_of_eight()
    placement = tp.policies.get("topo-aware").place(tp.JobGraph.ring(18).with_(balanced="rack"), cluster)
    assert placement is not None
    assert [sum(gpu // 16 == rack for gpu in placement.gpus) for rack in (0, 1)] == [9, 9]


def test_groups_that_talk_more_are_nearer() -> None:
    """Four groups of four tasks, of which the first and third, and the second and fourth, exchange much."""
    cluster = rack_of_eight()
    cluster.drain("machine2")
    cluster.drain("machine3")
    cluster.drain("machine6")
    cluster.drain("machine7")
    edges = [(4 * group + i, 4 * group + i + 1, 9.0) for group in range(4) for i in range(3)]
    edges += [(i, 8 + i, 5.0) for i in range(8)] + [(3, 4, 0.1), (11, 12, 0.1)]
    job = tp.JobGraph.from_edges(16, edges).grouped(4, within="machine")
    placement = tp.policies.get("topo-aware").place(job, cluster)
    assert placement is not None
    racks = [placement.gpus[4 * group] // 16 for group in range(4)]
    assert racks[0] == racks[2] != racks[1] == racks[3]


@pytest.mark.parametrize(
    ("job", "message"),
    [
        (tp.JobGraph.ring(4).grouped(2, within="pod"), "groups: level = 'pod' cannot be honoured"),
        (tp.JobGraph.ring(4).with_(balanced="pod"), "balanced = 'pod' cannot be honoured"),
        (tp.JobGraph.ring(4).with_(balanced="socket"), "balanced = 'socket' cannot be honoured"),
        (tp.JobGraph.ring(4).grouped(2, within="rack").with_(spread="rack"), "groups and spread"),
        (tp.JobGraph.ring(4).grouped(2, within="rack").with_(max_machines=2), "groups and max_machines"),
    ],
)
def test_what_cannot_be_honoured_is_refused_by_name(job: tp.JobGraph, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        tp.policies.get("topo-aware").place(job, rack_of_eight())


@st.composite
def crossing_clusters(draw: st.DrawFn) -> tp.Cluster:
    """Up to five machines of up to two GPUs, in racks and zones that cross, all or not all in one pod."""
    count = draw(st.integers(2, 5))
    racks, zones = (
        tuple(draw(st.lists(st.sampled_from(names), min_size=count, max_size=count)))
        for names in (["a", "b", None], ["x", "y"])
    )
    pod_of = {"a": "p", "b": draw(st.sampled_from(["p", "q"])), None: "r"}
    pods = tuple(pod_of[rack] for rack in racks)
    names = tuple(f"m{i}" for i in range(count))
    fabric = tp.Fabric(names, (tp.Level("rack", racks), tp.Level("zone", zones), tp.Level("pod", pods)))
    gpus = {name: tp.Topology.from_links(draw(st.integers(1, 2)), [], 12.0, name="machine") for name in names}
    return tp.Cluster(tp.Topology.cluster(gpus, fabric=fabric, network=12.5))


@st.composite
def crossing_jobs(draw: st.DrawFn) -> tp.JobGraph:
    """Two to five tasks: groups in racks and in zones beside each other, or one in the other; perhaps all in a pod."""
    size = draw(st.integers(2, 5))
    first = draw(st.integers(1, size))
    levels = draw(st.permutations(["rack", "zone"]))
    tasks = tuple(range(size))
    groups = [tp.Group(tasks[:first], levels[0])]
    if draw(st.booleans()):
        groups.append(tp.Group(tasks[: draw(st.integers(1, first))], levels[1]))
    elif first < size:
        groups.append(tp.Group(tasks[first:], levels[1]))
    if draw(st.booleans()):
        groups.append(tp.Group(tasks[: draw(st.integers(1, first))], "machine"))
    if draw(st.booleans()):
        groups.append(tp.Group(tasks, "pod"))
    return tp.JobGraph.ring(size).with_(groups=groups)


@given(crossing_clusters(), crossing_jobs(), st.sampled_from(["topo-aware-p", "best-fit", "least-time"]))
def test_groups_of_levels_that_cross_are_placed_if_that_is_possible(
    cluster: tp.Cluster, job: tp.JobGraph, name: str
) -> None:
    policy = tp.policies.get(name)
    explained = policy.explain(job, cluster)
    if explained.refusal and "is not inside the other" in explained.refusal.reason:
        crossing = {
            group for group in job.groups if group.within in ("rack", "zone") and len(group.tasks) > 1
        }
        assert len(crossing) == 2
        assert len(job.groups) > 2
        return
    placement = policy.place(job, cluster)
    assert (placement is not None) == is_possible(job, cluster)
    if placement is not None:
        check_placement(placement, job, cluster)


def test_levels_that_cross_beside_each_other_are_refused() -> None:
    fabric = tp.Fabric(
        ("a", "b", "c", "d"), (tp.Level("rack", (*"xxyy",)), tp.Level("rail_group", (*"uvuv",)))
    )
    cluster = tp.Cluster(tp.Topology.cluster(machine(1), fabric=fabric, network=12.5))
    inside = tp.JobGraph.ring(4).grouped(4, within="rack").grouped(2, prefer="rail_group")
    placement = tp.policies.get("topo-aware").place(inside, cluster)
    assert placement is not None
    assert len({gpu // 4 for gpu in placement.gpus}) == 1
    beside = (
        tp.JobGraph.ring(4)
        .grouped(2, within="rack")
        .grouped(4, prefer="rail_group")
        .grouped(3, prefer="rack")
    )
    with pytest.raises(ValueError, match="of the levels 'rack', 'rail_group' one is not inside the other"):
        tp.policies.get("topo-aware").place(beside, cluster)


def test_unknown_sockets_are_not_guessed() -> None:
    cluster = tp.Cluster(tp.Topology.from_links(4, [], 12.0))
    with pytest.raises(ValueError, match="groups: level = 'socket' cannot be honoured"):
        tp.policies.get("mapa-greedy").place(tp.JobGraph.ring(4).grouped(2, within="socket"), cluster)


def test_a_search_that_ends_early_makes_a_job_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    ended = Mock(side_effect=SearchTimeoutError("no packing found", None))
    monkeypatch.setattr("topoplace.engine.gangs.packing.DomainTree.packed", ended)
    monkeypatch.setattr("topoplace._core.divide_tasks", Mock(return_value=None))
    cluster = rack_of_eight()
    cluster.drain("machine0")
    job = tp.JobGraph.independent(22).grouped([3, 2, 3, 2, 3, 1, 3, 2, 3], within="machine")
    policy = tp.policies.get("topo-aware")
    assert policy.place(job, cluster) is None
    refusal = policy.explain(job, cluster).refusal
    assert refusal is not None
    assert not refusal.permanent
    assert refusal.reason.endswith("the search for places of its groups ended without an answer")
