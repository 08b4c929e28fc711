"""Models that compute a job's run time from its placement."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final, Protocol, runtime_checkable

from topoplace import _checks
from topoplace.engine.memo import Memo
from topoplace.jobs.network_profile import NEUTRAL, NetworkProfile, traffic
from topoplace.jobs.performance_profile import PerformanceProfile
from topoplace.objectives.effective_bandwidth import OUTSIDE_ITS_RANGE, is_outside_range

if TYPE_CHECKING:
    import numpy as np

    from topoplace.placement import Placement
    from topoplace.topology.topology import Topology
    from topoplace_lab.simulate.workloads.submitted_job import SubmittedJob


@runtime_checkable
class PerformanceModel(Protocol):
    """An interface for models that compute a job's run time from its placement."""

    def run_time(self, job: SubmittedJob, placement: Placement, random: np.random.Generator) -> float:
        """Return the job's run time in seconds on this placement, finite and not negative.

        Args:
            random: The simulation's seeded random generator.
        """
        ...


Neighbours = Sequence[tuple["SubmittedJob", "Placement"]]
"""Jobs that run on the same machines, with their placements."""


@runtime_checkable
class ColocationModel(PerformanceModel, Protocol):
    """An interface for models in which jobs on the same machine slow each other down while they run together."""

    def slowdown(self, job: SubmittedJob, placement: Placement, neighbours: Neighbours) -> float:
        """Return the run time next to `neighbours` divided by `run_time`; it is above 0, and 1 means no effect."""
        ...


class StepTraffic(Protocol):
    """An interface for one running job's data flows across the machines' network links; flows share a link evenly."""

    @property
    def flows(self) -> Mapping[int, int]:
        """Return the number of the job's flows across each machine's network link, by machine number."""
        ...

    def seconds(self, flows: Mapping[int, int]) -> float:
        """Return the run time of the whole job (seconds) at these numbers of flows across each machine's link.

        flows: number of flows of all jobs, this one included, by machine number.
        """
        ...


@runtime_checkable
class LinkModel(PerformanceModel, Protocol):
    """An interface for models in which jobs slow each other down on the machines' network links.

    `run_time` is the time without flows of other jobs. Run times are recomputed only for jobs on whose links the number
    of flows has changed.
    """

    def traffic(self, job: SubmittedJob, placement: Placement) -> StepTraffic:
        """Return the data flows that the job has across network links on this placement."""
        ...


class PortUse(Protocol):
    """An interface for the ports that the running jobs of one simulation use, as a `PortModel` follows them."""

    def start(self, job: SubmittedJob, placement: Placement) -> Sequence[int]:
        """Add a job; return the numbers of the ports that it may share with other jobs."""
        ...

    def end(self, job: SubmittedJob) -> None:
        """Remove a job."""
        ...

    def slowdown(self, job: SubmittedJob) -> float:
        """Return the run time of a job next to the others on its ports, divided by `run_time`; it is above 0."""
        ...


@runtime_checkable
class PortModel(PerformanceModel, Protocol):
    """An interface for models in which jobs slow each other down on any ports, by what each of them sends there.

    `run_time` is the time alone. Run times are recomputed only for jobs that share a port with a job that has started
    or finished.
    """

    def running(self, topology: Topology) -> PortUse:
        """Return the empty set of a simulation's running jobs on this topology."""
        ...


@runtime_checkable
class MeteredModel(PerformanceModel, Protocol):
    """An interface for models that know how much jobs send, so that a simulation's network can be measured."""

    def sent(self, job: SubmittedJob, placement: Placement) -> Sequence[tuple[int, float]]:
        """Return the load that the job puts on the network of machines, as (machine number, load); machines may repeat.

        Loads are fractions of the capacity of a machine's interface.
        """
        ...


class FixedTime:
    """A model in which a job takes its base time on every placement, as in the simulator of MAPA's paper."""

    def run_time(self, job: SubmittedJob, placement: Placement, random: np.random.Generator) -> float:
        """Return the job's base time in seconds, whatever its placement."""
        return job.base_time


