"""The seat of a pod of a group of which others run: where the pod was that it replaces, else where `repair` says.

Pods that run never move. Ranks are numbered in the order of the pods' names; a pod that waits replaces the lost pod of
its rank, or if its name has no rank any lost pod that no other can replace. Nodes near the lost one come first; the
policy chooses the GPUs of a node.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import islice
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from topoplace.cluster.cluster import Cluster
from topoplace.engine.level_chain import required_of
from topoplace.engine.policy import Policy
from topoplace.jobs.groups import MACHINE
from topoplace.jobs.job_graph import JobGraph
from topoplace.moving.repairs import RepairFront, repair
from topoplace.placement import Refusal
from topoplace_hosts.kubernetes.objects.annotations import group_name, request_of
from topoplace_hosts.kubernetes.objects.pod import Pod
from topoplace_hosts.kubernetes.scheduler.allowed_rows import MachineMask
from topoplace_hosts.kubernetes.scheduler.cluster_state import ClusterState
from topoplace_hosts.kubernetes.scheduler.demands import are_alike
from topoplace_hosts.kubernetes.scheduler.seats import Seat, Seats, job_graph, no_node, node_of, placed
from topoplace_hosts.kubernetes.scheduler.waiting import rank_order

_GANG: Final = "repaired"
_MOST_NAMED: Final = 3


class _Member(NamedTuple):
    """A rank of a group."""

    pod: Pod
    gpus: tuple[int, ...]
    """Where the pod is, or was, or where the pod was that it replaces; () if that is unknown, or taken."""
    runs: bool = False
    waits: bool = False


def seat_beside(policy: Policy, state: ClusterState, pod: Pod, rest: Sequence[Pod]) -> Seats | Refusal | None:
    """Return the seat of a waiting pod, or why it waits; None if its group is no job that can be repaired.

    rest: the pods of its group that waited, this one among them, before any of them got a seat.
    """
    members = _members(state, pod, rest)
    if not _is_one_job(state, members):
        return None
    mask = state.eligible_machines(pod)
    if not mask.any():
        return no_node(state, pod)
    return _found(policy, state, members, pod, mask)


def _found(
    policy: Policy, state: ClusterState, members: Sequence[_Member], pod: Pod, mask: MachineMask
) -> Seats | Refusal | None:
    """Return the seat of a pod if all that wait come back; if that is impossible, the seat if it comes back alone."""
    masks = list(_from_near_to_far(state, members[_position(members, pod)], members, mask))
    back = [one if _may_return(state, one, mask) else one._replace(gpus=()) for one in members]
    found = _first(_decided(policy, state, back, pod, near) for near in masks)
    if isinstance(found, Refusal) and (fewer := _without_others(state, members, back, pod)):
        found = _first(_decided(policy, state, fewer, pod, near) for near in masks)
    return found


def _position(members: Sequence[_Member], pod: Pod) -> int:
    return [one.pod.uid for one in members].index(pod.uid)


def _first(answers: Iterable[Seats | Refusal | None]) -> Seats | Refusal | None:
    """Return the first answer that is no refusal, else the last refusal."""
    found: Seats | Refusal | None = None
    for found in answers:
        if not isinstance(found, Refusal):
            break
    return found


def beside(state: ClusterState, pod: Pod, rest: Sequence[Pod]) -> MachineMask:
    """Return True for each machine in the domains in which the pods run with which a waiting pod must be."""
    mask = MachineMask(np.ones(state.topology.num_machines, np.bool_))
    members = _members(state, pod, rest)
    if not _is_one_job(state, members):
        return mask
    position, each = _position(members, pod), pod.requests.gpus
    domains, numbers = _domains(state), np.arange(state.topology.num_machines)
    for group in required_of(job_graph(state, [one.pod for one in members])):
        ranks = {task // each for task in group.tasks}
        there = _machines([members[rank] for rank in ranks], state)
        if position in ranks and len(there):
            codes = domains.get(group.level, numbers)
            mask &= np.isin(codes, codes[there])
    return mask


def _machines(members: Sequence[_Member], state: ClusterState) -> NDArray[np.int32]:
    """Return the machines of those members that run."""
    return np.unique(state.topology.machine_of[[one.gpus[0] for one in members if one.runs]])


# ---- the group ---------------------------------------------------------------------------------------------------


def _members(state: ClusterState, pod: Pod, rest: Sequence[Pod]) -> list[_Member]:
    """Return the ranks of a pod's group in their order; [] if there are more than its size."""
    present = _present(state, (pod.namespace, group_name(pod.labels)))
    waiting = [one for one in sorted(rest, key=rank_order) if one.uid not in state.pods]
    size = pod.group.size if pod.group else 0
    places = _taken_out(present, waiting, size)
    held = {gpu for one in present.values() if one.runs for gpu in one.gpus}
    new = [_Member(one, gpus, waits=True) for one, gpus in zip(waiting, places, strict=True)]
    members = [_without(one, held) for one in (*present.values(), *new)]
    return sorted(members, key=lambda one: rank_order(one.pod)) if len(members) <= size else []


