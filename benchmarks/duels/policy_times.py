"""Decisions of all policies on the same clusters, one after the other."""

from __future__ import annotations

import random
import time
from collections.abc import Sequence
from typing import NamedTuple

import topoplace as tp
from clusters.bench_decisions import RINGS, Load, policies
from timing.measure import Spread, group_means

SIZES = (16, 128, 1_024, 100_000)  # GPUs
COMPARED_WITH = "baseline"
DECISIONS, FIRST = 200, 50
FREE = 0.5


class Times(NamedTuple):
    """How long a policy decides on clusters of one size."""

    policy: str
    num_gpus: int
    microseconds: Spread
    """CPU time of a decision: the mean of each of ten groups of decisions."""
    ratio: Spread
    """The same over that of the policy `baseline`."""


def decision_times(num_gpus: int) -> list[Times]:
    """Let each policy decide about the same jobs on the same cluster; each in turn has its decision carried out."""
    load = Load(num_gpus // 8, free=FREE)
    asked = policies()
    seconds: dict[str, list[float]] = {policy.name: [] for policy in asked}
    draws = random.Random(2)
    for number in range(FIRST + DECISIONS):
        job = draws.choice(RINGS)
        for name, spent in decide(load, job, asked, number).items():
            if number >= FIRST:
                seconds[name].append(spent)
    means = {name: group_means(spent) for name, spent in seconds.items()}
    return [
        Times(
            name,
            num_gpus,
            Spread.of([1e6 * mean for mean in means[name]]),
            Spread.of([mine / base for mine, base in zip(means[name], means[COMPARED_WITH], strict=True)]),
        )
        for name in means
    ]


def decide(load: Load, job: tp.JobGraph, asked: Sequence[tp.Policy], number: int) -> dict[str, float]:
    """Return the CPU seconds of each policy's decision; the placement of one of them starts."""
    seconds = {}
    chosen: tp.Placement | None = None
    first = number % len(asked)  # the first one reads what has changed for those that share it
    for policy in (*asked[first:], *asked[:first]):
        before = time.thread_time()
        placement = policy.place(job, load.cluster)
        seconds[policy.name] = time.thread_time() - before
        if policy is asked[first] and isinstance(placement, tp.Placement):
            chosen = placement
    if chosen is not None:
        load.start(chosen)
    load.end_jobs()
    return seconds
