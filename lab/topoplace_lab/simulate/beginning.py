"""The start of a simulation on a busy cluster: its running jobs, and jobs that can never fit next to them.

A running job ends at a known time or never, whatever runs next to it. The result has no record of such jobs.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from topoplace import _checks
from topoplace.cluster.cluster import Cluster
from topoplace.engine.confined import confined
from topoplace.jobs.job_graph import JobGraph
from topoplace.jobs.requirements import WHOLE_GPU
from topoplace.placement import Placement
from topoplace.text_formats.csv_rows import MAX_NUMBER
from topoplace_lab.simulate.metrics import JobRecord
from topoplace_lab.simulate.scheduling import why_not
from topoplace_lab.simulate.workloads.submitted_job import SubmittedJob

if TYPE_CHECKING:
    from topoplace.cluster.hosts import GivenHosts
    from topoplace.engine.policy import Policy
    from topoplace.placement import Refusal
    from topoplace.topology.topology import Topology
    from topoplace_lab.simulate.workloads.workload import Workload


def cluster_of(given: Topology | Cluster, hosts: GivenHosts | None) -> Cluster:
    """Return the cluster of a simulation: an idle one, or a copy of the given one."""
    if not isinstance(given, Cluster):
        return Cluster(given, hosts)
    if hosts is not None:
        raise ValueError("hosts: a cluster has its own")
    return given.copy()


def running_before(
    cluster: Cluster, seconds_left: Mapping[str, float] | None, workload: Workload
) -> list[JobRecord]:
    """Return the jobs that run on the cluster at time 0, numbered after those of the workload.

    seconds_left: the seconds until each job ends; a job without an entry never ends. ValueError names a job that does
    not run, or that also waits.
    """
    running = cluster.allocations
    ends = _ends(seconds_left, running)
    if both := running.keys() & set(workload.job_ids):
        row = workload.job_ids.index(min(both))
        raise ValueError(f"job_ids[{row}] = {_checks.shown(min(both))} runs already")
    return [
        _record(len(workload) + i, job_id, cluster, ends.get(job_id, math.inf))
        for i, job_id in enumerate(running)
    ]


def _ends(given: Mapping[str, float] | None, running: Mapping[str, object]) -> dict[str, float]:
    _checks.instance({} if given is None else given, Mapping, "seconds_left", ValueError)
    ends: dict[str, float] = {}
    for job_id, left in (given or {}).items():
        what = f"seconds_left[{_checks.shown(job_id)}]"
        if job_id not in running:
            raise ValueError(f"{what}: no job of this id runs on GPUs of the cluster")
        ends[job_id] = (
            math.inf if left == math.inf else _checks.positive(left, what, ValueError, high=MAX_NUMBER)
        )
    return ends


def _record(index: int, job_id: str, cluster: Cluster, end: float) -> JobRecord:
    gpus, job = cluster.gpus_of(job_id), cluster.jobs.get(job_id)
    if job is None:  # it communicates as requests do that do not say how
        share = cluster.gpu_thousandths_of(job_id) / WHOLE_GPU
        job = JobGraph.ring(len(gpus)).with_(gpu_fraction=share)
    held = cluster.hosts.held.get(job_id)
    placement = Placement(
        gpus,
        topology=cluster.topology,
        hosts=held.shares if held else (),
        remote=held.remote if held else (),
        drives=held.drives if held else (),
    )
    submitted = SubmittedJob(index, job_id, job, 0.0, end)
    return JobRecord(submitted, placement, 0.0, end, end)


_NOW: Final = "cannot start now: "
"""The start of a policy's reasons for a job that waits."""


class Beginning:
    """The jobs that run before a simulation, and the jobs that fit next to those that never end."""

    def __init__(self, records: list[JobRecord], policy: Policy, cluster: Cluster) -> None:
        self.records = records
        self.job_ids = {record.job_id for record in records}
        self._endless = {record.job_id for record in records if record.end == math.inf}
        self._policy = policy
        self._cluster = cluster
        self._known: dict[tuple[JobGraph, frozenset[str]], str] = {}

    def why_never(self, submitted: SubmittedJob) -> str:
        """Return why a job does not fit even after all running jobs that end have finished; "" if it does."""
        job = submitted.least.with_(min_utility=0.0)  # a policy may give up on utility in the end
        key = job, submitted.excluded
        if key not in self._known:
            policy = confined(self._policy, submitted.excluded)
            with self._cluster.what_if() as state:
                for job_id in state.native.job_ids():
                    if job_id not in self._endless:
                        state.release(job_id)
                fits = not policy.explain(job, state, 1).refusal and policy.place(job, state)
                self._known[key] = "" if fits else _in_words(why_not(job, policy, state))
        return self._known[key]


def _in_words(refusal: Refusal) -> str:
    """Return why a job is rejected that does not fit after all jobs that end have ended."""
    if refusal.permanent:
        return refusal.reason
    return f"never fits beside what stays in use: {refusal.reason.removeprefix(_NOW)}"
