"""The page of the suite: the table of scores with a picture, then every machine and workload."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from topoplace.experiments.suite.cells import VERSION
from topoplace.experiments.suite.document import heads, lines
from topoplace.experiments.suite.scores import MEASURES, REFERENCE, Score
from topoplace.experiments.sweeps import Outcome, Overview, Plan, rows_of, write_page


def write(plan: Plan, outcomes: Sequence[Outcome], scores: Sequence[Score], path: Path) -> None:
    """Write the page to `path`."""
    panels = [
        (label, {score.policy: score.ratios[name] for score in scores if name in score.ratios})
        for name, label in MEASURES.items()
    ]
    overview = Overview(heads(), lines(scores), panels, f"ratio to {REFERENCE}")
    write_page(f"Suite version {VERSION}", rows_of(plan, outcomes), path, overview=overview)
