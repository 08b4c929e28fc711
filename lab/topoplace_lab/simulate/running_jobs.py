"""The running jobs of a simulation: their present speeds and remaining work, and which job ends next."""

from __future__ import annotations

import heapq
import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from operator import attrgetter
from typing import TYPE_CHECKING, Protocol

from topoplace import _checks
from topoplace.text_formats.csv_rows import MAX_NUMBER
from topoplace_lab.simulate.performance.models import ColocationModel, LinkModel, PortModel

if TYPE_CHECKING:
    from topoplace.placement import Placement
    from topoplace.topology.topology import Topology
    from topoplace_lab.simulate.metrics import JobRecord
    from topoplace_lab.simulate.performance.models import PerformanceModel, PortUse, StepTraffic
    from topoplace_lab.simulate.workloads.submitted_job import SubmittedJob


class Running(Protocol):
    """The running jobs of a simulation. Call `update` after all jobs that start or end at one time have done so."""

    def __len__(self) -> int: ...

    def next_end(self) -> float:
        """Return the time in seconds at which the next job ends; infinite if no job runs."""
        ...

    def start(self, record: JobRecord, now: float, seconds: float) -> None:
        """Add a job that runs for `seconds` from `now` at full speed; its record has its placement and its end."""
        ...

    def keep(self, record: JobRecord) -> None:
        """Add a job that runs before time 0; it ends at the time in its record or never, whatever runs next to it.

        Jobs that never end do not count in the length.
        """
        ...

    def stop(self, record: JobRecord, now: float) -> tuple[float, float]:
        """Remove a job before its end; return its remaining and its total seconds of this stay at full speed."""
        ...

    def ended(self, now: float) -> Iterable[JobRecord]:
        """Remove the jobs that end at `now`, and return their records."""
        ...

    def update(self, now: float) -> None:
        """Recompute the speed and the end time of each job next to one that has started or ended."""
        ...


def running_jobs(topology: Topology, performance: PerformanceModel) -> Running:
    """Return the empty set of a simulation's running jobs; they slow each other down if the model says so."""
    if isinstance(performance, PortModel):
        return InteractingJobs(_OnPorts(performance.running(topology)))
    if isinstance(performance, ColocationModel):
        return InteractingJobs(_OnMachines(topology, performance))
    if isinstance(performance, LinkModel):
        return InteractingJobs(_OnLinks(performance))
    return IndependentJobs()


class IndependentJobs:
    """Running jobs that do not slow each other down."""

    def __init__(self) -> None:
        self._ends: list[tuple[float, int, JobRecord]] = []

    def __len__(self) -> int:
        return len(self._ends)

    def next_end(self) -> float:
        """Return the time in seconds at which the next job ends; infinite if no job runs."""
        return self._ends[0][0] if self._ends else math.inf

    def start(self, record: JobRecord, now: float, seconds: float) -> None:
        """Add a job that starts at `now`; its record has its end."""
        end = record.end
        if not end <= MAX_NUMBER:
            raise _too_late(record)
        heapq.heappush(self._ends, (end, record.submitted.index, record))

    def keep(self, record: JobRecord) -> None:
        """Add a job that runs before time 0, unless it never ends."""
        if record.end < math.inf:
            self.start(record, 0.0, record.end)

    def stop(self, record: JobRecord, now: float) -> tuple[float, float]:
        """Remove a job before its end; return its remaining and its total seconds of this stay."""
        self._ends = [entry for entry in self._ends if entry[2] is not record]
        heapq.heapify(self._ends)
        return record.end - now, record.run_time

    def ended(self, now: float) -> Iterable[JobRecord]:
        """Remove the jobs that end at `now`, and return their records."""
        ends = self._ends
        found: list[JobRecord] = []
        while ends and ends[0][0] == now:
            found.append(heapq.heappop(ends)[2])
        return found

    def update(self, now: float) -> None:
        """Do nothing: no speed changes."""


