"""The levels of a cluster as a tree: pods of racks of machines, as far as each level is inside the one above.

Here are also the tasks of a job that must be, or should be, in one domain of a level: those of its groups, or all.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from itertools import islice, permutations
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from topoplace.jobs.groups import INNER_LEVELS, MACHINE

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from topoplace.jobs.job_graph import JobGraph
    from topoplace.topology.topology import Topology

    Ints = NDArray[np.int64]

_MAX_ORDERS = 120
"""Limit on the orders of crossing levels that are tried: all orders of five levels."""


class PlacedLevel(NamedTuple):
    """A level, and the domain of each machine."""

    name: str
    codes: Ints
    """(m,) the number of each machine's domain in the tree, whose levels above cut a domain into parts.

    A domain of the level below that is in no domain of this level counts as one.
    """
    domains: Ints
    """(m,) the number of each machine's domain without such cuts; `codes` differ only if the level crosses one above
    it.
    """


Chain = tuple[PlacedLevel, ...]
"""Levels from the machines up."""


class JobLevels(NamedTuple):
    """The levels that a job names, as a tree."""

    chain: Chain
    apart: tuple[Together, ...] = ()
    """Required groups that may be in several domains of the tree, as their level crosses one above it."""


class LevelChains:
    """The chains of levels of a topology, each computed once."""

    def __init__(self, topology: Topology) -> None:
        self._levels = [level for level in topology.levels if not level.rail]
        numbers = np.arange(topology.num_machines)
        self._machines = PlacedLevel(MACHINE, numbers, numbers)
        self._known: dict[tuple[frozenset[str], bool], Chain | None] = {}
        self._known_cuts: dict[tuple[str, ...], Chain] = {}

    def of(self, named: Collection[str], *, others: bool = True) -> Chain | None:
        """Return a chain of levels, each inside the next, from the machines up; None if those `named` form no chain.

        named: levels of the fabric that the chain must contain. others: True to add all other levels that fit.
        """
        key = frozenset(named), others
        if key not in self._known:
            chain = self._chain([level.name in key[0] for level in self._levels])
            if chain is not None and others:
                chain = self._with_others([level.name in key[0] for level in self._levels])
            self._known[key] = chain
        return self._known[key]

    def for_job(self, job: JobGraph) -> JobLevels | None:
        """Return a tree of the levels that a job names; None if these cross in a way that no tree can honour.

        If levels cross, the domains of the inner one are cut. The cut is exact for groups inside a group of the outer
        level. A group outside such groups may be in several of the cut domains; it shares no task with other groups.
        """
        named = named_levels(job)
        chain = self.of(named, others=not job.balanced)
        if chain is not None:
            return JobLevels(chain)
        levels = [level.name for level in self._levels if level.name in named]
        found = [_levels_for(job, self._cut(order)) for order in islice(permutations(levels), _MAX_ORDERS)]
        return min((one for one in found if one is not None), key=lambda one: len(one.apart), default=None)

    def _with_others(self, chosen: list[bool]) -> Chain | None:
        for i, is_chosen in enumerate(chosen):
            if not is_chosen:
                chosen[i] = True
                chosen[i] = self._chain(chosen) is not None
        return self._chain(chosen)

    def _chain(self, chosen: Sequence[bool]) -> Chain | None:
        chain = [self._machines]
        for level in (level for level, is_chosen in zip(self._levels, chosen, strict=True) if is_chosen):
            below = chain[-1].codes
            codes = np.where(level.codes >= 0, level.codes, below + len(level.codes))
            if not _is_inside(below, codes):
                return None
            chain.append(PlacedLevel(level.name, codes, codes))
        return tuple(chain)

    def _cut(self, order: tuple[str, ...]) -> Chain:
        """Return the levels in this order, from the machines up, the domains of each cut by those above it."""
        if order not in self._known_cuts:
            self._known_cuts[order] = self._cut_chain(order)
        return self._known_cuts[order]

    def _cut_chain(self, order: Sequence[str]) -> Chain:
        by_name = {level.name: level.codes for level in self._levels}
        cut = np.zeros_like(self._machines.codes)
        chain: list[PlacedLevel] = []
        for name in reversed(order):
            codes = by_name[name]
            domains = np.where(codes >= 0, codes, self._machines.codes + len(codes))
            cut = np.unique(_pairs(cut, domains), return_inverse=True)[1].reshape(-1)
            chain.append(PlacedLevel(name, cut, domains))
        return self._machines, *reversed(chain)


def _levels_for(job: JobGraph, chain: Chain) -> JobLevels | None:
    """Return the levels with the groups that are apart; None if a tree of this chain cannot honour the job."""
    if any(level.name == job.balanced and not _is_inside(level.domains, level.codes) for level in chain):
        return None
    cut = _CutGroups(job, chain)
    if any(cut.crossed(group) for group in preferred_of(job)):
        return None
    apart = tuple(group for group in required_of(job) if cut.crossed(group))
    if apart and (job.balanced or not all(cut.is_alone(group) for group in apart)):
        return None
    return JobLevels(chain, apart)


class _CutGroups:
    """Which groups of a job may be in several domains of a tree of levels that cross."""

    def __init__(self, job: JobGraph, chain: Chain) -> None:
        required = required_of(job)
        self._level_of = {level.name: level for level in chain}
        self._above = {level.name: chain[i + 1 :] for i, level in enumerate(chain)}
        self._around = {level.name: self._largest(required, level, job.num_tasks) for level in chain}
        self._everything = {group.level for group in required if len(group.tasks) == job.num_tasks}
        self._shared = np.zeros(job.num_tasks, dtype=np.int64)
        for group in (*required, *preferred_of(job)):
            if len(group.tasks) > 1 and (group not in required or len(group.tasks) < job.num_tasks):
                self._shared[list(group.tasks)] += 1

    def crossed(self, group: Together) -> list[str]:
        """Return the levels that cut the domains of a group's level, but for those that a group around it needs."""
        if len(group.tasks) == 1:
            return []
        tasks = list(group.tasks)
        return [
            above.name
            for above in self._above.get(group.level, ())
            if not self._is_inside(group.level, above)
            and (
                (self._around[above.name][tasks] != self._around[above.name][tasks[0]]).any()
                or self._around[above.name][tasks[0]] < 0
            )
        ]

    def is_alone(self, group: Together) -> bool:
        """Return whether a group has no task in common with others but those of all tasks around its level."""
        around = [self._level_of[name] for name in self._everything if name in self._level_of]
        return bool((self._shared[list(group.tasks)] == 1).all()) and all(
            self._is_inside(group.level, level) for level in around
        )

    def _largest(self, required: Sequence[Together], level: PlacedLevel, num_tasks: int) -> Ints:
        """Return (k,) the number of the largest group of each task that one domain of the level has; -1 for none."""
        found = np.full(num_tasks, -1)
        for number, group in sorted(enumerate(required), key=lambda one: len(one[1].tasks)):
            if self._is_inside(group.level, level):
                found[list(group.tasks)] = number
        return found

    def _is_inside(self, inner: str, outer: PlacedLevel) -> bool:
        return inner not in self._level_of or _is_inside(self._level_of[inner].domains, outer.domains)


