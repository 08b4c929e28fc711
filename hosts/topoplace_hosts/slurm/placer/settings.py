"""The placer's settings."""

from __future__ import annotations

from dataclasses import dataclass

from topoplace import _checks


@dataclass(frozen=True, slots=True)
class PlacerSettings:
    """Times in seconds. ValueError names a wrong one."""

    interval: float = 1.0
    """Seconds between the starts of two cycles; more if cycles take much time."""
    patience: float = 300.0
    """Seconds that a job may wait although there are enough GPUs for it; after that, Slurm chooses."""
    grace: float = 15.0
    """Seconds that a job may take to start after its order; after that, it is decided again."""
    decision_s: float = 0.5
    """CPU seconds for the decisions of one cycle; the remaining jobs come first in the next."""

    def __post_init__(self) -> None:
        for name in ("interval", "patience", "grace", "decision_s"):
            _checks.real(getattr(self, name), name, ValueError, high=1e6)
