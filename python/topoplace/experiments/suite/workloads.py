"""The workloads of the suite. Whatever changes here changes what the suite measures: raise its version."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from types import MappingProxyType
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from topoplace.experiments.simulate import Workload
from topoplace.jobs.collectives import Collective
from topoplace.jobs.job_graph import JobGraph
from topoplace.jobs.traffic import Traffic
from topoplace.topology.topology import Topology

_LOAD: Final = 1.1
_TURNOVERS: Final = 6
"""So many times as many GPUs as there are, all jobs together ask for."""
_MOST_GPUS: Final = 12_000
_JOBS: Final = range(100, 1_501)
_SPREAD: Final = 0.8
"""Standard deviation of the logarithm of run times."""
_SHARES: Final = {1.0: 0.6, 0.81: 0.15, 0.47: 0.12, 0.32: 0.08, 0.23: 0.05}
"""The shares of a GPU that tasks of openb ask for, and how often."""
_TENSOR: Final = 8


@dataclass(frozen=True)
class _Place:
    """Where jobs are to run: what they may ask for depends on it."""

    num_gpus: int
    nearest: str
    """The level inside which tasks that share layers must be."""
    domain: str | None
    """The innermost level whose domains are machines; None on a single machine."""

    @classmethod
    def of(cls, topology: Topology) -> _Place:
        levels = [level.name for level in topology.fabric.levels if not level.rail] if topology.fabric else []
        nearest = "nvlink_domain" if "nvlink_domain" in levels else "machine"
        return cls(topology.num_gpus, nearest, next(iter(levels), None))

    @property
    def largest(self) -> int:
        """Return the GPUs of the largest job: a quarter of all, or all eight of a machine."""
        return max(_TENSOR, self.num_gpus // 4)


def _training(size: int, place: _Place) -> JobGraph:
    """Return data-parallel training, whose steps end with an all-reduce among all."""
    return JobGraph.allreduce(size).with_(bandwidth_sensitive=size > 1)


def _whole_domain(size: int, place: _Place) -> JobGraph:
    """Return the same, in one domain of the network."""
    job = _training(size, place)
    return job.with_(within=place.domain) if place.domain and size > 1 else job


def _batch(size: int, place: _Place) -> JobGraph:
    """Return tasks that start together and do not communicate."""
    return JobGraph.independent(size)


def _hybrid(size: int, place: _Place) -> JobGraph:
    """Return training of a Llama that is divided along three dimensions; tasks that share layers must be near."""
    tensor = min(_TENSOR, size)
    pipeline = min(8, max(1, size // 32))
    model = "llama3-70b" if size >= 32 else "llama3-8b"
    job = JobGraph.parallel(
        tensor=tensor,
        pipeline=pipeline,
        data=size // (tensor * pipeline),
        traffic=Traffic.of(model, micro_batches=2 * pipeline),
    )
    return job.grouped("tensor", within=place.nearest) if tensor > 1 else job


def _experts(size: int, place: _Place) -> JobGraph:
    """Return training of a Mixtral whose experts are divided among data ranks."""
    return JobGraph.parallel(data=size, expert=min(8, size), traffic=Traffic.of("mixtral-8x7b", zero_stage=1))


def _service(size: int, place: _Place) -> JobGraph:
    """Return replicas of an inference service, each of up to four GPUs that share the layers of a model."""
    width = min(4, size)
    if width == 1:
        return JobGraph.independent(size)
    replicas = [tuple(range(start, start + width)) for start in range(0, size, width)]
    job = JobGraph.from_collectives(
        size, [Collective("all_reduce", tasks, 1.0, "tensor") for tasks in replicas]
    )
    return job.grouped(width, within=place.nearest)


class _Part(NamedTuple):
    """Jobs of one kind in a workload."""

    chance: float
    sizes: Mapping[int, float]
    """GPUs, with their chances."""
    job: Callable[[int, _Place], JobGraph]
    median_s: float
    shares: Mapping[float, float] = {1.0: 1.0}
    """Shares of a GPU that jobs of one task ask for, with their chances."""


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
                _Part(0.5, _GANGS, _batch, 1_500),
            ),
        ),
        "openb": _Kind(
            "Alibaba's openb (2023): two of five jobs share a GPU, 1 % have 2 to 8",
            (
                _Part(0.99, {1: 1.0}, _batch, 500, _SHARES),
                _Part(0.01, {2: 0.2, 4: 0.3, 8: 0.5}, _training, 1_000),
            ),
        ),
        "acme": _Kind(
            "language models as in Shanghai's Acme (2023): 93 % of the jobs evaluate, 3 % train in three dimensions "
            "and have nearly all of the GPU time",
            (
                _Part(0.929, {1: 0.6, 2: 0.2, 4: 0.2}, _service, 600),
                _Part(0.039, {8: 0.5, 16: 0.3, 32: 0.2}, _hybrid, 1_800),
                _Part(0.032, {64: 0.4, 128: 0.3, 256: 0.2, 512: 0.1}, _hybrid, 20_000),
            ),
        ),
        "parallel": _Kind(
            "training of today: in three dimensions with groups that must be near, with experts, or in one domain of "
            "the network",
            (
                _Part(0.5, _PARALLEL, _hybrid, 5_000),
                _Part(0.2, _PARALLEL, _experts, 5_000),
                _Part(0.3, {4: 0.2, 8: 0.2, 16: 0.2, 32: 0.2, 64: 0.2}, _whole_domain, 5_000),
            ),
        ),
        "serving": _Kind(
            "inference services whose replicas must each be near, notebooks on a part of a GPU, and training",
            (
                _Part(0.4, {1: 0.2, 2: 0.2, 4: 0.3, 8: 0.2, 16: 0.1}, _service, 20_000),
                _Part(0.4, {1: 1.0}, _batch, 5_000, {1.0: 0.3, 0.5: 0.4, 0.25: 0.3}),
                _Part(0.2, {4: 0.3, 8: 0.4, 16: 0.2, 32: 0.1}, _training, 3_000),
            ),
        ),
    }
)
NAMES: Final = tuple(_KINDS)
ABOUT: Final[Mapping[str, str]] = MappingProxyType({name: kind.about for name, kind in _KINDS.items()})
"""What each workload is, in words."""


def drawn(name: str, topology: Topology, seed: int, num_jobs: int | None = None) -> Workload:
    """Return the workload of this name for a machine or cluster.

    Unless `num_jobs` says how many they are, its jobs ask for six times as many GPUs as there are, at most 12,000, but
    are 100 to 1,500. Jobs larger than a
    quarter of the cluster, and than 8 GPUs, are left out. Jobs arrive at random and ask for 110 % of all GPU time.
    """
    random = np.random.default_rng([NAMES.index(name), seed])
    place = _Place.of(topology)
    parts = [
        part._replace(sizes=fitting) for part in _KINDS[name].parts if (fitting := _fitting(part, place))
    ]
    mean = sum(part.chance * _mean(part.sizes) for part in parts)
    wanted = round(min(_TURNOVERS * topology.num_gpus, _MOST_GPUS) / mean)
    count = num_jobs or min(max(_JOBS.start, wanted), _JOBS.stop - 1)
    numbers = random.choice(len(parts), count, p=_normal([part.chance for part in parts]))
    chosen = [parts[int(number)] for number in numbers]
    jobs = [_job(part, place, random) for part in chosen]
    times = np.array([part.median_s for part in chosen]) * np.exp(_SPREAD * random.standard_normal(count))
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "load = ")  # the last jobs end long after the last submission
        found = Workload(jobs, np.zeros(count), times)
        return found.with_load(_LOAD, topology.num_gpus, seed) if count > 1 else found


def _fitting(part: _Part, place: _Place) -> dict[int, float]:
    return {size: chance for size, chance in part.sizes.items() if size <= place.largest}


def _mean(sizes: Mapping[int, float]) -> float:
    return sum(size * chance for size, chance in sizes.items()) / sum(sizes.values())


def _normal(chances: Sequence[float]) -> NDArray[np.float64]:
    return np.array(chances) / sum(chances)


def _job(part: _Part, place: _Place, random: np.random.Generator) -> JobGraph:
    size = int(random.choice(list(part.sizes), p=_normal(list(part.sizes.values()))))
    share = float(random.choice(list(part.shares), p=_normal(list(part.shares.values()))))
    return _built(part.job, size, share if size == 1 else 1.0, place)


@lru_cache(maxsize=1000)
def _built(job: Callable[[int, _Place], JobGraph], size: int, share: float, place: _Place) -> JobGraph:
    """Return one object for equal jobs, for which policies can cache results."""
    found = job(size, place)
    return found.with_(gpu_fraction=share) if share < 1 else found
