"""A topology as a network of ports, each with a speed in both directions, and the meaning of each port.

Inside a machine, a GPU's NVLinks into switches are one port, a direct link is a port of its own, and the paths over
PCIe are the tree that their classes imply: a GPU's PCIe link, the uplinks of PCIe switches and of host bridges, and the
links between sockets. Between machines, traffic leaves a GPU by its nearest network adapter and its domains by their
uplinks; inside an NVLink domain it takes the NVLinks. With PXN, traffic to another rail first goes over NVLink to the
GPU of its machine on that rail. The speed of an uplink is that of all adapters below it, divided by the
oversubscription of the level above. Each adapter counts as the fastest one below: a slow adapter changes no switch.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from topoplace.topology import level_ports
from topoplace.topology.device_numbers import MOST_NAMED, in_words
from topoplace.topology.links.link_kinds import NETWORK_GB_PER_S, PATH_KINDS, LinkKind
from topoplace.topology.nearest_adapters import own_adapters
from topoplace.topology.topology import Topology

if TYPE_CHECKING:
    from topoplace.kernels import PortNetwork
    from topoplace.topology.fabric import Level

Ints = NDArray[np.int32]
Reals = NDArray[np.float64]
_NONE: Final = -1
_SWITCHED, _NETWORK, _DIRECT, _NO_PATH = range(len(PATH_KINDS), len(PATH_KINDS) + 4)
"""The classes of pairs after those of `PATH_KINDS`: over NVSwitches, over the network, by a link of their own, none."""
_CLASS_OF: Final = {
    **{kind: rank for rank, kind in enumerate(PATH_KINDS)},
    LinkKind.NVSWITCH: _SWITCHED,
    LinkKind.NETWORK: _NETWORK,
    LinkKind.NONE: _NO_PATH,
    LinkKind.SELF: _NO_PATH,
}
_SAME: Final = 1 - 1e-9
"""Speeds whose ratio is between this and 1 are equal."""
_LEAST_GB_PER_S: Final = 1e-9
"""GB/s of missing ports: traffic through one takes practically for ever."""
_ABOVE: Final = {
    LinkKind.PCIE: "PCIe switch",
    LinkKind.PCIE_BRIDGES: "PCIe bridges",
    LinkKind.HOST: "host bridge",
    LinkKind.HOST_BRIDGES: "socket",
    LinkKind.SYSTEM: "machine",
}
"""The component that joins the GPUs of a domain, for each class of paths."""


class Port(NamedTuple):
    """The component and the GPUs to which a port belongs."""

    what: str
    gpus: tuple[int, ...] = ()
    """The GPUs that share the port; () for a domain of machines."""

    def in_words(self, topology: Topology) -> str:
        """Return a short description, such as "adapter mlx5_0 of n3 1" or "uplink of leaf l3"."""
        return f"{self.what} of {in_words(self.gpus, topology, MOST_NAMED)}" if self.gpus else self.what


class Ports:
    """The ports of a topology; `topology.derived(Ports)` returns them, made once.

    Raises:
        TopologyError: A machine has more than 16,384 GPUs.
    """

    def __init__(self, topology: Topology) -> None:
        from topoplace import kernels

        parts = [_MachinePorts(template, topology) for template in topology.templates]
        self._tiles = _Tiles(topology, parts)
        fabric = _FabricPorts(topology, self._tiles)
        self._of_domains = fabric.ports
        self._uplinks = fabric.uplinks
        self._speeds: dict[str, Reals] = {}
        self._pairs: dict[str, NDArray[np.int64]] = {}
        self._machine_of = topology.machine_of.astype(np.int64)
        self._num_machines = topology.num_machines
        levels = [*self._tiles.levels, *fabric.levels]
        levels.sort(key=lambda level: level.segment)
        self.levels: tuple[PortLevel, ...] = tuple(levels)
        """The levels at which GPUs meet, the nearest first."""
        self.entries: tuple[Ints, ...] = tuple(self._tiles.entries)
        """(n,) the port by which each GPU enters each segment; -1 for none."""
        self.gb_per_s: Reals = np.concatenate([self._tiles.gb_per_s, np.array(fabric.gb_per_s)])
        """(p,) GB/s of each port in one direction."""
        self.near_order = self._tiles.near_order
        """(n,) the place of each GPU on its machine if near ones follow each other."""
        self.has_relays = any(level.pxn for level in topology.levels)
        """True if some traffic leaves a machine by the adapter of another GPU (PXN)."""
        group, lane = self.relays = fabric.relays() if self.has_relays else (np.empty(0, np.int64),) * 2
        """With PXN, (n,) the lowest GPU on the NVSwitches of each GPU, -1 for none, and (n,) all rails; else empty."""
        is_tiled = topology.tiling is not None
        self.adapters, links = self._tiles.entries[_ADAPTERS], self._tiles.entries[_PCIE]
        """(n,) the port of each GPU's network adapter; -1 without one."""
        self.access: Ints = links if is_tiled else np.full_like(links, _NONE)
        """(n,) the PCIe port that each GPU's traffic passes to its network adapter; -1 for none."""
        self.switches = self._tiles.levels[0].domain
        """(n,) the lowest GPU of its machine that shares NVSwitches with each GPU; -1 without any."""
        self.rails: NDArray[np.int64] = fabric.rails
        """(n,) the rail of each GPU; its number on its machine where none is stated."""
        ends, slower = self.links = self._tiles.links
        """(k, 3) two GPUs and the port between them, and (k,) whether traffic also passes their usual route."""
        self.has_links = np.zeros(topology.num_gpus, bool)
        """(n,) whether a GPU has a direct link."""
        self.has_links[ends[slower == 0, :2]] = True
        self.network: PortNetwork = kernels.PortNetwork(
            self.gb_per_s,
            np.array(self._tiles.entries),
            [level.segment for level in levels],
            np.array([level.domain for level in levels]),
            np.array([level.uplink for level in levels]),
            ends,
            slower,
            self.access if levels[-1].segment == _ADAPTERS else (),  # of the last segment there is
            group,
            lane,
        )

    def uplink(self, level: str, gpu: int) -> int | None:
        """Return the port by which a GPU's traffic leaves its domain or rail of a level; None if there is none."""
        ports = self._uplinks.get(level)
        return None if ports is None or ports[gpu] < 0 else int(ports[gpu])

    def has_uplinks(self, level: str) -> bool:
        """Return True if the domains of a level have uplinks; "machine" is also a level."""
        return level in self._uplinks

    def uplink_speeds(self, level: str) -> Reals:
        """Return (m,) GB/s of the uplinks of each machine's domain, all rails together; 0 without an uplink."""
        if level not in self._speeds:
            self._speeds[level] = self._sums(self.uplinks(level))
        return self._speeds[level]

    def uplinks(self, level: str) -> NDArray[np.int64]:
        """Return (k, 2), sorted: (machine, uplink of its domain of a level), one row for each rail."""
        if level not in self._pairs:
            self._pairs[level] = self._distinct(self._uplinks[level])
        return self._pairs[level]

    @cached_property
    def adapter_speeds(self) -> Reals:
        """Return (m,) mean GB/s of adapter per GPU of each machine; GPUs that share an adapter share its speed."""
        return self._mean_speeds(self._tiles.entries[_ADAPTERS])

    @cached_property
    def nvlink_speeds(self) -> Reals:
        """Return (m,) mean GB/s of NVLinks into switches per GPU of each machine."""
        return self._mean_speeds(self._tiles.entries[_SWITCHES])

    @cached_property
    def fastest_entries(self) -> tuple[tuple[float, float], tuple[float, float]]:
        """Return the largest GB/s of adapters of one GPU and of a whole machine, then the same of NVLinks."""
        switches = self._tiles.entries[_SWITCHES]
        found: list[tuple[float, float]] = []
        for ports, speeds in (
            (self.adapters, self.ways_out),
            (switches, self._speeds_of(switches)),
        ):
            most = self._sums(self._distinct(ports)).max(initial=_LEAST_GB_PER_S)
            found.append((float(speeds.max(initial=_LEAST_GB_PER_S)), float(most)))
        return found[0], found[1]

    @cached_property
    def ways_out(self) -> Reals:
        """Return (n,) GB/s of each GPU into the network, over its PCIe link and adapter; 0 without an adapter."""
        links = np.where(self.access >= 0, self._speeds_of(self.access), np.inf)
        return np.minimum(self._speeds_of(self.adapters), links)

    def _speeds_of(self, ports: Ints) -> Reals:
        """Return (n,) the speed of each GPU's port; 0 without one."""
        return np.append(self.gb_per_s, 0.0)[ports]

    @cached_property
    def has_adapters(self) -> bool:
        """Return True if some GPU has a network adapter."""
        return bool((self.adapters >= 0).any())

    @cached_property
    def most_of_a_gpu(self) -> float:
        """Return the largest GB/s of all ports of one GPU together: its links and its entries into segments."""
        if not len(self.gb_per_s):
            return 0.0
        ends = self.links[0]
        sums = np.zeros(len(self._machine_of))
        for column in (0, 1):
            np.add.at(sums, ends[:, column], self.gb_per_s[ends[:, 2]])
        for ports in self.entries:
            sums[ports >= 0] += self.gb_per_s[ports[ports >= 0]]
        return float(sums.max(initial=0.0))

    @cached_property
    def join_machines(self) -> bool:
        """Return True if GPUs of different machines have direct links."""
        machines = self._machine_of[self.links[0][:, :2]]
        return bool((machines[:, 0] != machines[:, 1]).any())

    @cached_property
    def of_one_gpu(self) -> NDArray[np.bool_]:
        """Return (p,) True for each port by which exactly one GPU enters a segment."""
        entries = np.concatenate(self.entries)
        found: NDArray[np.bool_] = np.bincount(entries[entries >= 0], minlength=len(self.gb_per_s)) == 1
        return found

    def _sums(self, pairs: NDArray[np.int64]) -> Reals:
        """Return (m,) GB/s of all ports of each machine; pairs: (k, 2) machine and port."""
        speeds, num = self.gb_per_s[pairs[:, 1]], self._num_machines
        sums: Reals = np.bincount(pairs[:, 0], speeds, minlength=num).astype(float)
        return sums

    def _distinct(self, ports: Ints) -> NDArray[np.int64]:
        """Return (k, 2) each machine and each port of its GPUs; ports: (n,) of each GPU."""
        count = len(self.gb_per_s)
        # Almost sorted, so that a stable sort is faster than the hashing of `np.unique`.
        keys = np.sort((self._machine_of * count + ports)[ports >= 0], kind="stable")
        keys = keys[np.diff(keys, prepend=-1) != 0]
        return np.stack(np.divmod(keys, max(1, count)), axis=1)

    def _mean_speeds(self, ports: Ints) -> Reals:
        speeds = self._sums(self._distinct(ports)) / np.bincount(
            self._machine_of, minlength=self._num_machines
        )
        return np.where(speeds > 0, speeds, _LEAST_GB_PER_S)

    def port(self, number: int) -> Port:
        """Return the component and the GPUs to which a port, given by number, belongs."""
        inside = self._tiles.port(number)
        return self._of_domains[number - len(self._tiles.gb_per_s)] if inside is None else inside


