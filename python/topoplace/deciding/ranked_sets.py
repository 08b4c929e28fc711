"""The sets of one machine's GPUs for a job, ordered by time, nearness, and cost to other jobs."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from topoplace.collective.machine_graph import MAX_GPUS
from topoplace.collective.networks import collective_network
from topoplace.collective.rated_sets import Masks, masks_of, rated_sets
from topoplace.engine.machines.machine_class import MachineClasses, members
from topoplace.engine.machines.machine_options import Option
from topoplace.engine.memo import Memo
from topoplace.jobs.groups import GPU
from topoplace.jobs.requirements import WHOLE_GPU
from topoplace.objectives.communication import RING_KINDS, measured, task_flows
from topoplace.objectives.job_bandwidth import bandwidth_scores
from topoplace.topology.links.link_kinds import PATH_KINDS, Link, LinkKind
from topoplace.topology.links.nccl_rates import Rates
from topoplace.topology.ports import Ports

if TYPE_CHECKING:
    from topoplace.engine.machine_state import ClusterView
    from topoplace.engine.machines.machine_class import MachineClass, Mask
    from topoplace.engine.machines.machine_conditions import MachineState
    from topoplace.engine.request import JobRequest
    from topoplace.jobs.collectives import Batch
    from topoplace.kernels import Orders
    from topoplace.topology.topology import Topology

Reals = NDArray[np.float64]
Ints = NDArray[np.int32]
_MOST_SETS: Final = 13_000
"""Largest number of sets that are all compared: those of 8 of 16 GPUs."""
MOST_OPTIONS: Final = 16
"""Limit on the ways to place a job on one machine that are examined once its time is known."""
_MOST_ALIKE: Final = 4
"""Limit on options on a machine on which all GPUs are alike."""
_ROUNDING: Final = 1 + 1e-9
_ALL_ORDERS: Final = 4
"""Largest number of tasks for which `PortNetwork.best_orders` tries all orders."""
_MOST_ORDERED: Final = 16
"""Largest number of tasks for which rings that the library plans are also ordered."""
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
        self.ports = topology.derived(Ports)
        self.far = topology.link_matrix(_nearness, np.int64)
        self.same_socket = topology.socket_of[:, None] == topology.socket_of
        self.is_rated = 1 < topology.num_gpus <= MAX_GPUS

    @cached_property
    def is_alike(self) -> bool:
        """True if any GPUs, in any order, take the same time: all pairs are equal links through NVSwitches."""
        pairs = ~np.eye(self.topology.num_gpus, dtype=bool)
        switched = self.topology.link_matrix(lambda link: link.kind is LinkKind.NVSWITCH, bool)[pairs]
        speeds = self.topology.bandwidth_matrix()[pairs]
        return bool(len(speeds) and switched.all() and (speeds == speeds[0]).all())

    @cached_property
    def kept(self) -> Memo[Hashable, list[_Ranked]]:
        """The best sets of a machine on which all GPUs are alike, by free GPUs, number of tasks and rates."""
        return Memo()

    @cached_property
    def degraded(self) -> Reals:
        """(n,) by what share the fastest link of each GPU is slower than that of most GPUs of the machine."""
        fastest = self.topology.bandwidth_matrix().max(axis=1, initial=0.0)
        speeds, counts = np.unique(fastest, return_counts=True)
        usual = speeds[counts.argmax()] if len(speeds) else 0.0
        shares: Reals = np.maximum(0.0, 1 - fastest / usual) if usual else np.zeros_like(fastest)
        return shares

    @cached_property
    def domains(self) -> list[NDArray[np.bool_]]:
        """(n,) the GPUs of each part that can be left whole: those that are nearer to each other than to others."""
        parts = {tuple(np.flatnonzero(row <= rank)) for rank in range(_FARTHEST) for row in self.far}
        parts |= {tuple(np.flatnonzero(row)) for row in self.same_socket}
        n = self.topology.num_gpus
        return [np.isin(np.arange(n), part) for part in sorted(parts) if 1 < len(part) < n]


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
    """The scores of `bandwidth_scores`."""


class _Ranked(NamedTuple):
    """A way to place a job on a machine."""

    gpus: tuple[int, ...]
    order: tuple[float, ...]
    """What counts besides the time and before the GPU list, smaller is better."""
    seconds: float


def ranked(
    request: JobRequest,
    machine_class: MachineClass,
    state: MachineState,
    free: Mask,
    timing: Timing,
    required: Mask = 0,
) -> Iterator[Option]:
    """Yield the best ways to place a job on one machine, in no order; all tasks that communicate have a path.

    Args:
        free: The GPUs that the job may use.
        required: The GPUs of `free` that the job gets in any case.
    """
    machine = machine_class.alone.derived(_Machine)
    if not machine.is_alike or machine_class.partitions:
        is_proven = _are_all_compared(machine, request, machine_class, free, timing)
        for one in _ranked(machine, request, machine_class, state, free, timing, required):
            if one.seconds == math.inf:  # tasks that communicate have no path
                continue
            graded = grade(one.seconds, timing.slack)
            carried = _bandwidths(machine, request, one.gpus, one.seconds, timing)
            yield _option(one.gpus, (graded, *one.order), Chosen(one.seconds, is_proven, bandwidths=carried))
        return

    def sets() -> list[_Ranked]:
        return _ranked(machine, request, machine_class, state, free, timing, required)[:_MOST_ALIKE]

    left = state.left if request.takes_parts else ()
    job = request.job
    kind = request.size, bool(job.edges), job.spread == GPU, request.in_one_socket
    key = free, required, state.free, left, kind, timing.rates
    chosen, graded = of_any(machine_class, request, timing)
    for one in machine.kept.get_or_build(key, sets):
        yield _option(one.gpus, (graded, *one.order), chosen)


def are_alike(topology: Topology) -> bool:
    """Return True if on each machine any GPUs, in any order, take the same time."""
    return topology.derived(_all_alike)


def is_alike(machine_class: MachineClass) -> bool:
    """Return True if on a machine of the class any GPUs, in any order, take the same time."""
    return machine_class.alone.derived(_Machine).is_alike


def rings_of_sets(machine_class: MachineClass, rates: Rates | str) -> Reals:
    """Return (2**n,) GB/s of the rings of each set of a machine's GPUs, as bit masks; 0 if unknown."""
    machine = machine_class.alone.derived(_Machine)
    found: Reals = np.zeros(1 << machine.topology.num_gpus)
    if machine.is_rated:
        found[1:] = rated_sets(machine.topology, rates).gb_per_s(np.arange(1, len(found), dtype=np.uint64))
    return found


