"""`PortNetwork` against loops over the definition and all permutations, and its arguments."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Sequence
from itertools import chain, pairwise, permutations
from typing import Any, NamedTuple

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given

import fair_sharing
import topoplace as tp
from topoplace import kernels
from topoplace.kernels.limits import deadline

NO_FLOWS = kernels.Flows([], *(np.empty(0),) * 4)  # type: ignore[arg-type]


class Network(NamedTuple):
    """The arguments of `PortNetwork`, for two segments of two levels each."""

    gb_per_s: list[float]
    entry: list[list[int]]
    segment_of: list[int]
    domain: list[list[int]]
    uplink: list[list[int]]
    links: list[tuple[int, int, int]]
    is_slower: list[int]
    access: Sequence[int] = ()
    group: Sequence[int] = ()
    lane: Sequence[int] = ()


def rows(numbers: st.SearchStrategy[int], count: int, n: int) -> st.SearchStrategy[list[list[int]]]:
    return st.lists(st.lists(numbers, min_size=n, max_size=n), min_size=count, max_size=count)


@st.composite
def networks(draw: st.DrawFn) -> Network:
    n = draw(st.integers(1, 5))
    speeds = draw(st.lists(st.sampled_from([0.0, 0.5, 1.0, 3.0, 10.0]), min_size=1, max_size=8))
    ports = st.integers(-1, len(speeds) - 1)
    pairs = [(u, v) for u in range(n) for v in range(u + 1, n) if draw(st.booleans())]
    return Network(
        speeds,
        draw(rows(ports, 2, n)),
        [0, 0, 1, 1],
        draw(rows(st.integers(-1, 2), 4, n)),
        draw(rows(ports, 4, n)),
        [(u, v, draw(st.integers(0, len(speeds) - 1))) for u, v in pairs],
        [draw(st.integers(0, 1)) for _ in pairs],
        draw(st.just(()) | st.lists(ports, min_size=n, max_size=n)),
        *(draw(st.none() | st.just(())) or relays(draw, n)),
    )


def relays(draw: st.DrawFn, n: int) -> tuple[list[int], list[int]]:
    """Draw the groups and the lanes of vertices."""
    group = draw(st.lists(st.integers(-1, 1), min_size=n, max_size=n))
    return group, draw(st.lists(st.integers(0, 2), min_size=n, max_size=n))


@st.composite
def flows(draw: st.DrawFn, ends: int) -> kernels.Flows:
    amounts = st.sampled_from([0.0, 1.0, 2.5])
    vertex = st.integers(0, ends - 1)
    phases = draw(st.lists(st.lists(st.tuples(vertex, vertex, amounts, amounts), max_size=5), max_size=3))
    listed = np.array([flow for phase in phases for flow in phase]).reshape(-1, 4)
    counts = np.cumsum([len(phase) for phase in phases], dtype=int).tolist()
    start, end = listed[:, :2].astype(np.int32).T
    return kernels.Flows(counts, start, end, listed[:, 2], listed[:, 3])


def meeting(network: Network, u: int, v: int) -> int | None:
    """Return the level at which two vertices meet; None for none."""
    for level, segment in enumerate(network.segment_of):
        domain, entry = network.domain[level], network.entry[segment]
        if domain[u] == domain[v] >= 0 and min(entry[u], entry[v]) >= 0:
            return level
    return None


def relay(network: Network, u: int, v: int) -> int | None:
    """Return the vertex through which u sends to v; None for none."""
    group, lane = network.group, network.lane
    if not group or min(group[u], group[v]) < 0 or group[u] == group[v] or lane[u] == lane[v]:
        return None
    last = network.segment_of[-1]
    met = meeting(network, u, v)
    same = [one for one in range(len(group)) if (group[one], lane[one]) == (group[u], lane[v])]
    if not same or (met is not None and network.segment_of[met] < last):
        return None
    near, far = meeting(network, u, same[0]), meeting(network, same[0], v)
    is_near = near is not None and network.segment_of[near] < last
    return same[0] if is_near and far is not None else None


def route(network: Network, u: int, v: int) -> list[int] | None:
    """Return the hops from u to v, sorted, by the words of the class."""
    between = relay(network, u, v)
    if between is None:
        return direct_route(network, u, v)
    first, second = direct_route(network, u, between), direct_route(network, between, v)
    assert first is not None
    assert second is not None
    return sorted(first + second)


def direct_route(network: Network, u: int, v: int) -> list[int] | None:
    hops: list[int] = []
    if u == v:
        return hops
    links = {
        link[:2]: (link[2], slower) for link, slower in zip(network.links, network.is_slower, strict=True)
    }
    link = links.get((min(u, v), max(u, v)))
    if link is not None:
        hops.append(2 * link[0] + (u > v))
        if not link[1]:
            return hops
    level = meeting(network, u, v)
    if level is None:
        return hops if link is not None else None
    segment = network.segment_of[level]
    entry = network.entry[segment]
    hops += [2 * entry[u], 2 * entry[v] + 1]
    if network.access and segment == network.segment_of[-1]:
        hops += [2 * network.access[u]] if network.access[u] >= 0 else []
        hops += [2 * network.access[v] + 1] if network.access[v] >= 0 else []
    for below in range(level):
        up, down = network.uplink[below][u], network.uplink[below][v]
        if network.segment_of[below] == segment and up != down:
            hops += [2 * up] if up >= 0 else []
            hops += [2 * down + 1] if down >= 0 else []
    return sorted(hops)


def ways(network: Network, given: kernels.Flows) -> list[list[tuple[list[int] | None, float]]]:
    """Return, for each phase, the hops and the GB of each flow in each of its directions, without those of 0 GB."""
    listed = list(zip(*map(np.ndarray.tolist, given[1:]), strict=True))  # type: ignore[arg-type]
    found = []
    for begin, end in pairwise([0, *given.phase_ends]):
        found.append(
            [
                (route(network, *ends), gigabytes)
                for u, v, there, back in listed[begin:end]
                for ends, gigabytes in (((u, v), there), ((v, u), back))
                if gigabytes
            ]
        )
    return found


def phase_times(network: Network, given: kernels.Flows) -> list[tuple[float, int, float]]:
    """Return seconds, slowest hop and port-seconds of each phase, by adding up what each hop carries."""
    uplinks = {port for row in network.uplink for port in row}
    times: list[tuple[float, int, float]] = []
    for phase in ways(network, given):
        carried: Counter[int] = Counter()
        for hops, gigabytes in phase:
            for hop in hops or ():
                carried[hop] += gigabytes
        is_cut = any(hops is None for hops, _ in phase)
        seconds = {
            hop: gb / network.gb_per_s[hop // 2] if network.gb_per_s[hop // 2] else math.inf
            for hop, gb in carried.items()
            if gb
        }
        shared = sum(time for hop, time in seconds.items() if hop // 2 in uplinks)
        longest = max(seconds.values(), default=0.0)
        slowest = min((hop for hop, time in seconds.items() if time == longest), default=-1)
        times.append((math.inf, -1, 0.0) if is_cut else (longest, slowest, shared))
    return times


def crossings(network: Network, given: kernels.Flows) -> dict[int, list[float]]:
    """Return the GB of each flow on each hop; flows without a path count nowhere."""
    found: dict[int, list[float]] = defaultdict(list)
    for hops, gigabytes in chain.from_iterable(ways(network, given)):
        for hop in hops or ():
            found[hop].append(gigabytes)
    return found


def total(network: Network, tasks: kernels.Flows, vertices: tuple[int, ...]) -> float:
    chosen = np.array(vertices, np.int32)
    placed = tasks._replace(start=chosen[tasks.start], end=chosen[tasks.end])
    return sum(seconds for seconds, _, _ in phase_times(network, placed))


@given(networks())
def test_routes_are_those_of_the_definition(network: Network) -> None:
    native = kernels.PortNetwork(*network)
    n = len(network.entry[0])
    for u in range(n):
        for v in range(n):
            hops = native.route(u, v)
            assert (None if hops is None else sorted(hops)) == route(network, u, v)


@given(st.data())
def test_phase_times_are_those_of_all_hops(data: st.DataObject) -> None:
    network = data.draw(networks())
    native = kernels.PortNetwork(*network)
    asked = data.draw(flows(native.num_vertices))
    found = native.phase_times(asked)
    expected = phase_times(network, asked)
    for one, (seconds, slowest, shared) in zip(found, expected, strict=True):
        assert one.seconds == pytest.approx(seconds)
        assert one.slowest == slowest
        assert one.port_seconds == pytest.approx(shared)


@given(st.data())
def test_flows_of_others_count_up_to_the_largest_of_the_phase(data: st.DataObject) -> None:
    network = data.draw(networks())
    native = kernels.PortNetwork(*network)
    counts = kernels.FlowCounts(native)
    stays, goes, asked = (data.draw(flows(native.num_vertices)) for _ in range(3))
    for one in (goes, stays):
        counts.add(one)
    counts.remove(goes)
    there = crossings(network, stays)
    hops = list(range(2 * len(network.gb_per_s)))
    assert counts.counted(hops, 1.5).tolist() == [sum(min(gb, 1.5) for gb in there.get(h, ())) for h in hops]
    begin, alone = 0, native.phase_times(asked)
    for one, before, end in zip(native.phase_times(asked, counts), alone, asked.phase_ends, strict=True):
        phase = kernels.Flows([end - begin], *(part[begin:end] for part in asked[1:]))  # type: ignore[arg-type]
        begin = end
        gigabytes = {
            hop: sum(own) + sum(min(gb, max(own)) for gb in there.get(hop, ()))
            for hop, own in crossings(network, phase).items()
            if own
        }
        speeds = {hop: network.gb_per_s[hop // 2] for hop in gigabytes}
        longest = max(
            (gb / speeds[hop] if speeds[hop] else math.inf for hop, gb in gigabytes.items()), default=0.0
        )
        assert one.seconds == pytest.approx(math.inf if math.isinf(before.seconds) else longest)
        assert one.port_seconds == pytest.approx(before.port_seconds)


@given(st.data())
def test_fair_times_are_those_of_exact_fractions(data: st.DataObject) -> None:
    network = data.draw(networks())
    native = kernels.PortNetwork(*network)
    jobs = [data.draw(flows(native.num_vertices)) for _ in range(data.draw(st.integers(1, 3)))]
    seconds = st.sampled_from([0.0, 0.25, 4.0])
    least = [[data.draw(seconds) for _ in job.phase_ends] for job in jobs]
    phases = [
        list(map(fair_sharing.Phase, ways(network, job), times))
        for job, times in zip(jobs, least, strict=True)
    ]
    speeds = {hop: network.gb_per_s[hop // 2] for hop in range(2 * len(network.gb_per_s))}
    expected = fair_sharing.phase_seconds(phases, speeds)
    alone = native.phase_times(jobs[0])
    for first in range(len(jobs)):
        order = [first, *(i for i in range(len(jobs)) if i != first)]
        found = native.max_min_times([jobs[i] for i in order], [least[i] for i in order])
        assert found.complete
        assert [one.seconds for one in found.phases] == pytest.approx(expected[first])
        if first == 0:
            for one, bound in zip(found.phases, alone, strict=True):
                assert one.seconds >= bound.seconds * (1 - 1e-9)
                assert one.port_seconds == pytest.approx(
                    0.0 if math.isinf(one.seconds) else bound.port_seconds
                )
                assert (one.slowest < 0) == (one.seconds in (0.0, math.inf))


def test_fair_times_by_hand() -> None:
    """Vertex 2 has half the speed, and two flows come to it: 5 GB/s each, so vertex 0 has 15 left for the other one.

    The 1 GB to vertex 2 and the 3 GB to vertex 1 are done after 0.2 s. Then the flow from vertex 3 has 10 GB/s.
    """
    network = kernels.PortNetwork([20, 20, 10, 20], [[0, 1, 2, 3]], [0], [[0] * 4], [[-1] * 4])
    own = kernels.Flows([2], *np.array([[0, 0], [1, 2]], np.int32), np.array([3.0, 1.0]), np.zeros(2))
    other = kernels.Flows([1], *np.array([[3], [2]], np.int32), np.array([2.0]), np.zeros(1))
    found = network.max_min_times([own, other])
    assert found.phases == [(pytest.approx(0.2), 0, 0.0)]
    assert network.max_min_times([other, own]).phases == [(pytest.approx(0.3), 5, 0.0)]
    apart = kernels.Flows([1], *np.array([[1], [3]], np.int32), np.array([9.0]), np.zeros(1))
    assert network.max_min_times([apart, own]).phases == [(pytest.approx(0.45), 2, 0.0)]


def test_a_deadline_ends_fair_times_by_an_error() -> None:
    network = kernels.PortNetwork([1.0, 1.0], [[0, 1]], [0], [[0, 0]], [[-1, -1]])
    one = kernels.Flows([1], *np.array([[0], [1]], np.int32), np.ones(1), np.zeros(1))
    with deadline(0.0), pytest.raises(tp.errors.DeadlineError):
        network.max_min_times([one])
    assert network.max_min_times([one], timeout=60).complete


def test_a_limit_ends_fair_times_early() -> None:
    network = kernels.PortNetwork([1.0, 1.0], [[0, 1]], [0], [[0, 0]], [[-1, -1]])
    ends = np.zeros(3, np.int32), np.ones(3, np.int32)
    three = kernels.Flows([1, 3], *ends, np.array([1.0, 2.0, 5.0]), np.zeros(3))
    whole, part = network.max_min_times([three]), network.max_min_times([three], max_nodes=2)
    assert whole.complete
    assert whole.phases == [(1.0, 0, 0.0), (7.0, 0, 0.0)]
    assert not part.complete
    assert [one.seconds for one in part.phases] == [1.0, 0.0]


@pytest.mark.parametrize(
    ("jobs", "least", "message"),
    [
        ([], None, "jobs is empty"),
        ([3], None, r"jobs\[0\] = 3"),
        ([NO_FLOWS], [], "at_least has 0 rows for 1 jobs"),
        ([NO_FLOWS], [[1.0]], "at_least has 1 entries, not 0"),
        ([NO_FLOWS], [["a"]], r"at_least\[0\]"),
    ],
)
def test_wrong_jobs_are_named(jobs: list[Any], least: list[list[Any]] | None, message: str) -> None:
    network = kernels.PortNetwork(**two_ports())  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=message):
        network.max_min_times(jobs, least)


@pytest.mark.parametrize("number", [-1.0, math.nan, math.inf])
def test_a_wrong_least_time_is_named(number: float) -> None:
    network = kernels.PortNetwork(**two_ports())  # type: ignore[arg-type]
    phase = kernels.Flows([0], *NO_FLOWS[1:])
    with pytest.raises(ValueError, match=r"at_least\[0\] = .*: not a finite number of 0 or above"):
        network.max_min_times([phase], [[number]])


def test_only_flows_that_were_added_are_removed() -> None:
    network = kernels.PortNetwork([1.0, 1.0], [[0, 1]], [0], [[0, 0]], [[-1, -1]])
    counts = kernels.FlowCounts(network)
    ends = np.array([0], np.int32), np.array([1], np.int32)
    one = kernels.Flows([1], *ends, np.ones(1), np.zeros(1))
    with pytest.raises(ValueError, match="flows that were not added"):
        counts.remove(one)
    with pytest.raises(ValueError, match=r"hop = 4: out of range"):
        counts.counted([4], 1.0)
    with pytest.raises(ValueError, match="most = -1"):
        counts.counted([0], -1.0)
    with pytest.raises(ValueError, match="network = 3"):
        kernels.FlowCounts(3)  # type: ignore[arg-type]
    other = kernels.PortNetwork([1.0, 1.0], [[0, 1]], [0], [[0, 0]], [[-1, -1]])
    with pytest.raises(ValueError, match="others are flows of another network"):
        other.phase_times(one, counts)
    with pytest.raises(ValueError, match="others = 3"):
        other.phase_times(one, 3)  # type: ignore[arg-type]


@given(st.data())
def test_orders_have_the_time_that_they_say_and_are_never_worse(data: st.DataObject) -> None:
    network = data.draw(networks())
    n = len(network.entry[0])
    size = data.draw(st.integers(1, n))
    tasks = data.draw(flows(size))
    sets = [data.draw(st.permutations(range(n)))[:size] for _ in range(2)]
    found = kernels.PortNetwork(*network).best_orders(tasks, np.array(sets, np.int32))
    for given_order, order, seconds in zip(
        sets, found.vertices.tolist(), found.seconds.tolist(), strict=True
    ):
        assert sorted(order) == sorted(given_order)
        assert seconds == pytest.approx(total(network, tasks, tuple(order)))
        assert seconds <= total(network, tasks, tuple(given_order)) * (1 + 1e-9)
        best = min(total(network, tasks, one) for one in permutations(given_order))
        assert seconds >= best * (1 - 1e-9)
        if size <= 4:  # larger sets are improved by swaps alone, which may miss the best order
            assert seconds == pytest.approx(best)


@given(
    speeds=st.lists(st.sampled_from([1.0, 2.0, 7.0]), min_size=2, max_size=4),
    kind=st.sampled_from(["ring", "all_to_all"]),
    data=st.data(),
)
def test_rings_and_all_to_all_on_stars_take_the_least_time(
    speeds: list[float], kind: str, data: st.DataObject
) -> None:
    n = len(speeds)
    uplinks = data.draw(st.lists(st.sampled_from([0.5, 4.0]), min_size=2, max_size=2))
    sides = data.draw(st.lists(st.integers(0, 1), min_size=n, max_size=n))
    star = Network(
        speeds + uplinks,
        [list(range(n))],
        [0, 0],
        [sides, [0] * n],
        [[n + side for side in sides], [-1] * n],
        [],
        [],
    )
    pairs = (
        [(i, (i + 1) % n) for i in range(n)]
        if kind == "ring"
        else [(i, j) for i in range(n) for j in range(i)]
    )
    start, end = np.array(pairs, np.int32).T.copy()
    back = np.zeros(len(pairs)) if kind == "ring" else np.ones(len(pairs))
    tasks = kernels.Flows([len(pairs)], start, end, np.ones(len(pairs)), back)
    first = data.draw(st.permutations(range(n)))
    found = kernels.PortNetwork(*star).best_orders(tasks, np.array([first], np.int32))
    assert found.seconds[0] == pytest.approx(min(total(star, tasks, one) for one in permutations(range(n))))


def two_ports() -> dict[str, object]:
    return {
        "gb_per_s": [1.0, 2.0],
        "entry": [[0, 1]],
        "segment_of": [0],
        "domain": [[0, 0]],
        "uplink": [[-1, -1]],
    }


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"gb_per_s": [1.0, float("nan")]}, r"gb_per_s\[1\] = nan: not a finite number"),
        ({"gb_per_s": [1.0, math.inf]}, r"gb_per_s\[1\] = inf: not a finite number"),
        ({"gb_per_s": [1.0, -2.0]}, r"gb_per_s\[1\] = -2"),
        ({"gb_per_s": [[1.0, 2.0]]}, r"gb_per_s has shape \(1, 2\); expected one dimension"),
        ({"gb_per_s": "fast"}, "gb_per_s"),
        ({"gb_per_s": [1.0]}, r"entry\[1\] = 1: out of range"),
        ({"entry": [0, 1]}, r"entry has shape \(2,\); expected 2 dimensions"),
        ({"entry": [[0, 1.5]]}, r"entry\[0, 1\] = 1.5 is not an integer"),
        ({"entry": [[0, 2**40]]}, r"entry\[0, 1\] = 1.09951e\+12 is not an integer in"),
        ({"entry": np.empty((0, 2))}, r"segment_of\[0\] = 0: out of range"),
        ({"entry": None}, "entry has dtype object"),
        ({"domain": [["a", "b"]]}, "domain has dtype"),
        ({"segment_of": [0.9]}, r"segment_of\[0\] = 0.9 is not an integer"),
        ({"segment_of": [1]}, r"segment_of\[0\] = 1: out of range"),
        ({"segment_of": [-1]}, r"segment_of\[0\] = -1: out of range"),
        ({"segment_of": [0, 0]}, "domain has 2 entries, not 4"),
        ({"domain": [[0, 0, 0]]}, r"domain has shape \(1, 3\); expected rows of 2 numbers"),
        ({"domain": [[0, float("nan")]]}, r"domain\[0, 1\] = nan is not an integer"),
        ({"uplink": np.array([[-7, -1]], np.int32)}, r"uplink\[0\] = -7: out of range"),
        ({"access": [0]}, "access has 1 entries, not 2"),
        ({"access": [0, 2]}, r"access\[1\] = 2: out of range"),
        ({"links": [[0, 1]], "is_slower": [0]}, r"links has shape \(1, 2\); expected rows of 3 numbers"),
        ({"links": [[1, 0, 0]], "is_slower": [0]}, r"links\[0\] = 1, 0: pairs are ascending and sorted"),
        ({"links": [[0, 1, 9]], "is_slower": [0]}, r"links\[0\] = 9: out of range"),
        ({"links": [[0, 1, 0]]}, "links has 3 entries, not 0"),
        ({"links": [[0, 1, 0]], "is_slower": [2]}, r"is_slower\[0\] = 2 is not 0 or 1"),
    ],
)
def test_a_wrong_part_of_a_network_is_named(change: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        kernels.PortNetwork(**(two_ports() | change))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"phase_ends": [0]}, "phase_ends ends at 0 of 1 flows"),
        ({"phase_ends": []}, "phase_ends ends at 0 of 1 flows"),
        ({"phase_ends": [2, 1]}, r"phase_ends\[1\] = 1: descends"),
        ({"phase_ends": [0.5]}, r"phase_ends\[0\] = 0.5 is not an integer"),
        ({"start": [0.7]}, r"start\[0\] = 0.7 is not an integer"),
        ({"start": [2]}, r"start\[0\] = 2: out of range"),
        ({"end": [-1]}, r"end\[0\] = -1: out of range"),
        ({"there": [float("nan")]}, r"there\[0\] = nan: not a finite number"),
        ({"there": [math.inf]}, r"there\[0\] = inf: not a finite number"),
        ({"back": [-1.0]}, r"back\[0\] = -1"),
        ({"back": [1.0, 1.0]}, "start, end, there and back differ in length"),
        ({"back": [[1.0]]}, r"back has shape \(1, 1\); expected one dimension"),
    ],
)
def test_a_wrong_flow_is_named(change: dict[str, object], message: str) -> None:
    network = kernels.PortNetwork(**two_ports())  # type: ignore[arg-type]
    good: dict[str, object] = {"phase_ends": [1], "start": [0], "end": [1], "there": [1.0], "back": [0.0]}
    assert network.phase_times(kernels.Flows(**good)) == [(1.0, 0, 0.0)]  # type: ignore[arg-type]
    wrong = kernels.Flows(**(good | change))  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=message):
        network.phase_times(wrong)
    with pytest.raises(ValueError, match=message):
        network.best_orders(wrong, np.array([[0, 1]], np.int32))


def test_a_wrong_set_or_vertex_is_named() -> None:
    network = kernels.PortNetwork(**two_ports())  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"sets\[1, 0\] = 2: out of range"):
        network.best_orders(NO_FLOWS, np.array([[0, 1], [2, 0]], np.int32))
    with pytest.raises(ValueError, match=r"sets has shape \(2,\); expected 2 dimensions"):
        network.best_orders(NO_FLOWS, np.array([0, 1], np.int32))
    with pytest.raises(ValueError, match="sets are not rows of 0"):
        network.best_orders(NO_FLOWS, np.empty((1, 0), np.int32))
    with pytest.raises(ValueError, match="flows = 3 is not a Flows"):
        network.phase_times(3)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"end = 2 .*0\.\.1"):
        network.route(0, 2)


def test_nothing_takes_no_time() -> None:
    network = kernels.PortNetwork(**two_ports())  # type: ignore[arg-type]
    assert network.phase_times(NO_FLOWS) == []
    orders = network.best_orders(NO_FLOWS, np.array([[1, 0]], np.int32))
    assert orders.vertices.tolist() == [[1, 0]]
    assert orders.seconds.tolist() == [0.0]
    empty = kernels.PortNetwork([], np.empty((0, 0)), [], np.empty((0, 0)), np.empty((0, 0)))
    assert empty.num_vertices == 0
