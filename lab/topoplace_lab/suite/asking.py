"""Ask a policy for a job as its users do: leave out requirements that the policy does not know."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from topoplace.cluster.cluster import Cluster
from topoplace.engine.plan import QueuedJob
from topoplace_lab.simulate import Workload

if TYPE_CHECKING:
    from topoplace.engine.policy import Policy
    from topoplace.jobs.job_graph import JobGraph
    from topoplace.topology.topology import Topology

_LEFT_OUT: Final = (
    (),
    ("prefer",),
    ("prefer", "groups"),
    ("prefer", "groups", "gpu_fraction"),
)
"""The requirements that each form of a job leaves out, the fullest form first."""


def as_asked(workload: Workload, policy: Policy, topology: Topology) -> Workload:
    """Return the jobs in the fullest form that the policy does not reject on the idle cluster.

    A policy without preferred levels gets the job without one. A policy without pods of several GPUs gets it task by
    task, and a policy with whole GPUs only gets a whole GPU. A job that is rejected in every form stays as it is.
    """
    idle = Cluster(topology)
    forms = {job: _form(job, policy, idle) for job in dict.fromkeys(workload.jobs)}
    return Workload([forms[job] for job in workload.jobs], workload.submit_time, workload.base_time)


def _form(job: JobGraph, policy: Policy, idle: Cluster) -> JobGraph:
    for names in _LEFT_OUT:
        form = job.with_(**{name: getattr(type(job), name) for name in names})
        if not policy.plan([QueuedJob("job", form)], idle, 0.0).reject:
            return form
    return job
