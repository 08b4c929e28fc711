"""Run times from steps that compute and communicate: the default model of simulations."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

import topoplace
from topoplace import _checks, kernels
from topoplace.cluster.cluster import Cluster
from topoplace.engine.admission import suits_of
from topoplace.engine.memo import Memo
from topoplace.engine.request import request_key
from topoplace.objectives.communication import Exchange
from topoplace.topology.accelerators import USUAL_EFFICIENCY, peak_tflop_per_s
from topoplace.topology.ports import Ports
from topoplace.topology.topology import Topology
from topoplace_lab.simulate.performance.models import MapaSlowdown

if TYPE_CHECKING:
    from topoplace.jobs.job_graph import JobGraph
    from topoplace.placement import Placement
    from topoplace.topology.devices import Gpu
    from topoplace_lab.simulate.workloads.submitted_job import SubmittedJob

_MOST_GANGS: Final = 256
"""Limit on the placements on several machines that are kept; such placements have many flows and seldom recur."""
_ROUNDING: Final = 1e-9
"""A time that is longer by up to this share counts as equal."""


class StepTime:
    """A model in which every step of a job computes and then communicates, on ports shared with other jobs.

    Communication on the job's GPUs takes c seconds by `communication_time`, next to the running jobs on the same ports.
    On the job's best GPUs on the idle topology, it takes b seconds; these are the GPUs of the policy least-time without
    slack. The base time of a job is its run time alone on the best GPUs:

        run time = base time * step(c) / step(b)
        step(c) = compute + communication - overlap * min(compute, communication)

    - With a step in `steps`, (compute_s, gigabytes), compute = compute_s and communication = gigabytes * c.
    - Without one, for a job with `tflop`, such as a job with `Traffic.of`: communication = c, so the weights of its
      graph are GB. compute = tflop / (efficiency * the peak of the slowest of its GPUs, in 10¹² operations per second).
      If GPUs differ, the best ones are those with the shortest step: least-time searches among all GPUs and among the
      faster ones.
    - Without both, communication is a share s of a step on the best GPUs: compute = 1 - s, communication = s * c / b.
      This also holds for a job with `tflop` if the peak of a GPU model that it may use is unknown.

    A share (not a step) applies only to jobs that are slower on slower links. These are `bandwidth_sensitive` jobs, and
    jobs that state their collectives, such as jobs with `Traffic`. All others take their base time, but their flows
    slow down the jobs next to them. Jobs whose tasks do not communicate take their base time; with `tflop`, they take
    longer on slower GPUs.

    An elastic job on r of its R tasks does the work of R: compute takes R / r times as long in a step, which
    communicates as the r tasks do. b is that of R tasks.

    When a job starts or ends, the speed of the jobs that share a port with it changes. A flow counts on a port as
    long as its job runs, whether the job computes or communicates at that moment.

    Args:
        steps: (compute_s, gigabytes) of a measured step by the job's `profile` (its neural network). Both are at least
            0, and one is above 0. The gigabytes correspond to a weight of 1 in the job's graph: the buffer of a ring's
            all-reduce, or 1 for a graph whose weights are GB.
        default_step: The step of jobs that are not in `steps`; None uses their share.
        shares: s by `profile`, 0..1; by default those that MAPA's figures imply.
        default_share: s of other jobs.
        overlap: The part of the shorter phase (computing or communicating) that the longer one hides, 0..1; 0 by
            default.
        efficiency: The share of its peak that a GPU reaches while it computes, 0.001..1. The default is 0.4: Llama 3
            405B reached 0.38 to 0.43 of H100 over whole steps (arXiv 2407.21783, table 4). Megatron-LM reached 0.44 to
            0.52 of A100 (arXiv 2104.04473, table 1).
        measured_on: The topology on which the base times were measured, alone on the best GPUs. Its GPUs give b, and
            jobs may be faster than on it. Without `tflop`, all GPUs compute as fast as these, and only links differ.
            None takes the topology of the simulation; so do jobs that do not fit the given one.

    Raises:
        ValueError: Names a wrong argument.
    """

    def __init__(
        self,
        steps: Mapping[str, tuple[float, float]] = MappingProxyType({}),
        *,
        default_step: tuple[float, float] | None = None,
        shares: Mapping[str, float] = MapaSlowdown.SHARES,
        default_share: float = 0.2,
        overlap: float = 0.0,
        efficiency: float = USUAL_EFFICIENCY,
        measured_on: Topology | None = None,
    ) -> None:
        _checks.instance(steps, Mapping, "steps", ValueError)
        self.steps = {
            _checks.text(name, "a profile of steps", ValueError): _step(step, f"steps[{_checks.shown(name)}]")
            for name, step in steps.items()
        }
        self.default_step = None if default_step is None else _step(default_step, "default_step")
        _checks.instance(shares, Mapping, "shares", ValueError)
        self.shares = {
            _checks.text(name, "a profile of shares", ValueError): _share(
                share, f"shares[{_checks.shown(name)}]"
            )
            for name, share in shares.items()
        }
        self.default_share = _share(default_share, "default_share")
        self.overlap = _share(overlap, "overlap")
        self.efficiency = _checks.real(efficiency, "efficiency", ValueError, low=0.001, high=1.0)
        if measured_on is not None:
            _checks.instance(measured_on, Topology, "measured_on", ValueError)
        self.measured_on = measured_on

    def run_time(self, job: SubmittedJob, placement: Placement, random: np.random.Generator) -> float:
        """Return the run time in seconds of the job alone; ValueError if tasks that communicate have no path."""
        placed = _placed(job, placement)
        if placed is None:
            return job.base_time
        slowdown = self.slowdown_at(placed, placed.alone.seconds)
        if slowdown == math.inf:
            raise ValueError(
                f"performance: job {job.job_id!r} has tasks that communicate, on GPUs without a path; state the links "
                "or the network, or use FixedTime"
            )
        return job.base_time * slowdown

    def running(self, topology: Topology) -> RunningSteps:
        """Return the empty set of a simulation's running jobs."""
        return RunningSteps(self, topology)

    def slowdown_at(self, placed: _Placed, seconds: float) -> float:
        """Return the run time over the base time if communication takes this many seconds."""
        job, base = placed.stated, self._base(placed)
        best, longer = base.seconds, job.num_tasks / max(1, placed.job.num_tasks)
        base_compute, rate = self._parts(job, base, best)
        compute = self._parts(job, placed.alone, best)[0] if base.tflop_per_s else base_compute
        is_as_near = abs(seconds - best) <= best * _ROUNDING < math.inf
        if not rate or (is_as_near and compute == base_compute and longer == 1):
            return 1.0
        if seconds == math.inf:
            return math.inf
        step_s = self._step_s(longer * compute, rate * seconds)
        return step_s / (longer * self._step_s(base_compute, rate * best))

    def _base(self, placed: _Placed) -> _Speeds:
        """Return the speeds of the base time; a placement that is faster than the best ones known has them itself.

        Their `tflop_per_s` is None if a step does not follow from the job's operations.
        """
        job, alone = placed.stated, placed.alone
        elsewhere = () if self.measured_on is None else self.measured_on.derived(_Times).best(job)
        found = elsewhere or placed.alternatives
        if alone.tflop_per_s and self._measured_step(job) is None and all(one.tflop_per_s for one in found):
            return min(
                found, key=lambda one: self._step_s(self._parts(job, one, one.seconds)[0], one.seconds)
            )
        return _Speeds(min([one.seconds for one in found]), None)

    def _step_s(self, compute: float, communication: float) -> float:
        return compute + communication - self.overlap * min(compute, communication)

    def _measured_step(self, job: JobGraph) -> tuple[float, float] | None:
        return self.steps.get(job.profile or "", self.default_step)

    def _parts(self, job: JobGraph, speeds: _Speeds, best: float) -> tuple[float, float]:
        """Return the seconds of computing in a step, and those of communication for each second on the ports."""
        step = self._measured_step(job)
        if step is not None:
            return step
        if job.tflop and speeds.tflop_per_s:
            return job.tflop / (speeds.tflop_per_s * job.gpu_share * self.efficiency), 1.0
        if not best or not (job.bandwidth_sensitive or job.stated_collectives):
            return 1.0, 0.0
        share = self.shares.get((job.profile or "").removesuffix(".sh"), self.default_share)
        return 1 - share, share / best


