"""Bars: times are judged as those of the reference machine, a limit is measured again before it counts as missed."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import check_bars
from bars import bar
from bars.bar import Bar, judged
from timing import yardstick
from timing.yardstick import REFERENCE_S, Yardstick


class Slow(Yardstick):
    """The yardstick on a machine that takes twice as long as the reference machine."""

    def sample(self, repeats: int = 5) -> None:
        self._seconds += [2 * REFERENCE_S] * repeats


@pytest.fixture(autouse=True)
def slow_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bar, "Yardstick", Slow)


def test_times_are_converted_and_other_figures_are_not() -> None:
    def measure(_: Yardstick) -> Iterator[Bar]:
        yield Bar("a search", 5, 8, "ms")
        yield Bar("a cut", 8, 8)

    time, cut = judged(measure)
    assert (time.measured, time.here, time.reached) == (4, 8, True)
    assert (cut.measured, cut.here, cut.reached) == (8, None, True)
    assert "(8 here)" in str(time)


@pytest.mark.parametrize(
    ("here", "verdict"),
    [([8], "reached"), ([30, 8], "reached"), ([12, 30, 10.6], "near"), ([12, 40, 11.1], "MISSED")],
)
def test_what_misses_is_measured_again_and_the_best_counts(here: list[float], verdict: str) -> None:
    left = iter(here)
    judgement = judged(lambda _: [Bar("a search", 5, next(left), "ms")])[0]
    assert list(left) == []
    assert str(judgement).split()[0] == verdict
    assert judgement.here == min(here)
    assert judgement.missed is (verdict == "MISSED")


def test_of_two_ratios_that_must_be_large_the_larger_counts() -> None:
    ratios = iter([3.0, 4.0, 2.0])
    assert judged(lambda _: [Bar("a ratio", 5, next(ratios), "x", ">=")])[0].measured == 4


def test_a_figure_without_unit_is_missed_as_soon_as_it_is_beyond_its_limit() -> None:
    assert Bar("a cut", 100, 101).missed
    assert not Bar("mappings", 7, 7, relation="==").missed


def test_the_yardstick_is_held_again_after_20_milliseconds(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    monkeypatch.setattr(yardstick.time, "thread_time", lambda: now[0])
    yielded, held_after = [], []

    class Noted(Yardstick):
        def sample(self, repeats: int = 5) -> None:
            held_after.append(len(yielded))
            super().sample(repeats)

    for item in Noted().between(["a", "b", "c", "d", "e"]):
        yielded.append(item)
        now[0] += 0.012
    assert yielded == ["a", "b", "c", "d", "e"]
    assert held_after == [2, 4]


def test_work_that_others_disturbed_does_not_count() -> None:
    held = Yardstick()
    held._seconds += [REFERENCE_S] * 3 + [5 * REFERENCE_S] * 4
    assert held.factor == pytest.approx(1)


def test_areas_have_measures_of_their_own() -> None:
    measures = [measure for area in check_bars.AREAS for measure in area.MEASURES]
    assert len(measures) > 50
    assert len(set(map(id, measures))) == len(measures)
