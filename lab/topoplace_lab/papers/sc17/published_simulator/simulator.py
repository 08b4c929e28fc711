"""A port of the simulator that SC'17's authors published (github.com/HiEST/gpu-topo-aware), with equal results.

The original behaves in ways that the paper does not mention; this module repeats them:

- Time advances in steps of 1.1 s, added up in floating point. A submission is rounded up to a step. If several rounded
  submissions are due, a step takes only the earliest. Jobs start before finished jobs leave.
- The run time of a job is the largest of three times: alone in one socket, alone as placed, and next to its neighbours.
  A neighbour is any job that ever shared a socket with it. The run time never shrinks again, and nothing else slows a
  job down.
- FCFS (first come, first served) and BF (best fit) start a job only if machine 0 has enough free GPUs. They then use
  the last machine that has enough. FCFS fills sockets in order, BF the socket with fewer free GPUs first. BF also
  ignores, until the end of the step, the GPUs that it would have used on every machine it tried.
- TOPO-AWARE considers a new job once machine 0 has enough free GPUs, and a postponed job once any machine has enough.
- The order of equal submissions, and of jobs that finish in the same step, is that of Python 2's dictionaries.
- If TOPO-AWARE places several jobs in one step, a later job may get a GPU that an earlier one just got. Both then hold
  it, and the first to finish frees it. On the published list of 100 jobs and 5 machines, this happens 10 times.
- When the original deletes GPUs from a machine, it iterates over a dictionary in the order of memory addresses. Its
  answers therefore differ between computers. Here, the sockets are visited in order.

Memory and CPU cores are added to the free resources instead of taken from them, so they never matter.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from heapq import heappop, heappush
from itertools import takewhile
from types import MappingProxyType
from typing import Final, NamedTuple, Protocol

from topoplace import _checks
from topoplace.jobs.performance_profile import PerformanceProfile
from topoplace_lab.papers.sc17.published_simulator.placing import (
    GPUS,
    MAX_TASKS,
    SOCKET_OF,
    SOCKETS,
    Gpus,
    SimulatedNeighbour,
    SimulatedPart,
    SimulatedPlacer,
    placement_of,
    sockets_of,
)
from topoplace_lab.papers.sc17.published_simulator.python2 import IntDict
from topoplace_lab.simulate import Workload

STEP_S: Final = 1.1
_DIGITS: Final = 1
_MAX_MACHINES: Final = 1 << 16


@dataclass(slots=True)
class Job:
    """A job of a simulation and its state. Times are in seconds; values are None until known.

    number: the job id if all ids are numbers, else the row. name: the application. utility: the utility of the job's
    placement to the job, 0 to 1.
    """

    number: int
    job_id: str
    name: str
    num_gpus: int
    min_utility: float
    arrival: float
    """Submission time in the workload."""
    submit: float
    """Time of the step in which the scheduler sees the job."""
    time: float
    """Run time, which grows when jobs that slow this one down start next to it."""
    start: float | None = None
    end: float | None = None
    machine: int | None = None
    gpus: Gpus = ()
    utility: float | None = None
    sockets: frozenset[int] = frozenset()

    def neighbour(self) -> SimulatedNeighbour:
        """Return the properties of the job on which its interference with other jobs depends."""
        return SimulatedNeighbour(self.name, self.num_gpus, self.sockets)


class _Running(Protocol):
    """The running jobs of a machine by job number: a dictionary that iterates in the order of Python 2 or 3."""

    def __len__(self) -> int: ...
    def __getitem__(self, key: int, /) -> Job: ...
    def __setitem__(self, key: int, value: Job, /) -> None: ...
    def __delitem__(self, key: int, /) -> None: ...
    def __iter__(self) -> Iterator[int]: ...


@dataclass(slots=True)
class _SimulatedMachine:
    """A machine with its free GPUs and running jobs.

    By a mistake of the published code, two jobs may hold one GPU; it becomes free when either job finishes.
    """

    running: _Running
    free: list[bool] = field(default_factory=lambda: [True] * len(GPUS))
    _seen: tuple[SimulatedPart, int] | None = None

    def hold(self, job: Job) -> None:
        self.running[job.number] = job
        self._set_free(job, False)

    def release(self, job: Job) -> None:
        del self.running[job.number]
        self._set_free(job, True)

    def _set_free(self, job: Job, free: bool) -> None:
        for gpu in job.gpus:
            self.free[gpu] = free
        self._seen = None

    def jobs(self) -> list[Job]:
        return [self.running[number] for number in self.running]

    def seen(self, placer: SimulatedPlacer) -> tuple[SimulatedPart, int]:
        """Return the free GPUs and running jobs as a `SimulatedPart`, and the number of machines in equal state.

        Called before the jobs of a time step start; `SimulatedPlacer.class_of` gives the number.
        """
        if self._seen is None:
            first, second = (
                tuple(gpu for gpu in GPUS if SOCKET_OF[gpu] == socket and self.free[gpu])
                for socket in SOCKETS
            )
            part = SimulatedPart((first, second), frozenset(), tuple(job.neighbour() for job in self.jobs()))
            self._seen = part, placer.class_of(part)
        return self._seen


@dataclass(frozen=True)
class SimulatorRun:
    """The result of a simulation: the jobs, in the order of the workload's rows."""

    jobs: tuple[Job, ...]

    @property
    def makespan(self) -> float:
        """Return the end of the last job in seconds; 0 without jobs."""
        return max((job.end for job in self.jobs if job.end is not None), default=0.0)

    def booked_twice(self) -> int:
        """Return how often a job got a GPU that another job still held, a mistake of the published code."""
        count = 0
        held_until: dict[tuple[int | None, int], float] = {}
        for job in sorted(self.jobs, key=lambda job: job.start or 0.0):
            for place in ((job.machine, gpu) for gpu in job.gpus):
                held = held_until.get(place, 0.0)
                count += held > (job.start or 0.0)
                held_until[place] = max(held, job.end or 0.0)
        return count

    def slowdown(self, job: Job, profile: PerformanceProfile) -> float:
        """Return a job's run time over its best time alone (the paper's QoS slowdown).

        NaN if the job never finished or `profile` has no time of it alone.
        """
        ideal = profile.ideal_time(job.name, job.num_gpus)
        return (
            (job.end - job.start) / ideal
            if job.end is not None and job.start is not None and ideal
            else math.nan
        )


