"""One answer of the page of `topoplace explore`: all choices and the drawing, as JSON, for random GPUs in use.

`python benchmarks/bench_explore.py` prints, for 40 states of each case, the median and the 95th percentile in
milliseconds, and the median of what the policies take of it.
"""

from __future__ import annotations

import itertools
import json
import random
import statistics
import time
from typing import Any, NamedTuple

import pytest

from topoplace.cli.explorer.answer import answer
from topoplace.cli.explorer.state import State

NUM_STATES = 40


class Case(NamedTuple):
    machine: str
    machines: int
    size: int
    num_gpus: int

    def __str__(self) -> str:
        return f"ring({self.size}) on {self.machines} x {self.machine}"


CASES = (
    Case("cubemesh-16", 1, 4, 16),
    Case("torus2d-16", 1, 4, 16),
    Case("dgx-h100", 125, 16, 1000),
    Case("dgx1-v100", 125, 4, 1000),
)


def states(case: Case) -> list[State]:
    """Return states with up to 60 % of the GPUs in use at random."""
    rng = random.Random(7)
    found: list[State] = []
    for _ in range(NUM_STATES):
        busy = rng.sample(range(case.num_gpus), int(0.6 * rng.random() * case.num_gpus))
        held = ",".join(map(str, busy))
        found.append(
            State(machine=case.machine, count=case.machines, gpus=str(case.size), busy=held, part="choices")
        )
    return found


@pytest.mark.parametrize("case", CASES, ids=str)
def test_answer(benchmark: Any, case: Case) -> None:
    waiting = itertools.cycle(states(case))
    found = benchmark(lambda: json.dumps(answer(next(waiting))))
    assert '"gpus"' in found


def main() -> None:
    """Print the milliseconds of each case."""
    for case in CASES:
        answer(State(machine=case.machine, count=case.machines, gpus=str(case.size)))  # what is made once
        passed_ms: list[float] = []
        decided_ms: list[float] = []
        for state in states(case):
            begin = time.perf_counter()
            found = answer(state)
            json.dumps(found)
            passed_ms.append(1e3 * (time.perf_counter() - begin))
            decided_ms.append(1e-3 * sum(row["microseconds"] for row in found["rows"]))
        high = statistics.quantiles(passed_ms, n=20)[-1]
        figures = f"median {statistics.median(passed_ms):.1f}, 95 % within {high:.1f}"
        print(f"{case}: {figures} ms; policies {statistics.median(decided_ms):.1f} ms")


if __name__ == "__main__":
    main()
