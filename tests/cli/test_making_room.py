"""`topoplace make-room`: what it prints for one job and for many, and what it refuses in the file of running jobs."""

from __future__ import annotations

import inspect
import json
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from command_line import Call
from distributions import whole
from scontrol_texts import node, running
from topoplace import moving
from topoplace.cli import running_jobs
from topoplace.cli.commands import make_room
from topoplace.moving import MoveCosts

RUNNING = "job_id,gpus,pattern,cost,movable\na,0,ring,,yes\nb,2,,2.5,\nc,4,ring,,no\nd,6,,,Yes\n"


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "running.csv").write_text(RUNNING)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_plan_is_printed_line_by_line(call: Call) -> None:
    done = call("make-room", "dgx1-v100", "--running", "running.csv", "--gpus", "3", "--min-bandwidth", "25")
    assert (done.code, done.err) == (0, "")
    assert done.out.splitlines() == [
        "the job fits after 1 move, at a cost of 1 (proven least)",
        "move a: GPU 0 → GPU 5",
        "start the job: GPUs 0, 1, 3",
    ]


def test_pre_empted_jobs_and_refusals_are_printed(call: Call) -> None:
    command = ("make-room", "dgx1-v100", "--running", "running.csv", "--gpus", "6")
    done = call(*command)
    assert done.out.splitlines()[:2] == [
        "the job fits after 2 pre-emptions, at a cost of 20 (proven least)",
        "pre-empt a: GPU 0",
    ]
    done = call(*command, "--never-preempt")
    assert done.code == 1
    assert (
        done.out == "no room: the jobs that would have to move fit nowhere else, and none may be pre-empted\n"
    )
    done = call(*command[:-1], "9")
    assert (done.code, done.out) == (1, "no room: never fits: needs 9 GPUs, the topology has 8\n")
    done = call(*command[:-1], "5", "--drained", "1")
    assert done.out.splitlines()[1].startswith("pre-empt ")


def test_costs_are_those_of_the_options_and_the_file(call: Call) -> None:
    command = ("make-room", "dgx1-v100", "--running", "running.csv", "--gpus", "6", "--json")
    answer = json.loads(call(*command, "--preempt-cost-per-gpu", "4", "--preempt-cost", "1").out)
    assert (sorted(answer["preempt"]), answer["cost"], answer["optimal"]) == (["a", "d"], 10.0, True)
    assert answer["reason"] is None
    answer = json.loads(call(*command, "--never-preempt").out)
    assert (answer["gpus"], answer["cost"], answer["move"]) == (None, None, [])


def test_costs_have_the_defaults_of_move_costs() -> None:
    defaults = {field.name: field.default for field in fields(MoveCosts) if field.name != "factors"}
    assert {name: default for name, (_, _, default) in make_room.COSTS.items()} == defaults


@pytest.mark.parametrize("function", [moving.make_room, moving.defragment])
def test_the_time_limit_has_the_default_of_the_library(function: Any) -> None:
    assert inspect.signature(function).parameters["timeout"].default == running_jobs.TIMEOUT_S


def test_moves_say_what_fits_before_and_after(call: Call) -> None:
    command = ("make-room", "dgx1-v100", "--running", "running.csv", "--gpus", "4", "--pattern", "clique")
    command += ("--moves", 8)
    done = call(*command, "--min-bandwidth", "20")
    assert done.out.splitlines()[:2] == [
        "not fragmented: 4 of 8 GPUs are free; whole machines: 0 of 0 possible",
        "jobs that fit (clique of 4): 0 now, 1 with 2 moves",
    ]
    answer = json.loads(call(*command, "--min-bandwidth", "20", "--json").out)
    assert (answer["before"], answer["after"], len(answer["move"])) == (0, 1, 2)
    assert call(*command, "--min-bandwidth", "20", "--moves", "1").code == 1
    done = call("make-room", "dgx1-v100", "--running", "running.csv")
    assert done.out.splitlines()[1:] == ["jobs that fit (ring of 8): 0 now, 0 with 0 moves"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ("--anti-affinity",),
            "topoplace: --anti-affinity: needs --gpus; without a size, the jobs are of one machine\n",
        ),
        (
            ("--gpus", "4", "--busy=0,1"),
            "topoplace make-room: unrecognized arguments: --busy=0,1; name the jobs on these GPUs in --running FILE, "
            "or GPUs without a job with --drained IDS (see topoplace make-room --help)\n",
        ),
    ],
)
def test_what_is_missing_is_named(call: Call, arguments: tuple[str, ...], message: str) -> None:
    done = call("make-room", "dgx1-v100", "--running", "running.csv", *arguments)
    assert (done.code, done.out, done.err) == (2, "", message)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("job_id\na\n", "line 1: columns"),
        ("job_id,gpus\na,9\n", "line 2: gpus '9': GPU 9"),
        ("job_id,gpus\na,0\nb,0\n", "line 3: gpus[0] = 0 is held by job 'a'"),
        ("job_id,gpus\na,0\na,1\n", "line 3: job 'a' already holds GPUs (0,)"),
        ("job_id,gpus\n,0\n", "line 2: job_id"),
        ("job_id,gpus\na,\n", "line 2: gpus = () is empty"),
        ("job_id,gpus,pattern\na,0,knot\n", "line 2: pattern = 'knot'"),
        ("job_id,gpus,gpu_fraction\na,0,1.5\n", "line 2: gpu_fraction = 1.5"),
        ("job_id,gpus,gpu_fraction\na,0,0\n", "line 2: gpu_fraction = 0"),
        ("job_id,gpus,min_utility\na,0,x\n", "line 2: min_utility = 'x'"),
        ("job_id,gpus,cost\na,0,-1\n", "line 2: cost = '-1'"),
        ("job_id,gpus,movable\na,0,maybe\n", "line 2: movable = 'maybe', not yes or no"),
        ("job_id,gpus,color\na,0,red\n", "line 1: columns"),
    ],
)
def test_a_wrong_line_is_named(call: Call, here: Path, text: str, message: str) -> None:
    (here / "running.csv").write_text(text)
    done = call("make-room", "dgx1-v100", "--running", "running.csv")
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith(f"topoplace: running.csv: {message}"), done.err


