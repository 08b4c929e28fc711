"""`map_gang` against its verifier and every placement of small gangs, and its arguments."""

from __future__ import annotations

import math
import time
from itertools import permutations
from typing import Any

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings

from gang_cases import Collective, Gang, gang_on, gangs, machines
from topoplace import kernels

EQUAL = 1 + 1e-9


def seconds_of(gang: Gang, vertex_of: Any, others: kernels.FlowCounts | None = None) -> float:
    return sum(one.seconds for one in gang.network.times(gang.job, vertex_of, others=others))


def others_in(gang: Gang, data: st.DataObject) -> kernels.FlowCounts:
    network = gang.network.network
    counts = kernels.FlowCounts(network)
    vertex, amount = st.integers(0, network.num_vertices - 1), st.sampled_from([0.5, 3.0, 10.0])
    flows = data.draw(st.lists(st.tuples(vertex, vertex, amount), max_size=6))
    columns = np.array(flows).reshape(-1, 3).T
    counts.add(
        kernels.Flows(
            [len(flows)],
            columns[0].astype(np.int32),
            columns[1].astype(np.int32),
            columns[2],
            np.zeros(len(flows)),
        )
    )
    return counts


@given(gangs(), st.booleans(), st.data())
def test_mappings_are_verified(gang: Gang, beside: bool, data: st.DataObject) -> None:
    others = others_in(gang, data) if beside else None
    found = kernels.map_gang(*gang, others=others, work=20_000)
    room = sum(gang.tree.room)  # type: ignore[arg-type]
    assert (found is None) == (room < gang.exchanges.num_items)
    if found is None:
        return
    assert found.complete
    assert kernels.verify_gang_mapping(*gang, found, others=others)
    assert found.seconds == pytest.approx(seconds_of(gang, found.vertex_of, others))
    again = kernels.map_gang(*gang, others=others, work=20_000)
    assert again is not None
    assert again.vertex_of.tolist() == found.vertex_of.tolist()
    slower = found._replace(seconds=found.seconds * 1.001 + 1e-6)
    assert not kernels.verify_gang_mapping(*gang, slower, others=others)
    unknown = found._replace(seconds=math.inf, port_seconds=math.inf)
    assert kernels.verify_gang_mapping(*gang, unknown, others=others)


@settings(max_examples=30)
@given(gangs(most_machines=3, most_tasks=4))
def test_no_placement_of_a_small_gang_is_faster(gang: Gang) -> None:
    found = kernels.map_gang(*gang)
    tasks: Any = gang.places.tasks
    n, unit = gang.network.network.num_vertices, tasks.shape[1]
    if found is None or unit > 1 or math.perm(n, tasks.size) > 1000:
        return
    best = min(seconds_of(gang, one) for one in permutations(range(n), tasks.size))
    assert found.seconds <= best * EQUAL


@given(gangs(), st.data())
def test_a_start_is_improved_within_its_domains(gang: Gang, data: st.DataObject) -> None:
    room, start = list(gang.tree.room), []  # type: ignore[arg-type, var-annotated]
    if sum(room) < gang.exchanges.num_items:
        return
    for _ in range(gang.exchanges.num_items):
        leaf = data.draw(st.sampled_from([leaf for leaf, left in enumerate(room) if left]))
        room[leaf] -= 1
        start.append(leaf)
    confined = data.draw(st.lists(st.integers(0, 2), min_size=len(start), max_size=len(start)))
    first, found = (
        kernels.map_gang(*gang, start=start, confined=confined, work=work) for work in (0, 10_000)
    )
    assert first is not None
    assert found is not None
    assert kernels.verify_gang_mapping(*gang, found, start=start, confined=confined)
    assert found.seconds <= first.seconds * EQUAL
    fixed = kernels.map_gang(*gang, start=start, confined=[2] * len(start))
    assert fixed is not None
    ends: Any = gang.places.leaf_ends
    leaf_of = np.searchsorted(ends, fixed.vertex_of, side="right")
    for leaf, row in zip(start, np.asarray(gang.places.tasks), strict=True):
        assert leaf_of[row].tolist() == [leaf] * len(row)


def ring_of(num_tasks: int, num_machines: int) -> Gang:
    sizes = [8] * num_machines
    ring = Collective("ring", range(num_tasks))
    return gang_on(machines(sizes), sizes, [[task] for task in range(num_tasks)], [[ring]])


