"""The sets of one machine's GPUs for a job, ordered by time, nearness, and cost to other jobs."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from topoplace import _core
from topoplace.collective.machine_graph import MAX_GPUS
from topoplace.collective.networks import collective_network
from topoplace.collective.rated_sets import rated_sets
from topoplace.engine.machines.machine_class import MachineClasses, as_bytes, members
from topoplace.engine.machines.machine_options import Option
from topoplace.engine.memo import Memo
from topoplace.jobs.groups import GPU
from topoplace.topology.links.link_kinds import PATH_KINDS, Link, LinkKind
from topoplace.topology.links.nccl_rates import Rates
from topoplace.topology.ports import Ports

if TYPE_CHECKING:
    from topoplace.engine.machine_state import ClusterView
    from topoplace.engine.machines.machine_class import MachineClass, Mask
    from topoplace.engine.machines.machine_conditions import Conditions, MachineState
    from topoplace.engine.request import JobRequest
    from topoplace.topology.topology import Topology

Reals = NDArray[np.float64]
MOST_OPTIONS: Final = 16
"""Limit on the ways to place a job on one machine that are examined once its time is known."""
_FARTHEST: Final = len(PATH_KINDS) + 1
_NEARNESS: Final = {
    **{kind: rank for rank, kind in enumerate(PATH_KINDS, 1)},
    LinkKind.UNKNOWN: len(PATH_KINDS),
    LinkKind.NETWORK: _FARTHEST,
    LinkKind.NONE: _FARTHEST,
    LinkKind.SELF: 0,
}
"""Distance rank of a pair of GPUs by the kind of its link; 0 for NVLinks and similar links."""


class Timing(NamedTuple):
    """Options for computing and comparing the communication times of placements."""

    slack: float
    """The share by which times may differ and count as equal."""
    rates: Rates | str
    """The rates of links with which the library plans rings."""
    alternatives: int = 1
    """Number of a machine's fastest sets that are needed; slower ones may be left out."""
    near_only: bool = False
    """True to compare only a few sets of GPUs that are near each other."""


def _nearness(link: Link) -> int:
    return _NEARNESS.get(link.kind, 0)


class _Machine:
    """What is known of a machine before any job asks."""

    def __init__(self, topology: Topology) -> None:
        self.topology = topology
        self.is_rated = 1 < topology.num_gpus <= MAX_GPUS
        self._natives: dict[Rates | str, _core.Machine] = {}

    @cached_property
    def is_alike(self) -> bool:
        """True if any GPUs, in any order, take the same time: all pairs are equal links through NVSwitches."""
        pairs = ~np.eye(self.topology.num_gpus, dtype=bool)
        switched = self.topology.link_matrix(lambda link: link.kind is LinkKind.NVSWITCH, bool)[pairs]
        speeds = self.topology.bandwidth_matrix()[pairs]
        return bool(len(speeds) and switched.all() and (speeds == speeds[0]).all())

    @cached_property
    def kept(self) -> Memo[Hashable, list[Option]]:
        """The best sets of a machine on which all GPUs are alike, by free GPUs, number of tasks and rates."""
        return Memo()

    def native(self, rates: Rates | str) -> _core.Machine:
        """Return the machine for the kernels, with rings at these rates."""
        found = self._natives.get(rates)
        if found is None:
            found = self._natives[rates] = self._built(rates)
        return found

    def _built(self, rates: Rates | str) -> _core.Machine:
        topology = self.topology
        far = topology.link_matrix(_nearness, np.int32)
        return _core.Machine(
            far,
            topology.socket_of.astype(np.int32),
            topology.derived(Ports).near_order.astype(np.int32),
            self._degraded(),
            _parts(far, topology.socket_of),
            self.is_alike,
            [rated_sets(topology, rates).native] if self.is_rated else [],
            collective_network(topology, rates).native,
        )

    def _degraded(self) -> Reals:
        """Return (n,) by what share the fastest link of each GPU is slower than that of most GPUs of the machine."""
        fastest = self.topology.bandwidth_matrix().max(axis=1, initial=0.0)
        speeds, counts = np.unique(fastest, return_counts=True)
        usual = speeds[counts.argmax()] if len(speeds) else 0.0
        shares: Reals = np.maximum(0.0, 1 - fastest / usual) if usual else np.zeros_like(fastest)
        return shares


def _parts(far: NDArray[np.int32], socket_of: NDArray[np.integer]) -> list[tuple[int, ...]]:
    """Return the parts of a machine that can be left whole: GPUs that are nearer to each other than to others."""
    parts = {tuple(np.flatnonzero(row <= rank).tolist()) for rank in range(_FARTHEST) for row in far}
    parts |= {tuple(np.flatnonzero(socket_of == one).tolist()) for one in np.unique(socket_of)}
    return [part for part in sorted(parts) if 1 < len(part) < len(far)]


@dataclass(frozen=True)
class Chosen:
    """The scores of an option."""

    seconds: float
    """The communication time of the job."""
    is_proven: bool = False
    """True if all sets of the machine's GPUs, and all orders that matter, were compared."""
    utility: float | None = None
    """The utility (see `LeastTime`) of a job with a `min_utility`; None for other jobs."""
    bandwidths: Mapping[str, float] = field(default_factory=dict[str, float])
    """The scores of `bandwidth_scores`; {} until they are asked for."""


