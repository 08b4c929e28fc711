"""The page of benchmarks: contenders take turns, the winner is named, and nothing is missing from what is kept."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from clusters.bench_decisions import RINGS, Load, policies
from duels import page_text, record
from duels.duel import OURS, Case, Duel, Outcome, fight, figures, outcome
from duels.kernel_duels import duels
from duels.page_text import Machine
from duels.policy_times import COMPARED_WITH, SIZES, Times, decide
from timing import measure
from timing.measure import Contender, Prepared, Spread, alternate, group_means


def answering(answer: Callable[[int], Any], calls: list[str] | None = None, name: str = "") -> Contender:
    """Return a contender whose answer depends on the round, and that notes its preparations."""

    def prepare(number: int) -> Prepared:
        if calls is not None:
            calls.append(f"{name}{number}")
        return Prepared(lambda: sum(range(1000)), lambda _: answer(number))

    return Contender(prepare, repeats=False)


def test_contenders_take_turns_in_every_round() -> None:
    calls: list[str] = []
    contenders = {name: answering(int, calls, name) for name in ("a", "b")}
    found = alternate(contenders, seconds=0)
    assert calls == [
        "a0",
        "b0",
        "a0",
        "b0",
        "a1",
        "b1",
        "a2",
        "b2",
    ]  # one run each to warm up, then three rounds
    assert found["a"].answers == [0, 1, 2]
    assert len(found["b"].seconds) == measure.FEWEST


def test_short_calls_are_timed_in_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter(range(100))
    monkeypatch.setattr(measure.time, "process_time", lambda: 0.001 * next(clock))
    runs: list[int] = []
    assert measure.timed(lambda: runs.append(1), 4)[0] == pytest.approx(0.00025)
    assert len(runs) == 4


def test_libraries_that_disagree_stop_the_measurement() -> None:
    case = Case({OURS: answering(lambda _: 1), "other": answering(lambda number: 1 if number < 2 else 5)})
    with pytest.raises(AssertionError, match=r"disagree: \{'ours': 1, 'other': 5\}"):
        figures(case, by_answer=False, seconds=0)


def test_the_best_other_library_of_each_case_counts() -> None:
    duel = Duel("match", "rings", ["a", "b"], [], list)
    rows = [
        {OURS: [1.0, 1.0, 1.0], "a": [4.0, 5.0, 4.0], "b": [9.0, 9.0, 9.0]},
        {OURS: [2.0, 2.0, 2.0], "a": [90.0, 90.0, 90.0], "b": [18.0, 18.0, 18.0]},
    ]
    found = outcome(duel, rows)
    assert found.ratio is not None
    assert found.ratio.low == pytest.approx(6)  # geometric means of 4 and 9, 5 and 9
    assert found.ratio.high == pytest.approx((6 + 45**0.5) / 2)
    assert found.ours.median == pytest.approx(2**0.5)


def test_answers_are_compared_where_they_matter() -> None:
    case = Case({OURS: answering(lambda _: 10.0), "other": answering(lambda _: 15.0)}, agree=False)
    found = fight(Duel("split", "cut", ["other"], [], lambda: [case], by_answer=True), seconds=0)
    assert found.ratio == Spread(1.5, 1.5, 1.5)
    assert page_text.verdict(found) == "0.67 × [0.67, 0.67] that of other"
    assert page_text.figure(found) == "10 [10, 10]"


@pytest.mark.parametrize(
    ("peers", "ratio", "words"),
    [
        (
            ["igraph", "rustworkx"],
            (19, 18, 20),
            "**19 ×** [18, 20] faster than the faster of igraph and rustworkx",
        ),
        (["a", "b", "c"], (0.5, 0.4, 0.8), "the fastest of a, b and c is 2.00 × [1.25, 2.50] faster"),
        (["HiGHS"], (1.1, 0.9, 1.2), "as fast as HiGHS: 1.10 × [0.90, 1.20]"),
    ],
)
def test_words_say_who_wins(peers: list[str], ratio: tuple[float, float, float], words: str) -> None:
    found = Outcome("k", "w", peers, [], 1, Spread(1, 1, 1), Spread(*ratio))
    assert page_text.verdict(found) == words


def test_the_page_names_what_was_missing_and_gives_it_no_row() -> None:
    machine = Machine(2, "a processor", "3.11.7", "gcc 12.2.0", {"numpy": "2.4"}, load=3.0)
    outcomes = [Outcome("map_graph", "rings", [], ["OR-tools"], 1, Spread(2e-6, 1e-6, 3e-6), None)]
    times = [
        Times(COMPARED_WITH, 16, Spread(10, 9, 12), Spread(1, 1, 1)),
        Times("x", 16, Spread(5, 4, 6), Spread(0.5, 0.4, 0.6)),
    ]
    text = page_text.page(machine, outcomes, times)
    assert "left out: OR-tools." in text
    assert "| `map_graph` | rings | 2.00 [1.00, 3.00] µs |\n" in text
    assert "load 3.0" in text
    assert "| `x` | 5.00 [4.00, 6.00], 0.50 × |" in text
    assert "load" not in page_text.facts(machine._replace(load=0.1))


@pytest.mark.parametrize(("value", "text"), [(0.5, "0.50"), (9.994, "9.99"), (51.6, "52"), (1053.3, "1,050")])
def test_numbers_have_two_or_three_digits(value: float, text: str) -> None:
    assert page_text.number(value) == text


@pytest.mark.parametrize(("number", "taken"), [(0, 9), (1, 15), (2, 9)])
def test_policies_decide_about_one_cluster_and_one_of_them_is_followed(number: int, taken: int) -> None:
    load, asked = (
        Load(3, free=0.5),
        [policies()[0], policies()[-1]],
    )  # the lowest ids, the highest of a machine
    before = set(load.cluster.free_gpus())
    seconds = decide(load, RINGS[0], asked, number)
    assert sorted(seconds) == ["baseline", "highest-ids"]
    assert before - set(load.cluster.free_gpus()) == {taken}


def test_groups_of_decisions_are_averaged() -> None:
    assert group_means([1.0, 3.0] * 10) == [2.0] * 10


def test_the_page_of_what_is_kept_has_every_kernel_and_policy() -> None:
    text = record.read().page()
    for duel in duels():
        assert f"| `{duel.kernel}` | {duel.what} |" in text, "run make bench"
    for policy in policies():
        row = next(line for line in text.splitlines() if line.startswith(f"| `{policy.name}` |"))
        assert row.count("[") == len(SIZES), "run make bench"


def test_a_record_is_read_as_it_was_written(tmp_path: Path) -> None:
    kept = record.read()
    kept.write(tmp_path / "kept.json")
    assert record.read(tmp_path / "kept.json") == kept
    assert (tmp_path / "kept.json").read_bytes() == record.KEPT.read_bytes()
