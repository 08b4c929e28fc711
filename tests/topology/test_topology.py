from __future__ import annotations

import json
import math
import pickle
from typing import Any

import networkx as nx
import numpy as np
import pytest

import topoplace as tp

Topology, LinkKind = tp.Topology, tp.LinkKind
NAN, INF = math.nan, math.inf

# Two machines of two sockets, one GPU each, with an NVLink inside the first and a known path to a NIC.
RICH = Topology.from_links(
    4,
    [(0, 1, 50.0, LinkKind.NVLINK2, 2), (0, 2, 3.0), (2, 3, 12.0, LinkKind.PCIE)],
    10.0,
    name="rich",
    model="V100",
    memory_gb=32,
    sockets=[0, 1, 0, None],
    machines=["a", "a", "b", "b"],
    names=["x", "y", "x", "y"],
    network=5.0,
    nics=[tp.Nic("mlx5_0", ("PIX", "SYS", "PXB", "PHB"))],
)


def test_pairs_without_a_link_follow_the_rule() -> None:
    topo = Topology.from_links(
        4, [], sockets=[0, 0, 1, 1], machines=["a", "a", "a", "b"], default=12, network=5
    )
    assert topo.link(0, 1) == tp.Link(LinkKind.HOST, 1, 12.0)
    assert topo.link(0, 2) == tp.Link(LinkKind.SYSTEM, 1, 12.0)
    assert topo.link(2, 3) == tp.Link(LinkKind.NETWORK, 1, 5.0)
    assert topo.link(1, 1).kind is LinkKind.SELF
    assert [topo.distance(0, v) for v in range(4)] == [0.0, 1.0, 20.0, 400.0]


def test_matrices_agree_with_single_pairs() -> None:
    bandwidth, distance = RICH.bandwidth_matrix(), RICH.distance_matrix()
    lanes = RICH.link_matrix(lambda link: link.lanes, np.int8)
    for u in range(4):
        for v in range(4):
            assert bandwidth[u, v] == RICH.bandwidth(u, v) == RICH.bandwidth(v, u)
            assert distance[u, v] == RICH.distance(u, v) == RICH.pairs.native.between(u, v)
            assert lanes[u, v] == RICH.link(u, v).lanes
    assert (bandwidth.dtype, lanes.dtype) == (np.float64, np.int8)


def test_matrices_are_read_only() -> None:
    for array in (RICH.bandwidth_matrix(), RICH.distance_matrix(), RICH.machine_of):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1


def test_gpus_and_machines() -> None:
    assert (RICH.num_gpus, RICH.num_machines, RICH.machine_names) == (4, 2, ("a", "b"))
    assert RICH.gpus[1] == tp.Gpu(1, "y", "V100", "a", 1, 32.0)
    assert RICH.machine_of.tolist() == [0, 0, 1, 1]
    assert RICH.machine_of.dtype == np.int32
    assert RICH.gpus_of == {"a": (0, 1), "b": (2, 3)}
    assert RICH.local_index == (0, 1, 0, 1)


def test_links_are_equal_by_value_and_never_equal_to_a_kind() -> None:
    link = RICH.link(1, 0)
    assert link.kind is LinkKind.NVLINK2
    assert link.kind is not LinkKind.NVLINK1
    assert link == tp.Link(LinkKind.NVLINK2, 2, 50.0)
    assert link != tp.Link(LinkKind.NVLINK2, 1, 50.0)
    assert hash(link) == hash(tp.Link(LinkKind.NVLINK2, 2, 50.0))
    assert link != LinkKind.NVLINK2
    other = tp.Link(LinkKind.NVLINK2, 1, 25.0)
    assert len({link, other, LinkKind.NVLINK2}) == len({LinkKind.NVLINK2, link, other}) == 3


