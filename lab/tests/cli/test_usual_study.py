"""How much sooner do jobs finish on a DGX-1 with least-time? Whoever is asked gives one answer."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Callable
from pathlib import Path

import pytest

import topoplace as tp
from command_line import Call
from topoplace.topology.fabric import Fabric
from topoplace_lab import usual_study
from topoplace_lab.explore_queue import QueueState, simulated

Ask = Callable[[Call, Path], str]


def read_me(_: Call, repository: Path) -> str:
    return " ".join((repository / "README.md").read_text("utf-8").split())


def documentation(_: Call, repository: Path) -> str:
    return " ".join((repository / "docs/simulator.md").read_text("utf-8").split())


def make_demo(call: Call, repository: Path) -> str:
    recipe = (repository / "Makefile").read_text("utf-8")
    (line,) = re.findall(r"^\ttopoplace (simulate .*)$", recipe, re.MULTILINE)
    return call(*shlex.split(line)).out


def simulate(call: Call, _: Path) -> str:
    return call("simulate", "dgx1-v100", "--policies", "baseline,least-time").out


def explore(*_: object) -> str:
    found: str = simulated(QueueState.of({"state": {"machine": "dgx1-v100"}}))["conclusion"]
    return found


def sweep(call: Call, _: Path) -> str:
    Path("plan.toml").write_text(
        'policies = ["baseline", "least-time"]\ntopologies = ["dgx1-v100"]\n', "utf-8"
    )
    return call("sweep", "plan.toml", "-o", "cells", "--workers", 1).out


def each_alone(call: Call, _: Path) -> str:
    one, other = (
        json.loads(call("simulate", "dgx1-v100", "--policy", policy, "--json").out)["mean_turnaround"]
        for policy in ("baseline", "least-time")
    )
    return f"jobs finish {100 * (1 - other / one):.1f} % sooner"


@pytest.mark.parametrize("ask", [read_me, documentation, make_demo, explore, sweep, each_alone])
def test_one_question_has_one_answer(
    ask: Ask, call: Call, repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    answers = [re.search(r"jobs finish ([\d.]+) % sooner", one(call, repository)) for one in (simulate, ask)]
    assert answers[0]
    assert answers[1]
    assert answers[0][1] == answers[1][1]


def test_what_is_written_of_several_seeds_is_what_they_give(call: Call, repository: Path) -> None:
    found = call("simulate", "dgx1-v100", "--policies", "baseline,least-time", "--seeds", 5).out
    said = re.search(
        r"jobs finish (.*) % sooner than under baseline \(95 % interval (.*) %, 5 seeds\)", found
    )
    assert said
    for page in (read_me(call, repository), documentation(call, repository)):
        assert re.search(rf"{said[1]} %,? with a 95 % interval of {said[2]} %", page)


def test_the_usual_jobs_depend_on_the_machine() -> None:
    fabric = Fabric.regular(4, {"leaf": 2})
    cluster = tp.Topology.cluster(tp.machines.get("dgx-h100"), fabric=fabric)
    sizes = {
        name: {job.num_tasks for job in usual_study.jobs(one).jobs}
        for name, one in (
            ("dgx1", tp.machines.get("dgx1-v100")),
            ("alone", tp.machines.get("dgx-h100")),
            ("cluster", cluster),
            ("dgx1s", tp.Topology.cluster(tp.machines.get("dgx1-v100"), 3)),
        )
    }
    assert sizes["dgx1"] == sizes["alone"] == sizes["dgx1s"] == {1, 2, 3, 4, 5}
    assert sizes["cluster"] == {2, 4, 8}
    assert usual_study.measured_on(cluster) is None
    with pytest.raises(ValueError, match="pattern = 'star': is for MAPA's mix"):
        usual_study.jobs(cluster, pattern="star")


def test_other_machines_are_told_whose_run_times_these_are(call: Call) -> None:
    said = "with the run times of dgx1-v100: a slowdown below 1 is faster than there"
    for options in (("--policy", "fcfs"), ("--policies", "baseline,fcfs")):
        assert said in call("simulate", "dgx-a100", "--num-jobs", 9, *options).out
        assert said not in call("simulate", "dgx1-v100", "--num-jobs", 9, *options).out
