"""The page of the suite: the table of scores with a picture, then every machine and workload."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from topoplace.experiments.suite.cells import HELD_OUT, VERSION
from topoplace.experiments.suite.document import heads, lines
from topoplace.experiments.suite.measures import MEASURES
from topoplace.experiments.suite.scores import Score
from topoplace.experiments.sweeps import Outcome, Overview, Plan, rows_of, write_page


def write(plan: Plan, outcomes: Sequence[Outcome], scores: Sequence[Score], path: Path) -> None:
    """Write the page to `path`, without the held-out seed."""
    found = [
        (measure.label, {score.policy: score.values[name] for score in scores if name in score.values})
        for name, measure in MEASURES.items()
    ]
    panels = [panel for panel in found if len({sample.mean for sample in panel[1].values()}) > 1]
    shown = [number for number, cell in enumerate(plan.cells) if cell.seed != HELD_OUT]
    cells = Plan(tuple(plan.cells[number] for number in shown), plan.about)
    rows = rows_of(cells, [outcomes[number] for number in shown])
    write_page(
        f"Suite version {VERSION}", rows, path, overview=Overview(heads(), lines(scores), panels, "mean")
    )
