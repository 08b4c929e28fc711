"""Expected fragmentation: the free GPUs that typical jobs could not use (FGD, USENIX ATC'23)."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final

from topoplace import _checks
from topoplace._core import Fragmentation
from topoplace.cluster.hosts import millicpus
from topoplace.engine.level_chain import required_of
from topoplace.jobs.groups import INNER_LEVELS
from topoplace.jobs.job_graph import JobGraph

COVERED: Final = 0.95
"""The share of all jobs that the typical ones make up, as in the authors' simulator."""


_MOST: Final = 1e15
_Kind = tuple[float, int, float, tuple[str, ...], float, tuple[tuple[str, int], ...]]


class TypicalJobs:
    """The most common job classes and their weights, from which FGD computes how much of a machine is a fragment.

    A class is what a job requires of machines: tasks, share of each GPU, GPU models and memory, CPUs, and the sizes and
    levels of required groups.
    """

    def __init__(self, weights: Mapping[JobGraph, float]) -> None:
        """Store each job with its weight, above 0; ValueError names a wrong one."""
        _checks.instance(weights, Mapping, "weights", ValueError)
        for i, (job, weight) in enumerate(weights.items()):
            _checks.instance(job, JobGraph, f"job {i} of weights", ValueError)
            _checks.positive(weight, f"the weight of job {i}", ValueError, high=_MOST)
        total = math.fsum(weights.values())
        if not total:
            raise ValueError("weights is empty")
        self.weights: Mapping[JobGraph, float] = {job: weight / total for job, weight in weights.items()}
        """The share of each kind of job among all, which add up to 1."""

    @classmethod
    def of(cls, jobs: Iterable[JobGraph], covered: float = COVERED) -> TypicalJobs:
        """Return the most common job classes in a list of jobs, such as those of a trace.

        covered: the minimum share of all jobs that these classes include. Equally common classes come in the order of
        CPUs, tasks, share, models, memory and groups. Raise ValueError for an empty list, or `covered` outside 0..1.
        """
        covered = _checks.positive(covered, "covered", ValueError, high=1.0)
        first: dict[_Kind, JobGraph] = {}
        counts: Counter[_Kind] = Counter()
        for i, job in enumerate(_checks.sequence(jobs, "jobs", ValueError)):
            _checks.instance(job, JobGraph, f"jobs[{i}]", ValueError)
            kind = (
                *(job.cpus or 0, job.num_tasks, job.gpu_fraction, tuple(job.gpu_models)),
                job.gpu_memory_gb or 0.0,
                _in_domains(job),
            )
            first.setdefault(kind, job)
            counts[kind] += 1
        if not counts:
            raise ValueError("jobs is empty")
        ranked = sorted(counts, key=lambda kind: (-counts[kind], kind))
        chosen: dict[JobGraph, float] = {}
        known = 0
        for kind in ranked:
            if known >= covered * counts.total():
                break
            chosen[first[kind]] = counts[kind]
            known += counts[kind]
        return cls(chosen)

    def model(self, suits: Callable[[JobGraph], Sequence[bool]], stranded: float = 0.0) -> Fragmentation:
        """Return the native model of these jobs.

        suits: returns, for each class of machines, True if its GPUs suit a job. stranded: the weight of GPUs that are
        idle for lack of CPUs, in addition to the fragment.
        """
        return Fragmentation(
            [
                (
                    millicpus(job.cpus or 0),
                    job.num_tasks,
                    job.gpu_thousandths if job.num_tasks else 0,
                    weight,
                    list(suits(job)),
                )
                for job, weight in self.weights.items()
            ],
            stranded,
        )


def _in_domains(job: JobGraph) -> tuple[tuple[str, int], ...]:
    """Return the levels of the fabric at which tasks must be in one domain, each with the numbers of tasks, sorted."""
    found = {(one.level, len(one.tasks)) for one in required_of(job) if one.level not in INNER_LEVELS}
    return tuple(sorted(found))
