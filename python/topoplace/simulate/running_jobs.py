"""The running jobs of a simulation: their current speeds and remaining work, and which job ends next."""

from __future__ import annotations

import heapq
import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from topoplace import _checks
from topoplace.simulate.performance.models import ColocationModel, LinkModel
from topoplace.text_formats.csv_rows import MAX_NUMBER

if TYPE_CHECKING:
    from topoplace.simulate.metrics import JobRecord
    from topoplace.simulate.performance.models import PerformanceModel, Traffic
    from topoplace.topology.topology import Topology


@dataclass(slots=True, eq=False)
class _Job:
    record: JobRecord
    machines: tuple[int, ...]
    """Machines whose other jobs can slow this one down: all it uses, or under a `LinkModel` those its flows cross."""
    left: float
    """Seconds of work left at the time `since`, measured at full speed."""
    since: float
    slowdown: float = 1.0
    """Current run time relative to full speed."""
    traffic: Traffic | None = None
    """The job's flows under a `LinkModel`."""
    alone: float = 0.0
    """Run time in seconds without other flows."""
    stamp: int = 0
    """Number of changes of the job's end time; entries of the heap of ends with an older stamp are obsolete."""


class Running:
    """The running jobs of a simulation, which can slow each other down.

    Call `update` after all jobs that start or end at one point in time have done so.
    """

    def __init__(self, topology: Topology, performance: PerformanceModel) -> None:
        self._model = performance if isinstance(performance, ColocationModel) else None
        self._links = performance if isinstance(performance, LinkModel) else None
        self._flows: Counter[int] = Counter()
        self._machine_of: list[int] = topology.machine_of.tolist()
        self._jobs: dict[str, _Job] = {}
        self._on: dict[int, dict[str, _Job]] = {}
        self._ends: list[tuple[float, int, int, str]] = []
        self._disturbed: set[int] = set()

    def __len__(self) -> int:
        return len(self._jobs)

    def next_end(self) -> float:
        """Return the time in seconds at which the next job ends; infinite if no job runs."""
        while self._ends and self._is_old(self._ends[0]):
            heapq.heappop(self._ends)
        return self._ends[0][0] if self._ends else math.inf

    def start(self, record: JobRecord, now: float) -> None:
        """Add a job that starts at `now`; its record must contain its placement and its run time at full speed."""
        placement = record.placement
        assert placement is not None
        job = _Job(record, (), record.run_time, now, alone=record.run_time)
        if self._links:
            job.traffic = self._links.traffic(record.submitted, placement)
            job.machines = tuple(job.traffic.flows)
        elif self._model:
            used = {self._machine_of[gpu] for gpu in placement.gpus}
            used.update(share.machine for share in placement.hosts)
            job.machines = tuple(sorted(used))
        self._jobs[record.submitted.job_id] = job
        self._push(job)
        for machine in job.machines:
            self._on.setdefault(machine, {})[record.submitted.job_id] = job
        self._disturb(job, 1)

    def ended(self, now: float) -> Iterator[JobRecord]:
        """Remove the jobs that end at `now`, and yield their records."""
        while self.next_end() == now:
            job = self._jobs.pop(heapq.heappop(self._ends)[3])
            for machine in job.machines:
                del self._on[machine][job.record.submitted.job_id]
            self._disturb(job, -1)
            yield job.record

    def update(self, now: float) -> None:
        """Recompute the speed and the end time of each job on a machine or link where jobs have started or ended."""
        if not self._disturbed:
            return
        near = {job_id: job for machine in self._disturbed for job_id, job in self._on[machine].items()}
        self._disturbed.clear()
        for job in near.values():
            slowdown = self._slowdown(job)
            if slowdown != job.slowdown:
                job.left = max(job.left - (now - job.since) / job.slowdown, 0.0)
                job.since, job.slowdown = now, slowdown
                record = job.record
                record.end = now + job.left * slowdown
                record.run_time = record.end - record.start
                job.stamp += 1
                self._push(job)

    def _disturb(self, job: _Job, sign: int) -> None:
        """Mark the machines of a job that starts (sign 1) or ends (-1) for `update`, and add or remove its flows."""
        self._disturbed.update(job.machines)
        for machine, flows in job.traffic.flows.items() if job.traffic else ():
            self._flows[machine] += sign * flows

    def _slowdown(self, job: _Job) -> float:
        if job.traffic:
            factor = job.traffic.seconds(self._flows) / job.alone if job.alone else 1.0
        else:
            factor = self._slowdown_by_neighbours(job)
        what = f"performance: slowdown for {job.record.submitted.job_id!r}"
        return _checks.positive(factor, what, ValueError)

    def _slowdown_by_neighbours(self, job: _Job) -> float:
        """Return the job's run time beside the jobs on its machines, divided by its run time without them."""
        assert self._model is not None
        assert job.record.placement is not None
        beside = {
            other.record.submitted.index: other.record
            for machine in job.machines
            for other in self._on[machine].values()
            if other is not job
        }
        neighbours = [
            (record.submitted, record.placement) for _, record in sorted(beside.items()) if record.placement
        ]
        return self._model.slowdown(job.record.submitted, job.record.placement, neighbours)

    def _push(self, job: _Job) -> None:
        submitted, end = job.record.submitted, job.record.end
        if not end <= MAX_NUMBER:
            raise ValueError(
                f"performance: an end at {end:g} s for {submitted.job_id!r}, later than {MAX_NUMBER:g} s"
            )
        heapq.heappush(self._ends, (end, submitted.index, job.stamp, submitted.job_id))

    def _is_old(self, entry: tuple[float, int, int, str]) -> bool:
        job = self._jobs.get(entry[3])
        return job is None or job.stamp != entry[2]
