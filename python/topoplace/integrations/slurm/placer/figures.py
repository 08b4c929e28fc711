"""What the placer counts: decisions, reasons, latencies, differences; for its metrics and its tests."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from dataclasses import dataclass, field

BUCKETS_S = (0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0)
"""Upper bounds of the latency histogram in seconds."""


@dataclass(slots=True)
class Figures:
    """Counts since the placer started, and what is so now."""

    cycles: int = 0
    decided: int = 0
    confirmed: int = 0
    recalled: int = 0
    deferred: Counter[str] = field(default_factory=Counter[str])
    """Decisions to wait, by kind of reason."""
    given_back: Counter[str] = field(default_factory=Counter[str])
    """Jobs for which Slurm chooses, by kind of reason."""
    differences: Counter[str] = field(default_factory=Counter[str])
    """What differed between journal and Slurm and was healed, by kind."""
    waiting: int = 0
    """Jobs that wait for a decision now."""
    fragmentation: float = 0.0
    """Of the free GPUs over sockets (SC'17, eq. 5), 0..1, now."""
    latencies: list[int] = field(default_factory=lambda: [0] * (len(BUCKETS_S) + 1))
    """Decided jobs by the time from which they could start until they were decided, in `BUCKETS_S` and above."""
    latency_sum_s: float = 0.0

    def note_latency(self, seconds: float) -> None:
        """Count one decided job."""
        self.latencies[bisect_left(BUCKETS_S, seconds)] += 1
        self.latency_sum_s += seconds
