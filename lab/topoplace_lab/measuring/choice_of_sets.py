"""Choose the sets of GPUs that say most in few runs of a benchmark: some of each size and path type."""

from __future__ import annotations

from collections.abc import Iterable

from topoplace import _checks
from topoplace.collective.bandwidth import DEFAULT_RATES, rings
from topoplace.collective.surveys import sets_of_size
from topoplace.topology.links.nccl_rates import PathType, Rates
from topoplace.topology.topology import Topology

_MOST_RATED = 1000


def sets_to_measure(
    topology: Topology,
    *,
    sizes: Iterable[int] | None = None,
    most: int = 3,
    rates: Rates | str = DEFAULT_RATES,
) -> list[tuple[int, ...]]:
    """Return up to `most` sets of GPUs for each size and path type: fast, slow and between, as planned.

    sizes: by default 2, 4, 8 and so on, and all GPUs. Sets without rings are left out. If a size has more than 1,000
    sets, 1,000 random ones are examined, always the same. ValueError names a wrong argument.
    """
    most = _checks.integer(most, "most", ValueError, low=1, high=_MOST_RATED)
    listed = _usual_sizes(topology.num_gpus) if sizes is None else _checks.ordered(sizes, "sizes", ValueError)
    chosen: list[tuple[int, ...]] = []
    for i, value in enumerate(listed):
        size = _checks.integer(value, f"sizes[{i}]", ValueError, low=2, high=topology.num_gpus)
        for found in _by_path_type(topology, size, rates):
            chosen += _spread(sorted(found, key=lambda one: (-one[0], one[1])), most)
    return list(dict.fromkeys(chosen))


def _usual_sizes(num_gpus: int) -> tuple[int, ...]:
    powers = [1 << i for i in range(1, num_gpus.bit_length()) if 1 << i < num_gpus]
    return (*powers, num_gpus) if num_gpus > 1 else ()


def _by_path_type(
    topology: Topology, size: int, rates: Rates | str
) -> Iterable[list[tuple[float, tuple[int, ...]]]]:
    """Return GB/s and GPUs of the sets of one size, a list for each path type, nearest first."""
    found: dict[str | None, list[tuple[float, tuple[int, ...]]]] = {name: [] for name in PathType.__members__}
    for gpus in sets_of_size(topology.num_gpus, size, _MOST_RATED):
        plan = rings(topology, gpus, rates=rates)
        if plan.path_type is not None:
            found[plan.path_type].append((plan.gb_per_s, gpus))
    return found.values()


def _spread(ranked: list[tuple[float, tuple[int, ...]]], most: int) -> list[tuple[int, ...]]:
    """Return the GPUs of `most` sets at equal distances, the first and the last among them."""
    count = min(most, len(ranked))
    steps = max(count - 1, 1)
    return [ranked[i * (len(ranked) - 1) // steps][1] for i in range(count)]
