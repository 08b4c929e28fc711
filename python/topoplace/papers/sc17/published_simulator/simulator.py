"""The simulator that SC'17's authors published (github.com/HiEST/gpu-topo-aware), as an oracle: same jobs, same times.

What it does that the paper does not say, and this repeats:

- Time advances in steps of 1.1 s, added up in floating point; a submission is rounded up to a step, and of several
  rounded submissions that are due only the earliest is taken in a step. Jobs start before those that are done leave.
- A job takes the largest of its time alone in one socket, its time alone as it was placed, and its time beside each job
  that ever shared a socket with it: that never shrinks again. Nothing else makes it slower.
- FCFS and BF compare the number of GPUs a job needs with those free on machine 0, whatever the other machines have, and
  then take the last machine that has enough. FCFS fills sockets in order, BF the one with fewer free GPUs first; BF
  also forgets, until the step's end, the GPUs of every machine that it looked at.
- TOPO-AWARE looks at a new job only once machine 0 has enough free GPUs, at jobs put off before when any machine has.
- The order of equal submissions and of jobs that end in a step is that of Python 2's dictionaries.
- Of several jobs placed in one step by TOPO-AWARE a later one may get a GPU that an earlier one just got: both hold it,
  and the first to end frees it. On the published list of 100 jobs and 5 machines that happens 10 times.
- Where it deletes GPUs from a machine it walks a dictionary keyed by objects, in the order of their addresses: its
  answers change from one computer to another. Here the sockets are walked in their order.

Memory and CPU cores are added to what is free, not taken from it, so they never matter.
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
from topoplace.papers.sc17.published_simulator.placing import (
    GPUS,
    MAX_TASKS,
    SOCKET_OF,
    SOCKETS,
    Gpus,
    Neighbour,
    Part,
    Placer,
    placement_of,
    sockets_of,
)
from topoplace.papers.sc17.published_simulator.python2 import IntDict
from topoplace.simulate import Workload

STEP_S: Final = 1.1
_DIGITS: Final = 1
_MAX_MACHINES: Final = 1 << 16


@dataclass(slots=True)
class Job:
    """A job of a run; times are seconds, None until they are known. `utility` is the job's, where it was placed."""

    number: int
    job_id: str
    name: str
    num_gpus: int
    min_utility: float
    arrival: float
    """As in the workload."""
    submit: float
    """When the scheduler sees it."""
    time: float
    """How long it takes, as far as is known."""
    start: float | None = None
    end: float | None = None
    machine: int | None = None
    gpus: Gpus = ()
    utility: float | None = None
    sockets: frozenset[int] = frozenset()

    def neighbour(self) -> Neighbour:
        """The job as others see it."""
        return Neighbour(self.name, self.num_gpus, self.sockets)


class _Running(Protocol):
    """The running jobs of a machine by number, in an order of its own."""

    def __len__(self) -> int: ...
    def __getitem__(self, key: int, /) -> Job: ...
    def __setitem__(self, key: int, value: Job, /) -> None: ...
    def __delitem__(self, key: int, /) -> None: ...
    def __iter__(self) -> Iterator[int]: ...


@dataclass(slots=True)
class _Machine:
    """What is free and what runs; two jobs may hold one GPU, which the first of them to end then frees."""

    running: _Running
    free: list[bool] = field(default_factory=lambda: [True] * len(GPUS))
    _seen: tuple[Part, int] | None = None

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

    def seen(self, placer: Placer) -> tuple[Part, int]:
        """The machine as the placer sees it at the beginning of a step, and its class."""
        if self._seen is None:
            first, second = (
                tuple(gpu for gpu in GPUS if SOCKET_OF[gpu] == socket and self.free[gpu])
                for socket in SOCKETS
            )
            part = Part((first, second), frozenset(), tuple(job.neighbour() for job in self.jobs()))
            self._seen = part, placer.class_of(part)
        return self._seen


