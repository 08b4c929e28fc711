"""How a job says which tasks must be together."""

from __future__ import annotations

import pickle
from typing import Any

import hypothesis.strategies as st
import pytest
from hypothesis import given

import topoplace as tp


def tasks_of(job: tp.JobGraph) -> list[tuple[int, ...]]:
    return [group.tasks for group in job.groups]


def test_blocks_of_one_size_of_which_the_last_may_be_shorter() -> None:
    job = tp.JobGraph.ring(10).grouped(4, within="rack")
    assert tasks_of(job) == [(0, 1, 2, 3), (4, 5, 6, 7), (8, 9)]
    assert {group.within for group in job.groups} == {"rack"}


def test_blocks_of_a_size_each() -> None:
    job = tp.JobGraph.ring(6).grouped([3, 1, 2], prefer="rack")
    assert tasks_of(job) == [(0, 1, 2), (3,), (4, 5)]
    assert {group.prefer for group in job.groups} == {"rack"}


def test_the_groups_of_a_dimension() -> None:
    job = tp.JobGraph.parallel(tensor=2, data=3).grouped("data", within="leaf")
    assert tasks_of(job) == list(job.dimensions["data"]) == [(0, 2, 4), (1, 3, 5)]


def test_nested_groups_add_up_and_repetitions_count_once() -> None:
    job = tp.JobGraph.ring(8).grouped(4, within="machine").grouped(8, within="rack")
    assert tasks_of(job) == [tuple(range(8)), (0, 1, 2, 3), (4, 5, 6, 7)]
    assert job.grouped(8, within="rack") == job
    assert job == tp.JobGraph.ring(8).grouped(8, within="rack").grouped(4, within="machine")


def test_groups_are_requirements() -> None:
    job = tp.JobGraph.ring(4).grouped(2, within="machine").with_(balanced="rack")
    assert job.requirements == ("groups", "balanced")
    assert job.with_(groups=(), balanced=None) == tp.JobGraph.ring(4)


@given(
    st.integers(1, 9).flatmap(
        lambda size: st.tuples(
            st.just(size),
            st.lists(
                st.tuples(st.integers(1, size), st.sampled_from(["machine", "rack"]), st.booleans()),
                max_size=3,
            ),
        )
    )
)
def test_json_and_pickle_keep_groups(drawn: tuple[int, list[tuple[int, str, bool]]]) -> None:
    size, groupings = drawn
    job = tp.JobGraph.chain(size)
    for length, level, is_required in groupings:
        kind = {"within" if is_required else "prefer": level}
        try:
            job = job.grouped(length, **kind)  # type: ignore[arg-type]
        except tp.JobGraphError:  # required groups that cross
            continue
    assert tp.JobGraph.from_json(job.to_json()) == job
    assert tp.JobGraph.from_json(job.to_json()).to_json() == job.to_json()
    assert pickle.loads(pickle.dumps(job)) == job


@pytest.mark.parametrize(
    ("groups", "message"),
    [
        (0, r"groups = 0 is not in 1\.\.8"),
        (9, r"groups = 9 is not in 1\.\.8"),
        (2.5, "groups = 2.5 is not an integer"),
        ([3, 3], r"groups = \(3, 3\) have 6 tasks, the job has 8"),
        ([8, 0], r"groups\[1\] = 0 is not in 1\.\.8"),
        ({2, 6}, r"groups = \{2, 6\} is a set, which has no order"),
        ("tensor", "groups = 'tensor' is no dimension of the job; it has all"),
    ],
)
def test_a_wrong_size_is_named(groups: Any, message: str) -> None:
    with pytest.raises(tp.JobGraphError, match=message):
        tp.JobGraph.ring(8).grouped(groups, within="machine")


@pytest.mark.parametrize(
    ("groups", "message"),
    [
        (
            [tp.Group((0, 1), "a"), tp.Group((1, 2), "b")],
            "the group of tasks 1, 2 within 'b' crosses the group",
        ),
        ([{"tasks": [4], "within": "a"}], "groups: task 4 is in a group, the job has 4 tasks"),
        ([{"tasks": [0, 0], "within": "a"}], r"groups\[0\]: tasks has task 0 twice"),
        ([{"tasks": [0], "inside": "a"}], r"groups\[0\] has the unknown key 'inside'"),
        ([{"within": "a"}], r"groups\[0\] has no tasks"),
        ([{"tasks": [], "within": "a"}], r"groups\[0\]: tasks is empty"),
        ([{"tasks": [0]}], r"groups\[0\]: a group needs within or prefer"),
        ([{"tasks": [0], "within": ""}], r"groups\[0\]: within"),
        ([3], r"groups\[0\] = 3 is not"),
        (3, "groups = 3 is not"),
    ],
)
def test_a_wrong_group_is_named(groups: Any, message: str) -> None:
    with pytest.raises(tp.JobGraphError, match=message):
        tp.JobGraph.ring(4).with_(groups=groups)


def test_a_group_without_a_level_is_refused() -> None:
    with pytest.raises(tp.JobGraphError, match="within or prefer"):
        tp.JobGraph.ring(4).grouped(2)
