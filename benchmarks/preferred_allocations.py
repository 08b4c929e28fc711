"""The device plugin's choices next to those by go-gpuallocator's rules, and next to the best set.

`python benchmarks/preferred_allocations.py [QUESTIONS]` asks for GPUs of random free ones, of which some are required.
Sets are compared by `ring_bandwidth`: what NCCL plans for them.
"""

from __future__ import annotations

import random
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from itertools import combinations
from statistics import mean, median

import topoplace as tp
from topoplace.integrations.kubernetes.device_plugin import PreferredAllocation

Gpus = tuple[int, ...]
Chooser = Callable[[Sequence[int], Sequence[int], int], Sequence[int]]

MACHINES = ("dgx1-v100", "dgx1-p100", "summit", "dgx-h100", "l40s-8")
_NVLINK = 100
_PCIE = {tp.LinkKind.PCIE: 50, tp.LinkKind.HOST: 20, tp.LinkKind.SYSTEM: 10}


def pair_score(topology: tp.Topology, one: int, other: int) -> int:
    """Return go-gpuallocator's score of two GPUs: the nearest PCIe level they share, and 100 for each NVLink.

    It looks for GPUs at the other ends of NVLinks, so that links to an NVSwitch count nothing.
    """
    link = topology.link(one, other)
    near = topology.gpus[one].socket == topology.gpus[other].socket
    pcie = _PCIE.get(link.kind, _PCIE[tp.LinkKind.HOST if near else tp.LinkKind.SYSTEM])
    direct = link.kind.name.startswith("NVLINK")
    return pcie + (_NVLINK * link.lanes if direct else 0)


def divisions(gpus: Gpus, size: int) -> Iterator[list[Gpus]]:
    """Yield the ways to divide GPUs into sets of `size`; one set may be smaller."""
    if len(gpus) <= size:
        yield [gpus] if gpus else []
        return
    first, *others = gpus
    rest = len(gpus) % size
    for length in (size, rest) if rest else (size,):
        for some in combinations(others, length - 1):
            left = tuple(gpu for gpu in others if gpu not in some)
            yield from ([(first, *some), *more] for more in divisions(left, size))


class PublishedRules:
    """go-gpuallocator's best-effort policy: the best set of the best division of all free GPUs into equal sets."""

    def __init__(self, topology: tp.Topology) -> None:
        every = range(topology.num_gpus)
        self._score = {pair: pair_score(topology, *pair) for pair in combinations(every, 2)}

    def choose(self, free: Sequence[int], required: Sequence[int], size: int) -> Gpus:
        """Return the set it chooses."""
        best = max(
            (
                division
                for division in divisions(tuple(sorted(free)), size)
                if any(len(some) == size and set(required) <= set(some) for some in division)
            ),
            key=lambda division: sum(map(self._of_set, division)),
        )
        return max(
            (some for some in best if len(some) == size and set(required) <= set(some)), key=self._of_set
        )

    def _of_set(self, gpus: Gpus) -> int:
        return sum(self._score[pair] for pair in combinations(sorted(gpus), 2))


def questions(topology: tp.Topology, count: int) -> Iterator[tuple[list[int], list[int], int]]:
    """Yield random free GPUs, those that are required, and how many are wanted, at least two."""
    chance = random.Random(7)
    for _ in range(count):
        free = chance.sample(range(topology.num_gpus), chance.randint(3, topology.num_gpus))
        size = chance.randint(2, len(free) - 1)
        yield free, chance.sample(free, chance.choice((0, 0, 0, 1))), size


def compared(name: str, count: int) -> None:
    """Print a line for each way to choose."""
    topology = tp.machines.get(name)
    choosers: dict[str, Chooser] = {
        "go-gpuallocator's rules": PublishedRules(topology).choose,
        "mapa-preserve": in_numbers(PreferredAllocation(topology, "mapa-preserve")),
        "least-time": in_numbers(PreferredAllocation(topology)),
    }
    asked = list(questions(topology, count))
    best = [
        max(carried(topology, some) for some in combinations(free, size) if set(required) <= set(some))
        for free, required, size in asked
    ]
    for label, choose in choosers.items():
        shares: list[float] = []
        times: list[float] = []
        for question, most in zip(asked, best, strict=True):
            began = time.perf_counter()
            chosen = choose(*question)
            times.append(time.perf_counter() - began)
            shares.append(carried(topology, chosen) / most)
        hits = mean(share > 0.9 for share in shares)
        print(
            f"{name:10} {label:24} best in {hits:6.1%}, of the best bandwidth: mean {mean(shares):6.1%},"
            f" least {min(shares):4.0%}; {1e3 * median(times):.2f} ms",
            flush=True,
        )


def in_numbers(preferred: PreferredAllocation) -> Chooser:
    """Return a chooser of GPUs by number."""

    def choose(free: Sequence[int], required: Sequence[int], size: int) -> Sequence[int]:
        chosen = preferred.choose([str(gpu) for gpu in free], [str(gpu) for gpu in required], size)
        return [int(one) for one in chosen]

    return choose


def carried(topology: tp.Topology, gpus: Sequence[int]) -> float:
    """Return what NCCL's rings carry, GB/s."""
    return tp.collective.ring_bandwidth(topology, gpus)


if __name__ == "__main__":
    for machine in MACHINES:
        compared(machine, int(sys.argv[1]) if len(sys.argv) > 1 else 1000)
