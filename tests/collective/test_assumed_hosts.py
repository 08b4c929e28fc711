"""Hosts that a topology does not state: rings over them agree with the paths that it does tell."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import topoplace as tp
from topoplace import collective
from topoplace.topology.links.link_kinds import PATH_KINDS, path

UNKNOWN = tp.LinkKind.UNKNOWN
KINDS = st.sampled_from((*PATH_KINDS, UNKNOWN))
PCIE = st.sampled_from((12.0, 24.0, 48.0, 15.75, 31.5, 63.0))


def _link(kind: tp.LinkKind, pcie: float) -> tp.Link:
    return tp.Link(UNKNOWN, 1, pcie) if kind is UNKNOWN else path(kind, pcie)


def _machine(
    kinds: dict[tuple[int, int], tp.LinkKind], pcie: float, sockets: list[int | None]
) -> tp.Topology:
    links = [(u, v, _link(kind, pcie)) for (u, v), kind in kinds.items()]
    return tp.Topology.from_links(len(sockets), links, pcie, sockets=sockets)


@st.composite
def machines(draw: st.DrawFn) -> tuple[dict[tuple[int, int], tp.LinkKind], float, list[int | None]]:
    """Draw the kinds of paths of 2 to 5 GPUs, which may contradict each other and the sockets, and the PCIe."""
    n = draw(st.integers(2, 5))
    kinds = {pair: draw(KINDS) for pair in combinations(range(n), 2)}
    sockets = draw(st.lists(st.sampled_from((None, 0, 1)), min_size=n, max_size=n))
    return kinds, draw(PCIE), sockets


_DIFFERENT = (tp.LinkKind.SYSTEM, tp.LinkKind.HOST_BRIDGES, tp.LinkKind.HOST, tp.LinkKind.PCIE_BRIDGES)
"""The kind of path of two GPUs, by the outermost of socket, host bridges, host bridge and switch that differs."""


@st.composite
def hosts(draw: st.DrawFn) -> tuple[Any, dict[tuple[int, int], tp.LinkKind], float, list[int | None]]:
    """Draw what is told of 2 to 6 GPUs in a real host, the kinds of all their paths, its PCIe, and their sockets."""
    places = draw(st.lists(st.tuples(*[st.integers(0, 1)] * 4), min_size=2, max_size=6))
    kinds = {
        (u, v): next(
            (kind for kind, one, other in zip(_DIFFERENT, places[u], places[v], strict=True) if one != other),
            tp.LinkKind.PCIE,
        )
        for u, v in combinations(range(len(places)), 2)
    }
    told = {pair: draw(st.sampled_from((kind, UNKNOWN))) for pair, kind in kinds.items()}
    sockets = draw(st.sampled_from(([None] * len(places), [place[0] for place in places])))
    return told, kinds, draw(PCIE), sockets


def test_three_unknown_sockets_are_no_better_than_two():
    kinds = {(0, 1): tp.LinkKind.SYSTEM, (0, 2): tp.LinkKind.SYSTEM, (1, 2): UNKNOWN}
    for last in (UNKNOWN, tp.LinkKind.PCIE):
        machine = _machine({**kinds, (1, 2): last}, 12.0, [None, 0, 1])
        assert collective.ring_bandwidth(machine, range(3)) == 6
    told = _machine({**kinds, (1, 2): tp.LinkKind.SYSTEM}, 12.0, [None, 0, 1])
    assert collective.ring_bandwidth(told, range(3)) == 12


@given(hosts(), st.data())
def test_a_link_that_becomes_known_never_slows_rings(drawn, data):
    told, kinds, pcie, sockets = drawn
    unknown = [pair for pair, kind in told.items() if kind is UNKNOWN]
    if not unknown:
        return
    pair = data.draw(st.sampled_from(unknown))
    before = _machine(told, pcie, sockets)
    after = _machine({**told, pair: kinds[pair]}, pcie, sockets)
    for gpus in (pair, range(len(sockets))):
        assert collective.ring_bandwidth(after, gpus) >= collective.ring_bandwidth(before, gpus)


@given(machines())
def test_rings_of_a_pair_are_never_faster_than_its_link(drawn):
    kinds, pcie, sockets = drawn
    machine = _machine(kinds, pcie, sockets)
    for pair in kinds:
        assert 0 < collective.ring_bandwidth(machine, pair) <= machine.link(*pair).gb_per_s * 1.001


@given(
    st.lists(st.integers(0, 2), min_size=2, max_size=6), st.sampled_from((tp.LinkKind.SYSTEM, UNKNOWN)), PCIE
)
def test_rings_have_the_class_of_their_pair_on_any_socket(cpus, far, pcie):
    kinds = {
        (u, v): tp.LinkKind.HOST if cpus[u] == cpus[v] else far for u, v in combinations(range(len(cpus)), 2)
    }
    for sockets in ([0] * len(cpus), [None] * len(cpus), list(range(len(cpus)))):
        machine = _machine(kinds, pcie, sockets)
        for pair, kind in kinds.items():
            assert collective.rings(machine, pair).path_type == ("SYS" if kind is far else "PHB")


@pytest.mark.parametrize(
    ("kind", "gb_per_s", "path_type"),
    [
        (tp.LinkKind.PCIE, 12, "PIX"),
        (tp.LinkKind.PCIE_BRIDGES, 10, "PXB"),
        (tp.LinkKind.HOST, 10, "PHB"),
        (tp.LinkKind.HOST_BRIDGES, 8, "PHB"),
        (tp.LinkKind.SYSTEM, 6, "SYS"),
        (UNKNOWN, 6, "SYS"),
    ],
)
def test_four_gpus_with_one_class_of_paths(kind, gb_per_s, path_type):
    machine = _machine(dict.fromkeys(combinations(range(4), 2), kind), 12.0, [None] * 4)
    for size in (2, 3, 4):
        plan = collective.rings(machine, range(size))
        assert (plan.gb_per_s, plan.path_type) == (gb_per_s, path_type)


def test_a_stated_speed_of_an_unknown_kind_is_a_link_of_its_own():
    machine = tp.Topology.from_links(2, [(0, 1, 50.0)])
    plan = collective.rings(machine, [0, 1])
    assert plan.path_type == "NVL"
    assert 36 <= plan.gb_per_s <= 50
