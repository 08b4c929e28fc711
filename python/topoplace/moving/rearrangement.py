"""The result of `make_room` and `defragment`: a plan that moves and pre-empts jobs, with its cost and a bound."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from topoplace.engine.plan import Plan

if TYPE_CHECKING:
    from topoplace.cluster.cluster import Cluster


@dataclass(frozen=True, slots=True)
class Rearrangement(Plan):
    """A plan that moves or pre-empts running jobs, and starts the job that then fits.

    If no moves make room, the job is in `defer` or `reject` with the reason, and the cost is infinite.
    """

    cost: float = 0.0
    """Sum of the costs of all jobs that are moved or pre-empted."""
    bound: float = 0.0
    """Lower bound on the cost of every rearrangement."""

    @property
    def optimal(self) -> bool:
        """Return True if it is proven that no rearrangement is cheaper; for an infinite cost, that there is none."""
        return self.cost <= self.bound


def unused_id(name: str, cluster: Cluster) -> str:
    """Return `name`, with marks appended until no running job has this id."""
    while cluster.runs(name):
        name += "'"
    return name
