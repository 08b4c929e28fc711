"""Choose a node for a pod with claims, and devices for new claims; the policy chooses the GPUs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice, product
from typing import Final, NamedTuple

import numpy as np

from topoplace.engine.policy import Policy
from topoplace.placement import Refusal
from topoplace_hosts.kubernetes.claims.allocation_json import Planned, planned
from topoplace_hosts.kubernetes.claims.assignment import Assignment, ClaimPart
from topoplace_hosts.kubernetes.claims.claim import Allocation, Claim
from topoplace_hosts.kubernetes.claims.device import Device
from topoplace_hosts.kubernetes.objects.annotations import request_of
from topoplace_hosts.kubernetes.objects.node import Node
from topoplace_hosts.kubernetes.objects.pod import Pod
from topoplace_hosts.kubernetes.scheduler.allowed_rows import Mask
from topoplace_hosts.kubernetes.scheduler.claiming.alternatives import best_alternative
from topoplace_hosts.kubernetes.scheduler.claiming.offers import Demand, DeviceOffer, DeviceOffers
from topoplace_hosts.kubernetes.scheduler.cluster_state import ClusterState
from topoplace_hosts.kubernetes.scheduler.demands import check_single
from topoplace_hosts.kubernetes.scheduler.seats import (
    Seat,
    Seats,
    for_no_gpu,
    job_graph,
    no_node,
    node_of,
    placed,
)

MOST_RESERVATIONS: Final = 256
"""The API's limit on the pods that use one claim."""
_MOST_DEMANDS: Final = 64
"""Limit on the combinations of alternatives (`firstAvailable`) that are tried."""


class _Needs(NamedTuple):
    has: tuple[tuple[Claim, Allocation], ...]
    """The claims that have devices."""
    lacks: tuple[Claim, ...]


def seat_with_claims(policy: Policy, state: ClusterState, pod: Pod) -> Seats | Refusal:
    """Return where a pod with claims runs and what the claims get, or why it waits; the state does not change.

    A claim that has devices keeps them. The first alternatives for which there is a node count. KubernetesError names
    an invalid request; NotYetError if a namespace has used up its time for selectors.
    """
    with state.claims.decision(pod.namespace, len(state.table.nodes)):
        return _seated(policy, state, pod)


def _seated(policy: Policy, state: ClusterState, pod: Pod) -> Seats | Refusal:
    needs = _needs(state, pod)
    if isinstance(needs, Refusal):
        return needs
    mask = state.eligible(pod)
    reasons: dict[str, int] = {}
    for claim, allocation in needs.has:
        narrower = mask & _reached(state, allocation)
        if lost := int(np.count_nonzero(mask & ~narrower)):
            reasons[f"not where {claim} has its devices"] = lost
        mask = narrower
    if not mask.any():
        return no_node(state, pod, reasons)
    if not needs.lacks:
        return _seat(state, pod, for_no_gpu(state, mask), needs, (), ())
    first: Refusal | None = None
    for demand in islice(_demands(needs.lacks), _MOST_DEMANDS):
        found = _tried(policy, state, pod, needs, demand, mask)
        if not isinstance(found, Refusal):
            return found
        first = first or found
    assert first is not None  # there is at least one combination, of no alternatives
    return first


def unused(state: ClusterState, pod: Pod) -> tuple[Planned, ...]:
    """Return the allocated claims of a waiting pod that no other pod uses, as if just planned.

    The devices of such claims tie the pod to a node: freeing them may let the pod fit elsewhere.
    """
    needs = _needs(state, pod)
    if isinstance(needs, Refusal):
        return ()
    return tuple(
        Planned(claim, allocation, {})
        for claim, allocation in needs.has
        if {*claim.reserved_for} <= {pod.uid} and not state.claims.is_assumed(claim)
    )


def _needs(state: ClusterState, pod: Pod) -> _Needs | Refusal:
    """Return the claims of a pod, or why it has to wait for them."""
    table = state.claims
    if not table.is_served:
        return Refusal("its resourceClaims cannot be read: the API server does not serve resource.k8s.io/v1")
    if pod.requests.gpus:
        return Refusal(
            f"{state.gpu_resource} together with resourceClaims cannot be honoured", permanent=True
        )
    has: list[tuple[Claim, Allocation]] = []
    lacks: list[Claim] = []
    for entry, name in pod.claims:
        claim = table.claims.get((pod.namespace, name))
        if not name:
            return Refusal(f"the claim of its entry {entry} is not made yet from its template")
        if claim is None:
            return Refusal(f"claim {pod.namespace}/{name} does not exist")
        if claim.is_deleting:
            return Refusal(f"{claim} is being deleted")
        if pod.uid not in claim.reserved_for and len(claim.reserved_for) >= MOST_RESERVATIONS:
            return Refusal(f"{claim} is used by {MOST_RESERVATIONS} pods, which is the limit")
        if claim.allocation is not None:
            has.append((claim, claim.allocation))
        elif claim.refused:
            return Refusal(f"{claim}: {claim.refused}", permanent=True)
        else:
            lacks.append(claim)
    return _Needs(tuple(has), tuple(dict.fromkeys(lacks)))


