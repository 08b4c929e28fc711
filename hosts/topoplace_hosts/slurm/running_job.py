"""The placement of a job that runs in Slurm, from the placer's note and the devices that Slurm gave it."""

from __future__ import annotations

import re

from topoplace import _checks
from topoplace.errors import SlurmError
from topoplace.placement import Placement
from topoplace.topology.topology import Topology
from topoplace_hosts.slurm import task_places
from topoplace_hosts.slurm.client import jobs
from topoplace_hosts.slurm.client.commands import SlurmCommands
from topoplace_hosts.slurm.client.jobs import SlurmJob

_ID = re.compile(r"[0-9]{1,10}(?:_[0-9]{1,10})?")


def is_job_id(text: str) -> bool:
    """Return True for the id of a job as Slurm writes it: 12, or 12_3 for a task of an array."""
    return _ID.fullmatch(text) is not None


def placement_of(commands: SlurmCommands, job_id: str, topology: Topology) -> Placement:
    """Return the placement of a running job on the cluster's topology, as it was decided.

    job_id: one that `is_job_id` accepts. SlurmError if topoplace has not decided about the job, if the job does not
    run, or if Slurm has given it other nodes or devices.
    """
    if not is_job_id(job_id):
        raise SlurmError(f"job {_checks.shown(job_id)} is not the id of a job, such as 12 or 12_3")
    found = [job for job in jobs.listed(commands, job_id) if job_id in (job.job_id, str(job.number))]
    if not found:
        raise SlurmError(f"job {job_id} is not in the queue")
    job = found[0]
    if not job.runs:
        raise SlurmError(f"job {job_id} does not run yet (state {job.state}, {job.reason})")
    if not job.places or job.devices is None:
        raise SlurmError(f"job {job_id}: no places of its tasks are noted, since Slurm has chosen its GPUs")
    places = task_places.read(job.places)
    _check_given(job, places)
    return Placement(_gpus(topology, places), topology=topology)


def _check_given(job: SlurmJob, places: tuple[task_places.Place, ...]) -> None:
    """Raise SlurmError unless Slurm has given the job the nodes and the devices where its tasks are."""
    given = {(node, number) for node in jobs.node_names(job.nodes) for number in job.devices or ()}
    if set(places) != given:
        node, number = sorted(given.symmetric_difference(places))[0]
        has = "has" if (node, number) in given else "has not"
        raise SlurmError(
            f"job {job.job_id}: Slurm {has} given it device {number} of {node}, unlike the decision"
        )


def _gpus(topology: Topology, places: tuple[task_places.Place, ...]) -> tuple[int, ...]:
    found: list[int] = []
    for node, number in places:
        gpus = topology.gpus_of.get(node, ())
        if number >= len(gpus):
            raise SlurmError(f"the job has device {number} of {node}, which the topology does not have")
        found.append(gpus[number])
    return tuple(found)
