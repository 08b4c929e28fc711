"""The progress bar of long simulations."""

from __future__ import annotations

import sys
import time

import pytest

from topoplace.experiments.simulate import progress


@pytest.fixture(autouse=True)
def _at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "_DELAY_SECONDS", -1.0)


def shown(*, enabled: bool) -> bool:
    """Whether a simulation of many jobs shows a bar."""
    bar = progress.Progress(1000, enabled=enabled)
    for done in range(200):
        bar.update(done)
    found = bar._bar is not None
    with bar:
        pass
    return found


def wait_for(bar: progress.Progress) -> None:
    end = time.monotonic() + 20
    while bar._bar is None:
        assert time.monotonic() < end
        time.sleep(0.01)


def test_a_long_step_shows_a_bar_before_it_is_finished(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("rich")
    with progress.Progress(2, enabled=True, every=1) as bar:
        wait_for(bar)
    monkeypatch.setattr(progress, "_DELAY_SECONDS", 60.0)
    with progress.Progress(2, enabled=True, every=1) as quick:
        quick.update(1)
    assert quick._bar is None
    quick._open_in_time()
    assert quick._bar is None  # it came too late


def test_a_bar_is_shown_where_it_is_asked_for() -> None:
    pytest.importorskip("rich")
    assert shown(enabled=True)
    assert not shown(enabled=False)


def test_without_rich_there_is_no_bar_and_no_second_try(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "rich.progress", None)
    bar = progress.Progress(1000, enabled=True)
    bar._open()
    assert not bar._enabled
    assert not shown(enabled=True)


def test_what_was_finished_before_is_no_speed() -> None:
    """After a restart, the time left follows from the jobs since, so the bar begins where they did."""
    rich = pytest.importorskip("rich.progress")
    with progress.Progress(1000, enabled=True, every=1, done=900) as bar:
        wait_for(bar)
        (task,) = bar._bar.tasks
        assert task.completed == 900
        assert not task.speed
        bar.update(901)
        assert task.completed == 901
        assert any(isinstance(column, rich.TimeRemainingColumn) for column in bar._bar.columns)
