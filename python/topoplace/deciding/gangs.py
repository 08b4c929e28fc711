"""The GPUs of a gang: its tasks, or groups of them, are mapped to GPUs that machines offer (`gang_decision.hpp`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from topoplace import _core, kernels
from topoplace.deciding import bounds, ranked_sets
from topoplace.deciding.gang_topology import (
    GangLevels,
    chain_of,
    rooms_of,
    topology_of_gangs,
    usual_tflop_per_s,
)
from topoplace.engine.gangs.division import Part, distances_of
from topoplace.engine.gangs.offers import MachineOffer, Offers
from topoplace.engine.gangs.packing import rows_of
from topoplace.engine.level_chain import LevelChains, Together, preferred_of, required_of
from topoplace.engine.machines.machine_class import Mask, members
from topoplace.engine.machines.machine_conditions import Sight
from topoplace.engine.request import exact_request_key
from topoplace.jobs.groups import MACHINE
from topoplace.kernels.limits import check_deadline

if TYPE_CHECKING:
    from topoplace.engine.level_chain import Chain
    from topoplace.engine.machine_state import ClusterView
    from topoplace.engine.request import JobRequest
    from topoplace.jobs.job_graph import JobGraph
    from topoplace.topology.links.nccl_rates import Rates

Ints = NDArray[np.int32]
_UNKNOWN: Final = np.empty(0)


class Mapped(NamedTuple):
    """The GPUs of a gang, and its communication time."""

    gpus: list[int]
    """The GPU of each task."""
    seconds: float
    """The communication time, next to other jobs if they count."""
    least_seconds: float
    """Lower bound on the seconds of placements on the offered machines."""


def mapped(
    request: JobRequest,
    view: ClusterView,
    offers: Offers,
    *,
    timing: ranked_sets.Timing,
    others: kernels.FlowCounts | None,
    timeout: float | None,
    compact: float,
) -> Mapped | None:
    """Return the GPUs of a gang; None without room, or if its machines cannot be chosen freely.

    They cannot with `spread`, `same_gpus`, fixed partitions of GPUs, or groups on sockets. Also return None if the gang
    gets more than its `max_machines`, even on those with the most room.

    Args:
        timing: How times on one machine are computed and compared.
        others: The flows of running jobs, which count on uplinks; None for none.
        timeout: Limit in seconds, exceeded only until there is a first mapping; None for no limit.
        compact: The share by which a step may be longer to put the gang into fewer domains with narrow uplinks.
    """
    if not _is_mapped(request, offers):
        return None
    return _placed(request, view, offers, timing, others, timeout, compact, may_divide=True)


def _placed(
    request: JobRequest,
    view: ClusterView,
    offers: Offers,
    timing: ranked_sets.Timing,
    others: kernels.FlowCounts | None,
    timeout: float | None,
    compact: float,
    *,
    may_divide: bool,
) -> Mapped | None:
    """Return the GPUs of a gang as `mapped`; may_divide: False if no group decides which machine gets which tasks."""
    job, topology = request.job, view.cluster.topology
    found = _core.place_gang(
        *_asked(request, view, offers, timing.rates),
        may_divide,
        None if others is None else others.native,
        (timing.slack, timing.near_only),
        (
            compact,
            job.max_machines or 0,
            job.tflop or 0.0,
            topology.derived(usual_tflop_per_s) if job.tflop else _UNKNOWN,
        ),
        timeout,
    )
    check_deadline()  # that of the caller
    return None if found is None else Mapped(found[0].tolist(), *found[1:])


def order_on(
    request: JobRequest,
    masks: Mapping[int, Mask],
    view: ClusterView,
    *,
    timing: ranked_sets.Timing,
    others: kernels.FlowCounts | None,
    timeout: float | None,
) -> list[int] | None:
    """Return the GPU of each task on machines that are already chosen; None if their GPUs cannot be chosen freely.

    masks: the GPUs of each machine, at least one per task. Other arguments are those of `mapped`.
    """
    if request.anti_affine or any(view.classes.of(machine).partitions for machine in masks):
        return None
    kinds = [MachineOffer(machine, usable, (), usable.bit_count()) for machine, usable in masks.items()]
    offers = Offers(np.array(list(masks), np.int64), np.arange(len(kinds)), kinds, None)
    found = _placed(request, view, offers, timing, others, timeout, 0.0, may_divide=False)
    return found and found.gpus


def can_be_mapped(
    request: JobRequest, view: ClusterView, offers: Offers, rates: Rates | str, timeout: float | None = None
) -> bool:
    """Return True if `mapped` is certain to find a mapping within its limits; timeout: as for `mapped`."""
    if not _is_mapped(request, offers) or request.job.max_machines:
        return False
    return _core.can_place_gang(*_asked(request, view, offers, rates), timeout)


def machine_limits(
    request: JobRequest, view: ClusterView, offers: Offers, rates: Rates | str
) -> bounds.MachineLimits | None:
    """Return lower bounds by what a machine has of a job; None for a job that is not mapped as units."""
    if not _is_mapped(request, offers):
        return None
    job = request.job
    sizes = offers.native[2]
    units = _core.gang_units(
        job.traffic_arrays.native, groups_of(request, view, rates), _most(request), sizes
    )
    return bounds.machine_limits(job, units, rooms_of(request, offers, view), view, rates)


def _is_mapped(request: JobRequest, offers: Offers) -> bool:
    """Return True if units of the job may be on any of the machines, and there are some."""
    is_bound = request.spread or request.job.same_gpus or request.needs_sockets
    return not is_bound and offers.is_simple and len(offers) > 0


def _most(request: JobRequest) -> int:
    """Return the largest number of tasks on one machine."""
    return 1 if request.anti_affine else request.size


def _asked(
    request: JobRequest, view: ClusterView, offers: Offers, rates: Rates | str
) -> tuple[
    _core.GangTopology,
    _core.GangLevels,
    _core.MachineConditions,
    tuple[Ints, Ints, Ints, NDArray[np.uint8]],
    _core.JobCollectives,
    NDArray[np.float64],
    int,
    _core.GangGroups,
]:
    """Return a gang, and what machines offer to it, for the kernels."""
    job, topology = request.job, view.cluster.topology
    return (
        topology_of_gangs(topology, rates),
        topology.derived(GangLevels).of(chain_of(request, view), rates),
        view.conditions(Sight(shares=job.takes_parts)).native,
        offers.native,
        job.traffic_arrays.native,
        job.edge_array,
        _most(request),
        groups_of(request, view, rates),
    )


def groups_of(request: JobRequest, view: ClusterView, rates: Rates | str) -> _core.GangGroups:
    """Return what binds the tasks of a job to each other, for the kernels."""
    job, topology = request.job, view.cluster.topology
    tree = topology.derived(LevelChains).for_job(job)
    assert tree is not None  # `engine.requirements` has refused levels that no tree can honour
    depth_of, place_of = _depths(tree.chain), _depths(chain_of(request, view))
    required, preferred = required_of(job), preferred_of(job)
    roles = [Together(job.dimensions[role][0], MACHINE) for role, _ in job.roles]
    is_divided = bool(required or preferred or job.balanced or roles)
    return _core.GangGroups(
        job.num_tasks,
        bool(job.stated_collectives),
        topology.derived(GangLevels).of(tree.chain, rates),
        [place_of[name] - 1 for name in depth_of],
        rows_of([one for one in required if one not in tree.apart], depth_of),
        rows_of(tree.apart, depth_of),
        rows_of(preferred, depth_of),
        depth_of[job.balanced] - 1 if job.balanced else -1,
        any(group.within == MACHINE for group in job.groups),
        _outermost(job, place_of),
        rows_of(roles, depth_of),
        distances_of(topology) if is_divided and job.edges else None,
    )


def _depths(chain: Chain) -> dict[str, int]:
    """Return the depth of each level of a tree, the outermost first; that of the whole is 0."""
    return {level.name: depth for depth, level in enumerate(chain[::-1], 1)}


def _outermost(job: JobGraph, depth_of: Mapping[str, int]) -> int:
    """Return the place of the outermost level that a group names; the number of levels if none does."""
    named = {level for group in job.groups for level in (group.within, group.prefer)}
    return min((depth - 1 for level, depth in depth_of.items() if level in named), default=len(depth_of))


# ---- GPUs ------------------------------------------------------------------------------------------------------


def local_gpus(part: Part, job: JobGraph, view: ClusterView, timing: ranked_sets.Timing) -> Sequence[int]:
    """Return the GPU of each task of a part (`job`), by the rule for one machine, as local numbers."""
    sight = Sight(jobs=False, shares=job.takes_parts)
    machine_class, state = view.conditions(sight).of_machine(part.machine)

    def find() -> tuple[int, ...]:
        options = ranked_sets.ranked(view.request(job), machine_class, state, part.usable, timing)
        best = min(options, key=lambda option: (option.order, sorted(option.gpus)), default=None)
        return best.gpus if best else tuple(members(part.usable))[: len(part.tasks)]

    key = (local_gpus, timing, machine_class, state, part.usable, exact_request_key(job))
    return view.table(key, lambda: (job, find()))[1]  # holds the job, so that no other gets its id
