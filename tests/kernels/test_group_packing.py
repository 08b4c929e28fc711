"""`pack_groups` and `repack_groups` against every assignment on small trees, and their arguments."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import NamedTuple
from unittest.mock import Mock

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given

from topoplace import _core, kernels
from topoplace.errors import SearchTimeoutError


class Problem(NamedTuple):
    """The positional arguments of `pack_groups`."""

    parent: list[int]
    room: list[int]
    group_parent: list[int]
    group_depth: list[int]
    own_tasks: list[int]


@st.composite
def problems(draw: st.DrawFn) -> Problem:
    """Racks of machines, and up to five tasks in groups on either level."""
    racks = draw(st.lists(st.lists(st.integers(0, 3), min_size=1, max_size=3), min_size=1, max_size=3))
    parent = [-1] + [0] * len(racks)
    room = [99] + [draw(st.sampled_from([99, 99, 2, 4])) for _ in racks]
    for i, machines in enumerate(racks):
        parent += [1 + i] * len(machines)
        room += machines
    found = Problem(parent, room, [-1], [0], [draw(st.integers(0, 2))])
    left = draw(st.integers(1, 5)) - found.own_tasks[0]
    while left > 0:
        around = draw(st.integers(0, len(found.own_tasks) - 1))
        own = draw(st.integers(1, left))
        left -= own
        if found.group_depth[around] == 2:
            found.own_tasks[around] += own
            continue
        found.group_parent.append(around)
        found.group_depth.append(draw(st.integers(found.group_depth[around] + 1, 2)))
        found.own_tasks.append(own)
    return found


def packings(problem: Problem) -> Iterator[tuple[int, ...]]:
    """Yield the leaves of the tasks, by group, of every packing: try every leaf for every task."""
    leaves = [i for i in range(len(problem.parent)) if i not in problem.parent]
    group_of = [group for group, tasks in enumerate(problem.own_tasks) for _ in range(tasks)]
    for assigned in product(leaves, repeat=len(group_of)):
        load = [0] * len(problem.parent)
        homes: dict[int, set[int]] = {}
        for innermost, leaf in zip(group_of, assigned, strict=True):
            way = [leaf]
            while problem.parent[way[-1]] >= 0:
                way.append(problem.parent[way[-1]])
            for domain in way:
                load[domain] += 1
            group = innermost
            while group >= 0:
                homes.setdefault(group, set()).add(way[::-1][problem.group_depth[group]])
                group = problem.group_parent[group]
        fits = all(number <= room for number, room in zip(load, problem.room, strict=True))
        if fits and all(len(home) == 1 for home in homes.values()):
            yield assigned


@given(problems())
def test_a_packing_is_found_if_one_exists(problem: Problem) -> None:
    found = kernels.pack_groups(*problem)
    assert (found is not None) == any(True for _ in packings(problem))
    if found is not None:
        assert kernels.verify_group_packing(*problem, found.shares)
        again = kernels.pack_groups(*problem)
        assert again is not None
        assert np.array_equal(found.shares, again.shares)


@given(problems())
def test_no_packing_uses_fewer_domains(problem: Problem) -> None:
    """The racks first, then the machines; of as many, the racks and then the machines with the least room."""
    found = kernels.pack_groups(*problem)
    if found is None:
        return
    assert found.fewest
    leaves = {leaf for _, leaf, _ in found.shares.tolist()}
    assert _used(problem, leaves) == min(_used(problem, set(assigned)) for assigned in packings(problem))


def _used(problem: Problem, leaves: set[int]) -> tuple[int, ...]:
    """Return the numbers of racks and machines in use, and the room of each of both, all together."""
    racks = {problem.parent[leaf] for leaf in leaves}
    room = {
        rack: min(
            problem.room[rack],
            sum(problem.room[i] for i, above in enumerate(problem.parent) if above == rack),
        )
        for rack in racks
    }
    return len(racks), len(leaves), sum(room.values()), sum(problem.room[leaf] for leaf in leaves)


def test_the_largest_rack_is_not_taken_where_another_one_needs_fewer_machines() -> None:
    parent, room = [-1, 0, 0, 1, 1, 1, 2, 2], [99, 99, 99, 3, 3, 2, 4, 4]
    found = kernels.pack_groups(parent, room, [-1], [0], [8])
    assert found is not None
    assert found.fewest
    assert found.shares.tolist() == [[0, 6, 4], [0, 7, 4]]


def test_a_job_too_large_to_know_the_fewest_still_has_a_packing() -> None:
    room = [10**6, *[7] * 5000]
    found = kernels.pack_groups([-1] + [0] * 5000, room, [-1], [0], [34_000])
    assert found is not None
    assert not found.fewest
    assert len(found.shares) == -(-34_000 // 7)


@given(problems(), st.integers(1, 2))
def test_balanced_shares_are_as_even_as_any_on_as_many_domains(problem: Problem, depth: int) -> None:
    plain, even = kernels.pack_groups(*problem), kernels.pack_groups(*problem, balanced=depth)
    assert (plain is None) == (even is None)
    if plain is None or even is None:
        return
    assert kernels.verify_group_packing(*problem, even.shares, balanced=depth)
    loads, found = (_loads(problem, one.shares, depth) for one in (plain, even))
    assert len(found) <= len(loads)
    if depth == 1:
        assert found == min(one for one in _all_loads(problem) if len(one) <= len(loads))


def _all_loads(problem: Problem) -> set[tuple[int, ...]]:
    """Return the tasks of each rack that has some, the most first, for every packing."""
    group_of = [group for group, tasks in enumerate(problem.own_tasks) for _ in range(tasks)]
    return {
        _loads(problem, np.array([(group, leaf, 1) for group, leaf in zip(group_of, leaves, strict=True)]), 1)
        for leaves in packings(problem)
    }


def _loads(problem: Problem, shares: np.ndarray, depth: int) -> tuple[int, ...]:
    loads: dict[int, int] = {}
    for _, leaf, tasks in shares.tolist():
        domain = leaf if depth == 2 else problem.parent[leaf]
        loads[domain] = loads.get(domain, 0) + tasks
    return tuple(sorted(loads.values(), reverse=True))


def test_ten_tasks_on_three_racks_of_four_are_as_even_as_can_be() -> None:
    problem = Problem([-1, 0, 0, 0], [12, 4, 4, 4], [-1], [0], [10])
    even = kernels.pack_groups(*problem, balanced=1)
    assert even is not None
    assert sorted(even.shares[:, 2].tolist()) == [3, 3, 4]
    uneven = [[0, 1, 4], [0, 2, 4], [0, 3, 2]]
    assert kernels.verify_group_packing(*problem, uneven)
    assert not kernels.verify_group_packing(*problem, uneven, balanced=1)


def test_groups_of_several_sizes_fill_the_machines_exactly() -> None:
    machines = [8, 8, 8]
    sizes = [5, 3, 4, 4, 6, 2]
    problem = ([-1, 0, 0, 0], [24, *machines], [-1] + [0] * 6, [0] + [1] * 6, [0, *sizes])
    found = kernels.pack_groups(*problem)
    assert found is not None
    assert kernels.verify_group_packing(*problem, found.shares)
    assert kernels.pack_groups(problem[0], [23, *machines], *problem[2:]) is None


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"parent": [-1, 0, 5]}, r"parent\[2\] = 5: must be a smaller number"),
        ({"parent": [[-1, 0, 0]]}, r"parent has shape \(1, 3\); expected one dimension"),
        ({"room": [9, 1.5, 2]}, r"room\[1\] = 1.5 is not an integer"),
        ({"room": [9, 2]}, "room must have a number for each domain"),
        ({"group_depth": [0, 0]}, r"group_depth\[1\] = 0: must be more than the parent's"),
        ({"own_tasks": [0, float("nan")]}, r"own_tasks"),
        ({"balanced": 3}, "balanced = 3: must be the depth of domains"),
        ({"balanced": -1}, "balanced = -1"),
        ({"timeout": -1}, "timeout = -1"),
        ({"max_nodes": 0}, "max_nodes = 0"),
        (
            {"parent": range(-1, 100_000), "room": [9] * 100_001},
            r"parent\[1001\] = 1000: .* deeper than 1000",
        ),
    ],
)
def test_a_wrong_argument_is_named(change: dict[str, object], message: str) -> None:
    arguments = {
        "parent": [-1, 0, 0],
        "room": [9, 1, 2],
        "group_parent": [-1, 0],
        "group_depth": [0, 1],
        "own_tasks": [1, 2],
    }
    with pytest.raises(ValueError, match=message):
        kernels.pack_groups(**(arguments | change))  # type: ignore[arg-type]


def bin_packing() -> tuple[list[int], list[int], list[int], list[int], list[int]]:
    """300 groups of 2 to 7 tasks in 400 domains."""
    rng = np.random.default_rng(5)
    rooms = rng.integers(3, 9, 400).tolist()
    sizes = rng.integers(2, 8, 300).tolist()
    return [-1] + [0] * 400, [10**6, *rooms], [-1] + [0] * 300, [0] + [1] * 300, [0, *sizes]


def test_a_search_out_of_time_says_so() -> None:
    with pytest.raises(SearchTimeoutError, match="max_nodes = 1"):
        kernels.pack_groups(*bin_packing(), max_nodes=1)


def test_a_search_that_ends_at_its_own_limit_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """42 groups in 14 domains that they fill without a rest reach it, after half a minute."""
    monkeypatch.setattr(
        _core, "pack_groups", Mock(return_value=(False, np.zeros((0, 3), np.int32), False, False, 1))
    )
    with pytest.raises(SearchTimeoutError) as raised:
        kernels.pack_groups([-1, 0], [9, 9], [-1], [0], [9])
    assert (
        str(raised.value)
        == "no packing found within the search's own limit of 65536 nodes, although one may exist"
    )
    with pytest.raises(
        SearchTimeoutError, match=r"within timeout = 2 and the search's own limit of 65536 nodes"
    ):
        kernels.pack_groups([-1, 0], [9, 9], [-1], [0], [9], timeout=2)


def test_the_own_limit_is_the_one_of_the_kernel() -> None:
    header = (Path(__file__).parents[2] / "cpp" / "src" / "groups" / "fit.hpp").read_text("utf-8")
    assert "nodes_left_ = 1U << 16;" in header


def test_a_wrong_packing_is_not_verified() -> None:
    problem = ([-1, 0, 0], [9, 1, 2], [-1, 0], [0, 1], [1, 2])
    assert kernels.verify_group_packing(*problem, [[0, 1, 1], [1, 2, 2]])
    for wrong in (
        [[1, 2, 2]],
        [[0, 2, 1], [1, 2, 2]],
        [[0, 1, 1], [1, 1, 1], [1, 2, 1]],
        [[0, 0, 1], [1, 2, 2]],
    ):
        assert not kernels.verify_group_packing(*problem, wrong)
    with pytest.raises(ValueError, match=r"shares has shape \(1, 2\)"):
        kernels.verify_group_packing(*problem, [[0, 1]])


@st.composite
def losses(draw: st.DrawFn) -> tuple[Problem, list[list[int]]]:
    """A problem, and where some of its tasks are; their groups need not be in one domain."""
    problem = draw(problems())
    leaves = [i for i in range(len(problem.parent)) if i not in problem.parent]
    kept: list[list[int]] = []
    for group, tasks in enumerate(problem.own_tasks):
        for leaf in draw(st.lists(st.sampled_from(leaves), unique=True, max_size=3)):
            if tasks:
                kept.append([group, leaf, draw(st.integers(1, tasks))])
                tasks -= kept[-1][2]
    return problem, kept


@given(losses())
def test_no_repacking_moves_fewer_tasks(loss: tuple[Problem, list[list[int]]]) -> None:
    problem, kept = loss
    group_of = [group for group, tasks in enumerate(problem.own_tasks) for _ in range(tasks)]
    stay = {(group, leaf): tasks for group, leaf, tasks in kept}

    def moved(assigned: tuple[int, ...]) -> int:
        counts = Counter(zip(group_of, assigned, strict=True))
        return sum(tasks - min(tasks, stay.get(share, 0)) for share, tasks in counts.items())

    found = kernels.repack_groups(*problem, kept)
    fewest = min(map(moved, packings(problem)), default=None)
    assert (found.moved if found else None) == fewest
    if found:
        assert found.optimal
        assert kernels.verify_group_repacking(*problem, kept, found.shares, found.moved)
        assert not kernels.verify_group_repacking(*problem, kept, found.shares, found.moved + 1)


RACKS_OF_3 = ([-1, 0, 0, 1, 1, 1, 2, 2, 2], [9, 9, 9, 0, 1, 1, 1, 0, 0], [-1, 0], [0, 1], [1, 2])
"""Machines of one GPU, of which the first is lost, and two of the other rack are busy; a task, and two in one rack."""


def test_a_healthy_task_steps_aside_so_that_a_group_stays_together() -> None:
    found = kernels.repack_groups(*RACKS_OF_3, [[0, 5, 1], [1, 4, 1]])
    assert found is not None
    assert (found.moved, found.bound, found.optimal) == (2, 2, True)
    assert found.shares.tolist() == [[0, 6, 1], [1, 4, 1], [1, 5, 1]]


def test_tasks_that_keep_their_place_do_not_move() -> None:
    found = kernels.repack_groups(*RACKS_OF_3, [[0, 6, 1], [1, 4, 1], [1, 5, 1]])
    assert found is not None
    assert found.moved == 0
    everywhere = kernels.repack_groups([-1, 0, 0], [8, 8, 8], [-1, 0], [0, 1], [0, 8], [])
    assert everywhere is not None
    assert everywhere.moved == 8
    assert kernels.repack_groups([-1, 0, 0], [8, 7, 7], [-1, 0], [0, 1], [0, 8], [[1, 1, 7]]) is None


@pytest.mark.parametrize(
    ("kept", "message"),
    [
        ([[0, 5]], r"kept has shape \(1, 2\)"),
        ([[2, 5, 1]], r"kept\[0\] = 2: must be a group"),
        ([[0, 1, 1]], r"kept\[0\] = 1: must be a leaf"),
        ([[0, 5, 0]], r"kept\[0\] = 0: must be at least one task"),
        ([[1, 4, 1], [1, 4, 1]], r"kept\[1\] = 4: the group has this leaf twice"),
        ([[0, 4, 1], [0, 5, 1]], r"kept\[1\] = 1: more tasks than the group has"),
        ([[0, 5, 1], [0, -2, 1]], r"kept\[1, 1\] = -2 is not an integer"),
        ([[0, 5, 0.5]], r"kept\[0, 2\] = 0\.5 is not an integer"),
    ],
)
def test_what_is_kept_is_checked(kept: list[list[float]], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        kernels.repack_groups(*RACKS_OF_3, kept)


def test_a_search_that_ends_early_returns_any_packing() -> None:
    early = kernels.repack_groups(*RACKS_OF_3, [[0, 5, 1], [1, 4, 1]], max_nodes=1)
    assert early is not None
    assert early.bound < early.moved
    with pytest.raises(SearchTimeoutError, match="no repacking found within max_nodes = 1"):
        kernels.repack_groups(*bin_packing(), [], max_nodes=1)


def test_groups_without_room_are_refused_at_once() -> None:
    machines = [-1] + [0] * 6
    found = kernels.repack_groups(
        machines,
        [46, 7, 7, 8, 8, 8, 8],
        [-1] + [0] * 12,
        [0] + [1] * 12,
        [0] + [4] * 12,
        [[1, 3, 4], [2, 3, 4]],
    )
    assert found is None