@dataclass(frozen=True)
class Run:
    """What came of a workload: its jobs in the order of its rows."""

    jobs: tuple[Job, ...]

    @property
    def makespan(self) -> float:
        """When the last job ended, in seconds; 0 without jobs."""
        return max((job.end for job in self.jobs if job.end is not None), default=0.0)

    def booked_twice(self) -> int:
        """How often a job got a GPU that another still held."""
        count = 0
        held_until: dict[tuple[int | None, int], float] = {}
        for job in sorted(self.jobs, key=lambda job: job.start or 0.0):
            for place in ((job.machine, gpu) for gpu in job.gpus):
                held = held_until.get(place, 0.0)
                count += held > (job.start or 0.0)
                held_until[place] = max(held, job.end or 0.0)
        return count

    def slowdown(self, job: Job, profile: PerformanceProfile) -> float:
        """How many times as long the job ran as it would alone at its best: the paper's QoS; NaN if it never ran."""
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
) -> Run:
    """Run the published simulator on machines of two sockets with two GPUs.

    policy: fcfs, bf, topo-aware or topo-aware-p. python2: whether dictionaries are walked as in CPython 2.7, which the
    authors used; else in the order of insertion, as after a port to Python 3. It matters where several jobs are
    submitted at once, or one starts beside another in the step in which that ends.
    Rows with equal submission times are submitted in the order of the rows; the program has them in that of the colours
    that its plots use, which `Workload.from_manifests` keeps and a CSV of the list has lost. Every job needs a
    profile with a time alone, and 1 to 3 GPUs; ValueError names the row that has not. A job that is never placed
    keeps `start` None.
    """
    if policy not in POLICIES:
        raise ValueError(f"policy = {_checks.shown(policy)}, not one of {', '.join(POLICIES)}")
    _checks.integer(num_machines, "num_machines", ValueError, low=1, high=_MAX_MACHINES)
    plain = all(job_id == str(_as_number(job_id)) for job_id in workload.job_ids)
    jobs = [_job(row, workload, profile, plain) for row in range(len(workload))]
    _Simulation(jobs, profile, POLICIES[policy], num_machines, python2).run()
    return Run(tuple(jobs))


def _as_number(job_id: str) -> int:
    return int(job_id) if job_id.isdecimal() and len(job_id) < 10 else -1


def _job(row: int, workload: Workload, profile: PerformanceProfile, plain: bool) -> Job:
    """The job of a row, numbered by its id where all ids are plain numbers, else by its row."""
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
    """The step at or after a time, as the published code rounds it."""
    rest = time % STEP_S
    step = time - rest
    return round(step + STEP_S if rest else step, _DIGITS)


class _Simulation:
    """The state between steps: jobs to be submitted, both queues, machines, and when machines should be looked at."""

    def __init__(
        self,
        jobs: Sequence[Job],
        profile: PerformanceProfile,
        discipline: Discipline,
        num_machines: int,
        python2: bool,
    ) -> None:
        self.profile = profile
        self.placer = Placer(profile, python2=python2)
        self.python2 = python2
        self.discipline = discipline
        self.machines = [_Machine(self.dictionary()) for _ in range(num_machines)]
        self.fresh: deque[Job] = deque()
        self.put_off: deque[Job] = deque()
        self.steps = [0.0]
        self.ends: list[tuple[int, int]] = []
        """(step, machine): a job of the machine ends in that step, unless it was slowed down since."""
        batches: dict[float, list[Job]] = {}
        for job in jobs:
            batches.setdefault(job.submit, []).append(job)
        self.batches = deque(sorted(batches.items()))

    def dictionary(self) -> _Running:
        """A dictionary of jobs by number with the order of one of the Pythons."""
        return IntDict[Job]() if self.python2 else dict[int, Job]()

    def run(self) -> None:
        """From step to step, over those in which nothing can happen."""
        step: int | None = 0
        while step is not None:
            queues = [*self.fresh], [*self.put_off]
            submitted = self._submit(self.steps[step])
            started = self._start(self.steps[step])
            ended = self._update(step, started)
            idle = not (submitted or started or ended) and queues == ([*self.fresh], [*self.put_off])
            step = self._next_event(step) if idle else step + 1
            if step is not None:
                self._extend(step)

    def put(self, job: Job, machine: int, gpus: Gpus, neighbours: Sequence[Neighbour] | None = None) -> None:
        """Decide where a job runs; neighbours: those it will have, if not just what runs there now."""
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
        """Let the discipline decide; the machines on which jobs start."""
        if not (self.fresh or self.put_off):
            return set()
        changed: set[int] = set()
        for job in self.discipline(self):
            if job.machine is None:
                self.put_off.append(job)
            else:
                job.start = now
                self.machines[job.machine].hold(job)
                changed.add(job.machine)
        return changed

    def _update(self, step: int, started: set[int]) -> bool:
        """Slow down and end jobs; only machines that changed, or where one is due, can be concerned."""
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

    def _time(self, job: Job, machine: _Machine) -> float:
        """How long a running job takes, now that it has these neighbours."""
        profile = self.profile
        alone = profile.solo.get((job.name, job.num_gpus, placement_of(job.sockets)), 0.0)
        kind = job.name, job.num_gpus
        beside = (
            profile.colocation.get((*kind, other.name, other.num_gpus), 0.0)
            for other in machine.jobs()
            if other is not job and other.sockets & job.sockets
        )
        return max(job.time, alone, *beside)

    def _last_step(self, job: Job, step: int) -> int:
        """The step in which a running job ends, if nothing slows it down."""
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
        """The next step in which a job is submitted or may end; None where there is none."""
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


