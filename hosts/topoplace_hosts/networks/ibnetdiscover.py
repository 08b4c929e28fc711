"""Reader of the output of `ibnetdiscover`, an InfiniBand network, as a Fabric.

The text has a section per switch (`Switch`), channel adapter (`Ca`) and router (`Rt`). A section has a line with the
device's identity and description. A line for each cable follows, with both ports and the rate, such as 4xNDR. An
adapter's description is the host and the adapter, as in "node07 mlx5_0", if the host has published its name. With -g
the sections stand below headings of chassis.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from topoplace import _checks
from topoplace.discovery.text import decode
from topoplace.errors import TopologyError
from topoplace.topology.fabric import Fabric
from topoplace.topology.links.link_kinds import SPEEDS
from topoplace_hosts.networks import switch_tree

_SECTION = re.compile(r'(Switch|Ca|Rt)[ \t]+[0-9]+[ \t]+"([^"\s]+)"[^#]*(?:#[ \t]*"([^"]*)".*)?')
_CABLE = re.compile(
    r'\[([0-9]{1,4})\](?:\[ext [0-9]{1,4}\])?(?:\([^)]*\))?[ \t]+"([^"\s]+)"\[([0-9]{1,4})\](.*)'
)
_RATE = re.compile(r".*\b([0-9]{1,2})x([A-Z]{3}[0-9]{0,2})[ \t]*")
_HOST = re.compile(r"(\S+)(?: [A-Za-z]+[0-9]*[-_][0-9]+)?")
_SWITCH_NAME = re.compile(r"MF0;([^:;]+):.*")
_RECOGNISED = re.compile(
    r'^(?:switchguid|caguid|rtguid)=|^(?:Switch|Ca)[ \t]+[0-9]+[ \t]+"[SH]-', re.MULTILINE
)
_OTHER = re.compile(
    r"#.*|Chassis [0-9]+\b.*|Non-Chassis Nodes|(?:vendid|devid|sysimgguid|caguid|switchguid|rtguid)=.*|DR path.*|"
)


_COMPLAINT = re.compile(r"(?:\S+\.c:[0-9]+[:;]|ib(?:warn|panic|error)\b|mad_rpc|umad|perror)[: ].*")
"""A message of the program or its libraries on standard error."""


def recognised(text: str) -> bool:
    """Return True if `text` looks like the output of `ibnetdiscover`."""
    return _RECOGNISED.search(text) is not None


def parse(data: str | bytes, *, name: str = "infiniband") -> Fabric:
    """Read the fabric from the output of `ibnetdiscover`.

    Machines are the hosts that adapters name. Levels are "leaf" (switches that share machines are one domain), "spine"
    and so on. They have the speed of the machines' ports and the oversubscription of the cables. Adapters that name no
    host, and those inside switches, are left out with a note.
    Raises TopologyError naming the line of malformed text, of a cable to an undescribed device, and of a second cable
    at one port. A network without switches or without machines is refused too.
    """
    network = _read(decode.decoded(data, "ibnetdiscover's output"))
    hosts, notes = _hosts(network)
    notes += network.notes
    cables, rates = _cables(network, hosts)
    tree = switch_tree.from_cables(cables, what="the text")
    speed = _gb_per_s(next(iter(rates))) if len(rates) == 1 else 0.0
    if speed:
        tree.levels = tuple(replace(level, gb_per_s=speed) for level in tree.levels)
    else:
        found = ", ".join(f"{rate or 'none'} ({count} ports)" for rate, count in rates.most_common(5))
        notes.append(f"No one known speed of all ports of machines: {found}.")
    if len({cable.rate for cable in network.cables.values()}) > 1:
        notes.append("Cables have different rates; the oversubscription counts them as equal.")
    return switch_tree.fabric(tree, name, notes)


@dataclass(frozen=True, slots=True)
class _FabricNode:
    kind: str  # Switch, Ca or Rt
    description: str

    @property
    def is_inside_switch(self) -> bool:
        """Return True if this device is the adapter of an aggregation node inside a switch, not that of a host."""
        return "Aggregation Node" in self.description


@dataclass(frozen=True, slots=True)
class _Cable:
    where: str
    rate: str  # such as 4xNDR; "" if unknown


_Port = tuple[str, str]


@dataclass(slots=True)
class _Network:
    nodes: dict[str, _FabricNode] = field(default_factory=dict[str, _FabricNode])
    cables: dict[tuple[_Port, _Port], _Cable] = field(default_factory=dict[tuple[_Port, _Port], _Cable])
    """Each cable by its two ends, the smaller one first; an end is (GUID, port)."""
    notes: list[str] = field(default_factory=list[str])


def _read(text: str) -> _Network:
    network = _Network()
    other_end: dict[_Port, tuple[_Port, str]] = {}
    here = ""
    for number, line in decode.numbered_lines(text):
        where = f"line {number}"
        if section := _SECTION.fullmatch(line):
            here = section[2]
            if here in network.nodes:
                raise TopologyError(f"{where}: {_checks.shown(here)} appears twice")
            network.nodes[here] = _FabricNode(section[1], section[3] or "")
        elif cable := _CABLE.fullmatch(line):
            if not here:
                raise TopologyError(f"{where}: a cable before the first Switch or Ca")
            near, far = (here, cable[1]), (cable[2], cable[3])
            _plug(near, far, where, other_end)
            rate = _RATE.fullmatch(cable[4])
            cable_here = _Cable(where, f"{int(rate[1])}x{rate[2]}" if rate else "")
            network.cables.setdefault((min(near, far), max(near, far)), cable_here)
        elif _COMPLAINT.fullmatch(line.strip()):
            network.notes.append(f"{where} is an error of ibnetdiscover: what it could not ask is missing.")
        elif not _OTHER.fullmatch(line.strip()):
            raise TopologyError(f"{where}: {_checks.shown(line.strip())} is not a line of ibnetdiscover")
    _check_ends(network)
    return network


def _plug(near: _Port, far: _Port, where: str, other_end: dict[_Port, tuple[_Port, str]]) -> None:
    """Record in `other_end` the cable between two ports; TopologyError if a port has another cable already."""
    for port, end in ((near, far), (far, near)):
        known, first = other_end.setdefault(port, (end, where))
        if known != end:
            raise TopologyError(
                f"{where}: port {port[1]} of {_checks.shown(port[0])} has another cable in {first}"
            )


def _check_ends(network: _Network) -> None:
    for ends, cable in network.cables.items():
        for end, _ in ends:
            if end not in network.nodes:
                raise TopologyError(
                    f"{cable.where}: a cable to {_checks.shown(end)}, which the text does not describe"
                )
    if not any(node.kind == "Switch" for node in network.nodes.values()):
        raise TopologyError(f"no fabric: {len(network.nodes)} channel adapters or routers, and no Switch")


def _hosts(network: _Network) -> tuple[dict[str, str], list[str]]:
    """Return the host of each channel adapter that names one, by GUID, and notes about all other adapters."""
    hosts: dict[str, str] = {}
    unnamed, inside = 0, 0
    adapters = [(guid, node) for guid, node in network.nodes.items() if node.kind == "Ca"]
    for guid, node in adapters:
        if match := _HOST.fullmatch(node.description.strip()):
            hosts[guid] = match[1]
        elif node.is_inside_switch:
            inside += 1
        else:
            unnamed += 1
    switches = sum(node.kind == "Switch" for node in network.nodes.values())
    notes = [f"{switches} switches and {len(adapters)} channel adapters."]
    if unnamed:
        notes.append(
            f"{unnamed} channel adapters name no host and are left out: their machines are not known."
        )
    if inside:
        notes.append(f"{inside} channel adapters are aggregation nodes inside switches and are left out.")
    return hosts, notes


def _cables(network: _Network, hosts: Mapping[str, str]) -> tuple[switch_tree.Cables, Counter[str]]:
    """Return the cables by the names of machines and switches, and the number of machine ports of each rate."""
    switches = _switch_names(network)
    label = {**hosts, **switches}
    cables = switch_tree.Cables(
        {host: Counter() for host in hosts.values()}, {switch: Counter() for switch in switches.values()}
    )
    rates: Counter[str] = Counter()
    for ends, cable in network.cables.items():
        for (near, _), (far, _) in (ends, ends[::-1]):
            if far not in switches:
                continue
            if near in label:
                table = cables.trunks if near in switches else cables.ports
                table[label[near]][label[far]] += 1
            elif not network.nodes[near].is_inside_switch:
                cables.strangers[label[far]] += 1
            if near in hosts:
                rates[cable.rate] += 1
    return cables, rates


def _switch_names(network: _Network) -> dict[str, str]:
    """Return the name of each switch by GUID: its description, or the GUID if the description is not unique."""
    found = {guid: node.description for guid, node in network.nodes.items() if node.kind == "Switch"}
    short = {guid: _short(text) for guid, text in found.items()}
    unique = _once(short.values())
    return {guid: text if text in unique else guid for guid, text in short.items()}


def _short(description: str) -> str:
    match = _SWITCH_NAME.fullmatch(description)
    return match[1] if match else description.strip()


def _once(names: Iterable[str]) -> Mapping[str, int]:
    return {name: times for name, times in Counter(names).items() if times == 1 and name}


def _gb_per_s(rate: str) -> float:
    """Return GB/s of a rate such as 4xNDR; 0 for an unknown rate."""
    width, _, generation = rate.partition("x")
    speed = SPEEDS.get(f"infiniband-{generation.lower()}")
    return speed.gb_per_s * int(width) / 4 if speed and width else 0.0