class MapaSlowdown:
    """A model whose run time falls with effective bandwidth and is flat above `flat_gb_per_s`, as in MAPA's Fig. 16.

    This model belongs to MAPA's paper. It holds where eq. 2 does: for sensitive jobs of 2 to 5 GPUs on machines such as
    a DGX-1V. The first job elsewhere gives a warning.

    A job that is not bandwidth sensitive, or whose tasks do not communicate, takes its base time. For a sensitive job,
    the fraction `c` of the base time is communication. At an effective bandwidth of `B` GB/s, this part takes
    `flat_gb_per_s / B` times as long:

        time = base * (1 - c + c * flat_gb_per_s / clip(B, floor_gb_per_s, flat_gb_per_s))

    Eq. 2 predicts about 10 GB/s for a pair on PCIe, and less for some GPU sets, although no all-reduce is slower than
    on PCIe.

    The figure prints no numbers, so the shares are derived from the text. VGG-16 is 3 times as fast on double NVLink as
    on PCIe (Fig. 2b). In section 4.1, the 75th percentiles of run times under Baseline and Topo-aware are 785 and 378 s
    for VGG-16. They are 511 and 374 s for AlexNet, and hardly differ for Inception.

    Args:
        shares: `c` by the neural network that a job trains (its `profile`).
        default_share: `c` for other networks.
        flat_gb_per_s: Bandwidth above which the paper's curve is flat, 50.
        floor_gb_per_s: A lower bandwidth counts as this one, 10.
    """

    SHARES: Final[Mapping[str, float]] = {
        "vgg16": 0.5,
        "alexnet": 0.2,
        "resnet-50": 0.1,
        "inception-v3": 0.05,
    }

    def __init__(
        self,
        shares: Mapping[str, float] = SHARES,
        *,
        default_share: float = 0.2,
        flat_gb_per_s: float = 50.0,
        floor_gb_per_s: float = 10.0,
    ) -> None:
        _checks.instance(shares, Mapping, "shares", ValueError)
        self.shares = dict(shares)
        for name, share in {**self.shares, "default_share": default_share}.items():
            _checks.real(share, f"share of {name}", ValueError, high=1.0)
        _checks.positive(flat_gb_per_s, "flat_gb_per_s", ValueError)
        _checks.positive(floor_gb_per_s, "floor_gb_per_s", ValueError, high=flat_gb_per_s)
        self.default_share = default_share
        self.flat_gb_per_s = flat_gb_per_s
        self.floor_gb_per_s = floor_gb_per_s
        self._has_warned = False

    def run_time(self, job: SubmittedJob, placement: Placement, random: np.random.Generator) -> float:
        """Return the base time in seconds multiplied by a slowdown that depends on the effective bandwidth.

        Raises:
            ValueError: If the placement of a bandwidth-sensitive job with edges has no score `effective_bandwidth`.
        """
        if not job.job.bandwidth_sensitive or not job.job.edges:
            return job.base_time
        share = self.shares.get((job.job.profile or "").removesuffix(".sh"), self.default_share)
        if "effective_bandwidth" not in placement.scores:
            raise ValueError(
                f"placement of {job.job_id!r} has no score effective_bandwidth, which MapaSlowdown needs; "
                "topoplace.objectives.scores_of computes it"
            )
        if not self._has_warned and is_outside_range(placement):
            self._has_warned = True
            warnings.warn(
                f"MapaSlowdown: job {job.job_id!r}: {OUTSIDE_ITS_RANGE}; take StepTime", stacklevel=2
            )
        bandwidth = min(max(placement.scores["effective_bandwidth"], self.floor_gb_per_s), self.flat_gb_per_s)
        return job.base_time * (1 - share + share * self.flat_gb_per_s / bandwidth)


class ProfiledTime:
    """A model that uses measured run times (SC'17): by placement class, and next to other jobs on the same sockets.

    A placement class is intra-socket, inter-socket or inter-machine. Alone, a job takes its base time multiplied by
    solo_time(placement class) / ideal_time; ideal_time is the shortest solo time over all classes. Next to other jobs,
    only the neighbour on a shared socket that slows it down most counts, as only pairs of jobs were measured.

    A job without a profile takes its base time and slows no other job down. A job that was not measured takes its base
    time when alone. A pair that was not measured has the median slowdown of similar pairs
    (`PerformanceProfile.slowdown`).
    """

    def __init__(self, profile: PerformanceProfile) -> None:
        _checks.instance(profile, PerformanceProfile, "profile", ValueError)
        self.profile = profile
        self._times: dict[tuple[str, int, str], tuple[float | None, float | None]] = {}
        self._slowdowns: dict[tuple[str, int, str, int], float] = {}

    def run_time(self, job: SubmittedJob, placement: Placement, random: np.random.Generator) -> float:
        """Return the base time (seconds) times the measured time of the placement's class over that of the best class.

        For a job that was not measured, return the base time.
        """
        key = job.job.profile or "", job.job.num_tasks, placement_class(placement)
        known = self._times.get(key)
        if known is None:
            known = self._times[key] = self.profile.solo_time(*key), self.profile.ideal_time(*key[:2])
        alone, ideal = known
        return job.base_time * alone / ideal if alone and ideal else job.base_time

    def slowdown(self, job: SubmittedJob, placement: Placement, neighbours: Neighbours) -> float:
        """Return the factor on the run time due to the neighbour on a shared socket that slows the job most.

        It is 1 if the job has no profile, or no neighbour with a profile is on a shared socket.
        """
        graph = job.job
        name = graph.profile
        if not neighbours or not name:
            return 1.0
        size, known = graph.num_tasks, self._slowdowns
        sockets = placement.topology.derived(_SocketSets)
        mine, worst = sockets[placement.gpus], 0.0
        for other, where in neighbours:
            running = other.job
            if running.profile and not mine.isdisjoint(sockets[where.gpus]):
                pair = name, size, running.profile, running.num_tasks
                slowdown = known.get(pair)
                if slowdown is None:
                    slowdown = known[pair] = self.profile.slowdown(*pair)
                if slowdown > worst:
                    worst = slowdown
        return worst or 1.0


