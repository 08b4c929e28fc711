"""Counts of programs inside schedulers, for metrics and tests: decisions, reasons, latencies, differences."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from dataclasses import dataclass, field
from typing import ClassVar


@dataclass(slots=True)
class DecisionFigures:
    """Counts since a program started, and its present state; each scheduler's integration adds fields."""

    BUCKETS_S: ClassVar[tuple[float, ...]] = (0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0)
    """Upper bounds of the latency histogram in seconds."""
    decided: int = 0
    confirmed: int = 0
    deferred: Counter[str] = field(default_factory=Counter[str])
    """Decisions to wait, by kind of reason."""
    differences: Counter[str] = field(default_factory=Counter[str])
    """Differences between journal and scheduler that were resolved, by kind."""
    waiting: int = 0
    """Jobs or pods that wait for a decision now."""
    fragmentation: float = 0.0
    """Fragmentation of the free GPUs over sockets now (SC'17, eq. 5), 0..1."""
    latencies: list[int] = field(init=False)
    """Number of decisions for each interval of latency: one up to each of `BUCKETS_S`, and one above them."""
    latency_sum_s: float = 0.0

    def __post_init__(self) -> None:
        self.latencies = [0] * (len(self.BUCKETS_S) + 1)

    def note_latency(self, seconds: float) -> None:
        """Count the latency of one decision."""
        self.latencies[bisect_left(self.BUCKETS_S, seconds)] += 1
        self.latency_sum_s += seconds