class PortLevel(NamedTuple):
    """A level of the network of ports; see `PortNetwork`."""

    segment: int
    domain: Ints
    uplink: Ints


_SWITCHES, _PCIE, _ADAPTERS = range(3)
"""The segments: NVSwitches of machines and NVLink domains, PCIe, and the network."""


# ---- one machine ---------------------------------------------------------------------------------------------


class _MachinePorts:
    """The ports of one machine, or of a topology without a fabric; GPUs and ports count from 0 within it."""

    def __init__(self, machine: Topology, whole: Topology) -> None:
        self._machine = machine
        self.gb_per_s: list[float] = []
        self.ports: list[Port] = []
        self._kinds = machine.link_matrix(lambda link: _CLASS_OF.get(link.kind, _DIRECT), np.int8)
        self._speeds = machine.bandwidth_matrix()
        self.entries = (
            self._star(self._kinds == _SWITCHED, "NVLinks", _speeds_into_switches(machine, whole)),
            self._star(self._kinds < _SWITCHED, "PCIe link"),
            self._star(self._kinds == _NETWORK, "adapter")
            if whole.tiling is None
            else self._own_adapters(_adapter_speed(whole)),
        )
        """The port by which each GPU enters each segment."""
        has_switches = (self._kinds == _SWITCHED).any(axis=1)
        self.switches = np.where(has_switches, _joined(self._kinds == _SWITCHED), _NONE).astype(np.int32)
        """The lowest GPU that shares NVSwitches with each GPU; -1 without any."""
        self.domains: list[Ints] = []
        """For each class of paths, the lowest GPU that each GPU reaches by it or a nearer one."""
        self.uplinks: list[Ints] = []
        """For each class of paths, the port through which traffic leaves that domain."""
        implied = self._add_tree()
        self.near_order = np.argsort(np.lexsort(tuple(self.domains))).astype(np.int32)
        self.links: list[tuple[int, int, int, bool]] = []
        """(u, v, port, is slower) of the pairs with a port of their own."""
        self._add_links(implied)

    def _add(self, gb_per_s: float, what: str, gpus: Sequence[int]) -> int:
        self.gb_per_s.append(gb_per_s)
        self.ports.append(Port(what, tuple(gpus)))
        return len(self.gb_per_s) - 1

    def _star(self, pairs: NDArray[np.bool_], what: str, others: Reals | None = None) -> Ints:
        """Add a port for each GPU that has `pairs`, as fast as the fastest of them.

        others: speeds of the ports of GPUs without such pairs; 0 for none.
        """
        fastest: Reals = np.where(pairs, self._speeds, 0.0).max(axis=1, initial=0.0)
        has_some: NDArray[np.bool_] = np.logical_or.reduce(pairs, axis=1)
        if others is not None:
            fastest = np.where(has_some, fastest, others)
            has_some = has_some | (fastest > 0)
        ports = np.full(len(pairs), _NONE, np.int32)
        for gpu in np.flatnonzero(has_some).tolist():
            ports[gpu] = self._add(float(fastest[gpu]), what, [gpu])
        return ports

    def _own_adapters(self, stated: float | None) -> Ints:
        """Add the adapters, at the lower of the speeds that they and the fabric state."""
        machine, network = self._machine, NETWORK_GB_PER_S
        own = own_adapters(machine) if machine.nics else tuple(map(str, range(machine.num_gpus)))
        speeds = {nic.name: nic.gb_per_s for nic in machine.nics}
        known: dict[str, int] = {}
        for name in own:
            if name not in known:
                users = [gpu for gpu, other in enumerate(own) if other == name]
                speed = min(stated or math.inf, speeds.get(name) or math.inf)
                speed = speed if speed < math.inf else network
                known[name] = self._add(speed, f"adapter {name}" if machine.nics else "adapter", users)
        return np.array([known[name] for name in own], np.int32)

    def _add_tree(self) -> Reals:
        """Add the tree of the paths; return (n, n) the speeds that follow from all ports so far, 0 for none."""
        labels = np.arange(len(self._kinds), dtype=np.int32)
        switched, width, adapters = map(self._speeds_of, self.entries)
        same_switches = (self.switches[:, None] == self.switches) & (self.switches >= 0)
        implied = np.where(same_switches, _lower(switched), 0.0)
        for rank, kind in enumerate(PATH_KINDS):
            below, labels = labels, _joined(self._kinds <= rank)
            meet = (labels[:, None] == labels) & (below[:, None] != below) & (implied == 0)
            implied = np.where(meet, _lower(width), implied)
            uplink = self._uplinks(below, labels, kind)
            width = np.where(uplink < 0, width, np.minimum(width, self._speeds_of(uplink)))
            self.domains.append(labels)
            self.uplinks.append(uplink)
        return np.where(implied > 0, implied, _lower(adapters))

    def _uplinks(self, below: Ints, labels: Ints, kind: LinkKind) -> Ints:
        """Add the uplink of each domain of a class of paths that paths leave.

        It is as fast as the fastest of them. A domain with the GPUs of one below has none of its own.
        """
        ports = np.full(len(labels), _NONE, np.int32)
        for label in np.unique(labels).tolist():
            members = np.flatnonzero(labels == label)
            leaving = (self._kinds[members] < _SWITCHED) & (labels != label)
            if len(np.unique(below[members])) > 1 and leaving.any():
                speed = float(self._speeds[members][leaving].max())
                ports[members] = self._add(speed, f"uplink of the {_ABOVE[kind]}", members.tolist())
        return ports

    def _add_links(self, implied: Reals) -> None:
        """Add a port for each direct link, and for each pair whose path implies another speed.

        A pair without a path has one of 0 GB/s, if others have paths by which it would meet.
        """
        direct = (self._kinds == _DIRECT) | (self._speeds > implied / _SAME)
        slower = (self._speeds < implied * _SAME) & ~direct
        for u, v in np.argwhere(np.triu(direct | slower, 1)).tolist():
            link = self._machine.pairs.link(u, v)
            port = self._add(link.gb_per_s, f"{link.kind.label} link", [u, v])
            self.links.append((u, v, port, bool(slower[u, v])))

    def _speeds_of(self, ports: Ints) -> Reals:
        """Return (n,) the speed of each GPU's port; 0 without one."""
        return np.array([*self.gb_per_s, 0.0])[ports]


