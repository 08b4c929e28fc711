"""The best GPUs for claims that only some sets of free GPUs can serve: alternatives, compared by the policy.

An alternative is a machine on which only some of the free GPUs may be used. The policy chooses among copies of the
machines, one for each alternative, so it compares alternatives as it compares machines. If the choice does not serve
the claims, smaller alternatives that together allow all other choices replace it. Then the policy decides again.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from typing import Any, Final, NamedTuple

from topoplace.cluster.cluster import Cluster
from topoplace.engine.policy import Policy
from topoplace.jobs.job_graph import JobGraph
from topoplace.placement import Refusal
from topoplace.topology.topology import Topology
from topoplace_hosts.kubernetes.claims.assignment import ClaimPart
from topoplace_hosts.kubernetes.claims.claim import Constraint
from topoplace_hosts.kubernetes.scheduler.claiming.offers import DeviceOffer
from topoplace_hosts.kubernetes.scheduler.cluster_state import ClusterState
from topoplace_hosts.kubernetes.scheduler.seats import placed

_MOST_QUESTIONS: Final = 100
"""Limit on the policy's decisions; after that, any GPUs that serve the claims are taken."""
_MOST_VALUES: Final = 64
"""Limit on the combinations of attribute values by which the GPUs of a node are divided at first."""
_Element = tuple[str, Any]


class Alternative(NamedTuple):
    """A machine of which only some GPUs may be used."""

    offer: DeviceOffer
    gpus: frozenset[int]
    """The numbers of these GPUs on the node."""


def best_alternative(
    policy: Policy,
    state: ClusterState,
    job: JobGraph,
    offers: Sequence[DeviceOffer],
    min_bandwidth: float | None,
) -> tuple[DeviceOffer, tuple[int, ...]] | Refusal:
    """Return the node and its GPUs that serve the claims best, by number and in task order, or why none do."""
    left = {
        alternative: None
        for offer in _different(state, offers)
        for alternative in _divided(offer)
        if _may_serve(alternative, job.num_tasks, state)
    }
    if not left:
        return Refusal(
            f"{len(offers)} nodes have enough devices, but none has devices that meet the constraints"
        )
    first = next(iter(left))
    for _ in range(_MOST_QUESTIONS):
        state.claims.check_time()
        listed = sorted(left, key=lambda one: (one.offer.row, sorted(one.gpus)))
        cluster = _copies(state, listed)
        gpus = placed(policy, cluster, job, len(listed), min_bandwidth)
        if isinstance(gpus, Refusal):
            return gpus
        chosen = listed[int(cluster.topology.machine_of[gpus[0]])]
        numbers = tuple([cluster.topology.local_index[gpu] for gpu in gpus])
        if chosen.offer.served(numbers) is not None:
            return chosen.offer, numbers
        del left[chosen]
        for number in numbers:
            smaller = Alternative(chosen.offer, chosen.gpus - {number})
            if _may_serve(smaller, job.num_tasks, state):
                left[smaller] = None
    return _any(first)


def _may_serve(alternative: Alternative, num_gpus: int, state: ClusterState) -> bool:
    state.claims.check_time()
    return len(alternative.gpus) >= num_gpus and alternative.offer.fits(alternative.gpus)


def _any(alternative: Alternative) -> tuple[DeviceOffer, tuple[int, ...]]:
    """Return the first GPUs that serve the claims."""
    offer = alternative.offer
    served = offer.served(sorted(alternative.gpus))
    assert served is not None  # it may serve them
    numbers = [
        offer.number_of[device.id]
        for part, devices in zip(offer.parts, served, strict=True)
        for device in devices
        if device.id in offer.number_of and not part.request.is_admin
    ]
    return offer, tuple(numbers)


def _copies(state: ClusterState, alternatives: Sequence[Alternative]) -> Cluster:
    """Return a cluster with a machine for each alternative, of which only the GPUs are free that it may use."""
    names = [f"{i}" for i in range(len(alternatives))]
    machines = {
        name: state.topology.machine(one.offer.node) for name, one in zip(names, alternatives, strict=True)
    }
    cluster = Cluster(Topology.cluster(machines))
    for name, one in zip(names, alternatives, strict=True):
        there = cluster.topology.gpus_of[name]
        for owner, numbers in state.held_on(one.offer.row).items():
            cluster.allocate(f"{name}/{owner}", [there[number] for number in numbers])
        for number, gpu in enumerate(there):
            if number not in one.gpus and cluster.owner(gpu) is None:
                cluster.drain(gpu)
    return cluster


# ---- alternatives to begin with ------------------------------------------------------------------------------------


def _divided(offer: DeviceOffer) -> Iterator[Alternative]:
    """Yield the GPUs of a node, divided by the values of attributes that have to be equal."""
    constraints = {
        (part.claim.uid, one): None
        for part in offer.parts
        for one in part.claim.constraints
        if not one.is_distinct
    }
    choices = [_values(offer, uid, constraint) for uid, constraint in constraints]
    count = 1
    for values in choices:
        count *= len(values)
    if count > _MOST_VALUES:
        yield Alternative(offer, offer.gpus)
        return
    for chosen in product(*choices):
        wanted = dict(zip(constraints, chosen, strict=True))
        gpus = frozenset(
            offer.number_of[device.id]
            for part in offer.parts
            for device in part.candidates
            if device.id in offer.number_of and not part.request.is_admin and _has(part, device, wanted)
        )
        yield Alternative(offer, gpus)


def _has(part: ClaimPart, device: Any, wanted: Mapping[tuple[str, Constraint], _Element]) -> bool:
    """Return True if a device has the values that the constraints on its part want."""
    for (uid, constraint), value in wanted.items():
        if uid == part.claim.uid and constraint.concerns(part.request):
            attribute = device.attribute(constraint.attribute)
            if attribute is None or value not in attribute.elements:
                return False
    return True


def _values(offer: DeviceOffer, uid: str, constraint: Constraint) -> list[_Element]:
    """Return the values that devices of a node can have in common."""
    found: set[_Element] = set()
    for part in offer.parts:
        if part.claim.uid == uid and constraint.concerns(part.request):
            for device in part.candidates:
                attribute = device.attribute(constraint.attribute)
                found |= attribute.elements if attribute else frozenset()
    return sorted(found, key=repr)


def _different(state: ClusterState, offers: Sequence[DeviceOffer]) -> list[DeviceOffer]:
    """Return the first of all nodes that offer the same on equal machines in the same state."""
    found: dict[object, DeviceOffer] = {}
    for offer in offers:
        held = tuple(sorted(state.held_on(offer.row).values()))
        machine = state.topology.template_of[offer.row]
        found.setdefault((machine, held, _shape(offer)), offer)
    return list(found.values())


def _shape(offer: DeviceOffer) -> object:
    """Return what is equal for nodes whose devices differ in names and in values that no constraint compares."""
    shapes: list[object] = []
    seen: dict[object, int] = {}
    for part in offer.parts:
        for device in part.candidates:
            values = [
                tuple(
                    sorted(
                        seen.setdefault((part.claim.uid, one, element), len(seen))
                        for element in attribute.elements
                    )
                )
                if (attribute := device.attribute(one.attribute))
                else None
                for one in part.claim.constraints
                if one.concerns(part.request)
            ]
            number = offer.number_of.get(device.id)
            same = seen.setdefault(device.id, len(seen)) if number is None else number
            shapes.append((same, tuple(values)))
        shapes.append(part.request.name)
    return tuple(shapes)