def test_every_copy_is_equal() -> None:
    for copy in (
        Topology.from_json(RICH.to_json()),
        Topology.from_networkx(RICH.to_networkx()),
        pickle.loads(pickle.dumps(RICH)),
    ):
        if copy.nics != RICH.nics:  # networkx has no place for adapters
            copy = Topology(copy.gpus, copy.links, copy.default, copy.network, copy.name, RICH.nics)
        assert copy == RICH
        assert hash(copy) == hash(RICH)
        assert copy.to_json() == RICH.to_json()
    assert Topology.from_links(4, []) != RICH
    assert RICH != "rich"


def test_pickle_leaves_caches_behind() -> None:
    size = len(pickle.dumps(RICH))
    RICH.bandwidth_matrix()
    assert len(pickle.dumps(RICH)) == size


def test_a_link_like_the_rule_says_nothing_new() -> None:
    assert Topology.from_links(3, [(0, 1, 12.0, "host")]) == Topology.from_links(3, [])
    assert Topology.from_links(3, [(2, 0, 9), (0, 1, 8)]) == Topology.from_links(3, [(1, 0, 8), (0, 2, 9)])


def test_from_matrix_keeps_every_bandwidth() -> None:
    matrix = np.array([[0, 50, 0], [50, 0, 12.5], [0, 12.5, 0]])
    topo = Topology.from_matrix(matrix, name="m", sockets=[0, 0, 1])
    assert (topo.bandwidth_matrix() == matrix).all()
    assert topo.link(0, 1).kind is LinkKind.UNKNOWN
    assert topo.link(0, 2).kind is LinkKind.NONE
    assert topo.distance(0, 2) == INF
    assert (topo.name, topo.gpus[2].socket) == ("m", 1)


def test_from_networkx_takes_plain_graphs() -> None:
    g = nx.Graph()
    g.add_edge("p", "q", bandwidth=50)
    g.add_node("r")
    topo = Topology.from_networkx(g)
    assert (topo.bandwidth(0, 1), topo.bandwidth(0, 2), topo.gpus[2].name) == (50.0, 12.0, "GPU2")
    assert Topology.from_networkx(g, default=0).bandwidth(0, 2) == 0.0
    with pytest.raises(tp.TopologyError, match=r"edge \(0, 1\) has no attribute 'speed'"):
        Topology.from_networkx(g, "speed")
    with pytest.raises(tp.TopologyError, match="g is a MultiGraph"):
        Topology.from_networkx(nx.MultiGraph())


def test_to_networkx_keeps_pairs_cut_off_on_purpose() -> None:
    topo = Topology.from_links(3, [(0, 1, 0.0, LinkKind.NONE, 0)])
    assert topo.link(0, 1).kind is LinkKind.NONE
    assert Topology.from_networkx(topo.to_networkx()) == topo


def test_is_immutable() -> None:
    with pytest.raises(AttributeError):
        RICH.default = 3.0  # type: ignore[misc]


def test_repr_is_short() -> None:
    assert repr(RICH) == "Topology('rich', 4 GPUs, 2 machines, 3 links)"


def test_a_hundred_thousand_gpus_are_cheap_and_have_no_matrix() -> None:
    topo = Topology.from_links(100_000, [(0, 99_999, 50.0)])
    assert topo.bandwidth(99_999, 0) == 50.0
    with pytest.raises(tp.TopologyError, match="a matrix of 100000 x 100000 is too large"):
        topo.bandwidth_matrix()


def test_digest_is_the_content() -> None:
    assert Topology.from_links(2, [(0, 1, 50)]).digest() == (
        "4ccd1f87717ba9c65c88e2811c5c5596e26965e5db3015778ea6fdf1c06568e4"
    )


def with_entry(u: int, v: int, value: float, n: int = 6) -> np.ndarray:
    matrix = np.full((n, n), 12.0)
    np.fill_diagonal(matrix, 0.0)
    matrix[u, v] = matrix[v, u] = value
    return matrix


def one_way(value: float) -> np.ndarray:
    matrix = with_entry(2, 5, 12.0)
    matrix[2, 5] = value
    return matrix


