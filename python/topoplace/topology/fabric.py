"""The network that joins machines: named levels of domains, such as racks, NVLink domains and spines."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Self, SupportsIndex

import numpy as np
from numpy.typing import NDArray

from topoplace import _checks
from topoplace.errors import TopologyError
from topoplace.topology.links.link_kinds import MAX_GB_PER_S, LinkKind

MAX_LEVELS = 64
MAX_OVERSUBSCRIPTION = 1e6
MAX_MACHINES = 1 << 20
"""Limit on machines; more are refused as a mistake."""


@dataclass(frozen=True, repr=False)
class Level:
    """One level of a fabric: each machine's domain, and the speed of a path inside a domain.

    Raises:
        TopologyError: Names a wrong field.
    """

    name: str
    """Name, such as "nvlink_domain", "rack", "leaf", "block" or "spine"."""
    domains: tuple[str | None, ...]
    """(m,) the name of each machine's domain; None for a machine in no domain or in an unknown one."""
    gb_per_s: float | None = None
    """GB/s, one direction, of one GPU's port into this level.

    None means the speed of the topology's network; for NVSWITCH, that of the GPUs' NVLinks into their switches.
    """
    oversubscription: float = 1.0
    """Ratio of the total bandwidth of a domain's ports to the bandwidth that the level's switches carry, at least 1.

    Two GPUs that meet at this level have gb_per_s / oversubscription GB/s.
    """
    kind: LinkKind = LinkKind.NETWORK
    """NETWORK, or NVSWITCH for a domain of machines that share NVSwitches."""
    rail: bool = False
    """True if a domain is a set of separate rails: GPUs of one rail meet here, others one level up."""
    pxn: bool = False
    """True on a level of rails if the collective library uses PXN. Traffic to another rail of another machine first
    goes over NVSwitches to the GPU of the sender's machine on that rail. Only `communication_time` uses it.
    """

    def __post_init__(self) -> None:
        where = f"level {_checks.shown(self.name)}"
        _checks.text(self.name, "level.name", TopologyError)
        domains = _checks.sequence(self.domains, f"{where}: domains", TopologyError)
        known: set[str | None] = {None}
        for i, domain in enumerate(domains):
            if type(domain) is not str or domain not in known:
                known.add(
                    domain
                    if domain is None
                    else _checks.text(domain, f"{where}: domains[{i}]", TopologyError)
                )
        if self.gb_per_s is not None:
            object.__setattr__(
                self,
                "gb_per_s",
                _checks.positive(self.gb_per_s, f"{where}: gb_per_s", TopologyError, high=MAX_GB_PER_S),
            )
        factor = _checks.real(
            self.oversubscription,
            f"{where}: oversubscription",
            TopologyError,
            low=1.0,
            high=MAX_OVERSUBSCRIPTION,
        )
        object.__setattr__(self, "domains", domains)
        object.__setattr__(self, "oversubscription", factor)
        _checks.instance(self.kind, LinkKind, f"{where}: kind", TopologyError)
        if self.kind not in (LinkKind.NETWORK, LinkKind.NVSWITCH):
            raise TopologyError(f"{where}: kind = {_checks.shown(self.kind)} is neither NETWORK nor NVSWITCH")
        _checks.flag(self.rail, f"{where}: rail", TopologyError)
        if _checks.flag(self.pxn, f"{where}: pxn", TopologyError) and not self.rail:
            raise TopologyError(f"{where}: pxn = True, but rail = False; PXN is for levels of rails")

    @cached_property
    def codes(self) -> NDArray[np.int64]:
        """Return (m,) the number of each machine's domain, in the order of first machines; -1 for none; read-only."""
        numbers: dict[str | None, int] = {None: -1}
        found = [numbers.setdefault(domain, len(numbers) - 1) for domain in self.domains]
        codes = np.array(found, dtype=np.int64)
        codes.flags.writeable = False
        return codes

    def __repr__(self) -> str:
        shown = [f"{key}={getattr(self, key)!r}" for key in ("gb_per_s", "oversubscription", "rail")]
        shown += ["pxn=True"] if self.pxn else []
        return f"Level({self.name!r}, {len(set(self.domains) - {None})} domains, {', '.join(shown)}, {self.kind})"