def simulate(
    workload: Workload,
    profile: PerformanceProfile,
    policy: str,
    num_machines: int = 1,
    *,
    python2: bool = True,
) -> SimulatorRun:
    """Simulate a workload as SC'17's published program does, on machines with two sockets of two GPUs each.

    profile: measured run times, alone and in pairs. policy: fcfs, bf, topo-aware or topo-aware-p.
    python2: iterate over dictionaries as CPython 2.7, which the authors used; else in the order of insertion, as
    Python 3 does. This matters if several jobs are submitted at once, or if a job starts next to another in the step
    in which the other finishes.

    Jobs with equal submission times are submitted in the order of the rows. The published program orders them by the
    colours of its plots; `Workload.from_manifests` keeps this order, a CSV of the list does not. Every job must have
    1 to 3 GPUs and a measured time alone in one socket; otherwise ValueError names its row. ValueError also for an
    unknown policy. A job that is never placed keeps `start` None.
    """
    if policy not in POLICIES:
        raise ValueError(f"policy = {_checks.shown(policy)}, not one of {', '.join(POLICIES)}")
    _checks.integer(num_machines, "num_machines", ValueError, low=1, high=_MAX_MACHINES)
    plain = all(job_id == str(_as_number(job_id)) for job_id in workload.job_ids)
    jobs = [_job(row, workload, profile, plain) for row in range(len(workload))]
    _Simulation(jobs, profile, POLICIES[policy], num_machines, python2).run()
    return SimulatorRun(tuple(jobs))


def _as_number(job_id: str) -> int:
    return int(job_id) if job_id.isdecimal() and len(job_id) < 10 else -1


def _job(row: int, workload: Workload, profile: PerformanceProfile, plain: bool) -> Job:
    """Return the job of a row of the workload; its number is its id if `plain` (all ids are numbers), else the row."""
    job, job_id = workload.jobs[row], workload.job_ids[row]
    alone = profile.solo.get((job.profile or "", job.num_tasks, "intra-socket"))
    if alone is None or job.num_tasks > MAX_TASKS:
        what = f"profile {_checks.shown(job.profile)} on {job.num_tasks} GPUs"
        raise ValueError(f"jobs[{row}]: {what}: no time alone in one socket, or more than {MAX_TASKS} GPUs")
    return Job(
        _as_number(job_id) if plain else row,
        job_id,
        job.profile or "",
        job.num_tasks,
        job.min_utility,
        arrival := float(workload.submit_time[row]),
        _rounded_up(arrival),
        alone,
    )


