"""Generators of random job lists: the mixes of the MAPA and SC'17 papers, and a Poisson process."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from topoplace import _checks
from topoplace.jobs.job_graph import JobGraph
from topoplace.jobs.performance_profile import PerformanceProfile
from topoplace.jobs.requirements import MAX_TASKS
from topoplace.text_formats.csv_rows import MAX_NUMBER
from topoplace_lab.simulate.workloads.job_columns import job_of

MAPA_NETWORKS: Final = {
    # Shortest and longest run time in seconds of each network in a job file of MAPA's artifact, and whether the paper
    # calls it bandwidth sensitive (Fig. 5b).
    "alexnet": (338, 410, True),
    "vgg16": (341, 415, True),
    "resnet-50": (458, 549, True),
    "inception-v3": (490, 593, True),
    "caffenet": (337, 410, False),
    "googlenet": (272, 328, False),
}
SC17_WEIGHTS: Final[Mapping[str, float]] = MappingProxyType({"1": 4.0, "4": 3.0, "64": 2.0, "128": 1.0})
"""The weight of a job graph's edges by batch size, from 4 for the smallest to 1 for the largest (SC'17, sec. 5.1)."""
_SC17_OF_CODE: Final = (("1", "4", "128", "64"), ("bvlc_alexnet", "bvlc_googlenet"))
_SC17_OF_PAPER: Final = (("1", "4", "64", "128"), ("bvlc_alexnet", "bvlc_alexnet", "bvlc_googlenet"))
"""Batch sizes and neural networks; a binomially distributed number selects one of each by its position."""
_MAX_JOBS: Final = 1 << 24


class Generated(NamedTuple):
    """Generated jobs as columns, which are the arguments of `Workload`."""

    jobs: list[JobGraph]
    submit_time: ArrayLike
    """Submission times in seconds."""
    base_time: ArrayLike
    """Run times at full speed in seconds."""


def mapa(num_jobs: int, seed: int, pattern: str) -> Generated:
    """Draw `num_jobs` jobs of the MAPA paper's mix, all submitted at time 0; see `Workload.mapa`.

    pattern: name of the communication pattern of every job, such as ring.
    """
    num_jobs = _num_jobs(num_jobs)
    random = seeded(seed)
    names = list(MAPA_NETWORKS)
    network = [names[int(i)] for i in random.integers(len(names), size=num_jobs)]
    gpus = random.integers(1, 6, size=num_jobs)
    times = [
        int(random.integers(low, high + 1)) for low, high, _ in (MAPA_NETWORKS[name] for name in network)
    ]
    _checks.text(pattern, "pattern", ValueError)
    jobs = [
        job_of(pattern, int(k), MAPA_NETWORKS[name][2], name) for k, name in zip(gpus, network, strict=True)
    ]
    return Generated(jobs, np.zeros(num_jobs), times)


def poisson(
    num_jobs: int, mean_gap: float, mean_time: float, sizes: Sequence[int], seed: int, pattern: str
) -> Generated:
    """Draw jobs with exponential gaps and run times, whose means are in seconds; see `Workload.poisson`."""
    num_jobs = _num_jobs(num_jobs)
    random = seeded(seed)
    submit = np.cumsum(random.exponential(_mean(mean_gap, "mean_gap"), num_jobs))
    times = random.exponential(_mean(mean_time, "mean_time"), num_jobs)
    choice = [
        _checks.integer(size, f"sizes[{i}]", ValueError, low=1, high=MAX_TASKS)
        for i, size in enumerate(_checks.sequence(sizes, "sizes", ValueError))
    ]
    if not choice:
        raise ValueError("sizes is empty")
    chosen = random.choice(np.array(choice, dtype=np.int64), num_jobs)
    sensitive = random.random(num_jobs) < 0.5
    _checks.text(pattern, "pattern", ValueError)
    jobs = [job_of(pattern, int(k), bool(s), None) for k, s in zip(chosen, sensitive, strict=True)]
    return Generated(jobs, submit, times)


def sc17(
    num_jobs: int,
    seed: int,
    mean_gap: float | None,
    profile: PerformanceProfile,
    *,
    paper: bool,
    weights: Mapping[str, float],
) -> Generated:
    """Draw jobs as the SC'17 paper (`paper`) or its published code does; see `Workload.sc17`."""
    num_jobs = _num_jobs(num_jobs)
    _checks.instance(profile, PerformanceProfile, "profile", ValueError)
    weights = checked_weights(weights)
    random = seeded(seed)
    gap = _mean((6.0 if paper else 10.0) if mean_gap is None else mean_gap, "mean_gap")
    gaps = random.exponential(gap, num_jobs) if paper else random.poisson(gap, num_jobs)
    sizes, models = _SC17_OF_PAPER if paper else _SC17_OF_CODE
    size = [sizes[int(i)] for i in random.binomial(3, 0.5 if paper else 0.1, num_jobs)]
    chance = 0.5 if paper else 0.2
    model = [models[int(i)] for i in random.binomial(len(models) - 1, chance, num_jobs)]
    gpus = 1 + random.binomial(2, 0.39, num_jobs)
    least = random.uniform(0.30, 0.52, num_jobs)
    jobs = [
        job_of("clique", int(k), True, f"{name}/{batch}", weights.get(batch, 1.0)).with_(
            min_utility=float(u), single_machine=True
        )
        for k, name, batch, u in zip(gpus, model, size, least, strict=True)
    ]
    return Generated(jobs, np.cumsum(gaps), [_ideal(profile, job) for job in jobs])


def _ideal(profile: PerformanceProfile, job: JobGraph) -> float:
    ideal = profile.ideal_time(job.profile or "", job.num_tasks)
    if ideal is None:
        raise ValueError(f"profile has no time of {job.profile} on {job.num_tasks} GPUs")
    return ideal


def checked_weights(weights: Mapping[str, float]) -> dict[str, float]:
    """Return the weights of job graph edges by batch size as a dictionary; raise ValueError unless all are positive."""
    _checks.instance(weights, Mapping, "weights", ValueError)
    return {
        size: _checks.positive(weight, f"weights[{_checks.shown(size)}]", ValueError)
        for size, weight in weights.items()
    }


def _mean(value: float, name: str) -> float:
    return _checks.real(value, name, ValueError, high=MAX_NUMBER)


def seeded(seed: int) -> np.random.Generator:
    """Return a random generator with this seed; raise ValueError unless the seed is an integer from 0 to 2**128."""
    return np.random.default_rng(_checks.integer(seed, "seed", ValueError, low=0, high=1 << 128))


def _num_jobs(value: int) -> int:
    return _checks.integer(value, "num_jobs", ValueError, low=0, high=_MAX_JOBS)