def _all_alike(topology: Topology) -> bool:
    return all(map(is_alike, topology.derived(MachineClasses).classes))


def of_any(machine_class: MachineClass, request: JobRequest, timing: Timing) -> tuple[Chosen, float]:
    """Return the time of a job, and the time's `grade`, on any GPUs of a machine on which all are alike."""

    def find() -> tuple[Chosen, float]:
        first = np.arange(request.size, dtype=np.int32)[None, :]
        machine = machine_class.alone.derived(_Machine)
        gpus, seconds = _times(machine, request, first, timing)
        (exact,) = _with_inner_rings(machine, request, gpus, seconds, timing).tolist()
        carried = _bandwidths(machine, request, range(request.size), exact, timing)
        return Chosen(exact, is_proven=True, bandwidths=carried), grade(exact, timing.slack)

    return request.table((Chosen, machine_class, timing), find)


def _bandwidths(
    machine: _Machine, request: JobRequest, gpus: Sequence[int], seconds: float, timing: Timing
) -> Mapping[str, float]:
    return bandwidth_scores(request.job, seconds, gpus, machine.topology, timing.rates)


def fastest_rings(view: ClusterView, size: int, rates: Rates | str) -> float:
    """Return the upper bound on GB/s of the rings of `size` GPUs of a machine; infinity if unknown."""

    def find() -> float:
        return max(
            (_fastest_rings(one.alone.derived(_Machine), size, rates) for one in view.classes.classes),
            default=0.0,
        )

    return view.table((_fastest_rings, size, rates), lambda: [find()])[0]


