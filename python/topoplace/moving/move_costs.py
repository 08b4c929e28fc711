"""The costs of moving or pre-empting running jobs."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from types import MappingProxyType

from topoplace import _checks


@dataclass(frozen=True, slots=True)
class MoveCosts:
    """The costs of moving and of pre-empting a job, in any unit: an amount per job and an amount per GPU that it holds.

    A fraction of a GPU counts as a fraction. An infinite amount forbids the action: with `MoveCosts(preempt=math.inf)`,
    jobs only move.

    Raises:
        ValueError: Names an amount that is negative or no number.
    """

    move: float = 0.0
    """Cost of moving a job, whatever its size."""
    move_per_gpu: float = 1.0
    preempt: float = 0.0
    """Cost of pre-empting a job, whatever its size."""
    preempt_per_gpu: float = 10.0
    factors: Mapping[str, float] = field(default_factory=dict[str, float], hash=False)
    """Factors on both costs by job id; 1 for other jobs, infinite for jobs that must stay."""

    def __post_init__(self) -> None:
        for each in fields(self)[:-1]:
            object.__setattr__(self, each.name, _amount(getattr(self, each.name), each.name))
        _checks.instance(self.factors, Mapping, "factors", ValueError)
        checked = {
            _checks.text(job_id, "a job id in factors", ValueError): _amount(factor, f"factors[{job_id!r}]")
            for job_id, factor in self.factors.items()
        }
        object.__setattr__(self, "factors", MappingProxyType(checked))

    def of(self, job_id: str, num_gpus: float) -> tuple[float, float]:
        """Return the costs of moving and of pre-empting a job that holds `num_gpus` GPUs."""
        factor = self.factors.get(job_id, 1.0)
        if factor == math.inf:
            return math.inf, math.inf
        moving = self.move + self.move_per_gpu * num_gpus if num_gpus else self.move
        preempting = self.preempt + self.preempt_per_gpu * num_gpus if num_gpus else self.preempt
        return factor * moving, factor * preempting

    def __reduce__(self) -> tuple[type[MoveCosts], tuple[object, ...]]:
        return MoveCosts, (
            *(self.move, self.move_per_gpu, self.preempt, self.preempt_per_gpu),
            dict(self.factors),
        )


def _amount(value: object, what: str) -> float:
    return math.inf if value == math.inf else _checks.real(value, what, ValueError)
