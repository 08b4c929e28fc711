"""The suite's conclusions and table as text in Markdown, between two marks of a document."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from topoplace_lab.simulate.storage.tables import replacing
from topoplace_lab.suite import topologies, workloads
from topoplace_lab.suite.cells import VERSION, is_held_out
from topoplace_lab.suite.measures import MEASURES
from topoplace_lab.suite.scores import REFERENCE, Score, best_by, held_out
from topoplace_lab.sweeps import Outcome, Plan

_BEGIN: Final = "<!-- begin: topoplace sweep suite --write -->\n"
_END: Final = "<!-- end -->"
_YARDSTICKS: Final = {
    "turnaround": "the shortest turnaround",
    "ring_bandwidth": "the most NCCL ring bandwidth",
    "max_min": "the least time with max-min fair ports",
    "idle": "the fewest GPUs idle for want of a whole domain",
}


def write(path: Path, plan: Plan, outcomes: Sequence[Outcome], scores: Sequence[Score]) -> None:
    """Replace the text between the two marks in the document `path`; see `split`."""
    before, after = split(path)
    with replacing(path) as file:
        file.write_text(before + _BEGIN + text(plan, outcomes, scores) + _END + after, encoding="utf-8")


def split(path: Path) -> tuple[str, str]:
    """Return the text before and after the two marks; ValueError unless both are there once and in order."""
    before, begin, rest = path.read_text("utf-8").partition(_BEGIN)
    _, end, after = rest.partition(_END)
    if not begin or not end:
        raise ValueError(f"{path}: has no line {_BEGIN.strip()} with a line {_END} after it")
    return before, after


def heads() -> tuple[str, ...]:
    """Return the heads of the table's columns."""
    return ("policy", *(measure.label for measure in MEASURES.values()))


def lines(scores: Sequence[Score]) -> list[tuple[str, ...]]:
    """Return the rows of the table."""
    return [(score.policy, *(_cell(score, name) for name in MEASURES)) for score in scores]


def _cell(score: Score, name: str) -> str:
    """Return a measure, of ratios with half of the 95 % interval if they differ."""
    found = score.interval(name)
    if found is None:
        return "fails" if score.failed else "-"
    mean, low, high = found
    if not MEASURES[name].is_ratio:
        return f"{mean:.1f}"
    return f"{mean:.3f} ± {(high - low) / 2:.3f}" if high > low else f"{mean:.3f}"


def conclusions(plan: Plan, outcomes: Sequence[Outcome], scores: Sequence[Score]) -> list[str]:
    """Return sentences on the best policies by each yardstick, and on whether held-out traces agree."""
    found = [
        f"By {label}: {_listed(best)}."
        for name, label in _YARDSTICKS.items()
        if (best := best_by(scores, name))
    ]
    kept = held_out(plan, outcomes)
    if kept is not None:
        found.append(
            f"On {_traces(plan)}, which are not in the table, {kept.best} has the shortest turnaround; the rank "
            f"correlation of the policies with the table is {kept.agreement:.2f}."
        )
    return found


def _listed(names: Sequence[str]) -> str:
    if len(names) == 1:
        return f"{names[0]}, and no other"
    return f"{names[0]}; too close to tell: {', '.join(names[1:])}"


def _traces(plan: Plan) -> str:
    names = dict.fromkeys(cell.scenario.workload for cell in plan.cells if is_held_out(cell))
    return f"slices of {' and '.join(names)}" if len(names) > 1 else f"a slice of {''.join(names)}"


def text(plan: Plan, outcomes: Sequence[Outcome], scores: Sequence[Score]) -> str:
    """Return the text between the marks."""
    seeds = len({cell.seed for cell in plan.cells})
    table = [heads(), tuple("---" for _ in heads()), *lines(scores)]
    there = {cell.scenario.topology for cell in plan.cells}
    names = [name for name in topologies.NAMES if name in there]
    kinds = [name for name in workloads.NAMES if name in {cell.scenario.workload for cell in plan.cells}]
    return "\n".join(
        (
            f"Suite version {VERSION}, {len(names)} machines and clusters, {len(kinds)} workloads, {seeds} seeds. "
            f"Turnaround, rings and max-min are ratios to `{REFERENCE}`, ± half of the 95 % interval over the seeds "
            "within scenarios.\n",
            *(f"- {sentence}" for sentence in conclusions(plan, outcomes, scores)),
            "",
            *(f"| {' | '.join(row)} |" for row in table),
            "\n| machine or cluster | GPUs | machines | what |\n|---|---|---|---|",
            *map(_described, names),
            "\n| workload | jobs |\n|---|---|",
            *(f"| {name} | {workloads.ABOUT[name]} |" for name in kinds),
            "",
        )
    )


def _described(name: str) -> str:
    topology = topologies.built(name)
    return f"| {name} | {topology.num_gpus} | {topology.num_machines} | {topologies.ABOUT[name]} |"
