"""One decision of a local controller: 5 nodes, the 9 types of Filippini et al.'s table II, 10 to 50 queued jobs.

`python benchmarks/bench_capacity.py` prints, over ten seeds, CPU seconds for a plan proven to 5 % by column generation
and by the compact model that HiGHS alone solves (the peer, in the same process; three seeds of it with `--peers`), and
milliseconds of the native search and its distance from the bound.
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import pytest

from topoplace_lab.capacity import (
    TABLE_II,
    CapacityJob,
    CapacityPlanner,
    Plan,
    Planner,
    Problem,
    SearchPlanner,
    generate_jobs,
)

SIZES = (10, 30, 50)
SEEDS = range(10)
NODES = 5


class Decision(NamedTuple):
    plan: Plan
    seconds: float
    """CPU seconds."""


def problem(num_jobs: int, seed: int) -> Problem:
    """Return a problem in which all jobs wait, with due dates from now."""
    jobs = generate_jobs(num_jobs, NODES, seed)
    queued = [CapacityJob(job.job_id, job.due - job.submit, job.weight, job.hours) for job in jobs]
    return Problem.of(queued, TABLE_II, NODES)


def decide(planner: Planner, asked: Problem) -> Decision:
    started = time.process_time()
    plan = planner.plan(asked)
    return Decision(plan, time.process_time() - started)


def decisions(planner: Planner, num_jobs: int, seeds: Any = SEEDS) -> list[Decision]:
    return [decide(planner, problem(num_jobs, seed)) for seed in seeds]


def excess(found: list[Decision]) -> list[float]:
    """Return the cost of each plan above its bound in percent; the optimum is in between."""
    return [100 * (one.plan.cost.total / one.plan.bound - 1) for one in found]


def main() -> None:
    for num_jobs in SIZES:
        proven = decisions(CapacityPlanner(), num_jobs)
        closer = decisions(CapacityPlanner(gap=0.005, timeout=10), num_jobs, SEEDS[:3])
        search = decisions(SearchPlanner(), num_jobs)
        assert all(one.plan.status == "optimal" for one in proven)
        print(f"{num_jobs} jobs")
        print(f"  columns, 5 %: median {_median(proven):.4f} s, slowest {_slowest(proven):.4f} s")
        gaps = ", ".join(f"{one.plan.gap:.2%} in {one.seconds:.2f} s" for one in closer)
        print(f"  columns, 0.5 % or 10 s: {gaps}")
        over = excess(search)
        print(f"  search: {1e3 * _median(search):.1f} ms")
        print(f"  ... over its bound: median {statistics.median(over):.2f} %, most {max(over):.2f} %")
        if "--peers" in sys.argv:
            tight = decisions(CapacityPlanner("tight"), num_jobs, SEEDS[:3])
            print(f"  HiGHS alone, 5 %: median {_median(tight):.2f} s, slowest {_slowest(tight):.2f} s")


def _median(found: list[Decision]) -> float:
    return statistics.median(one.seconds for one in found)


def _slowest(found: list[Decision]) -> float:
    return max(one.seconds for one in found)


@pytest.mark.parametrize("num_jobs", SIZES)
@pytest.mark.parametrize("planner", [CapacityPlanner(), SearchPlanner()], ids=lambda planner: planner.name)
def test_decision(benchmark: Callable[..., Any], planner: Planner, num_jobs: int) -> None:
    asked = problem(num_jobs, 0)
    plan = benchmark(planner.plan, asked)
    assert len(plan.nodes) == NODES


if __name__ == "__main__":
    main()