class _Speeds(NamedTuple):
    """How fast a job is on certain GPUs, alone."""

    seconds: float
    """Of communication in a step."""
    tflop_per_s: float | None
    """The peak of its slowest GPU; None for a job without `tflop`, or if a model that it may use has no known peak."""


class _Placed(NamedTuple):
    """A job on certain GPUs."""

    job: JobGraph
    """Kept, as others know it by its id."""
    stated: JobGraph
    """The job in the form whose base time is known; another one only if the job is elastic."""
    exchange: Exchange
    alone: _Speeds
    best: Sequence[_Speeds]
    """The same on the best GPUs of each speed; none if they are not known."""
    ports: tuple[int, ...]
    """The ports that it may share with other jobs."""

    @property
    def alternatives(self) -> Sequence[_Speeds]:
        """Return the speeds to choose the base time from; with its own, if the job is in its stated form."""
        return self.best if self.best and self.job is not self.stated else (*self.best, self.alone)


def _placed(job: SubmittedJob, placement: Placement) -> _Placed | None:
    """Return the job on its GPUs; None if its tasks do not communicate and their operations are not known."""
    stated = job.stated or job.job
    if not stated.num_tasks or (not stated.edges and stated.tflop is None):
        return None
    return placement.topology.derived(_Times).of(job.job, placement.gpus, stated)


