"""The levels of a cluster as a tree: pods of racks of machines, as far as each level is inside the one above."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from topoplace.jobs.groups import INNER_LEVELS, MACHINE

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from topoplace.jobs.job_graph import JobGraph
    from topoplace.topology.topology import Topology

    Ints = NDArray[np.int64]


class PlacedLevel(NamedTuple):
    """A level, and the domain of each machine."""

    name: str
    codes: Ints
    """(m,) the number of each machine's domain. A domain of the level below in no domain of this one is one itself."""


class LevelChains:
    """The chains of levels of a topology, each made once."""

    def __init__(self, topology: Topology) -> None:
        self._levels = [level for level in topology.levels if not level.rail]
        self._machines = PlacedLevel(MACHINE, np.arange(topology.num_machines))
        self._known: dict[tuple[frozenset[str], bool], tuple[PlacedLevel, ...] | None] = {}

    def of(self, named: Collection[str], *, others: bool = True) -> tuple[PlacedLevel, ...] | None:
        """Return levels of which each is inside the next, from the machines up; None if those `named` are not.

        named: levels of the fabric that are among them. others: whether more levels are, as far as they fit.
        """
        key = frozenset(named), others
        if key not in self._known:
            chain = self._chain([level.name in key[0] for level in self._levels])
            if chain is not None and others:
                chain = self._with_others([level.name in key[0] for level in self._levels])
            self._known[key] = chain
        return self._known[key]

    def _with_others(self, chosen: list[bool]) -> tuple[PlacedLevel, ...] | None:
        for i, is_chosen in enumerate(chosen):
            if not is_chosen:
                chosen[i] = True
                chosen[i] = self._chain(chosen) is not None
        return self._chain(chosen)

    def _chain(self, chosen: Sequence[bool]) -> tuple[PlacedLevel, ...] | None:
        chain = [self._machines]
        for level in (level for level, is_chosen in zip(self._levels, chosen, strict=True) if is_chosen):
            below = chain[-1].codes
            codes = np.where(level.codes >= 0, level.codes, below + len(level.codes))
            pairs = below * (int(codes.max()) + 1) + codes
            if len(np.unique(pairs)) != len(np.unique(below)):
                return None
            chain.append(PlacedLevel(level.name, codes))
        return tuple(chain)


def named_levels(job: JobGraph) -> frozenset[str]:
    """Return the levels of the fabric of which the groups and the tasks of a job need one domain, or share several."""
    stated = {level for group in job.groups for level in (group.within, group.prefer)}
    return frozenset({*stated, job.within, job.prefer, job.balanced} - {None, *INNER_LEVELS})  # type: ignore[arg-type]
