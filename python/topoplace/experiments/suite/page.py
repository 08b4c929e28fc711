"""The page of the suite: the table of scores with a picture, then every machine and workload."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from topoplace.experiments.simulate.samples import Sample
from topoplace.experiments.suite.cells import HELD_OUT, VERSION
from topoplace.experiments.suite.document import heads, lines
from topoplace.experiments.suite.measures import MEASURES
from topoplace.experiments.suite.scores import Score
from topoplace.experiments.sweeps import Outcome, Overview, Plan, rows_of, write_page


def write(plan: Plan, outcomes: Sequence[Outcome], scores: Sequence[Score], path: Path) -> None:
    """Write the page to `path`, without the held-out seed."""
    known = {name: {one.policy: one.interval(name) for one in scores} for name in MEASURES}
    means = {
        name: {policy: Sample.of([found[0]]) for policy, found in by_policy.items() if found}
        for name, by_policy in known.items()
    }
    panels = [(MEASURES[name].label, one) for name, one in means.items() if len(set(one.values())) > 1]
    shown = [number for number, cell in enumerate(plan.cells) if cell.seed != HELD_OUT]
    cells = Plan(tuple(plan.cells[number] for number in shown), plan.about)
    rows = rows_of(cells, [outcomes[number] for number in shown])
    write_page(
        f"Suite version {VERSION}", rows, path, overview=Overview(heads(), lines(scores), panels, "mean")
    )
