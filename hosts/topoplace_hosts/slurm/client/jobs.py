"""The jobs that squeue lists."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from topoplace.discovery.text.host_list import expanded
from topoplace.errors import TopologyError
from topoplace_hosts.slurm import gres, task_places
from topoplace_hosts.slurm.client.commands import SlurmCommands
from topoplace_hosts.slurm.client.records import RecordFormat
from topoplace_hosts.slurm.request import is_marked

_FIELDS = (
    "JobArrayID", "JobID", "StateCompact", "Reason", "UserID", "Partition", "NodeList", "ReqNodes",
    "tres-per-node", "admin_comment", "Dependency", "EligibleTime", "SubmitTime", "StartTime", "NumNodes", "NumCPUs",
    "MinMemory", "PriorityLong", "Reservation", "Feature",
)  # fmt: skip
_SEGMENTS_SINCE = (25, 5)
"""The first version whose squeue shows the size of a job's segments."""
_ALLOCATED = frozenset(("R", "CG", "CF", "S", "ST", "SI", "SO", "RS", "RD", "RF", "RQ", "RH"))
_ID = re.compile(r"[0-9]{1,10}(?:[_+][0-9]{1,10})?")
_MEMORY = re.compile(r"([0-9]+(?:\.[0-9]+)?)([KMGTP]?)")
_MEGABYTES = {"K": 1 / 1024, "M": 1.0, "": 1.0, "G": 1024.0, "T": 1024.0**2, "P": 1024.0**3}


class SlurmJob(NamedTuple):
    """One job, or one task of an array, as squeue lists it."""

    job_id: str
    """The id that `scontrol` takes: 12, or 12_3 for a task of an array."""
    number: int
    state: str
    reason: str
    user: str
    partition: str
    nodes: str
    required_nodes: str
    tres: str
    mark: str
    """The job's request to topoplace, at the start of its AdminComment."""
    dependency: str
    eligible: float
    submitted: float
    started: float
    num_nodes: int
    cpus: int
    """The number of CPUs on all nodes together."""
    memory_mb: float
    """Megabytes of memory on each node."""
    priority: int
    reservation: str
    features: str
    segment: int = 0
    """Nodes in each segment of `--segment`; 0 without one, or if this version of Slurm does not show it."""
    places: str = ""
    """The decided place of each task, at the end of the AdminComment; see `task_places`."""

    @property
    def runs(self) -> bool:
        """Return True if the job holds devices."""
        return self.state in _ALLOCATED

    @property
    def is_ours(self) -> bool:
        """Return True if job_submit.lua has left the job to topoplace."""
        return is_marked(self.mark)

    @property
    def is_held(self) -> bool:
        """Return True if the job waits until somebody releases it."""
        return self.state == "PD" and self.priority == 0

    @property
    def waits_for_us(self) -> bool:
        """Return True if the job is held by job_submit.lua or by topoplace, and not by an operator."""
        return self.is_held and self.is_ours and self.reason == "JobHeldUser"

    @property
    def devices(self) -> tuple[int, ...] | None:
        """Return the exact devices of each node that the job asks for, in order; None if Slurm chooses."""
        return gres.numbers_in(self.tres) if self.tres else None


def listed(commands: SlurmCommands, job_id: str = "") -> list[SlurmJob]:
    """Return all jobs that wait or hold devices, or only the job with this id; array tasks appear one by one."""
    knows_segments = commands.version >= _SEGMENTS_SINCE
    form = RecordFormat((*_FIELDS, "SegmentSize") if knows_segments else _FIELDS)
    text = commands.output(
        "squeue", ["-a", "-h", "-r", *(["-j", job_id] if job_id else []), "-O", form.option]
    )
    return [_job(record) for record in form.records(text) if _ID.fullmatch(record[0])]


def comments(commands: SlurmCommands, job_ids: Sequence[str]) -> Mapping[str, str]:
    """Return the comments of these jobs by id."""
    if not job_ids:
        return {}
    form = RecordFormat(("JobArrayID", "comment"))
    wanted = set(job_ids)
    few = (
        ["-j", ",".join(sorted({re.split("[_+]", job_id)[0] for job_id in wanted}))]
        if len(wanted) < 500
        else []
    )
    text = commands.output("squeue", ["-a", "-h", "-r", *few, "-O", form.option])
    return {job_id: comment for job_id, comment in form.records(text) if job_id in wanted}


def node_names(text: str) -> tuple[str, ...]:
    """Return the nodes in a list such as n[1-3,7]; () for any other text."""
    if not text:
        return ()
    if "[" not in text and "," not in text:
        return (text,)
    try:
        return tuple(expanded(text, "NodeList"))
    except TopologyError:
        return ()


def _job(record: Sequence[str]) -> SlurmJob:
    (job_id, number, state, reason, user, partition, nodes, required, tres, mark, dependency, eligible,
     submitted, started, num_nodes, cpus, memory, priority, reservation, features, *segment) = record  # fmt: skip
    mark, places = task_places.split(mark)
    return SlurmJob(
        *(job_id, _whole(number), state, reason, user, partition, nodes, required, tres, mark, dependency),
        eligible=float(_whole(eligible)),
        submitted=float(_whole(submitted)),
        started=float(_whole(started)),
        num_nodes=max(1, _whole(num_nodes)),
        cpus=_whole(cpus),
        memory_mb=megabytes(memory),
        priority=_whole(priority),
        reservation=reservation,
        features=features,
        segment=_whole(segment[0]) if segment else 0,
        places=places,
    )


def _whole(text: str) -> int:
    """Return the number at the start of a text such as "2-4"; 0 if there is none."""
    digits = re.match(r"[0-9]{1,18}", text)
    return int(digits[0]) if digits else 0


def megabytes(text: str) -> float:
    """Return an amount of memory such as 4G in MB; 0 for any other text."""
    match = _MEMORY.fullmatch(text)
    return float(match[1]) * _MEGABYTES[match[2]] if match else 0.0


def by_id(jobs: Iterable[SlurmJob]) -> dict[str, SlurmJob]:
    """Return the jobs by id, in their order."""
    return {job.job_id: job for job in jobs}


def main_ids(jobs: Iterable[SlurmJob]) -> frozenset[str]:
    """Return the ids of the jobs; tasks of arrays also give the ids of their arrays."""
    return frozenset(one for job in jobs for one in (re.split("[_+]", job.job_id)[0], str(job.number)))