def _rounded_up(time: float) -> float:
    """Return the time in seconds of the first time step at or after `time`.

    As in the published code, rounding sends some exact multiples of a step one step further (64.9 to 66.0).
    """
    rest = time % STEP_S
    step = time - rest
    return round(step + STEP_S if rest else step, _DIGITS)


class _Simulation:
    """The state of a simulation between two time steps.

    It consists of the jobs to submit, the queues of new and of postponed jobs, the machines, and the steps in which
    jobs may finish.
    """

    def __init__(
        self,
        jobs: Sequence[Job],
        profile: PerformanceProfile,
        discipline: Discipline,
        num_machines: int,
        python2: bool,
    ) -> None:
        self.profile = profile
        self.placer = SimulatedPlacer(profile, python2=python2)
        self.python2 = python2
        self.discipline = discipline
        self.machines = [_SimulatedMachine(self.dictionary()) for _ in range(num_machines)]
        self.fresh: deque[Job] = deque()
        self.postponed: deque[Job] = deque()
        self.steps = [0.0]
        self.ends: list[tuple[int, int]] = []
        """Heap of (step, machine): a job of the machine finishes in that step, unless it was slowed down since."""
        batches: dict[float, list[Job]] = {}
        for job in jobs:
            batches.setdefault(job.submit, []).append(job)
        self.batches = deque(sorted(batches.items()))

    def dictionary(self) -> _Running:
        """Return an empty dictionary of jobs by number that iterates in the order of Python 2 or 3, as configured."""
        return IntDict[Job]() if self.python2 else dict[int, Job]()

    def run(self) -> None:
        """Simulate all time steps in turn until nothing more can happen, skipping steps without an event."""
        step: int | None = 0
        while step is not None:
            queues = [*self.fresh], [*self.postponed]
            submitted = self._submit(self.steps[step])
            started = self._start(self.steps[step])
            ended = self._update(step, started)
            idle = not (submitted or started or ended) and queues == ([*self.fresh], [*self.postponed])
            step = self._next_event(step) if idle else step + 1
            if step is not None:
                self._extend(step)

    def put(
        self, job: Job, machine: int, gpus: Gpus, neighbours: Sequence[SimulatedNeighbour] | None = None
    ) -> None:
        """Record a job's machine, GPUs, and the utility of this placement to the job.

        neighbours: jobs that will run on the machine; by default those that run there at the beginning of the step.
        """
        job.machine, job.gpus, job.sockets = machine, gpus, sockets_of(gpus)
        if neighbours is None:
            neighbours = self.machines[machine].seen(self.placer)[0].neighbours
        job.utility = self.placer.job_utility(job.name, gpus, neighbours)

    def _submit(self, now: float) -> bool:
        if not self.batches or self.batches[0][0] > now:
            return False
        for job in self.batches.popleft()[1]:
            job.submit = round(now, _DIGITS)
            self.fresh.append(job)
        return True

    def _start(self, now: float) -> set[int]:
        """Start the jobs that the policy places and postpone the others; return the machines of started jobs."""
        if not (self.fresh or self.postponed):
            return set()
        changed: set[int] = set()
        for job in self.discipline(self):
            if job.machine is None:
                self.postponed.append(job)
            else:
                job.start = now
                self.machines[job.machine].hold(job)
                changed.add(job.machine)
        return changed

    def _update(self, step: int, started: set[int]) -> bool:
        """Update run times and finish jobs on machines where a job starts or is due; return True if any finished."""
        concerned = set(started)
        while self.ends and self.ends[0][0] <= step:
            concerned.add(heappop(self.ends)[1])
        now = self.steps[step]
        ended = False
        for index in sorted(concerned):
            machine = self.machines[index]
            for job in machine.jobs():
                job.time = self._time(job, machine)
                if job.time <= now - (job.start or 0.0):
                    machine.release(job)
                    job.end = now
                    ended = True
            for job in machine.jobs():
                heappush(self.ends, (self._last_step(job, step), index))
        return ended

    def _time(self, job: Job, machine: _SimulatedMachine) -> float:
        """Return a job's run time in seconds: the largest of its current one and those measured next to its neighbours.

        Only jobs on the same sockets count as neighbours.
        """
        profile = self.profile
        alone = profile.solo.get((job.name, job.num_gpus, placement_of(job.sockets)), 0.0)
        kind = job.name, job.num_gpus
        shared = (
            profile.colocation.get((*kind, other.name, other.num_gpus), 0.0)
            for other in machine.jobs()
            if other is not job and other.sockets & job.sockets
        )
        return max(job.time, alone, *shared)

    def _last_step(self, job: Job, step: int) -> int:
        """Return the number of the step in which a running job finishes unless it is slowed down further."""
        start = job.start or 0.0
        while self.steps[-1] - start < job.time:
            self._extend(len(self.steps))
        end = bisect_left(self.steps, start + job.time)
        while end > 0 and self.steps[end - 1] - start >= job.time:
            end -= 1
        while self.steps[end] - start < job.time:
            end += 1
            self._extend(end)
        return max(end, step + 1)

    def _next_event(self, step: int) -> int | None:
        """Return the number of the next step in which a job is submitted or may finish; None if there is none."""
        coming = [self.ends[0][0]] if self.ends else []
        if self.batches:
            due = self.batches[0][0]
            while self.steps[-1] < due:
                self._extend(len(self.steps))
            coming.append(max(bisect_left(self.steps, due), step + 1))
        return min(coming, default=None)

    def _extend(self, step: int) -> None:
        while len(self.steps) <= step:
            self.steps.append(self.steps[-1] + STEP_S)


