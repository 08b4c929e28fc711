"""The devices of running jobs that Slurm chose by itself, from `squeue --json`, in which no user can forge a field."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from topoplace.errors import SlurmError
from topoplace_hosts.slurm.client.commands import SlurmCommands
from topoplace_hosts.slurm.client.jobs import node_names
from topoplace_hosts.slurm.texts import nodes as slurm_nodes


def of_jobs(commands: SlurmCommands, numbers: Collection[int]) -> Mapping[int, Mapping[str, tuple[int, ...]]]:
    """Return the numbers of the GPUs that running jobs hold on each node, by the job's number and by node."""
    try:
        found: Any = json.loads(commands.output("squeue", ["--json"]))
        wanted = [job for job in found["jobs"] if job["job_id"] in numbers]
        return {job["job_id"]: _by_node(job) for job in wanted}
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise SlurmError(f"squeue --json has an unknown form: {error}") from None


def _by_node(job: Mapping[str, Any]) -> dict[str, tuple[int, ...]]:
    details: Sequence[str] = job["gres_detail"]
    nodes = node_names(job["nodes"])
    return {
        node: numbers
        for node, text in zip(nodes, details, strict=False)
        if (numbers := slurm_nodes.gpus_of(text))
    }
