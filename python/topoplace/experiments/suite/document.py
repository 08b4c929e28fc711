"""The suite's table as text in Markdown, between two marks of a document."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from pathlib import Path
from typing import Final

from topoplace.experiments.simulate.storage.tables import replacing
from topoplace.experiments.suite import topologies, workloads
from topoplace.experiments.suite.cells import VERSION
from topoplace.experiments.suite.scores import MEASURES, REFERENCE, Score
from topoplace.experiments.sweeps import Plan

_BEGIN: Final = "<!-- begin: topoplace suite --write -->\n"
_END: Final = "<!-- end -->"


def write(path: Path, plan: Plan, scores: Sequence[Score]) -> None:
    """Replace what is between the two marks in the document `path`; see `split`."""
    before, after = split(path)
    with replacing(path) as file:
        file.write_text(before + _BEGIN + text(plan, scores) + _END + after, encoding="utf-8")


def split(path: Path) -> tuple[str, str]:
    """Return what is before and after the marks in a document; ValueError if it has not one of each, in order."""
    before, begin, rest = path.read_text("utf-8").partition(_BEGIN)
    _, end, after = rest.partition(_END)
    if not begin or not end:
        raise ValueError(f"{path}: has no line {_BEGIN.strip()} with a line {_END} after it")
    return before, after


def heads() -> tuple[str, ...]:
    """Return the heads of the table's columns."""
    return ("policy", *MEASURES.values(), "scenarios", "refuses")


def lines(scores: Sequence[Score]) -> list[tuple[str, ...]]:
    """Return the rows of the table: each measure, and how many scenarios the policy runs and refuses."""
    return [
        (
            score.policy,
            *(_ratio(score, name) for name in MEASURES),
            str(score.scenarios),
            refusals(score) or "-",
        )
        for score in scores
    ]


def _ratio(score: Score, name: str) -> str:
    """Return mean ± margin; the mean alone if all seeds give the same, as for the reference."""
    sample = score.ratios.get(name)
    if sample is None:
        return "-"
    return f"{sample.mean:.3f} ± {sample.margin:.3f}" if sample.margin else f"{sample.mean:.3f}"


def refusals(score: Score) -> str:
    """Return how many scenarios of which workloads a policy refuses."""
    names = sorted(scenario.workload for scenario in score.refused)
    return ", ".join(f"{name} {len(list(group))}" for name, group in groupby(names))


def text(plan: Plan, scores: Sequence[Score]) -> str:
    """Return what stands between the marks."""
    seeds = len({cell.seed for cell in plan.cells})
    table = [heads(), tuple("---" for _ in heads()), *lines(scores)]
    there = {cell.scenario.topology for cell in plan.cells}
    names = [name for name in topologies.NAMES if name in there]
    described = {name: topologies.built(name) for name in names}
    kinds = [name for name in workloads.NAMES if name in {cell.scenario.workload for cell in plan.cells}]
    return "\n".join(
        (
            f"Suite version {VERSION}, {len(names)} machines and clusters, {len(kinds)} workloads, {seeds} seeds. "
            f"Ratios to `{REFERENCE}`, mean ± half of the 95 % interval.\n",
            *(f"| {' | '.join(row)} |" for row in table),
            "\n| machine or cluster | GPUs | machines |\n|---|---|---|",
            *(f"| {name} | {one.num_gpus} | {one.num_machines} |" for name, one in described.items()),
            "\n| workload | jobs |\n|---|---|",
            *(f"| {name} | {workloads.ABOUT[name]} |" for name in kinds),
            "",
        )
    )
