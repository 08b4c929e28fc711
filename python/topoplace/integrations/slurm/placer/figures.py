"""What the placer counts, for its metrics and its tests."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from topoplace.integrations.figures import DecisionFigures


@dataclass(slots=True)
class Figures(DecisionFigures):
    """Counts since the placer started, and what is so now; a latency is from when a job could start to its decision."""

    cycles: int = 0
    recalled: int = 0
    given_back: Counter[str] = field(default_factory=Counter[str])
    """Jobs for which Slurm chooses, by kind of reason."""
