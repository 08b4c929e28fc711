"""What programs inside schedulers count: decisions, reasons, latencies, differences; for their metrics and tests."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from dataclasses import dataclass, field
from typing import ClassVar


@dataclass(slots=True)
class DecisionFigures:
    """Counts since a program started, and what is so now. Each scheduler's integration adds its own."""

    BUCKETS_S: ClassVar[tuple[float, ...]] = (0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0)
    """Upper bounds of the latency histogram in seconds."""
    decided: int = 0
    confirmed: int = 0
    deferred: Counter[str] = field(default_factory=Counter[str])
    """Decisions to wait, by kind of reason."""
    differences: Counter[str] = field(default_factory=Counter[str])
    """What differed between journal and scheduler and was healed, by kind."""
    waiting: int = 0
    """What waits for a decision now."""
    fragmentation: float = 0.0
    """Of the free GPUs over sockets (SC'17, eq. 5), 0..1, now."""
    latencies: list[int] = field(init=False)
    """Decisions by their latency, in `BUCKETS_S` and above."""
    latency_sum_s: float = 0.0

    def __post_init__(self) -> None:
        self.latencies = [0] * (len(self.BUCKETS_S) + 1)

    def note_latency(self, seconds: float) -> None:
        """Count one decision."""
        self.latencies[bisect_left(self.BUCKETS_S, seconds)] += 1
        self.latency_sum_s += seconds
