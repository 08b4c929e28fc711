"""`topoplace state` shows a journal."""

from __future__ import annotations

import json
from pathlib import Path

from command_line import Call
from topoplace_hosts.journal import Entry, Journal, Stage


def written(path: Path) -> Path:
    with Journal(path) as journal:
        journal.set_topology("abc")
        journal.append(
            Entry("7", Stage.TOLD, (("n1", "GPU6"), ("n1", "GPU3")), "fastest\x1b[31m ring", time=60.0),
            Entry("8", Stage.ENDED, time=60.0),
        )
    return path


def test_table(call: Call, tmp_path: Path) -> None:
    done = call("state", written(tmp_path / "j"))
    assert done.code == 0
    for text in ("n1: GPU6 GPU3", "1970-01-01 00:01:00", "1 told; 1 appends; topology abc", "fastest\\x1b"):
        assert text in " ".join(done.out.split())
    assert "ended" not in done.out


def test_json(call: Call, tmp_path: Path) -> None:
    found = json.loads(call("state", written(tmp_path / "j"), "--json").out)
    assert found["topology"] == "abc"
    assert found["entries"] == [
        {
            "job": "7",
            "stage": "told",
            "gpus": [["n1", "GPU6"], ["n1", "GPU3"]],
            "why": "fastest\x1b[31m ring",
            "time": 60.0,
        }
    ]


def test_one_job(call: Call, tmp_path: Path) -> None:
    found = json.loads(call("state", written(tmp_path / "j"), "--json", "--job", "8").out)
    assert [one["stage"] for one in found["entries"]] == ["ended"]
    assert "--job 9: the journal has no such job" in call("state", tmp_path / "j", "--job", "9").err
    assert "there is no such file" in call("state", tmp_path / "none").err
