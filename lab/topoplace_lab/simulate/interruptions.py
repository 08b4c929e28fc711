"""Jobs that were moved, pre-empted or stopped by a failure: the time that this takes, and the work that is left."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from topoplace import _checks
from topoplace.text_formats.csv_rows import MAX_NUMBER

if TYPE_CHECKING:
    from topoplace.placement import Placement
    from topoplace_lab.simulate.failures import Failure


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

    @property
    def gpu_seconds(self) -> float:
        """Return the number of GPUs times the seconds."""
        return len(self.placement.gpus) * (self.end - self.start)


def changes(before: Placement, after: Placement) -> list[tuple[int, int]]:
    """Return the GPUs before and after of the tasks that changed theirs.

    If a job has another number of tasks then, those that it gave up or got are none of them, and others are matched in
    the order of their GPUs.
    """
    if len(before.gpus) == len(after.gpus):
        return [(old, new) for old, new in zip(before.gpus, after.gpus, strict=True) if old != new]
    left, taken = set(before.gpus) - set(after.gpus), set(after.gpus) - set(before.gpus)
    surplus = len(before.gpus) - len(after.gpus)
    return list(zip(sorted(left)[max(0, surplus) :], sorted(taken)[max(0, -surplus) :], strict=True))


@dataclass(slots=True)
class History:
    """The past of a job that was moved, pre-empted or stopped by failures, up to its present stay, in seconds."""

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
    pause: float = 0.0
    """Seconds at the start of the present stay before the job went on."""
    paused: float = 0.0
    """Seconds of all such pauses."""
    lost: float = 0.0
    """Seconds of run time whose work was lost."""
    wasted: float = 0.0
    """GPU seconds of pauses and of lost work."""
    failures: list[Failure] = field(default_factory=list["Failure"])

    @property
    def ran(self) -> float:
        """Return the seconds of all earlier stays together."""
        return sum(stay.end - stay.start for stay in self.stays)

    @property
    def has_failed(self) -> bool:
        """Return True if a failure ended the last stay, so that the job restarts from a checkpoint."""
        return bool(self.failures) and self.failures[-1].time == self.stays[-1].end

    def stop(self, placement: Placement, now: float, left: float, checkpoint_every: float = 0.0) -> None:
        """End the present stay.

        left: remaining seconds at full speed, including any pause that is not over yet. checkpoint_every: seconds of
        work at full speed between two checkpoints; the work since the last one is lost. With 0, none is.
        """
        still_paused = max(0.0, left - self.work)
        ran = now - self.since - (self.pause - still_paused)
        self.paused -= still_paused
        self.wasted -= still_paused * len(placement.gpus)
        self.stays.append(Stay(placement, self.since, now))
        if not self.work:
            return
        left = min(left, self.work)
        lost = (self.work - left) % checkpoint_every if checkpoint_every else 0.0
        if lost:
            lost_s = ran * lost / (self.work - left)
            self.lost += lost_s
            self.wasted += lost_s * len(placement.gpus)
        self.left *= (left + lost) / self.work

    def start_over(self) -> None:
        """Lose all work of the stays until now."""
        self.left = 1.0
        self.lost = self.ran - self.paused
        self.wasted = sum(stay.gpu_seconds for stay in self.stays)

    def resume(self, now: float, run_time: float, pause: float, num_gpus: int) -> float:
        """Begin a stay on `num_gpus` GPUs and return how long it takes at full speed.

        run_time: seconds of the whole job on its new GPUs. pause: seconds before the job goes on.
        """
        self.waited += now - self.stays[-1].end
        self.since, self.run_time, self.work = now, run_time, self.left * run_time
        self.pause = pause
        self.paused += pause
        self.wasted += pause * num_gpus
        return self.work + pause