def _lower(width: Reals) -> Reals:
    return np.minimum(width[:, None], width)


def _joined(together: NDArray[np.bool_]) -> Ints:
    """Return (n,) the lowest GPU of the connected component of each GPU, where pairs in `together` are joined."""
    n = len(together)
    near = together | np.eye(n, dtype=bool)
    labels = np.arange(n, dtype=np.int32)
    while True:
        lowest = np.where(near, labels, n).min(axis=1, initial=n).astype(np.int32)[labels]
        if np.array_equal(lowest, labels):
            return labels
        labels = lowest


def _speeds_into_switches(machine: Topology, whole: Topology) -> Reals:
    """Return (n,) GB/s of each GPU of a template into the NVLink domains of its machines; 0 for none."""
    found = np.zeros(machine.num_gpus)
    number = next(i for i, template in enumerate(whole.templates) if template is machine)
    for level in switched_levels(whole):
        ports = level_ports.ports_into(level, whole.templates, whole.template_of).get(number, ())
        speeds = [level_ports.link_between(level, port, port, whole.network).gb_per_s for port in ports]
        found = np.maximum(found, speeds or 0.0)
    return found


def switched_levels(topology: Topology) -> list[Level]:
    """Return the levels whose domains are NVLink domains."""
    return [level for level in topology.levels if level.kind is LinkKind.NVSWITCH]


