"""The page of the suite: scores of all policies, by machine and by workload, then every scenario."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from topoplace_lab.report.columns import Measure
from topoplace_lab.report.page import frame
from topoplace_lab.report.page.sections import Interval, Row, section
from topoplace_lab.simulate.storage.tables import replacing
from topoplace_lab.suite import topologies, workloads
from topoplace_lab.suite.cells import VERSION, is_held_out
from topoplace_lab.suite.document import conclusions
from topoplace_lab.suite.measures import MEASURES
from topoplace_lab.suite.scores import REFERENCE, Score, scores_of
from topoplace_lab.sweeps import Outcome, Plan, rows_of
from topoplace_lab.sweeps.page import sections

_MEANS: Final = (
    "Means over the scenarios, with 95 % intervals over the seeds within them; × is a ratio to "
    f"{REFERENCE}, whose mean is geometric."
)


def write(plan: Plan, outcomes: Sequence[Outcome], scores: Sequence[Score], path: Path) -> None:
    """Write the page to `path`; about held-out traces, it only says whether they agree with the rest."""
    found = conclusions(plan, outcomes, scores)
    shown = [number for number, cell in enumerate(plan.cells) if not is_held_out(cell)]
    cells = Plan(tuple(plan.cells[number] for number in shown), plan.about)
    kept = [outcomes[number] for number in shown]
    parts = [
        _overview(scores),
        _turnarounds("topology", topologies.ABOUT, scores, (cells, kept)),
        _turnarounds("workload", workloads.ABOUT, scores, (cells, kept)),
        *sections(rows_of(cells, kept)),
    ]
    with replacing(path) as file:
        file.write_text(frame.page(f"Suite version {VERSION}", found, {"sections": parts}), encoding="utf-8")


def _overview(scores: Sequence[Score]) -> dict[str, Any]:
    measures = {
        name: Measure(
            one.label, "×" if one.is_ratio else "", about=one.about, is_better_high=not one.is_better_low
        )
        for name, one in MEASURES.items()
    }
    rows = [
        Row(
            score.policy,
            {name: found for name in MEASURES if (found := score.interval(name))},
            "fails" if score.failed else "",
        )
        for score in scores
    ]
    failed = dict.fromkeys(f"{one.policy} fails: {why}" for one in scores for why in one.failed.values())
    return section("All machines and workloads", measures, rows, notes=[_MEANS, *failed])


def _turnarounds(
    field: str, about: Mapping[str, str], scores: Sequence[Score], ran: tuple[Plan, Sequence[Outcome]]
) -> dict[str, Any]:
    """Return the turnarounds by a field of scenarios, policies in the order of their scores.

    about: what the values of the field are, in words, in their order.
    """
    plan, outcomes = ran
    found: dict[str, dict[str, Interval]] = {score.policy: {} for score in scores}
    for value in about:
        there = [i for i, cell in enumerate(plan.cells) if getattr(cell.scenario, field) == value]
        part = [plan.cells[i] for i in there]
        for score in scores_of(Plan(tuple(part)), [outcomes[i] for i in there]) if part else ():
            if interval := score.interval("turnaround"):
                found[score.policy][value] = interval
    measures = {value: Measure(value, "×", about=f"turnaround, {words}") for value, words in about.items()}
    rows = [Row(policy, known, "" if known else "fails") for policy, known in found.items()]
    return section(f"Turnaround by {field}", measures, rows, notes=[_MEANS])
