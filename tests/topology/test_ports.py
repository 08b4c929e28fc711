"""The ports of topologies: routes as fast as `bandwidth` says, and what clusters, rails and adapters are made of."""

from __future__ import annotations

import tracemalloc
from collections.abc import Sequence

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given

import topoplace as tp
from topoplace.kernels import Flows
from topoplace.testing.strategies import cluster_topologies, topologies
from topoplace.topology.devices import Nic
from topoplace.topology.links.link_kinds import LinkKind
from topoplace.topology.ports import Port, Ports

KINDS = [kind for kind in LinkKind if kind not in (LinkKind.SELF, LinkKind.NONE)]


def lowest(topology: tp.Topology, u: int, v: int) -> float:
    """Return the lowest speed of the ports between two GPUs; 0 without a path."""
    ports = topology.derived(Ports)
    hops = ports.network.route(u, v)
    return 0.0 if hops is None else min(float(ports.gb_per_s[hop // 2]) for hop in hops)


def called(port: Port) -> str:
    """Return the name of a port, with the ids of its GPUs."""
    ids = ", ".join(map(str, port.gpus))
    return f"{port.what} of GPU{'s' * (len(port.gpus) > 1)} {ids}" if ids else port.what


def names(topology: tp.Topology, u: int, v: int) -> list[str]:
    ports = topology.derived(Ports)
    hops = ports.network.route(u, v)
    return [] if hops is None else [called(ports.port(hop // 2)) for hop in hops]


def speeds(topology: tp.Topology) -> dict[str, float]:
    ports = topology.derived(Ports)
    return {called(ports.port(i)): float(speed) for i, speed in enumerate(ports.gb_per_s)}


def pairs(topology: tp.Topology) -> list[tuple[int, int]]:
    n = topology.num_gpus
    return [(u, v) for u in range(n) for v in range(n) if u != v]


@pytest.mark.parametrize("name", tp.machines.names())
def test_paths_of_built_in_machines_are_as_fast_as_their_links(name: str) -> None:
    topology = tp.machines.get(name)
    some = pairs(topology)[:: max(1, topology.num_gpus // 16)]
    for u, v in some:
        assert lowest(topology, u, v) == pytest.approx(topology.bandwidth(u, v))


@st.composite
def mixed_machines(draw: st.DrawFn) -> tp.Topology:
    """Machines in which any pair has any link: more than any real machine has."""
    n = draw(st.integers(2, 6))
    links = [
        (u, v, draw(st.sampled_from([1.0, 5.0, 12.0, 25.0])), draw(st.sampled_from(KINDS)))
        for v in range(n)
        for u in range(v)
        if draw(st.booleans())
    ]
    return tp.Topology.from_links(n, links, draw(st.sampled_from([0.0, 12.0])))


@given(topologies() | mixed_machines())
def test_paths_of_any_machine_are_as_fast_as_its_links(topology: tp.Topology) -> None:
    for u, v in pairs(topology):
        assert lowest(topology, u, v) == pytest.approx(topology.bandwidth(u, v))


@given(cluster_topologies())
def test_paths_of_clusters_are_at_least_as_fast_as_if_all_used_them(topology: tp.Topology) -> None:
    """A pair alone may have more than its share of an oversubscribed level, which `bandwidth` tells.

    It may have less if it meets above that level, or if the PCIe link of a GPU is slower: `bandwidth` tells only of
    the level at which it meets.
    """
    ports = topology.derived(Ports)
    link_speeds = speeds(topology)
    share = min((1 / level.oversubscription for level in topology.levels), default=1.0)
    for u, v in pairs(topology):
        stated = topology.bandwidth(u, v)
        if topology.machine_of[u] == topology.machine_of[v]:
            assert lowest(topology, u, v) == pytest.approx(stated)
            continue
        assert (lowest(topology, u, v) == 0) == (stated == 0)
        own = min(ports.adapter_speeds[topology.machine_of[gpu]] for gpu in (u, v))
        own = min(own, *(link_speeds.get(f"PCIe link of GPU {gpu}", np.inf) for gpu in (u, v)))
        assert lowest(topology, u, v) >= min(stated, own * share) * (1 - 1e-9)


def box(gpus: int = 2, nics: int | None = None, gb_per_s: float = 50.0, nvlink: float = 0.0) -> tp.Topology:
    """A machine of GPUs on one PCIe switch, each adapter near to as many of them; with NVSwitches if `nvlink`."""
    nics = gpus if nics is None else nics
    kind, speed = (LinkKind.NVSWITCH, nvlink) if nvlink else (LinkKind.PCIE, 64.0)
    return tp.Topology.from_links(
        gpus,
        [(u, v, speed, kind) for v in range(gpus) for u in range(v)],
        nics=[
            Nic(
                f"mlx5_{i}",
                tuple("PIX" if gpu * nics // gpus == i else "SYS" for gpu in range(gpus)),
                gb_per_s,
            )
            for i in range(nics)
        ],
    )


def joined(
    machine: tp.Topology | Sequence[tp.Topology],
    count: int,
    *levels: tp.Level,
    network: float | None = None,
) -> tp.Topology:
    fabric = tp.Fabric(tuple(f"m{i}" for i in range(count)), levels)
    return tp.Topology.cluster(machine, fabric=fabric, network=network)


def level(
    name: str, domains: str, gb_per_s: float | None = 50.0, oversubscription: float = 1.0, **more: object
) -> tp.Level:
    """A level whose domains are named by one character each; "-" for none."""
    listed = tuple(None if one == "-" else name[0] + one for one in domains)
    return tp.Level(name, listed, gb_per_s, oversubscription, **more)  # type: ignore[arg-type]


def own_ports(gpu: int, adapter: int) -> list[str]:
    """Return the ports of a GPU of a box without NVSwitches on its way into the network."""
    return [f"PCIe link of GPU {gpu}", f"adapter mlx5_{adapter} of GPU {gpu}"]


def test_leaves_and_spines() -> None:
    topology = joined(box(), 4, level("leaf", "0011"), level("spine", "0000", 50.0, 4.0))
    assert names(topology, 0, 1) == ["PCIe link of GPU 0", "PCIe link of GPU 1"]
    assert names(topology, 0, 2) == own_ports(0, 0) + own_ports(2, 0)
    far = [*own_ports(1, 1), "uplink of leaf l0", *own_ports(4, 0), "uplink of leaf l1"]
    assert names(topology, 1, 4) == far
    assert speeds(topology)["uplink of leaf l0"] == 2 * 2 * 50 / 4
    assert "uplink of machine m0" not in speeds(topology)


def test_an_oversubscribed_innermost_level_narrows_machines() -> None:
    topology = joined(box(), 2, level("rack", "00", 50.0, 2.0))
    assert speeds(topology)["uplink of machine m1"] == 2 * 50 / 2
    assert topology.bandwidth(0, 2) == 50 / 2 == speeds(topology)["uplink of machine m1"] / 2


def test_rails_are_apart() -> None:
    topology = joined(box(), 4, level("pod", "0011", rail=True), level("spine", "0000", 50.0, 2.0))
    assert names(topology, 0, 2) == own_ports(0, 0) + own_ports(2, 0)
    assert names(topology, 0, 3)[2::3] == ["uplink of rail 0 of pod p0", "uplink of rail 1 of pod p0"]
    assert names(topology, 1, 5)[2::3] == ["uplink of rail 1 of pod p0", "uplink of rail 1 of pod p1"]
    assert speeds(topology)["uplink of rail 1 of pod p1"] == 2 * 50 / 2


def test_pxn_relays_over_nvswitches_to_the_right_rail() -> None:
    pods = level("pod", "0011", rail=True, pxn=True)
    topology = joined(box(nvlink=450.0), 4, pods, level("spine", "0000", 50.0, 2.0))
    relayed = ["NVLinks of GPU 0", "adapter mlx5_1 of GPU 1", "NVLinks of GPU 1", "adapter mlx5_1 of GPU 3"]
    assert sorted(names(topology, 0, 3)) == sorted(relayed)
    assert "adapter mlx5_0 of GPU 2" in names(topology, 3, 0)  # the way back is by another relay
    assert names(topology, 0, 2) == ["adapter mlx5_0 of GPU 0", "adapter mlx5_0 of GPU 2"]
    assert names(topology, 0, 1) == ["NVLinks of GPU 0", "NVLinks of GPU 1"]
    far = [name for name in names(topology, 0, 5) if name.startswith("uplink")]
    assert far == ["uplink of rail 1 of pod p0", "uplink of rail 1 of pod p1"]


def test_pxn_needs_nvswitches_and_a_gpu_on_the_rail() -> None:
    pods = level("pod", "00", rail=True, pxn=True)
    for machines in (box(), [box(nvlink=450.0, gpus=1, nics=1), box(nvlink=450.0)]):
        topology = joined(machines, 2, pods, level("spine", "00"))
        first = next(name for name in names(topology, 0, topology.num_gpus - 1) if name.startswith("adapter"))
        assert first == "adapter mlx5_0 of GPU 0"


def test_a_slow_adapter_makes_no_uplink_slower() -> None:
    machines = [box(gb_per_s=25.0), box(), box(gb_per_s=25.0), box(gb_per_s=25.0)]
    topology = joined(machines, 4, level("leaf", "0011"), level("spine", "0000", 50.0, 4.0))
    assert speeds(topology)["uplink of leaf l0"] == 4 * 50 / 4
    assert speeds(topology)["uplink of leaf l1"] == 4 * 25 / 4


def test_nvlink_domains_of_several_machines() -> None:
    rack = level("rack", "0011", None, kind=LinkKind.NVSWITCH)
    topology = joined(box(nvlink=900.0), 4, rack, level("spine", "0000"))
    assert names(topology, 0, 1) == names(topology, 0, 1) == ["NVLinks of GPU 0", "NVLinks of GPU 1"]
    assert names(topology, 1, 2) == ["NVLinks of GPU 1", "NVLinks of GPU 2"]
    assert lowest(topology, 1, 2) == 900
    assert names(topology, 1, 4)[0] == "adapter mlx5_1 of GPU 1"
    assert lowest(topology, 1, 4) == 50


def test_without_a_network_traffic_passes_each_port_once() -> None:
    apart = tp.Topology.cluster(box(), 2, network=0.0)
    assert names(apart, 0, 1) == ["PCIe link of GPU 0", "PCIe link of GPU 1"]
    assert names(apart, 0, 2) == []


def test_machines_in_no_domain_meet_above() -> None:
    topology = joined(box(), 3, level("leaf", "00-"), network=20.0)
    assert names(topology, 0, 2) == own_ports(0, 0) + own_ports(2, 0)
    assert names(topology, 0, 4) == [*own_ports(0, 0), "uplink of leaf l0", *own_ports(4, 0)]
    assert speeds(topology)["uplink of leaf l0"] == 4 * 20
    apart = joined(box(), 3, level("leaf", "00-"), network=0.0)
    assert names(apart, 0, 4) == []
    assert names(apart, 0, 2)


def test_gpus_share_an_adapter() -> None:
    topology = joined(box(4, nics=2), 2, level("leaf", "00"))
    assert names(topology, 0, 5)[1::2] == ["adapter mlx5_0 of GPUs 0, 1", "adapter mlx5_0 of GPUs 4, 5"]
    ends = np.array([[0, 4], [1, 5], [2, 6]], np.int32)
    network = topology.derived(Ports).network

    def seconds(*flows: int) -> float:
        chosen = ends[list(flows)]
        gigabytes = np.full(len(flows), 50.0)
        asked = Flows([len(flows)], chosen[:, 0].copy(), chosen[:, 1].copy(), gigabytes, 0 * gigabytes)
        return network.phase_times(asked)[0].seconds

    assert seconds(0) == seconds(0, 2) == 1.0
    assert seconds(0, 1) == 2.0


def test_degraded_parts_are_slower_ports() -> None:
    slow = box(gb_per_s=12.5)
    topology = joined([box(), slow], 2, level("leaf", "00"))
    assert lowest(topology, 0, 2) == 12.5
    assert speeds(topology)["adapter mlx5_0 of GPU 0"] == 50
    links = [(u, v, 24.0, LinkKind.PCIE) for v in range(4) for u in range(v)]
    links[0] = (0, 1, 6.0, LinkKind.PCIE)
    machine = tp.Topology.from_links(4, links)
    assert lowest(machine, 0, 1) == 6
    assert lowest(machine, 0, 2) == 24
    assert names(machine, 0, 1)[0].endswith("link of GPUs 0, 1")
    lanes = tp.Topology.from_links(2, [(0, 1, 25.0, LinkKind.NVLINK2, 1)])
    assert (lowest(lanes, 0, 1), names(lanes, 0, 1)) == (25, [f"{LinkKind.NVLINK2.label} link of GPUs 0, 1"])


def test_gpus_without_a_path_are_not_joined_by_the_network() -> None:
    machine = tp.Topology.from_links(2, [], 0.0)
    topology = joined(machine, 2, level("leaf", "00"))
    assert lowest(topology, 0, 1) == topology.bandwidth(0, 1) == 0
    assert lowest(topology, 0, 2) == 50


@pytest.mark.parametrize(
    ("port", "text"),
    [
        (Port("uplink of leaf l3"), "uplink of leaf l3"),
        (Port("PCIe link", (17,)), "PCIe link of machine1 1"),
        (Port("adapter mlx5_0", (14, 15)), "adapter mlx5_0 of machine0 14,15"),
        (Port("uplink of the socket", tuple(range(9))), "uplink of the socket of machine0 0–7, ..."),
    ],
)
def test_what_a_port_is_called(port: Port, text: str) -> None:
    assert port.in_words(tp.Topology.cluster(tp.machines.get("dgx2"), 2)) == text


def test_a_port_of_a_machine_alone_is_named_by_device_numbers() -> None:
    assert Port("PCIe link", (2, 3)).in_words(tp.machines.get("dgx2")) == "PCIe link of GPUs 2, 3"


def test_every_port_has_a_number_and_a_name() -> None:
    topology = joined([box(), box(4), box()], 3, level("leaf", "001"), level("spine", "000", 50.0, 2.0))
    ports = topology.derived(Ports)
    owners = {port.gpus for port in map(ports.port, range(len(ports.gb_per_s))) if port.gpus}
    assert {gpu for gpus in owners for gpu in gpus} == set(range(topology.num_gpus))
    assert len(speeds(topology)) == len(ports.gb_per_s)


def test_the_ports_of_a_hundred_thousand_gpus_are_small() -> None:
    count = 12_500
    topology = joined(
        box(8, nvlink=450.0),
        count,
        tp.Level("leaf", tuple(f"l{i // 16}" for i in range(count)), 50.0),
        tp.Level("pod", tuple(f"p{i // 256}" for i in range(count)), 50.0, 2.0),
    )
    tracemalloc.start()
    ports = topology.derived(Ports)
    kept, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert len(ports.near_order) == 100_000
    assert peak < 200e6
    assert kept < 50e6


def test_speeds_of_machines_whose_gpus_alternate() -> None:
    topology = tp.Topology.from_links(4, [], machines=["a", "b", "c", "b"], network=5.0)
    assert topology.derived(Ports).adapter_speeds.tolist() == [5.0, 5.0, 5.0]


def test_gpus_without_any_port() -> None:
    apart = tp.Topology.from_links(3, [], 0.0)
    assert apart.derived(Ports).most_of_a_gpu == 0.0
    assert tp.place(tp.JobGraph.ring(2), tp.Cluster(apart)) is None
    assert tp.place(tp.JobGraph.independent(2), tp.Cluster(apart)) is not None


def test_a_slow_pcie_link_limits_the_way_to_the_adapter() -> None:
    """Only on machines whose GPUs have no NVSwitches: of others, no PCIe link is known."""
    links = [(0, 1, 16.0, LinkKind.PCIE)]
    topology = joined(tp.Topology.from_links(2, links), 2, level("leaf", "00"))
    assert lowest(topology, 0, 2) == 16
    assert lowest(joined(box(nvlink=450.0), 2, level("leaf", "00")), 0, 2) == 50
