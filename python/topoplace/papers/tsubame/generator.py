"""A year of TSUBAME 2.5's G queue: jobs like those of 2013, whose log is not public.

What the paper tells: 480 nodes of Table 2, jobs that ask for so much of each of their nodes (Table 1), and three means
that follow from its percentages and from Table 3: under the G queue a job waits 3,818 s, runs 15,148 s and lives
18,965 s. What it does not tell, and what we take:
- Users submit campaigns: up to some dozens of jobs within minutes that ask for the same and run about as long. How
  many campaigns begin in an hour depends on the time of the day, the day of the week, and a mood that lasts for days.
- Many jobs have the same number of nodes, the others less often the more they are, up to a most.
- Most jobs ask for so many CPUs and so much memory that no two of them fit on a node. The rest, which ask for a GPU, a
  few CPUs and some memory, are what an R queue can put beside each other, and beside some of the others.
- Run times are log-normal within a campaign and between them, up to a longest, and have the paper's mean.

The numbers in `Habits` were found by a search: drawn at random at first, then changed a few at a time, where that
brought the years of some seeds nearer to the paper in the mean wait under G, the changes of it under R on 480, 460 and
450 nodes, the mean execution time under R, and the share of jobs that wait longer there. It ran on a simulator of both
queues written for it alone, which gives a month of jobs the same waits as the policies do. The last of them, how much
begins at which hour, was set so that the year of seed 0 has the mean wait. Years differ by their worst weeks: those of
seeds 1 to 7 have 1,650 to 6,000 s, of which R takes 20 to 26 % on 480 nodes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from topoplace import _checks
from topoplace.papers.tsubame.machine import GB
from topoplace.simulate import Workload
from topoplace.simulate.workloads.generators import seeded
from topoplace.simulate.workloads.logged_jobs import estimated_transfers, job_from_nodes

HOURS: Final = 24
Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Habits:
    """What users of the queue do; shares are of campaigns."""

    jobs_per_day: float = 254.0
    mean_run_time: float = 15_148.0
    """Seconds, from the paper (959.65 / 5.06 % - 963.60 / 25.24 %)."""

    campaign: float = 1.8
    """Jobs of a campaign, roughly: they are Pareto distributed."""
    campaign_tail: float = 1.6
    largest_campaign: int = 30
    seconds_between: float = 10.0
    """Jobs of the same campaign, on average."""

    day_swing: float = 0.3
    """How much more than on average begins in the busiest hour of the day (15:00), and less in the quietest."""
    weekend: float = 0.75
    """What begins on a day of the weekend over what does on another."""
    mood: float = 0.35
    """Standard deviation of the logarithm of the rate, and ..."""
    mood_days: float = 1.5
    """... how long it lasts."""

    usual_nodes: int = 7
    usual_share: float = 0.85
    nodes: tuple[int, ...] = (1, 2, 3, 4, 6, 8, 10, 12, 16)
    nodes_exponent: float = 0.8
    """The share of each of `nodes` falls with this power of it."""

    modest: float = 0.05
    """Of those that leave much room on their nodes, of each of which they need one GPU."""
    all_cpus: float = 0.7
    """Of the others, who ask for all eight CPUs; the rest for six."""
    lending: float = 0.19
    """Of the others, who ask for one GPU of three only; `LENDING_TWO` ask for two."""

    spread: float = 1.25
    """Standard deviation of the logarithm of run times between campaigns ..."""
    spread_within: float = 0.6
    """... and within them."""
    longest: float = 4 * 86_400.0
    """Seconds."""


LENDING_TWO: Final = 0.1
MODEST_CPUS: Final = (1, 2, 4)
MODEST_GB: Final = (2, 4, 8, 10)
OTHER_GB: Final = (12, 16, 20, 22)


class Log(NamedTuple):
    """One row per job, in order of submission; GPUs, CPUs and memory (`machine.GB`) are of each node."""

    submit: Floats
    run_time: Floats
    nodes: Ints
    gpus: Ints
    cpus: Ints
    memory: Ints


def workload(seed: int = 0, days: int = 365, habits: Habits | None = None) -> Workload:
    """The jobs of so many days as a workload, with Table 1's estimated transfers.

    Users ask for a whole number of hours that is one to four times as long as the job runs.
    """
    log = generate(seed, days, habits)
    random = seeded(seed + 1)
    columns = zip(log.nodes.tolist(), log.gpus.tolist(), log.cpus.tolist(), log.memory.tolist(), strict=True)
    jobs = [job_from_nodes(nodes, gpus, cpus, memory * GB) for nodes, gpus, cpus, memory in columns]
    asked = np.ceil(log.run_time * random.uniform(1, 4, len(jobs)) / 3600) * 3600
    transfers = estimated_transfers(jobs, random)
    return Workload(jobs, log.submit, log.run_time, transfers=transfers, requested_time=asked)


def generate(seed: int = 0, days: int = 365, habits: Habits | None = None) -> Log:
    """The jobs of so many days."""
    habits = Habits() if habits is None else habits
    days = _checks.integer(days, "days", ValueError, low=1, high=36_500)
    num_jobs = round(habits.jobs_per_day * days)
    sizes, begins, requests, run_times, gaps = seeded(seed).spawn(5)  # so that one habit does not change all
    size = _campaigns(sizes, habits, num_jobs)
    campaign = np.repeat(np.arange(len(size)), size)
    begin = _begins(begins, habits, len(size), days)
    asked = _requests(requests, habits, len(size))
    run_time = _run_times(run_times, habits, campaign)
    since = np.cumsum(gaps.exponential(habits.seconds_between, num_jobs))
    first = np.cumsum(size) - size
    submit = np.floor(begin[campaign] + since - since[first][campaign])
    order = np.argsort(submit, kind="stable")
    row = campaign[order]
    return Log(submit[order], run_time[order], *(column[row] for column in asked))


def _campaigns(random: np.random.Generator, habits: Habits, num_jobs: int) -> Ints:
    """(k,) how many jobs each has; all together `num_jobs`."""
    tail = habits.campaign_tail
    drawn = (1 - random.random(num_jobs)) ** (-1 / tail) * habits.campaign * (tail - 1) / tail
    size = np.clip(np.floor(drawn + 0.5), 1, habits.largest_campaign).astype(np.int64)
    ends = np.cumsum(size)
    size = size[: int(np.searchsorted(ends, num_jobs)) + 1]
    size[-1] -= ends[len(size) - 1] - num_jobs
    return size


def _begins(random: np.random.Generator, habits: Habits, count: int, days: int) -> Floats:
    """(k,) the seconds at which campaigns begin, ascending."""
    hour = np.arange(days * HOURS)
    swing = 1 + habits.day_swing * np.sin((hour % HOURS - 9) / HOURS * 2 * np.pi)
    week = np.where(hour // HOURS % 7 >= 5, habits.weekend, 1.0)
    rate = swing * week * np.exp(habits.mood * _mood(random, len(hour), habits.mood_days * HOURS))
    so_far: Floats = np.concatenate([[0.0], np.cumsum(rate)])
    drawn: Floats = np.sort(random.random(count)) * so_far[-1]
    hours: Floats = np.interp(drawn, so_far, np.arange(len(hour) + 1))
    return 3600 * hours


def _mood(random: np.random.Generator, hours: int, lasts: float) -> Floats:
    """An autoregressive process of standard deviation 1."""
    keep = np.exp(-1 / lasts)
    mood = random.standard_normal(hours)
    for hour in range(1, hours):
        mood[hour] = keep * mood[hour - 1] + np.sqrt(1 - keep * keep) * mood[hour]
    return mood


def _requests(random: np.random.Generator, habits: Habits, count: int) -> tuple[Ints, Ints, Ints, Ints]:
    """Nodes, and GPUs, CPUs and GB of each, of every campaign."""
    nodes = np.array(habits.nodes)
    weight = nodes**-habits.nodes_exponent
    drawn = random.choice(nodes, count, p=weight / weight.sum())
    nodes = np.where(random.random(count) < habits.usual_share, habits.usual_nodes, drawn)
    modest = random.random(count) < habits.modest
    kind = random.random(count)
    many = np.where(kind < habits.lending, 1, np.where(kind < habits.lending + LENDING_TWO, 2, 3))
    cpus = np.where(random.random(count) < habits.all_cpus, 8, 6)
    return (
        nodes,
        np.where(modest, 1, many),
        np.where(modest, random.choice(MODEST_CPUS, count), cpus),
        np.where(modest, random.choice(MODEST_GB, count), random.choice(OTHER_GB, count)),
    )


def _run_times(random: np.random.Generator, habits: Habits, campaign: Ints) -> Floats:
    """(m,) whole seconds, whose mean is that of the habits but for rounding."""
    within: Floats = random.standard_normal(len(campaign))
    between: Floats = random.standard_normal(int(campaign[-1]) + 1)
    seconds: Floats = np.exp(habits.spread * between[campaign] + habits.spread_within * within)
    for _ in range(30):  # what the longest lose, all others gain
        seconds = np.minimum(seconds * (habits.mean_run_time / seconds.mean()), habits.longest)
    return np.maximum(np.round(seconds), 1.0)
