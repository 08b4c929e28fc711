"""The nodes, partitions and reservations of a Slurm cluster."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from topoplace_hosts.slurm.client.commands import SlurmCommands
from topoplace_hosts.slurm.client.jobs import megabytes, node_names
from topoplace_hosts.slurm.client.records import RecordFormat
from topoplace_hosts.slurm.texts.node_states import Meaning, meanings

_FIELDS = (
    "NodeList",
    "PartitionName",
    "Available",
    "StateComplete",
    "CPUsState",
    "Memory",
    "AllocMem",
    "Features",
    "Gres",
    "Version",
)
_IN_SERVICE = frozenset((Meaning.OPEN, Meaning.RESERVED, Meaning.PLANNED))
_RESERVATION = re.compile(r"ReservationName=(\S+) .*? Nodes=(\S*) .* State=(\S+)")


@dataclass(frozen=True, slots=True)
class SlurmNode:
    """A node as sinfo shows it."""

    name: str
    usable: bool
    """True if Slurm starts jobs on the node now: it has registered, is on, and its state is not closed."""
    idle_cpus: int
    free_mb: float
    """Megabytes of memory that no job has."""
    features: frozenset[str]
    gres: str
    partitions: frozenset[str]
    """The node's partitions that are up."""


@dataclass(frozen=True, slots=True)
class SlurmNodes:
    """All nodes by name, and the nodes of each reservation that is active."""

    nodes: Mapping[str, SlurmNode]
    reservations: Mapping[str, frozenset[str]]

    @property
    def reserved(self) -> frozenset[str]:
        """Return the nodes that are in an active reservation."""
        return frozenset[str]().union(*self.reservations.values())


def listed(commands: SlurmCommands) -> SlurmNodes:
    """Return the nodes and the active reservations."""
    form = RecordFormat(_FIELDS)
    found: dict[str, SlurmNode] = {}
    for record in form.records(commands.output("sinfo", ["-a", "-h", "-N", "-O", form.option])):
        name, partition, available, state, cpus, memory, allocated, features, gres, version = record
        before = found[name].partitions if name in found else frozenset[str]()
        found[name] = SlurmNode(
            name,
            in_service(state) and bool(version),
            _idle(cpus),
            megabytes(memory) - megabytes(allocated),
            frozenset(filter(None, features.split(","))),
            gres,
            before | {partition} if available == "up" else before,
        )
    return SlurmNodes(found, _reservations(commands))


def in_service(state: str) -> bool:
    """Return True if Slurm starts jobs on a node in a state such as "mixed+planned" without powering it up first."""
    found = meanings(state).keys()
    return bool(found) and found <= _IN_SERVICE


def registered(commands: SlurmCommands) -> frozenset[str]:
    """Return the nodes that have registered since slurmctld started.

    Before that, slurmctld does not know which device has which gres type. Slurm 22.05 still starts jobs there after any
    answer of the node, such as the end of another job. Such jobs get the first free devices of any type.
    """
    form = RecordFormat(("NodeList", "Version"))
    records = form.records(commands.output("sinfo", ["-a", "-h", "-N", "-O", form.option]))
    return frozenset(name for name, version in records if version)


def _idle(cpus: str) -> int:
    """Return the idle CPUs in allocated/idle/other/total."""
    parts = cpus.split("/")
    return int(parts[1]) if len(parts) == 4 and parts[1].isdigit() else 0


def _reservations(commands: SlurmCommands) -> dict[str, frozenset[str]]:
    found: dict[str, frozenset[str]] = {}
    for line in commands.output("scontrol", ["-o", "show", "reservation"]).splitlines():
        match = _RESERVATION.match(line)
        if match and match[3] == "ACTIVE":
            found[match[1]] = frozenset(node_names(match[2]))
    return found
