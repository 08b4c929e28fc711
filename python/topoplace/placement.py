"""A policy's decision: a Placement, or a Refusal with its reason."""

from __future__ import annotations

import numbers
from collections.abc import Callable, Hashable, Mapping
from dataclasses import KW_ONLY, dataclass, field, fields
from functools import partial
from itertools import pairwise
from operator import attrgetter
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NoReturn

from topoplace import _checks
from topoplace._lazy import above
from topoplace.binding import Binding, Environment, Launch, Servers
from topoplace.errors import AllocationError
from topoplace.jobs.job_graph import JobGraph
from topoplace.mig import MigSlice, packed, profiles_of_gpu
from topoplace.topology.topology import Topology

if TYPE_CHECKING:
    from topoplace.topology.links.nccl_rates import Rates

_LIMIT = 1 << 30
_NOTHING: tuple[()] = ()
_ID_OF_NOTHING = {id(_NOTHING)}
_PLAIN, _TEXT, _INTEGERS = {float, int}, {str}, {int}
_machine = attrgetter("machine")
_NO_DEVICES: Mapping[tuple[int, int], str] = MappingProxyType({})
_NO_SCORES: Mapping[str, float] = MappingProxyType({})
_bindings: Callable[..., tuple[Binding, ...]] = above("bindings")
_communication_time: Callable[..., Any] = above("communication_time")
_environment: Callable[..., Environment | dict[str, Environment]] = above("environment")
_launched: Callable[..., Launch] = above("launched")
_numactl: Callable[..., tuple[str, ...] | dict[str, tuple[str, ...]]] = above("numactl")
_server_environment: Callable[..., dict[str, Environment]] = above("server_environment")
_spread: Callable[..., tuple[int, float]] = above("spread")
_svg: Callable[..., str] = above("svg")


def keep_amounts(record: Any, *whole: str) -> None:
    """Check the CPUs, the memory and the integers named `whole` of a new record, and store them as Python numbers."""
    cpus = record.cpus
    if type(cpus) is not int or not 0 <= cpus <= _LIMIT:
        object.__setattr__(record, "cpus", _checks.thousandths(cpus, "cpus", AllocationError, high=_LIMIT))
    for name in whole:
        given = getattr(record, name)
        if type(given) is int and 0 <= given <= _LIMIT:
            continue
        number = _checks.integer(given, name, AllocationError, low=0, high=_LIMIT)
        if number is not given:
            object.__setattr__(record, name, number)
    if type(record.memory_gb) is float and 0.0 < record.memory_gb <= _LIMIT:
        return
    memory_gb = _checks.real(record.memory_gb, "memory_gb", AllocationError, high=_LIMIT)
    if type(record.memory_gb) is not int:  # which JSON keeps as it is
        object.__setattr__(record, "memory_gb", memory_gb)


@dataclass(frozen=True, slots=True)
class HostShare:
    """The machine on which one process of a job runs, and the CPUs and memory (GB) that the process takes there."""

    machine: int
    """Number of the machine: the index of its name in the topology's `machine_names`."""
    cpus: float = 0
    """CPUs, in steps of 0.001."""
    memory_gb: float = 0.0

    def __post_init__(self) -> None:
        keep_amounts(self, "machine")


LateScores = partial[Mapping[str, float]]
"""Returns the scores of a placement, which is asked when these are first read."""


class Scores(dict[str, float]):
    """Scores by name, read-only; equal to a dictionary with the same items, and written as one by JSON and pickle."""

    __slots__ = ()

    def _refuse(self: Any, *_values: Any, **_named: Any) -> NoReturn:
        raise TypeError("scores of a placement are read-only; dict(placement.scores) can be changed")

    __setitem__ = __delitem__ = __ior__ = clear = pop = popitem = setdefault = update = _refuse

    def __reduce__(self) -> tuple[type[Scores], tuple[dict[str, float]]]:
        return Scores, (dict(self),)


