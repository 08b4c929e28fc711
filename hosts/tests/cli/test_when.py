"""`topoplace when`: what it says for each kind of answer, its exit codes, and what it refuses."""

from __future__ import annotations

import inspect
import json
from pathlib import Path
from typing import Any

import pytest

from command_line import Call
from kubernetes_objects import node_json, pod_json
from scontrol_texts import node, running, waiting
from topoplace import snapshot
from topoplace.cli.commands import when

NODES = node("n1", 4, "0,2-3") + node("n2", 4, "0")
JOBS = (
    running("17", "n1", "0,2-3", ran="00:48:00"),
    running("19", "n2", "0", limit="UNLIMITED"),
    waiting("20", "TresPerNode=gres/gpu:4", priority=9),
    waiting("21", "TresPerNode=gres/gpu:4", priority=8, limit="30-00:00:00"),
    waiting("22", "TresPerNode=gres/gpu:4", priority=7),
    waiting("23", "TresPerNode=gres/gpu:8", priority=6),
    waiting("24", "TresPerNode=gres/gpu:1", priority=5),
    waiting("25", "TresPerNode=gres/gpu:4", priority=4, more="ReqNodeList=n2"),
)
MOVES = [
    "it starts now if running jobs move, at a cost of 1 (proven least):",
    "move 19: n2 0 → n1 1",
    "Slurm moves no job: `scontrol requeue` stops it, and it starts again where Slurm decides",
]


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "nodes.txt").write_text(NODES)
    (tmp_path / "jobs.txt").write_text("".join(JOBS))
    (tmp_path / "bad.txt").write_text(running("26", "n1", "9"))
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize(
    ("job", "code", "lines"),
    [
        ("20", 0, ["job 20 starts in 1 h 12 min, after job 17, on n1 0–3", *MOVES]),
        (
            "22",
            0,
            [
                "job 22 starts in 30 d 3 h, after job 17, on n1 0–3",
                "behind jobs 20, 21 in the queue; as the first it starts in 1 h 12 min",
                *MOVES,
            ],
        ),
        ("23", 1, ["job 23 never starts: needs 8 GPUs on one machine, the topology has 4"]),
        ("24", 0, ["job 24 starts now, on n1 1"]),
        ("25", 0, ["job 25 starts at a time that is not known, after job 19, on n2 0–3"]),
    ],
)
def test_answers(call: Call, job: str, code: int, lines: list[str]) -> None:
    done = call("when", job, "--from", "nodes.txt", "jobs.txt", "--policy", "baseline")
    assert done.code == code
    assert done.out.splitlines()[: len(lines)] == lines
    assert done.err.startswith("note: ")


def test_a_pod_waits_for_another(call: Call, tmp_path: Path) -> None:
    pods: list[dict[str, Any]] = [pod_json("a", 3, nodeName="n1"), pod_json("b", 2)]
    items = [{"kind": "Node", **node_json("n1", 4)}, *({"kind": "Pod", **one} for one in pods)]
    (tmp_path / "list.json").write_text(json.dumps({"kind": "List", "items": items}))
    done = call("when", "default/b", "--from", "list.json")
    first = "job default/b starts at a time that is not known, after job default/a, on n1 0,1"
    assert done.out.splitlines()[0] == first


