"""A policy's decision: a Placement, or a Refusal with its reason."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field

from topoplace import _checks
from topoplace.errors import AllocationError
from topoplace.hosts import HostShare
from topoplace.jobgraph import JobGraph
from topoplace.topology import Topology

Environment = dict[str, str]
_NUMBERED = re.compile(r"(?:GPU|nvidia)([0-9]{1,6})")


@dataclass(frozen=True, slots=True)
class Device:
    """A GPU as a process sees it."""

    machine: str
    """Where it is."""
    device: str
    """What CUDA calls it there."""
    remote: bool
    """Whether the process reaches it over the network."""


Servers = Callable[[Sequence[Device]], Mapping[str, str]]
"""From the devices of a machine's processes, in task order, to the variables that tell the middleware's client where
to find those that are remote. Which server listens where is the caller's knowledge."""


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
    storage: tuple[int, ...] = ()
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
        if self.hosts or self.remote or self.storage:
            self._check_hosts()

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
        if self.remote and servers is None:
            raise AllocationError(
                f"remote = {self.remote}: env needs servers=, which says where these are served"
            )
        by_machine: dict[str, Environment] = {}
        for machine, gpus in self._by_host().items():
            devices = [self._seen(gpu, gpus, machine) for gpu in gpus]
            by_machine[machine] = _visible([d.device for d in devices if not d.remote])
            if servers is not None and any(d.remote for d in devices):
                by_machine[machine].update(_client_variables(servers, devices))
        return next(iter(by_machine.values())) if len(by_machine) == 1 else by_machine

    def server_env(self) -> dict[str, Environment]:
        """The environment of the middleware's servers by machine name: each sees the GPUs it has to serve."""
        served: dict[str, list[int]] = {}
        for gpu in self.remote:
            served.setdefault(self.topology.gpus[gpu].machine, []).append(gpu)
        return {
            machine: _visible([self._device(gpu, gpus) for gpu in gpus]) for machine, gpus in served.items()
        }

    def numactl(self) -> tuple[str, ...] | dict[str, tuple[str, ...]]:
        """The command to put before a job's own so that it keeps to the NUMA nodes of its GPUs.

        `("numactl", "--cpunodebind=0", "--membind=0")` where all its GPUs share a NUMA node (SC'17 binds such jobs to
        the socket, section 5.1), () where they do not or where nobody knows theirs: a job across sockets needs both. A
        GPU whose NUMA node is unknown takes the number of its socket. By machine name where there are several machines
        with processes; remote GPUs do not count, and nobody knows the NUMA node of a GPU that is lent by the pool.
        """
        commands = {machine: _bound(self._nodes(gpus, machine)) for machine, gpus in self._by_host().items()}
        return next(iter(commands.values())) if len(commands) == 1 else commands

    def _nodes(self, gpus: Sequence[int], machine: str) -> set[int | None]:
        """The NUMA nodes of the local ones of these GPUs, as `machine` numbers them."""
        local = [self.topology.gpus[index] for index in gpus if index not in self.remote]
        return {
            None if gpu.machine != machine else gpu.socket if gpu.numa_node is None else gpu.numa_node
            for gpu in local
        }

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
        storage = _checks.sequence(self.storage, "storage", AllocationError)
        for i, machine in enumerate(storage):
            _checks.integer(machine, f"storage[{i}]", AllocationError, low=0, high=last)
        for name, value in (("hosts", hosts), ("remote", remote), ("storage", storage)):
            object.__setattr__(self, name, value)

    def _by_host(self) -> dict[str, list[int]]:
        """The GPUs of the processes on each machine, in task order; where there are none, of each machine's own."""
        found: dict[str, list[int]] = {}
        names = self.topology.machine_names if self.hosts else ()
        for share in self.hosts:
            found.setdefault(names[share.machine], [])
        for task, gpu in enumerate(self.gpus):
            host = self.host_of(task)
            machine = self.topology.gpus[gpu].machine if host is None else names[host]
            found.setdefault(machine, []).append(gpu)
        return found

    def _seen(self, index: int, beside: Sequence[int], machine: str) -> Device:
        """A GPU as the processes on `machine` see it that have all of `beside`."""
        own = self.topology.gpus[index].machine
        if index in self.remote:
            return Device(own, self._device(index, [index]), remote=True)
        local = [gpu for gpu in beside if gpu not in self.remote]
        lent = any(self.topology.gpus[gpu].machine != machine for gpu in local)
        return Device(own, self._uuid(index) if lent else self._device(index, local), remote=False)

    def _uuid(self, index: int) -> str:
        gpu = self.topology.gpus[index]
        if gpu.uuid is None:
            raise AllocationError(
                f"gpus: {gpu.name} has no known UUID, by which slices and lent GPUs are named"
            )
        return gpu.uuid

    def _device(self, index: int, beside: Sequence[int]) -> str:
        """What CUDA calls a GPU on its machine, for one who sees those `beside`, too."""
        gpu = self.topology.gpus[index]
        if any(self.topology.gpus[other].parent for other in beside):
            return self._uuid(index)
        single = self.topology.num_machines == 1 or self.topology.fabric is not None
        number = (
            _NUMBERED.fullmatch(gpu.name) if single else None
        )  # else GPUs may be numbered across machines
        return number[1] if number else str(self.topology.local_index[index])


def _visible(devices: Sequence[str]) -> Environment:
    return {"CUDA_DEVICE_ORDER": "PCI_BUS_ID", "CUDA_VISIBLE_DEVICES": ",".join(devices)}


def _client_variables(servers: Servers, devices: Sequence[Device]) -> Environment:
    """What the hook returns; AllocationError where that is no environment, or says which GPUs are local."""
    if not callable(servers):
        raise AllocationError(f"servers = {_checks.shown(servers)} is not callable")
    returned = servers(devices)
    _checks.instance(returned, Mapping, "what servers returned", AllocationError)
    return {_variable_name(key): _variable_value(key, value) for key, value in returned.items()}


def _variable_name(key: object) -> str:
    name = _checks.text(key, "servers: name of a variable", AllocationError)
    if "=" in name or "\0" in name:
        raise AllocationError(f"servers: name of a variable = {_checks.shown(name)} has '=' or NUL in it")
    if name in _visible(()):
        raise AllocationError(
            f"servers: {name} says which GPUs are local, and is not the middleware's to set"
        )
    return name


def _variable_value(key: str, value: object) -> str:
    what = f"servers: {_checks.shown(key)}"
    if not isinstance(value, str):
        raise AllocationError(f"{what} = {_checks.shown(value)} is not a string")
    if value:
        _checks.text(value, what, AllocationError)
    if "\0" in value:
        raise AllocationError(f"{what} = {_checks.shown(value)} has NUL in it")
    return value


def _bound(nodes: set[int | None]) -> tuple[str, ...]:
    node = next(iter(nodes)) if len(nodes) == 1 else None
    if node is None:
        return ()
    return ("numactl", f"--cpunodebind={node}", f"--membind={node}")


@dataclass(frozen=True, slots=True)
class Refusal:
    """No placement: now, or ever."""

    reason: str
    """For a person to read."""
    permanent: bool = False
    """Whether waiting cannot help: not even the idle cluster could take the job."""


def __getattr__(name: str) -> object:
    if name == "Deferred":
        warnings.warn("Deferred is now called Refusal", DeprecationWarning, stacklevel=2)
        return Refusal
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
