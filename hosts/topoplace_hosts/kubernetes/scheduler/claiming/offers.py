"""The devices of each node that match the requests of a pod's claims and are free."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from topoplace.errors import KubernetesError
from topoplace_hosts.kubernetes.claims.assignment import (
    Assignment,
    ClaimPart,
    TooManyChoicesError,
    assignment,
)
from topoplace_hosts.kubernetes.claims.claim import MOST_DEVICES, Claim, Request
from topoplace_hosts.kubernetes.claims.claim_table import Matches
from topoplace_hosts.kubernetes.claims.device import Device, DeviceId
from topoplace_hosts.kubernetes.claims.matching import is_of_gpu_driver
from topoplace_hosts.kubernetes.claims.selecting import NotYetError
from topoplace_hosts.kubernetes.scheduler.cluster_state import ClusterState

Demand = Sequence[tuple[Claim, Request]]
"""The requests of the claims that a pod needs allocated, with one alternative of each."""


@dataclass(frozen=True, slots=True, eq=False)
class DeviceOffer:
    """The devices with which a node may serve a demand."""

    row: int
    node: str
    parts: tuple[ClaimPart, ...]
    number_of: dict[DeviceId, int]
    """The number on the node of each device that is a GPU of its machine."""
    num_gpus: int
    """The number of these GPUs that the demand takes."""

    @property
    def gpus(self) -> frozenset[int]:
        """Return the numbers of the GPUs that the demand may take."""
        parts = (part for part in self.parts if not part.request.is_admin)
        return frozenset(
            self.number_of[one.id] for part in parts for one in part.candidates if one.id in self.number_of
        )

    def served(self, gpus: Sequence[int]) -> Assignment | None:
        """Return devices for all requests whose GPUs are exactly these, in this order; None if there are none."""
        order = {number: position for position, number in enumerate(gpus)}

        def position(device: Device) -> int:
            return order.get(self.number_of.get(device.id, -1), len(order))

        parts = [
            part._replace(candidates=tuple(sorted(part.candidates, key=position))) for part in self.parts
        ]
        return assignment(parts, lambda part, device: part.request.is_admin or self._is_in(device, order))

    def fits(self, gpus: frozenset[int]) -> bool:
        """Return True if these GPUs are enough for the demand."""
        return (
            assignment(self.parts, lambda part, device: part.request.is_admin or self._is_in(device, gpus))
            is not None
        )

    def _is_in(self, device: Device, gpus: Iterable[int]) -> bool:
        number = self.number_of.get(device.id)
        return number is None or number in gpus


class DeviceOffers(list[DeviceOffer]):
    """The nodes that may have enough devices, and why the others do not."""

    def __init__(self, state: ClusterState, demand: Demand, rows: Iterable[int]) -> None:
        """Find the offers of the nodes in `rows`; KubernetesError if a request is invalid."""
        super().__init__()
        self.reasons: Counter[str] = Counter()
        for row in rows:
            found = _offer(state, demand, row)
            if isinstance(found, DeviceOffer):
                self.append(found)
            else:
                self.reasons[found] += 1


def _offer(state: ClusterState, demand: Demand, row: int) -> DeviceOffer | str:
    """Return what a node has, or why that is not enough."""
    node = state.table.nodes[row]
    assert node is not None  # the mask has only rows of nodes
    number_of = state.claims.on(node.name).number_of
    parts: list[ClaimPart] = []
    num_gpus = 0
    per_claim: Counter[str] = Counter()
    for claim, request in demand:
        found = _part(state, claim, request, row, node.name)
        if isinstance(found, str):
            return found
        parts.append(found)
        per_claim[claim.uid] += found.size
        if per_claim[claim.uid] > MOST_DEVICES:
            return f"{claim} has more than {MOST_DEVICES} devices"
        if not request.is_admin:
            known = sum(one.id in number_of for one in found.candidates)
            num_gpus += known if not request.num_devices else request.num_devices if known else 0
    return DeviceOffer(row, node.name, tuple(parts), number_of, num_gpus)


def _part(state: ClusterState, claim: Claim, request: Request, row: int, node: str) -> ClaimPart | str:
    """Return the devices of a node for a request: GPUs of its machine, if any match; or why there are too few."""
    what = f"{claim}, request {request.name}"
    try:
        matches = state.claims.matching(node, request)
    except (NotYetError, TooManyChoicesError):
        raise
    except KubernetesError as error:
        raise KubernetesError(f"{what}: {error}") from None
    number_of = state.claims.on(node).number_of
    wanted, unsupported = _usable(state, matches, request, row, number_of)
    free = [one for one in wanted if request.is_admin or not _is_taken(state, one, row, number_of)]
    least = request.num_devices or max(1, len(wanted))
    if len(free) < least or (unsupported and not request.num_devices):
        return f"{what}: {unsupported} is not supported" if unsupported else f"{what}: too few devices"
    return ClaimPart(claim, request, tuple(free))


def _usable(
    state: ClusterState, matches: Matches, request: Request, row: int, number_of: dict[DeviceId, int]
) -> tuple[list[Device], str]:
    """Return the devices that a request may have if they are free, and what is not supported of the others.

    If a device plugin offers GPUs of the node, too, devices of a GPU driver that are no known GPUs are not used: they
    may be the same.
    """
    known = [one for one in matches if one.id in number_of]
    wanted = known if known and request.num_devices else list(matches)
    if state.is_offered(row):
        safe = [one for one in wanted if one.id in number_of or not is_of_gpu_driver(one.id)]
        if len(safe) < len(wanted):
            return safe, f"a device that is no known GPU, next to {state.gpu_resource},"
    return wanted, matches.unsupported


def _is_taken(state: ClusterState, device: Device, row: int, number_of: dict[DeviceId, int]) -> bool:
    if state.claims.is_held(device):
        return True
    number = number_of.get(device.id)
    return number is not None and not state.is_free(row, number)
