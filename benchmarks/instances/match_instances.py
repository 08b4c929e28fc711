"""Hard questions for the match kernel: large jobs on clusters of which a part is busy."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

import topoplace as tp

FAMILIES = ("dgx1-v100", "nvswitch", "mixed", "torus", "measured")
PATTERNS = ("ring", "clique", "mesh", "tree", "chain")
TASKS = (8, 16, 32)
GPUS = (32, 64, 128, 256)
BUSY = (0.3, 0.7)
_RACK, _BEYOND, _HOST = 6.0, 3.0, 12.0
"""GB/s between machines of one rack of four, beyond it, and between GPUs of a torus that no link joins."""


class Case(NamedTuple):
    family: str
    pattern: str
    tasks: int
    gpus: int
    busy: float

    def __str__(self) -> str:
        return f"{self.pattern}({self.tasks}) on {self.family} of {self.gpus} GPUs, {self.busy:.0%} busy"


def cases() -> Iterator[Case]:
    """Yield every case whose job fits on the free GPUs; jobs of at least half of these are the hardest."""
    for family in FAMILIES:
        for pattern in PATTERNS:
            for tasks in TASKS:
                for gpus in GPUS:
                    for busy in BUSY:
                        if tasks <= gpus - round(busy * gpus):
                            yield Case(family, pattern, tasks, gpus, busy)


def job(case: Case) -> tp.JobGraph:
    """Return the job of a case."""
    if case.pattern == "mesh":
        return tp.JobGraph.mesh({8: (2, 4), 16: (4, 4), 32: (4, 8)}[case.tasks])
    return {
        "ring": tp.JobGraph.ring,
        "clique": tp.JobGraph.clique,
        "tree": tp.JobGraph.tree,
        "chain": tp.JobGraph.chain,
    }[case.pattern](case.tasks)


def bandwidths(family: str, gpus: int) -> NDArray[np.float64]:
    """Return (n, n) the GB/s between all pairs of GPUs of a cluster of this family."""
    if family == "torus":
        return _torus(gpus)
    machines = {
        "nvswitch": ["dgx-a100"],
        "mixed": ["dgx1-p100", "dgx1-v100", "dgx-a100"],
    }.get(family, ["dgx1-v100"])
    count = gpus // 8
    rack = np.arange(count) // 4
    weights = np.kron(np.where(rack[:, None] == rack, _RACK, _BEYOND), np.ones((8, 8)))
    for machine in range(count):
        own = slice(8 * machine, 8 * machine + 8)
        weights[own, own] = tp.machines.get(machines[machine % len(machines)]).bandwidth_matrix()
    if family == "measured":
        noise = np.triu(1 + 0.03 * np.random.default_rng(gpus).uniform(-1, 1, weights.shape), 1)
        weights = weights * (noise + noise.T)
    np.fill_diagonal(weights, 0.0)
    return weights


def free_gpus(case: Case) -> list[int]:
    """Return the free GPUs of a case, drawn at random but the same every time."""
    rng = np.random.default_rng((case.gpus, round(100 * case.busy)))
    free: list[int] = np.sort(rng.permutation(case.gpus)[round(case.busy * case.gpus) :]).tolist()
    return free


def _torus(gpus: int) -> NDArray[np.float64]:
    rows = 1 << (gpus.bit_length() - 1) // 2
    columns = gpus // rows
    weights = np.full((gpus, gpus), _HOST)
    for row in range(rows):
        for column in range(columns):
            here = row * columns + column
            for there in (row * columns + (column + 1) % columns, (row + 1) % rows * columns + column):
                weights[here, there] = weights[there, here] = 50.0
    np.fill_diagonal(weights, 0.0)
    return weights