def _taken_out(present: dict[str, _Member], waiting: Sequence[Pod], size: int) -> list[tuple[int, ...]]:
    """Take those that are replaced out of the present members, and return where each waiting pod was; () if unknown."""
    found = [present.pop(one.rank_name, None) for one in waiting]
    most = min(found.count(None), max(0, len(present) + len(waiting) - size))
    gone = [name for name, one in present.items() if not one.runs][:most]
    others = iter([present.pop(name).gpus for name in gone])
    return [one.gpus if one else next(others, ()) for one in found]


def _present(state: ClusterState, key: tuple[str, str]) -> dict[str, _Member]:
    """Return the members of a group that are lost or bound, by rank; of two with a rank, the one that stays."""
    found = {name: _Member(one, _place(state, one)) for name, one in state.lost.get(key, {}).items()}
    bound = [one for one in state.pods.values() if (one.namespace, group_name(one.labels)) == key]
    for one in sorted(bound, key=lambda one: not one.deleting):
        found[one.rank_name] = _Member(one, state.cluster.gpus_of(one.job_id), runs=not one.deleting)
    return found


def _without(member: _Member, held: set[int]) -> _Member:
    """Return a member without its old place if another member has a part of it."""
    return member if member.runs or held.isdisjoint(member.gpus) else member._replace(gpus=())


def _place(state: ClusterState, pod: Pod) -> tuple[int, ...]:
    """Return the GPUs that a pod had which is gone."""
    there = state.topology.gpus_of[pod.node]
    return tuple([there[number] for number in pod.gpus or ()])


def _is_one_job(state: ClusterState, members: Sequence[_Member]) -> bool:
    """Return True if members run, it is known where, and all ask for the same."""
    known = all(one.gpus or one.waits for one in members)
    return known and any(one.runs for one in members) and are_alike(state.table, [one.pod for one in members])


def _may_return(state: ClusterState, member: _Member, mask: MachineMask) -> bool:
    """Return True if a member is where it is, or can be where it was: its GPUs are free, and their machine takes it."""
    if not member.waits:
        return True
    free = all(state.cluster.owner(gpu) is None for gpu in member.gpus)
    return bool(member.gpus) and free and bool(mask[state.topology.machine_of[member.gpus[0]]])


def _without_others(
    state: ClusterState, members: Sequence[_Member], back: Sequence[_Member], pod: Pod
) -> list[_Member]:
    """Return the group in which of the pods that wait only this one lacks a place, for when not all can come back.

    The others count where they were, or are left out; [] if the groups of the job count on their ranks.
    """
    has_ranks = bool(job_graph(state, [one.pod for one in members]).groups)
    found: list[_Member] = []
    for before, one in zip(members, back, strict=True):
        if one.pod is pod:
            found.append(one._replace(gpus=()))
        elif gpus := before.gpus if has_ranks else one.gpus:
            found.append(before._replace(gpus=gpus, waits=False))
    return [] if has_ranks and len(found) < len(members) else found


# ---- where -------------------------------------------------------------------------------------------------------


def _domains(state: ClusterState) -> dict[str, NDArray[np.int64]]:
    """Return the number of each machine's domain, by level of the network, the innermost first."""
    return {level.name: level.codes for level in state.topology.levels if not level.rail}


def _from_near_to_far(
    state: ClusterState, own: _Member, members: Sequence[_Member], mask: MachineMask
) -> Iterator[MachineMask]:
    """Yield masks of machines that have room for a pod: that of its old place, its domains, and at last all.

    If its old place is unknown, its group's counts.
    """
    machines = state.topology.machine_of[[own.gpus[0]]] if own.gpus else _machines(members, state)
    numbers = np.arange(state.topology.num_machines)
    has_room = state.free_by_row()[: len(numbers)] >= own.pod.requests.gpus
    for codes in (numbers, *_domains(state).values()):
        near = MachineMask(mask & np.isin(codes, codes[machines]) & (codes >= 0))
        if (near & has_room).any():
            yield near
    yield mask


def _is_together(state: ClusterState, job: JobGraph, gpus: Sequence[int]) -> bool:
    """Return True if each required group of a job is in one domain of its level; a socket counts as its machine."""
    domains, numbers = _domains(state), np.arange(state.topology.num_machines)
    machines = state.topology.machine_of[list(gpus)]
    for group in required_of(job):
        own = machines[list(group.tasks)]
        if len(np.unique(domains.get(group.level, numbers)[own])) > 1:
            return False
    return True


def _decided(
    policy: Policy, state: ClusterState, members: Sequence[_Member], pod: Pod, mask: MachineMask
) -> Seats | Refusal | None:
    """Return the seat of a pod if those without a place get one; None if repairs do not honour what they ask for."""
    position = _position(members, pod)
    job = _job(state, [one.pod for one in members])
    if all(one.gpus for one in members):
        if _is_together(state, job, [gpu for one in members for gpu in one.gpus]):
            return _at(state, pod, members[position].gpus)
        # Others have been placed elsewhere than they were, and this one has to follow.
        members = [one._replace(gpus=()) if one.pod is pod else one for one in members]
    gpus = _with_stand_ins(state, members, mask)
    if gpus is None or (front := _repairs(state, job, members, gpus, mask)) is None:
        return None
    return _seat_of(policy, state, members, position, gpus, front)


