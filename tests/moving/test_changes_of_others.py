"""The cases of Kueue's test suites in which a node fails, or a job grows or shrinks: our answers are as good."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import topoplace as tp

LEAST = 16
"""The least number of cases that must be understood."""


@pytest.fixture(scope="module")
def changes(shared: Path) -> list[dict[str, Any]]:
    path = shared / "data" / "rivals" / "kueue.json"
    if not path.is_file():
        pytest.skip(f"needs the cases of Kueue, and {path} does not exist")
    return [case for case in json.loads(path.read_text("utf-8"))["cases"] if case["kind"] == "change"]


def test_no_change_moves_more_pods_or_uses_more_nodes(
    changes: list[dict[str, Any]], record_property: Callable[[str, object], None]
) -> None:
    faults: list[str] = []
    seen, better = 0, list[str]()
    for case in changes:
        request, expected = case["requests"][0], case["expected"][0]
        if request["kind"] == "keep":  # a pod without an owner is not replaced at all
            continue
        seen += 1
        ours, theirs = answer(case, request), nodes_of(expected)
        if theirs is None:
            better += [case["id"]] if ours else []
        elif ours is None:
            faults.append(f"{case['id']}: possible, but not found")
        elif (worse := (ours[0] > moved(request, theirs), ours[1] > len(theirs))) != (False, False):
            faults.append(f"{case['id']}: {ours} beside {theirs}, worse: {worse}")
        elif ours[1] < len(theirs):
            better.append(case["id"])
    record_property("better", ", ".join(better))
    assert not faults
    assert seen >= LEAST


def before(request: dict[str, Any]) -> dict[str, int]:
    """The pods on each node before."""
    given = (request.get("replace") or request).get("previous", [])
    return {place["at"]["host"]: place["pods"] for place in given}


def nodes_of(expected: dict[str, Any]) -> dict[str, int] | None:
    """The pods on each node afterwards; None if the request was refused."""
    if "assignment" not in expected:
        return None
    return {place["at"]["host"]: place["pods"] for place in expected["assignment"]}


def moved(request: dict[str, Any], after: dict[str, int]) -> int:
    """The pods that are on a node on which fewer were."""
    return sum(max(0, pods - before(request).get(node, 0)) for node, pods in after.items())


def answer(case: dict[str, Any], request: dict[str, Any]) -> tuple[int, int] | None:
    """The pods that move, or start, and the nodes that are used; None if there is no room."""
    cluster, job, numbers = translated(case, request)
    cluster.allocate("job", numbers, tp.JobGraph.independent(len(numbers)))
    if "replace" not in request:
        plan = tp.resize("job", cluster, job)
    else:
        cluster.release("job")
        cluster.record("job", numbers, job)
        failed = cluster.topology.gpus_of[request["replace"]["failed"]]
        lost = [gpu for gpu in numbers if gpu in failed]
        front = tp.repair("job", cluster, lost=lost)
        plan = front.plans[0] if front.plans and not front.unrepaired else None
    if plan is None or plan.placement is None:
        return None
    machines = cluster.topology.machine_of[list(plan.placement.gpus)].tolist()
    return plan.moved.all + len(plan.added), len(set(machines))


def translated(case: dict[str, Any], request: dict[str, Any]) -> tuple[tp.Cluster, tp.JobGraph, list[int]]:
    """The cluster with a GPU for each pod that a node has room for, the job, and the GPUs that it has."""
    was, failed = before(request), (request.get("replace") or {}).get("failed")
    charged = case["id"].startswith("kueue-sched")
    rooms, places = dict[str, int](), dict[str, dict[str, str]]()
    for node in case["nodes"]:
        name = node["at"].get("host", node["name"])
        used = node.get("used", {})
        free = min(
            (node["capacity"].get(what, 0) - used.get(what, 0)) // amount
            for what, amount in {**request["per_pod"], "pods": 1}.items()
        )
        rooms[name] = free + (was.get(name, 0) if charged and name != failed else 0)
        rooms[name] = max(rooms[name], was.get(name, 0)) if node.get("ready", True) else was.get(name, 0)
        places[name] = node["at"]
    for name in was.keys() - rooms.keys():
        rooms[name] = was[name]
    rooms = {name: room for name, room in rooms.items() if room}
    levels = case["levels"][:-1]
    fabric = tp.Fabric(
        tuple(rooms),
        tuple(
            tp.Level(
                level,
                tuple(
                    "/".join(places[name][above] for above in levels[: number + 1])
                    if name in places
                    else None
                    for name in rooms
                ),
            )
            for number, level in reversed(list(enumerate(levels)))
        ),
    )
    machines = {name: tp.Topology.from_links(room, []) for name, room in rooms.items()}
    cluster = tp.Cluster(tp.Topology.cluster(machines, fabric=fabric if levels else None))
    return cluster, job_of(request), given(cluster.topology, was)


def given(topology: tp.Topology, was: dict[str, int]) -> list[int]:
    return [gpu for name, pods in was.items() for gpu in topology.gpus_of[name][:pods]]


def job_of(request: dict[str, Any]) -> tp.JobGraph:
    job = tp.JobGraph.independent(request["pods"])
    if required := request.get("required"):
        job = job.with_(within="machine" if required == "host" else required)
    for layer in request.get("slices", ()):
        job = job.grouped(layer["size"], within="machine" if layer["level"] == "host" else layer["level"])
    return job