class _Times:
    """How long jobs communicate on a topology: on certain GPUs, and on the best."""

    def __init__(self, topology: Topology) -> None:
        self._topology = topology
        self._ports = topology.derived(Ports)
        self._machine_of: list[int] = topology.machine_of.tolist()
        self._like = _first_like_machines(topology)
        self._first_gpu: list[int] = np.unique(topology.machine_of, return_index=True)[1].tolist()
        self._on_one: Memo[tuple[tuple[int, int], tuple[int, ...]], _Placed] = Memo()
        """By the identities of the graph and of its stated form, and GPUs on the first of like machines."""
        self._gangs: Memo[tuple[tuple[int, int], tuple[int, ...]], _Placed] = Memo(_MOST_GANGS)
        self._best: Memo[int, tuple[JobGraph, Sequence[_Speeds]]] = Memo()
        self._best_alike: dict[object, tuple[JobGraph, Sequence[_Speeds]]] = {}

    def of(self, job: JobGraph, gpus: tuple[int, ...], stated: JobGraph) -> _Placed:
        """Return a job on these GPUs; stated: its form whose base time is known."""
        machine_of, forms = self._machine_of, (id(job), id(stated))
        machine = machine_of[gpus[0]]
        for gpu in gpus:
            if machine_of[gpu] != machine:
                return self._gangs.get_or_build((forms, gpus), lambda: self._made(job, gpus, stated))
        like = self._like[machine]
        shift = self._first_gpu[like] - self._first_gpu[machine]
        alike = tuple([gpu + shift for gpu in gpus]) if shift else gpus
        found = self._on_one.get_or_build((forms, alike), lambda: self._made(job, alike, stated))
        if not found.ports or not shift:
            return found
        return self._on_one.get_or_build((forms, gpus), lambda: self._made(job, gpus, stated))

    def _made(self, job: JobGraph, gpus: tuple[int, ...], stated: JobGraph) -> _Placed:
        exchange = Exchange(job, np.array(gpus, np.int64), self._topology)
        slowest = float(self._peaks[list(gpus)].min()) if self._peaks_for(job) else None
        alone = _Speeds(exchange.seconds(), slowest)
        return _Placed(job, stated, exchange, alone, self.best(stated), self._shared(job, exchange.flows))

    @cached_property
    def _peaks(self) -> NDArray[np.float64]:
        """(n,) the 10¹² operations a second that each GPU can do at most; 0 if that is not known."""
        return np.array([_peak(gpu) for gpu in self._topology.gpus])

    @cached_property
    def _kinds(self) -> list[Gpu]:
        """A GPU of each kind that is another to a job, or has another peak."""
        kinds = {
            (gpu.model, gpu.memory_gb, gpu.fraction, gpu.parent is None): gpu for gpu in self._topology.gpus
        }
        return list(kinds.values())

    def _peaks_for(self, job: JobGraph) -> list[float]:
        """Return the peaks of the GPUs that a job with `tflop` may use, ascending; none if one is not known."""
        if job.tflop is None:
            return []
        suits = suits_of(job)
        peaks = sorted({_peak(gpu) for gpu in self._kinds if suits(gpu)})
        return peaks if all(peaks) else []

    def _shared(self, job: JobGraph, flows: kernels.Flows) -> tuple[int, ...]:
        """Return the ports of flows that other jobs may use too; a port of one GPU only with a part of that GPU."""
        some = (flows.there > 0) | (flows.back > 0)
        pairs = np.unique(np.stack([flows.start[some], flows.end[some]], 1), axis=0).tolist()
        route = self._ports.network.native.route
        ports = {hop >> 1 for start, end in pairs for hop in route(start, end) if hop >= 0}
        own = self._ports.of_one_gpu
        return tuple(sorted(port for port in ports if job.takes_parts or not own[port]))

    def best(self, job: JobGraph) -> Sequence[_Speeds]:
        """Return the speeds on the best GPUs of the idle topology, and on the best of those with each higher peak.

        There are none if no such GPUs are found.
        """

        def find() -> tuple[JobGraph, Sequence[_Speeds]]:
            asked = job.with_(
                **{
                    "cpus": None,
                    "memory_gb": None,
                    "memory_bandwidth": None,
                    "drives": 0,
                    "min_utility": 0.0,
                },
                profile=None,
                bandwidth_sensitive=False,
            )
            found = self._best_alike.get(key := (request_key(asked), job.tflop is None))
            if found is None:
                least = self._peaks_for(job) or [0.0]
                speeds = [one for peak in least if (one := self._best_above(asked, peak)) is not None]
                found = self._best_alike[key] = asked, speeds
            return job, found[1]

        return self._best.get_or_build(id(job), find)[1]

    def _best_above(self, job: JobGraph, least: float) -> _Speeds | None:
        """Return the speeds on the best GPUs with at least this peak, 0 for all; None if they are not known."""
        policy = topoplace.policies.get(topoplace.DEFAULT_POLICY, slack=0.0, compact=0.0)
        cluster = Cluster(self._topology)
        for gpu in np.flatnonzero(self._peaks < least).tolist() if least else ():
            cluster.drain(gpu)
        try:
            placement = policy.place(job, cluster)
        except ValueError:  # a requirement that this policy cannot honour
            return None
        if placement is None:
            return None
        seconds = Exchange(job, np.array(placement.gpus, np.int64), self._topology).seconds()
        slowest = float(self._peaks[list(placement.gpus)].min()) if least else None
        return _Speeds(seconds, slowest) if seconds < math.inf else None


