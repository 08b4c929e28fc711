"""What a site can set about the placer."""

from __future__ import annotations

from dataclasses import dataclass

from topoplace import _checks


@dataclass(frozen=True, slots=True)
class PlacerSettings:
    """Times in seconds. ValueError names a wrong one."""

    interval: float = 1.0
    """Between the starts of two cycles; longer where cycles take much time."""
    patience: float = 300.0
    """How long a job may wait although there are enough GPUs for it; after that, Slurm chooses."""
    grace: float = 15.0
    """How long a job may take to start after its order; after that, it is decided again."""
    decision_s: float = 0.5
    """CPU time for the decisions of one cycle; the jobs that are left come first in the next."""

    def __post_init__(self) -> None:
        for name in ("interval", "patience", "grace", "decision_s"):
            _checks.real(getattr(self, name), name, ValueError, high=1e6)
