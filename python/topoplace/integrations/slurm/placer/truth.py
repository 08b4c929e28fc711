"""What Slurm has: the GPUs that jobs hold, and those of jobs that were told where to start."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from topoplace.integrations.slurm.client.jobs import SlurmJob, node_names
from topoplace.integrations.slurm.placer.machines import gpus_at, gpus_on
from topoplace.integrations.slurm.placer.waiting import never_starts
from topoplace.state import Entry
from topoplace.state.entry import named
from topoplace.topology.topology import Topology

Devices = Mapping[str, Sequence[int]]
"""Device numbers by node."""


@dataclass(frozen=True, slots=True)
class Truth:
    """The jobs of Slurm by what they do; GPUs in numbers of the topology."""

    running: Mapping[str, tuple[int, ...]]
    """GPUs that jobs hold, by job id."""
    told: Mapping[str, tuple[int, ...]]
    """GPUs on which jobs are about to start; no GPU is in two of these lists."""
    stranded: tuple[SlurmJob, ...]
    """Jobs that were told to start where they cannot, or have left their GPUs to start again: to be decided anew."""


def unknown_devices(jobs: Iterable[SlurmJob], known: Collection[int]) -> list[int]:
    """Return the numbers of running jobs whose devices Slurm chose, and that are not in `known`."""
    return [job.number for job in jobs if job.runs and job.devices is None and job.number not in known]


def truth_of(
    jobs: Iterable[SlurmJob], topology: Topology, chosen: Mapping[int, Devices], latest: Mapping[str, Entry]
) -> Truth:
    """Return what Slurm has.

    chosen: the devices of jobs for which Slurm chose, by number. latest: the last entry of each job in the journal.
    """
    running: dict[str, tuple[int, ...]] = {}
    told: dict[str, tuple[int, ...]] = {}
    stranded: list[SlurmJob] = []
    pending: list[SlurmJob] = []
    for job in jobs:
        if job.runs:
            if gpus := _held(job, topology, chosen):
                running[job.job_id] = gpus
        elif job.is_ours and job.devices is not None and not never_starts(job):
            pending.append(job)
    taken = {gpu for gpus in running.values() for gpu in gpus}
    for job in pending:
        gpus = gpus_at(topology, node_names(job.required_nodes), job.devices or ())
        entry = latest.get(job.job_id)
        ours = entry is not None and entry.stage.in_flight and gpus is not None
        if ours and gpus and set(entry.gpus) == set(named(topology, gpus)) and taken.isdisjoint(gpus):
            told[job.job_id] = gpus
            taken.update(gpus)
        elif not job.is_held:
            stranded.append(job)
    return Truth(running, told, tuple(stranded))


def _held(job: SlurmJob, topology: Topology, chosen: Mapping[int, Devices]) -> tuple[int, ...]:
    if job.devices is not None:
        return gpus_at(topology, node_names(job.nodes), job.devices) or ()
    return gpus_on(topology, chosen.get(job.number, {}))
