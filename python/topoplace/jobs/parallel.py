"""Training jobs divided along several dimensions: the groups of each rank, in Megatron-LM's numbering."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Final

import numpy as np

from topoplace import _checks
from topoplace.errors import JobGraphError
from topoplace.jobs.collectives import Collective
from topoplace.jobs.parallel_traffic import DEFAULT_KINDS, Traffic, Volumes
from topoplace.jobs.requirements import MAX_TASKS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

_ORDERED: Final = ("tensor", "context", "data", "pipeline")
"""The dimensions along which each rank has a coordinate, in Megatron-LM's default order "tp-cp-ep-dp-pp"."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Degrees:
    """The number of parts into which a job is divided along each dimension; JobGraphError names a wrong one."""

    tensor: int
    pipeline: int
    data: int
    context: int
    expert: int

    def __post_init__(self) -> None:
        keep = object.__setattr__  # only this method may write: it brings the fields to canonical form
        for field in fields(self):
            value = getattr(self, field.name)
            degree = _checks.integer(value, field.name, JobGraphError, low=1, high=MAX_TASKS)
            keep(self, field.name, degree)
        if self.num_tasks > MAX_TASKS:
            raise JobGraphError(
                f"{self._product} = {self.num_tasks}: at most {MAX_TASKS} tasks can be placed"
            )
        if self.data % self.expert:
            raise JobGraphError(f"expert = {self.expert} does not divide data = {self.data}")

    @property
    def num_tasks(self) -> int:
        """Return the number of ranks."""
        return math.prod(getattr(self, dimension) for dimension in _ORDERED)

    @property
    def _product(self) -> str:
        return " x ".join(f"{dimension} {getattr(self, dimension)}" for dimension in _ORDERED)

    def collectives(self, traffic: Traffic | None, order: str) -> Iterator[Collective]:
        """Yield the collectives of all groups, dimension by dimension; dimensions of degree 1 have none.

        traffic: what each collective moves; None means 1 GB each. order: see `JobGraph.parallel`.
        """
        groups = self._groups(order)
        if traffic is not None:
            _checks.instance(traffic, Traffic, "traffic", JobGraphError)
        for dimension, volumes in self._volumes(traffic).items():
            for tasks in groups[dimension].tolist():
                for kind, gigabytes in volumes.items():
                    yield Collective(kind, tuple(tasks), gigabytes, dimension)
        if traffic is not None and (back := traffic.wrapped_share) and self.pipeline > 1:
            gigabytes = back * self._volumes(traffic)["pipeline"]["send"]
            for tasks in groups["pipeline"][:, [-1, 0]].tolist():
                yield Collective("send", tuple(tasks), gigabytes, "pipeline")

    def tflop(self, traffic: Traffic | None) -> float | None:
        """Return the 10¹² operations of each task in a step, equal for all data ranks; None if unknown."""
        if traffic is None or traffic.tflop is None:
            return None
        return traffic.tflop / (self.tensor * self.pipeline * self.context)

    def _volumes(self, traffic: Traffic | None) -> Volumes:
        if traffic is not None:
            return traffic.per_group(
                tensor=self.tensor,
                pipeline=self.pipeline,
                data=self.data,
                context=self.context,
                expert=self.expert,
            )
        cut = (dimension for dimension in DEFAULT_KINDS if getattr(self, dimension, 1) > 1)
        return {dimension: {DEFAULT_KINDS[dimension]: 1.0} for dimension in cut}

    def _groups(self, order: str) -> dict[str, NDArray[np.int64]]:
        """Return the groups of each dimension as rows, by their first rank; the ranks within a row ascend."""
        names = _checked_order(order)[::-1]  # the slowest first, as arrays have it
        ranks = np.arange(self.num_tasks).reshape([getattr(self, name) for name in names])
        groups = {
            name: np.moveaxis(ranks, names.index(name), -1).reshape(-1, getattr(self, name)) for name in names
        }
        parts = groups["data"].reshape(-1, self.data // self.expert, self.expert)
        groups["expert"] = _by_first(parts.reshape(-1, self.expert))
        groups["expert_data"] = _by_first(parts.swapaxes(1, 2).reshape(-1, self.data // self.expert))
        return groups


def _by_first(groups: NDArray[np.int64]) -> NDArray[np.int64]:
    return groups[np.argsort(groups[:, 0])]


def _checked_order(order: str) -> list[str]:
    """Return the dimensions that `order` names; JobGraphError unless it has each of the four once."""
    names = _checks.text(order, "order", JobGraphError).split("-")
    shown = _checks.shown(order)
    for i, name in enumerate(names):
        _checks.one_of(name, f"order = {shown}: dimension {i}", _ORDERED, JobGraphError)
        if name in names[:i]:
            raise JobGraphError(f"order = {shown} names {name} twice")
    if missing := [name for name in _ORDERED if name not in names]:
        raise JobGraphError(f"order = {shown} lacks {missing[0]}")
    return names