def ranked(
    request: JobRequest,
    machine_class: MachineClass,
    state: MachineState,
    free: Mask,
    timing: Timing,
    required: Mask = 0,
) -> list[Option]:
    """Return the best ways to place a job on one machine, the best first; all tasks that communicate have a path.

    Args:
        free: The GPUs that the job may use.
        required: The GPUs of `free` that the job gets in any case.
    """
    machine = machine_class.alone.derived(_Machine)

    def find() -> list[Option]:
        return _ranked(machine, request, machine_class, state, free, timing, required)

    if not machine.is_alike or machine_class.partitions:
        return find()
    left = state.left if request.takes_parts else ()
    job = request.job
    kind = request.size, bool(job.edges), job.spread == GPU, request.in_one_socket
    key = free, required, state.free, left, kind, timing.rates
    sets = machine.kept.get_or_build(key, find)
    chosen, graded = of_any(machine_class, request, timing)
    return [Option((graded, *one.order[1:]), one.gpus, -chosen.seconds, chosen) for one in sets]


def _ranked(
    machine: _Machine,
    request: JobRequest,
    machine_class: MachineClass,
    state: MachineState,
    free: Mask,
    timing: Timing,
    required: Mask,
) -> list[Option]:
    job = request.job
    found, is_proven = machine.native(timing.rates).rank_sets(
        job.traffic_arrays.native,
        request.size,
        bool(job.edges),
        job.spread == GPU,
        [tuple(members(region)) for region in request.regions(machine_class, free)],
        bool(machine_class.partitions),
        tuple(members(required)),
        tuple(members(state.free)),
        state.left if request.takes_parts else (),
        timing.slack,
        timing.alternatives,
        timing.near_only,
    )
    return [Option(order, gpus, -seconds, Chosen(seconds, is_proven)) for gpus, order, seconds in found]


class SetTable:
    """The options of machines for a job of whole GPUs or shares, ranked by the kernels for all conditions at once."""

    def __init__(
        self,
        request: JobRequest,
        view: ClusterView,
        conditions: Conditions,
        timing: Timing,
        most_memory_gb: float = math.inf,
    ) -> None:
        """Store the arguments; most_memory_gb: GPUs with more memory (GB) are left out."""
        self._request, self._conditions, self._timing = request, conditions, timing
        self.native = _native_sets(request, view, conditions, timing, most_memory_gb)
        self.rank = self.native.rank
        """Sets the sort keys that a ranking lacks; DeadlineError keeps those that are found before."""

    def first(self, condition: int) -> Option:
        """Return the first option of a condition that has one."""
        row, is_proven = self.native.best(condition)
        return self._option(condition, *row, is_proven=is_proven)

    def options(self, condition: int) -> list[Option]:
        """Return all options of a condition, best first; [] if there are none."""
        rows, is_proven = self.native.options(condition)
        return [self._option(condition, *row, is_proven=is_proven) for row in rows]

    def _option(
        self,
        condition: int,
        gpus: tuple[int, ...],
        order: tuple[float, ...],
        seconds: float,
        *,
        is_proven: bool,
    ) -> Option:
        machine_class, _ = self._conditions.of(condition)
        if is_alike(machine_class) and not machine_class.partitions:
            chosen, _ = of_any(machine_class, self._request, self._timing)
        else:
            chosen = Chosen(seconds, is_proven)
        return Option(order, gpus, -chosen.seconds, chosen)


def _native_sets(
    request: JobRequest, view: ClusterView, conditions: Conditions, timing: Timing, most_memory_gb: float
) -> _core.ConditionSets:
    machines = natives(view.cluster.topology, timing.rates)
    return _core.ConditionSets(
        conditions.native,
        [
            (native, as_bytes(request.suitable(one, most_memory_gb)), *request.parts_of(one))
            for native, one in zip(machines, view.classes.classes, strict=True)
        ],
        request.job.traffic_arrays.native,
        request.size,
        bool(request.job.edges),
        request.share if request.takes_parts else 0,
        request.job.spread == GPU,
        timing.slack,
        timing.alternatives,
        timing.near_only,
    )


def are_alike(topology: Topology) -> bool:
    """Return True if on each machine any GPUs, in any order, take the same time."""
    return topology.derived(_all_alike)


def natives(topology: Topology, rates: Rates | str) -> list[_core.Machine]:
    """Return a machine of each class for the kernels, with rings at these rates."""
    classes = topology.derived(MachineClasses).classes
    return [one.alone.derived(_Machine).native(rates) for one in classes]


def is_alike(machine_class: MachineClass) -> bool:
    """Return True if on a machine of the class any GPUs, in any order, take the same time."""
    return machine_class.alone.derived(_Machine).is_alike


def _all_alike(topology: Topology) -> bool:
    return all(map(is_alike, topology.derived(MachineClasses).classes))


def of_any(machine_class: MachineClass, request: JobRequest, timing: Timing) -> tuple[Chosen, float]:
    """Return the time of a job, and the time's `grade`, on any GPUs of a machine on which all are alike."""

    def find() -> tuple[Chosen, float]:
        machine, job = machine_class.alone.derived(_Machine).native(timing.rates), request.job
        seconds = machine.seconds_of_any(job.traffic_arrays.native, request.size, bool(job.edges))
        return Chosen(seconds, is_proven=True), grade(seconds, timing.slack)

    return request.table((Chosen, machine_class, timing), find)


def grade(seconds: float, slack: float) -> float:
    """Return a number for a time, smaller for a shorter one; equal for times that count as equal."""
    return _core.grade(seconds, slack)


BEFORE_DOMAINS: Final = 7
"""The count of sort keys that precede the domains of machines: the time, nearness, the rest of shared GPUs, and whether
a part of an idle machine is taken.
"""