def _fastest_rings(machine: _Machine, size: int, rates: Rates | str) -> float:
    n = machine.topology.num_gpus
    if size > n:
        return 0.0
    if not machine.is_rated or math.comb(n, size) > _MOST_SETS:
        return math.inf
    sets = rated_sets(machine.topology, rates)
    if not sets.gb_per_s(masks_of(range(n), 2)).all():
        return math.inf  # some exchange over ports, by which they may be faster
    return float(sets.fastest(masks_of(range(n), size))[1].max())


def _option(gpus: tuple[int, ...], order: tuple[float, ...], chosen: Chosen) -> Option:
    return Option(order, gpus, -chosen.seconds, chosen)


def _ranked(
    machine: _Machine,
    request: JobRequest,
    machine_class: MachineClass,
    state: MachineState,
    free: Mask,
    timing: Timing,
    required: Mask,
) -> list[_Ranked]:
    """Return the best ways, the best first; where all GPUs are alike, without their time."""
    sets = _sets(machine, request, machine_class, free, timing, required)
    if not len(sets):
        return []
    gpus, seconds = sets, np.zeros(len(sets))
    if not machine.is_alike:
        gpus, seconds = _times(machine, request, sets, timing)
    graded, keys = _grades(seconds, timing.slack), _keys(machine, request, state, gpus)
    best = np.lexsort((*gpus.T[::-1], *keys[::-1], graded))[:MOST_OPTIONS]
    gpus, keys = gpus[best], [key[best] for key in keys]
    lost = _lost(machine, state, gpus, [graded[best], *keys], timing.rates)
    rows = np.stack([*keys, lost], 1).tolist()
    exact = seconds[best]
    if not machine.is_alike:
        exact = _with_inner_rings(machine, request, gpus, exact, timing)
    found = zip(_in_order(machine, request, gpus), rows, exact.tolist(), strict=True)
    return [_Ranked(tuple(one), tuple(order), time) for one, order, time in found]


# ---- which sets ------------------------------------------------------------------------------------------------


def _sets(
    machine: _Machine,
    request: JobRequest,
    machine_class: MachineClass,
    free: Mask,
    timing: Timing,
    required: Mask,
) -> Ints:
    """Return (s, k) the sets to compare, each with its GPUs ascending."""
    if machine_class.partitions:
        regions = request.regions(machine_class, free)
        rows = [list(members(part)) for part in regions if part & required == required]
        return np.array(rows, np.int32).reshape(len(rows), request.size)
    given = np.array(list(members(required)), np.int32)
    size, found = request.size - len(given), [np.empty((0, request.size), np.int32)]
    for region in request.regions(machine_class, free):
        if region & required != required:
            continue
        numbers = list(members(region & ~required))
        if not size:
            sets = np.empty((1, 0), np.int32)
        elif _are_few(machine, request, region, timing):
            sets = _members(masks_of(numbers, size), size)
        else:
            sets = _near_sets(machine, np.array(numbers), size)
        found.append(np.sort(np.hstack([sets, np.tile(given, (len(sets), 1))]), axis=1))
    return np.concatenate(found)


def _are_few(machine: _Machine, request: JobRequest, free: Mask, timing: Timing) -> bool:
    few = not timing.near_only and math.comb(free.bit_count(), request.size) <= _MOST_SETS
    return few and machine.topology.num_gpus <= MAX_GPUS


def _are_all_compared(
    machine: _Machine, request: JobRequest, machine_class: MachineClass, free: Mask, timing: Timing
) -> bool:
    """Return True if every set of GPUs is compared, and every order of tasks that may take another time."""
    few_sets = bool(machine_class.partitions) or _are_few(machine, request, free, timing)
    few_orders = request.size <= _ALL_ORDERS and not _has_inner_rings(machine, request)
    return few_sets and (not request.job.edges or _is_one_ring(machine, request) or few_orders)


