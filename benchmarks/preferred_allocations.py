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
from topoplace.engine.machines.machine_class import mask_of
from topoplace_hosts.kubernetes.device_plugin import PreferredAllocation
from topoplace_lab.policies.nvidia_allocator import Scores

Gpus = tuple[int, ...]
Chooser = Callable[[Sequence[int], Sequence[int], int], Sequence[int]]

MACHINES = ("dgx1-v100", "dgx1-p100", "summit", "dgx-h100", "l40s-8")


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
        "go-gpuallocator's rules": by_published_rules(topology),
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


def by_published_rules(topology: tp.Topology) -> Chooser:
    """Return a chooser by the rules of the policy `nvidia-allocator`."""
    scores = topology.derived(Scores)
    return lambda free, required, size: scores.preferred(mask_of(free), size, mask_of(required))


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
