"""Least flows and throughput bounds: against all cuts of small graphs, and wrong arguments."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable
from fractions import Fraction
from itertools import chain, combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from topoplace import kernels


@st.composite
def problems(draw):
    """A graph, chosen terminals, and whether the others relay."""
    terminals, others = draw(st.integers(2, 4)), draw(st.integers(0, 2))
    n = terminals + others
    ends = [(u, v) for u in range(n) for v in range(n) if u != v]
    arcs = [(u, v, draw(st.integers(0, 5))) for u, v in draw(st.lists(st.sampled_from(ends), max_size=16))]
    chosen = draw(st.lists(st.sampled_from(range(terminals)), min_size=2, unique=True))
    return n, terminals, arcs, chosen, draw(st.booleans())


def cuts(n, terminals, arcs, chosen, relay_others):
    """Yield (chosen terminals before the cut, capacity) of every cut between chosen terminals."""
    present = [v for v in range(n) if v >= terminals or v in chosen or relay_others]
    for side in map(set, chain.from_iterable(combinations(present, k) for k in range(1, len(present)))):
        if side & set(chosen) and not side >= set(chosen):
            present_arcs = ((u, v, c) for u, v, c in arcs if {u, v} <= set(present))
            yield len(side & set(chosen)), sum(c for u, v, c in present_arcs if u in side and v not in side)


@given(problems())
def test_all_cuts_agree(problem):
    n, terminals, arcs, chosen, relay_others = problem
    graph = kernels.TerminalGraph(n, terminals, arcs)
    every = list(cuts(*problem))
    flow = kernels.least_max_flow(graph, chosen, relay_others=relay_others)
    assert flow.value == min(capacity for _, capacity in every)
    assert flow.complete
    assert kernels.verify_least_flow(graph, chosen, flow, relay_others=relay_others)
    assert not kernels.verify_least_flow(
        graph, chosen, flow._replace(value=flow.value + 1), relay_others=relay_others
    )
    bound = kernels.throughput_bound(graph, chosen, relay_others=relay_others)
    least = min(Fraction(len(chosen) * capacity, count) for count, capacity in every)
    assert bound.throughput(len(chosen)) == least
    assert kernels.verify_throughput(graph, chosen, bound, relay_others=relay_others)
    assert not kernels.verify_throughput(
        graph, chosen, bound._replace(terminals=bound.terminals + 1), relay_others=relay_others
    )


def test_at_the_deadline_the_cut_is_valid():
    n = 60
    graph = kernels.TerminalGraph(n, n, [(u, v, 1 + u * v % 7) for u in range(n) for v in range(n) if u != v])
    bound = kernels.throughput_bound(graph, range(n), timeout=0)
    assert not bound.complete
    assert kernels.verify_throughput(graph, range(n), bound)
    least = kernels.least_max_flow(graph, range(n), timeout=0)
    assert not least.complete
    assert kernels.verify_least_flow(graph, range(n), least)


def _longest_silence(call: Callable[[], object]) -> float:
    """Return the longest time in which another thread had no turn during a call, as a share of the call's time."""
    ready, done, silences = threading.Event(), threading.Event(), []

    def count() -> None:
        last, longest = time.monotonic(), 0.0
        ready.set()
        is_last = False
        while not is_last:
            is_last = done.is_set()
            now = time.monotonic()
            last, longest = now, max(longest, now - last)
        silences.append(longest)

    other = threading.Thread(target=count)
    other.start()
    ready.wait()
    began = time.monotonic()
    call()
    spent = time.monotonic() - began
    done.set()
    other.join()
    return silences[0] / spent


def test_other_threads_run_meanwhile():
    n = 200
    graph = kernels.TerminalGraph(n, n, [(u, v, 1 + u * v % 7) for u in range(n) for v in range(n) if u != v])
    assert any(_longest_silence(lambda: kernels.throughput_bound(graph, range(n))) < 0.5 for _ in range(20))


@pytest.mark.skipif(
    not getattr(sys, "_is_gil_enabled", lambda: True)(), reason="this Python has no lock to keep"
)
def test_a_call_that_keeps_other_threads_waiting_is_seen():
    numbers = [7919 * i % 1_000_003 for i in range(1_000_000)]
    assert _longest_silence(lambda: sorted(numbers)) > 0.5


@pytest.mark.parametrize(
    ("arcs", "message"),
    [
        ([(0, 3, 1)], r"arcs\[0\] = 3 is not in 0\.\.2"),
        ([(0, 1, 1), (0, 1)], r"arcs\[1\] = \(0, 1\) is not \(tail, head, capacity\)"),
        ([(0, 1, -1)], r"arcs\[0\]\[2\] = -1 is not in"),
        ([(1, 1, 1)], r"arcs\[0\] = \(1, 1\) does not join two of 3 vertices"),
        ([(0, 1, 1 << 40), (1, 0, 1)], r"arcs\[1\] has the capacity 1"),
    ],
)
def test_wrong_arcs_are_named(arcs, message):
    with pytest.raises(ValueError, match=message):
        kernels.TerminalGraph(3, 2, arcs)


def test_wrong_terminals_are_named():
    graph = kernels.TerminalGraph(3, 2, [(0, 1, 1)])
    for search in (kernels.least_max_flow, kernels.throughput_bound):
        with pytest.raises(ValueError, match=r"chosen\[1\] = 2 is not in 0\.\.1"):
            search(graph, [0, 2])
        with pytest.raises(ValueError, match=r"chosen\[1\] = 0 appears twice"):
            search(graph, [0, 0])
        with pytest.raises(ValueError, match="chosen has fewer than two terminals"):
            search(graph, [0])
    with pytest.raises(ValueError, match=r"num_terminals = 4 is not in 0\.\.3"):
        kernels.TerminalGraph(3, 4, [])