def _is_one_ring(machine: _Machine, request: JobRequest) -> bool:
    """Return True if all that the tasks exchange is in rings of all of them, which the library plans."""
    ring = all(
        batch.kind in RING_KINDS and batch.tasks.shape[1] == request.size for batch in _batches(request)
    )
    return ring and machine.is_rated


def _has_inner_rings(machine: _Machine, request: JobRequest) -> bool:
    """Return True if the library plans rings for a part of what the tasks exchange."""
    if not machine.is_rated or _is_one_ring(machine, request):
        return False
    return any(batch.kind in RING_KINDS for batch in _batches(request))


def _batches(request: JobRequest) -> Iterator[Batch]:
    return chain.from_iterable(request.job.traffic.values())


def _members(masks: Masks, size: int) -> Ints:
    """Return (s, size) the GPUs of each set, ascending."""
    if not len(masks):
        return np.empty((0, size), np.int32)
    bits = masks[:, None] >> np.arange(64, dtype=np.uint64) & np.uint64(1)
    return np.nonzero(bits)[1].reshape(len(masks), size).astype(np.int32)


def _near_sets(machine: _Machine, free: NDArray[np.int64], size: int) -> Ints:
    """Return the sets of the GPUs nearest to each free one, and those that follow each other in the near order."""
    in_order = free[np.argsort(machine.ports.near_order[free], kind="stable")]
    windows = np.lib.stride_tricks.sliding_window_view(in_order, size)
    far = machine.far[np.ix_(in_order, in_order)]
    nearest = in_order[np.argsort(far, axis=1, kind="stable")[:, :size]]
    return np.unique(np.sort(np.concatenate([windows, nearest]), axis=1), axis=0).astype(np.int32)


# ---- what counts -----------------------------------------------------------------------------------------------


def _times(machine: _Machine, request: JobRequest, sets: Ints, timing: Timing) -> tuple[Ints, Reals]:
    """Return (s, k) the GPU of each task, and (s,) the communication time of each set.

    It may be infinite for sets that take longer than as many `alternatives` by more than the slack.
    """
    job = request.job
    if not job.edges:
        return sets, np.zeros(len(sets))
    if _is_one_ring(machine, request):
        rated = rated_sets(machine.topology, timing.rates)
        leading = rated.leading(_masks(sets), timing.alternatives, 1 - timing.slack)
        seconds = _planned(machine, request, sets, leading, timing)
        if np.isfinite(seconds).any():
            return sets, seconds
    found = _best_orders(machine, request, sets)
    return found.vertices, found.seconds


def _planned(machine: _Machine, request: JobRequest, sets: Ints, gb_per_s: Reals, timing: Timing) -> Reals:
    """Return (s,) the communication time of planned rings.

    gb_per_s: (s,) that of the rings of each set; the time is infinite where it is not positive.
    """
    phases = list(request.job.traffic.values())
    carried = math.fsum(max(float(batch.carried.max()) for batch in batches) for batches in phases)
    with np.errstate(divide="ignore"):
        seconds = np.where(gb_per_s > 0, carried / gb_per_s, np.inf)
    are_alone = all(len(batches) == len(batches[0].carried) == 1 for batches in phases)
    if not are_alone or _may_reduce(machine, request, timing):  # they may share ports, or run without rings
        for i in np.flatnonzero(np.isfinite(seconds)).tolist():
            gpus = sets[i].astype(np.int64)
            seconds[i] = measured(request.job, gpus, machine.topology, rates=timing.rates).seconds
    return seconds


def _may_reduce(machine: _Machine, request: JobRequest, timing: Timing) -> bool:
    """Return True if NVSwitches of the machine may reduce for the job."""
    if not collective_network(machine.topology, timing.rates).reduces:
        return False
    return any(batch.kind == "all_reduce" for batch in _batches(request))


def _with_inner_rings(
    machine: _Machine, request: JobRequest, gpus: Ints, seconds: Reals, timing: Timing
) -> Reals:
    """Return the time of each row of GPUs, also where the library plans rings for a part of what is exchanged."""
    if not _has_inner_rings(machine, request):
        return seconds
    exact = (
        measured(request.job, one, machine.topology, rates=timing.rates) for one in gpus.astype(np.int64)
    )
    return np.array([time.seconds for time in exact])