def _adapter_speed(topology: Topology) -> float | None:
    """Return GB/s of an adapter that the fabric states; None if it states none."""
    speed = gb_per_s_into(topology, _network_above(topology, -1))
    is_stated = speed != NETWORK_GB_PER_S or any(level.gb_per_s for level in topology.levels)
    return speed if is_stated else None


# ---- all machines --------------------------------------------------------------------------------------------


class _Tiles:
    """The ports of all machines, one machine after the other."""

    def __init__(self, topology: Topology, parts: Sequence[_MachinePorts]) -> None:
        template_of: NDArray[np.int64] = np.array(topology.template_of, np.int64)
        self._parts, self._template_of = parts, template_of
        sizes = np.array([len(part.switches) for part in parts])[template_of]
        counts = np.array([len(part.gb_per_s) for part in parts])[template_of]
        self._firsts = np.cumsum([0, *sizes])
        self._first_ports = np.cumsum([0, *counts])
        before = np.cumsum([0, *(len(part.switches) for part in parts)])
        place: NDArray[np.int64] = np.repeat(before[template_of] - self._firsts[:-1], sizes)
        place += np.arange(len(place))

        def tiled(of_parts: Sequence[Ints], shifts: NDArray[np.int64]) -> Ints:
            own = np.concatenate(of_parts)[place]
            return np.where(own < 0, _NONE, own + np.repeat(shifts[:-1], sizes)).astype(np.int32)

        self.gb_per_s: Reals = np.concatenate([parts[t].gb_per_s for t in topology.template_of])
        self.entries = [tiled([part.entries[i] for part in parts], self._first_ports) for i in range(3)]
        self.near_order = np.concatenate([part.near_order for part in parts])[place]
        self.levels = [
            PortLevel(
                _SWITCHES,
                tiled([part.switches for part in parts], self._firsts),
                np.full(len(place), _NONE, np.int32),
            )
        ]
        for rank in range(len(PATH_KINDS)):
            domain = tiled([part.domains[rank] for part in parts], self._firsts)
            uplink = tiled([part.uplinks[rank] for part in parts], self._first_ports)
            self.levels.append(PortLevel(_PCIE, domain, uplink))

    @property
    def links(self) -> tuple[Ints, NDArray[np.uint8]]:
        """Return (k, 3) two GPUs and their port, and (k,) whether it is slower than their path, for every link."""
        rows = [np.empty((0, 4), np.int64)]
        for template, part in enumerate(self._parts):
            if part.links:
                machines = np.flatnonzero(self._template_of == template)
                shift = np.stack(
                    [self._firsts[machines]] * 2 + [self._first_ports[machines], 0 * machines], 1
                )
                rows.append((np.array(part.links)[None, :, :] + shift[:, None, :]).reshape(-1, 4))
        found = np.concatenate(rows)
        found = found[np.lexsort((found[:, 1], found[:, 0]))]
        return found[:, :3].astype(np.int32), found[:, 3].astype(np.uint8)

    def port(self, number: int) -> Port | None:
        """Return what the port of a machine, given by number, belongs to; None for a port of no machine."""
        machine = bisect_right(self._first_ports, number) - 1
        if machine >= len(self._template_of):
            return None
        port = self._parts[int(self._template_of[machine])].ports[number - int(self._first_ports[machine])]
        return port._replace(gpus=tuple([int(self._firsts[machine]) + gpu for gpu in port.gpus]))


