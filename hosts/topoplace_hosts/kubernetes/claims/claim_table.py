"""All slices, classes and claims, and the devices that claims hold, as the API server shows or as was decided."""

from __future__ import annotations

import math
import time
from collections.abc import Generator, Iterable
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Final

from topoplace.engine.memo import Memo
from topoplace.errors import KubernetesError
from topoplace.topology.topology import Topology
from topoplace_hosts.kubernetes.claims.assignment import TooManyChoicesError
from topoplace_hosts.kubernetes.claims.claim import Allocation, Claim, DeviceClass, Request
from topoplace_hosts.kubernetes.claims.device import Device, DeviceId
from topoplace_hosts.kubernetes.claims.matching import gpu_numbers
from topoplace_hosts.kubernetes.claims.pools import Pools, Slice
from topoplace_hosts.kubernetes.claims.selecting import Selecting
from topoplace_hosts.kubernetes.objects.taints import untolerated

_SEARCH_S: Final = (0.3, 2e-4)
"""Limit in seconds on the search of one decision: a fixed part, and a part for each node."""
_USUAL_S: Final = (0.05, 1e-4)
"""Seconds that a search usually takes, in the same form; any more counts against the namespace."""
_MOST_GONE: Final = 1 << 12
_MOST_QUESTIONS: Final = 64
"""Limit on the requests whose answers are kept for each node."""


class Matches(list[Device]):
    """The devices of a node that match a request."""

    def __init__(self, devices: Iterable[Device], unsupported: str) -> None:
        super().__init__(devices)
        self.unsupported = unsupported
        """The unsupported field of another device that matches; "" if there is none."""


@dataclass(slots=True)
class NodeDevices:
    """The devices of a node, with cached answers."""

    devices: tuple[Device, ...]
    number_of: dict[DeviceId, int]
    """The number on the node of each device that is a GPU of its machine."""
    matches: Memo[object, Matches]