def _best_orders(machine: _Machine, request: JobRequest, sets: Ints) -> Orders:
    flows = request.table(task_flows, lambda: task_flows(request.job))
    return machine.ports.network.best_orders(flows, sets)


def _in_order(machine: _Machine, request: JobRequest, gpus: Ints) -> list[list[int]]:
    """Return the GPU of each task; where the library plans rings, in an order that also suits sends along their edges.

    Only the ring of the tasks' numbers is ordered; GPUs stay ascending where another order gains nothing.
    """
    is_open = request.job.edges and not machine.is_alike and _is_one_ring(machine, request)
    if is_open and request.size <= _MOST_ORDERED:
        gpus = _best_orders(machine, request, gpus).vertices
    ordered: list[list[int]] = gpus.tolist()
    return ordered


def _masks(sets: Ints) -> Masks:
    found: Masks = np.bitwise_or.reduce(np.uint64(1) << sets.astype(np.uint64), axis=1)
    return found


def grade(seconds: float, slack: float) -> float:
    """Return a number for a time, smaller for a shorter one; equal for times that count as equal."""
    return float(_grades(np.array([seconds]), slack)[0])


def _grades(seconds: Reals, slack: float) -> Reals:
    """Return a number for each time, smaller for shorter ones; equal for times that count as equal."""
    with np.errstate(divide="ignore"):
        return np.where(seconds > 0, np.round(np.log(seconds) / math.log1p(slack)), -1e9)


def _keys(
    machine: _Machine, request: JobRequest, state: MachineState, gpus: Ints
) -> list[NDArray[np.floating]]:
    """Return what counts after the time and before the GPU list, most important first, smaller is better: (s,) each."""
    far = machine.far[gpus[:, :, None], gpus[:, None, :]]
    apart = ~machine.same_socket[gpus[:, :, None], gpus[:, None, :]]
    nothing = np.zeros(len(gpus))
    near = [far.max(axis=(1, 2)), far.sum(axis=(1, 2)), apart.sum(axis=(1, 2))]
    shares = [nothing, nothing]
    if request.takes_parts:
        left = np.array(state.left)[gpus]
        most_first = -1 if request.job.spread == GPU else 1
        shares = [most_first * (left == WHOLE_GPU).sum(axis=1), most_first * left.sum(axis=1)]
    num_free, n = state.free.bit_count(), machine.topology.num_gpus
    opened = nothing + float(num_free == n and gpus.shape[1] < n)
    parts = nothing.copy()
    chosen = np.zeros((len(gpus), n), bool)
    np.put_along_axis(chosen, gpus.astype(np.int64), values=True, axis=1)
    free = np.isin(np.arange(n), list(members(state.free)))
    for domain in machine.domains:
        if free[domain].all():
            taken = chosen[:, domain].sum(axis=1)
            parts += (taken > 0) & (taken < domain.sum())
    communicates = bool(request.job.edges)
    slow = machine.degraded[gpus].sum(axis=1)
    far_ones = near if communicates else [nothing] * len(near)
    return [*far_ones, *shares, opened, nothing + num_free, parts, slow, *near]


BEFORE_DOMAINS: Final = 7
"""The count of sort keys that precede the domains of machines: the time, nearness, the rest of shared GPUs, and whether
a part of an idle machine is taken.
"""


def _lost(
    machine: _Machine,
    state: MachineState,
    gpus: Ints,
    keys: list[NDArray[np.floating]],
    rates: Rates | str,
) -> Reals:
    """Return what rings of the free GPUs lose by each set, GB/s, among the sets that tie with the first; else 0."""
    lost = np.zeros(len(gpus))
    tied = np.logical_and.reduce([key == key[0] for key in keys])
    if machine.is_rated and tied.sum() > 1:
        sets = rated_sets(machine.topology, rates)
        lost[tied] = sets.lost(state.free, _masks(gpus[tied]))
    return lost