def checked_scores(given: object, error: _checks.Error) -> Scores:
    """Return `given` as `Scores`; raise `error` for a key that is no string or a value that is no number."""
    if type(given) is Scores:
        return given
    if not isinstance(given, dict):
        _checks.instance(given, Mapping, "scores", error)
    scores: Mapping[Any, Any] = given  # type: ignore[assignment]
    if set(map(type, scores.values())) <= _PLAIN and set(map(type, scores)) <= _TEXT:
        return Scores(scores)
    names = [_checks.text(name, "a name in scores", error) for name in scores]
    return Scores({name: _number(scores[name], name, error) for name in names})


def _number(value: Any, name: str, error: _checks.Error) -> float:
    if type(value) is int:
        return value
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        raise error(f"scores[{name!r}] = {_checks.shown(value)} is not a number")
    return float(value)


@dataclass(frozen=True, slots=True, init=False)
class Placement:
    """The GPUs of a job in task order: task i runs on `gpus[i]`. A job that needs only host resources has none.

    Raises:
        AllocationError: Names a wrong field, such as a GPU that is listed twice.
    """

    gpus: tuple[int, ...]
    _: KW_ONLY
    topology: Topology = field(repr=False)
    scores: Mapping[str, float] = field(default_factory=dict[str, float], hash=False)
    """Named scores, such as "aggregated_bandwidth" in GB/s; read-only."""
    optimal: bool = False
    """True only if the search proved that no placement is better for the policy's objective."""
    bound: float | None = field(default=None, repr=False, compare=False)
    """Lower bound on the seconds that any placement of the job communicates now (see `time`); None if none is known."""
    rates: Rates | str | None = field(default=None, repr=False, compare=False)
    """The rates of links for `time`: a preset's name or a `topoplace.collective.Rates`; None for the default."""
    job: JobGraph | None = field(default=None, repr=False, compare=False)
    """The placed job. The cluster stores it, so that policies can keep later jobs from disturbing this one."""
    hosts: tuple[HostShare, ...] = ()
    """Machine and resources of each process of the job; () if the policy chooses only GPUs."""
    remote: tuple[int, ...] = ()
    """GPUs that a process of the job reaches over the network.

    A GPU on the process's own machine is not remote. Nor is one in that machine's pool, a group of machines that share
    their GPUs by hardware.
    """
    drives: tuple[int, ...] = ()
    """For each storage drive of the job, the number of the drive's machine."""
    slices: tuple[MigSlice, ...] = ()
    """The MIG slice of each GPU that the job gets; () for whole GPUs and shares of them."""
    resliced: tuple[int, ...] = ()
    """The GPUs to reslice before the job starts.

    For a job with `slices`, its slice is cut, and idle slices in its way are given up; those of other jobs stay. For
    other jobs, the GPU becomes whole again; all its slices are idle.
    """

    def __init__(
        self,
        gpus: tuple[int, ...],
        *,
        topology: Topology,
        scores: Mapping[str, float] | LateScores = _NO_SCORES,
        optimal: bool = False,
        bound: float | None = None,
        rates: Rates | str | None = None,
        job: JobGraph | None = None,
        hosts: tuple[HostShare, ...] = (),
        remote: tuple[int, ...] = (),
        drives: tuple[int, ...] = (),
        slices: tuple[MigSlice, ...] = (),
        resliced: tuple[int, ...] = (),
    ) -> None:
        # A simulation makes millions: written by hand, it sets every field once.
        if type(topology) is not Topology:
            _checks.instance(topology, Topology, "topology", AllocationError)
        given = _checked_gpus(gpus, topology)
        if not given and hosts is _NOTHING:
            raise AllocationError(f"gpus = {given} is empty")
        set_gpus, set_topology, set_scores, set_optimal, set_bound, set_rates, set_job, *set_others = _setters
        set_gpus(self, given)
        set_topology(self, topology)
        is_kept = type(scores) is Scores or type(scores) is partial
        set_scores(self, scores if is_kept else checked_scores(scores, AllocationError))
        is_flag = type(optimal) is bool
        set_optimal(self, optimal if is_flag else _checks.flag(optimal, "optimal", AllocationError))
        if job is not None and type(job) is not JobGraph:
            _checks.instance(job, JobGraph, "job", AllocationError)
        set_job(self, job)
        is_plain = bound is None or (type(bound) is float and 0.0 <= bound <= _LIMIT)
        set_bound(self, bound if is_plain else _checks.real(bound, "bound", AllocationError))
        set_rates(self, rates)
        others: tuple[tuple[Any, ...], ...] = hosts, remote, drives, slices, resliced
        for set_other, value in zip(set_others, others, strict=True):
            set_other(self, value)
        if set(map(id, others)) != _ID_OF_NOTHING:
            self._keep_slices(slices, resliced)
            self._check_hosts()

    def on_gpus(self, gpus: tuple[int, ...]) -> Placement:
        """Return the same placement on as many other GPUs, which are not checked; it must name no machine or slice."""
        other = object.__new__(Placement)
        set_gpus, *set_others = _setters
        set_gpus(other, gpus)
        for set_field, get_field in zip(set_others, _getters, strict=True):
            set_field(other, get_field(self))
        return other

    def _repr_svg_(self) -> str:
        """Return a drawing of the topology with the job's GPUs, which notebooks show; see `topoplace.drawing.svg`.

        A placement does not know who has the other GPUs; a `Cluster` does.
        """
        return _svg(self.topology, busy=None, chosen=self.gpus, job=self.job)

    def host_of(self, task: int) -> int | None:
        """Return the number of the machine that runs a task's process; None if the policy chose only GPUs.

        Raises:
            AllocationError: There is no such task.
        """
        task = _checks.integer(task, "task", AllocationError, low=0, high=len(self.gpus) - 1)
        return self.hosts[task * len(self.hosts) // len(self.gpus)].machine if self.hosts else None

    @property
    def time(self) -> float:
        """Return how long the job communicates in a step, in seconds; see `topoplace.communication_time`.

        For a job without bytes, the result is seconds per unit of edge weight. Each call computes it again.

        Raises:
            AllocationError: The placement has no job.
        """
        return float(self._communication().seconds)

    @property
    def times(self) -> Mapping[str, float]:
        """Return the seconds of each dimension of the job, of which `time` is the sum; errors are those of `time`."""
        by_dimension: Mapping[str, float] = self._communication().by_dimension
        return by_dimension

    @property
    def slowest(self) -> str:
        """Return the port that takes longest, such as "uplink of leaf l3"; errors are those of `time`."""
        return str(self._communication().slowest)

    def _communication(self) -> Any:
        if self.job is None:
            raise AllocationError("the placement has no job, so it is not known which tasks communicate")
        if self.rates is None:
            return _communication_time(self.job, self.gpus, self.topology)
        return _communication_time(self.job, self.gpus, self.topology, rates=self.rates)

    @property
    def bindings(self) -> tuple[Binding, ...]:
        """Return, for each task, its machine, GPU, nearest network adapter, NUMA node and CPUs."""
        return _bindings(self)

    def spread(self, dimension: str, level: str) -> tuple[int, float]:
        """Return the largest and the mean number of domains of a level that a group of a dimension touches.

        (1, 1.0) means that each group is inside one domain. A machine in no domain of the level counts as its own.

        Args:
            dimension: A dimension of the job, such as "tensor".
            level: "socket", "machine" or a level of the topology's fabric.

        Raises:
            AllocationError: Names an unknown dimension or level, or says that the placement has no job.
        """
        return _spread(self, dimension, level)

    def launch(self, launcher: str, program: str | Mapping[str, str] = "python train.py") -> Launch:
        """Return the files and the command that start rank i of a program as task i, on its machine and its GPU.

        With "torchrun" and "jobset" (a JobSet of Kubernetes, whose pods run torchrun), a process sees the GPUs of all
        ranks on its machine; its own is device LOCAL_RANK. With the other launchers, a process sees only its own GPU.
        It is bound to the CPUs near the GPU if they are known. "mpirun" and "hostfile" (for ranks that fill machine
        after machine) are for Open MPI, "rankfile" for Open MPI 4. "srun" runs inside a Slurm job that has the GPUs.
        All machines must see the directory with the files.

        Args:
            launcher: "torchrun", "mpirun", "srun", "hostfile", "rankfile" or "jobset".
            program: The shell command that each rank runs. For a job of several roles, such as prefill and decode, a
                mapping from each role to its command. Each role then has a folder of files, a line of the command, and
                ranks from 0; with torchrun, also a port.

        Raises:
            AllocationError: Names an unknown launcher or role, or what it cannot start, such as a job with remote GPUs.
        """
        return _launched(self, launcher, program)

    def env(
        self, servers: Servers | None = None, devices: Mapping[tuple[int, int], str] = _NO_DEVICES
    ) -> Environment | dict[str, Environment]:
        """Return the environment variables that make device i of a process the GPU of task i.

        The variables are CUDA_VISIBLE_DEVICES, or those of another maker: ROCR_VISIBLE_DEVICES (AMD),
        TPU_VISIBLE_CHIPS, ZE_AFFINITY_MASK (Intel), HABANA_VISIBLE_DEVICES (Gaudi, read by its container runtime),
        ASCEND_RT_VISIBLE_DEVICES (always ascending), HIP_VISIBLE_DEVICES (Hygon), MUSA_VISIBLE_DEVICES (Moore Threads),
        MLU_VISIBLE_DEVICES (Cambricon). There are none for Neuron, whose variable numbers cores, for an unknown maker,
        and for devices of several makers.

        For a job on several machines, return a dict of variables by machine name. Device i is then the GPU of the i-th
        task on that machine. A GPU is named by its number on its own machine. If the topology has one machine or a
        fabric, this is the number in a name such as "GPU3" or "nvidia3"; otherwise, it is the GPU's position. If a
        machine's tasks use a MIG slice, or a GPU that a pool lends from another machine, all their GPUs are named by
        UUID.

        Args:
            servers: A function, required for remote GPUs, which are not visible to CUDA and get no device number. For
                each machine whose tasks use remote GPUs, it gets all devices of these tasks and returns further
                variables.
            devices: The UUID of each MIG slice by (GPU, start), required for a placement with `slices`, which states
                where the slices are and not their UUIDs: `nvidia-smi -L` lists these once the slices are cut.

        Raises:
            AllocationError: `servers` is missing or its result is not an environment, `devices` lacks a slice, or the
                UUID of a GPU that must be named by UUID is unknown.
        """
        return _environment(self, servers, devices)

    def server_env(self) -> dict[str, Environment]:
        """Return, by machine name, the environment variables of the servers of remote GPUs; {} without remote GPUs.

        A server sees only the GPUs of its machine that this job uses over the network. They are named as by `env`;
        AllocationError if the UUID of a MIG slice is unknown.
        """
        return _server_environment(self)

    def numactl(self) -> tuple[str, ...] | dict[str, tuple[str, ...]]:
        """Return the command prefix that binds a job to the NUMA node of its GPUs.

        Example: `("numactl", "--cpunodebind=0", "--membind=0")` if all GPUs share a NUMA node. SC'17 binds such jobs to
        the socket (section 5.1). The prefix is () if the GPUs have different NUMA nodes or an unknown one. The number
        of the socket replaces an unknown NUMA node.

        Return a dict by machine name if processes run on several machines. Remote GPUs are ignored, and the NUMA node
        of a GPU lent by a pool is unknown.
        """
        return _numactl(self)

    def _keep_slices(self, slices: tuple[MigSlice, ...], resliced: tuple[int, ...]) -> None:
        *_, set_slices, set_resliced = _setters
        if slices is not _NOTHING:
            slices = _checked_slices(slices, self.gpus, self.topology)
        if resliced is not _NOTHING:
            resliced = _checked_gpus(resliced, self.topology, "resliced")
            if strange := sorted(set(resliced) - set(self.gpus)):
                raise AllocationError(f"resliced: GPU {strange[0]} is not among gpus = {self.gpus}")
        set_slices(self, slices)
        set_resliced(self, resliced)

    def _check_hosts(self) -> None:
        hosts = _checks.ordered(self.hosts, "hosts", AllocationError)
        last = self.topology.num_machines - 1
        if set(map(type, hosts)) != {HostShare} or max(map(_machine, hosts)) > last:
            for i, share in enumerate(hosts):
                _checks.instance(share, HostShare, f"hosts[{i}]", AllocationError)
                _checks.integer(share.machine, f"hosts[{i}].machine", AllocationError, low=0, high=last)
        if len(hosts) > max(len(self.gpus), 1):
            raise AllocationError(f"hosts: {len(hosts)} processes for {len(self.gpus)} GPUs")
        if not (self.gpus or hosts):
            raise AllocationError("gpus = () is empty")
        remote = self._checked_remote()
        if remote and not hosts:
            raise AllocationError(f"remote = {remote}: hosts must name the machines of the processes")
        drives = self.drives
        if drives is not _NOTHING:
            drives = tuple(
                _checks.integer(machine, f"drives[{i}]", AllocationError, low=0, high=last)
                for i, machine in enumerate(_checks.ordered(drives, "drives", AllocationError))
            )
        for name, value in (("hosts", hosts), ("remote", remote), ("drives", drives)):
            if getattr(self, name) is not value:
                object.__setattr__(self, name, value)

    def _checked_remote(self) -> tuple[int, ...]:
        if self.remote is _NOTHING:
            return _NOTHING
        remote: tuple[Any, ...] = _checks.ordered(self.remote, "remote", AllocationError)
        plain = set(map(type, remote)) <= {int}
        own = set(self.gpus)
        if strange := [gpu for gpu in remote if not isinstance(gpu, Hashable) or gpu not in own]:
            raise AllocationError(f"remote: GPU {_checks.shown(strange[0])} is not among gpus = {self.gpus}")
        if not plain:
            last = self.topology.num_gpus - 1
            remote = tuple(
                _checks.integer(gpu, f"remote[{i}]", AllocationError, low=0, high=last)
                for i, gpu in enumerate(remote)
            )
        if len(set(remote)) != len(remote):
            raise AllocationError(f"remote = {remote} lists a GPU twice")
        return remote


def _checked_gpus(given: Any, topology: Topology, what: str = "gpus") -> tuple[int, ...]:
    gpus: tuple[Any, ...] = given
    if type(given) is not tuple:
        gpus = _checks.ordered(given, what, AllocationError)
    last = topology.num_gpus - 1
    if set(map(type, gpus)) != _INTEGERS or min(gpus) < 0 or max(gpus) > last:
        gpus = tuple(
            _checks.integer(gpu, f"{what}[{i}]", AllocationError, low=0, high=last)
            for i, gpu in enumerate(gpus)
        )
    if len(set(gpus)) != len(gpus):
        twice = next(a for a, b in pairwise(sorted(gpus)) if a == b)
        raise AllocationError(f"{what} = {gpus} lists GPU {twice} twice")
    return gpus


def _checked_slices(given: Any, gpus: tuple[int, ...], topology: Topology) -> tuple[MigSlice, ...]:
    """Return one slice for each of `gpus`; AllocationError if their number or a profile or start is wrong."""
    listed = _checks.ordered(given, "slices", AllocationError)
    if len(listed) != len(gpus):
        raise AllocationError(f"slices has {len(listed)} items; it needs one for each GPU, {len(gpus)}")
    slices: list[MigSlice] = []
    for i, (one, gpu) in enumerate(zip(listed, gpus, strict=True)):
        if isinstance(one, str):
            raise AllocationError(f"slices[{i}] = {one!r} is not a MigSlice")
        profile, start = packed([one], profiles_of_gpu(topology.gpus[gpu]), "slices", i)[0]
        slices.append(MigSlice(profile.name, start))
    return tuple(slices)


_setters: tuple[Callable[[Placement, object], None], ...] = tuple(
    [vars(Placement)[one.name].__set__ for one in fields(Placement)]
)
_getters: tuple[Callable[[Placement], object], ...] = tuple(
    [attrgetter(one.name) for one in fields(Placement)[1:]]
)
_kept_scores: Callable[[Placement], Scores | LateScores] = vars(Placement)["scores"].__get__


def _scores(placement: Placement) -> Scores:
    kept = _kept_scores(placement)
    if isinstance(kept, Scores):
        return kept
    found = checked_scores(kept(), AllocationError)
    _set_scores(placement, found)
    return found


_set_scores = _setters[[one.name for one in fields(Placement)].index("scores")]
setattr(Placement, "scores", property(_scores, _set_scores))  # noqa: B010 (a slot, which type checkers protect)


@dataclass(frozen=True, slots=True)
class Refusal:
    """A decision not to place a job, for now or for good."""

    reason: str
    """Explanation in plain English."""
    permanent: bool = False
    """True if waiting cannot help, because the job does not fit even the idle cluster."""