def _repairs(
    state: ClusterState, job: JobGraph, members: Sequence[_Member], gpus: Sequence[int], mask: MachineMask
) -> RepairFront | None:
    """Return the repairs of a group for members without a place; None if it asks for what repairs do not honour."""
    each = job.num_tasks // len(members)
    lost = [gpu for i, one in enumerate(members) if not one.gpus for gpu in gpus[i * each : (i + 1) * each]]
    with state.focus(mask).what_if() as cluster:
        _put_together(cluster, gpus, job)
        try:
            return repair(_GANG, cluster, lost=lost)
        except ValueError:
            return None


def _seat_of(
    policy: Policy,
    state: ClusterState,
    members: Sequence[_Member],
    position: int,
    gpus: Sequence[int],
    front: RepairFront,
) -> Seats | Refusal:
    """Return the seat of a member in the repair with the fewest moves, on GPUs that the policy chooses."""
    pod, each = members[position].pod, members[position].pod.requests.gpus
    first = position * each
    if not front.unrepaired.keys().isdisjoint(range(first, first + each)):
        return Refusal("no node that may run it beside the pods of its group has the GPUs")
    replaced = dict(front.plans[0].replaced) if front.plans else dict[int, tuple[int, int]]()
    moved = [members[rank] for rank in sorted({task // each for task in replaced})]
    if names := [one.pod.name for one in moved if one.runs]:
        return _chain(names)
    if first not in replaced:
        return _at(state, pod, members[position].gpus)
    kept = set(gpus) - {old for old, _ in replaced.values()}
    return _on_machine(policy, state, pod, int(state.topology.machine_of[replaced[first][1]]), kept)


def _chain(names: Sequence[str]) -> Refusal:
    named = ", ".join(names[:_MOST_NAMED]) + (", …" if len(names) > _MOST_NAMED else "")
    return Refusal(
        f"it fits only if pods of its group moved ({named}), and the scheduler moves none that runs"
    )


def _at(state: ClusterState, pod: Pod, gpus: tuple[int, ...]) -> Seats:
    return (Seat(pod, node_of(state, gpus[0]), gpus),)


def _job(state: ClusterState, pods: Sequence[Pod]) -> JobGraph:
    """Return the job that pods form as far as a repair has to know it: what it requires, each pod on one node."""
    job, each = job_graph(state, pods), pods[0].requests.gpus
    required = {name: getattr(job, name) for name in job.requirements if name != "min_utility"}
    bare = JobGraph.independent(job.num_tasks).with_(**required)
    return bare if bare.groups or each == 1 else bare.grouped(each, within=MACHINE)


def _with_stand_ins(
    state: ClusterState, members: Sequence[_Member], mask: MachineMask
) -> tuple[int, ...] | None:
    """Return the GPUs of all tasks, and others where they have none: if possible GPUs that nobody can get."""
    each, known = members[0].pod.requests.gpus, {gpu for one in members for gpu in one.gpus}
    is_free = np.zeros(state.topology.num_gpus, np.bool_)
    is_free[list(state.cluster.free_gpus())] = True
    is_free &= mask[state.topology.machine_of]
    order = np.argsort(is_free, kind="stable")
    others = iter(order[~np.isin(order, list(known))].tolist())
    found = [gpu for one in members for gpu in one.gpus or islice(others, each)]
    return tuple(found) if len(found) == each * len(members) else None


def _put_together(cluster: Cluster, gpus: Sequence[int], job: JobGraph) -> None:
    """Make a group one job; what others hold of these GPUs they give up, and keep the rest."""
    wanted = frozenset(gpus)
    for owner in {owner for gpu in gpus if (owner := cluster.owner(gpu)) is not None}:
        rest = [gpu for gpu in cluster.gpus_of(owner) if gpu not in wanted]
        cluster.release(owner)
        if rest:
            cluster.record(owner, rest)
    cluster.record(_GANG, gpus, job)


def _on_machine(
    policy: Policy, state: ClusterState, pod: Pod, machine: int, kept: Collection[int]
) -> Seats | Refusal:
    """Return the seat that the policy gives a pod on a machine, apart from GPUs that are kept for others."""
    there = state.topology.gpus_of[state.topology.machine_names[machine]]
    usable = frozenset(number for number, gpu in enumerate(there) if gpu not in kept)
    least = request_of(pod.annotations).get("min_bandwidth")
    with state.only({machine: usable}) as cluster:
        gpus = placed(policy, cluster, job_graph(state, [pod]), 1, least)
    return gpus if isinstance(gpus, Refusal) else _at(state, pod, gpus)
