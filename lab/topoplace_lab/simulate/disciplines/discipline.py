"""The options of a queue discipline."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Literal

from topoplace import _checks

Order = Literal["submitted", "priority", "fair"]
Backfill = Literal["none", "easy", "conservative"]


@dataclass(frozen=True, slots=True)
class Discipline:
    """How a simulation orders its waiting jobs, and which of them may start before older ones.

    Args:
        order: "submitted": the oldest job first. "priority": the highest `JobGraph.priority` first, then the oldest.
            "fair": the group (`JobGraph.group`) with the smallest weighted dominant share first, then the oldest
            (weighted dominant resource fairness, Ghodsi et al., NSDI'11). A group's dominant share is the largest of
            its shares of all GPUs, CPUs and memory.
        backfill: "none": no job starts before the first one that waits. "easy": a job may, if the first one then does
            not start later than expected (Lifka, JSSPP'95). "conservative": a job may, if none before it then starts
            later than expected (Mu'alem and Feitelson, 2001). The expected run time is `requested_time`, or `base_time`
            if it is unknown.
        weights: Weights of groups for "fair", 1 for groups that are not named.
        quotas: Limit on the GPUs that all jobs of a group hold at once. Jobs above it wait without delaying others;
        jobs that exceed it alone are rejected.
        depth: Number of waiting jobs behind the first one that are considered for backfill.

    Raises:
        ValueError: Names a wrong value.
    """

    order: Order = "submitted"
    backfill: Backfill = "easy"
    weights: Mapping[str, float] = field(default_factory=dict[str, float], hash=False)
    quotas: Mapping[str, float] = field(default_factory=dict[str, float], hash=False)
    depth: int = 100

    def __post_init__(self) -> None:
        _checks.one_of(self.order, "order", ("submitted", "priority", "fair"), ValueError)
        _checks.one_of(self.backfill, "backfill", ("none", "easy", "conservative"), ValueError)
        _checks.integer(self.depth, "depth", ValueError, low=1, high=1 << 30)
        for name in ("weights", "quotas"):
            given = getattr(self, name)
            _checks.instance(given, Mapping, name, ValueError)
            for group, value in given.items():
                _checks.text(group, f"a group in {name}", ValueError)
                _checks.positive(value, f"{name}[{group!r}]", ValueError)
            object.__setattr__(self, name, MappingProxyType(dict(given)))
        if self.weights and self.order != "fair":
            raise ValueError(f'weights are for order = "fair", not for {self.order!r}')

    def quota(self, group: str | None) -> float:
        """Return the limit on the GPUs that a group's jobs hold at once; infinite without a quota."""
        return math.inf if group is None else self.quotas.get(group, math.inf)

    def weight(self, group: str | None) -> float:
        """Return the weight of a group."""
        return 1.0 if group is None else self.weights.get(group, 1.0)