@dataclass(frozen=True, repr=False)
class Fabric:
    """Machines by name and the levels that join them, innermost first.

    Two machines meet at the first level whose domain they share; levels need not nest. Combine a fabric with topologies
    of its machines by `Topology.cluster(machine, fabric=fabric)`.

    Raises:
        TopologyError: Names a wrong field.
    """

    machines: tuple[str, ...]
    """(m,) unique names."""
    levels: tuple[Level, ...] = ()
    """Innermost first, with unique names."""
    name: str = "fabric"
    notes: tuple[str, ...] = ()
    """Facts that a reader must know, one sentence each."""

    def __post_init__(self) -> None:
        machines = checked_names(self.machines, "machines")
        levels = _checks.sequence(self.levels, "levels", TopologyError)
        if len(levels) > MAX_LEVELS:
            raise TopologyError(f"levels has {len(levels)} entries; at most {MAX_LEVELS} are possible")
        seen: set[str] = set()
        for i, level in enumerate(levels):
            if not isinstance(level, Level):
                raise TopologyError(f"levels[{i}] = {_checks.shown(level)} is not a Level")
            if len(level.domains) != len(machines):
                raise TopologyError(
                    f"levels[{i}].domains has {len(level.domains)} entries for {len(machines)} machines"
                )
            if level.name in seen:
                raise TopologyError(f"levels[{i}].name = {_checks.shown(level.name)} appears twice")
            seen.add(level.name)
        _checks.text(self.name, "name", TopologyError)
        notes = checked_notes(self.notes)
        object.__setattr__(self, "machines", machines)
        object.__setattr__(self, "levels", levels)
        object.__setattr__(self, "notes", notes)

    def __repr__(self) -> str:
        return f"Fabric({self.name!r}, {len(self.machines)} machines, levels={list(self.levels)})"

    def part(self, machines: Sequence[int]) -> Self:
        """Return the fabric of some machines, given by number, in this order; TopologyError if one occurs twice."""
        levels = [
            replace(level, domains=tuple(level.domains[machine] for machine in machines))
            for level in self.levels
        ]
        return replace(
            self, machines=tuple(self.machines[machine] for machine in machines), levels=tuple(levels)
        )

    @classmethod
    def regular(
        cls, machines: SupportsIndex | Sequence[str], sizes: Mapping[str, int], *, name: str = "fabric"
    ) -> Self:
        """Build a tree of equal domains; `sizes`: machines per domain of each level, innermost first.

        `regular(128, {"rack": 16, "spine": 64})` is 8 racks of 16 machines, 4 racks to a spine; only the topology's
        network joins the 2 spines.

        Args:
            machines: The number of machines, or their names. They fill the domains in order; the last domain of a level
                may be smaller.

        Raises:
            TopologyError: Names a wrong number or name of machines, or a wrong size.
        """
        _checks.instance(sizes, Mapping, "sizes", TopologyError)
        if isinstance(machines, SupportsIndex):
            names = numbered("machine", machines)
        else:
            names = checked_names(machines, "machines")
        levels: list[Level] = []
        for level, size in sizes.items():
            size = _checks.integer(size, f"sizes[{level!r}]", TopologyError, low=1, high=MAX_MACHINES)
            domains = numbered(level, (len(names) + size - 1) // size) if names else ()
            levels.append(Level(level, tuple(domains[i // size] for i in range(len(names)))))
        return cls(names, tuple(levels), name)

    def with_level(self, level: str, **changes: Any) -> Self:
        """Return a fabric with fields of one level changed; TopologyError if there is no such level.

        Example: `fabric.with_level("spine", gb_per_s=50, oversubscription=2)`.
        """
        if level not in self.level_names:
            raise TopologyError(
                f"level = {_checks.shown(level)} is none of {', '.join(self.level_names) or 'no levels'}"
            )
        changed = (replace(one, **changes) if one.name == level else one for one in self.levels)
        return replace(self, levels=tuple(changed))

    @cached_property
    def level_names(self) -> tuple[str, ...]:
        """Return the names of the levels, innermost first."""
        return tuple(level.name for level in self.levels)


def numbered(word: str, count: SupportsIndex) -> tuple[str, ...]:
    """Return `count` names made of `word` and a number from 0 with leading zeros, such as "rack07".

    Raise TopologyError unless `count` is 1 to 2**20.
    """
    number = _checks.integer(count, f"the number of {word}s", TopologyError, low=1, high=MAX_MACHINES)
    width = len(str(number - 1))
    return tuple(f"{word}{i:0{width}}" for i in range(number))


def checked_notes(notes: object) -> tuple[str, ...]:
    """Return `notes`; TopologyError unless they are non-empty strings."""
    found = _checks.sequence(notes, "notes", TopologyError)
    return tuple(_checks.text(note, f"notes[{i}]", TopologyError) for i, note in enumerate(found))


def checked_names(names: object, what: str) -> tuple[str, ...]:
    """Return `names` of machines; TopologyError unless they are 1 to 2**20 unique non-empty strings.

    what: the argument's name in the message.
    """
    found = _checks.sequence(names, what, TopologyError)
    if not 1 <= len(found) <= MAX_MACHINES:
        raise TopologyError(f"{what} has {len(found)} entries; 1..{MAX_MACHINES} are possible")
    place: dict[str, int] = {}
    for i, name in enumerate(found):
        _checks.text(name, f"{what}[{i}]", TopologyError)
        if place.setdefault(name, i) != i:
            raise TopologyError(f"{what}[{i}] = {_checks.shown(name)} is the name of {what}[{place[name]}]")
    return found
