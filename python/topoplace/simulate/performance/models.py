"""How long a job runs where it was placed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final, Protocol, runtime_checkable

from topoplace import _checks
from topoplace.jobs.network_profile import NEUTRAL, NetworkProfile, traffic
from topoplace.jobs.performance_profile import PerformanceProfile

if TYPE_CHECKING:
    import numpy as np

    from topoplace.placement import Placement
    from topoplace.simulate.workloads.submitted_job import SubmittedJob
    from topoplace.topology.topology import Topology


@runtime_checkable
class PerformanceModel(Protocol):
    """Says how long a job runs on a placement."""

    def run_time(self, job: SubmittedJob, placement: Placement, random: np.random.Generator) -> float:
        """Seconds, finite and not negative; `random` is the simulation's seeded generator."""
        ...


Neighbours = Sequence[tuple["SubmittedJob", "Placement"]]
"""Jobs that run on the same machines, and where."""


@runtime_checkable
class ColocationModel(PerformanceModel, Protocol):
    """Also says how jobs on one machine slow each other down, for as long as they run side by side."""

    def slowdown(self, job: SubmittedJob, placement: Placement, neighbours: Neighbours) -> float:
        """How many times as long as `run_time` the job takes beside `neighbours`: above 0, 1 for no difference."""
        ...


class Traffic(Protocol):
    """What one running job sends through the links of machines, in flows that share them evenly."""

    @property
    def flows(self) -> Mapping[int, int]:
        """How many of its flows cross the link of each machine, by number."""
        ...

    def seconds(self, flows: Mapping[int, int]) -> float:
        """The run time of the whole job, while so many flows, its own among them, cross the link of each machine."""
        ...


@runtime_checkable
class LinkModel(PerformanceModel, Protocol):
    """Also says how jobs slow each other down on the links of machines; `run_time` is the time with no other flows.

    Jobs are timed anew when the flows of a link they use change, and no others: what matters where most send nothing.
    """

    def traffic(self, job: SubmittedJob, placement: Placement) -> Traffic:
        """What the job sends where it was placed."""
        ...


class FixedTime:
    """Every job runs its base time wherever it is placed, as in the simulator of MAPA's paper."""

    def run_time(self, job: SubmittedJob, placement: Placement, random: np.random.Generator) -> float:
        """The base time."""
        return job.base_time


class MapaSlowdown:
    """Run time that falls with effective bandwidth and is flat past `flat_gb_per_s`, the shape of MAPA's Fig. 16.

    A bandwidth-insensitive job, and one whose tasks do not talk, runs its base time. Of a sensitive job the share
    `c` of its base time is communication, which takes `flat_gb_per_s / B` times as long at an effective bandwidth of
    `B` GB/s: time = base * (1 - c + c * flat_gb_per_s / clip(B, floor_gb_per_s, flat_gb_per_s)).

    flat_gb_per_s: 50, the knee the paper names. floor_gb_per_s: 10, what eq. 2 predicts for a pair on PCIe; eq. 2 goes
    below for some mixes, which no real all-reduce does. The figure prints no numbers, so the shares follow from
    the text: a factor 3 between PCIe and double NVLink for VGG-16 (Fig. 2b), 75th percentiles of Baseline over
    Topo-aware of 785/378 s for VGG-16 and 511/374 s for AlexNet, and hardly any for Inception (section 4.1).
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

    def run_time(self, job: SubmittedJob, placement: Placement, random: np.random.Generator) -> float:
        """Base time times the slowdown of the placement's effective bandwidth."""
        if not job.job.bandwidth_sensitive or not job.job.edges:
            return job.base_time
        share = self.shares.get((job.job.profile or "").removesuffix(".sh"), self.default_share)
        if "effective_bandwidth" not in placement.scores:
            raise ValueError(
                f"placement of {job.job_id!r} has no score effective_bandwidth, which MapaSlowdown needs"
            )
        bandwidth = min(max(placement.scores["effective_bandwidth"], self.floor_gb_per_s), self.flat_gb_per_s)
        return job.base_time * (1 - share + share * self.flat_gb_per_s / bandwidth)