class ClaimTable:
    """The known devices and claims. Nothing is decided here."""

    def __init__(self, topology: Topology) -> None:
        """Start without slices and claims. topology: its machines have the names of nodes."""
        self._topology = topology
        self._pools = Pools()
        self._nodes: dict[str, NodeDevices] = {}
        self.classes: dict[str, DeviceClass] = {}
        self.claims: dict[tuple[str, str], Claim] = {}
        self.is_served = True
        """False if the API server does not serve claims."""
        self.selecting = Selecting()
        self._namespace = ""
        self._end = math.inf
        self._holders: dict[DeviceId, set[str]] = {}
        self._of_pool: dict[tuple[str, str], set[tuple[str, str]]] = {}
        """The claims that hold devices of a pool."""
        self._gone = Memo[str, bool](_MOST_GONE)
        """The uids of claims that were deleted."""
        self._assumed: dict[str, tuple[str, Claim]] = {}
        """By uid of the claim: the pod for which it was decided on, and the claim as the API server has it."""

    # ---- devices ---------------------------------------------------------------------------------------------

    def set_slice(self, one: Slice) -> list[Claim]:
        """Record the present state of a slice; return the claims that hold devices of its pool."""
        self._forget(self._pools.set_slice(one))
        return self._holding(one.pool)

    def remove_slice(self, name: str) -> list[Claim]:
        """Forget a slice; return the claims that hold devices of its pool."""
        pool = self._pools.pool_of(name)
        self._forget(self._pools.remove_slice(name))
        return self._holding(pool) if pool else []

    def _holding(self, pool: tuple[str, str]) -> list[Claim]:
        return [self.claims[key] for key in sorted(self._of_pool.get(pool, ()))]

    def slices(self) -> list[str]:
        """Return the names of all slices."""
        return self._pools.names()

    def _forget(self, nodes: frozenset[str]) -> None:
        for node in nodes:
            self._nodes.pop(node, None)

    def on(self, node: str) -> NodeDevices:
        """Return the devices of a node."""
        found = self._nodes.get(node)
        if found is None:
            begin = time.monotonic()
            devices = self._pools.devices_of(node)
            numbers = self._topology.gpus_of.get(node, ())
            gpus = [self._topology.gpus[number] for number in numbers] if devices else []
            found = NodeDevices(devices, gpu_numbers(devices, gpus), Memo(_MOST_QUESTIONS))
            self._nodes[node] = found
            self._end += time.monotonic() - begin  # which is once for all
        return found

    @contextmanager
    def decision(self, namespace: str, num_nodes: int) -> Generator[None]:
        """Open a block with the time limit of one decision; a long search counts against the pod's namespace.

        NotYetError if the claims of the namespace have taken too long already.
        """
        self.selecting.check_time(namespace)
        begin = time.monotonic()
        most_s, usual_s = (base_s + node_s * num_nodes for base_s, node_s in (_SEARCH_S, _USUAL_S))
        self._namespace, self._end = namespace, begin + most_s
        try:
            yield
        finally:
            asked_s = self._end - begin - most_s
            search_s = time.monotonic() - begin - asked_s
            self.selecting.allowances.spend(namespace, max(0.0, search_s - usual_s))
            self._namespace, self._end = "", math.inf

    def check_time(self) -> None:
        """Raise TooManyChoicesError if the decision takes too long."""
        if time.monotonic() > self._end:
            raise TooManyChoicesError("its claims have too many choices of devices to search in time")

    def matching(self, node: str, request: Request) -> Matches:
        """Return the devices of a node that match a request, free or not, in the order of their names.

        KubernetesError if the request's class is missing, or an expression has no answer; NotYetError if an expression
        has no answer yet.
        """
        self.check_time()
        known = self.classes.get(request.device_class)
        if known is None:
            raise KubernetesError(f"there is no DeviceClass {request.device_class}")
        selectors = (*known.selectors, *request.selectors)
        there = self.on(node)

        def find() -> Matches:
            begin = time.monotonic()
            try:
                accepted = self.selecting.accepted(there.devices, selectors, self._namespace)
            finally:
                self._end += time.monotonic() - begin  # that has its own limits
            tolerated = [one for one in accepted if not untolerated(one.taints, request.tolerations)]
            unsupported = next((one.unsupported for one in tolerated if one.unsupported), "")
            return Matches([one for one in tolerated if not one.unsupported], unsupported)

        return there.matches.get_or_build((selectors, request.tolerations), find)

    # ---- claims ----------------------------------------------------------------------------------------------

    def set_claim(self, claim: Claim) -> None:
        """Record the present state of a claim, unless a newer one is known.

        An assumed allocation stays until the API server shows one, or `settle` takes it back.
        """
        if claim.uid in self._gone:
            return  # what was written for a pod arrives later than that it is gone
        known = self.claims.get(claim.key)
        assumed = self._assumed.get(claim.uid)
        seen = assumed[1] if assumed else known
        if seen is not None and seen.uid == claim.uid and _is_older(claim.version, seen.version):
            return
        if assumed is not None and claim.allocation is None:
            self._assumed[claim.uid] = (assumed[0], claim)
            return
        self._assumed.pop(claim.uid, None)
        self._replace(known, claim)

    def remove_claim(self, key: tuple[str, str]) -> None:
        """Forget a claim that is gone."""
        known = self.claims.get(key)
        if known is not None:
            self._gone[known.uid] = True
            self._assumed.pop(known.uid, None)
            self._replace(known, None)

    def _replace(self, known: Claim | None, claim: Claim | None) -> None:
        if known is not None:
            for device in known.allocation.held if known.allocation else ():
                self._of_pool[device.driver, device.pool].discard(known.key)
                self._holders[device].discard(known.uid)
                if not self._holders[device]:
                    del self._holders[device]
            del self.claims[known.key]
        if claim is not None:
            for device in claim.allocation.held if claim.allocation else ():
                self._of_pool.setdefault((device.driver, device.pool), set()).add(claim.key)
                self._holders.setdefault(device, set()).add(claim.uid)
            self.claims[claim.key] = claim

    def node_of(self, device: DeviceId) -> str:
        """Return the node that has a device; "" if no slice lists it."""
        return self._pools.node_of(device)

    def is_held(self, device: Device) -> bool:
        """Return True if a claim holds a device."""
        return device.id in self._holders

    # ---- decisions -------------------------------------------------------------------------------------------

    def assume(self, pod_uid: str, claim: Claim, allocation: Allocation) -> None:
        """Record an allocation that a claim will get for a pod."""
        self._assumed[claim.uid] = (pod_uid, claim)
        self._replace(
            claim, replace(claim, allocation=allocation, reserved_for=(*claim.reserved_for, pod_uid))
        )

    def settle(self, claim: Claim) -> None:
        """Take back the allocation that was assumed for a claim."""
        _, seen = self._assumed.pop(claim.uid)
        self._replace(claim, seen)

    def assumed_for(self, pod_uid: str) -> list[Claim]:
        """Return the claims whose allocations are assumed for a pod."""
        return [self.claims[claim.key] for whose, claim in self._assumed.values() if whose == pod_uid]

    def is_assumed(self, claim: Claim) -> bool:
        """Return True if the allocation of a claim is assumed, and the API server has not shown it yet."""
        return claim.uid in self._assumed


def _is_older(version: str, known: str) -> bool:
    """Return True if a version is older than another; versions that are no numbers are taken as they come."""
    return version.isdigit() and known.isdigit() and int(version) < int(known)