def _peak(gpu: Gpu) -> float:
    """Return the 10¹² operations a second that a GPU can do at most; 0 if that is not known."""
    return (peak_tflop_per_s(gpu.model or "") or 0.0) * gpu.fraction


def _first_like_machines(topology: Topology) -> list[int]:
    """Return for each machine the first one that is like it."""
    if topology.tiling is None:
        return list(range(topology.num_machines))
    first: dict[int, int] = {}
    return [first.setdefault(template, machine) for machine, template in enumerate(topology.template_of)]


class RunningSteps:
    """The running jobs of a simulation under `StepTime`, and their flows on the ports that they share."""

    def __init__(self, model: StepTime, topology: Topology) -> None:
        self._model = model
        self._flows = kernels.FlowCounts(topology.derived(Ports).network)
        self._users: Counter[int] = Counter()
        """How many jobs use each port."""
        self._placed: dict[int, _Placed] = {}
        """The jobs that share ports, by their row in the workload."""

    def start(self, job: SubmittedJob, placement: Placement) -> Sequence[int]:
        """Add a job; return the ports that it may share with others."""
        placed = _placed(job, placement)
        if placed is None or not placed.ports:
            return ()
        self._placed[job.index] = placed
        self._flows.add(placed.exchange.flows)
        self._users.update(placed.ports)
        return placed.ports

    def end(self, job: SubmittedJob) -> None:
        """Remove a job."""
        placed = self._placed.pop(job.index, None)
        if placed is not None:
            self._flows.remove(placed.exchange.flows)
            self._users.subtract(placed.ports)

    def slowdown(self, job: SubmittedJob) -> float:
        """Return a job's run time on shared ports, divided by its run time alone."""
        placed, users = self._placed[job.index], self._users
        if all(users[port] == 1 for port in placed.ports):
            return 1.0
        self._flows.remove(placed.exchange.flows)
        try:
            seconds = placed.exchange.seconds(self._flows)
        finally:
            self._flows.add(placed.exchange.flows)
        model = self._model
        return model.slowdown_at(placed, seconds) / model.slowdown_at(placed, placed.alone.seconds)


def _share(value: float, what: str) -> float:
    return _checks.real(value, what, ValueError, high=1.0)


def _step(value: object, what: str) -> tuple[float, float]:
    parts = _checks.ordered(value, what, ValueError)
    if len(parts) != 2:
        raise ValueError(f"{what} = {_checks.shown(parts)} is not (compute_s, gigabytes)")
    compute_s = _checks.real(parts[0], f"{what}[0]", ValueError)
    gigabytes = _checks.real(parts[1], f"{what}[1]", ValueError)
    if not compute_s + gigabytes:
        raise ValueError(f"{what} = {_checks.shown(parts)}: a step takes time")
    return compute_s, gigabytes