BAD_TOPOLOGIES: list[tuple[Any, str]] = [
    (lambda: Topology.from_matrix(with_entry(2, 5, NAN)), r"bandwidth\[2, 5\] = nan is not a finite number"),
    (lambda: Topology.from_matrix(with_entry(2, 5, INF)), r"bandwidth\[2, 5\] = inf is not a finite number"),
    (lambda: Topology.from_matrix(with_entry(2, 5, -1.0)), r"bandwidth\[2, 5\] = -1 is negative"),
    (lambda: Topology.from_matrix(with_entry(3, 3, 7.0)), r"bandwidth\[3, 3\] = 7 is on the diagonal"),
    (lambda: Topology.from_matrix(one_way(9.0)), r"bandwidth\[2, 5\] = 9 but bandwidth\[5, 2\] = 12"),
    (lambda: Topology.from_matrix(np.zeros((2, 3))), r"bandwidth has shape \(2, 3\)"),
    (lambda: Topology.from_matrix(np.zeros(4)), r"bandwidth has shape \(4,\)"),
    (lambda: Topology.from_matrix(7), r"bandwidth has shape \(\)"),
    (lambda: Topology.from_matrix([[0, 1], [1]]), "bandwidth has rows of different lengths"),
    (lambda: Topology.from_matrix([[0, 1j], [1j, 0]]), "bandwidth has dtype complex128"),
    (lambda: Topology.from_matrix(None), "bandwidth has dtype object"),
    (lambda: Topology.from_links(0, []), r"n = 0 is not in 1\.\."),
    (lambda: Topology.from_links(True, []), "n = True is not an integer"),
    (lambda: Topology.from_links(np.True_, []), "n = np.True_ is not"),
    (lambda: Topology.from_links(2.0, []), "n = 2.0 is not an integer"),
    (lambda: Topology.from_links(np.array([2]), []), r"n = array\(\[2\]\) is not an integer"),
    (lambda: Topology.from_links("8", []), "n = '8' is not an integer"),
    (lambda: Topology.from_links(10**9, []), r"n = 1000000000 is not in 1\.\."),
    (lambda: Topology.from_links(10**99, []), "n = 1000"),
    (lambda: Topology.from_links(3, None), "links = None is not a sequence"),
    (lambda: Topology.from_links(3, "abc"), "links = 'abc' is not a sequence"),
    (lambda: Topology.from_links(3, [7]), r"links\[0\] = 7 is not a sequence"),
    (lambda: Topology.from_links(3, [(0, 1)]), r"links\[0\] = \(0, 1\) is not \(u, v, gb_per_s"),
    (lambda: Topology.from_links(3, [(0, 3, 5.0)]), r"links\[0\]\[1\] = 3 is not in 0\.\.2"),
    (lambda: Topology.from_links(3, [(-1, 1, 5.0)]), r"links\[0\]\[0\] = -1 is not in 0\.\.2"),
    (lambda: Topology.from_links(3, [(False, 1, 5.0)]), r"links\[0\]\[0\] = False is not an integer"),
    (lambda: Topology.from_links(3, [(0.0, 1, 5.0)]), r"links\[0\]\[0\] = 0.0 is not an integer"),
    (lambda: Topology.from_links(3, [(1, 1, 5.0)]), r"links\[0\] = \(1, 1\) joins a GPU with itself"),
    (
        lambda: Topology.from_links(3, [(0, 1, 5.0), (1, 2, 5.0), (1, 0, 5.0)]),
        r"links\[2\] = \(1, 0\) is the pair of links\[0\]",
    ),
    (lambda: Topology.from_links(3, [(0, 1, NAN)]), r"links\[0\]\[2\] = nan is not a finite number"),
    (lambda: Topology.from_links(3, [(0, 1, 0)]), r"links\[0\]\[2\] = 0 is not above 0"),
    (lambda: Topology.from_links(3, [(0, 1, "5")]), r"links\[0\]\[2\] = '5' is not a number"),
    (lambda: Topology.from_links(3, [(0, 1, 10**400)]), r"links\[0\]\[2\] = 1000"),
    (
        lambda: Topology.from_links(3, [(0, 1, 5, "nvlink9")]),
        r"links\[0\]\[3\] = 'nvlink9' is not a LinkKind",
    ),
    (lambda: Topology.from_links(3, [(0, 1, 5, "xgmi", 0)]), r"links\[0\]\[4\] = 0 is not in 1\.\."),
    (lambda: Topology.from_links(3, [(0, 1, 5, "self")]), r"links\[0\]: 5 GB/s over a link of kind SELF"),
    (lambda: Topology.from_links(3, [], -1), "default = -1 is not at least 0"),
    (lambda: Topology.from_links(3, [], NAN), "default = nan"),
    (lambda: Topology.from_links(3, [], network=INF), "network = inf"),
    (lambda: Topology.from_links(3, [], name=""), "name = '' is not a non-empty string"),
    (lambda: Topology.from_links(3, [], model=5), r"gpus\[0\].model = 5"),
    (lambda: Topology.from_links(3, [], memory_gb=0), r"gpus\[0\].memory_gb = 0 is not above 0"),
    (lambda: Topology.from_links(3, [], sockets=[0, 1]), "sockets has 2 entries for 3 GPUs"),
    (lambda: Topology.from_links(3, [], sockets=[0, 0, -1]), r"gpus\[2\].socket = -1"),
    (lambda: Topology.from_links(3, [], machines=["a", "b", 3]), r"gpus\[2\].machine = 3"),
    (lambda: Topology.from_links(3, [], nics=[tp.Nic("m", ("PIX",))]), r"nics\[0\].paths has 1 entries"),
    (
        lambda: Topology.from_links(1, [], nics=[tp.Nic("m", ("NV1",))]),
        r"nics\[0\].paths\[0\] = 'NV1' is none",
    ),
    (lambda: Topology.from_links(1, [], nics=["m"]), r"nics\[0\] = 'm' is not a Nic"),
    (
        lambda: Topology.from_links(1, [], nics=[tp.Nic("m", ("PIX",))] * 2),
        r"nics\[1\].name = 'm' appears twice",
    ),
    (lambda: Topology((tp.Gpu(1, "a"),)), r"gpus\[0\].index = 1 is not 0"),
    (lambda: Topology(("a",)), r"gpus\[0\] = 'a' is not a Gpu"),
    (lambda: RICH.bandwidth(0, 4), r"v = 4 is not in 0\.\.3"),
    (lambda: RICH.distance(-1, 2), r"u = -1 is not in 0\.\.3"),
]


