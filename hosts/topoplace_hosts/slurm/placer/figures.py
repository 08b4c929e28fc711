"""Counts of the placer, for its metrics and its tests."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from topoplace_hosts.figures import DecisionFigures


@dataclass(slots=True)
class Figures(DecisionFigures):
    """Counts since the placer started, and its present state; latencies begin when a job could start."""

    cycles: int = 0
    recalled: int = 0
    given_back: Counter[str] = field(default_factory=Counter[str])
    """Number of jobs given back to Slurm, by kind of reason."""