def test_a_held_job_says_so_and_names_cannot_control_the_terminal(call: Call, tmp_path: Path) -> None:
    held = waiting("30\x1b[31m", "TresPerNode=gres/gpu:1").replace("=Resources", "=Dependency")
    (tmp_path / "held.txt").write_text(held)
    done = call("when", "30\x1b[31m", "--from", "nodes.txt", "held.txt")
    assert done.out.splitlines()[0] == r"job 30\x1b[31m is held (Dependency); once it is not:"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("17 --from nodes.txt jobs.txt", "job '17' runs already"),
        ("99 --from nodes.txt jobs.txt", "job '99' does not wait; these do: 20, 21, 22, 23, 24 and 1 more"),
        ("20 --from jobs.txt", "jobs.txt: there are jobs and no nodes"),
        ("20 --from nodes.txt bad.txt", "topoplace: bad.txt: job 26 fits nowhere: it has GPU 9 of 'n1'"),
        ("20 --from nodes.txt jobs.txt jobs.txt", "nodes.txt, jobs.txt, jobs.txt: a file is given twice"),
        ("20 --from nodes.txt jobs.txt --topology gb200-nvl72", "the text is about other machines"),
    ],
)
def test_refusals_take_one_line(call: Call, words: str, message: str) -> None:
    done = call("when", *words.split())
    assert (done.code, done.out) == (2, "")
    assert message in done.err
    assert len(done.err.splitlines()) == 1


def test_the_default_of_timeout_is_that_of_the_library() -> None:
    assert inspect.signature(snapshot.when).parameters["timeout"].default == when._TIMEOUT_S


def test_without_a_job_all_that_wait_are_listed(call: Call) -> None:
    with open("jobs.txt", "a", encoding="utf-8") as file:
        file.write(waiting("26", "TresPerNode=gres/gpu:1", priority=3).replace("=Resources", "=Dependency"))
    done = call("when", "--from", "nodes.txt", "jobs.txt")
    assert (done.code, done.out.splitlines()) == (
        0,
        [
            "fragmented: 4 of 8 GPUs are free; whole machines: 0 of 1 possible",
            "job 20 starts in 1 h 12 min, after job 17, on n1 0–3",
            "job 21 starts in 2 h 12 min, after job 17, on n1 0–3",
            "job 22 starts in 30 d 3 h, after job 17, on n1 0–3",
            "job 23 never starts: needs 8 GPUs on one machine, the topology has 4",
            "job 24 starts now, on n1 1",
            "job 25 starts at a time that is not known, after job 19, on n2 0–3",
            "job 26 is held (Dependency)",
        ],
    )
    assert "note: " in done.err
    answer = json.loads(call("when", "--from", "nodes.txt", "jobs.txt", "--json").out)
    assert (answer["free_gpus"], answer["whole"]) == (4, {"machine": {"now": 0, "possible": 1}})
    for one in answer["jobs"][:-1]:
        alone = json.loads(call("when", one["job_id"], "--from", "nodes.txt", "jobs.txt", "--json").out)
        assert one == {key: alone[key] for key in one}
    assert (answer["jobs"][-1]["held"], answer["jobs"][-1]["gpus"]) == ("Dependency", [])


def test_a_cluster_without_waiting_jobs_says_so(call: Call) -> None:
    done = call("when", "--from", "nodes.txt")
    assert done.out.splitlines()[1:] == ["no job waits"]


def test_a_log_has_what_would_be_done_and_what_was(call: Call) -> None:
    words = ("when", "--from", "nodes.txt", "jobs.txt", "--log", "log/decisions.jsonl")
    before = {path: path.read_bytes() for path in Path().iterdir()}
    assert call(*words).out.splitlines() == ["job 24 would get n1 1 (0 s)"]
    assert call(*words).out == ""
    assert {path: path.read_bytes() for path in before} == before
    Path("nodes.txt").write_text(NODES.replace("IDX:0)", "IDX:0-1)"), "utf-8")
    Path("jobs.txt").write_text("".join(JOBS[:2]) + running("24", "n2", "1"), "utf-8")
    assert call(*words).out.splitlines() == ["job 24 got n2 1 (0 s), and would have got n1 1 (0 s)"]
    first, second = map(json.loads, Path("log/decisions.jsonl").read_text("utf-8").splitlines())
    assert (first["would_get"], first["got"], second["got"]) == ({"n1": [1]}, None, {"n2": [1]})
    refused = call(*words, "--json")
    assert (refused.code, "--log is about all jobs" in refused.err) == (2, True)