class _Above(NamedTuple):
    """What a level of the network carries of each machine's traffic."""

    limit: Reals
    """(m,) GB/s of an adapter."""
    share: Reals
    """(m,) what all adapters of a domain have at once, as a share."""


class _FabricPorts:
    """The ports of the domains between machines, and the levels at which machines meet."""

    def __init__(self, topology: Topology, tiles: _Tiles) -> None:
        self._topology, self._tiles = topology, tiles
        self.gb_per_s: list[float] = []
        self.ports: list[Port] = []
        self.levels: list[PortLevel] = []
        self.uplinks: dict[str, Ints] = {}
        """(n,) the port of each GPU's domain, by level."""
        if topology.tiling is not None:
            self._nothing = np.full(topology.num_gpus, _NONE, np.int32)
            for level in switched_levels(topology):
                codes = level.codes[topology.machine_of].astype(np.int32)
                self.levels.append(PortLevel(_SWITCHES, codes, self._nothing))
            self._add_machines()
            for number, level in enumerate(topology.levels):
                self._add_level(level, self._above(number))
        if topology.network > 0 or topology.tiling is None:
            around = np.zeros(topology.num_gpus, np.int32)
            self.levels.append(PortLevel(_ADAPTERS, around, np.full_like(around, _NONE)))

    def _above(self, number: int) -> _Above:
        """Return what the next level of the network above one, given by number, carries of each machine's traffic."""
        machines = self._topology.num_machines
        limit = np.full(machines, _stated_speed(self._topology, None))
        share = np.ones(machines)
        for level in reversed(self._topology.levels[number + 1 :]):
            if level.kind is LinkKind.NETWORK:
                inside = level.codes >= 0
                limit[inside] = _stated_speed(self._topology, level)
                share[inside] = 1 / level.oversubscription
        return _Above(limit, share)

    def _add_machines(self) -> None:
        """Add the uplinks of machines whose innermost level is a network that carries less than their adapters."""
        above = self._above(-1)
        has_switches = np.zeros(self._topology.num_machines, bool)
        for level in switched_levels(self._topology):
            has_switches |= level.codes >= 0
        narrow = (above.share < 1) & ~has_switches
        if narrow.any():
            number = np.where(narrow, np.cumsum(narrow) - 1, _NONE)[self._topology.machine_of]
            names = [
                f"uplink of machine {name}"
                for name, is_narrow in zip(self._topology.machine_names, narrow.tolist(), strict=True)
                if is_narrow
            ]
            uplink = self._uplinks(number, names, above)
            self.uplinks["machine"] = uplink
            self.levels.append(PortLevel(_ADAPTERS, self._nothing, uplink))

    def _add_level(self, level: Level, above: _Above) -> None:
        domain, names = self._domains(level)
        meets = level.kind is LinkKind.NETWORK and gb_per_s_into(self._topology, level) > 0
        uplink = self.uplinks[level.name] = self._uplinks(domain, names, above)
        self.levels.append(PortLevel(_ADAPTERS, domain if meets else self._nothing, uplink))

    def _domains(self, level: Level) -> tuple[Ints, list[str]]:
        """Return (n,) the number of each GPU's domain, or of its rail of it, and the name of each number's uplink."""
        codes = level.codes[self._topology.machine_of]
        name_of = dict(zip(level.codes.tolist(), level.domains, strict=True))
        if not level.rail:
            names = [
                f"uplink of {level.name} {name_of[code]}" for code in range(len(name_of.keys() - {_NONE}))
            ]
            return codes.astype(np.int32), names
        keys, number = np.unique(np.stack([codes, self.rails], 1), axis=0, return_inverse=True)
        names = [f"uplink of rail {one} of {level.name} {name_of[code]}" for code, one in keys.tolist()]
        return np.where(codes < 0, _NONE, number.reshape(-1)).astype(np.int32), names

    @cached_property
    def rails(self) -> NDArray[np.int64]:
        """(n,) the rail of each GPU; its number on its machine where none is stated."""
        rails = [
            np.array(
                [local if gpu.rail is None else gpu.rail for local, gpu in enumerate(template.gpus)], np.int64
            )
            for template in self._topology.templates
        ]
        return np.concatenate([rails[template] for template in self._topology.template_of])

    def relays(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return (n,) the lowest GPU on the NVSwitches of each GPU that has PXN, -1 for others, and (n,) all rails."""
        has_pxn = np.zeros(self._topology.num_machines, bool)
        for level in self._topology.levels:
            if level.pxn:
                has_pxn |= level.codes >= 0
        switches = self._tiles.levels[0].domain.astype(np.int64)
        return np.where(has_pxn[self._topology.machine_of], switches, _NONE), self.rails

    def _uplinks(self, domain: Ints, names: Sequence[str], above: _Above) -> Ints:
        """Add a port for each domain: all adapters in it, as far as the level above carries them; (n,) the ports.

        A switch has equal ports, so each adapter counts as the fastest one of the domain.
        """
        inside = domain >= 0
        adapters = self._tiles.entries[_ADAPTERS]
        pairs, first_gpu = np.unique(
            np.stack([domain[inside], adapters[inside]], 1), axis=0, return_index=True
        )
        machine = self._topology.machine_of[np.flatnonzero(inside)[first_gpu]]
        fastest = np.zeros(len(names))
        np.maximum.at(
            fastest, pairs[:, 0], np.minimum(self._tiles.gb_per_s[pairs[:, 1]], above.limit[machine])
        )
        speeds = fastest[pairs[:, 0]] * above.share[machine]
        first = len(self._tiles.gb_per_s) + len(self.gb_per_s)
        self.gb_per_s += np.bincount(pairs[:, 0], speeds, minlength=len(names)).tolist()
        self.ports += map(Port, names)
        return np.where(inside, domain + first, _NONE).astype(np.int32)


def _network_above(topology: Topology, level: int) -> Level | None:
    """Return the first level of the network above one, given by number; None for the network around all."""
    return next((one for one in topology.levels[level + 1 :] if one.kind is LinkKind.NETWORK), None)


def _stated_speed(topology: Topology, level: Level | None) -> float:
    """Return GB/s of a port into a level; infinity where neither the level nor the network states it."""
    speed = gb_per_s_into(topology, level)
    is_stated = (level is not None and level.gb_per_s is not None) or speed not in (0, NETWORK_GB_PER_S)
    return speed if is_stated else math.inf


def gb_per_s_into(topology: Topology, level: Level | None) -> float:
    """Return GB/s of a port into a level, or into the network outside all levels (None); 0 means no connection."""
    return topology.network if level is None or level.gb_per_s is None else level.gb_per_s
