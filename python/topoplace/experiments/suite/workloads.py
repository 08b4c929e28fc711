"""The workloads of the suite. Whatever changes here changes what the suite measures: raise its version."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Final, NamedTuple

import numpy as np

from topoplace.experiments.simulate import Workload
from topoplace.experiments.simulate.workloads.job_columns import job_of
from topoplace.jobs.job_graph import JobGraph

_LOAD: Final = 0.9
_JOBS_PER_GPU: Final = 3
_LEAST_JOBS: Final = 100


class _Kind(NamedTuple):
    """Jobs of a workload: sizes with their chances, pattern, chance to be sensitive, and how run times spread.

    spread: standard deviation of the logarithm of run times. load: None if all are submitted at once.
    """

    about: str
    sizes: Mapping[int, float]
    pattern: str = "ring"
    sensitive: float = 0.5
    spread: float = 0.5
    load: float | None = _LOAD
    fractions: Sequence[float] = (1.0,)


_UP_TO_5: Final = dict.fromkeys(range(1, 6), 0.2)
_KINDS: Final[Mapping[str, _Kind]] = MappingProxyType(
    {
        "mapa": _Kind(
            "MAPA's mix: rings of 1 to 5 GPUs, two thirds sensitive", _UP_TO_5, sensitive=2 / 3, spread=0.2
        ),
        "batch": _Kind("the same, all submitted at once", _UP_TO_5, sensitive=2 / 3, spread=0.2, load=None),
        "insensitive": _Kind(
            "1 to 8 GPUs, no job minds its links", {1: 0.4, 2: 0.3, 4: 0.2, 8: 0.1}, sensitive=0
        ),
        "small": _Kind(
            "most jobs have one GPU, as in traces of shared clusters; heavy-tailed run times",
            {1: 0.7, 2: 0.12, 4: 0.1, 8: 0.08},
            sensitive=0.5,
            spread=1.5,
        ),
        "large": _Kind(
            "all-reduce among 4, 8 and 16 GPUs, all sensitive", {4: 0.5, 8: 0.35, 16: 0.15}, "clique", 1
        ),
        "pipelines": _Kind("chains of 2 to 8 GPUs, all sensitive", {2: 0.4, 4: 0.4, 8: 0.2}, "chain", 1),
        "odd": _Kind(
            "cliques of 3, 5, 6 and 7 GPUs, all sensitive", {3: 0.4, 5: 0.3, 6: 0.2, 7: 0.1}, "clique", 1
        ),
        "shared": _Kind(
            "one GPU or a quarter or half of it, and rings of 2 and 4",
            {1: 0.8, 2: 0.1, 4: 0.1},
            fractions=(0.25, 0.5, 1.0),
        ),
    }
)
NAMES: Final = tuple(_KINDS)
ABOUT: Final[Mapping[str, str]] = MappingProxyType({name: kind.about for name, kind in _KINDS.items()})
"""What each workload is, in words."""


def drawn(name: str, num_gpus: int, seed: int) -> Workload:
    """Return the workload of this name for a machine or cluster of `num_gpus` GPUs.

    It has three jobs per GPU, at least 100. Run times are log-normal with a median of 300 s.
    """
    kind = _KINDS[name]
    random = np.random.default_rng([NAMES.index(name), seed])
    count = max(_LEAST_JOBS, _JOBS_PER_GPU * num_gpus)
    sizes = random.choice(list(kind.sizes), count, p=list(kind.sizes.values())).tolist()
    sensitive = (random.random(count) < kind.sensitive).tolist()
    shares = random.choice(kind.fractions, count).tolist()
    times = 300.0 * np.exp(kind.spread * random.standard_normal(count))
    jobs = [_job(kind, *job) for job in zip(sizes, sensitive, shares, strict=True)]
    workload = Workload(jobs, np.zeros(count), times)
    if kind.load is None:
        return workload
    with warnings.catch_warnings():
        warnings.filterwarnings(
            "ignore", "load = "
        )  # run times with heavy tails; the page of the suite says it
        return workload.with_load(kind.load, num_gpus, seed)


def _job(kind: _Kind, size: int, sensitive: bool, share: float) -> JobGraph:
    job = job_of(kind.pattern, size, sensitive, None)
    return job.with_(gpu_fraction=share) if size == 1 and share < 1 else job
