"""The sets of a machine's GPUs with the bandwidth of their rings, and the best bandwidth left among free GPUs."""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import chain, combinations

import numpy as np
from numpy.typing import NDArray

from topoplace.collective.machine_graph import UNITS_PER_GB, MachineGraph, Vertex, Wire
from topoplace.collective.prepared import Prepared, prepared
from topoplace.kernels import best_channels
from topoplace.kernels.limits import until_deadline
from topoplace.topology.links.nccl_rates import PathType, Rates
from topoplace.topology.topology import Topology

TIE = 0.1
"""Bandwidths that differ by no more than this share count as equal, as the rates of NCCL's channels are quantised."""
_LOG_STEP = math.log1p(TIE)
_ROUNDING = 1e-9
_MOST_LISTED = 4096
_MOST_KEPT = 1 << 20
_MOST_PAIRS = 1 << 20
_MOST_CHOICES = 1 << 16
Masks = NDArray[np.uint64]
"""Sets of GPUs, with a bit for each GPU."""


def grades(gb_per_s: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return a whole number for each bandwidth, larger for a faster one; bandwidths that tie have equal numbers.

    Steps are 10 % wide: bandwidths that differ by more have different grades, and equal grades differ by less. A
    bandwidth of 0 has minus infinity.
    """
    with np.errstate(divide="ignore"):
        found: NDArray[np.float64] = np.floor(np.log(gb_per_s) / _LOG_STEP + _ROUNDING)
    return found


def grade_of(gb_per_s: float) -> float:
    """Return the grade of one bandwidth."""
    return math.floor(math.log(gb_per_s) / _LOG_STEP + _ROUNDING) if gb_per_s else -math.inf


def grade_floor(gb_per_s: float) -> float:
    """Return the least bandwidth that ties with this one, GB/s."""
    return math.exp((grade_of(gb_per_s) - _ROUNDING) * _LOG_STEP)


def mask_of(gpus: Iterable[int]) -> int:
    """Return a set of GPUs as a bit mask."""
    mask = 0
    for gpu in gpus:
        mask |= 1 << gpu
    return mask


def masks_of(gpus: Sequence[int], size: int) -> Masks:
    """Return all sets of `size` of these ascending GPUs as bit masks, in the order of their GPU lists."""
    bits = np.uint64(1) << np.array(gpus, dtype=np.uint64)
    found: Masks = np.bitwise_or.reduce(bits[_positions(len(gpus), size)], axis=1)
    return found


@lru_cache(maxsize=64)
def _positions(count: int, size: int) -> NDArray[np.intp]:
    """Return the positions of all sets of `size` of `count` things, a row for each set."""
    positions = chain.from_iterable(combinations(range(count), size))
    rows = math.comb(count, size)
    return np.fromiter(positions, np.intp, rows * size).reshape(rows, size)


def members_of(mask: int) -> tuple[int, ...]:
    """Return the GPUs of a bit mask, ascending."""
    return tuple([gpu for gpu in range(mask.bit_length()) if mask >> gpu & 1])


@dataclass(frozen=True, slots=True)
class Wanted:
    """A request for sets of GPUs of one machine; sets of GPUs are bit masks."""

    size: int
    free: int
    required: int
    """GPUs of `free` that every set must contain."""
    stays: int
    """All free GPUs of the machine, a superset of `free`; the rest of them after the choice counts in ties."""
    by_rings: bool = True
    """False makes all sets tie, so that only the loss of other free GPUs decides."""


@dataclass(frozen=True, slots=True)
class SetChoice:
    """A set of GPUs of one machine."""

    gpus: tuple[int, ...]
    """The GPUs of the set, ascending."""
    gb_per_s: float
    """The `ring_bandwidth` of the set, GB/s; 0 for one GPU."""
    lost_gb_per_s: float
    """The loss of `left_bandwidth` of the machine's free GPUs by this choice, GB/s."""
    exact: bool
    """True if no other set is better; False if there are too many sets to rate."""


class RatedSets:
    """The ring bandwidths of sets of one machine's GPUs, computed on first use and cached."""

    def __init__(self, machine: Prepared) -> None:
        self._machine = machine
        self._num_gpus = machine.graph.num_gpus
        self._alike = only_through_switches(machine)
        self._rates: dict[int, float] = {}
        self._listed: dict[int, tuple[Masks, NDArray[np.float64]]] = {}
        self._every: tuple[Masks, NDArray[np.float64], NDArray[np.int64]] | None = None
        self.choices: dict[Wanted, SetChoice | None] = {}
        """What was chosen before."""
        self.listed_sizes = tuple(_listed_sizes(self._num_gpus))
        """The sizes of which all sets are rated: as many as there are at most 4,096 sets of."""

    def keep(self, wanted: Wanted, choice: SetChoice | None) -> None:
        """Cache a choice; older choices are dropped if there are too many."""
        if len(self.choices) >= _MOST_CHOICES:
            self.choices.clear()
        self.choices[wanted] = choice

    def listed(self, size: int) -> tuple[Masks, NDArray[np.float64]]:
        """Return all sets of one of `listed_sizes`, in the order of their GPU lists, and their GB/s."""
        if size not in self._listed:
            masks = masks_of(range(self._num_gpus), size)
            self._listed[size] = masks, self.gb_per_s(masks)
        return self._listed[size]

    def gb_per_s(self, masks: Masks) -> NDArray[np.float64]:
        """Return the ring bandwidth of each set, GB/s; 0 for a single GPU."""
        return np.array([self._rate(mask) for mask in until_deadline(masks.tolist())], dtype=np.float64)

    def fastest(self, masks: Masks) -> tuple[Masks, NDArray[np.float64]]:
        """Return the sets that tie with the fastest, in their order, and their GB/s.

        Sets are rated from the largest bound down, until no bound ties with the fastest set so far.
        """
        listed: list[int] = masks.tolist()
        if self._alike or all(mask in self._rates for mask in listed):
            gb_per_s = self.gb_per_s(masks)
        else:
            gb_per_s = self._rated_down(listed, self.bounds(masks), 1, grade_floor)
        tied = gb_per_s >= grade_floor(float(gb_per_s.max()))
        return masks[tied], gb_per_s[tied]

    def leading(self, masks: Masks, count: int, share: float) -> NDArray[np.float64]:
        """Return GB/s of the `count` fastest sets, and of all sets with at least the share `share` of their bandwidth.

        Slower sets, not all of which are rated, have -1.
        """
        if self._alike or len(masks) <= count:
            return self.gb_per_s(masks)
        return self._rated_down(masks.tolist(), self.bounds(masks), count, lambda slowest: slowest * share)

    def _rated_down(
        self,
        masks: list[int],
        bounds: NDArray[np.float64],
        count: int,
        floor_of: Callable[[float], float],
    ) -> NDArray[np.float64]:
        """Return the GB/s of sets that may reach the floor of the fastest `count`, -1 for the others."""
        gb_per_s = np.full(len(masks), -1.0)
        fastest, floor = [0.0] * count, 0.0
        order: list[int] = np.argsort(-bounds, kind="stable").tolist()
        for i in until_deadline(order):
            if bounds[i] < floor:
                break
            gb_per_s[i] = rate = self._rate(masks[i])
            if rate > fastest[0]:
                heapq.heapreplace(fastest, rate)
                floor = floor_of(fastest[0])
        return gb_per_s

    def bounds(self, masks: Masks) -> NDArray[np.float64]:
        """Return an upper bound on GB/s of rings through each set: the least that one of its GPUs can send to the
        others or the host.
        """
        members = (masks[:, None] >> np.arange(self._num_gpus, dtype=np.uint64) & np.uint64(1)).astype(bool)
        to_gpus, to_others = self._outgoing
        outgoing = members @ to_gpus + to_others
        bound: NDArray[np.float64] = np.where(members, outgoing, np.inf).min(axis=1)
        return bound

    @cached_property
    def _outgoing(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return GB/s from each GPU to each other one, and to all other vertices together."""
        count = self._num_gpus
        to_gpus, to_others = np.zeros((count, count)), np.zeros(count)
        for one in self._machine.graph.connections:
            near, far = sorted((one.a, one.b))
            if far < count:
                to_gpus[near, far] += one.rate
                to_gpus[far, near] += one.rate
            elif near < count:
                to_others[near] += one.rate
        # Shares above 1 are for what planned rates do not state; the rest is for rounding.
        share = max([1.0, *self._machine.achieved.values()]) * (1.0 + _ROUNDING) / UNITS_PER_GB
        return to_gpus * share, to_others * share

    def lost(self, free: int, taken: Masks) -> NDArray[np.float64]:
        """Return the loss of bandwidth among the GPUs of `free` by taking each set of `taken`, GB/s."""
        left = self.left(free, np.append(taken, np.uint64(0)))
        fall: NDArray[np.float64] = left[-1] - left[:-1]
        return fall

    def left(self, free: int, taken: Masks) -> NDArray[np.float64]:
        """Return the bandwidth among the GPUs of `free` that are not in each set of `taken`, GB/s.

        The bandwidth is the sum, over the sizes in `listed_sizes`, of that of the best set of this size.
        """
        masks, gb_per_s, sizes = self._all_listed()
        inside = np.flatnonzero((masks & np.uint64(~free & (1 << 64) - 1)) == 0)
        if not len(inside):
            return np.zeros(len(taken))
        masks, gb_per_s, sizes = masks[inside], gb_per_s[inside], sizes[inside]
        first_of_size = np.flatnonzero(np.diff(sizes, prepend=0))
        step = max(1, _MOST_PAIRS // len(masks))
        parts = [
            np.maximum.reduceat(
                ((taken[i : i + step, None] & masks) == 0) * gb_per_s, first_of_size, axis=1
            ).sum(axis=1)
            for i in range(0, len(taken), step)
        ]
        total: NDArray[np.float64] = np.concatenate(parts)
        return total.round(6)

    def _all_listed(self) -> tuple[Masks, NDArray[np.float64], NDArray[np.int64]]:
        """Return the sets of all `listed_sizes`, their GB/s and their sizes, ascending by size."""
        if self._every is None:
            listed = [self.listed(size) for size in self.listed_sizes]
            self._every = (
                np.concatenate([np.zeros(0, np.uint64), *(masks for masks, _ in listed)]),
                np.concatenate([np.zeros(0), *(rates for _, rates in listed)]),
                np.repeat(self.listed_sizes, [len(masks) for masks, _ in listed]),
            )
        return self._every

    def _rate(self, mask: int) -> float:
        size = mask.bit_count()
        key = (1 << size) - 1 if self._alike else mask
        found = self._rates.get(key)
        if found is None:
            found = self._machine.ring_bandwidth(members_of(key)) if size > 1 else 0.0
            if len(self._rates) >= _MOST_KEPT:
                self._rates.clear()
            self._rates[key] = found
        return found


def rated_sets(topology: Topology, rates: Rates | str) -> RatedSets:
    """Return the rated sets of a topology of one machine; errors are those of `prepared`."""
    kept, machine = topology.derived(_nothing_yet), prepared(topology, rates)
    found = kept.get(id(machine))
    if found is None:
        found = kept[id(machine)] = RatedSets(machine)  # which keeps the machine, and so its id
    return found


def _nothing_yet(_: Topology) -> dict[int, RatedSets]:
    return {}


def _listed_sizes(num_gpus: int) -> Iterable[int]:
    """Yield the sizes from 2 on, while all sets of these sizes are at most 4,096."""
    left = _MOST_LISTED
    for size in range(2, num_gpus + 1):
        left -= math.comb(num_gpus, size)
        if left < 0:
            return
        yield size


def only_through_switches(machine: Prepared) -> bool:
    """Return True if all GPUs have only equal NVLinks into NVSwitches, so that all sets of a size are equal."""
    graph: MachineGraph = machine.graph
    nvlinks = [one for one in graph.connections if one.wire is Wire.NVLINK]
    into_switch = [one for one in nvlinks if graph.vertices[max(one.a, one.b)] is Vertex.NVSWITCH]
    gpus = {min(one.a, one.b) for one in into_switch}
    if not len(nvlinks) == len(into_switch) == len(gpus) == graph.num_gpus > 1:
        return False
    if machine.same_rules is None or len({one.rate for one in into_switch}) > 1:
        return False
    return best_channels(machine.network, (0, 1), machine.same_rules).level == PathType.NVL
