"""Paths over PCIe and CPUs that a text does not state."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

import topoplace as tp
from topoplace import LinkKind
from topoplace.topology.assemble import with_host_paths
from topoplace.topology.links.link_kinds import PATH_KINDS, PATHS, path

UNKNOWN = tp.Link(LinkKind.UNKNOWN, 1, 12.0)
NVLINK = tp.Link(LinkKind.NVLINK4, 2, 50.0)
Place = tuple[int | None, int | None]
numbers = st.none() | st.integers(0, 2)
places = st.lists(st.tuples(numbers, numbers), min_size=2, max_size=6)


def topology_of(places: list[Place], links: list[tp.Link | None]) -> tp.Topology:
    gpus = tuple(
        tp.Gpu(i, f"GPU{i}", socket=socket, numa_node=node) for i, (socket, node) in enumerate(places)
    )
    pairs = [(u, v) for v in range(len(places)) for u in range(v)]
    told = zip(pairs, links, strict=False)
    return tp.Topology(gpus, tuple((*pair, link) for pair, link in told if link), default=12.0)


@given(pcie=st.floats(0.1, 1e4))
def test_nearer_classes_are_faster(pcie: float) -> None:
    speeds = [path(kind, pcie).gb_per_s for kind in PATH_KINDS]
    assert all(near > far > 0 for near, far in pairwise(speeds))
    assert list(PATHS) == [kind.label for kind in PATH_KINDS]


@given(places=places, links=st.lists(st.sampled_from([None, UNKNOWN, NVLINK]), max_size=15))
def test_places_decide_where_links_do_not(places: list[Place], links: list[tp.Link | None]) -> None:
    before = topology_of(places, links)
    after = with_host_paths(before)
    for v in range(len(places)):
        for u in range(v):
            (a, m), (b, n) = places[u], places[v]
            told, link = before.link(u, v), after.link(u, v)
            apart = a != b if a is not None and b is not None else m is not None and n is not None and m != n
            if told == NVLINK:
                assert link == NVLINK
            elif apart:
                assert link == tp.Link(LinkKind.SYSTEM, 1, 6.0)
                assert after.distance(u, v) == 20.0
            else:
                assert link.kind in (LinkKind.UNKNOWN, LinkKind.HOST, LinkKind.HOST_BRIDGES)
                assert link.gb_per_s > 6.0
    assert with_host_paths(after) == after


def test_a_measured_link_of_unknown_kind_stays() -> None:
    measured = tp.Link(LinkKind.UNKNOWN, 1, 41.0)
    assert with_host_paths(topology_of([(0, 0), (1, 1)], [measured])).link(0, 1) == measured


def test_gpus_without_any_path_stay_apart() -> None:
    apart = tp.Topology.from_links(2, [], 0.0, sockets=[0, 1])
    assert with_host_paths(apart) == apart


@pytest.mark.parametrize(
    ("weights", "expected"),
    [
        (tp.DistanceWeights(), [1.0, 1.0, 1.0, 1.0, 20.0]),
        (tp.DistanceWeights(pcie=2.0, host=3.0), [2.0, 2.0, 3.0, 3.0, 20.0]),
        (tp.DistanceWeights(pcie_bridges=5.0, host_bridges=7.0), [1.0, 5.0, 1.0, 7.0, 20.0]),
    ],
)
def test_weights_of_the_classes(weights: tp.DistanceWeights, expected: list[float]) -> None:
    assert [weights.of(path(kind, 12.0)) for kind in PATH_KINDS] == expected
    topology = tp.Topology.from_links(2, []).with_distances(weights)
    assert tp.Topology.from_json(topology.to_json()).distances == weights