class ProfiledTime:
    """Measured run times (SC'17): alone by placement class, and slower beside jobs that share a socket.

    Alone, a job takes base_time * solo_time(placement class) / ideal_time: its base time is the one in the class that
    is best for it, which need not be the nearest. Beside others it takes as much longer as beside the worst of those
    that share a socket with it (the pairs of the profile ran side by side; what three do to each other was not
    measured). A job without a profile runs its base time and disturbs nobody. One that was not measured runs its base
    time alone; where two were not measured beside each other, the median of similar pairs counts
    (`PerformanceProfile.slowdown`).
    """

    def __init__(self, profile: PerformanceProfile) -> None:
        _checks.instance(profile, PerformanceProfile, "profile", ValueError)
        self.profile = profile

    def run_time(self, job: SubmittedJob, placement: Placement, random: np.random.Generator) -> float:
        """The base time, longer where the placement class takes longer than the best one."""
        name, size = job.job.profile or "", job.job.num_tasks
        ideal = self.profile.ideal_time(name, size)
        alone = self.profile.solo_time(name, size, placement_class(placement))
        return job.base_time * alone / ideal if alone and ideal else job.base_time

    def slowdown(self, job: SubmittedJob, placement: Placement, neighbours: Neighbours) -> float:
        """That of the worst neighbour on one of its sockets."""
        name, size = job.job.profile or "", job.job.num_tasks
        if not name or not neighbours:
            return 1.0
        mine = _sockets(placement)
        return max(
            (
                self.profile.slowdown(name, size, other.job.profile, other.job.num_tasks)
                for other, where in neighbours
                if other.job.profile and not mine.isdisjoint(_sockets(where))
            ),
            default=1.0,
        )


class NetworkContention:
    """Run times that grow with the traffic of neighbours: remote GPUs over a network that others use (thesis, 3.3).

    A job runs its base time while the networks of its machines are idle. While others load them, it is slowed down by
    the fullest of those that it uses itself (`NetworkProfile.slowdown`): that of its process and, for remote GPUs, of
    their machines. profiles: by the job's `profile`; a job without one neither sends nor minds.
    """

    def __init__(self, profiles: Mapping[str, NetworkProfile]) -> None:
        _checks.instance(profiles, Mapping, "profiles", ValueError)
        for name, profile in profiles.items():
            _checks.instance(profile, NetworkProfile, f"profiles[{_checks.shown(name)}]", ValueError)
        self.profiles = dict(profiles)

    def run_time(self, job: SubmittedJob, placement: Placement, random: np.random.Generator) -> float:
        """The base time."""
        return job.base_time

    def slowdown(self, job: SubmittedJob, placement: Placement, neighbours: Neighbours) -> float:
        """By the load that the neighbours put on the machines the job sends from or to."""
        profile = self.profiles.get(job.job.profile or "", NEUTRAL)
        load = {machine: 0.0 for machine, own in self._traffic(job, placement) if own}
        for other, where in neighbours if load else ():
            for machine, sent in self._traffic(other, where):
                if machine in load:
                    load[machine] += sent
        return profile.slowdown(max(load.values(), default=0.0), remote=bool(placement.remote))

    def _traffic(self, job: SubmittedJob, placement: Placement) -> list[tuple[int, float]]:
        profile = self.profiles.get(job.job.profile or "")
        if profile is None:
            return []
        machine_of = placement.topology.derived(machine_numbers)
        return list(traffic(profile, placement.gpus, placement.hosts, placement.remote, machine_of))


def placement_class(placement: Placement) -> str:
    """`intra-socket`, `inter-socket` or `inter-machine`."""
    if len(_sockets(placement)) == 1:
        return "intra-socket"
    machine_of = placement.topology.machine_of
    return "inter-socket" if len({int(machine_of[gpu]) for gpu in placement.gpus}) == 1 else "inter-machine"


def _sockets(placement: Placement) -> set[int]:
    socket_of = placement.topology.derived(_socket_numbers)
    return {socket_of[gpu] for gpu in placement.gpus}


def machine_numbers(topology: Topology) -> list[int]:
    """The machine of each GPU."""
    numbers: list[int] = topology.machine_of.tolist()
    return numbers


def _socket_numbers(topology: Topology) -> list[int]:
    """As a list, which single entries are read from faster."""
    numbers: list[int] = topology.socket_of.tolist()
    return numbers
