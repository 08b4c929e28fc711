"""Packed trees against the throughput bound, checked hop by hop, and wrong arguments."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from topoplace import kernels


@st.composite
def problems(draw):
    """A graph whose links have equal capacity both ways, chosen terminals, and whether the others relay."""
    terminals, others = draw(st.integers(2, 5)), draw(st.integers(0, 3))
    ends = [(u, v) for u in range(terminals + others) for v in range(u)]
    links = [(u, v, draw(st.integers(0, 9))) for u, v in draw(st.lists(st.sampled_from(ends), max_size=16))]
    arcs = [arc for u, v, c in links for arc in ((u, v, c), (v, u, c))]
    chosen = draw(st.lists(st.sampled_from(range(terminals)), min_size=2, unique=True))
    return terminals + others, terminals, arcs, chosen, draw(st.booleans())


def faults(arcs, chosen, found):
    """Check the trees in other words than the verifier's; return what is wrong."""
    load: Counter[tuple[int, int]] = Counter()
    roots: Counter[int] = Counter()
    for root, count, hops in found.trees:
        roots[root] += count
        reached = [root]
        for start, end, ways in hops:
            if start not in reached or end in reached:
                return "order of hops"
            reached.append(end)
            if sum(some for _, some in ways) != count or any(
                (vertices[0], vertices[-1]) != (start, end) for vertices, _ in ways
            ):
                return "ways"
            for vertices, some in ways:
                load.update(dict.fromkeys(pairwise(vertices), some))
        if sorted(reached) != sorted(chosen):
            return "reach"
    capacity: Counter[tuple[int, int]] = Counter()
    for tail, head, amount in arcs:
        capacity[tail, head] += amount
    if any(used * found.rate > capacity[pair] for pair, used in load.items()):
        return "load"
    return None if roots == dict.fromkeys(chosen, found.per_root) else "roots"


@given(problems())
def test_trees_reach_the_bound(problem):
    n, terminals, arcs, chosen, relay_others = problem
    graph = kernels.TerminalGraph(n, terminals, arcs)
    bound = kernels.throughput_bound(graph, chosen, relay_others=relay_others)
    found = kernels.pack_trees(graph, chosen, relay_others=relay_others)
    assert found.complete
    assert len(chosen) * found.per_root * found.rate == bound.throughput(len(chosen))
    if not bound.capacity:
        assert found.trees == []
        return
    assert faults(arcs, chosen, found) is None
    assert kernels.verify_trees(graph, chosen, found, relay_others=relay_others)
    faster = found._replace(rate_numerator=found.rate_numerator + 1)
    assert not kernels.verify_trees(graph, chosen, faster, relay_others=relay_others)
    assert not kernels.verify_trees(
        graph, chosen, found._replace(trees=found.trees[1:]), relay_others=relay_others
    )


def test_switches_divide_their_ports():
    """Three terminals at a switch: each sends half of its rate to both others, directly."""
    graph = kernels.TerminalGraph(4, 3, [(v, 3, 10) for v in range(3)] + [(3, v, 10) for v in range(3)])
    found = kernels.pack_trees(graph, [0, 1, 2])
    assert 3 * found.per_root * found.rate == 15
    hops = [ways for _, _, hops in found.trees for _, _, ways in hops]
    assert all(vertices[1:-1] == [3] for ways in hops for vertices, _ in ways)


def test_at_the_deadline_there_are_no_trees():
    n = 40
    graph = kernels.TerminalGraph(n, n, [(u, v, 1 + u * v % 7) for u in range(n) for v in range(n) if u != v])
    found = kernels.pack_trees(graph, range(n), timeout=0)
    assert (found.trees, found.complete) == ([], False)


def test_wrong_arguments_are_named():
    graph = kernels.TerminalGraph(3, 2, [(0, 2, 3), (2, 1, 2), (1, 0, 5)])
    with pytest.raises(ValueError, match=r"vertex 2 only forwards, and 1 more of capacity lead into it"):
        kernels.pack_trees(graph, [0, 1])
    with pytest.raises(ValueError, match=r"chosen\[1\] = 2 is not in 0\.\.1"):
        kernels.pack_trees(graph, [0, 2])
    with pytest.raises(ValueError, match="chosen has fewer than two terminals"):
        kernels.pack_trees(graph, [0])
    many = kernels.TerminalGraph(513, 2, [])
    with pytest.raises(ValueError, match="513 vertices take part, more than 512"):
        kernels.pack_trees(many, [0, 1])


def test_the_rate_is_a_fraction():
    ring = [(0, 1, 4), (1, 2, 4), (2, 0, 4), (1, 0, 4), (2, 1, 4), (0, 2, 4)]
    found = kernels.pack_trees(kernels.TerminalGraph(3, 3, ring), [0, 1, 2])
    assert found.per_root * found.rate == Fraction(8, 2)
