"""A policy's decision: a Placement, or a Refusal with its reason."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, field
from typing import TYPE_CHECKING

from topoplace import _checks
from topoplace.errors import AllocationError, warn_deprecated
from topoplace.jobs.job_graph import JobGraph
from topoplace.topology.topology import Topology

if TYPE_CHECKING:
    from topoplace.launch import Environment, Servers

_MOST = 1 << 30


@dataclass(frozen=True, slots=True)
class HostShare:
    """The machine on which a process of a job runs, and what it takes there."""

    machine: int
    """Its number: the place of its name in the topology's `machine_names`."""
    cpus: int = 0
    memory_gb: float = 0.0

    def __post_init__(self) -> None:
        _checks.integer(self.machine, "machine", AllocationError, low=0, high=_MOST)
        _checks.integer(self.cpus, "cpus", AllocationError, low=0, high=_MOST)
        _checks.real(self.memory_gb, "memory_gb", AllocationError, high=_MOST)


@dataclass(frozen=True, slots=True)
class Placement:
    """The GPUs a job gets: task i runs on `gpus[i]`."""

    gpus: tuple[int, ...]
    _: KW_ONLY
    topology: Topology = field(repr=False)
    scores: Mapping[str, float] = field(default_factory=dict[str, float], hash=False)
    """Named scores, such as "aggregated_bandwidth" in GB/s; to be read only."""
    optimal: bool = False
    """True only where the search proved that no placement is better for the policy's objective."""
    job: JobGraph | None = field(default=None, repr=False, compare=False)
    """The job it was made for; the cluster remembers it, so that later jobs can be kept from disturbing this one."""
    hosts: tuple[HostShare, ...] = ()
    """Where each process of the job runs and what it takes there; () where the policy chooses GPUs only."""
    remote: tuple[int, ...] = ()
    """The GPUs that their process reaches over the network: neither on its machine nor in its pool."""
    drives: tuple[int, ...] = ()
    """The machine, by number, of each drive."""

    def __post_init__(self) -> None:
        gpus = _checks.sequence(self.gpus, "gpus", AllocationError)
        _checks.instance(self.topology, Topology, "topology", AllocationError)
        last = self.topology.num_gpus - 1
        if set(map(type, gpus)) != {int} or min(gpus) < 0 or max(gpus) > last:
            gpus = tuple(
                _checks.integer(gpu, f"gpus[{i}]", AllocationError, low=0, high=last)
                for i, gpu in enumerate(gpus)
            )
        if not (gpus or self.hosts) or len(set(gpus)) != len(gpus):
            raise AllocationError(f"gpus = {gpus} names no GPU, or one twice")
        object.__setattr__(self, "gpus", gpus)
        if self.hosts or self.remote or self.drives:
            self._check_hosts()

    @property
    def storage(self) -> tuple[int, ...]:
        """Deprecated name of `drives`."""
        warn_deprecated("Placement.storage", "Placement.drives")
        return self.drives

    def host_of(self, task: int) -> int | None:
        """The number of the machine on which the process of a task runs; None where the policy chose GPUs only."""
        task = _checks.integer(task, "task", AllocationError, low=0, high=len(self.gpus) - 1)
        return self.hosts[task * len(self.hosts) // len(self.gpus)].machine if self.hosts else None

    def env(self, servers: Servers | None = None) -> Environment | dict[str, Environment]:
        """The environment that makes process-local device i the GPU of task i.

        On one machine the variables themselves; on several, a dict of them by machine name, each with the
        tasks of that machine in task order. GPUs are numbered as their own machine numbers them: by the number in a
        name such as "GPU3" or "nvidia3", or else by their place. Where a slice (MIG) or a GPU that its pool lends to
        another machine is among them, all are named by their UUIDs; AllocationError where these are not known.

        servers: for remote GPUs, which are not visible to CUDA: what it returns for a machine's devices is added to
        its variables. AllocationError where it is missing, or what it returns cannot be added to an environment.
        """
        from topoplace import launch

        return launch.environment(self, servers)

    def server_env(self) -> dict[str, Environment]:
        """The environment of the middleware's servers by machine name: each sees the GPUs it has to serve."""
        from topoplace import launch

        return launch.server_environment(self)

    def numactl(self) -> tuple[str, ...] | dict[str, tuple[str, ...]]:
        """The command to put before a job's own so that it keeps to the NUMA nodes of its GPUs.

        `("numactl", "--cpunodebind=0", "--membind=0")` where all its GPUs share a NUMA node (SC'17 binds such jobs to
        the socket, section 5.1), () where they do not or where nobody knows theirs: a job across sockets needs both. A
        GPU whose NUMA node is unknown takes the number of its socket. By machine name where there are several machines
        with processes; remote GPUs do not count, and nobody knows the NUMA node of a GPU that is lent by the pool.
        """
        from topoplace import launch

        return launch.numactl(self)

    def _check_hosts(self) -> None:
        hosts = _checks.sequence(self.hosts, "hosts", AllocationError)
        last = self.topology.num_machines - 1
        if set(map(type, hosts)) != {HostShare} or max(share.machine for share in hosts) > last:
            for i, share in enumerate(hosts):
                _checks.instance(share, HostShare, f"hosts[{i}]", AllocationError)
                _checks.integer(share.machine, f"hosts[{i}].machine", AllocationError, low=0, high=last)
        if len(hosts) > max(len(self.gpus), 1):
            raise AllocationError(f"hosts: {len(hosts)} processes for {len(self.gpus)} GPUs")
        remote = _checks.sequence(self.remote, "remote", AllocationError)
        own = set(self.gpus) if set(map(type, remote)) == {int} else self.gpus  # not all else can be in a set
        if strange := [gpu for gpu in remote if gpu not in own]:
            raise AllocationError(f"remote: GPU {_checks.shown(strange[0])} is not among gpus = {self.gpus}")
        if remote and not hosts:
            raise AllocationError(f"remote = {remote}: from where, hosts does not say")
        drives = _checks.sequence(self.drives, "drives", AllocationError)
        for i, machine in enumerate(drives):
            _checks.integer(machine, f"drives[{i}]", AllocationError, low=0, high=last)
        for name, value in (("hosts", hosts), ("remote", remote), ("drives", drives)):
            object.__setattr__(self, name, value)


@dataclass(frozen=True, slots=True)
class Refusal:
    """No placement: now, or ever."""

    reason: str
    """For a person to read."""
    permanent: bool = False
    """Whether waiting cannot help: not even the idle cluster could take the job."""


def __getattr__(name: str) -> object:
    if name == "Deferred":
        warn_deprecated("Deferred", "Refusal")
        return Refusal
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
