"""The orders for scontrol, as lines of its standard input; every word is ours or a number, and none is a user's."""

from __future__ import annotations

from collections.abc import Sequence

from topoplace.discovery.text.host_list import folded
from topoplace.integrations.slurm import gres, task_places
from topoplace.integrations.slurm.client.jobs import SlurmJob
from topoplace.integrations.slurm.placer.machines import Where


def start_at(job: SlurmJob, where: Where, places: str) -> Sequence[str]:
    """Let a held job ask for exact devices of exact nodes, and note the places of its tasks.

    The first line removes what it asked for before: Slurm would otherwise ask for both.
    """
    job_id = job.job_id
    nodes, tres = folded(where.nodes), gres.tres_of(where.numbers)
    return (
        f"update JobId={job_id} TresPerNode=",
        f"update JobId={job_id} ReqNodeList={nodes} TresPerNode={tres}",
        f"update JobId={job_id} AdminComment={task_places.joined(job.mark, places)}",
    )


def anywhere(job_id: str, gpus: int) -> Sequence[str]:
    """Let a held job ask for any `gpus` GPUs of each node, as its user did."""
    return (
        f"update JobId={job_id} TresPerNode=",
        f"update JobId={job_id} ReqNodeList= TresPerNode=gres:gpu:{gpus}",
    )


def release(job_id: str) -> str:
    """Let Slurm start a held job."""
    return f"release {job_id}"


def hold(job_id: str) -> str:
    """Hold a job that has not started, so that it is decided again."""
    return f"uhold {job_id}"