@whole
def test_shared_gpus_and_a_job_called_job(call: Call, here: Path) -> None:
    (here / "running.csv").write_text("job_id,gpus,gpu_fraction\njob,0,0.5\nb,0,0.25\nc,1,0.25\n")
    done = call("make-room", "dgx1-v100", "--running", "running.csv", "--gpus", "7", "--policy", "fgd")
    assert done.code == 0
    assert done.out.splitlines()[0] == "the job fits after 1 move, at a cost of 0.25 (proven least)"


CLUSTER = (
    node("n1", 4, "0-1")
    + node("n2", 4, "0-1")
    + node("n3", 4, "0-2")
    + running("17", "n1", "0-1")
    + running("18", "n2", "0-1").replace("Reason=None", "Requeue=0")
    + running("19", "n3", "0-2")
)


@whole
def test_the_cluster_of_a_scheduler_keeps_its_limits(call: Call) -> None:
    """18 may not be requeued, and what Slurm says of moves is the last of them."""
    Path("scontrol.txt").write_text(CLUSTER)
    whole, moved = {"machine": {"now": 0, "possible": 1}}, [{"job_id": "17", "from": [0, 1], "to": [6, 7]}]
    done = call("make-room", "--from", "scontrol.txt")
    assert (done.code, done.out.splitlines()) == (
        0,
        [
            "fragmented: 5 of 12 GPUs are free; whole machines: 0 of 1 possible",
            "jobs that fit (ring of 4): 0 now, 1 with 1 move",
            "move 17: n1 0,1 → n2 2,3",
            "Slurm moves no job: `scontrol requeue` stops it, and it starts again where Slurm decides",
        ],
    )
    assert "note: Slurm does not state how the GPUs of a node are connected." in done.err
    answer = json.loads(call("make-room", "--from", "scontrol.txt", "--json").out)
    assert (answer["free_gpus"], answer["whole"], answer["move"]) == (5, whole, moved)
    done = call("make-room", "--from", "scontrol.txt", "--gpus", "4", "--single-machine", "--never-preempt")
    assert done.out.splitlines()[1:3] == [
        "move 17: n1 0,1 → n2 2,3",
        "Slurm moves no job: `scontrol requeue` stops it, and it starts again where Slurm decides",
    ]
    answer = json.loads(call("make-room", "--from", "scontrol.txt", "--gpus", "4", "--json").out)
    assert (answer["gpus"], answer["move"]) == ([2, 3, 6, 7], [])


@pytest.mark.parametrize(
    ("words", "flag"),
    [("--moves 2 --never-preempt", "--never-preempt"), ("--move-cost 1 --never-preempt", "--move-cost")],
)
def test_what_is_about_one_job_is_refused_for_many(call: Call, words: str, flag: str) -> None:
    done = call("make-room", "dgx1-v100", "--running", "running.csv", *words.split())
    told = f"topoplace: {flag}: is for one job, whose size --gpus says, without --moves\n"
    assert (done.code, done.out, done.err) == (2, "", told)


def test_running_jobs_come_from_one_place(call: Call) -> None:
    missing = "the running jobs are missing: give --from FILE, or TOPO and --running FILE"
    for words in ((), ("dgx1-v100",), ("--running", "running.csv")):
        done = call("make-room", *words)
        assert (done.code, missing in done.err) == (2, True)
    done = call("make-room", "dgx1-v100", "--running", "running.csv", "--from", "running.csv")
    assert (done.code, "not allowed with argument --running" in done.err) == (2, True)


@whole
def test_place_looks_at_the_same_cluster(call: Call) -> None:
    Path("scontrol.txt").write_text(CLUSTER)
    words = ("place", "--gpus", "2", "--busy", "2-3,11")
    done = call(*words, "--from", "scontrol.txt", "--json")
    assert (done.code, json.loads(done.out)["candidates"][0]["gpus"]) == (0, [6, 7])
    assert "note: Slurm does not state how the GPUs of a node are connected." in done.err
    done = call(*words)
    assert (done.code, "TOPO is missing: name a topology, or" in done.err) == (2, True)
