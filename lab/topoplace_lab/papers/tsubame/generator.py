"""Generator of a job log like that of TSUBAME 2.5's GPU queue (G queue) in 2013, which is not public.

The paper states 480 nodes as in Table 2, and jobs with equal requests on each of their nodes (Table 1). Three means
under the G queue follow from its percentages and Table 3. A job waits 3,818 s, runs 15,148 s, and takes 18,965 s from
submission to end (its life). Our assumptions where the paper is silent:
- Users submit campaigns: up to some dozens of jobs within minutes, with equal requests and similar run times. The rate
  of campaigns depends on the hour of the day, the day of the week, and a random factor that changes over days.
- Most jobs have the same number of nodes; the other numbers, up to a limit, are rarer the larger they are.
- No two of most jobs fit on one node, because of the CPUs and memory they request. The others request a GPU, a few
  CPUs and some memory. The R queue can place them next to each other and next to some of the large jobs.
- Run times are log-normal within campaigns and between them, up to a limit, and have the paper's mean.

A random search found the numbers in `Habits`. It changed a few at a time and kept changes that brought the generated
years of some seeds nearer to the paper. It compared the mean wait without remote GPUs (G queue), and its change by
remote GPUs (R queue) on 480, 460 and 450 nodes. It also compared the mean execution time under R, and the fraction of
jobs that wait longer under R. It used a separate simulator of both queues, which gives a month of jobs the same waits
as the policies. Finally, `day_swing` was set such that the year of seed 0 has the paper's mean wait. Years
differ by their worst weeks: seeds 1 to 7 give mean waits of 1,650 to 6,000 s. R reduces these by 20 to 26 % on 480
nodes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from topoplace import _checks
from topoplace_lab.papers.tsubame.machine import GB
from topoplace_lab.simulate import Workload
from topoplace_lab.simulate.workloads.generators import seeded
from topoplace_lab.simulate.workloads.logged_jobs import estimated_transfers, job_from_nodes

HOURS: Final = 24
Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Habits:
    """Parameters of the generated log: how many jobs users submit, when, of which sizes and run times.

    A campaign is a burst of equal jobs. Shares are fractions of all campaigns unless stated otherwise.
    """

    jobs_per_day: float = 254.0
    mean_run_time: float = 15_148.0
    """Seconds, from the paper (959.65 / 5.06 % - 963.60 / 25.24 %)."""

    campaign: float = 1.8
    """Approximate mean number of jobs per campaign; the number is Pareto distributed with exponent `campaign_tail`."""
    campaign_tail: float = 1.6
    largest_campaign: int = 30
    seconds_between: float = 10.0
    """Mean time between jobs of a campaign."""

    day_swing: float = 0.3
    """Daily variation of the rate of campaigns: above the mean by this fraction at 15:00, and below it at 3:00."""
    weekend: float = 0.75
    """Campaigns on a day of the weekend, as a fraction of those on a working day."""
    mood: float = 0.35
    """Standard deviation of the logarithm of the random factor on the rate of campaigns."""
    mood_days: float = 1.5
    """Correlation time of this random factor, in days."""

    usual_nodes: int = 7
    usual_share: float = 0.85
    nodes: tuple[int, ...] = (1, 2, 3, 4, 6, 8, 10, 12, 16)
    nodes_exponent: float = 0.8
    """Campaigns that do not use `usual_nodes` draw n from `nodes` with probability proportional to 1 / n**this."""

    modest: float = 0.05
    """Share of modest campaigns: their jobs need one GPU per node, and few CPUs and little memory."""
    all_cpus: float = 0.7
    """Share of campaigns, among those not modest, that ask for all eight CPUs of a node; the rest ask for six."""
    lending: float = 0.19
    """Share of campaigns, among those not modest, that ask for one of a node's three GPUs; `LENDING_TWO`: for two."""

    spread: float = 1.25
    """Standard deviation of the logarithm of run times between campaigns."""
    spread_within: float = 0.6
    """Standard deviation of the logarithm of run times within campaigns."""
    longest: float = 4 * 86_400.0
    """Longest run time in seconds."""


LENDING_TWO: Final = 0.1
MODEST_CPUS: Final = (1, 2, 4)
MODEST_GB: Final = (2, 4, 8, 10)
OTHER_GB: Final = (12, 16, 20, 22)


