"""Kueue's balanced placement: the largest least share, over the fewest domains."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from topoplace_lab.policies.schedulers.kueue import KueueBestFit, Room, room_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from topoplace.engine.machine_state import ClusterView
    from topoplace.engine.request import JobRequest
    from topoplace_lab.policies.schedulers.levels import Levels
    from topoplace_lab.policies.schedulers.scheduler_policy import Asked, Share

    Ints = NDArray[np.int64]


class KueueBalanced(KueueBestFit):
    """Kueue's balanced placement for jobs with a preferred level: domains get about equal numbers of slices.

    The domains are those of the level below the preferred one, or machines, inside one domain of the level above. A
    greedy assignment gives the least share of each domain, capped at an equal share; domains with less room are left
    out. The siblings with the largest least share are taken, and among them the fewest domains with the least room
    left. Each gets the least share, and those with the most room get the rest. Other jobs, or jobs without such a
    placement, are placed by `kueue-best-fit`; its docstring says what is not modelled.
    """

    name = "kueue-balanced"

    def shares(
        self, asked: Asked, request: JobRequest, levels: Levels, view: ClusterView
    ) -> Sequence[Sequence[Share]] | None:
        """Return the number of tasks of each machine; None if the job has to wait."""
        if asked.prefer:
            room = room_of(asked, levels)
            preferred = max(levels.depth_of[level] for level in asked.prefer)
            if (found := self._balanced(room, preferred, asked.size // room.slice_size)) is not None:
                return [self.spread(room, *found)]
        return super().shares(asked, request, levels, view)

    def _balanced(self, room: Room, preferred: int, need: int) -> tuple[int, list[Share]] | None:
        """Return a depth and the tasks that its domains get; None if there is no balanced placement."""
        depth = min(preferred + 1, room.slice_depth)
        if preferred == room.slice_depth < room.levels.last:
            return None  # the original leaves out all domains here: those below slices have none
        best: _Siblings | None = None
        for domains in self._siblings(room, preferred, need):
            found = self._least_share(room, preferred, depth, domains, need)
            if found and (best is None or found[:2] > best[:2]):
                best = found
        if best is None:
            return None
        kept = best.kept
        if depth > preferred:
            upper = _fewest(best.tasks, best.slices, _by_entropy(best, room, depth), need, room.slice_size)
            kept = kept[np.isin(room.levels.above[depth][kept], upper)]
        tasks, slices = room.tasks[depth][kept], room.slices[depth][kept]
        chosen = kept[_fewest(tasks, slices, np.arange(len(kept)), need, room.slice_size)]
        extra = need - len(chosen) * best.share
        if not len(chosen) or extra < 0:
            return None
        shares: list[Share] = []
        for domain in room.ordered(depth, chosen, fewest_first=False).tolist():
            more = min(int(room.slices[depth][domain]) - best.share, extra)
            extra -= more
            shares.append((domain, (best.share + more) * room.slice_size))
        return None if extra else (depth, shares)

    def _siblings(self, room: Room, preferred: int, need: int) -> Iterator[Ints]:
        """Yield the domains of the preferred level that are in one domain of the level above, if they have room."""
        if preferred == 1:
            yield np.arange(len(room.tasks[1]))
            return
        for above in np.flatnonzero(room.slices[preferred - 1] >= need).tolist():
            yield self.children(room, preferred - 1, [(above, 0)])

    def _least_share(
        self, room: Room, preferred: int, depth: int, domains: Ints, need: int
    ) -> _Siblings | None:
        """Return the least share that domains of a depth inside siblings can all get, and what it leaves of them."""
        lower = domains
        if depth > preferred:
            lower = self.children(room, preferred, [(domain, 0) for domain in domains.tolist()])
        greedy = _greedy(room.slices[depth][lower], need)
        if greedy is None:
            return None
        used, last = greedy
        share = min(need // used, last)
        kept = lower[room.slices[depth][lower] >= share]
        tasks = np.zeros_like(room.tasks[preferred])
        slices = np.zeros_like(tasks)
        of = room.levels.above[depth][kept] if depth > preferred else kept
        np.add.at(tasks, of, room.tasks[depth][kept])
        np.add.at(slices, of, room.slices[depth][kept])
        greedy = _greedy(slices, need)
        return _Siblings(share, -greedy[0], kept, tasks, slices) if greedy and share else None


class _Siblings(NamedTuple):
    """Domains of the preferred level in one domain of the level above."""

    share: int
    """The least number of slices that each of `kept` gets."""
    fewest: int
    """Minus the number of domains of the preferred level that are needed."""
    kept: Ints
    """The domains with room for the share, inside them."""
    tasks: Ints
    slices: Ints
    """What the kept domains have room for, by domain of the preferred level."""


def _greedy(slices: Ints, need: int) -> tuple[int, int] | None:
    """Return how many domains are used, those with the most room first, and the room of the last; None if too few."""
    left = -np.sort(-slices)
    last = int(np.searchsorted(np.cumsum(left), need))
    return (last + 1, int(left[last])) if last < len(left) else None


def _by_entropy(siblings: _Siblings, room: Room, depth: int) -> Ints:
    """Return the domains of the preferred level by the most slices, ties by the most evenly spread tasks inside."""
    of, tasks = room.levels.above[depth][siblings.kept], room.tasks[depth][siblings.kept]
    parts = tasks / np.maximum(siblings.tasks[of], 1)
    entropy = np.bincount(
        of, weights=-parts * np.log2(np.maximum(parts, 1e-300)), minlength=len(siblings.tasks)
    )
    return np.lexsort((-entropy, -siblings.slices))


def _fewest(tasks: Ints, slices: Ints, order: Ints, need: int, slice_size: int) -> Ints:
    """Return the fewest domains with room for `need` slices, of these a set with the least room; empty if none has.

    order: the domains in the order in which they are tried; of equal sets the first one found is taken.
    """
    greedy = _greedy(slices, need)
    if greedy is None:
        return np.zeros(0, dtype=np.int64)
    most, whole = int(tasks.max()), need * slice_size
    # Row i, column most + left: reached by i domains that leave this many tasks; the last domain of the first way.
    last_of = np.full((greedy[0] + 1, most + whole + 1), -1)
    last_of[0, -1] = len(tasks)
    for domain in order[slices[order] > 0].tolist():
        size = int(tasks[domain])
        to = last_of[1:, most + 1 - size : most + 1 - size + whole]
        to[(last_of[:-1, most + 1 :] >= 0) & (to < 0)] = domain
    reached = np.flatnonzero(last_of[-1, : most + 1] >= 0)
    if not reached.size:
        return np.zeros(0, dtype=np.int64)
    left, chosen = int(reached[-1]), np.zeros(greedy[0], dtype=np.int64)
    for row in range(greedy[0], 0, -1):
        chosen[row - 1] = last_of[row, left]
        left += int(tasks[chosen[row - 1]])
    return chosen