class _Job:
    """A running job that others can slow down."""

    __slots__ = (
        *("alone", "index", "is_kept", "left", "placement", "places", "record", "since", "slowdown", "stamp"),
        *("submitted", "traffic", "whole"),
    )

    def __init__(self, record: JobRecord, placement: Placement, now: float, seconds: float) -> None:
        self.record = record
        self.submitted = record.submitted.on(placement)
        self.index = record.submitted.index
        self.placement = placement
        self.places: Sequence[int] = ()
        """Where other jobs can slow this one down: its machines, the links that its flows cross, or its ports."""
        self.left = self.alone = seconds
        """Seconds of work left at the time `since`, and of all work, measured at full speed, without other flows."""
        self.whole = record.history.run_time if record.history else seconds
        """Seconds of the whole job on these GPUs, without other flows."""
        self.since = now
        self.slowdown = 1.0
        """Current run time relative to full speed."""
        self.is_kept = False
        """True if its end is known, and no other job changes it."""
        self.traffic: StepTraffic | None = None
        """The job's flows under a `LinkModel`."""
        self.stamp = 0
        """Number of changes of the job's end time, -1 once it has ended; ends with another stamp are obsolete."""


_index = attrgetter("index")
_Places = Mapping[int, Mapping[_Job, None]]


class _Sharing(Protocol):
    """An interface for what running jobs share, machines, links or ports, and how they slow each other down there."""

    def start(self, job: _Job) -> Sequence[int]:
        """Add a job; return the numbers of what it shares."""
        ...

    def end(self, job: _Job) -> None:
        """Remove a job."""
        ...

    def slowdown(self, job: _Job, at: _Places) -> float:
        """Return the job's run time over that at full speed; at: the jobs at each place."""
        ...


class _OnPorts:
    """The jobs of a `PortModel`."""

    def __init__(self, running: PortUse) -> None:
        self._running = running

    def start(self, job: _Job) -> Sequence[int]:
        return self._running.start(job.submitted, job.placement)

    def end(self, job: _Job) -> None:
        self._running.end(job.submitted)

    def slowdown(self, job: _Job, at: _Places) -> float:
        return self._running.slowdown(job.submitted)


class _OnLinks:
    """The jobs of a `LinkModel`, and how many flows cross each link."""

    def __init__(self, model: LinkModel) -> None:
        self._model = model
        self._flows: Counter[int] = Counter()

    def start(self, job: _Job) -> Sequence[int]:
        job.traffic = self._model.traffic(job.submitted, job.placement)
        self._flows.update(job.traffic.flows)
        return tuple(job.traffic.flows)

    def end(self, job: _Job) -> None:
        assert job.traffic is not None
        self._flows.subtract(job.traffic.flows)

    def slowdown(self, job: _Job, at: _Places) -> float:
        assert job.traffic is not None
        return job.traffic.seconds(self._flows) / job.whole if job.whole else 1.0


class _OnMachines:
    """The jobs of a `ColocationModel` by machine."""

    def __init__(self, topology: Topology, model: ColocationModel) -> None:
        self._model = model
        self._machine_of: list[int] = topology.machine_of.tolist()

    def start(self, job: _Job) -> Sequence[int]:
        """Return the machines of the job's GPUs and processes, ascending."""
        machine_of, placement = self._machine_of, job.placement
        used = {machine_of[gpu] for gpu in placement.gpus}
        if placement.hosts:
            used.update(share.machine for share in placement.hosts)
        return tuple(sorted(used)) if len(used) > 1 else tuple(used)

    def end(self, job: _Job) -> None:
        pass

    def slowdown(self, job: _Job, at: _Places) -> float:
        return self._model.slowdown(job.submitted, job.placement, _neighbours(job, at))


def _neighbours(job: _Job, at: _Places) -> list[tuple[SubmittedJob, Placement]]:
    """Return the other jobs on the job's machines with their placements, in the order of the workload."""
    machines = job.places
    if len(machines) == 1:
        neighbours = [other for other in at[machines[0]] if other is not job]
    else:
        neighbours = list({other: None for machine in machines for other in at[machine] if other is not job})
    if len(neighbours) > 1:
        neighbours.sort(key=_index)
    return [(other.submitted, other.placement) for other in neighbours]