# ---- disciplines ----------------------------------------------------------------------------------------------------

Discipline = Callable[[_Simulation], list[Job]]
"""A policy: a function that takes jobs from the queues, places some, and returns all in order.

Returned jobs without a `machine` are postponed.
"""


@dataclass(slots=True)
class _Unused:
    """The free GPUs of every machine, and their number, while FCFS or BF places the jobs of one time step."""

    gpus: list[Gpus]
    counts: list[int]

    @classmethod
    def of(cls, machines: Sequence[_SimulatedMachine]) -> _Unused:
        gpus = [tuple(gpu for gpu in GPUS if machine.free[gpu]) for machine in machines]
        return cls(gpus, [len(free) for free in gpus])

    def enough(self, num_gpus: int) -> list[int]:
        """Return the machines with at least `num_gpus` free GPUs, in order."""
        return [machine for machine, count in enumerate(self.counts) if count >= num_gpus]

    def take(self, machine: int, gpus: Gpus) -> None:
        self.gpus[machine] = tuple(gpu for gpu in self.gpus[machine] if gpu not in gpus)
        self.counts[machine] -= len(gpus)


Place = Callable[[_Simulation, Job, _Unused], bool]
"""A function that gives a job GPUs and removes them from the free ones; it returns False if there are too few."""


def _in_turn(simulation: _Simulation, *, place: Place, strict: bool) -> list[Job]:
    """Place waiting jobs as the policies FCFS and BF do: by arrival, each only if machine 0 has enough free GPUs.

    place: chooses the GPUs. strict: stop at the first job that does not fit (FCFS). Returns all jobs taken from the
    queues, latest arrival first.
    """
    waiting = simulation.dictionary()
    for queue in (simulation.postponed, simulation.fresh):
        while queue:
            job = queue.popleft()
            waiting[job.number] = job
    everyone = sorted((waiting[number] for number in waiting), key=_arrival)
    enough = sum(simulation.machines[0].free)
    eligible = everyone if enough else []
    if strict:
        eligible = list(takewhile(lambda job: job.num_gpus <= enough, eligible))
    unused = _Unused.of(simulation.machines if eligible else ())
    eligible = sorted(eligible, key=_arrival, reverse=True)
    for job in reversed(eligible):  # of equal arrivals, the last goes first
        if job.num_gpus <= enough and not place(simulation, job, unused) and strict:
            break
    return sorted(everyone, key=_arrival, reverse=True)


def _arrival(job: Job) -> float:
    return job.arrival


def _first_come(simulation: _Simulation, job: Job, unused: _Unused) -> bool:
    machines = unused.enough(job.num_gpus)
    for machine in machines[-1:]:
        simulation.put(job, machine, unused.gpus[machine][: job.num_gpus])
        unused.take(machine, job.gpus)
    return bool(machines)


