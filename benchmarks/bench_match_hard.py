"""Large jobs on clusters of which a part is busy: how many of the best places are proven, and how soon.

`python benchmarks/bench_match_hard.py [SECONDS] [STEP]` asks every STEP-th of the cases of `match_instances` with that
limit, for the sum and the bottleneck, and prints for each family how many are proven, how many have no answer, the gap
between score and bound of the others, and how many are proven to be within 3 % of the best when that is enough. Then
come rings on partly busy clusters of DGX-1V, all proven.
"""

from __future__ import annotations

import statistics
import sys
import time
from collections import defaultdict
from functools import cache
from typing import Any, Literal, NamedTuple

import numpy as np
import pytest

import topoplace as tp
from instances.match_instances import Case, bandwidths, cases, free_gpus, job
from topoplace import kernels
from topoplace.errors import SearchTimeoutError

Goal = Literal["sum", "bottleneck"]
RINGS = ((12, 128, 80), (8, 256, 179))
"""Tasks, GPUs, and how many of these are free."""
TOLERANCE = 0.03


class Answer(NamedTuple):
    proven: bool
    gap: float | None
    """Share by which the bound is above the score; None without an answer."""
    within: bool
    """True if it is proven to be within `TOLERANCE` of the best when that is asked for."""


@cache
def target(family: str, gpus: int) -> kernels.Graph:
    return kernels.Graph(bandwidths(family, gpus))


def ask(case: Case, goal: Goal, seconds: float) -> Answer:
    weights = target(case.family, case.gpus)

    def best(tolerance: float) -> kernels.Embedding | None:
        return kernels.best_subgraph(
            job(case).graph,
            weights,
            objective=goal,
            free=free_gpus(case),
            timeout=seconds,
            tolerance=tolerance,
        )

    try:
        found, rough = best(0.0), best(TOLERANCE)
    except SearchTimeoutError:
        return Answer(proven=False, gap=None, within=False)
    assert found is not None
    assert rough is not None
    return Answer(found.optimal, found.within, rough.within <= TOLERANCE)


def seconds_of_ring(tasks: int, gpus: int, free: int, seed: int) -> float:
    """Return the CPU seconds in which the best ring on random free GPUs is proven."""
    among = np.sort(np.random.default_rng(seed).permutation(gpus)[:free]).tolist()
    pattern, weights = tp.JobGraph.ring(tasks).graph, target("dgx1-v100", gpus)
    started = time.thread_time()
    found = kernels.best_subgraph(pattern, weights, free=among)
    assert found is not None
    assert found.complete
    return time.thread_time() - started


@pytest.mark.parametrize("ring", RINGS, ids=str)
def test_rings(benchmark: Any, ring: tuple[int, int, int]) -> None:
    benchmark(seconds_of_ring, *ring, seed=0)


def main() -> None:
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 0.1
    step = int(sys.argv[2]) if len(sys.argv) > 2 else 1
    goals: tuple[Goal, ...] = ("sum", "bottleneck")
    for goal in goals:
        answers = defaultdict[str, list[Answer]](list)
        for case in list(cases())[::step]:
            answer = ask(case, goal, seconds)
            for group in (case.family, "all"):
                answers[group].append(answer)
        for group, its in answers.items():
            proven = sum(answer.proven for answer in its) / len(its)
            within = sum(answer.within for answer in its) / len(its)
            gaps = [answer.gap for answer in its if not answer.proven and answer.gap is not None]
            most = f"{statistics.median(gaps):.1%}, at most {max(gaps):.1%}" if gaps else "none"
            none = sum(answer.gap is None for answer in its)
            print(
                f"{goal:10} {group:10} {len(its):4} cases: {proven:.0%} proven in {seconds} s, "
                f"{none} without answer; gap of the others: {most}; {within:.0%} within {TOLERANCE:.0%}",
                flush=True,
            )
    for ring in RINGS:
        times = [1e3 * seconds_of_ring(*ring, seed) for seed in range(20)]
        print(
            f"ring of {ring[0]} on {ring[2]} of {ring[1]} GPUs, proven: mean {statistics.mean(times):.1f} ms, "
            f"at most {max(times):.1f} ms",
            flush=True,
        )


if __name__ == "__main__":
    main()
