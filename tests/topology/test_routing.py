from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from topoplace import Component, ComponentKind, Gpu, Link, LinkKind, Topology, TopologyError
from topoplace.topology.routing import Paths

RANKS = [
    LinkKind.PCIE,
    LinkKind.PCIE_BRIDGES,
    LinkKind.HOST,
    LinkKind.HOST_BRIDGES,
    LinkKind.SYSTEM,
    LinkKind.UNKNOWN,
]
RANK_OF_COMPONENT = {ComponentKind.PCIE_SWITCH: 0, ComponentKind.SOCKET: 2, ComponentKind.NUMA_NODE: 2}
N = 3


@st.composite
def machines(draw: st.DrawFn) -> tuple[list[Component], list[tuple[int, int, Link]]]:
    kinds = draw(st.lists(st.sampled_from(list(RANK_OF_COMPONENT)), min_size=1, max_size=5))
    components = [Component(kind, f"c{i}") for i, kind in enumerate(kinds)]
    pairs = [(a, b) for b in range(N, N + len(kinds)) for a in range(b)]
    chosen = draw(st.lists(st.sampled_from(pairs), unique=True))
    link = st.builds(Link, st.sampled_from(RANKS), st.just(1), st.sampled_from([6.0, 12.0, 24.0]))
    return components, [(a, b, draw(link)) for a, b in chosen]


def best_of_all_paths(
    components: list[Component], links: list[tuple[int, int, Link]], u: int, v: int
) -> Link | None:
    """Every simple path that passes no GPU, one by one."""
    link_of = {frozenset(entry[:2]): entry[2] for entry in links}
    found: list[tuple[float, int]] = []

    def walk(path: list[int]) -> None:
        for w in range(N + len(components)):
            link = link_of.get(frozenset((path[-1], w)))
            if link is None or w in path:
                continue
            if w == v:
                used = [link_of[frozenset(step)] for step in pairwise([*path, v])]
                through = [RANK_OF_COMPONENT[components[c - N].kind] for c in path[1:]]
                several = any(a == b == 0 for a, b in pairwise(through))  # from one PCIe switch to another
                worst = max(*(RANKS.index(one.kind) for one in used), *through, int(several))
                found.append((min(one.gb_per_s for one in used), -worst))
            elif w >= N:
                walk([*path, w])

    walk([u])
    if not found:
        return None
    gb_per_s, worst = max(found)
    return Link(RANKS[-worst], 1, gb_per_s)


@given(machines())
def test_paths_are_the_best_of_all(machine: tuple[list[Component], list[tuple[int, int, Link]]]) -> None:
    components, links = machine
    paths = Paths(N, components, links)
    matrix = np.zeros((N, N))
    paths.fill(matrix, lambda link: link.gb_per_s)
    for u in range(N):
        for v in range(N):
            if u != v:
                expected = best_of_all_paths(components, links, u, v)
                assert paths.link(u, v) == expected
                assert matrix[u, v] == (expected.gb_per_s if expected else 0.0)


def switched(lanes: list[list[int]], trunks: list[tuple[int, int]] = []) -> Topology:  # noqa: B006
    """GPUs (columns) with NVLinks of 25 GB/s into switches (rows)."""
    n = len(lanes[0])
    inside = [
        (gpu, n + i, Link(LinkKind.NVLINK3, width, 25.0 * width))
        for i, row in enumerate(lanes)
        for gpu, width in enumerate(row)
        if width
    ]
    across = [(n + a, n + b, Link(LinkKind.NVLINK3, 8, 200.0)) for a, b in trunks]
    switches = [Component(ComponentKind.NVSWITCH, f"s{i}") for i in range(len(lanes))]
    gpus = [Gpu(i, f"GPU{i}") for i in range(n)]
    return Topology(gpus, components=switches, component_links=(*inside, *across))


def test_nvswitches_work_side_by_side() -> None:
    topo = switched([[2] * 8] * 6)
    assert all(
        topo.link(u, v) == Link(LinkKind.NVSWITCH, 12, 300.0) for u in range(8) for v in range(8) if u != v
    )


def test_a_lost_link_slows_only_its_gpu() -> None:
    topo = switched([[2] * 8] * 5 + [[2] * 7 + [1]])
    assert (topo.bandwidth(0, 1), topo.bandwidth(0, 7), topo.bandwidth(7, 3)) == (300.0, 275.0, 275.0)


def test_switches_without_a_trunk_do_not_reach_each_other() -> None:
    boards = [[6, 6, 0, 0], [0, 0, 6, 6]]
    assert switched(boards).link(0, 2).kind is LinkKind.HOST
    assert switched(boards, [(0, 1)]).link(0, 2) == Link(LinkKind.NVSWITCH, 6, 150.0)


def test_a_direct_link_counts_before_any_path() -> None:
    cpu = Component(ComponentKind.SOCKET, "cpu0")
    up = [(gpu, 3, Link(LinkKind.PCIE, 1, 24.0)) for gpu in range(3)]
    gpus = [Gpu(i, f"GPU{i}") for i in range(3)]
    slow = (0, 1, Link(LinkKind.NVLINK3, 1, 14.0))
    topo = Topology(gpus, [slow], components=(cpu,), component_links=tuple(up))
    assert topo.link(0, 1).kind is LinkKind.NVLINK3
    assert topo.link(0, 2) == Link(LinkKind.HOST, 1, 24.0)


def test_json_keeps_components_and_equality_is_by_content() -> None:
    topo = switched([[2] * 4] * 2, [(0, 1)])
    assert Topology.from_json(topo.to_json()) == topo
    assert topo != switched([[2] * 4] * 2)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"component_links": [(0, 1, Link(LinkKind.PCIE, 1, 1.0))]}, r"\(0, 1\) joins two GPUs"),
        (
            {"component_links": [(0, 9, Link(LinkKind.PCIE, 1, 1.0))]},
            r"component_links\[0\]\[1\] = 9 is not in 0..3",
        ),
        (
            {"components": [Component(ComponentKind.SOCKET, "s")] * 2},
            r"components\[1\].name = 's' appears twice",
        ),
        ({"components": [3]}, r"components\[0\] = 3 is not a Component"),
        ({"partitions": [(0, 5)]}, r"partitions\[0\]\[1\] = 5 is not in 0..1"),
        ({"partitions": [(0, 0)]}, r"partitions\[0\] = .* is not a set"),
        ({"notes": [""]}, r"notes\[0\] = '' is not a non-empty string"),
    ],
)
def test_what_makes_no_machine_is_refused(change: dict[str, object], message: str) -> None:
    plain: dict[str, object] = {
        "components": [Component(ComponentKind.SOCKET, "a"), Component(ComponentKind.SOCKET, "b")]
    }
    with pytest.raises(TopologyError, match=message):
        Topology([Gpu(0, "GPU0"), Gpu(1, "GPU1")], **plain | change)  # type: ignore[arg-type]
