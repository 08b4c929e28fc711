"""What users found wrong with the communication time and with the placements that follow from it, one by one."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import pytest

import topoplace as tp
from topoplace import LinkKind, collective
from topoplace.topology.devices import Nic

H100 = tp.machines.get("dgx-h100")
A100 = tp.machines.get("dgx-a100")
WITHOUT_NVLS = "nccl-2.30-rings"


def in_leaves(
    sizes: Sequence[int], machine: tp.Topology = H100, over: float = 1.0, name: str = "leaf"
) -> tp.Topology:
    """Return machines in leaves of these sizes, below one spine."""
    leaf = tuple(f"l{i}" for i, size in enumerate(sizes) for _ in range(size))
    names = tuple(f"m{i}" for i in range(len(leaf)))
    spine = tp.Level("spine", ("s",) * len(leaf), 50.0, over)
    fabric = tp.Fabric(names, (tp.Level(name, leaf, 50.0), spine))
    return tp.Topology.cluster(machine, fabric=fabric)


def with_free(topology: tp.Topology, free: Sequence[int | Sequence[int]]) -> tp.Cluster:
    """Return a cluster of which each machine has so many free GPUs, its first ones, or these."""
    cluster = tp.Cluster(topology)
    for name, own in zip(topology.machine_names, free, strict=True):
        gpus = topology.gpus_of[name]
        left = own if isinstance(own, Sequence) else range(own)
        for local, gpu in enumerate(gpus):
            if local not in left:
                cluster.drain(gpu)
    return cluster


def placed(job: tp.JobGraph, cluster: tp.Cluster, **options: object) -> tp.Placement:
    found = tp.policies.LeastTime(**options).place(job, cluster)  # type: ignore[arg-type]
    assert found is not None
    assert found.bound is None or found.bound <= found.time * (1 + 1e-9)
    return found


def tasks_of_machines(found: tp.Placement) -> list[int]:
    return sorted(Counter(found.topology.machine_of[list(found.gpus)].tolist()).values())


def domains(found: tp.Placement, level: int = 0) -> list[int]:
    """Return how many machines the placement uses in each domain of a level."""
    topology = found.topology
    machines = {*topology.machine_of[list(found.gpus)].tolist()}
    codes = topology.levels[level].codes
    return sorted(Counter(int(codes[machine]) for machine in machines).values())


# ---- the number ----------------------------------------------------------------------------------------------


def test_n1_a_ring_over_two_machines_uses_all_adapters() -> None:
    topology = in_leaves([2])
    job = tp.JobGraph.allreduce(16)
    found = tp.communication_time(job, range(16), topology, rates=WITHOUT_NVLS)
    assert found.seconds == pytest.approx(1.875 / 360)
    thin = tp.Topology.cluster(H100, 16, network=50.0)
    assert tp.communication_time(job, range(0, 128, 8), thin).seconds == pytest.approx(1.875 / 50)


def test_n1_fragments_of_one_and_five_are_left_for_two_halves() -> None:
    found = placed(tp.JobGraph.allreduce(12), with_free(in_leaves([3, 3]), [1, 6, 1, 5, 0, 6]))
    assert tasks_of_machines(found) == [6, 6]
    assert found.optimal


def _four_adapters(gb_per_s: float = 50.0) -> tp.Topology:
    """Return a box of eight GPUs with four adapters."""
    adapters = tuple(
        Nic(f"nic{i}", tuple("PIX" if gpu // 2 == i else "SYS" for gpu in range(8)), gb_per_s)
        for i in range(4)
    )
    return replace(H100, nics=adapters)


def test_n3_each_task_gets_an_adapter_of_its_own_of_four_for_eight_gpus() -> None:
    found = placed(tp.JobGraph.clique(12), with_free(tp.Topology.cluster(_four_adapters(), 4), [6] * 4))
    machines = Counter(found.topology.machine_of[list(found.gpus)].tolist())
    assert list(machines.values()) == [3, 3, 3, 3]
    assert len({gpu // 2 for gpu in found.gpus}) == 12


def _with_slow_adapter(machine: tp.Topology, slot: int) -> tp.Topology:
    nics = [replace(nic, gb_per_s=50.0) for nic in machine.nics]
    own = next(i for i, nic in enumerate(nics) if nic.paths[slot] in {"PIX", "PXB"})
    nics[own] = replace(nics[own], gb_per_s=12.5)
    return replace(machine, nics=tuple(nics))


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("count", [8, 40])
def test_n3_machines_with_an_adapter_at_a_quarter_are_left_out(seed: int, count: int) -> None:
    """Of 64 machines, 30 % have one."""
    draws = random.Random(seed)
    slow = set(draws.sample(range(64), 19))
    made = [_with_slow_adapter(H100, draws.randrange(8)) if i in slow else H100 for i in range(64)]
    found = placed(tp.JobGraph.allreduce(8 * count), tp.Cluster(tp.Topology.cluster(made, network=50.0)))
    ideal = placed(tp.JobGraph.allreduce(8 * count), tp.Cluster(tp.Topology.cluster(H100, 64, network=50.0)))
    assert found.time == pytest.approx(ideal.time)
    assert not slow & {*found.topology.machine_of[list(found.gpus)].tolist()}


def test_n3_a_job_stays_in_the_leaves_of_the_fast_half() -> None:
    """Half of the leaves have A100s with 25 GB/s each, half of them H100s with 50."""
    topology = in_leaves([4] * 4)
    slow = replace(A100, nics=tuple(replace(nic, gb_per_s=25.0) for nic in A100.nics))
    mixed = tp.Topology.cluster(
        [slow if leaf in {0, 2} else H100 for leaf in topology.levels[0].codes.tolist()],
        fabric=topology.fabric,
    )
    found = placed(tp.JobGraph.allreduce(64), tp.Cluster(mixed))
    models = {mixed.gpus[gpu].model for gpu in found.gpus}
    assert models == {"H100"}
    assert found.time == pytest.approx(placed(tp.JobGraph.allreduce(64), tp.Cluster(topology)).time)


def test_n4_two_boxes_of_pcie_are_no_faster_than_their_pcie_links() -> None:
    box = tp.machines.get("l40s-8")
    nics = tuple(
        Nic(f"nic{i}", tuple("PIX" if gpu == i else "SYS" for gpu in range(8)), 200.0) for i in range(8)
    )
    topology = tp.Topology.cluster(replace(box, nics=nics), 2, network=200.0)
    job = tp.JobGraph.from_edges(2, [(0, 1, 1.0)])
    found = tp.communication_time(job, (0, 8), topology)
    pcie = max(link[2].gb_per_s for link in [(0, 1, box.link(0, 1))])
    assert found.seconds >= 0.5 / (pcie * 1.5)
    assert "PCIe" in found.slowest


SQUARE = ((0, 1, 50.0), (0, 2, 50.0), (1, 3, 50.0), (2, 3, 50.0))


def test_n5_links_between_machines_are_ports() -> None:
    topology = tp.Topology.from_links(4, SQUARE, machines=["a", "a", "b", "b"])
    job = tp.JobGraph.from_edges(4, [(0, 1, 1.0), (0, 2, 1.0), (1, 3, 1.0), (2, 3, 1.0)])
    assert placed(job, tp.Cluster(topology)).time == pytest.approx(0.01)
    placed(tp.JobGraph.ring(4), tp.Cluster(topology))  # the bound is no longer than its time


@pytest.mark.parametrize("name", ["dgx-h100", "dgx-a100", "hgx-b200", "dgx2", "dgx1-v100", "l40s-8"])
def test_n6_one_machine_as_a_cluster_is_the_machine(name: str) -> None:
    machine = tp.machines.get(name)
    cluster = tp.Topology.cluster(machine, 1)
    for size in (2, 4, 8):
        job = tp.JobGraph.allreduce(size)
        one, other = (placed(job, tp.Cluster(each)) for each in (machine, cluster))
        assert one.time == other.time
        assert one.gpus == other.gpus
        assert collective.ring_bandwidth(cluster, one.gpus) == collective.ring_bandwidth(machine, one.gpus)


def test_n7_a_pair_of_two_sockets_has_rings_no_faster_than_its_link() -> None:
    pair = tp.Topology.from_links(2, [(0, 1, 6.0, LinkKind.SYSTEM)], sockets=[0, 0], model="V100")
    assert collective.ring_bandwidth(pair, [0, 1]) <= 6.0
    known = tp.Topology.from_links(4, [], 12.0, model="A100")
    pix = tp.Topology.from_links(
        4, [(u, v, 12.0, LinkKind.PCIE) for v in range(4) for u in range(v)], model="A100"
    )
    unknown, switched = (collective.ring_bandwidth(one, range(4)) for one in (known, pix))
    assert unknown <= switched


def test_n8_adapters_of_all_trays_of_a_rack_count() -> None:
    rack = tp.machines.get("gb200-nvl72")
    racks = tp.Topology.cluster([rack] * 3, network=50.0)
    gpus = [72 * number + gpu for number in range(3) for gpu in range(8)]
    assert collective.ring_bandwidth(racks, gpus) == pytest.approx(400.0, rel=0.05)
    one_tray = collective.ring_bandwidth(racks, range(4))
    assert one_tray == collective.ring_bandwidth(racks, range(0, 16, 4))


# ---- the search ----------------------------------------------------------------------------------------------


def _strided(rings: int, size: int, light: float = 1.0) -> tp.JobGraph:
    """Return rings of heavy edges with strided ranks, and light edges from each to the next one."""
    heavy = [
        (min(a, b), max(a, b), 100.0)
        for ring in range(rings)
        for i in range(size)
        for a, b in [(ring + rings * i, ring + rings * ((i + 1) % size))]
    ]
    bridges = [(rings * i, rings * i + 1, light) for i in range(size)]
    return tp.JobGraph.from_edges(rings * size, [*heavy, *bridges])


@pytest.mark.parametrize("rings", [2, 4, 32])
def test_s1_strided_rings_are_each_on_one_machine(rings: int) -> None:
    job = _strided(rings, 8)
    found = placed(job, tp.Cluster(tp.Topology.cluster(H100, rings, network=50.0)))
    machine = found.topology.machine_of[list(found.gpus)]
    assert [(a, b) for a, b, weight in job.edges if weight > 1 and machine[a] != machine[b]] == []


def test_s2_a_job_of_four_machines_has_four() -> None:
    found = placed(tp.JobGraph.allreduce(32), tp.Cluster(in_leaves([3, 3, 2])))
    assert tasks_of_machines(found) == [8] * 4


@pytest.mark.parametrize("sizes", [(18, 18, 17, 18), (32, 32, 32, 30)])
def test_s2_forty_machines_of_racks(sizes: Sequence[int]) -> None:
    found = placed(tp.JobGraph.allreduce(320), tp.Cluster(in_leaves(sizes, name="rack")))
    assert tasks_of_machines(found) == [8] * 40


@pytest.mark.parametrize("seed", range(60))
def test_s2_uneven_fabrics(seed: int) -> None:
    draws = random.Random(seed)
    sizes = [draws.randint(1, 12) for _ in range(draws.randint(2, 5))]
    needed = draws.randint(1, sum(sizes))
    found = placed(tp.JobGraph.allreduce(8 * needed), tp.Cluster(in_leaves(sizes)))
    assert tasks_of_machines(found) == [8] * needed


def test_s3_domains_that_fit_exactly() -> None:
    found = placed(tp.JobGraph.allreduce(32), tp.Cluster(in_leaves([3, 2, 2])))
    assert domains(found) == [2, 2]
    found = placed(tp.JobGraph.allreduce(160), tp.Cluster(in_leaves([19, 10, 10])))
    assert domains(found) == [10, 10]


def test_s6_tensor_pairs_of_two_dgx1() -> None:
    topology = tp.Topology.cluster(tp.machines.get("dgx1-v100"), 2)
    cluster = with_free(topology, [[0, 3, 4], [1, 3, 6]])
    found = placed(tp.JobGraph.parallel(tensor=2, data=2), cluster)
    assert found.time <= 0.40 * 1.01


@pytest.mark.parametrize("size", [1, 2, 3, 4])
def test_s8_a_used_machine_before_an_idle_one(size: int) -> None:
    cluster = tp.Cluster(in_leaves([2] * 3))
    cluster.allocate("fills the leaf", range(8))
    cluster.allocate("half", range(16, 20))
    found = placed(tp.JobGraph.allreduce(size) if size > 1 else tp.JobGraph.independent(1), cluster)
    assert {*found.topology.machine_of[list(found.gpus)].tolist()} == {2}


def test_s10_another_division_is_tried_where_pairs_have_no_path() -> None:
    """Two of three machines have a path between their GPUs; the first division takes others."""
    links = [(0, 1, 50.0), (2, 3, 50.0), (4, 5, 50.0), (1, 2, 20.0), (3, 4, 20.0)]
    topology = tp.Topology.from_links(6, links, 0.0, machines=list("aabbcc"), network=0.0)
    for ranks in ((0, 1, 2, 3), (2, 3, 4, 5)):
        cluster = tp.Cluster(topology)
        for gpu in {*range(6)} - {*ranks}:
            cluster.drain(gpu)
        assert tp.place(tp.JobGraph.chain(4), cluster) is not None
    assert tp.place(tp.JobGraph.chain(6), tp.Cluster(topology)) is not None


@pytest.mark.parametrize("seed", range(20))
def test_s11_anti_affine_tasks_have_a_machine_each(seed: int) -> None:
    draws = random.Random(seed)
    racks = draws.choice([1, 2, 3])
    machine = tp.Topology.from_links(
        4, [(u, v, 300.0, LinkKind.NVSWITCH) for v in range(4) for u in range(v)], model="H100"
    )
    topology = tp.Topology.cluster(machine, 3 * racks, racks=3, network=0.0)
    size = draws.randint(2, 3)
    job = tp.JobGraph.allreduce(size).with_(anti_affinity=True, within="rack")
    found = tp.place(job, tp.Cluster(topology))
    if found is not None:
        assert tasks_of_machines(found) == [1] * size


def _racks_of_trays(racks: int, trays: int, pods: int) -> tp.Topology:
    """Return NVLink racks of trays of four GB200, in pods below a core."""
    n = racks * trays
    levels = (
        tp.Level("rack", tuple(f"r{i // trays}" for i in range(n)), kind=LinkKind.NVSWITCH),
        tp.Level("pod", tuple(f"p{i // trays * pods // racks}" for i in range(n)), 50.0),
        tp.Level("core", ("c",) * n, 50.0, 2.0),
    )
    tray = tp.machines.get("gb200-nvl72").template(0)
    return tp.Topology.cluster(tray, fabric=tp.Fabric(tuple(f"t{i}" for i in range(n)), levels))


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(
    ("racks", "trays", "pods", "size"),
    [(4, 2, 2, 5), (4, 8, 2, 30), (8, 16, 2, 56), (8, 16, 4, 60), (8, 18, 2, 64)],
)
def test_s13_a_job_that_fits_a_rack_of_trays_stays_there(
    racks: int, trays: int, pods: int, size: int, seed: int
) -> None:
    draws, each = random.Random(seed), 4 * trays
    cluster = tp.Cluster(_racks_of_trays(racks, trays, pods))
    for rack in range(racks):
        free = draws.choice([size, size - 1, each // 2, each - 1, each]) if rack else size
        for gpu in draws.sample(range(each), each - free):
            cluster.drain(rack * each + gpu)
    found = placed(tp.JobGraph.allreduce(size), cluster)
    assert len({gpu // each for gpu in found.gpus}) == 1
    assert found.optimal


@pytest.mark.parametrize("size", [10, 11])
def test_a_ring_takes_one_socket_of_each_machine_where_that_is_faster(size: int) -> None:
    topo = tp.Topology.cluster([tp.machines.get("summit")] * 4)
    job = tp.JobGraph.ring(size)
    placement = tp.place(job, tp.Cluster(topo))
    assert placement is not None
    sockets = {(topo.gpus[gpu].machine, topo.gpus[gpu].socket) for gpu in placement.gpus}
    assert len(sockets) == 4
    over_two = tp.communication_time(job, range(size), topo)
    assert placement.time is not None
    assert placement.time < over_two.seconds / 3


def test_s10_a_triangle_over_machines_without_a_network() -> None:
    """The only three GPUs with links for each pair are on two machines, which no division of machines names."""
    links = [(0, 2, 25.0), (1, 3, 25.0), (0, 4, 10.0), (1, 5, 50.0), (1, 7, 10.0), (4, 5, 10.0), (5, 7, 10.0)]
    topology = tp.Topology.from_links(8, links, 0.0, machines=list("aaaabbbb"), network=0.0)
    assert sorted(placed(tp.JobGraph.clique(3), tp.Cluster(topology)).gpus) == [1, 5, 7]


def test_a_ring_is_in_the_order_of_its_tasks_where_those_of_one_machine_have_no_link() -> None:
    pair, apart = tp.Topology.from_links(2, [], 12.0), tp.Topology.from_links(3, [], 0.0)
    cluster = tp.Cluster(tp.Topology.cluster([pair, replace(apart, partitions=((0, 1),))], network=12.5))
    placement = placed(tp.JobGraph.ring(4), cluster)
    assert placement.gpus == (0, 2, 1, 3)
    assert placement.time == pytest.approx(1.5 / 12.0)


@pytest.mark.parametrize(
    "job", [tp.JobGraph.parallel(tensor=8, data=2), tp.JobGraph.parallel(tensor=2, data=8)]
)
def test_a_job_of_at_most_two_machines_is_mapped_as_others_are(job: tp.JobGraph) -> None:
    cluster = tp.Cluster(in_leaves([2, 2]))
    assert placed(job.with_(max_machines=2), cluster).time == pytest.approx(placed(job, cluster).time)
