"""The toy scheduler of the examples: gangs, priorities, reasons, and its journal after a crash."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import topoplace as tp
from topoplace_hosts.journal import Entry, Journal, Stage
from topoplace_hosts.journal.entry import named

FILE = Path(__file__).parents[2] / "examples/schedulers/toy.py"
TOPOLOGY = tp.Topology.cluster(tp.machines.get("dgx1-v100"), 2, names=["n0", "n1"])


def loaded() -> ModuleType:
    spec = importlib.util.spec_from_file_location("toy", FILE)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["toy"] = module  # dataclasses look for it
    spec.loader.exec_module(module)
    return module


toy = loaded()


@pytest.fixture
def journal(tmp_path: Path) -> Iterator[Journal]:
    with Journal(tmp_path / "journal") as opened:
        yield opened


def scheduler(
    journal: Journal, running: dict[str, Sequence[int]], known: dict[str, Sequence[int]] | None = None
) -> Any:
    """Return a toy whose jobs are in `running` while they run."""

    def start(job_id: str, gpus: Sequence[int]) -> None:
        running[job_id] = gpus

    def stop(job_id: str, gpus: Sequence[int]) -> None:
        assert running.pop(job_id) == gpus

    return toy.ToyScheduler(TOPOLOGY, journal, start, stop, known or {})


def job(job_id: str, gpus: int, priority: int = 0) -> Any:
    return toy.Job(job_id, tp.JobGraph.ring(gpus), priority)


def test_the_scheduler_has_at_most_120_lines() -> None:
    lines = FILE.read_text("utf-8").split("def main")[0].rstrip().splitlines()
    assert len(lines) <= 120


def test_a_gang_starts_wholly_or_waits_with_a_reason(journal: Journal) -> None:
    running: dict[str, Sequence[int]] = {}
    made = scheduler(journal, running)
    made.submit(job("a", 10))
    made.submit(job("b", 7))
    assert sorted(running) == ["a"]
    assert made.jobs["b"].why == "cannot start now: needs 7 GPUs, 6 are free"
    made.submit(job("never", 17))
    assert "17" in made.jobs["never"].why
    made.end("a")
    assert sorted(running) == ["b"]


def test_priorities_stop_the_cheapest_and_never_equals(journal: Journal) -> None:
    running: dict[str, Sequence[int]] = {}
    made = scheduler(journal, running)
    for one in (job("low", 4), job("large", 8), job("middle", 4, 1)):
        made.submit(one)
    made.submit(job("equal", 4))
    assert sorted(running) == ["large", "low", "middle"]
    made.submit(job("high", 4, 9))
    assert sorted(running) == ["high", "large", "middle"]
    assert [one.job_id for one in made.waiting()] == ["low", "equal"]
    made.end("large")
    assert sorted(running) == ["equal", "high", "low", "middle"]


def test_after_a_crash_it_holds_what_runs_and_starts_what_does_not(journal: Journal) -> None:
    running: dict[str, Sequence[int]] = {}
    first = scheduler(journal, running)
    first.submit(job("a", 8))
    journal.append(Entry("b", Stage.INTENT, named(TOPOLOGY, range(8, 16)), "decided, and then killed"))
    again = scheduler(journal, running, dict(running))
    assert [(one.job_id, one.kind) for one in again.differences] == [("b", "withdrawn")]
    again.submit(job("a", 8))
    again.submit(job("b", 8))
    assert sorted(running) == ["a", "b"]
    assert {one.stage for one in journal.latest().values()} == {Stage.CONFIRMED}
    assert not set(running["a"]) & set(running["b"])


def test_a_dead_machine_is_left_by_its_jobs_as_one_entry(journal: Journal) -> None:
    running: dict[str, Sequence[int]] = {}
    made = scheduler(journal, running)
    made.submit(job("a", 4))
    made.submit(job("b", 2))
    home = running["a"][0] // 8
    appends = journal.num_appends
    made.lose(f"n{home}")
    moved = [one for one in journal.history() if one.stage is Stage.REPAIR]
    assert {gpu // 8 for gpus in running.values() for gpu in gpus} == {1 - home}
    assert {one.job_id for one in moved} == {name for name, gpus in running.items()}
    assert journal.num_appends == appends + 2 * len(moved)
    assert {name: named(TOPOLOGY, gpus) for name, gpus in running.items()} == {
        name: one.gpus for name, one in journal.latest().items()
    }
    made.lose(*running["a"][:1])
    assert running["a"][0] // 8 == 1 - home
    made.lose("n0", "n1")
    assert not running
    assert [one.job_id for one in made.waiting()] == ["a", "b"]
    assert made.jobs["a"].why


def test_a_job_that_cannot_be_asked_for_leaves_no_trace(journal: Journal) -> None:
    running: dict[str, Sequence[int]] = {}
    scheduling = scheduler(journal, running)
    with pytest.raises(ValueError, match="within"):
        scheduling.submit(toy.Job("bad", tp.JobGraph.ring(2).with_(within="rack")))
    scheduling.submit(job("big", 16))
    scheduling.submit(job("late", 4))
    scheduling.end("late")  # cancelled before it runs
    assert set(running) == {"big"}
