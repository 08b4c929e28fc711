"""The queue of `topoplace explore`: its runs are those of the simulator, and its limits are said."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest

import topoplace as tp
from topoplace.cli.explorer.state import State, StateError
from topoplace_lab import explore_queue as queue
from topoplace_lab.explore_queue import QueueState, simulated
from topoplace_lab.simulate import Discipline, StepTime, Workload
from topoplace_lab.simulate import simulate as simulate_

DGX = State(machine="dgx1-v100")


def test_runs_are_those_of_the_simulator() -> None:
    found = simulated(QueueState(DGX, jobs=40, load=0.9, seed=3, compared="fcfs, mapa-greedy"))
    json.dumps(found, allow_nan=False)
    topology = tp.machines.get("dgx1-v100")
    jobs = Workload.mapa(40, 3).with_load(0.9, 8, 3)
    assert [run["policy"] for run in found["runs"]] == ["fcfs", "mapa-greedy"]
    for run in found["runs"]:
        model, discipline = StepTime(measured_on=topology), Discipline("submitted", "easy")
        own = simulate_(
            topology, jobs, tp.policies.get(run["policy"]), performance=model, seed=3, discipline=discipline
        )
        assert run["figures"]["mean_turnaround"] == own.summary()["mean_turnaround"]
        assert run["stays"]["gpus"] == [list(gpus) for gpus in own.stays["gpus"].tolist()]
    assert "than under fcfs" in found["conclusion"]
    assert found["machines"][0]["gpus"] == list(range(8))


def test_a_cluster_with_nvswitches_trains_larger_jobs() -> None:
    found = simulated(QueueState(State(machine="dgx-h100", count=4), jobs=30))
    held = [gpus for run in found["runs"] for gpus in run["stays"]["gpus"]]
    assert max(map(len, held)) == 8
    assert found["notes"][0].startswith("The jobs are the suite's workload parallel")


def test_faults_of_the_machine_count() -> None:
    found = simulated(QueueState(State(machine="dgx1-v100", unhealthy="0,4"), jobs=20))
    held = {gpu for run in found["runs"] for gpus in run["stays"]["gpus"] for gpu in gpus}
    assert held == {1, 2, 3, 5, 6, 7}


@pytest.mark.parametrize(
    ("fields", "field", "said"),
    [
        ({"compared": "fcfs"}, "compared", "policies: 1 names: give 2 to 6"),
        ({"compared": "fcfs, fcfs"}, "compared", "policies: fcfs is given twice"),
        ({"compared": "fcfs, least"}, "compared", "'least'"),
        ({"compared": "os:abort, fcfs"}, "compared", "policies: 'os:abort' is not one of"),
        ({"state": State(machine="dgx9")}, "machine", "no built-in machine"),
    ],
)
def test_a_wrong_field_is_named(fields: dict[str, Any], field: str, said: str) -> None:
    problem = simulated(QueueState(**{"state": DGX, **fields}))["problem"]
    assert problem["field"] == field
    assert said in problem["message"]


def test_a_queue_of_which_no_job_runs_says_why() -> None:
    found = simulated(QueueState(State(machine="minsky", unhealthy="0-3"), jobs=5))
    assert found["problem"] is None
    assert found["conclusion"].startswith("No job runs: ")


def test_a_simulation_ends_at_its_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(queue, "MAX_SECONDS", 0.05)
    begin = time.monotonic()
    problem = simulated(QueueState(State(machine="dgx-h100", count=16), jobs=1000))["problem"]
    assert time.monotonic() - begin < 5
    assert problem["field"] == "jobs"
    assert problem["message"].startswith("jobs: 1000 on 128 GPUs take baseline more than 0.05 s")


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (3, "a queue is an object"),
        ({"job": 3}, "job"),
        ({"jobs": 1}, "jobs = 1"),
        ({"jobs": 1001}, "jobs = 1001"),
        ({"load": "x"}, "load = 'x'"),
        ({"load": 0}, "load = 0"),
        ({"seed": -1}, "seed = -1"),
        ({"compared": 3}, "compared = 3"),
        ({"state": 3}, "a state is an object"),
    ],
)
def test_what_is_no_queue_is_refused(given: object, said: str) -> None:
    with pytest.raises(StateError, match=said):
        QueueState.of(given)
