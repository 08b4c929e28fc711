"""`topoplace sweep suite`, quickly."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from command_line import Call

MODULE = """
from topoplace.policies import Greedy

class Mine(Greedy):
    name = "mine"
"""


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "suite_of_test.py").write_text(MODULE, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.chdir(tmp_path)


def test_a_policy_of_your_own_is_judged_beside_others(call: Call) -> None:
    command = ("sweep", "suite", "--quick", "--workers", 1, "-o", "out", "--policies", "mapa-greedy,g-queue")
    done = call(*command, "--policy", "suite_of_test:Mine", "--json")
    assert done.code == 0, done.err
    scores = {score["policy"]: score for score in json.loads(done.out)}
    assert set(scores) == {"random-fit", "mapa-greedy", "g-queue", "suite_of_test:Mine"}
    assert scores["random-fit"]["measures"]["turnaround"]["mean"] == 1.0
    mine, greedy = (scores[name]["measures"] for name in ("suite_of_test:Mine", "mapa-greedy"))
    assert mine["ring_bandwidth"]["mean"] == pytest.approx(greedy["ring_bandwidth"]["mean"], rel=0.05)
    assert greedy["ring_bandwidth"]["mean"] > 1.0
    assert scores["g-queue"]["measures"]["refused"]["mean"] > 0
    assert not any(score["failed"] for score in scores.values())
    assert Path("out/suite.html").exists()


def test_the_table_goes_into_a_document(call: Call) -> None:
    Path("page.md").write_text(
        "<!-- begin: topoplace sweep suite --write -->\n<!-- end -->\n", encoding="utf-8"
    )
    command = (
        "sweep",
        "suite",
        "--quick",
        "--workers",
        1,
        "-o",
        "out",
        "--policies",
        "fgd",
        "--write",
        "page.md",
    )
    done = call(*command)
    assert done.code == 0, done.err
    assert re.search(r"^random-fit +1\.000 ", done.out, re.MULTILINE)
    assert "| random-fit | 1.000 | " in Path("page.md").read_text("utf-8")
    cells = {path: path.stat().st_mtime_ns for path in Path("out/cells").iterdir()}
    assert call(*command).code == 0
    assert {path: path.stat().st_mtime_ns for path in Path("out/cells").iterdir()} == cells