class NetworkContention:
    """A model in which jobs that use the same machine's network interface slow each other down (thesis, 3.3).

    A job takes its base time while the network interfaces of its machines are idle. Otherwise the most loaded interface
    that it uses slows it down (`NetworkProfile.slowdown`). A job uses the interfaces over which it sends: those of the
    machines of its processes and of its remote GPUs.

    Args:
        profiles: Network profiles by name, which is the job's `profile`. A job without a network profile sends nothing
            and is never slowed down.
    """

    def __init__(self, profiles: Mapping[str, NetworkProfile]) -> None:
        _checks.instance(profiles, Mapping, "profiles", ValueError)
        for name, profile in profiles.items():
            _checks.instance(profile, NetworkProfile, f"profiles[{_checks.shown(name)}]", ValueError)
        self.profiles = dict(profiles)
        self._sent: Memo[tuple[int, str | None], tuple[Placement, list[tuple[int, float]]]] = Memo()
        """By the identity of a placement, which is kept, and the job's profile."""

    def run_time(self, job: SubmittedJob, placement: Placement, random: np.random.Generator) -> float:
        """Return the job's base time in seconds, which is its run time while the network is idle."""
        return job.base_time

    def slowdown(self, job: SubmittedJob, placement: Placement, neighbours: Neighbours) -> float:
        """Return the factor (at least 1) on the run time due to other jobs' traffic on the job's network interfaces."""
        profile = self.profiles.get(job.job.profile or "", NEUTRAL)
        load = {machine: 0.0 for machine, own in self.sent(job, placement) if own}
        for other, where in neighbours if load else ():
            for machine, sent in self.sent(other, where):
                if machine in load:
                    load[machine] += sent
        return profile.slowdown(max(load.values(), default=0.0), remote=bool(placement.remote))

    def sent(self, job: SubmittedJob, placement: Placement) -> list[tuple[int, float]]:
        """Return the load that the job puts on the network of machines, as (machine number, load)."""
        name = job.job.profile
        known = self._sent.get((id(placement), name))
        if known is None:
            known = self._sent[id(placement), name] = placement, self._computed(name, placement)
        return known[1]

    def _computed(self, name: str | None, placement: Placement) -> list[tuple[int, float]]:
        profile = self.profiles.get(name or "")
        if profile is None:
            return []
        machine_of = placement.topology.derived(machine_numbers)
        return list(traffic(profile, placement.gpus, placement.hosts, placement.remote, machine_of))


def placement_class(placement: Placement) -> str:
    """Return the class of a placement: `intra-socket`, `inter-socket` (on one machine) or `inter-machine`.

    GPUs of one machine whose socket is unknown count as on one socket.
    """
    if len(placement.topology.derived(_SocketSets)[placement.gpus]) == 1:
        return "intra-socket"
    machine_of = placement.topology.machine_of
    return "inter-socket" if len({int(machine_of[gpu]) for gpu in placement.gpus}) == 1 else "inter-machine"


def machine_numbers(topology: Topology) -> list[int]:
    """Return the machine number of each GPU, as a list."""
    numbers: list[int] = topology.machine_of.tolist()
    return numbers


class _SocketSets(Memo[tuple[int, ...], frozenset[int]]):
    """The sockets of a tuple of GPUs, for the tuples asked for so far."""

    def __init__(self, topology: Topology) -> None:
        super().__init__()
        self._socket_of: list[int] = topology.socket_of.tolist()

    def __missing__(self, gpus: tuple[int, ...]) -> frozenset[int]:
        self[gpus] = found = frozenset([self._socket_of[gpu] for gpu in gpus])
        return found