class InteractingJobs:
    """Running jobs that can slow each other down, on the same machines, links or ports."""

    def __init__(self, sharing: _Sharing) -> None:
        self._sharing = sharing
        self._num_jobs = 0
        self._on: dict[int, dict[_Job, None]] = {}
        """The jobs at each place."""
        self._ends: list[tuple[float, int, int, _Job]] = []
        self._disturbed: set[int] = set()

    def __len__(self) -> int:
        return self._num_jobs

    def next_end(self) -> float:
        """Return the time in seconds at which the next job ends; infinite if no job runs."""
        ends = self._ends
        while ends and ends[0][3].stamp != ends[0][2]:
            heapq.heappop(ends)
        return ends[0][0] if ends else math.inf

    def start(self, record: JobRecord, now: float, seconds: float) -> None:
        """Add a job that runs for `seconds` from `now` at full speed; its record has its placement and its end."""
        placement = record.placement
        assert placement is not None
        job = self._added(_Job(record, placement, now, seconds))
        self._num_jobs += 1
        self._push(job)

    def keep(self, record: JobRecord) -> None:
        """Add a job that runs before time 0; it ends at the time in its record or never, whatever runs next to it."""
        placement = record.placement
        assert placement is not None
        job = self._added(_Job(record, placement, 0.0, record.end))
        job.is_kept = True
        if record.end < math.inf:
            self._num_jobs += 1
            self._push(job)

    def _added(self, job: _Job) -> _Job:
        """Put a job next to those at its places, and return it."""
        job.places = self._sharing.start(job)
        for place in job.places:
            self._on.setdefault(place, {})[job] = None
        self._disturbed.update(job.places)
        return job

    def ended(self, now: float) -> Iterator[JobRecord]:
        """Remove the jobs that end at `now`, and yield their records; `now` must come from `next_end`."""
        ends = self._ends
        while ends and ends[0][0] == now:
            _, _, stamp, job = heapq.heappop(ends)
            if stamp != job.stamp:
                continue
            self._remove(job)
            yield job.record

    def stop(self, record: JobRecord, now: float) -> tuple[float, float]:
        """Remove a job before its end; return its remaining and its total seconds of this stay at full speed."""
        job = next(job for _, _, stamp, job in self._ends if job.record is record and stamp == job.stamp)
        self._remove(job)
        self._ends = [entry for entry in self._ends if entry[3] is not job]
        heapq.heapify(self._ends)
        return max(job.left - (now - job.since) / job.slowdown, 0.0), job.alone

    def update(self, now: float) -> None:
        """Recompute the speed and the end time of each job at a place where jobs have started or ended."""
        disturbed = self._disturbed
        if not disturbed:
            return
        if len(disturbed) == 1:
            near: Iterable[_Job] = self._on[disturbed.pop()]
        else:
            near = {job: None for place in disturbed for job in self._on[place]}
            disturbed.clear()
        for job in near:
            if job.is_kept:
                continue
            slowdown = self._slowdown(job)
            if slowdown != job.slowdown:
                job.left = max(job.left - (now - job.since) / job.slowdown, 0.0)
                job.since, job.slowdown = now, slowdown
                record = job.record
                record.end = now + job.left * slowdown
                record.run_time = record.end - record.start
                if record.history:
                    record.run_time = record.history.ran + (record.end - record.history.since)
                job.stamp += 1
                self._push(job)

    def _remove(self, job: _Job) -> None:
        job.stamp = -1
        self._num_jobs -= 1
        for place in job.places:
            del self._on[place][job]
        self._disturbed.update(job.places)
        self._sharing.end(job)

    def _slowdown(self, job: _Job) -> float:
        factor = self._sharing.slowdown(job, self._on)
        if type(factor) is float and 0.0 < factor < math.inf:
            return factor
        return _checks.positive(factor, f"performance: slowdown for {job.submitted.job_id!r}", ValueError)

    def _push(self, job: _Job) -> None:
        end = job.record.end
        if not end <= MAX_NUMBER:
            raise _too_late(job.record)
        heapq.heappush(self._ends, (end, job.index, job.stamp, job))


def _too_late(record: JobRecord) -> ValueError:
    end = f"an end at {record.end:g} s for {record.submitted.job_id!r}"
    return ValueError(f"performance: {end}, later than {MAX_NUMBER:g} s")
