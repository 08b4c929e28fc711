"""Turn a request's fields into a decision's input: the job for a policy, and the least speed of its links."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from topoplace.jobs.groups import SizedGroups
from topoplace.jobs.job_graph import PATTERNS, JobGraph
from topoplace.objectives.links import bottleneck_bandwidth
from topoplace.placement import Refusal
from topoplace.topology.topology import Topology


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestedJob:
    """The fields of a request, after the checks of `request_fields`."""

    pattern: str = "ring"
    sensitive: bool = False
    """True if the job runs slower on slower links."""
    min_utility: float = 0.0
    min_bandwidth: float | None = None
    """Least GB/s of the slowest link that the pattern uses; the job waits for it. None for no limit."""
    within: str | None = None
    """Level of the fabric; one of its domains must have all GPUs. None for no such demand."""
    prefer: str | None = None
    """Level of the fabric; one of its domains should have all GPUs. None for no such wish."""
    groups: tuple[SizedGroups, ...] = ()
    """Groups of tasks that must be together."""
    prefer_groups: tuple[SizedGroups, ...] = ()
    """Groups of tasks that should be together."""
    balanced: str | None = None
    """Level; the job is divided as evenly as possible over its domains. None for no such demand."""
    model: str | None = None
    memory_gb: float | None = None
    """Least GB of memory of each GPU; None for no limit."""

    def on_gpus(self, num_gpus: int) -> JobGraph:
        """Return the job for a policy, with a task for each of `num_gpus` GPUs.

        JobGraphError names groups that the job cannot have.
        """
        job = PATTERNS[self.pattern](num_gpus).with_(
            bandwidth_sensitive=self.sensitive,
            min_utility=self.min_utility,
            gpu_model=self.model,
            gpu_memory_gb=self.memory_gb,
            within=self.within,
            prefer=self.prefer,
            balanced=self.balanced,
        )
        for one in self.groups:
            job = job.grouped(one.sizes, within=one.level)
        for one in self.prefer_groups:
            job = job.grouped(one.sizes, prefer=one.level)
        return job


def too_slow(
    min_bandwidth: float | None, job: JobGraph, gpus: Sequence[int], topology: Topology
) -> Refusal | None:
    """Return why the job waits if a link that it would use has less than `min_bandwidth` GB/s; None otherwise."""
    if min_bandwidth is None:
        return None
    reached = bottleneck_bandwidth(job, gpus, topology)
    if reached >= min_bandwidth:
        return None
    return Refusal(f"its slowest link would have {reached:g} GB/s, less than {min_bandwidth:g}")