def _reached(state: ClusterState, allocation: Allocation) -> Mask:
    """Return True for each row on which the devices of an allocation can be used."""
    if allocation.terms is None:
        return np.ones(len(state.table.nodes), np.bool_)
    return np.array([node is not None and _suits(allocation, node) for node in state.table.nodes], np.bool_)


def _suits(allocation: Allocation, node: Node) -> bool:
    return any(
        all(one.holds(node.labels.get(one.key)) for one in term.labels)
        and all(one.holds(node.name) for one in term.names)
        for term in allocation.terms or ()
    )


def _demands(claims: Sequence[Claim]) -> Iterator[Demand]:
    """Yield the combinations of alternatives, those that come first in the claims first."""
    listed = [(claim, alternatives) for claim in claims for alternatives in claim.requests]
    for chosen in product(*(alternatives for _, alternatives in listed)):
        yield [(claim, request) for (claim, _), request in zip(listed, chosen, strict=True)]


def _tried(
    policy: Policy, state: ClusterState, pod: Pod, needs: _Needs, demand: Demand, mask: Mask
) -> Seats | Refusal:
    """Return the seat of a pod with these alternatives. Of nodes that would give different numbers of GPUs, those with
    the fewest come first.
    """
    offers = DeviceOffers(state, demand, np.flatnonzero(mask).tolist())
    refusal: Refusal | None = None
    usable = _told(state, offers)
    for count in sorted({one.num_gpus for one in usable}):
        alike = [one for one in usable if one.num_gpus == count]
        found = _on_gpus(policy, state, pod, alike, count) if count else _without_gpus(state, alike)
        if not isinstance(found, Refusal):
            offer, gpus, served = found
            return _seat(state, pod, offer.node, needs, tuple(zip(offer.parts, served, strict=True)), gpus)
        refusal = refusal or found
    return refusal or no_node(state, pod, offers.reasons)


def _told(state: ClusterState, offers: DeviceOffers) -> list[DeviceOffer]:
    """Return the nodes without those where the holders of GPUs are unknown, if GPUs are needed; count these."""
    accounted = state.only_accounted_nodes(np.ones(len(state.table.nodes), np.bool_))
    usable = [one for one in offers if not one.num_gpus or (one.row < len(accounted) and accounted[one.row])]
    if len(usable) < len(offers):
        offers.reasons["GPUs not known"] = len(offers) - len(usable)
    return usable


_Found = tuple[DeviceOffer, tuple[int, ...], Assignment]
"""A node, GPUs of the topology in the order of tasks, and the devices of each request."""


def _without_gpus(state: ClusterState, offers: Sequence[DeviceOffer]) -> _Found | Refusal:
    """Return the node for claims that take no GPUs: one with few free GPUs that it does not need."""
    free = state.free_by_row()
    for offer in sorted(offers, key=lambda one: (int(free[one.row]), one.row)):
        state.claims.check_time()
        served = offer.served(())
        if served is not None:
            return offer, (), served
    return Refusal(f"{len(offers)} nodes have enough devices, but none has devices that meet the constraints")


def _on_gpus(
    policy: Policy, state: ClusterState, pod: Pod, offers: Sequence[DeviceOffer], count: int
) -> _Found | Refusal:
    """Return the policy's choice: at first among all GPUs that any request may take, which mostly serves them all."""
    check_single(pod)
    job = job_graph(state, [pod], count)
    min_bandwidth = request_of(pod.annotations).get("min_bandwidth")
    by_row = {offer.row: offer for offer in offers}
    with state.only({row: offer.gpus for row, offer in by_row.items()}) as cluster:
        gpus = placed(policy, cluster, job, len(offers), min_bandwidth)
    if isinstance(gpus, Refusal):
        return gpus
    there = state.topology.gpus_of[node_of(state, gpus[0])]
    offer = by_row[state.table.row(node_of(state, gpus[0]))]
    served = offer.served([there.index(gpu) for gpu in gpus])
    if served is None:
        found = best_alternative(policy, state, job, offers, min_bandwidth)
        if isinstance(found, Refusal):
            return found
        offer, numbers = found
        there = state.topology.gpus_of[offer.node]
        gpus, served = tuple([there[number] for number in numbers]), offer.served(numbers)
    assert served is not None  # that is what was looked for
    return offer, gpus, served


def _seat(
    state: ClusterState,
    pod: Pod,
    node: str,
    needs: _Needs,
    served: Sequence[tuple[ClaimPart, Sequence[Device]]],
    gpus: tuple[int, ...],
) -> Seats:
    claims = [Planned(claim, allocation, None) for claim, allocation in needs.has]
    for claim in needs.lacks:
        own = [(part, devices) for part, devices in served if part.claim is claim]
        claims.append(planned(claim, own, node, state.claims.classes))
    return (Seat(pod, node, gpus, tuple(claims)),)
