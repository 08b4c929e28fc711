"""Packed rings: against all rings of small networks, their limits, and wrong arguments."""

from __future__ import annotations

from collections import Counter
from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from topoplace import kernels
from topoplace.kernels import ChannelRules, RingNetwork, Route


@st.composite
def networks(draw):
    """Terminals, capacities and routes, some of which pass a relay."""
    n, links = draw(st.integers(2, 4)), draw(st.integers(3, 10))
    capacities = draw(st.lists(st.integers(0, 40), min_size=links, max_size=links))
    use = st.tuples(st.integers(0, links - 1), st.sampled_from([1000, 1000, 1200]))
    routes = []
    for start, end in permutations(range(n), 2):
        for _ in range(draw(st.integers(0, 2))):
            relay = draw(st.sampled_from([-1, -1, *range(n)]))
            uses = draw(st.lists(use, min_size=1, max_size=3))
            routes.append(
                Route(start, end, draw(st.integers(0, 2)), uses, -1 if relay in (start, end) else relay)
            )
    return n, capacities, routes


def load_of(order, routes, rate, level):
    """What one ring takes of each link, or None where it takes a hop that is not there."""
    load = Counter()
    for start, end in zip(order, order[1:] + order[:1], strict=True):
        known = [r for r in routes if (r.start, r.end) == (start, end) and r.relay in (-1, *order)]
        if not known or known[0].level > level:
            return None
        for link, thousandths in known[0].uses:
            load[link] += -(-rate * thousandths // 1000)
    return load


def most_rings(loads, left, limit, equal):
    most = 0
    for i, load in enumerate(loads if limit else ()):
        rest, taken = Counter(left), 0
        while taken < limit and all(rest[link] >= amount for link, amount in load.items()):
            rest.subtract(load)
            taken += 1
            more = 0 if equal else most_rings(loads[i + 1 :], rest, limit - taken, equal)
            most = max(most, taken + more)
    return most


@given(networks(), st.integers(1, 20), st.integers(0, 2), st.integers(1, 4), st.booleans())
def test_all_rings_agree(network, rate, level, max_rings, equal):
    n, capacities, routes = network
    made = RingNetwork(n, capacities, routes)
    options = {"rate": rate, "level": level, "max_rings": max_rings, "equal": equal}
    found = kernels.pack_rings(made, range(n), **options)
    loads = [load_of([0, *rest], routes, rate, level) for rest in permutations(range(1, n))]
    expected = most_rings(
        [load for load in loads if load is not None], dict(enumerate(capacities)), max_rings, equal
    )
    assert (found.num_rings, found.bound, found.optimal, found.complete) == (expected, expected, True, True)
    assert kernels.verify_rings(made, range(n), found.rings, **options)
    if found.rings:
        assert not kernels.verify_rings(made, range(n), found.rings, **{**options, "rate": 41})


def star(n, capacity):
    """Terminals around a hub: link 2 v leads from terminal v to it, 2 v + 1 back."""
    routes = [Route(u, v, 0, [(2 * u, 1000), (2 * v + 1, 1000)]) for u, v in permutations(range(n), 2)]
    return RingNetwork(n, [capacity] * (2 * n), routes)


def test_channels_of_a_star():
    network = star(5, 370)
    channels = kernels.best_channels(network, [4, 1, 2], ChannelRules([60, 50, 40, 30], split_rate=25))
    assert (channels.num_rings, channels.rate, channels.level) == (12, 30, 0)
    assert channels.rings == [([1, 2, 4], 12)]
    assert kernels.channel_rate(network, [4, 1, 2], ChannelRules([60, 50, 40, 30])) == 360


def test_without_routes_there_are_no_channels():
    channels = kernels.best_channels(RingNetwork(2, [5], []), [0, 1], ChannelRules([1]))
    assert (channels.num_rings, channels.rings) == (0, [])


def test_a_limit_ends_a_long_search():
    n = 12
    pairs = [(u, v) for u, v in permutations(range(n), 2) if (u + v) % 3]
    network = RingNetwork(
        n, [2] * len(pairs), [Route(u, v, 0, [(i, 1000)]) for i, (u, v) in enumerate(pairs)]
    )
    found = kernels.pack_rings(network, range(n), rate=1, max_rings=100, max_nodes=500)
    assert not found.complete
    assert found.num_rings < found.bound
    assert found.nodes <= 501
    assert found == kernels.pack_rings(network, range(n), rate=1, max_rings=100, max_nodes=500)
    assert kernels.verify_rings(network, range(n), found.rings, rate=1, max_rings=100)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((65, [], []), r"num_terminals = 65 is not in 0\.\.64"),
        ((2, [-1], []), r"capacities\[0\] = -1 is not in"),
        ((2, [1], [Route(0, 2, 0, [(0, 1000)])]), r"routes\[0\] does not join two of 2 terminals"),
        ((2, [1], [Route(0, 1, 0, [(1, 1000)])]), r"routes\[0\] uses 1000 thousandths of link 1"),
        ((2, [1], [Route(0, 1, 0, [(0, 999)])]), r"routes\[0\] uses 999 thousandths of link 0"),
        ((2, [1, 1], [Route(0, 1, 0, [(0, 1000)])], [([0], [1])]), r"cuts\[0\] is avoided by a route from 0"),
    ],
)
def test_wrong_networks_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        RingNetwork(*arguments)


def test_wrong_arguments_are_named():
    network = star(3, 10)
    with pytest.raises(ValueError, match=r"chosen\[1\] = 3 is not in 0\.\.2"):
        kernels.pack_rings(network, [0, 3], rate=1)
    with pytest.raises(ValueError, match="chosen has fewer than two terminals"):
        kernels.pack_rings(network, [0], rate=1)
    with pytest.raises(ValueError, match="rate = 0 is not in"):
        kernels.pack_rings(network, [0, 1], rate=0)
    with pytest.raises(ValueError, match=r"rates\[1\] = 3 is above the one before"):
        kernels.best_channels(network, [0, 1], ChannelRules([2, 3]))
    with pytest.raises(ValueError, match=r"slowest = 1\.5 is not in 0\.\.1"):
        ChannelRules([1], slowest=1.5)
