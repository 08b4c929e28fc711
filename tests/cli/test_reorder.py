"""`topoplace reorder`: a host on each line for job scripts, the gain beside them, and the ways to name hosts."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import topoplace as tp
from command_line import Call, run

JOB = ("--parallel", "tensor=8,pipeline=4")


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fabric = tp.Fabric.regular([f"n{i}" for i in range(4)], {"rack": 2, "spine": 4})
    fabric = fabric.with_level("spine", gb_per_s=12.5, oversubscription=8.0)
    topology = tp.Topology.cluster(tp.machines.get("dgx1-v100"), fabric=fabric)
    (tmp_path / "cluster.json").write_text(topology.to_json())
    monkeypatch.chdir(tmp_path)


def test_the_hosts_are_printed_for_a_script_and_the_gain_beside_them(call: Call) -> None:
    done = call("reorder", "cluster.json", "--hosts", "n0,n2,n1,n3", *JOB)
    assert (done.code, done.out) == (0, "n0\nn1\nn2\nn3\n")
    assert done.err == "a step communicates 0.175 s, 0.495 s in the order given (proven best)\n"
    done = call("reorder", "cluster.json", "--hosts", "n[0-3]", *JOB)
    assert (done.code, done.out) == (0, "n0\nn1\nn2\nn3\n")
    assert done.err == "a step communicates 0.175 s in the order given (proven best)\n"
    done = call("reorder", "cluster.json", "--hosts", "n0,n2,n1,n3", "--group", "16@rack")
    assert done.out == "n0\nn1\nn2\nn3\n"


def test_hosts_come_from_a_file_or_standard_input() -> None:
    Path("hosts").write_text("# of the batch system\nn0 slots=8\nn2 slots=8\n\nn2\nn[1,3] # both\n")
    for source, text in (("hosts", ""), ("-", Path("hosts").read_text("utf-8"))):
        done = run("reorder", "cluster.json", "--hosts", source, "--json", *JOB, stdin=text)
        answer = json.loads(done.stdout)
        assert (answer["hosts"], answer["optimal"]) == (["n0", "n1", "n2", "n3"], True)
        assert answer["gpus"] == list(range(32))
        assert answer["bound"] == answer["time"] < answer["before"]


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ("--hosts n0,n9", "--hosts = 'n9' is no machine of cluster"),
        ("--hosts n0,n0", "--hosts = 'n0' is hosts[0] too"),
        ("--hosts n[0", "--hosts: the bracket in '[0' has no partner"),
        ("--hosts n0,n1 --gpus 3", "job: 3 tasks on 2 hosts, which must have equally many each"),
        (
            "--hosts n0,n2 --within rack",
            "job: on these hosts alone: no machines have 16 GPUs free within one rack",
        ),
    ],
)
def test_what_cannot_be_ordered_is_refused(call: Call, words: str, told: str) -> None:
    done = call("reorder", "cluster.json", *words.split())
    assert (done.code, done.out) == (2, "")
    assert told in done.err
