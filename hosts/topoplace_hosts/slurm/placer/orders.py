"""Orders for scontrol, as lines of its standard input, without any text from users."""

from __future__ import annotations

from collections.abc import Sequence

from topoplace.discovery.text.host_list import folded
from topoplace_hosts.slurm import gres, task_places
from topoplace_hosts.slurm.client.jobs import SlurmJob
from topoplace_hosts.slurm.placer.machines import Where


def start_at(job: SlurmJob, where: Where, places: str) -> Sequence[str]:
    """Return the orders by which a held job requests exact devices of exact nodes, and notes the places of its tasks.

    The first order empties the earlier request, to which Slurm would otherwise add this one. The places go into the
    job's AdminComment.
    """
    job_id = job.job_id
    nodes, tres = folded(where.nodes), gres.tres_of(where.numbers)
    return (
        f"update JobId={job_id} TresPerNode=",
        f"update JobId={job_id} ReqNodeList={nodes} TresPerNode={tres}",
        f"update JobId={job_id} AdminComment={task_places.joined(job.mark, places)}",
    )


def anywhere(job_id: str, gpus: int) -> Sequence[str]:
    """Return the orders by which a held job requests any `gpus` GPUs of each node, as its user did."""
    return (
        f"update JobId={job_id} TresPerNode=",
        f"update JobId={job_id} ReqNodeList= TresPerNode=gres:gpu:{gpus}",
    )


def release(job_id: str) -> str:
    """Return the order to start a held job."""
    return f"release {job_id}"


def hold(job_id: str) -> str:
    """Return the order to hold a job that has not started, so that it is decided again."""
    return f"uhold {job_id}"
