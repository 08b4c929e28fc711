"""The workloads of the suite. Every change here changes the measurements: raise the suite's version."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from types import MappingProxyType
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from topoplace.jobs.collectives import Collective
from topoplace.jobs.job_graph import JobGraph
from topoplace.jobs.parallel_traffic import Traffic
from topoplace.topology.topology import Topology
from topoplace_lab.simulate import Workload
from topoplace_lab.simulate.workloads.trace_readers import read_workload

_LOAD: Final = 1.1
_TURNOVERS: Final = 6
"""All jobs together ask for this many times the GPUs of the cluster."""
_MOST_GPUS: Final = 10_000
_JOBS: Final = range(100, 1_001)
_SPREAD: Final = 0.8
"""Standard deviation of the logarithm of run times."""
_SHARES: Final = {1.0: 0.6, 0.81: 0.15, 0.47: 0.12, 0.32: 0.08, 0.23: 0.05}
"""The shares of a GPU that tasks of openb request, with their frequencies."""
_TENSOR: Final = 8
_REPLICA: Final = 4
"""GPUs of a replica of an inference service."""


@dataclass(frozen=True)
class _Place:
    """Where jobs are to run: how they are asked for depends on it."""

    num_gpus: int
    per_machine: int
    domain: str | None
    """The innermost level whose domains are machines; None on a single machine."""

    @classmethod
    def of(cls, topology: Topology) -> _Place:
        levels = [level.name for level in topology.fabric.levels if not level.rail] if topology.fabric else []
        return cls(topology.num_gpus, topology.num_gpus // topology.num_machines, next(iter(levels), None))

    @property
    def largest(self) -> int:
        """Return the GPUs of the largest job: a quarter of all, or all eight of a machine."""
        return max(_TENSOR, self.num_gpus // 4)

    def in_pods(self, job: JobGraph, per_pod: int = 0) -> JobGraph:
        """Return a job as users of clusters ask for it: as pods, or on nodes.

        One that fits a machine is one pod, unless `per_pod` tells how many GPUs its pods have. A larger one has pods of
        whole machines, which prefer to be in one domain.
        """
        size = job.num_tasks
        if size == 1:
            return job
        if size <= self.per_machine and not per_pod:
            return job.with_(single_machine=True)
        most = per_pod or self.per_machine
        whole = max(count for count in range(1, most + 1) if size % count == 0)
        return job.grouped(whole, within="machine").with_(prefer=self.domain)


def _training(size: int) -> JobGraph:
    """Return data-parallel training, whose steps end with an all-reduce among all."""
    return JobGraph.allreduce(size).with_(bandwidth_sensitive=size > 1)


def _hybrid(size: int) -> JobGraph:
    """Return training of a Llama that is divided along three dimensions."""
    tensor = min(_TENSOR, size)
    pipeline = min(8, max(1, size // 32))
    return JobGraph.parallel(
        tensor=tensor,
        pipeline=pipeline,
        data=size // (tensor * pipeline),
        traffic=Traffic.of("llama3-70b" if size >= 32 else "llama3-8b", micro_batches=2 * pipeline),
    )


def _experts(size: int) -> JobGraph:
    """Return training of a Mixtral whose experts are divided among data ranks."""
    return JobGraph.parallel(data=size, expert=min(8, size), traffic=Traffic.of("mixtral-8x7b", zero_stage=1))


def _service(size: int) -> JobGraph:
    """Return replicas of an inference service, each of up to four GPUs that share the layers of a model."""
    width = min(_REPLICA, size)
    if width == 1:
        return JobGraph.independent(size)
    replicas = [tuple(range(start, start + width)) for start in range(0, size, width)]
    return JobGraph.from_collectives(
        size, [Collective("all_reduce", tasks, 1.0, "tensor") for tasks in replicas]
    )


class _Part(NamedTuple):
    """Jobs of one kind in a workload."""

    chance: float
    sizes: Mapping[int, float]
    """GPUs, with their chances."""
    job: Callable[[int], JobGraph]
    median_s: float
    shares: Mapping[float, float] = {1.0: 1.0}
    """Shares of a GPU that jobs of one task ask for, with their chances."""
    per_pod: int = 0
    """GPUs of a pod at most; 0 for those of a machine."""


class _Kind(NamedTuple):
    about: str
    parts: tuple[_Part, ...]


_GANGS: Final = {1: 0.6, 2: 0.15, 4: 0.1, 8: 0.07, 16: 0.04, 32: 0.02, 64: 0.01, 128: 0.01}
_PARALLEL: Final = {2: 0.1, 4: 0.15, 8: 0.25, 16: 0.2, 32: 0.15, 64: 0.1, 128: 0.05}
_KINDS: Final[Mapping[str, _Kind]] = MappingProxyType(
    {
        "philly": _Kind(
            "the sizes of Microsoft's Philly (2017): 96 % of the jobs have one GPU, and those of several run 30 times "
            "as long; all-reduce",
            (
                _Part(0.9575, {1: 1.0}, _training, 1_800),
                _Part(0.04, {2: 0.19, 4: 0.49, 8: 0.32}, _training, 58_000),
                _Part(0.0025, {16: 0.8, 32: 0.12, 64: 0.04, 128: 0.04}, _training, 20_000),
            ),
        ),
        "pai": _Kind(
            "gangs as in Alibaba's PAI (2020): nine of ten tasks belong to a gang, one of four to one of more than a "
            "hundred; half of the jobs do not communicate",
            (
                _Part(0.5, _GANGS, _training, 1_500),
                _Part(0.5, _GANGS, JobGraph.independent, 1_500),
            ),
        ),
        "openb": _Kind(
            "Alibaba's openb (2023): two of five jobs share a GPU, 1 % have 2 to 8",
            (
                _Part(0.99, {1: 1.0}, JobGraph.independent, 500, _SHARES),
                _Part(0.01, {2: 0.2, 4: 0.3, 8: 0.5}, _training, 1_000),
            ),
        ),
        "acme": _Kind(
            "language models as in Shanghai's Acme (2023): 93 % of the jobs evaluate, 3 % train in three dimensions "
            "and have nearly all of the GPU time",
            (
                _Part(0.929, {1: 0.6, 2: 0.2, 4: 0.2}, _service, 600, per_pod=_REPLICA),
                _Part(0.039, {8: 0.5, 16: 0.3, 32: 0.2}, _hybrid, 1_800),
                _Part(0.032, {64: 0.4, 128: 0.3, 256: 0.2, 512: 0.1}, _hybrid, 20_000),
            ),
        ),
        "parallel": _Kind(
            "training of today: in three dimensions, with experts, or data-parallel",
            (
                _Part(0.5, _PARALLEL, _hybrid, 5_000),
                _Part(0.2, _PARALLEL, _experts, 5_000),
                _Part(0.3, {4: 0.2, 8: 0.2, 16: 0.2, 32: 0.2, 64: 0.2}, _training, 5_000),
            ),
        ),
        "serving": _Kind(
            "inference services of several replicas, notebooks on a part of a GPU, and training",
            (
                _Part(0.4, {1: 0.2, 2: 0.2, 4: 0.3, 8: 0.2, 16: 0.1}, _service, 20_000, per_pod=_REPLICA),
                _Part(0.4, {1: 1.0}, JobGraph.independent, 5_000, {1.0: 0.3, 0.5: 0.4, 0.25: 0.3}),
                _Part(0.2, {4: 0.3, 8: 0.4, 16: 0.2, 32: 0.1}, _training, 3_000),
            ),
        ),
    }
)
NAMES: Final = tuple(_KINDS)
ABOUT: Final[Mapping[str, str]] = MappingProxyType({name: kind.about for name, kind in _KINDS.items()})
"""A description of each workload."""


def drawn(name: str, topology: Topology, seed: int, num_jobs: int | None = None) -> Workload:
    """Return the workload of this name for a machine or cluster.

    num_jobs: None takes as many jobs as ask for six times the cluster's GPUs, up to 10,000 GPUs, but 100 to 1,000 jobs.
    Jobs larger than both 8 GPUs and a quarter of the cluster are left out. Jobs arrive at random and ask for 110 % of
    all GPU time.
    """
    random = np.random.default_rng([NAMES.index(name), seed])
    place = _Place.of(topology)
    parts = [
        part._replace(sizes=fitting) for part in _KINDS[name].parts if (fitting := _fitting(part, place))
    ]
    count = num_jobs or _count(sum(part.chance * _mean(part.sizes) for part in parts), topology)
    numbers = random.choice(len(parts), count, p=_normal([part.chance for part in parts]))
    chosen = [parts[int(number)] for number in numbers]
    jobs = [_job(part, place, random) for part in chosen]
    times = np.array([part.median_s for part in chosen]) * np.exp(_SPREAD * random.standard_normal(count))
    return _loaded(jobs, np.zeros(count), times, topology, seed)


def of_trace(path: Path, topology: Topology) -> Workload:
    """Return a slice of a trace for a machine or cluster: as many jobs as `drawn` has, from its middle on.

    The trace gives submissions, run times, and each job's GPUs or share of one; jobs of several GPUs are data-parallel
    training. The gaps between submissions are stretched or shortened until the jobs ask for 110 % of all GPU time.
    ValueError if the file is no trace, or fewer than 100 jobs of the slice fit.
    """
    place = _Place.of(topology)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what the rows lack is not used
        try:
            trace = read_workload(path, skip_bad_rows=True)
        except ValueError as error:
            raise ValueError(f"{path}: {error}") from None
    fitting = [row for row in trace if row.job.gpu_share and row.job.num_tasks <= place.largest]
    rows = sorted(fitting, key=lambda row: row.submit_time)[len(fitting) // 2 :]
    mean = math.fsum(row.job.num_tasks for row in rows) / max(1, len(rows))
    rows = rows[: _count(max(1.0, mean), topology)]
    if len(rows) < _JOBS.start:
        raise ValueError(
            f"{path}: has {len(rows)} jobs that fit after its middle; at least {_JOBS.start} are needed"
        )
    jobs = [
        _built(_training, place, row.job.num_tasks, row.job.gpu_fraction if row.job.num_tasks == 1 else 1.0)
        for row in rows
    ]
    return _loaded(jobs, [row.submit_time for row in rows], [row.base_time for row in rows], topology, 0)


def _count(mean: float, topology: Topology) -> int:
    """Return how many jobs of a mean size there are."""
    wanted = round(min(_TURNOVERS * topology.num_gpus, _MOST_GPUS) / mean)
    return min(max(_JOBS.start, wanted), _JOBS.stop - 1)


def _loaded(
    jobs: Sequence[JobGraph], submitted: ArrayLike, times: ArrayLike, topology: Topology, seed: int
) -> Workload:
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "load = ")  # the last jobs end long after the last submission
        found = Workload(jobs, submitted, times)
        return found.with_load(_LOAD, topology.num_gpus, seed) if len(found) > 1 else found


def _fitting(part: _Part, place: _Place) -> dict[int, float]:
    return {size: chance for size, chance in part.sizes.items() if size <= place.largest}


def _mean(sizes: Mapping[int, float]) -> float:
    return sum(size * chance for size, chance in sizes.items()) / sum(sizes.values())


def _normal(chances: Sequence[float]) -> NDArray[np.float64]:
    return np.array(chances) / sum(chances)


def _job(part: _Part, place: _Place, random: np.random.Generator) -> JobGraph:
    size = int(random.choice(list(part.sizes), p=_normal(list(part.sizes.values()))))
    share = float(random.choice(list(part.shares), p=_normal(list(part.shares.values()))))
    return _built(part.job, place, size, share if size == 1 else 1.0, part.per_pod)


@lru_cache(maxsize=1000)
def _built(
    job: Callable[[int], JobGraph], place: _Place, size: int, share: float, per_pod: int = 0
) -> JobGraph:
    """Return one object for equal jobs, for which policies can cache results."""
    found = place.in_pods(job(size), per_pod)
    return found.with_(gpu_fraction=share) if share < 1 else found