def _best_fit(simulation: _Simulation, job: Job, unused: _Unused) -> bool:
    machines = unused.enough(job.num_gpus)
    for machine in machines:
        gpus = _fullest_first(unused.gpus[machine])[: job.num_gpus]
        unused.take(machine, gpus)  # on every machine, not only on the one where the job will run
        if machine == machines[-1]:
            simulation.put(job, machine, gpus)
    return bool(machines)


def _fullest_first(free: Gpus) -> Gpus:
    """Return free GPUs, starting with the socket that has fewer free ones; if equal, with the last socket."""
    sockets = [[gpu for gpu in free if SOCKET_OF[gpu] == socket] for socket in SOCKETS]
    sockets.sort(key=len)
    if len(sockets[0]) == len(sockets[1]):
        sockets.reverse()
    return (*sockets[0], *sockets[1])


def _topology_aware(simulation: _Simulation, *, postpone: bool) -> list[Job]:
    view = _View(simulation)
    decided = list(_looked_at(simulation, list(view.free)))
    for job in decided:
        found = view.best(job.name, job.num_gpus)
        if found and not (postpone and found.utility < job.min_utility):
            view.put(job, found)
    return decided


class _FoundPlace(NamedTuple):
    """A placement found for a job: the machine, its GPUs, and their utility to the job (0 to 1)."""

    machine: int
    gpus: Gpus
    utility: float


class _View:
    """The machines as TOPO-AWARE sees them during one time step, updated after each job that it places."""

    def __init__(self, simulation: _Simulation) -> None:
        self.simulation = simulation
        seen = [machine.seen(simulation.placer) for machine in simulation.machines]
        self.parts = [part for part, _ in seen]
        self.classes = [number for _, number in seen]
        self.free = [sum(machine.free) for machine in simulation.machines]
        self._known: dict[tuple[str, int], _FoundPlace | None] = {}

    def best(self, name: str, num_gpus: int) -> _FoundPlace | None:
        """Return the placement for a job by application and number of GPUs; None if there is none.

        It is cached until the next job gets GPUs.
        """
        kind = name, num_gpus
        if kind not in self._known:
            self._known[kind] = self._best(name, num_gpus) if max(self.free) >= num_gpus else None
        return self._known[kind]

    def _best(self, name: str, num_gpus: int) -> _FoundPlace | None:
        placer = self.simulation.placer
        machine, gpus = placer.place(name, num_gpus, self.classes, self.free)
        if len(gpus) != num_gpus or num_gpus > self.free[machine]:
            return None
        return _FoundPlace(machine, gpus, placer.job_utility(name, gpus, self.parts[machine].neighbours))

    def put(self, job: Job, found: _FoundPlace) -> None:
        """Give a job the GPUs found for it, even if an earlier job of the same step got some of them."""
        part = self.parts[found.machine]
        self.simulation.put(job, found.machine, found.gpus, part.neighbours)
        part = replace(
            part, taken=part.taken.union(found.gpus), neighbours=(*part.neighbours, job.neighbour())
        )
        self.parts[found.machine] = part
        self.classes[found.machine] = self.simulation.placer.class_of(part)
        self.free[found.machine] = len(part.free)
        self._known.clear()


def _looked_at(simulation: _Simulation, free: Sequence[int]) -> Iterator[Job]:
    """Remove from the queues and yield the jobs that TOPO-AWARE considers in this step.

    They are new jobs for which machine 0 has enough free GPUs, then postponed jobs for which any machine has enough.
    free: number of free GPUs of each machine.
    """
    yield from _taken(simulation.fresh, free[0])
    enough = 0
    for count in free:
        if count > enough:
            enough = count
            yield from _taken(simulation.postponed, enough)


def _taken(queue: deque[Job], enough: int) -> Iterator[Job]:
    """Remove the jobs that need at most `enough` GPUs from a queue and yield them."""
    for _ in range(len(queue)):
        job = queue.popleft()
        if job.num_gpus <= enough:
            yield job
        else:
            queue.append(job)


POLICIES: Final[Mapping[str, Discipline]] = MappingProxyType(
    {
        "fcfs": partial(_in_turn, place=_first_come, strict=True),
        "bf": partial(_in_turn, place=_best_fit, strict=False),
        "topo-aware": partial(_topology_aware, postpone=False),
        "topo-aware-p": partial(_topology_aware, postpone=True),
    }
)
