"""Every field of a placement is checked, its scores are read-only, and a cluster takes placements on its topology."""

from __future__ import annotations

import copy
import json
import math
import pickle
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import topoplace as tp
from topoplace.topology.tiling import as_machine

DGX = tp.machines.get("dgx1-v100")
PAIR = tp.Topology.from_links(4, [], machines=["a", "b", "a", "b"])
HOST = tp.HostShare(0)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"scores": 3}, "scores = 3 is not a Mapping"),
        ({"scores": None}, "scores = None is not a Mapping"),
        ({"scores": [("utility", 1.0)]}, r"scores = \[\('utility', 1.0\)\] is not a Mapping"),
        ({"scores": {1: 1.0}}, "a name in scores = 1 is not a non-empty string"),
        ({"scores": {"utility": "high"}}, r"scores\['utility'\] = 'high' is not a number"),
        ({"scores": {"utility": True}}, r"scores\['utility'\] = True is not a number"),
        ({"scores": {"utility": None}}, r"scores\['utility'\] = None is not a number"),
        ({"optimal": 1}, "optimal = 1 is not True or False"),
        ({"optimal": None}, "optimal = None is not True or False"),
        ({"job": "ring"}, "job = 'ring' is not a JobGraph"),
        ({"job": False}, "job = False is not a JobGraph"),
        ({"hosts": None}, "hosts = None is not a sequence"),
        ({"drives": 0}, "drives = 0 is not a sequence"),
        ({"remote": None}, "remote = None is not a sequence"),
        ({"remote": (1.0,), "hosts": (HOST,)}, r"remote\[0\] = 1.0 is not an integer"),
        ({"remote": (True,), "hosts": (HOST,)}, r"remote\[0\] = True is not an integer"),
        ({"remote": (1, 1), "hosts": (HOST,)}, r"remote = \(1, 1\) lists a GPU twice"),
    ],
)
def test_a_field_of_another_type_is_refused(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(tp.AllocationError, match=f"^{message}"):
        tp.Placement((1, 2), topology=PAIR, **fields)


def test_numbers_of_numpy_become_those_of_python() -> None:
    placement = tp.Placement(
        (1, 2),
        topology=PAIR,
        scores={"utility": np.float32(0.5), "remote_gpus": 1},
        hosts=(HOST,),
        remote=np.array([1]),  # type: ignore[arg-type]
        drives=np.array([1]),  # type: ignore[arg-type]
    )
    assert [type(number) for number in (*placement.remote, *placement.drives)] == [int, int]
    assert {name: type(score) for name, score in placement.scores.items()} == {
        "utility": float,
        "remote_gpus": int,
    }


def test_scores_do_not_follow_the_dictionary_they_came_from() -> None:
    given = {"utility": 0.5}
    placement = tp.Placement((1,), topology=PAIR, scores=given)
    given["utility"] = 0.7
    assert placement.scores == {"utility": 0.5}


def test_scores_are_read_only() -> None:
    scores: Any = tp.Placement((1,), topology=PAIR, scores={"utility": 0.5}).scores

    def add(other: dict[str, float]) -> None:
        nonlocal scores
        scores |= other

    for change in (
        lambda: scores.__setitem__("utility", 1.0),
        lambda: scores.__delitem__("utility"),
        lambda: scores.update(utility=1.0),
        lambda: scores.setdefault("other", 1.0),
        lambda: scores.pop("utility"),
        scores.popitem,
        scores.clear,
        lambda: add({"utility": 1.0}),
    ):
        with pytest.raises(TypeError, match="read-only"):
            change()
    assert scores == {"utility": 0.5}


def test_copies_and_pickles_and_json_have_the_same_scores() -> None:
    scores = {"utility": 0.5, "bottleneck_bandwidth": math.inf}
    placement = tp.Placement((1,), topology=PAIR, scores=scores, job=tp.JobGraph.ring(1))
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        assert pickle.loads(pickle.dumps(placement.scores, protocol)) == scores
    for other in (
        pickle.loads(pickle.dumps(placement)),
        copy.copy(placement),
        copy.deepcopy(placement),
        replace(placement, optimal=False),
    ):
        assert other == placement
        assert other.scores == scores
        assert hash(other) == hash(placement)
        with pytest.raises(TypeError, match="read-only"):
            other.scores["utility"] = 0.0
    assert json.dumps(placement.scores) == json.dumps(scores)
    assert placement != replace(placement, scores={"utility": 0.4})


@pytest.mark.parametrize(
    "other",
    [
        tp.machines.get("summit"),
        tp.machines.get("dgx1-p100"),
        as_machine(DGX, "b"),
        replace(DGX, name="other"),
    ],
)
def test_a_cluster_takes_no_placement_on_another_topology(other: tp.Topology) -> None:
    cluster = tp.Cluster(DGX)
    with pytest.raises(tp.AllocationError, match=r"^placement\.topology: the placement is on"):
        cluster.allocate("job", tp.Placement((0, 1), topology=other))
    assert cluster.num_free == 8


def test_a_cluster_takes_a_placement_on_an_equal_topology() -> None:
    cluster = tp.Cluster(DGX)
    cluster.allocate("job", pickle.loads(pickle.dumps(tp.Placement((0, 1), topology=DGX))))
    cluster.allocate("list", [2, 3])
    assert cluster.num_free == 4
