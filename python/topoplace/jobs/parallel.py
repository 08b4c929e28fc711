"""Training jobs divided along several dimensions: the groups of each rank, in Megatron-LM's numbering."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, Self

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
ORDER: Final = "-".join(_ORDERED)


@dataclass(frozen=True, slots=True, kw_only=True)
class Degrees:
    """The number of parts into which a job is divided along each dimension; JobGraphError names a wrong one."""

    tensor: int = 1
    pipeline: int = 1
    data: int = 1
    context: int = 1
    expert: int = 1
    traffic: Traffic | None = None
    """What the model moves and computes in a step; None means 1 GB for each collective."""
    order: str = ORDER
    """The dimensions; the first one has neighbouring ranks."""

    def __post_init__(self) -> None:
        keep = object.__setattr__  # only this method may write: it brings the fields to canonical form
        for name in (*_ORDERED, "expert"):
            degree = _checks.integer(getattr(self, name), name, JobGraphError, low=1, high=MAX_TASKS)
            keep(self, name, degree)
        if self.num_tasks > MAX_TASKS:
            raise JobGraphError(
                f"{self._product} = {self.num_tasks}: at most {MAX_TASKS} tasks can be placed"
            )
        if self.data % self.expert:
            raise JobGraphError(f"expert = {self.expert} does not divide data = {self.data}")
        _checked_order(self.order)
        if self.traffic is not None:
            _checks.instance(self.traffic, Traffic, "traffic", JobGraphError)

    @property
    def num_tasks(self) -> int:
        """Return the number of ranks."""
        return math.prod(getattr(self, dimension) for dimension in _ORDERED)

    @property
    def replica(self) -> int:
        """Return the number of ranks that do the same with other data than all others."""
        return self.num_tasks // self.data

    def with_tasks(self, num_tasks: int) -> Self:
        """Return the degrees of as many ranks; only `data` differs. num_tasks: a multiple of `replica`."""
        return replace(self, data=num_tasks // self.replica)

    @property
    def _product(self) -> str:
        return " x ".join(f"{dimension} {getattr(self, dimension)}" for dimension in _ORDERED)

    def collectives(self) -> Iterator[Collective]:
        """Yield the collectives of all groups, dimension by dimension; dimensions of degree 1 have none."""
        groups, traffic = self._groups(), self.traffic
        all_volumes = self._volumes()
        for dimension, volumes in all_volumes.items():
            for tasks in groups[dimension].tolist():
                for kind, gigabytes in volumes.items():
                    yield Collective(kind, tuple(tasks), gigabytes, dimension)
        if traffic is not None and (back := traffic.wrapped_share) and self.pipeline > 1:
            gigabytes = back * all_volumes["pipeline"]["send"]
            for tasks in groups["pipeline"][:, [-1, 0]].tolist():
                yield Collective("send", tuple(tasks), gigabytes, "pipeline")

    @property
    def tflop(self) -> float | None:
        """Return the 10¹² operations of each task in a step, equal for all data ranks; None if unknown."""
        if self.traffic is None or self.traffic.tflop is None:
            return None
        return self.traffic.tflop / (self.tensor * self.pipeline * self.context)

    def without_tflop(self) -> Self:
        """Return the degrees as a job keeps them, which states its operations itself."""
        if self.traffic is None or self.traffic.tflop is None:
            return self
        return replace(self, traffic=replace(self.traffic, tflop=None))

    def _volumes(self) -> Volumes:
        if self.traffic is not None:
            return self.traffic.per_group(
                tensor=self.tensor,
                pipeline=self.pipeline,
                data=self.data,
                context=self.context,
                expert=self.expert,
            )
        cut = (dimension for dimension in DEFAULT_KINDS if getattr(self, dimension, 1) > 1)
        return {dimension: {DEFAULT_KINDS[dimension]: 1.0} for dimension in cut}

    def _groups(self) -> dict[str, NDArray[np.int64]]:
        """Return the groups of each dimension as rows, by their first rank; the ranks within a row ascend."""
        names = self.order.split("-")[::-1]  # the slowest first, as arrays have it
        ranks = np.arange(self.num_tasks).reshape([getattr(self, name) for name in names])
        groups = {
            name: np.moveaxis(ranks, names.index(name), -1).reshape(-1, getattr(self, name)) for name in names
        }
        parts = groups["data"].reshape(-1, self.data // self.expert, self.expert)
        groups["expert"] = _by_first(parts.reshape(-1, self.expert))
        groups["expert_data"] = _by_first(parts.swapaxes(1, 2).reshape(-1, self.data // self.expert))
        return groups


def data_range(data: Any) -> tuple[Any, int]:
    """Return the least and the most data ranks of a job; JobGraphError unless they are one number or such a pair."""
    if not isinstance(data, tuple | list):
        return data, data
    if len(pair := _checks.ordered(data, "data", JobGraphError)) != 2:
        raise JobGraphError(f"data = {_checks.shown(pair)} is not (least, most)")
    least, most = (
        _checks.integer(one, f"data[{i}]", JobGraphError, low=1, high=MAX_TASKS) for i, one in enumerate(pair)
    )
    if least > most:
        raise JobGraphError(f"data = {(least, most)}: the least is above the most")
    return least, most


def _by_first(groups: NDArray[np.int64]) -> NDArray[np.int64]:
    return groups[np.argsort(groups[:, 0])]


def _checked_order(order: str) -> None:
    """Raise JobGraphError unless `order` names each of the four dimensions once."""
    names = _checks.text(order, "order", JobGraphError).split("-")
    shown = _checks.shown(order)
    for i, name in enumerate(names):
        _checks.one_of(name, f"order = {shown}: dimension {i}", _ORDERED, JobGraphError)
        if name in names[:i]:
            raise JobGraphError(f"order = {shown} names {name} twice")
    if missing := [name for name in _ORDERED if name not in names]:
        raise JobGraphError(f"order = {shown} lacks {missing[0]}")
