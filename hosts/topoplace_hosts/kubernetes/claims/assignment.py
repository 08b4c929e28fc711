"""Choose devices for requests so that all constraints of the claims hold, and no device is taken twice."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, NamedTuple

from topoplace.errors import KubernetesError
from topoplace_hosts.kubernetes.claims.claim import Claim, Constraint, Request
from topoplace_hosts.kubernetes.claims.device import Device

_MOST_STEPS: Final = 20_000
"""Limit on the devices that are tried for one answer."""


class ClaimPart(NamedTuple):
    """A request, and the devices of a node that may serve it."""

    claim: Claim
    request: Request
    candidates: tuple[Device, ...]

    @property
    def size(self) -> int:
        """Return the number of devices that the request gets."""
        return self.request.num_devices or len(self.candidates)


Assignment = tuple[tuple[Device, ...], ...]
"""The devices of each part, in the order of the parts."""
_Elements = frozenset[tuple[str, Any]]


class TooManyChoicesError(KubernetesError):
    """A node offers too many combinations of devices to search in time."""


def assignment(parts: Sequence[ClaimPart], allowed: Callable[[ClaimPart, Device], bool]) -> Assignment | None:
    """Return the first allowed devices that serve all parts; None if there are none.

    Raise TooManyChoicesError after 20,000 steps.
    """
    return _AssignmentSearch(parts, allowed).found()


class _AssignmentSearch:
    def __init__(self, parts: Sequence[ClaimPart], allowed: Callable[[ClaimPart, Device], bool]) -> None:
        self._parts = parts
        self._allowed = allowed
        self._taken: set[object] = set()
        self._steps = 0
        self._kept: list[tuple[Constraint, str, _Elements | None]] = []
        """Each constraint, the claim that has it, and what its devices have in common, or have had together."""
        seen: set[str] = set()
        for part in parts:
            if part.claim.uid not in seen:
                seen.add(part.claim.uid)
                self._kept += [(one, part.claim.uid, None) for one in part.claim.constraints]

    def found(self) -> Assignment | None:
        return self._rest(0)

    def _rest(self, i: int) -> Assignment | None:
        """Return devices for the parts from number i on."""
        if i == len(self._parts):
            return ()
        part = self._parts[i]
        for chosen in self._choices(part):
            others = self._rest(i + 1)
            if others is not None:
                return (chosen, *others)
        return None

    def _choices(self, part: ClaimPart) -> Iterator[tuple[Device, ...]]:
        """Yield the choices for a part; while one is looked at, its devices are taken."""
        usable = [one for one in part.candidates if self._allowed(part, one)]
        if part.request.num_devices == 0 and len(usable) < len(part.candidates):
            return
        yield from self._extended(part, (), usable, part.size)

    def _extended(
        self, part: ClaimPart, chosen: tuple[Device, ...], usable: Sequence[Device], missing: int
    ) -> Iterator[tuple[Device, ...]]:
        if not missing:
            yield chosen
            return
        for i in range(len(usable) - missing + 1):
            self._steps += 1
            if self._steps > _MOST_STEPS:
                raise TooManyChoicesError(f"{part.claim}: more than {_MOST_STEPS} choices of devices")
            device = usable[i]
            before = self._kept
            if (device.id in self._taken and not part.request.is_admin) or not self._keeps(part, device):
                continue
            if not part.request.is_admin:
                self._taken.add(device.id)
            yield from self._extended(part, (*chosen, device), usable[i + 1 :], missing - 1)
            if not part.request.is_admin:
                self._taken.discard(device.id)
            self._kept = before

    def _keeps(self, part: ClaimPart, device: Device) -> bool:
        """Note what constraints have to know of one more device; False if it breaks one."""
        kept: list[tuple[Constraint, str, _Elements | None]] = []
        for constraint, uid, known in self._kept:
            if uid != part.claim.uid or not constraint.concerns(part.request):
                kept.append((constraint, uid, known))
                continue
            attribute = device.attribute(constraint.attribute)
            if attribute is None:
                return False
            elements = attribute.elements
            if constraint.is_distinct:
                if known is not None and known & elements:
                    return False
                elements |= known or frozenset()
            elif known is not None:
                elements &= known
                if not elements:
                    return False
            kept.append((constraint, uid, elements))
        self._kept = kept
        return True
