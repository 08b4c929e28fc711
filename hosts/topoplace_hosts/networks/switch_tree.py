"""Convert switches and the machines below them to the levels of a `Fabric`.

Two kinds of text describe switches. If each switch lists its children (`from_tree`), the switches must form a forest
once switches with the same children are merged. If cables are listed (`from_cables`), no direction is given. A switch
with machines is on the first level, its neighbours are on the second, and so on. Machines that are joined by switches
up to some level form one domain of that level.

A level's domains are named after the first of their switches. A machine or switch attached to a higher level than
others is in no domain of the levels below. Leaves at unequal depth are therefore allowed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice

from topoplace import _checks
from topoplace.errors import TopologyError
from topoplace.topology.fabric import Fabric, Level

LEVEL_NAMES = ("leaf", "spine", "core")
"""Default names of the levels, innermost first; then "level4" and so on."""
MAX_LEVELS = 64
_MAX_NOTES = 5


@dataclass(slots=True)
class Switch:
    """A switch, or another domain such as a block, with the machines and switches directly below it."""

    name: str
    where: str
    """The start of messages about the switch, such as "line 7"."""
    machines: Sequence[str] = ()
    switches: Sequence[str] = ()
    rank: int | None = None
    """The level as given in the text, from 0; None means just above its highest child."""


@dataclass(slots=True)
class SwitchTree:
    """The result of reading switches: machines, the levels that join them, and notes."""

    machines: tuple[str, ...]
    levels: tuple[Level, ...]
    notes: list[str] = field(default_factory=list[str])


def level_name(rank: int, names: Sequence[str] = LEVEL_NAMES) -> str:
    """Return the name of the level with index `rank`; 0 is the level next to the machines."""
    return names[rank] if rank < len(names) else f"level{rank + 1}"


# ---- trees -----------------------------------------------------------------------------------------------------


def from_tree(
    switches: Iterable[Switch],
    *,
    word: str = "switch",
    names: Mapping[int, str] | None = None,
    allow_dangling: bool = False,
) -> SwitchTree:
    """Return the machines, the levels that join them, and notes, for switches that form a forest; changes `switches`.

    Switches with the same child switches and the same machines are merged first. word: what messages call a switch,
    such as "HyperNode". names: names of levels by rank; ranks order the levels and may have gaps. The default is that
    of `level_name`. allow_dangling: leave out children that are not described, with a note, instead of refusing them.
    Raises TopologyError for a switch that appears twice, an undescribed child, a cycle, or a rank not above those of
    the children. It is also raised without any machine, and for a machine or switch directly below two merged switches.
    """
    by_name = _by_name(switches, word)
    notes: list[str] = []
    _drop_dangling(by_name, word, allow_dangling, notes)
    order = _bottom_up(by_name, word)
    _merge_twins(by_name, order, notes, word)
    parent = _parents(by_name, order, word)
    machines, home = _machines(by_name, word)
    rank = _ranks(by_name, [name for name in order if name in by_name], word)
    levels = _levels(machines, home, parent, rank, names)
    roots = list(dict.fromkeys(_top(switch, parent) for switch in home.values()))
    if len(roots) > 1:
        notes.append(
            f"Nothing joins {len(roots)} trees of the text: {_checks.some(roots)} have no {word} above them, "
            "and machines of different trees share no level."
        )
    return SwitchTree(machines, levels, notes)


def _top(switch: str, parent: Mapping[str, str]) -> str:
    while switch in parent:
        switch = parent[switch]
    return switch


def _by_name(switches: Iterable[Switch], word: str) -> dict[str, Switch]:
    by_name: dict[str, Switch] = {}
    for switch in switches:
        first = by_name.setdefault(switch.name, switch)
        if first is not switch:
            raise TopologyError(
                f"{switch.where}: {word} {_checks.shown(switch.name)} appears twice, first in {first.where}"
            )
    return by_name


def _drop_dangling(by_name: dict[str, Switch], word: str, allowed: bool, notes: list[str]) -> None:
    dangling = {
        child: switch for switch in by_name.values() for child in switch.switches if child not in by_name
    }
    if not dangling:
        return
    child, switch = next(iter(dangling.items()))
    if not allowed:
        others = f" ({len(dangling)} names like this: {_checks.some(dangling)})" if len(dangling) > 1 else ""
        raise TopologyError(
            f"{switch.where}: {word} {_checks.shown(switch.name)} has the child {_checks.shown(child)}, which the text"
            f" does not describe{others}; allow_dangling=True leaves such children out"
        )
    for switch in by_name.values():
        switch.switches = [child for child in switch.switches if child in by_name]
    notes.append(
        f"Left out, because the text refers to them and does not describe them: {_checks.some(dangling, 20)}."
    )


def _bottom_up(by_name: Mapping[str, Switch], word: str) -> list[str]:
    """Return all switches, children before parents."""
    waiting = {name: len(set(switch.switches)) for name, switch in by_name.items()}
    parents: dict[str, list[str]] = {}
    for name, switch in by_name.items():
        for child in dict.fromkeys(switch.switches):
            parents.setdefault(child, []).append(name)
    order = [name for name, count in waiting.items() if not count]
    for name in order:  # the list grows meanwhile
        for parent in parents.get(name, ()):
            waiting[parent] -= 1
            if not waiting[parent]:
                order.append(parent)
    if len(order) < len(by_name):
        circle = _in_circle(by_name, set(order))
        raise TopologyError(f"{by_name[circle].where}: {word} {_checks.shown(circle)} is below itself")
    return order


def _in_circle(by_name: Mapping[str, Switch], done: Collection[str]) -> str:
    """Return a switch of a cycle: walk down from any switch that is not in `done` until one repeats."""
    seen: set[str] = set()
    step = next(name for name in by_name if name not in done)
    while step not in seen:
        seen.add(step)
        step = next(child for child in by_name[step].switches if child not in done)
    return step


def _merge_twins(by_name: dict[str, Switch], order: Sequence[str], notes: list[str], word: str) -> None:
    """Merge switches that have the same children into one, the first in the text; lower switches are merged first."""
    place = {name: i for i, name in enumerate(by_name)}
    instead: dict[str, str] = {}
    first: dict[tuple[frozenset[str], frozenset[str]], str] = {}
    twins: dict[str, list[str]] = {}
    heights = _heights(by_name, order)
    for name in sorted(order, key=lambda name: (heights[name], place[name])):
        switch = by_name[name]
        if instead:
            switch.switches = list(dict.fromkeys(instead.get(child, child) for child in switch.switches))
        if not switch.switches:
            continue
        kept = first.setdefault((frozenset(switch.switches), frozenset(switch.machines)), name)
        if kept != name:
            instead[name] = kept
            twins.setdefault(kept, []).append(name)
    for other in instead:
        del by_name[other]
    for kept, others in islice(twins.items(), _MAX_NOTES):
        notes.append(
            f"One domain, because they have the same children: {word} {kept} and {_checks.some(others)}."
        )
    if len(twins) > _MAX_NOTES:
        notes.append(
            f"{len(twins) - _MAX_NOTES} more sets of {word} names are one domain each, as these are."
        )


def _heights(by_name: Mapping[str, Switch], order: Sequence[str]) -> dict[str, int]:
    heights: dict[str, int] = {}
    for name in order:
        heights[name] = 1 + max((heights[child] for child in by_name[name].switches), default=-1)
    return heights


def _parents(by_name: Mapping[str, Switch], order: Sequence[str], word: str) -> dict[str, str]:
    parent: dict[str, str] = {}
    for name, switch in by_name.items():
        for child in switch.switches:
            first = parent.setdefault(child, name)
            if first != name:
                raise TopologyError(
                    f"{switch.where}: no tree: {word} {_checks.shown(child)} is below {_checks.shown(name)} and, in "
                    f"{by_name[first].where}, below {_checks.shown(first)}, whose children are not the same"
                )
    return parent


def _machines(by_name: Mapping[str, Switch], word: str) -> tuple[tuple[str, ...], dict[str, str]]:
    """Return the machines in the order of the text, and by machine the switch directly above it."""
    home: dict[str, str] = {}
    for name, switch in by_name.items():
        for machine in switch.machines:
            first = home.setdefault(machine, name)
            if first != name:
                raise TopologyError(
                    f"{switch.where}: no tree: machine {_checks.shown(machine)} is below {word} {_checks.shown(name)} "
                    f"and, in {by_name[first].where}, below {_checks.shown(first)}"
                )
    if not home:
        raise TopologyError(f"no machine is below any {word}")
    return tuple(home), home


def _ranks(by_name: Mapping[str, Switch], order: Sequence[str], word: str) -> dict[str, int]:
    """Return the rank of each switch: the one in the text, else one more than its highest child's, or 0 without any.

    Ranks order the levels and may have gaps. TopologyError for a rank that is not above those of the children.
    """
    ranks: dict[str, int] = {}
    for name in order:
        switch = by_name[name]
        least = 1 + max((ranks[child] for child in switch.switches), default=-1)
        if switch.rank is not None and switch.rank < least:
            raise TopologyError(
                f"{switch.where}: {word} {_checks.shown(name)} is not on a higher level than all its children"
            )
        ranks[name] = least if switch.rank is None else switch.rank
    if len(used := set(ranks.values())) > MAX_LEVELS:
        raise TopologyError(f"{len(used)} levels of one {word} above another are more than {MAX_LEVELS}")
    return ranks


def _levels(
    machines: Sequence[str],
    home: Mapping[str, str],
    parent: Mapping[str, str],
    rank: Mapping[str, int],
    names: Mapping[int, str] | None,
) -> tuple[Level, ...]:
    above: dict[str, dict[int, str]] = {}
    for name in set(home.values()):
        chain: dict[int, str] = {}
        step: str | None = name
        while step is not None:
            chain[rank[step]] = step
            step = parent.get(step)
        above[name] = chain
    used = sorted({level for chain in above.values() for level in chain})
    called = {level: (names or {}).get(level) or level_name(level) for level in used}
    return tuple(
        Level(called[level], tuple(above[home[machine]].get(level) for machine in machines)) for level in used
    )


# ---- cables ----------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class Cables:
    """Cables between machines and switches, with the number of each."""

    ports: dict[str, Counter[str]] = field(default_factory=dict[str, Counter[str]])
    """For each machine, its switches and the number of cables to each."""
    trunks: dict[str, Counter[str]] = field(default_factory=dict[str, Counter[str]])
    """For each switch, the other switches and the number of cables to each; a cable counts at both ends."""
    strangers: Counter[str] = field(default_factory=Counter[str])
    """For each switch, the number of cables to machines with unknown names."""


def from_cables(cables: Cables, *, what: str) -> SwitchTree:
    """Return the machines and levels of a network that is given by its cables.

    what: the text's name in messages.
    Raises TopologyError if there is no switch, or no machine with a cable to one.
    """
    machines = tuple(machine for machine, switches in cables.ports.items() if switches)
    if not cables.trunks or not machines:
        missing = "switch" if not cables.trunks else "machine that is plugged into a switch"
        raise TopologyError(f"no fabric: {what} has no {missing}")
    rank = _distances(cables)
    groups = _Groups()
    for machine in machines:
        groups.join([f"machine {machine}", *(f"switch {switch}" for switch in cables.ports[machine])])
    levels: list[Level] = []
    seen: set[tuple[int, ...]] = set()
    for level in range(max(rank.values()) + 2):  # one more, for cables between switches of the top level
        if level:
            _join_up_to(level, cables, rank, groups)
        domains = _named_domains(machines, cables, rank, level, groups)
        if (parts := _parts(domains)) not in seen:
            seen.add(parts)
            factor = _oversubscription(cables, rank, level)
            levels.append(Level(level_name(level), domains, oversubscription=factor))
    return SwitchTree(machines, tuple(levels), _cable_notes(cables, rank))


def _distances(cables: Cables) -> dict[str, int]:
    """Return, for each switch that machines reach, the number of switches between it and the nearest machine."""
    rank = {switch: 0 for switches in cables.ports.values() for switch in switches}
    queue = list(rank)
    for switch in queue:  # the list grows meanwhile
        for other in cables.trunks.get(switch, ()):
            if other not in rank:
                rank[other] = rank[switch] + 1
                queue.append(other)
    return rank


def _join_up_to(level: int, cables: Cables, rank: Mapping[str, int], groups: _Groups) -> None:
    """Merge the groups of any two switches that a cable joins and that are both at `level` or below; level > 0."""
    for switch, others in cables.trunks.items():
        for other in others:
            if max(rank.get(switch, level + 1), rank.get(other, level + 1)) <= level:
                groups.join([f"switch {switch}", f"switch {other}"])


def _named_domains(
    machines: Sequence[str], cables: Cables, rank: Mapping[str, int], level: int, groups: _Groups
) -> tuple[str, ...]:
    """Return the name of each machine's domain: that of the first switch in the machine's group.

    Switches on higher levels, up to `level`, come before switches on lower ones.
    """
    name: dict[str, str] = {}
    for switch in sorted(cables.trunks, key=lambda switch: -rank.get(switch, -1)):
        if rank.get(switch, level + 1) <= level:
            name.setdefault(groups.of(f"switch {switch}"), switch)
    return tuple(name[groups.of(f"machine {machine}")] for machine in machines)


def _parts(domains: Sequence[str]) -> tuple[int, ...]:
    """Return a number for each machine's domain, by first appearance: equal if only the domains' names differ."""
    number = {domain: i for i, domain in enumerate(dict.fromkeys(domains))}
    return tuple(number[domain] for domain in domains)


def _oversubscription(cables: Cables, rank: Mapping[str, int], level: int) -> float:
    """Return the oversubscription of `level`: cables down over cables up of all switches one level below it.

    The result is at least 1, and 1 for level 0.
    """
    below = [switch for switch, its in rank.items() if its == level - 1]
    down = sum(cables.strangers[switch] for switch in below)
    for switches in cables.ports.values():
        down += sum(count for switch, count in switches.items() if rank[switch] == level - 1)
    to: Counter[int] = Counter()
    for switch in below:
        for other, count in cables.trunks[switch].items():
            to[rank[other]] += count
    return max(1.0, (down + to[level - 2]) / to[level]) if to[level] else 1.0


def _cable_notes(cables: Cables, rank: Mapping[str, int]) -> list[str]:
    notes: list[str] = []
    if lonely := [switch for switch in cables.trunks if switch not in rank]:
        notes.append(f"No machine reaches switch {_checks.some(lonely)}: left out.")
    if unplugged := [machine for machine, switches in cables.ports.items() if not switches]:
        notes.append(f"Plugged into no switch: machine {_checks.some(unplugged)}: left out.")
    ports = cables.ports.values()
    if any(len(switches) > 1 for switches in ports) and all(set(s.values()) <= {1} for s in ports):
        notes.append(
            "No machine has two cables to one leaf switch, and some have cables to several: if those are rails, say so "
            "by with_level('leaf', rail=True)."
        )
    return notes


class _Groups:
    """Disjoint sets of names (union-find)."""

    def __init__(self) -> None:
        self._up: dict[str, str] = {}

    def of(self, name: str) -> str:
        """Return the name that represents the set of `name`."""
        top = self._up.setdefault(name, name)
        while (above := self._up[top]) != top:
            self._up[top] = self._up[above]
            top = self._up[top]
        return top

    def join(self, names: Sequence[str]) -> None:
        """Merge the sets of `names`."""
        top = self.of(names[0])
        for name in names[1:]:
            self._up[self.of(name)] = top


def fabric(tree: SwitchTree, name: str, notes: Iterable[str] = ()) -> Fabric:
    """Return `tree` as a fabric called `name`, with further notes."""
    return Fabric(tree.machines, tree.levels, name, (*tree.notes, *notes))
