"""The sets of a machine's GPUs with the bandwidth of their rings, and the best bandwidth left among free GPUs."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain, combinations

import numpy as np
from numpy.typing import NDArray

from topoplace import _core
from topoplace.collective.machine_graph import UNITS_PER_GB, MachineGraph, Vertex, Wire
from topoplace.collective.prepared import Prepared, prepared
from topoplace.kernels import MAX_LEVEL, RingRates, best_channels
from topoplace.topology.links.nccl_rates import PathType, Rates
from topoplace.topology.topology import Topology

TIE = 0.1
"""Bandwidths that differ by no more than this share count as equal, as the rates of NCCL's channels are quantised."""
_LOG_STEP = math.log1p(TIE)
_ROUNDING = 1e-9
_MOST_LISTED = 4096
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

    def __init__(self, machine: Prepared, rates: RingRates) -> None:
        self.native = _core.RatedSets(rates, only_through_switches(machine), *_outgoing(machine))
        self._num_gpus = machine.graph.num_gpus
        self._listed: dict[int, tuple[Masks, NDArray[np.float64]]] = {}
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
        return self.native.gb_per_s(masks)

    def fastest(self, masks: Masks) -> tuple[Masks, NDArray[np.float64]]:
        """Return the sets that tie with the fastest, in their order, and their GB/s."""
        gb_per_s = self.native.fastest(masks)
        tied = gb_per_s >= grade_floor(float(gb_per_s.max()))
        return masks[tied], gb_per_s[tied]

    def lost(self, free: int, taken: Masks) -> NDArray[np.float64]:
        """Return the loss of bandwidth among the GPUs of `free` by taking each set of `taken`, GB/s."""
        left = self.left(free, np.append(taken, np.uint64(0)))
        fall: NDArray[np.float64] = left[-1] - left[:-1]
        return fall

    def left(self, free: int, taken: Masks) -> NDArray[np.float64]:
        """Return the bandwidth among the GPUs of `free` that are not in each set of `taken`, GB/s.

        The bandwidth is the sum, over the sizes in `listed_sizes`, of that of the best set of this size.
        """
        return self.native.left(free, taken)


def _outgoing(machine: Prepared) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return GB/s from each GPU to each other one, and to all other vertices together."""
    count = machine.graph.num_gpus
    to_gpus, to_others = np.zeros((count, count)), np.zeros(count)
    for one in machine.graph.connections:
        near, far = sorted((one.a, one.b))
        if far < count:
            to_gpus[near, far] += one.rate
            to_gpus[far, near] += one.rate
        elif near < count:
            to_others[near] += one.rate
    # Shares above 1 are for what planned rates do not state; the rest is for rounding.
    share = max([1.0, *machine.achieved.values()]) * (1.0 + _ROUNDING) / UNITS_PER_GB
    return to_gpus * share, to_others * share


def ring_rates(topology: Topology, rates: Rates | str) -> RingRates:
    """Return what rings on a topology of one machine carry, built once; errors are those of `prepared`."""
    kept, machine = topology.derived(_no_rates_yet), prepared(topology, rates)
    found = kept.get(id(machine))
    if found is None:
        found = kept[id(machine)] = _ring_rates(machine), machine  # the machine keeps its id
    return found[0]


def _no_rates_yet(_: Topology) -> dict[int, tuple[RingRates, Prepared]]:
    return {}


def _ring_rates(machine: Prepared) -> RingRates:
    classes = sorted(machine.rules_of)
    return RingRates(
        machine.network,
        [classes.index(one) for one in machine.capabilities],
        [machine.rules_of[one] for one in classes],
        [machine.slow_rules_of[one] for one in classes],
        [machine.achieved.get(level, 1.0) / UNITS_PER_GB for level in range(MAX_LEVEL + 1)],
    )


def rated_sets(topology: Topology, rates: Rates | str) -> RatedSets:
    """Return the rated sets of a topology of one machine; errors are those of `prepared`."""
    kept, rated = topology.derived(_nothing_yet), ring_rates(topology, rates)
    found = kept.get(rated)
    if found is None:
        found = kept[rated] = RatedSets(prepared(topology, rates), rated)
    return found


def _nothing_yet(_: Topology) -> dict[RingRates, RatedSets]:
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