def test_a_ring_fills_machines() -> None:
    """All eight adapters of each machine carry a channel."""
    found = kernels.map_gang(*ring_of(64, 12))
    assert found is not None
    assert found.seconds == pytest.approx(1 / 8)
    assert np.bincount(found.vertex_of // 8).tolist().count(8) == 8


def test_flows_of_others_are_avoided() -> None:
    """Adapter 0 of the first machine is busy, and one task has to be there."""
    network = machines([2, 2])
    counts = kernels.FlowCounts(network.network)
    ends = np.array([0], np.int32), np.array([2], np.int32)
    counts.add(kernels.Flows([1], *ends, np.array([50.0]), np.array([50.0])))
    gang = gang_on(network, [2, 2], [[0], [1]], [[Collective("pairs", [0, 1])]])
    found = kernels.map_gang(*gang, start=[0, 1], confined=[2, 2], others=counts)
    assert found is not None
    assert found.vertex_of.tolist() == [1, 3]
    assert found.seconds == pytest.approx(0.5)


def test_a_timeout_ends_the_search() -> None:
    gang = ring_of(4000, 900)
    begin = time.process_time()
    found = kernels.map_gang(*gang, timeout=0.05, work=1 << 40)
    assert time.process_time() - begin < 1.5
    assert found is not None
    assert not found.complete
    assert kernels.verify_gang_mapping(*gang, found)
    at_once = kernels.map_gang(*gang, timeout=0)
    assert at_once is not None
    assert not at_once.complete
    assert kernels.verify_gang_mapping(*gang, at_once)


def test_pairs_of_thousands_of_tasks_may_have_no_time_yet() -> None:
    tasks = range(3000)
    sizes = [8] * 400
    gang = gang_on(machines(sizes), sizes, [[task] for task in tasks], [[Collective("pairs", tasks)]])
    found = kernels.map_gang(*gang, timeout=0)
    assert found is not None
    assert not found.complete
    assert sorted(found.vertex_of.tolist()) == np.unique(found.vertex_of).tolist()
    assert kernels.verify_gang_mapping(*gang, found)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"network": None}, "network = None"),
        ({"job": 3}, "job = 3"),
        ({"places": ()}, r"places = \(\)"),
        ({"tree": None}, "tree = None"),
        (
            {"places": kernels.GangPlaces([[0], [1]], [2, 4], range(4))},
            "tasks has 2 entries, not equally many",
        ),
        ({"places": kernels.GangPlaces([[0], [1], [1]], [2, 4], range(4))}, r"tasks\[2\] = 1: listed twice"),
        ({"places": kernels.GangPlaces([[0], [1], [2]], [4], range(4))}, "leaf_ends has 1 entries, not 2"),
        ({"places": kernels.GangPlaces([[0], [1], [2]], [2, 3], range(4))}, "leaf_ends ends at 3 of 4"),
        ({"places": kernels.GangPlaces([[0], [1], [2]], [2, 4.5], range(4))}, r"leaf_ends\[1\] = 4.5 is not"),
        ({"places": kernels.GangPlaces([[0], [1], [2]], [2, 4], [0, 1, 2, 4])}, r"places\[3\] = 4: out of"),
        (
            {"places": kernels.GangPlaces([[0], [1], [2]], [1, 4], range(4))},
            r"room\[0\] = 2: more items than",
        ),
        ({"places": kernels.GangPlaces([0, 1, 2], [2, 4], range(4))}, r"tasks has shape \(3,\)"),
        ({"start": [0, 0, 2]}, r"start\[2\] = 2: out of range"),
        ({"others": 3}, "others = 3"),
        ({"others": kernels.FlowCounts(machines([2, 2]).network)}, "others are flows of another network"),
        ({"least_seconds": -1}, "least_seconds = -1"),
        ({"seed": -1}, "seed = -1"),
        ({"work": 0.5}, "work = 0.5"),
        ({"moves": -1}, "moves = -1"),
        ({"timeout": -1}, "timeout = -1"),
    ],
)
def test_wrong_arguments_are_named(changes: dict[str, Any], message: str) -> None:
    gang = gang_on(machines([2, 2]), [2, 2], [[0], [1], [2]], [[Collective("ring", [0, 1, 2])]])
    with pytest.raises(ValueError, match=message):
        kernels.map_gang(**{**gang._asdict(), **changes})
    kept = {name: one for name, one in changes.items() if name in {*Gang._fields, "start", "others"}}
    mapping = kernels.GangMapping(np.arange(3, dtype=np.int32), 0.0, 0.0, True, 0)
    if kept:
        with pytest.raises(ValueError, match=message):
            kernels.verify_gang_mapping(**{**gang._asdict(), "mapping": mapping, **kept})