@pytest.mark.parametrize(("build", "message"), BAD_TOPOLOGIES, ids=[message for _, message in BAD_TOPOLOGIES])
def test_bad_topology_is_refused_by_name(build: Any, message: str) -> None:
    with pytest.raises(tp.TopologyError, match=message):
        build()


def edited(*path: Any, value: Any) -> str:
    data = json.loads(RICH.to_json())
    place = data
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = value
    return json.dumps(data)


BAD_JSON = [
    ("", "not JSON"),
    ("[" * 100_000, "not JSON: "),
    ("[]", r"the text = \[\] is not an object"),
    ("{}", "the text has no key"),
    (edited("format", value="x"), "format and version = "),
    (edited("version", value=3), "format and version = .*3"),
    (edited("colour", value=2), "the text has an unknown key 'colour'"),
    (edited("gpus", value=[]), "gpus has 0 entries"),
    (edited("gpus", value=3), "gpus = 3 is not a sequence"),
    (edited("gpus", 1, value=None), r"gpus\[1\] = None is not an object"),
    (edited("gpus", 1, "speed", value=1), r"gpus\[1\] has an unknown key 'speed'"),
    (edited("gpus", 1, "name", value=1), r"gpus\[1\].name = 1"),
    (edited("links", 0, value=[0, 1]), r"links\[0\] = \(0, 1\) is not"),
    (edited("links", 0, 2, value=NAN), r"links\[0\]\[2\] = nan"),
    (edited("links", 0, 3, value=[]), r"links\[0\]\[3\] = \[\] is not a LinkKind"),
    (edited("links", 0, 0, value=9), r"links\[0\]\[0\] = 9"),
    (edited("default", value=None), "default = None is not a number"),
    (edited("nics", 0, "paths", value={}), r"nics\[0\].paths = {} is not a sequence"),
]