def _is_inside(inner: Ints, outer: Ints) -> bool:
    """Return whether each domain of the inner level is in one of the outer level."""
    return len(np.unique(_pairs(inner, outer))) == len(np.unique(inner))


def _pairs(inner: Ints, outer: Ints) -> Ints:
    return inner * (int(outer.max(initial=0)) + 1) + outer


def named_levels(job: JobGraph) -> frozenset[str]:
    """Return the levels of the fabric that a job and its groups name, to be in one domain or balanced over several."""
    stated = {level for group in job.groups for level in (group.within, group.prefer)}
    return frozenset({*stated, job.within, job.prefer, job.balanced} - {None, *INNER_LEVELS})  # type: ignore[arg-type]


class Together(NamedTuple):
    """Tasks that must be, or should be, in one domain of a level."""

    tasks: tuple[int, ...]
    level: str


def required_of(job: JobGraph) -> list[Together]:
    """Return the groups of two or more tasks that must be in one domain, the whole job first."""
    found = [_whole(job, level) for level in (job.within, MACHINE if job.single_machine else None) if level]
    return found + [
        Together(one.tasks, one.within) for one in job.groups if one.within and len(one.tasks) > 1
    ]


def preferred_of(job: JobGraph) -> list[Together]:
    """Return the groups of tasks that should be in one domain, the whole job last."""
    found = [Together(one.tasks, one.prefer) for one in job.groups if one.prefer and len(one.tasks) > 1]
    return [*found, _whole(job, job.prefer)] if job.prefer else found


def _whole(job: JobGraph, level: str) -> Together:
    return Together(tuple(range(job.num_tasks)), level)
