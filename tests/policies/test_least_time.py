"""The policy least-time: the time of its placements against all others, and cases that users reported."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import combinations, permutations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import topoplace as tp
from topoplace import LinkKind
from topoplace.objectives.communication import communication_time
from topoplace.policies import LeastTime
from topoplace.testing import verify_decision
from topoplace.topology.fabric import Fabric, Level

SPEEDS = {LinkKind.HOST: 10.0, LinkKind.SYSTEM: 6.0, LinkKind.PCIE: 12.0, LinkKind.NVLINK2: 25.0}
H100 = tp.machines.get("dgx-h100")


def switched(size: int, gb_per_s: float = 450.0) -> tp.Topology:
    """Build a machine whose GPUs all meet in NVSwitches."""
    pairs = [(u, v, gb_per_s, LinkKind.NVSWITCH) for u in range(size) for v in range(u)]
    return tp.Topology.from_links(size, pairs)


def slow(size: int) -> tp.Topology:
    """Build a machine whose links inside are slower than its adapters."""
    pairs = [(u, v, 6.0, LinkKind.SYSTEM) for u in range(size) for v in range(u)]
    return tp.Topology.from_links(size, pairs)


def racks(machine: tp.Topology, count: int, size: int, kind: LinkKind = LinkKind.NETWORK) -> tp.Topology:
    """Build racks of machines below one spine; adapters have 50 GB/s."""
    number = count * size
    speed = 900.0 if kind is LinkKind.NVSWITCH else 50.0
    levels = (
        Level("rack", tuple(f"r{i // size}" for i in range(number)), speed, kind=kind),
        Level("spine", ("s",) * number, 50.0),
    )
    return tp.Topology.cluster(machine, fabric=Fabric(tuple(f"m{i}" for i in range(number)), levels))


def drained(topology: tp.Topology, gpus: Sequence[int]) -> tp.Cluster:
    cluster = tp.Cluster(topology)
    for gpu in gpus:
        cluster.drain(gpu)
    return cluster


def placed(job: tp.JobGraph, cluster: tp.Cluster) -> tp.Placement:
    placement = tp.place(job, cluster)
    assert placement is not None
    return placement


def by_machine(placement: tp.Placement, size: int = 8) -> list[int]:
    return sorted(Counter(gpu // size for gpu in placement.gpus).values())


# ---- against all placements ----------------------------------------------------------------------------------


@st.composite
def machines(draw: st.DrawFn) -> tp.Topology:
    size = draw(st.integers(2, 5))
    pairs = [(u, v) for u in range(size) for v in range(u)]
    kinds = draw(st.lists(st.sampled_from(sorted(SPEEDS, key=str)), min_size=len(pairs), max_size=len(pairs)))
    links = [(u, v, SPEEDS[kind], kind) for (u, v), kind in zip(pairs, kinds, strict=True)]
    return tp.Topology.from_links(size, links)


@st.composite
def sending_jobs(draw: st.DrawFn, most: int = 4) -> tp.JobGraph:
    """Jobs that send along edges, so that no library plans rings for them."""
    size = draw(st.integers(2, most))
    pairs = [(a, b) for b in range(size) for a in range(b)]
    chosen = draw(st.lists(st.sampled_from(pairs), unique=True, min_size=1))
    return tp.JobGraph.from_edges(size, [(a, b, draw(st.sampled_from([1.0, 2.0, 5.0]))) for a, b in chosen])


@given(sending_jobs(), machines())
def test_no_placement_on_a_machine_is_faster(job: tp.JobGraph, machine: tp.Topology) -> None:
    cluster = tp.Cluster(machine)
    placement = tp.place(job, cluster)
    if job.num_tasks > machine.num_gpus:
        assert placement is None
        return
    assert placement is not None
    fastest = verify_decision(placement, job, cluster).fastest
    assert fastest is not None
    assert placement.time <= fastest * 1.0051


@given(sending_jobs(5), st.lists(st.integers(0, 2), min_size=4, max_size=4), st.sampled_from([1, 2]))
def test_no_placement_of_a_small_gang_is_much_slower(job: tp.JobGraph, free: list[int], rack: int) -> None:
    topology = racks(switched(2), 4 // rack, rack)
    cluster = drained(topology, [2 * m + g for m, n in enumerate(free) for g in range(n, 2)])
    placement = tp.place(job, cluster)
    usable = cluster.free_gpus()
    if len(usable) < job.num_tasks:
        assert placement is None
        return
    assert placement is not None
    fastest = verify_decision(placement, job, cluster, most_orders=7_000).fastest
    assert fastest is not None
    assert placement.time <= fastest * 1.01


COLLECTIVES = st.sampled_from(["all_reduce", "all_gather", "all_to_all", "send"])


@st.composite
def grouped_jobs(draw: st.DrawFn) -> tp.JobGraph:
    """Jobs of up to six tasks in groups of equal size, and with groups across these."""
    size, count = draw(st.sampled_from([(2, 1), (2, 2), (2, 3), (3, 1), (3, 2), (4, 1)]))
    inner = [tuple(range(i * size, (i + 1) * size)) for i in range(count)]
    across = [tuple(range(i, size * count, size)) for i in range(size)] if count > 1 else []
    found: list[tp.Collective] = []
    for name, groups in (("inner", inner), ("across", across)):
        kind = draw(COLLECTIVES)
        amount = draw(st.sampled_from([0.5, 1.0, 8.0]))
        for group in groups if draw(st.booleans()) or name == "inner" else ():
            pairs = [group] if kind != "send" else list(itertools.pairwise(group))
            found += [tp.Collective(kind, pair, amount, name) for pair in pairs]
    job = tp.JobGraph.from_collectives(size * count, found)
    return job.grouped([size] * count, within="machine") if draw(st.booleans()) and count > 1 else job


@given(
    grouped_jobs(),
    st.lists(st.integers(0, 3), min_size=3, max_size=3).filter(lambda free: sum(free) <= 6),
    st.sampled_from([1, 3]),
    st.sampled_from([LinkKind.NETWORK, LinkKind.NVSWITCH]),
    st.sampled_from([switched(3), slow(3)]),
    st.sampled_from([1.0, 0.2]),
)
def test_decisions_about_groups_are_true(
    job: tp.JobGraph, free: list[int], rack: int, kind: LinkKind, machine: tp.Topology, share: float
) -> None:
    rates = replace(tp.collective.PRESETS["nccl-2.30"], achieved={"NVL": share, "PHB": share})
    topology = racks(machine, 3 // rack, rack, kind)
    cluster = drained(topology, [3 * m + g for m, n in enumerate(free) for g in range(n, 3)])
    placement = LeastTime(rates=rates).place(job, cluster)
    if placement is not None:
        verify_decision(placement, job, cluster)


# ---- what users reported ---------------------------------------------------------------------------------------


def test_a_gpu_alone_on_its_socket_is_left_out() -> None:
    near = [(u, v, 12.0, LinkKind.HOST) for u in range(1, 5) for v in range(1, u)]
    far = [(0, v, 6.0, LinkKind.SYSTEM) for v in range(1, 5)]
    machine = tp.Topology.from_links(5, [*near, *far], sockets=[0, 1, 1, 1, 1])
    assert placed(tp.JobGraph.ring(2), tp.Cluster(machine)).gpus == (1, 2)
    assert set(placed(tp.JobGraph.ring(4), tp.Cluster(machine)).gpus) == {1, 2, 3, 4}


def test_a_near_pair_is_taken_although_speeds_are_equal() -> None:
    links = [(0, 1, 12.0, LinkKind.PCIE_BRIDGES), (2, 3, 12.0, LinkKind.PCIE)]
    machine = tp.Topology.from_links(4, links, default=12.0)
    assert placed(tp.JobGraph.ring(2), tp.Cluster(machine)).gpus == (2, 3)


def test_trays_are_divided_evenly_where_that_is_asked_for() -> None:
    cluster = tp.Cluster(racks(switched(4, 900.0), 4, 17, LinkKind.NVSWITCH))
    job = tp.JobGraph.independent(144).grouped(4, within="machine").with_(balanced="rack")
    assert by_machine(placed(job, cluster), 4 * 17) == [48, 48, 48]


@pytest.mark.parametrize("as_edges", [False, True])
def test_no_tensor_group_is_split(as_edges: bool) -> None:
    cluster = tp.Cluster(tp.Topology.cluster(H100, 16, racks=4))
    job = tp.JobGraph.parallel(tensor=8, data=16, traffic=tp.Traffic(tensor=100, data=1))
    if as_edges:
        job = tp.JobGraph.from_edges(job.num_tasks, job.edges)
    gpus = placed(job, cluster).gpus
    assert all(len({gpu // 8 for gpu in gpus[i : i + 8]}) == 1 for i in range(0, 128, 8))


def test_two_rings_of_four_are_on_a_machine_each() -> None:
    rings = [(a + 4 * r, b + 4 * r) for r in (0, 1) for a, b in ((0, 1), (1, 2), (2, 3), (0, 3))]
    cluster = drained(tp.Topology.cluster(H100, 2), [6, 7, 14, 15])
    placement = placed(tp.JobGraph.from_edges(8, rings), cluster)
    assert by_machine(placement) == [4, 4]
    assert len({gpu // 8 for gpu in placement.gpus[:4]}) == 1


@pytest.mark.parametrize("tasks", [1, 4])
def test_a_used_rack_is_taken_before_an_empty_one(tasks: int) -> None:
    cluster = tp.Cluster(racks(switched(4, 900.0), 4, 18, LinkKind.NVSWITCH))
    cluster.allocate("other", range(2 * 72, 2 * 72 + 36))
    assert {gpu // 72 for gpu in placed(tp.JobGraph.ring(tasks), cluster).gpus} == {2}


def test_domains_are_filled_from_the_outermost_level_down() -> None:
    topology = tp.Topology.cluster(switched(2), 8, fabric=Fabric.regular(8, {"leaf": 2, "pod": 4}))
    cluster = tp.Cluster(topology)
    cluster.allocate("a", [0, 1])  # its leaf is the fullest, but the other pod is fuller
    cluster.allocate("b", [8, 9, 12, 13])
    assert placed(tp.JobGraph.independent(1), cluster).gpus == (10,)


@given(
    st.sets(st.integers(0, 31), min_size=4, max_size=8),
    st.integers(3, 4),
    st.sampled_from([tp.JobGraph.allreduce, tp.JobGraph.ring]),
)
def test_small_gangs_in_one_rack_are_as_fast_as_any_set_there(
    free: set[int], size: int, pattern: Callable[[int], tp.JobGraph]
) -> None:
    machine = tp.machines.get("dgx1-v100")
    topology = tp.Topology.cluster(machine, fabric=Fabric.regular(4, {"rack": 2}), network=12.5)
    cluster, job = tp.Cluster(topology), pattern(size)
    cluster.allocate("others", sorted(set(range(32)) - free))
    inside = [gpus for gpus in combinations(sorted(free), size) if len({gpu // 16 for gpu in gpus}) == 1]
    placement = tp.place(job.with_(within="rack"), cluster)
    assert (placement is None) == (not inside)
    if placement is None or len({gpu // 8 for gpu in placement.gpus}) == 1:
        return  # a job that fits one machine is not split
    best = min(tp.communication_time(job, gpus, topology).seconds for gpus in inside)
    assert placement.scores["communication_time"] <= best * 1.01 * (1 + 1e-6)


@pytest.mark.parametrize("pattern", [tp.JobGraph.allreduce, tp.JobGraph.ring, tp.JobGraph.clique])
@pytest.mark.parametrize("asked", [{"within": "leaf"}, {"prefer": "leaf"}, {"balanced": "leaf"}])
def test_a_gang_in_one_domain_is_as_fast_as_one_that_may_go_anywhere(
    pattern: Callable[[int], tp.JobGraph], asked: dict[str, str]
) -> None:
    """On an idle cluster the nearest machines are in one leaf anyway: ranks follow each other on them."""
    fabric = Fabric.regular(32, {"leaf": 16, "spine": 32})
    topology = tp.Topology.cluster(H100, fabric=fabric, network=50)
    anywhere, inside = (
        placed(job, tp.Cluster(topology)) for job in (pattern(64), pattern(64).with_(**asked))
    )
    assert inside.scores["communication_time"] == anywhere.scores["communication_time"]
    assert by_machine(inside) == [8] * 8


def test_four_tasks_use_two_adapters_of_both_machines() -> None:
    cluster = drained(tp.Topology.cluster(H100, 2), [*range(3, 8), *range(11, 16)])
    assert by_machine(placed(tp.JobGraph.clique(4), cluster)) == [2, 2]


@pytest.mark.parametrize("pattern", [tp.JobGraph.ring, tp.JobGraph.chain, tp.JobGraph.independent])
def test_a_gpu_with_lost_nvlinks_is_avoided(pattern: object) -> None:
    links = [(u, v, 350.0 if v == 0 else 450.0, LinkKind.NVSWITCH) for u in range(8) for v in range(u)]
    assert callable(pattern)
    cluster = tp.Cluster(tp.Topology.from_links(8, links))
    assert 0 not in placed(pattern(4), cluster).gpus
    assert 0 in placed(pattern(8), cluster).gpus


def test_ranks_keep_the_rails_of_whole_machines() -> None:
    fabric = Fabric(
        ("m0", "m1"), (Level("rails", ("a", "a"), 50.0, rail=True), Level("spine", ("s", "s"), 50.0))
    )
    cluster = tp.Cluster(tp.Topology.cluster(H100, fabric=fabric))
    job = tp.JobGraph.parallel(tensor=8, data=2).grouped("tensor", within="machine")
    placement = placed(job, cluster)
    assert [gpu % 8 for gpu in placement.gpus] == [*range(8), *range(8)]


def test_groups_of_all_levels_are_kept() -> None:
    topology = tp.Topology.cluster(H100, 64, fabric=Fabric.regular(64, {"leaf": 8, "pod": 32}))
    cluster = drained(topology, range(4))
    job = tp.JobGraph.parallel(tensor=8, pipeline=2, data=8).grouped("tensor", within="machine")
    placement = placed(job.grouped(32, within="leaf"), cluster)
    assert all(len({gpu // 8 for gpu in placement.gpus[i : i + 8]}) == 1 for i in range(0, 128, 8))
    assert all(len({gpu // 64 for gpu in placement.gpus[i : i + 32]}) == 1 for i in range(0, 128, 32))


# ---- other jobs ------------------------------------------------------------------------------------------------


def half_used_racks(busy: int) -> tp.Cluster:
    """Build five racks of four machines of two GPUs: the first four are half used, and one by a job that leaves it."""
    levels = (
        Level("rack", tuple(f"r{i // 4}" for i in range(20)), 50.0),
        Level("spine", ("s",) * 20, 50.0, 4.0),
    )
    fabric = Fabric(tuple(f"m{i}" for i in range(20)), levels)
    cluster = tp.Cluster(tp.Topology.cluster(switched(2), fabric=fabric))
    for rack in range(4):
        gpus = list(range(8 * rack, 8 * rack + 4))
        if rack == busy:
            ring = tp.Collective("all_reduce", tuple(range(8)), 20.0)
            job = tp.JobGraph.from_collectives(12, [ring])
            cluster.allocate("busy", [*gpus, *range(32, 40)], job)
        else:
            cluster.allocate(f"quiet {rack}", gpus, tp.JobGraph.ring(4))
    return cluster


@pytest.mark.parametrize("busy", range(4))
@pytest.mark.parametrize(("tasks", "racks_used"), [(4, 1), (8, 2), (12, 3)])
def test_racks_whose_uplinks_are_idle_are_taken(busy: int, tasks: int, racks_used: int) -> None:
    cluster = half_used_racks(busy)
    ring = tp.JobGraph.from_collectives(tasks, [tp.Collective("all_reduce", tuple(range(tasks)), 4.0)])
    placement = placed(ring, cluster)
    used = {gpu // 8 for gpu in placement.gpus}
    assert len(used) == racks_used
    assert busy not in used
    assert tp.communication_time(ring, placement.gpus, cluster.topology, cluster=cluster).seconds == (
        placement.time
    )


@pytest.mark.parametrize("busy", range(4))
@pytest.mark.parametrize("how", ["within", "prefer"])
def test_groups_get_racks_whose_uplinks_are_idle(busy: int, how: str) -> None:
    cluster = half_used_racks(busy)
    ring = tp.JobGraph.from_collectives(8, [tp.Collective("all_reduce", tuple(range(8)), 4.0)])
    placement = placed(
        ring.grouped(4, within="rack") if how == "within" else ring.grouped(4, prefer="rack"), cluster
    )
    used = [{gpu // 8 for gpu in placement.gpus[i : i + 4]} for i in (0, 4)]
    assert [len(one) for one in used] == [1, 1]
    assert busy not in used[0] | used[1]


def test_what_shares_uplinks_is_not_proven() -> None:
    """Its own time is that of the bound, but beside the other job it takes longer."""
    cluster = tp.Cluster(racks(switched(2), 2, 1))
    job = tp.JobGraph.from_collectives(2, [tp.Collective("send", (0, 1), 4.0)]).with_(anti_affinity=True)
    assert placed(job, cluster).optimal
    cluster.allocate("other", [0, 2], job)
    placement = placed(job, cluster)
    assert (placement.gpus, placement.optimal) == ((1, 3), True)  # the uplinks have the speed of two adapters
    many = tp.JobGraph.from_collectives(2, [tp.Collective("send", (0, 1), 4.0, str(i)) for i in range(3)])
    cluster.release("other")
    cluster.allocate("other", [0, 2], many)
    placement = placed(job, cluster)
    assert placement.time == pytest.approx(placement.bound)
    assert not placement.optimal
    assert tp.policies.get("least-time", others=False).place(job, cluster).optimal  # type: ignore[union-attr]


def test_it_follows_the_jobs_that_come_and_go() -> None:
    cluster = half_used_racks(0)
    ring = tp.JobGraph.from_collectives(8, [tp.Collective("all_reduce", tuple(range(8)), 4.0)])
    assert 0 not in {gpu // 8 for gpu in placed(ring, cluster).gpus}
    gpus, job = cluster.gpus_of("busy"), cluster.jobs["busy"]
    cluster.release("busy")
    cluster.allocate("unknown", gpus)
    assert 0 in {gpu // 8 for gpu in placed(ring, cluster).gpus}
    cluster.release("unknown")
    cluster.allocate("known", gpus, job)
    assert 0 not in {gpu // 8 for gpu in placed(ring, cluster).gpus}


@st.composite
def busy_clusters(draw: st.DrawFn) -> tp.Cluster:
    """Four or six machines of two GPUs in racks, with gangs and jobs of one machine."""
    count, oversubscription = draw(st.sampled_from([4, 6])), draw(st.sampled_from([1.0, 4.0]))
    levels = (
        Level("rack", tuple(f"r{i // 2}" for i in range(count)), 50.0),
        Level("spine", ("s",) * count, 50.0, oversubscription),
    )
    fabric = Fabric(tuple(f"m{i}" for i in range(count)), levels)
    cluster = tp.Cluster(tp.Topology.cluster(switched(2), fabric=fabric))
    for number in range(draw(st.integers(0, 3))):
        free = draw(st.permutations(cluster.free_gpus()))
        if len(free) > 4:
            job = draw(sending_jobs(3))
            cluster.allocate(f"job {number}", free[: job.num_tasks], job)
    return cluster


@settings(max_examples=10)
@given(st.lists(st.tuples(busy_clusters(), sending_jobs(4)), min_size=6, max_size=6))
def test_placements_beside_running_jobs_are_mostly_the_fastest(
    cases: list[tuple[tp.Cluster, tp.JobGraph]],
) -> None:
    """The search for the machines is a heuristic: one in some hundreds of small gangs misses the least time."""
    missed = 0
    for cluster, job in cases:
        free = cluster.free_gpus()
        if len(free) < job.num_tasks:
            continue
        times = {
            gpus: tp.communication_time(job, gpus, cluster.topology, cluster=cluster).seconds
            for gpus in permutations(free, job.num_tasks)
        }
        missed += times[placed(job, cluster).gpus] > min(times.values()) * 1.01
    assert missed <= 1


@given(busy_clusters(), sending_jobs(4))
def test_without_others_it_decides_as_if_no_other_job_communicated(
    cluster: tp.Cluster, job: tp.JobGraph
) -> None:
    quiet = tp.Cluster(cluster.topology)
    for job_id, gpus in cluster.allocations.items():
        quiet.allocate(job_id, gpus)
    alone = tp.policies.get("least-time", others=False)
    assert alone.place(job, cluster) == alone.place(job, quiet) == tp.place(job, quiet)


# ---- jobs that ask for a utility -------------------------------------------------------------------------------


def busy(cluster: tp.Cluster, gpus: Sequence[int]) -> None:
    """Give GPUs to a job of their own."""
    for gpu in gpus:
        job = tp.JobGraph.ring(1)
        cluster.allocate(f"job of {gpu}", tp.Placement((gpu,), topology=cluster.topology, job=job), job)


@pytest.mark.parametrize("least", [0.05, 0.1, 0.2, 1.0])
def test_a_pair_over_two_machines_waits_where_it_would_be_too_slow(least: float) -> None:
    """Its time is 1 / 450 s on a machine and 1 / 50 s on two: it has a utility of 50 / 450."""
    cluster = tp.Cluster(racks(H100, 1, 2))
    busy(cluster, [*range(7), *range(8, 15)])
    pair, policy = tp.JobGraph.from_edges(2, [(0, 1, 2.0)]).with_(min_utility=least), LeastTime()
    placement, explained = policy.place(pair, cluster), policy.explain(pair, cluster)
    assert [one.gpus for one in explained.candidates] == [(7, 15)]
    assert explained.candidates[0].scores["utility"] == pytest.approx(50 / 450)
    assert (placement is None) == (least > 50 / 450)
    if placement is None:
        assert explained.refusal is not None
        assert f"its utility would be 0.111 now, {least:g} is asked for" in explained.refusal.reason
    cluster.release("job of 14")
    assert placed(pair, cluster).gpus == (14, 15)
    assert [*policy.ranked_machines(pair, cluster)] == [[1]]


@given(sending_jobs(), machines(), st.data())
def test_a_utility_is_the_best_time_of_all_over_that_of_the_placement(
    job: tp.JobGraph, machine: tp.Topology, data: st.DataObject
) -> None:
    times = [
        tp.communication_time(job, gpus, machine).seconds
        for gpus in permutations(range(machine.num_gpus), job.num_tasks)
    ]
    cluster = tp.Cluster(machine)
    busy(cluster, data.draw(st.lists(st.sampled_from(range(machine.num_gpus)), unique=True)))
    usual, found = tp.place(job, cluster), LeastTime().explain(job.with_(min_utility=0.01), cluster)
    assert [one.gpus for one in found.candidates[:1]] == [one.gpus for one in (usual,) if one]
    for one in found.candidates:
        assert one.scores["utility"] == pytest.approx(min(times) / one.time, rel=0.011)


@st.composite
def idle_clusters(draw: st.DrawFn) -> tp.Cluster:
    """Clusters without jobs, of machines of one or two kinds, alone or in racks."""
    kinds = st.sampled_from([switched(4), switched(3, 100.0), tp.machines.get("summit"), H100])
    members = draw(st.lists(kinds, min_size=1, max_size=5))
    speeds = draw(st.sampled_from([50.0, 400.0]))
    racks = Level("rack", tuple(f"r{i // 2}" for i in range(len(members))), speeds)
    names = tuple(f"m{i}" for i in range(len(members)))
    topology = tp.Topology.cluster(members, fabric=Fabric(names, (racks,)))
    unhealthy = draw(st.sets(st.integers(0, topology.num_gpus - 1), max_size=topology.num_gpus // 2))
    return tp.Cluster(
        topology.with_unhealthy(sorted(unhealthy)), hosts=tp.HostResources(cpus=8, memory_gb=64)
    )


@given(
    idle_clusters(),
    st.sampled_from([tp.JobGraph.ring, tp.JobGraph.chain, tp.JobGraph.clique, tp.JobGraph.independent]),
    st.integers(1, 12),
    st.sampled_from([{}, {"cpus": 12}, {"anti_affinity": True}, {"gpu_memory_gb": 16}, {"prefer": "rack"}]),
)
def test_no_job_waits_for_its_utility_without_other_jobs(
    cluster: tp.Cluster, pattern: Callable[[int], tp.JobGraph], size: int, needs: dict[str, object]
) -> None:
    job = pattern(size).with_(**needs)
    usual, patient = tp.place(job, cluster), tp.place(job.with_(min_utility=1.0), cluster)
    assert (patient and patient.gpus) == (usual and usual.gpus)
    assert patient is None or patient.scores["utility"] == 1.0


def test_a_younger_job_overtakes_one_that_waits_for_its_utility() -> None:
    cluster = tp.Cluster(racks(H100, 1, 2))
    busy(cluster, [*range(7), *range(8, 15)])
    pair = tp.JobGraph.ring(2)
    queue = [
        tp.policies.QueuedJob("patient", pair.with_(min_utility=0.9)),
        tp.policies.QueuedJob("other", pair),
    ]
    plan = LeastTime().plan(queue, cluster, 0.0)
    assert [job_id for job_id, _ in plan.start] == ["other"]
    assert [job_id for job_id, _ in plan.defer] == ["patient"]


# ---- sets with given GPUs --------------------------------------------------------------------------------------


@given(sending_jobs(), machines(), st.data())
def test_no_set_with_given_gpus_is_faster(
    job: tp.JobGraph, machine: tp.Topology, data: st.DataObject
) -> None:
    gpus = list(range(machine.num_gpus))
    free = data.draw(st.lists(st.sampled_from(gpus), unique=True, min_size=min(job.num_tasks, len(gpus))))
    required = data.draw(st.lists(st.sampled_from(free), unique=True, max_size=job.num_tasks))
    cluster = drained(machine, sorted({*gpus} - {*free}))
    found = LeastTime().best(job, cluster, frozenset(free), frozenset(required))
    times = [
        tp.communication_time(job, one, machine).seconds
        for one in permutations(free, job.num_tasks)
        if {*required} <= {*one}
    ]
    assert (found is None) == (not times)
    if found is not None:
        assert {*required} <= {*found.gpus} <= {*free}
        assert found.time == found.scores["communication_time"] <= min(times) * 1.011


def test_a_machine_of_many_gpus_is_asked_for_given_ones() -> None:
    machine = switched(24)
    found = LeastTime().best(
        tp.JobGraph.ring(8), tp.Cluster(machine), frozenset(range(2, 24)), frozenset({9, 23})
    )
    assert found is not None
    assert {9, 23} <= {*found.gpus} <= {*range(2, 24)}
    assert len({*found.gpus}) == 8


def test_tasks_that_communicate_get_no_gpus_without_a_path() -> None:
    cluster = tp.Cluster(tp.Topology.from_links(3, [(0, 1, 10.0)], 0.0))
    assert placed(tp.JobGraph.ring(2), cluster).gpus == (0, 1)
    busy(cluster, [0])
    assert tp.place(tp.JobGraph.ring(2), cluster) is None
    assert placed(tp.JobGraph.independent(2), cluster).gpus == (1, 2)


# ---- options and answers ---------------------------------------------------------------------------------------


def test_what_it_says_of_a_placement_is_what_the_ports_take() -> None:
    cluster = tp.Cluster(tp.Topology.cluster(H100, 4, racks=2))
    placement = placed(tp.JobGraph.parallel(tensor=8, data=4), cluster)
    assert placement.time == pytest.approx(math.fsum(placement.times.values()))
    assert set(placement.times) == {"tensor", "data"}
    assert placement.slowest.startswith("adapter")
    found = tp.communication_time(placement.job or tp.JobGraph.ring(1), placement.gpus, cluster.topology)
    assert found.seconds == placement.time == placement.scores["communication_time"]


def test_jobs_that_share_an_answer_have_times_of_their_own() -> None:
    cluster = tp.Cluster(tp.Topology.cluster(H100, 2))
    jobs = [tp.JobGraph.from_edges(3, [(0, 1, weight), (1, 2, 1.0)]) for weight in (1.0, 4.0)]
    placements = [placed(job, cluster) for job in (*jobs, tp.JobGraph.ring(3))]
    assert len({placement.gpus for placement in placements}) == 1
    times = [placement.scores["communication_time"] for placement in placements]
    assert times == [placement.time for placement in placements]
    assert len(set(times)) == 3
    assert placements[0].scores["aggregated_bandwidth"] == 2 * 450


def test_a_gang_whose_groups_do_not_fit_waits() -> None:
    cluster = drained(racks(switched(3), 3, 1), [0, 1, 2])
    pairs = [tp.Collective("all_reduce", (i, i + 1), 0.5) for i in (0, 2, 4)]
    job = tp.JobGraph.from_collectives(6, pairs).grouped([2, 2, 2], within="machine")
    assert tp.place(job, cluster) is None  # six GPUs are free, and two pairs fit


def test_groups_are_whole_although_links_inside_machines_are_slow() -> None:
    cluster = tp.Cluster(racks(slow(2), 3, 1))
    pairs = [tp.Collective("all_reduce", (i, i + 1), 1.0, "pairs") for i in (0, 2)]
    across = tp.Collective("all_reduce", (0, 2), 0.1, "across")
    job = tp.JobGraph.from_collectives(4, [*pairs, across]).grouped([2, 2], within="machine")
    placement = placed(job, cluster)
    assert [{gpu // 2 for gpu in placement.gpus[i : i + 2]} for i in (0, 2)] == [{0}, {1}]
    assert placement.bound is not None
    assert placement.bound <= placement.time


def test_a_tensor_parallel_job_is_proven() -> None:
    cluster = tp.Cluster(racks(H100, 2, 4))
    free = tp.JobGraph.parallel(tensor=8, pipeline=2, data=4, traffic=tp.Traffic.of("llama2-70b"))
    job = free.grouped("tensor", within="machine")
    placement = placed(job, cluster)
    assert placement.bound == pytest.approx(placement.time)
    assert placement.optimal
    # Where no group must be on one machine, rings over all adapters of machines that share data are faster.
    assert placed(free, cluster).time < 0.8 * placement.time
    split = tp.communication_time(
        job, sorted(placement.gpus, key=lambda gpu: (gpu % 8, gpu)), cluster.topology
    )
    assert split.seconds > 1.2 * placement.time


def test_it_is_proven_where_all_sets_and_orders_were_compared() -> None:
    machine = tp.machines.get("dgx1-v100")
    assert placed(tp.JobGraph.ring(6), tp.Cluster(machine)).optimal
    assert placed(tp.JobGraph.chain(4), tp.Cluster(machine)).optimal
    assert not placed(tp.JobGraph.chain(6), tp.Cluster(machine)).optimal
    assert not placed(tp.JobGraph.ring(2), tp.Cluster(tp.Topology.cluster(machine, 2))).optimal


def test_a_placement_without_a_job_has_no_time() -> None:
    placement = tp.Placement((0, 1), topology=H100)
    with pytest.raises(tp.AllocationError, match="has no job"):
        _ = placement.time


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"slack": -0.1}, "slack = -0.1"),
        ({"slack": math.nan}, "slack = nan"),
        ({"slack": "1"}, "slack = '1' is not a number"),
        ({"timeout": 0}, "timeout = 0"),
        ({"others": 1}, "others = 1"),
    ],
)
def test_wrong_options_are_refused(options: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        LeastTime(**options)  # type: ignore[arg-type]


def test_the_same_answer_each_time() -> None:
    topology = tp.Topology.cluster(H100, 16, racks=4)
    job = tp.JobGraph.parallel(tensor=4, data=12, expert=3)
    first = placed(job, drained(topology, [1, 2, 20, 41]))
    assert placed(job, drained(topology, [1, 2, 20, 41])).gpus == first.gpus


@pytest.mark.parametrize("busy", [(), (0,), (9,), (31,), (0, 9)], ids=str)
def test_roles_that_fit_on_machines_of_their_own_get_them(busy: tuple[int, ...]) -> None:
    roles = [tp.JobGraph.ring(4).with_(name="prefill"), tp.JobGraph.allreduce(8).with_(name="decode")]
    job = tp.JobGraph.joined(roles, {("prefill", "decode"): 8.0})
    topology = tp.Topology.cluster(tp.machines.get("dgx1-v100"), 4, network=12.5)
    cluster = tp.Cluster(topology)
    if busy:
        cluster.allocate("busy", busy)
    apart = communication_time(job, (*range(24, 28), 17, 16, *range(18, 24)), topology)
    placement = tp.place(job, cluster)
    assert placement is not None
    assert placement.time <= apart.seconds * 1.000001
