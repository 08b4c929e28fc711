"""Moved and pre-empted jobs: the time that this takes, and the work that is left."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from topoplace import _checks
from topoplace.text_formats.csv_rows import MAX_NUMBER

if TYPE_CHECKING:
    from topoplace.placement import Placement


@dataclass(frozen=True, slots=True)
class MoveTimes:
    """The seconds for which a job holds its new GPUs before it continues: after a move, and after a pre-emption.

    Args:
        keeps_work: False if a pre-empted job starts from scratch; a moved job always keeps its work.

    Raises:
        ValueError: Names a value that is negative or no number.
    """

    move_s: float = 0.0
    restart_s: float = 0.0
    keeps_work: bool = True

    def __post_init__(self) -> None:
        for name in ("move_s", "restart_s"):
            _checks.real(getattr(self, name), name, ValueError, high=MAX_NUMBER)
        _checks.flag(self.keeps_work, "keeps_work", ValueError)


class Stay(NamedTuple):
    """A time in which a job held the same GPUs."""

    placement: Placement
    start: float
    end: float


@dataclass(slots=True)
class History:
    """The past of a job that was moved or pre-empted, up to its present stay. Times are in seconds."""

    stays: list[Stay] = field(default_factory=list[Stay])
    num_moves: int = 0
    num_preemptions: int = 0
    since: float = 0.0
    """Start of the present stay."""
    left: float = 1.0
    """Share of the job's work that was left at that start, 0..1."""
    work: float = 0.0
    """Seconds that this share takes at full speed on the present GPUs."""
    run_time: float = 0.0
    """Seconds that the whole job takes at full speed on the present GPUs."""
    waited: float = 0.0
    """Seconds in the queue since the first start."""

    @property
    def ran(self) -> float:
        """Return the seconds of all earlier stays together."""
        return sum(stay.end - stay.start for stay in self.stays)

    def stop(self, placement: Placement, now: float, left: float) -> None:
        """End the present stay. left: remaining seconds at full speed, including any pause that is not over yet."""
        self.stays.append(Stay(placement, self.since, now))
        if self.work:
            self.left *= min(left, self.work) / self.work

    def resume(self, now: float, run_time: float, pause: float) -> float:
        """Begin a stay and return how long it takes at full speed.

        run_time: seconds of the whole job on its new GPUs. pause: seconds before the job goes on.
        """
        self.waited += now - self.stays[-1].end
        self.since, self.run_time, self.work = now, run_time, self.left * run_time
        return self.work + pause
