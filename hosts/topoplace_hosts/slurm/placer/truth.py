"""The state in Slurm: GPUs that jobs hold, and GPUs on which jobs are ordered to start."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from topoplace.topology.topology import Topology
from topoplace_hosts.journal import Entry
from topoplace_hosts.journal.entry import Device, named
from topoplace_hosts.slurm.client.jobs import SlurmJob, node_names
from topoplace_hosts.slurm.placer.machines import gpus_at, gpus_on
from topoplace_hosts.slurm.placer.waiting import never_starts

Devices = Mapping[str, Sequence[int]]
"""Device numbers by node."""


@dataclass(frozen=True, slots=True)
class Truth:
    """The jobs in Slurm by their state; GPUs are numbers of the topology."""

    running: Mapping[str, tuple[int, ...]]
    """GPUs that jobs hold, by job id."""
    starting: Mapping[str, tuple[int, ...]]
    """GPUs on which jobs are about to start, by job id; no GPU appears twice in `running` and `starting`."""
    stranded: tuple[SlurmJob, ...]
    """Jobs that cannot start as ordered, or that left their GPUs to start again; they are decided again."""


def unknown_devices(jobs: Iterable[SlurmJob], known: Collection[int]) -> list[int]:
    """Return the numbers of running jobs, not in `known`, whose devices Slurm chose."""
    return [job.number for job in jobs if job.runs and job.devices is None and job.number not in known]


def truth_of(
    jobs: Iterable[SlurmJob], topology: Topology, chosen: Mapping[int, Devices], latest: Mapping[str, Entry]
) -> Truth:
    """Return the state in Slurm.

    chosen: the devices of jobs for which Slurm chose, by the job's number. latest: the last entry of each job in the
    journal.
    """
    listed = list(jobs)
    holding = {job.job_id: _held(job, topology, chosen) for job in listed if job.runs}
    running = {job_id: gpus for job_id, gpus in holding.items() if gpus}
    taken = {gpu for gpus in running.values() for gpu in gpus}
    starting: dict[str, tuple[int, ...]] = {}
    stranded: list[SlurmJob] = []
    for job in listed:
        if not _is_told(job):
            continue
        gpus = gpus_at(topology, node_names(job.required_nodes), job.devices or ())
        if gpus and _decided(latest.get(job.job_id), named(topology, gpus)) and taken.isdisjoint(gpus):
            starting[job.job_id] = gpus
            taken.update(gpus)
        elif not job.is_held:
            stranded.append(job)
    return Truth(running, starting, tuple(stranded))


def _is_told(job: SlurmJob) -> bool:
    """Return True if the job is ours, waits, and asks for exact devices."""
    return not job.runs and job.is_ours and job.devices is not None and not never_starts(job)


def _decided(entry: Entry | None, gpus: Sequence[Device]) -> bool:
    """Return True if a decision for these GPUs is in flight."""
    return entry is not None and entry.stage.in_flight and set(entry.gpus) == set(gpus)


def _held(job: SlurmJob, topology: Topology, chosen: Mapping[int, Devices]) -> tuple[int, ...]:
    if job.devices is not None:
        return gpus_at(topology, node_names(job.nodes), job.devices) or ()
    return gpus_on(topology, chosen.get(job.number, {}))