class Log(NamedTuple):
    """The generated jobs as columns, in order of submission.

    submit, run_time: seconds. nodes: machines of the job. gpus, cpus, memory: what it needs on each of them; memory in
    units of `machine.GB`.
    """

    submit: Floats
    run_time: Floats
    nodes: Ints
    gpus: Ints
    cpus: Ints
    memory: Ints


def workload(seed: int = 0, days: int = 365, habits: Habits | None = None) -> Workload:
    """Return generated jobs of `days` days as a workload, with the estimated data transfers of the paper's Table 1.

    The requested time limits are one to four times the run time, rounded up to whole hours.
    """
    log = generate(seed, days, habits)
    random = seeded(seed + 1)
    columns = zip(log.nodes.tolist(), log.gpus.tolist(), log.cpus.tolist(), log.memory.tolist(), strict=True)
    jobs = [job_from_nodes(nodes, gpus, cpus, memory * GB) for nodes, gpus, cpus, memory in columns]
    asked = np.ceil(log.run_time * random.uniform(1, 4, len(jobs)) / 3600) * 3600
    transfers = estimated_transfers(jobs, random)
    return Workload(jobs, log.submit, log.run_time, transfers=transfers, requested_time=asked)


def generate(seed: int = 0, days: int = 365, habits: Habits | None = None) -> Log:
    """Return generated jobs of `days` days as columns, sorted by submission."""
    habits = Habits() if habits is None else habits
    days = _checks.integer(days, "days", ValueError, low=1, high=36_500)
    num_jobs = round(habits.jobs_per_day * days)
    sizes, begins, requests, run_times, gaps = seeded(seed).spawn(
        5
    )  # separate streams: a habit changes only its own
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
    """Draw the number of jobs of each campaign (burst of equal jobs); they add up to `num_jobs`."""
    tail = habits.campaign_tail
    drawn = (1 - random.random(num_jobs)) ** (-1 / tail) * habits.campaign * (tail - 1) / tail
    size = np.clip(np.floor(drawn + 0.5), 1, habits.largest_campaign).astype(np.int64)
    ends = np.cumsum(size)
    size = size[: int(np.searchsorted(ends, num_jobs)) + 1]
    size[-1] -= ends[len(size) - 1] - num_jobs
    return size


def _begins(random: np.random.Generator, habits: Habits, count: int, days: int) -> Floats:
    """Draw the start time of each of `count` campaigns (bursts of equal jobs), in seconds, ascending."""
    hour = np.arange(days * HOURS)
    swing = 1 + habits.day_swing * np.sin((hour % HOURS - 9) / HOURS * 2 * np.pi)
    week = np.where(hour // HOURS % 7 >= 5, habits.weekend, 1.0)
    rate = swing * week * np.exp(habits.mood * _mood(random, len(hour), habits.mood_days * HOURS))
    so_far: Floats = np.concatenate([[0.0], np.cumsum(rate)])
    drawn: Floats = np.sort(random.random(count)) * so_far[-1]
    hours: Floats = np.interp(drawn, so_far, np.arange(len(hour) + 1))
    return 3600 * hours


def _mood(random: np.random.Generator, hours: int, lasts: float) -> Floats:
    """Return a random series with one value per hour, standard deviation 1, and correlation time `lasts` in hours.

    It is a first-order autoregressive process.
    """
    keep = np.exp(-1 / lasts)
    mood = random.standard_normal(hours)
    for hour in range(1, hours):
        mood[hour] = keep * mood[hour - 1] + np.sqrt(1 - keep * keep) * mood[hour]
    return mood


def _requests(random: np.random.Generator, habits: Habits, count: int) -> tuple[Ints, Ints, Ints, Ints]:
    """Draw the request of each of `count` campaigns: (nodes, GPUs per node, CPUs per node, GB per node)."""
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
    """Draw the run time of each job in whole seconds; their mean is `habits.mean_run_time` up to rounding.

    campaign: each job's campaign (burst of equal jobs), whose jobs have similar run times.
    """
    within: Floats = random.standard_normal(len(campaign))
    between: Floats = random.standard_normal(int(campaign[-1]) + 1)
    seconds: Floats = np.exp(habits.spread * between[campaign] + habits.spread_within * within)
    for _ in range(30):  # the time cut from the longest goes to all others
        seconds = np.minimum(seconds * (habits.mean_run_time / seconds.mean()), habits.longest)
    return np.maximum(np.round(seconds), 1.0)
