"""The bandwidths of all sets of GPUs of one size on a machine, which show whether the choice of GPUs matters."""

from __future__ import annotations

import math
import random
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import combinations, islice

from topoplace import _checks
from topoplace.collective.bandwidth import DEFAULT_RATES, host_is_assumed, ring_bandwidth
from topoplace.collective.rated_sets import TIE
from topoplace.topology.links.nccl_rates import Rates
from topoplace.topology.topology import Topology

_MOST_SETS = 20_000


@dataclass(frozen=True, slots=True)
class RatedSet:
    """A set of GPUs and its `ring_bandwidth`."""

    gpus: tuple[int, ...]
    gb_per_s: float


@dataclass(frozen=True, slots=True)
class Survey:
    """The `ring_bandwidth` of all sets of one size."""

    best: RatedSet
    median: RatedSet
    worst: RatedSet
    mean_gb_per_s: float
    num_sets: int
    """Number of sets that were rated."""
    all_sets: bool
    """False if there are too many sets, so that only random ones were rated."""
    assumed: bool
    """True if the topology does not state its PCIe switches and CPUs, which are then assumed."""

    @property
    def choice_matters(self) -> bool:
        """Return True if the best set carries over 10 % more than the worst."""
        return self.best.gb_per_s > (1 + TIE) * self.worst.gb_per_s


def survey(
    topology: Topology, size: int, *, rates: Rates | str = DEFAULT_RATES, most_sets: int = _MOST_SETS
) -> Survey:
    """Return the survey of all sets of `size` GPUs of one machine; of equal sets, the smallest GPU list is named.

    If there are more than `most_sets` sets, that number of random ones is rated, always the same ones.

    Raises:
        ValueError: The size is not in 2..number of GPUs.
        TopologyError: There are several machines, or more than 64 GPUs.
    """
    size = _checks.integer(size, "size", ValueError, low=2, high=topology.num_gpus)
    most_sets = _checks.integer(most_sets, "most_sets", ValueError, low=1, high=10_000_000)
    assumed = host_is_assumed(topology, rates=rates)  # refuses several machines
    rated = [
        RatedSet(gpus, ring_bandwidth(topology, gpus, rates=rates))
        for gpus in sets_of_size(topology.num_gpus, size, most_sets)
    ]
    rated.sort(key=lambda one: (-one.gb_per_s, one.gpus))
    worst = next(one for one in rated if one.gb_per_s == rated[-1].gb_per_s)
    median = next(one for one in rated if one.gb_per_s == rated[len(rated) // 2].gb_per_s)
    mean = math.fsum(one.gb_per_s for one in rated) / len(rated)
    all_sets = len(rated) == math.comb(topology.num_gpus, size)
    return Survey(rated[0], median, worst, mean, len(rated), all_sets, assumed)


def sets_of_size(num_gpus: int, size: int, most: int) -> Iterable[tuple[int, ...]]:
    """Return all sets of `size` GPUs; if there are more than `most`, that number of random ones, always the same."""
    if math.comb(num_gpus, size) > most:
        return _random_sets(num_gpus, size, most)
    return combinations(range(num_gpus), size)


def _random_sets(num_gpus: int, size: int, count: int) -> list[tuple[int, ...]]:
    draws = random.Random(0)

    def drawn() -> Iterator[tuple[int, ...]]:
        seen: set[tuple[int, ...]] = set()
        while True:
            gpus = tuple(sorted(draws.sample(range(num_gpus), size)))
            if gpus not in seen:
                seen.add(gpus)
                yield gpus

    return list(islice(drawn(), count))
