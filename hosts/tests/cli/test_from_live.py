"""`topoplace simulate --from-live`: what comes next on a cluster, under each policy, beside the jobs that run there."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pytest

from command_line import Call
from kubernetes_objects import node_json, pod_json
from scontrol_texts import node, running, waiting
from topoplace import policies
from topoplace.snapshot import read
from topoplace_lab.simulate import Discipline, Workload, simulate

NODES = (
    node("n1", 4, "0,2-3")
    + node("n2", 4, "0", more="ActiveFeatures=ib")
    + node("n3", 4, state="IDLE+DRAIN")
    + node("n4", 2, "0-1")
)
JOBS = (
    running("17", "n1", "0,2-3", ran="00:48:00"),
    running("18", "n4", "0-1", limit="UNLIMITED"),
    running("19", "n2", "0", ran="00:10:00", limit="05:00:00"),
    waiting("20", "TresPerNode=gres/gpu:4", priority=9),
    waiting("21", "TresPerNode=gres/gpu:4", priority=8, limit="02:00:00"),
    waiting("22", "TresPerNode=gres/gpu:2", priority=7),
    waiting("23", "TresPerNode=gres/gpu:8", priority=6),
    waiting("24", "TresPerNode=gres/gpu:3", priority=5, more="NumNodes=3"),
    waiting("25", "TresPerNode=gres/gpu:1", priority=4).replace("=Resources", "=Dependency"),
)
POLICIES = ("--policies", "baseline,least-time")


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "nodes.txt").write_text(NODES)
    (tmp_path / "jobs.txt").write_text("".join(JOBS))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def rows(call: Call, *words: object) -> list[dict[str, Any]]:
    done = call("simulate", *words, *POLICIES, "--json")
    assert done.code == 0, done.err
    return json.loads(done.out)  # type: ignore[no-any-return]


def test_what_comes_next(call: Call) -> None:
    done = call("simulate", "--from-live", "nodes.txt", "jobs.txt", *POLICIES)
    assert done.code == 0
    lines = done.out.splitlines()
    assert lines[0] == "no policy finishes jobs sooner than baseline"
    assert lines[1] == "5 waiting jobs on slurm nodes, from now on, beside 3 running"
    assert "running jobs keep their GPUs until they end" in done.out
    assert "rejected job 23 under all policies: never fits: needs 8 GPUs on one machine" in done.out
    assert "rejected job 24 under all policies: " in done.out
    for note in (
        "left out: 25 (Dependency)",
        "keep their GPUs for ever, as they have no limit: 18",
        "n3 (DRAIN)",
    ):
        assert note in done.err


def test_the_figures_are_those_of_the_schedule_by_hand(call: Call) -> None:
    # 20 gets n1 after 4320 s, and 21 after it; 22 passes both on n2. Of the others no job starts.
    starts, lengths = {"20": 4320.0, "21": 7920.0, "22": 0.0}, {"20": 3600.0, "21": 7200.0, "22": 3600.0}
    for row in rows(call, "--from-live", "nodes.txt", "jobs.txt"):
        assert row["mean_wait"] == pytest.approx(sum(starts.values()) / 3)
        assert row["mean_turnaround"] == pytest.approx(sum(starts[job] + lengths[job] for job in starts) / 3)
        assert row["makespan"] == 7920.0 + 7200.0
        assert row["rejected"] == 2
        assert list(row["rejected_jobs"]) == ["23", "24"]


def test_the_library_says_the_same(call: Call) -> None:
    now = read(["nodes.txt", "jobs.txt"])
    for row in rows(call, "--from-live", "nodes.txt", "jobs.txt"):
        found = simulate(
            now.cluster,
            Workload.from_snapshot(now),
            policies.get(row["policy"]),
            seconds_left=now.seconds_left(),
            discipline=Discipline(),
        )
        summary = {name: None if value != value else value for name, value in found.summary().items()}
        assert {name: row[name] for name in summary} == pytest.approx(summary)


def test_a_duration_is_for_jobs_without_a_limit(call: Call) -> None:
    with open("jobs.txt", "a", encoding="utf-8") as file:
        file.write(waiting("26", "TresPerNode=gres/gpu:2", priority=3, limit="UNLIMITED"))
        file.write(waiting("27", "TresPerJob=gres/gpu:9", priority=2))
    files = ("--from-live", "nodes.txt", "jobs.txt")
    refused = call("simulate", *files, *POLICIES)
    assert (refused.code, refused.out) == (2, "")
    assert "--duration = None: job '26' has no limit of its run time" in refused.err
    done = call("simulate", *files, *POLICIES, "--duration", 600)
    assert "Running jobs without a limit, which end in 600 s: 18." in done.err
    for row in rows(call, *files, "--duration", 600):
        # Nine GPUs are there for 27 once 18 has ended; a third node with three for 24 never is.
        assert list(row["rejected_jobs"]) == ["23", "24"]


def test_a_topology_and_policies_own_queues(call: Call) -> None:
    (Path("one.txt")).write_text(node("n1", 8, "0-3") + running("17", "n1", "0-3"))
    with open("one.txt", "a", encoding="utf-8") as file:
        file.write(waiting("20", "TresPerNode=gres/gpu:2") + waiting("21", "TresPerNode=gres/gpu:4"))
    for more in ((), ("--queue", "own"), ("--backfill", "conservative")):
        done = call("simulate", "dgx1-v100", "--from-live", "one.txt", *POLICIES, *more)
        assert done.code == 0, done.err
        assert "jobs finish" in done.out.splitlines()[0] or "no policy finishes" in done.out.splitlines()[0]
        assert "not how the GPUs" not in done.err


def test_pods_need_a_duration_and_keep_their_gpus(call: Call) -> None:
    pods = [pod_json("a", 3, nodeName="n1"), pod_json("b", 2), pod_json("c", 1)]
    items = [{"kind": "Node", **node_json("n1", 4)}, *({"kind": "Pod", **one} for one in pods)]
    Path("list.json").write_text(json.dumps({"kind": "List", "items": items}))
    assert "--duration" in call("simulate", "--from-live", "list.json", *POLICIES).err
    for row in rows(call, "--from-live", "list.json", "--duration", 60):
        assert (row["makespan"], row["rejected"]) == (120.0, 0)


def test_files_of_the_table(call: Call, here: Path) -> None:
    done = call("simulate", "--from-live", "nodes.txt", "jobs.txt", *POLICIES, "-o", "out")
    assert done.code == 0
    with open(here / "out/comparison.csv", encoding="utf-8") as file:
        assert [row["policy"].removesuffix(" *") for row in csv.DictReader(file)] == [
            "baseline",
            "least-time",
        ]
    assert (here / "out/comparison.tex").exists()
    assert "<table" in (here / "out/report.html").read_text("utf-8")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("", "TOPO is missing: name a topology, or give the files of a cluster with --from-live"),
        ("summit --from-live jobs.txt", "jobs.txt: there are jobs and no nodes"),
        ("--from-live nodes.txt", "nodes.txt: no job waits that may start"),
        ("--from-live nodes.txt jobs.txt --jobs x.csv", "--jobs: with --from-live, the files say"),
        ("--from-live nodes.txt jobs.txt --load 0.5", "--load: with --from-live, the files say"),
        ("--from-live nodes.txt jobs.txt --make-room 5", "--make-room: with --from-live, running jobs keep"),
        ("--from-live nodes.txt jobs.txt --order priority", "--order priority: with --from-live"),
        ("--from-live nodes.txt jobs.txt --seeds 3", "--seeds 3: seeds change nothing"),
        ("--from-live nodes.txt jobs.txt --queue own", "--queue own: jobs may use some machines only"),
        ("--from-live nodes.txt jobs.txt --gpu-model V100", "--gpu-model is about TOPO, which is not given"),
    ],
)
def test_refusals_take_one_line(call: Call, words: str, message: str) -> None:
    if "own" in words:
        with open("jobs.txt", "a", encoding="utf-8") as file:
            file.write(waiting("27", "TresPerNode=gres/gpu:1", more="Features=ib"))
    done = call("simulate", *words.split(), *POLICIES)
    assert (done.code, done.out) == (2, "")
    assert message in done.err
    assert len(done.err.splitlines()) == 1, done.err