@pytest.mark.parametrize(("text", "message"), BAD_JSON, ids=[message for _, message in BAD_JSON])
def test_bad_json_is_refused_by_name(text: str, message: str) -> None:
    with pytest.raises(tp.TopologyError, match=message):
        Topology.from_json(text)


def test_json_of_another_type_is_refused() -> None:
    with pytest.raises(tp.TopologyError, match="not JSON"):
        Topology.from_json(None)  # type: ignore[arg-type]


def test_links_read_by_columns_and_one_by_one_are_the_same() -> None:
    pairs = [(3, 1, 50.0, "nvlink2", 2), (0, 1, 25.0, LinkKind.NVLINK2, 1), (0, 2, 12.0, LinkKind.HOST, 1)]
    mixed = [pairs[0], [*pairs[1]], (np.int64(0), 2, np.float32(12.0), LinkKind.HOST, np.int8(1))]
    quick, slow = Topology.from_links(4, pairs), Topology.from_links(4, mixed)
    assert quick == slow == Topology.from_links(4, quick.links)
    assert [(u, v) for u, v, _ in quick.links] == [(0, 1), (1, 3)]  # (0, 2) is what the rule gives


@pytest.mark.parametrize(
    ("place", "wrong", "message"),
    [
        (0, 700, "links[300][0] = 700 is not in 0..699"),
        (1, True, "links[300][1] = True is not an integer"),
        (1, 0, "links[300] = (0, 0) joins a GPU with itself"),
        (1, 5, "links[300] = (0, 5) is the pair of links[4]"),
        (2, float("nan"), "links[300][2] = nan is not a finite number"),
        (2, True, "links[300][2] = True is not a number"),
        (3, "warp", "links[300][3] = 'warp' is not a LinkKind"),
        (4, True, "links[300][4] = True is not an integer"),
    ],
)
def test_one_wrong_link_of_many_is_named(place: int, wrong: object, message: str) -> None:
    links: list[list[Any]] = [[0, v, 25.0, "nvlink2", 1] for v in range(1, 700)]
    links[300][place] = wrong
    with pytest.raises(tp.TopologyError) as error:
        Topology.from_links(700, links)  # type: ignore[arg-type]
    assert str(error.value) == message
    with pytest.raises(tp.TopologyError) as error:
        Topology.from_links(700, map(tuple, links))  # type: ignore[arg-type]
    assert str(error.value) == message


@pytest.mark.parametrize(
    "links",
    [
        *([(0, 1)], [3], ["ab"], [(0, 1, 2, 3, 4, 5)], 7, [None], [(0, 1, None)]),
        *([(0, 1, tp.Link("warp", 1, 5.0))], [(0, 1, tp.Link(LinkKind.PCIE, 0, 5.0))]),  # type: ignore[arg-type]
    ],
)
def test_what_is_no_link_is_refused(links: Any) -> None:
    with pytest.raises(tp.TopologyError, match="links"):
        Topology.from_links(4, links)
    with pytest.raises(tp.TopologyError, match="links"):
        Topology(tp.machines.get("minsky").gpus, links)


@pytest.mark.parametrize("uuid", ["GPU-1$(touch x)", "GPU-1;x", "GPU-1 2", "GPU-1\n2", "GPU-`x`", "'GPU-1'"])
def test_a_uuid_holds_nothing_that_a_shell_reads(uuid: str) -> None:
    with pytest.raises(tp.TopologyError, match=r"gpus\[0\].uuid = .* is not a UUID"):
        tp.Topology([tp.Gpu(0, "G", uuid=uuid)])
