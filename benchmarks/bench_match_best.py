"""The best place for a job, proven: rings, cliques, stars and trees on idle machines, and the hard cases.

`python benchmarks/bench_match_best.py` prints the median CPU time of every case in microseconds, Python border
included, then the medians and the slowest of each group. `make bars` checks them against their limits.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterator
from functools import cache, partial
from typing import Any, NamedTuple

import pytest

import topoplace as tp
from bench_place import MACHINES as SIXTEEN
from bench_place import PATTERNS
from instances.match_instances import bandwidths
from timing import measure
from topoplace import kernels
from topoplace.objectives import EffectiveBandwidth, link_class

EIGHT = ("dgx1-p100", "dgx1-v100")


class Case(NamedTuple):
    machine: str
    pattern: str
    size: int
    objective: str

    def __str__(self) -> str:
        return f"{self.pattern}({self.size}) on {self.machine}, {self.objective}"


def grid() -> list[Case]:
    """Return every pattern of 2 to 16 GPUs on the idle 16-GPU machines, by AggBW and by effective bandwidth."""
    objectives = ("sum", "effective bandwidth")
    return [
        Case(machine, pattern, size, objective)
        for machine in SIXTEEN
        for pattern in PATTERNS
        for size in range(2, 17)
        for objective in objectives
    ]


def small_rings() -> list[Case]:
    """Return rings of up to 8 GPUs on the idle 8- and 16-GPU machines."""
    return [Case(machine, "ring", size, "sum") for machine in EIGHT + SIXTEEN for size in range(2, 9)]


HARD = (
    Case("torus2d-16 as in the artifact", "mesh 3x4", 12, "sum"),
    Case("16 x dgx1-v100", "ring", 12, "sum"),
)


def target_of(machine: str) -> kernels.Graph:
    """Return the machine's bandwidths as a kernel's graph."""
    if machine == "torus2d-16 as in the artifact":  # it lacks one link of the torus
        weights = tp.machines.get("torus2d-16").bandwidth_matrix().copy()
        weights[0, 4] = weights[4, 0] = 12.0
        return kernels.Graph(weights)
    if machine == "16 x dgx1-v100":
        return kernels.Graph(bandwidths("dgx1-v100", 128))
    return tp.machines.get(machine).graph


@cache
def effective_bandwidth(machine: str) -> kernels.LinkCountScore:
    """Return eq. 2 of MAPA as an objective on the machine's links, even beyond the sizes it was fitted on."""
    score = EffectiveBandwidth()
    return kernels.LinkCountScore(link_class(tp.machines.get(machine)), lambda c: score.predict(*c.T))


@cache
def arguments(case: Case) -> tuple[kernels.Graph, kernels.Graph, Any]:
    """Return pattern, target and objective after a first search, so that their caches are filled."""
    pattern = tp.JobGraph.mesh((3, 4)) if case.pattern == "mesh 3x4" else PATTERNS[case.pattern](case.size)
    objective: Any = "sum" if case.objective == "sum" else effective_bandwidth(case.machine)
    built = (pattern.graph, target_of(case.machine), objective)
    solve(built)
    return built


def solve(built: tuple[kernels.Graph, kernels.Graph, Any]) -> kernels.Embedding:
    """Return the proven best embedding; raise an error if it is not proven."""
    pattern, target, objective = built
    found = kernels.best_subgraph(pattern, target, objective=objective)
    assert found is not None
    assert found.optimal
    assert found.complete
    return found


def microseconds(case: Case) -> float:
    """Return the median CPU time of one call."""
    return measure.microseconds(partial(solve, arguments(case)))


@pytest.mark.parametrize("case", HARD, ids=str)
def test_hard(benchmark: Any, case: Case) -> None:
    benchmark(solve, arguments(case))


@pytest.mark.parametrize(
    "case", [c for c in grid() if c.size == 16 and c.pattern in ("ring", "tree")], ids=str
)
def test_sixteen(benchmark: Any, case: Case) -> None:
    benchmark(solve, arguments(case))


def groups() -> Iterator[tuple[str, list[Case]]]:
    yield "idle 16-GPU machines", grid()
    yield "small rings", small_rings()
    yield "hard", list(HARD)


def main() -> None:
    for name, cases in groups():
        times = []
        for case in cases:
            times.append(microseconds(case))
            print(f"{times[-1]:12.1f}  {case}", flush=True)
        print(
            f"{name}: {len(cases)} cases, median {statistics.median(times):.1f} us, most {max(times):.1f} us\n"
        )


if __name__ == "__main__":
    main()
