"""`topoplace simulate --failures`: what it prints where parts fail, and what it refuses."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import topoplace as tp
from command_line import Call
from topoplace_lab.simulate import FailingPart, Failures, failures

ONE = ("simulate", "dgx1-v100", "--num-jobs", "20", "--policy", "fcfs", "--failures", "llama3")


@pytest.fixture
def often(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let GPUs fail a few times an hour."""
    part = FailingPart("GPU", 100, 8, 1.0, out="gpu", repair_s=60)
    monkeypatch.setattr(failures, "PRESETS", {"llama3": lambda: Failures((part,))})


@pytest.mark.usefixtures("often")
def test_failures_and_their_cost_are_printed(call: Call) -> None:
    done = call(*ONE)
    assert "goodput" in done.out
    assert "tasks moved" in done.out
    found = {
        (way, every): json.loads(call(*ONE, "--json", "--recovery", way, "--checkpoint-every", every).out)
        for way in ("repair", "queue")
        for every in ("10", "1000")
    }
    assert all(one["failures"] > 1 for one in found.values())
    assert found["queue", "10"]["goodput"] > found["queue", "1000"]["goodput"]
    assert found["repair", "10"]["tasks_moved"] > 0
    several = call(*ONE[:5], "baseline,best-fit", *ONE[6:])
    assert "goodput %" in several.out


@pytest.mark.usefixtures("often")
def test_spares_are_held_for_repairs(call: Call, tmp_path: Path) -> None:
    racks = tmp_path / "racks.json"
    racks.write_text(tp.Topology.cluster(tp.machines.get("dgx1-v100"), 4, racks=2).to_json(), "utf-8")
    how = ("simulate", str(racks), *ONE[2:], "--json")
    without, spared = (json.loads(call(*how, *more).out) for more in ((), ("--spares", "rack=1")))
    assert spared["utilization"] <= 0.5 < without["utilization"]


def test_without_failures_nothing_is_said_of_them(call: Call) -> None:
    done = call(*ONE[:-2])
    assert "goodput" not in done.out
    assert "failures" not in done.out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--recovery", "queue"), "--recovery is for --failures"),
        (("--checkpoint-every", "60"), "--checkpoint-every is for --failures"),
        (("--failures", "llama3", "--checkpoint-every", "-1"), "--checkpoint-every = -1"),
        (("--spares", "rack=1"), "--spares is for --failures"),
        (("--lend-spares",), "--lend-spares is for --spares"),
        (("--failures", "llama3", "--spares", "rack"), "--spares 'rack': must be levels and numbers above 0"),
        (("--failures", "llama3", "--spares", "rack=0"), "--spares 'rack=0': must be levels"),
        (("--failures", "llama3", "--spares", "rack=1"), "--spares = 'rack': the levels whose domains are"),
        (("--failures", "llama3", "--from-live", "x.txt"), "--failures: with --from-live"),
    ],
)
def test_what_cannot_be_is_refused(call: Call, arguments: tuple[str, ...], message: str) -> None:
    done = call("simulate", "dgx1-v100", "--policies", "fcfs", *arguments)
    assert done.code == 2
    assert message in done.err
