"""The base of performance models that wrap another model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from topoplace import _checks
from topoplace_lab.simulate.performance.models import (
    ColocationModel,
    FixedTime,
    LinkModel,
    MeteredModel,
    Neighbours,
    PerformanceModel,
    PortModel,
)

if TYPE_CHECKING:
    from topoplace.placement import Placement
    from topoplace_lab.simulate.workloads.submitted_job import SubmittedJob


class AroundModel:
    """A base for models that change the run times of another model, but not its slowdowns and traffic.

    base: a model that computes run times, and slowdowns next to other jobs; `FixedTime` by default. ValueError for a
    `LinkModel` or a `PortModel`, whose jobs depend on each other by more than their slowdowns.
    """

    def __init__(self, base: PerformanceModel | None = None) -> None:
        self.base = FixedTime() if base is None else base
        _checks.instance(self.base, PerformanceModel, "base", ValueError)
        for kind, shared in ((LinkModel, "links"), (PortModel, "ports")):
            if isinstance(self.base, kind):
                raise ValueError(
                    f"base is a {kind.__name__}, whose transfers share {shared}; {type(self).__name__} cannot be "
                    "around it"
                )

    def slowdown(self, job: SubmittedJob, placement: Placement, neighbours: Neighbours) -> float:
        """Return the slowdown under `base`; 1 if `base` has no slowdowns."""
        if isinstance(self.base, ColocationModel):
            return self.base.slowdown(job, placement, neighbours)
        return 1.0

    def sent(self, job: SubmittedJob, placement: Placement) -> Sequence[tuple[int, float]]:
        """Return the network loads under `base`, as (machine number, load); none if `base` has no loads."""
        return self.base.sent(job, placement) if isinstance(self.base, MeteredModel) else ()