# ---- what decides in each step -------------------------------------------------------------------------------------

Discipline = Callable[[_Simulation], list[Job]]
"""Takes jobs from the queues and returns them in the order they are started, or put off where `machine` is None."""


@dataclass(slots=True)
class _Unused:
    """The free GPUs of every machine while a step's jobs are given theirs."""

    gpus: list[Gpus]
    counts: list[int]

    @classmethod
    def of(cls, machines: Sequence[_Machine]) -> _Unused:
        gpus = [tuple(gpu for gpu in GPUS if machine.free[gpu]) for machine in machines]
        return cls(gpus, [len(free) for free in gpus])

    def enough(self, num_gpus: int) -> list[int]:
        """The machines that have so many, in order."""
        return [machine for machine, count in enumerate(self.counts) if count >= num_gpus]

    def take(self, machine: int, gpus: Gpus) -> None:
        self.gpus[machine] = tuple(gpu for gpu in self.gpus[machine] if gpu not in gpus)
        self.counts[machine] -= len(gpus)


Place = Callable[[_Simulation, Job, _Unused], bool]
"""Gives a job its GPUs and takes away what is then no longer free; whether there were any."""


def _in_turn(simulation: _Simulation, *, place: Place, strict: bool) -> list[Job]:
    """FCFS and BF: one job after another while machine 0 has enough free GPUs; strict: none overtakes another."""
    waiting = simulation.dictionary()
    for queue in (simulation.put_off, simulation.fresh):
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
    for job in reversed(eligible):  # of equal arrivals the last goes first
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
    """Free GPUs, those of the socket that has fewer of them first; of equal sockets the last."""
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


class _Found(NamedTuple):
    """Where a job would run, and what that is worth to it."""

    machine: int
    gpus: Gpus
    utility: float


class _View:
    """The machines as the placer sees them in a step, those given away in it included."""

    def __init__(self, simulation: _Simulation) -> None:
        self.simulation = simulation
        seen = [machine.seen(simulation.placer) for machine in simulation.machines]
        self.parts = [part for part, _ in seen]
        self.classes = [number for _, number in seen]
        self.free = [sum(machine.free) for machine in simulation.machines]
        self._known: dict[tuple[str, int], _Found | None] = {}

    def best(self, name: str, num_gpus: int) -> _Found | None:
        """Where a job kind would run now; worked out once until something is given away."""
        kind = name, num_gpus
        if kind not in self._known:
            self._known[kind] = self._best(name, num_gpus) if max(self.free) >= num_gpus else None
        return self._known[kind]

    def _best(self, name: str, num_gpus: int) -> _Found | None:
        placer = self.simulation.placer
        machine, gpus = placer.place(name, num_gpus, self.classes, self.free)
        if len(gpus) != num_gpus or num_gpus > self.free[machine]:
            return None
        return _Found(machine, gpus, placer.job_utility(name, gpus, self.parts[machine].neighbours))

    def put(self, job: Job, found: _Found) -> None:
        """Give a job its GPUs, even those that were given away before."""
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
    """New jobs that machine 0 has enough GPUs for, then those put off that any machine has, machine by machine."""
    yield from _taken(simulation.fresh, free[0])
    enough = 0
    for count in free:
        if count > enough:
            enough = count
            yield from _taken(simulation.put_off, enough)


def _taken(queue: deque[Job], enough: int) -> Iterator[Job]:
    """Take the jobs that need no more GPUs than that out of a queue."""
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
