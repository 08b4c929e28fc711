"""A model of one step of data-parallel training: every GPU computes on its batch, then all exchange gradients."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from topoplace import _checks


@dataclass(frozen=True, slots=True)
class TrainingStep:
    """The time of one training step: computing grows with the batch, the amount of exchanged data does not.

        seconds = fixed_s + sample_s * batch + gigabytes / gb_per_s

    It follows section 3.2 of SC'17: communication takes as long for every batch size, computing does not, and the two
    do not overlap.

    In every method, `batch` is the number of samples per GPU, above 0. `gb_per_s` is the speed of the link, above 0;
    infinity stands for a single GPU. ValueError names a wrong value.

    Args:
        fixed_s: Seconds of computing for any batch.
        sample_s: Seconds of computing for each sample of a GPU's batch.
        gigabytes: Data sent over the link in each step.

    Raises:
        ValueError: For an argument that is negative or not finite.
    """

    fixed_s: float
    sample_s: float
    gigabytes: float

    def __post_init__(self) -> None:
        for name in ("fixed_s", "sample_s", "gigabytes"):
            _checks.real(getattr(self, name), name, ValueError)

    @classmethod
    def fit(cls, steps: Iterable[tuple[float, float, float]]) -> TrainingStep:
        """Return the model with the least squares of relative errors over measured steps.

        Args:
            steps: (batch, gb_per_s, seconds per step) of each measured step.

        Raises:
            ValueError: If a number is not above 0, if the steps do not determine the model, or if the best fit has a
                negative value.
        """
        rows = [
            _step(step, f"steps[{i}]") for i, step in enumerate(_checks.sequence(steps, "steps", ValueError))
        ]
        if len(rows) < 3 or np.linalg.matrix_rank(rows) < 3:
            raise ValueError("steps: must have three or more, of two batch sizes and two link speeds")
        found = np.linalg.lstsq(np.array(rows), np.ones(len(rows)), rcond=None)[0].tolist()
        if min(found) < 0:
            values = ", ".join(f"{value:.3g}" for value in found)
            raise ValueError(
                f"steps: the best fixed_s, sample_s, gigabytes are {values}: must not be negative"
            )
        return cls(*found)

    def compute_s(self, batch: float) -> float:
        """Return the seconds of computing in a step."""
        return self.fixed_s + self.sample_s * _checks.positive(batch, "batch", ValueError)

    def communication_s(self, gb_per_s: float) -> float:
        """Return the seconds of communication in a step."""
        return self.gigabytes / _speed(gb_per_s, "gb_per_s")

    def seconds(self, batch: float, gb_per_s: float) -> float:
        """Return the seconds that a step takes."""
        return self.compute_s(batch) + self.communication_s(gb_per_s)

    def communication_share(self, batch: float, gb_per_s: float) -> float:
        """Return the share of a step's time that is communication, 0..1; 0 for a step without any time.

        At 50 GB/s, this is a value for `shares` of `MapaSlowdown`.
        """
        seconds = self.seconds(batch, gb_per_s)
        return self.communication_s(gb_per_s) / seconds if seconds else 0.0

    def link_use(self, batch: float, gb_per_s: float) -> float:
        """Return the mean GB/s that the job sends over the link; infinity for a step without any time."""
        seconds = self.seconds(batch, gb_per_s)
        return self.gigabytes / seconds if seconds else math.inf

    def speed_for(self, batch: float, seconds: float) -> float:
        """Return the speed of the link (GB/s) on which a step takes `seconds`.

        Raises:
            ValueError: If computing alone takes `seconds` or more.
        """
        left = _checks.positive(seconds, "seconds", ValueError) - self.compute_s(batch)
        if left <= 0:
            raise ValueError(
                f"seconds = {seconds:g}: must be more than the {self.compute_s(batch):g} s of computing"
            )
        return self.gigabytes / left


def _step(step: tuple[float, float, float], what: str) -> tuple[float, float, float]:
    """Return the factors of the model's three parameters in a step's time, relative to the time measured."""
    fields = _checks.ordered(step, what, ValueError)
    if len(fields) != 3:
        raise ValueError(f"{what} = {_checks.shown(step)}: must be (batch, gb_per_s, seconds)")
    batch = _checks.positive(fields[0], f"{what}: batch", ValueError)
    speed = _speed(fields[1], f"{what}: gb_per_s")
    seconds = _checks.positive(fields[2], f"{what}: seconds", ValueError)
    return 1 / seconds, batch / seconds, 1 / speed / seconds


def _speed(value: float, what: str) -> float:
    return math.inf if value == math.inf else _checks.positive(value, what, ValueError)
