"""Communication time against loops over its definition, on random machines, clusters and jobs."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from itertools import permutations

import hypothesis.strategies as st
import pytest
from hypothesis import assume, given

import topoplace as tp
from fair_sharing import phase_seconds
from topoplace.collective import ring_bandwidth
from topoplace.jobs.collectives import KINDS
from topoplace.objectives.communication import communication_time
from topoplace.testing.recomputed_time import Phase, recomputed_time
from topoplace.testing.strategies import cluster_topologies, job_graphs, topologies
from topoplace.topology.links.link_kinds import LinkKind
from topoplace.topology.ports import Ports


def expected(
    job: tp.JobGraph,
    placed: Sequence[int],
    topology: tp.Topology,
    planned: bool,
    others: Sequence[tuple[tp.JobGraph, Sequence[int]]] = (),
) -> dict[str, float]:
    """Return the seconds of each dimension by the definition, beside other jobs on their GPUs."""
    clock = recomputed_time(topology, None)
    there: dict[int, list[float]] = defaultdict(list)
    for other, gpus in others:
        for phase in clock.phases(other, gpus, planned=planned).values():
            for hop, amounts in _by_hop(phase).items():
                there[hop] += amounts
    longest: dict[str, float] = {}
    for dimension, phase in clock.phases(job, placed, planned=planned).items():
        longest[dimension] = clock.seconds(phase)
        for hop, amounts in _by_hop(phase).items():
            gigabytes = sum(min(one, max(amounts)) for one in [*amounts, *there[hop]])
            longest[dimension] = max(longest[dimension], clock.seconds_on(hop, gigabytes))
    return longest


def _by_hop(phase: Phase) -> dict[int, list[float]]:
    found: dict[int, list[float]] = defaultdict(list)
    for hops, gigabytes in phase.flows:
        for hop in hops or ():
            found[hop].append(gigabytes)
    return found


def shared_fairly(
    jobs: Sequence[tuple[tp.JobGraph, Sequence[int]]], topology: tp.Topology, planned: bool
) -> dict[str, float]:
    """Return the seconds of each dimension of the first job, if all jobs begin at once, by exact fractions."""
    ports, clock = topology.derived(Ports), recomputed_time(topology, None)
    phases = [clock.phases(job, placed, planned=planned) for job, placed in jobs]
    speeds = {hop: float(ports.gb_per_s[hop // 2]) for hop in range(2 * len(ports.gb_per_s))}
    seconds = phase_seconds([list(one.values()) for one in phases], speeds)[0]
    own = phases[0]
    return {name: max(time, own[name].at_least) for name, time in zip(own, seconds, strict=True)}


@st.composite
def collective_jobs(draw: st.DrawFn, most: int) -> tp.JobGraph:
    n = draw(st.integers(2, most))
    found: list[tp.Collective] = []
    for _ in range(draw(st.integers(1, 5))):
        kind = draw(st.sampled_from(KINDS))
        tasks = tuple(draw(st.permutations(range(n)))[: draw(st.integers(2, n))])
        amount, dimension = draw(st.sampled_from([0.5, 1.0, 3.0])), draw(st.sampled_from(["tensor", "data"]))
        shares = [draw(st.sampled_from([0.0, 1.0, 5.0])) for _ in tasks if kind == "all_to_all"]
        found.append(tp.Collective(kind, tasks, amount, dimension, tuple(shares) if any(shares) else ()))
    return tp.JobGraph.from_collectives(n, found)


@given(topologies() | cluster_topologies(), st.booleans(), st.data())
def test_time_is_that_of_the_definition(topology: tp.Topology, planned: bool, data: st.DataObject) -> None:
    assume(topology.num_gpus > 1)
    most = min(topology.num_gpus, 6)
    job = data.draw(collective_jobs(most) | job_graphs(min_tasks=1, max_tasks=min(most, 5)))
    placed = data.draw(st.permutations(range(topology.num_gpus)))[: job.num_tasks]
    found = communication_time(job, placed, topology, planned=planned)
    by_dimension = expected(job, placed, topology, planned)
    assert dict(found.by_dimension) == pytest.approx(by_dimension)
    assert found.seconds == pytest.approx(sum(by_dimension.values()))
    assert (found.slowest == "") == (found.seconds == 0)
    assert (found.slowest == "no path") == math.isinf(found.seconds)


@given(topologies() | cluster_topologies(), st.booleans(), st.data())
def test_time_beside_running_jobs_is_that_of_the_definition(
    topology: tp.Topology, planned: bool, data: st.DataObject
) -> None:
    """Also after some of them have gone and others have come, and for each of them."""
    assume(topology.num_gpus > 1)
    cluster = tp.Cluster(topology)
    running: dict[str, tuple[tp.JobGraph, list[int]]] = {}
    for number in range(data.draw(st.integers(1, 4))):
        if running and data.draw(st.booleans()):
            gone = data.draw(st.sampled_from(sorted(running)))
            cluster.release(gone)
            del running[gone]
        if len(cluster.free_gpus()) > 1:
            most = min(len(cluster.free_gpus()), 5)
            graph = data.draw(collective_jobs(most) | job_graphs(min_tasks=1, max_tasks=most))
            gpus = data.draw(st.permutations(cluster.free_gpus()))[: graph.num_tasks]
            cluster.allocate(f"job {number}", gpus, graph)
            running[f"job {number}"] = graph, list(gpus)
        job = data.draw(collective_jobs(min(topology.num_gpus, 6)))
        placed = list(data.draw(st.permutations(range(topology.num_gpus)))[: job.num_tasks])
        found = tp.communication_time(job, placed, topology, cluster=cluster, planned=planned)
        beside = [one for one in running.values() if one != (job, placed)]
        by_dimension = expected(job, placed, topology, planned, beside)
        assert dict(found.by_dimension) == pytest.approx(by_dimension)
        alone = tp.communication_time(job, placed, topology, planned=planned)
        assert found.port_seconds == pytest.approx(alone.port_seconds)
        fair = tp.communication_time(
            job, placed, topology, cluster=cluster, planned=planned, max_min=True
        ).by_dimension
        assert dict(fair) == pytest.approx(shared_fairly([(job, placed), *beside], topology, planned))
    for own, (graph, gpus) in running.items():
        found = tp.communication_time(graph, gpus, topology, cluster=cluster, planned=planned)
        beside = [one for name, one in running.items() if name != own]
        assert dict(found.by_dimension) == pytest.approx(expected(graph, gpus, topology, planned, beside))


def test_a_job_of_the_same_name_with_another_graph_counts_as_that() -> None:
    topology = tp.Topology.cluster(tp.machines.get("dgx-a100"), 2)
    cluster, job = tp.Cluster(topology), tp.JobGraph.from_edges(2, [(0, 1, 4.0)])
    for gigabytes in (1.0, 4.0, 9.0):
        cluster.allocate("other", [0, 8], tp.JobGraph.from_edges(2, [(0, 1, gigabytes)]))
        assert tp.communication_time(job, [0, 8], topology, cluster=cluster).seconds == pytest.approx(
            expected(
                job, [0, 8], topology, True, [(cluster.jobs["other"], [0, 8])] if gigabytes != 4 else ()
            )["all"]
        )
        cluster.release("other")
    cluster.allocate("unknown", [0, 8])
    alone = tp.communication_time(job, [0, 8], topology)
    assert tp.communication_time(job, [0, 8], topology, cluster=cluster) == alone


@st.composite
def boxes(draw: st.DrawFn) -> tp.Topology:
    """Machines without direct links: PCIe switches, bridges and sockets, nested; nearer paths are no slower."""
    switches = draw(st.lists(st.integers(1, 3), min_size=1, max_size=3))
    home = [i for i, gpus in enumerate(switches) for _ in range(gpus)]
    sockets = draw(st.lists(st.integers(0, 1), min_size=len(switches), max_size=len(switches)))
    far, near, apart = 12.0, draw(st.sampled_from([12.0, 24.0])), draw(st.sampled_from([4.0, 12.0]))

    def link(u: int, v: int) -> tuple[float, LinkKind]:
        if home[u] == home[v]:
            return near, LinkKind.PCIE
        return (far, LinkKind.HOST) if sockets[home[u]] == sockets[home[v]] else (apart, LinkKind.SYSTEM)

    return tp.Topology.from_links(
        len(home), [(u, v, *link(u, v)) for v in range(len(home)) for u in range(v)]
    )


@given(boxes(), st.data())
def test_the_order_of_tasks_inside_a_machine_does_not_count(
    topology: tp.Topology, data: st.DataObject
) -> None:
    """A single ring takes as long as it is planned."""
    assume(topology.num_gpus > 1)
    chosen = data.draw(st.permutations(range(topology.num_gpus)))[: data.draw(st.integers(2, 5))]
    ring = tp.JobGraph.from_collectives(
        len(chosen), [tp.Collective("all_reduce", tuple(range(len(chosen))), 1.0)]
    )
    times = [communication_time(ring, order, topology).seconds for order in permutations(chosen)]
    gigabytes = 2 * (len(chosen) - 1) / len(chosen)
    assert times == pytest.approx([gigabytes / ring_bandwidth(topology, chosen)] * len(times))


@pytest.mark.parametrize("name", ["dgx1-v100", "dgx-h100", "l40s-8"])
def test_rings_are_planned_by_the_rates(name: str) -> None:
    """Rings of half the rate take twice as long; sends do not."""
    machine, preset = tp.machines.get(name), tp.collective.PRESETS["nccl-2.18-rings"]
    halved = replace(preset, achieved=dict.fromkeys(("NVL", "PIX", "PXB", "PHB", "SYS"), 0.5))
    for job, times_as_long in ((tp.JobGraph.ring(4), 2), (tp.JobGraph.chain(4), 1)):
        planned, measured = (
            communication_time(job, range(4), machine, rates=rates).seconds for rates in (preset.name, halved)
        )
        assert measured == pytest.approx(times_as_long * planned)
    ring = communication_time(tp.JobGraph.ring(4), range(4), machine, rates=halved)
    assert ring.seconds == pytest.approx(1.5 / ring_bandwidth(machine, range(4), rates=halved))
    with pytest.raises(ValueError, match="rates = 'nccl-1' is not one of"):
        communication_time(tp.JobGraph.ring(4), range(4), machine, rates="nccl-1")


def test_gpus_whose_links_make_no_ring_have_no_time() -> None:
    topology = tp.Topology.from_links(3, [(0, 1, 25.0, LinkKind.NVLINK2)], 0.0)
    found = communication_time(tp.JobGraph.ring(3), [0, 1, 2], topology)
    assert (found.seconds, found.slowest) == (math.inf, "no path")


def test_rings_over_the_trays_of_a_rack_are_planned() -> None:
    rack = tp.machines.get("gb200-nvl72")
    groups = [tuple(range(i, i + 4)) for i in range(0, 8, 4)]
    job = tp.JobGraph.from_collectives(8, [tp.Collective("all_reduce", one, 1.0, "tensor") for one in groups])
    on_trays = tp.communication_time(job, range(8), rack)
    split = tp.communication_time(job, [0, 1, 4, 5, 2, 3, 6, 7], rack)
    assert on_trays.seconds == split.seconds == 1.5 / tp.collective.ring_bandwidth(rack, [0, 1, 4, 5])
    assert split.slowest == "rings of tray00 0,1; tray01 0,1"


def test_machines_without_a_network_have_no_path() -> None:
    topology = tp.Topology.cluster(tp.machines.get("dgx-a100"), 2, network=0.0)
    sends = [tp.Collective("send", (0, 1), 1.0, "a"), tp.Collective("send", (2, 3), 1.0, "b")]
    job = tp.JobGraph.from_collectives(4, sends)
    found = communication_time(job, [0, 8, 1, 2], topology)
    assert found.by_dimension["a"] == found.seconds == math.inf
    assert found.by_dimension["b"] == pytest.approx(0.5 / topology.bandwidth(1, 2))


def test_a_job_without_edges_takes_no_time() -> None:
    found = communication_time(tp.JobGraph.independent(3), [0, 1, 2], tp.machines.get("dgx-a100"))
    assert (found.seconds, dict(found.by_dimension), found.slowest, found.port_seconds) == (0.0, {}, "", 0.0)


def test_port_seconds_are_those_of_uplinks() -> None:
    levels = (tp.Level("leaf", ("a", "b"), 50.0), tp.Level("spine", ("s", "s"), 50.0, 4.0))
    machine = tp.Topology.from_links(2, [(0, 1, 50.0, LinkKind.NVSWITCH)])
    topology = tp.Topology.cluster(machine, fabric=tp.Fabric(("m0", "m1"), levels))
    job = tp.JobGraph.from_collectives(2, [tp.Collective("send", (0, 1), 10.0)])
    found = communication_time(job, [0, 2], topology)
    uplink = 2 * 50 / 4
    assert found.seconds == pytest.approx(5 / uplink)
    assert found.port_seconds == pytest.approx(4 * 5 / uplink)  # two uplinks, both directions
    assert found.slowest == "uplink of leaf a"


@pytest.mark.parametrize(
    ("gpus", "message"),
    [
        ([0, 1], r"gpus = \(0, 1\): 2 for a job of 3 tasks"),
        ([0, 1, 1], r"gpus = \(0, 1, 1\) lists GPU 1 twice"),
        ([0, 1, 8], r"gpus\[2\] = 8 is not in 0\.\.7"),
        ([0, -1, 2], r"gpus\[1\] = -1 is not in 0\.\.7"),
        ([0, 1, "a"], r"gpus\[2\] = 'a' is not an integer"),
        (None, "gpus"),
    ],
)
def test_a_wrong_placement_is_named(gpus: list[int], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        communication_time(tp.JobGraph.ring(3), gpus, tp.machines.get("dgx-a100"))


def test_a_wrong_job_or_topology_is_named() -> None:
    with pytest.raises(ValueError, match="job = 3"):
        communication_time(3, [0], tp.machines.get("dgx-a100"))  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="topology = 'dgx'"):
        communication_time(tp.JobGraph.ring(2), [0, 1], "dgx")  # type: ignore[arg-type]


def test_a_cluster_that_is_none_or_on_another_topology_is_named() -> None:
    dgx, job = tp.machines.get("dgx-a100"), tp.JobGraph.ring(2)
    with pytest.raises(ValueError, match="cluster = 3"):
        communication_time(job, [0, 1], dgx, cluster=3)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="max_min = 1 is not True or False"):
        communication_time(job, [0, 1], dgx, max_min=1)  # type: ignore[arg-type]
    other = tp.Cluster(tp.machines.get("dgx-h100"))
    with pytest.raises(ValueError, match=r"cluster = Cluster\('dgx-h100', 8 of 8 GPUs free\) is not on the"):
        communication_time(job, [0, 1], dgx, cluster=other)
