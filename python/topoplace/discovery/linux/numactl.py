"""Reader of the NUMA nodes that `numactl --hardware` prints, and their combination with a topology.

The text has a line of nodes, then per node its CPUs (none for memory only) and its size. A matrix of relative distances
follows, 10 from a node to itself. The text names neither sockets nor GPUs.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace

from topoplace import _checks
from topoplace.discovery.text import cpu_list, decode, unread
from topoplace.errors import TopologyError
from topoplace.topology.assemble import with_host_paths
from topoplace.topology.topology import Topology

MAX_NODES = 1024
MAX_CPU = 1 << 16
_MAX_DIGITS = 6

SOCKET_DISTANCE = 16
"""NUMA nodes at a smaller distance share a socket: firmware gives 11 to 15 inside sockets, 17 or more across."""

_COMMAND = re.compile(r"\bnumactl (?:-H|--hardware)\b.*$")
_AVAILABLE = re.compile(r"\s*available:\s+([0-9]{1,6}) nodes? \(([0-9,-]*)\)\s*")
_CPUS = re.compile(r"\s*node\s+([0-9]{1,6})\s+cpus:([0-9\s]*)")
_SIZE = re.compile(r"\s*node\s+([0-9]{1,6})\s+(?:size|free):\s*([0-9]{1,15})\s*MB\s*")
_MORE_CPUS = re.compile(r"\s*[0-9][0-9\s]*")
_DISTANCES = re.compile(r"\s*node distances:\s*(?:node\s([0-9\s]+))?")
_NO_DISTANCES = re.compile(r"\s*No distance information available\.\s*")
_HEADER = re.compile(r"\s*node\s([0-9\s]+)")
_ROW = re.compile(r"\s*([0-9]{1,6}):\s([0-9\s]+)")
_OWN = (_AVAILABLE, _CPUS, _SIZE, _DISTANCES, _NO_DISTANCES, _HEADER, _ROW)


@dataclass(frozen=True, slots=True)
class NumaNode:
    """One NUMA node of a machine."""

    id: int
    cpus: tuple[int, ...]
    """Numbers of its CPUs, ascending; () for a node with only memory."""
    size_mb: int | None = None
    """Its memory in MB as the tool counts it; None if unknown."""


@dataclass(frozen=True, slots=True)
class NumaNodes:
    """The NUMA nodes of a machine and the distances between them."""

    nodes: tuple[NumaNode, ...]
    distances: tuple[tuple[int | None, ...], ...] = ()
    """(n, n) from the node of the row to that of the column, 10 for itself; None for unknown."""
    notes: tuple[str, ...] = ()

    def distance(self, a: int, b: int) -> int | None:
        """Return the distance from the a-th node to the b-th; if unknown, from the b-th to the a-th; else None."""
        there = self.distances[a][b] if self.distances else None
        return self.distances[b][a] if there is None and self.distances else there

    def place(self, node: int) -> int:
        """Return the index in `nodes` of the node with id `node`; TopologyError if there is none."""
        for i, known in enumerate(self.nodes):
            if known.id == node:
                return i
        ids = ", ".join(str(known.id) for known in self.nodes)
        raise TopologyError(f"NUMA node {node} is none of {_checks.shown(ids)}")


def recognised(text: str) -> bool:
    """Return True if `text` looks like the output of `numactl --hardware`."""
    lines = decode.numbered_lines(text[:65536])
    return any(_AVAILABLE.fullmatch(line) or _CPUS.fullmatch(line) for _, line in lines)


def parse(data: str | bytes) -> NumaNodes:
    """Read the NUMA nodes from the output of `numactl --hardware`.

    If the last rows of the distance matrix are missing, these distances stay unknown, with a note. Lines above and
    below the output are ignored, with a note. CPUs may continue in the next line. Raise TopologyError naming the line
    and the value, or the node for which lines are missing.
    """
    text = decode.decoded(data)
    first, last = 0, text.count("\n") + 1
    for number, line in decode.numbered_lines(text):
        if _is_own(line):
            first, last = first or number, number
    reader = _NodeReader()
    for number, line in decode.numbered_lines(text):
        if first <= number <= last and line.strip():
            reader.line(number, line)
    numa = reader.done()
    outside = unread.note(decode.numbered_lines(text), lambda number, _: first <= number <= last, _COMMAND)
    return replace(numa, notes=(*numa.notes, *outside))


def _is_own(line: str) -> bool:
    return bool(line) and any(form.fullmatch(line) for form in _OWN)


class _NodeReader:
    """A reader that collects the content of the lines it has read."""

    def __init__(self) -> None:
        self._listed: list[int] | None = None
        self._cpus: dict[int, tuple[int, ...]] = {}
        self._sizes: dict[int, int] = {}
        self._open: int | None = None  # the node whose CPUs were in the line before
        self._owner: dict[int, int] = {}
        self._columns: list[int] | None = None
        self._rows: dict[int, list[int]] = {}
        self._in_matrix = False
        self._kinds: tuple[tuple[re.Pattern[str], Callable[[int, re.Match[str]], None]], ...] = (
            (_AVAILABLE, self._available),
            (_CPUS, self._node),
            (_SIZE, self._size),
            (_DISTANCES, self._matrix),
        )

    def line(self, number: int, line: str) -> None:
        """Read one line that is not blank; refuse a line that `numactl --hardware` does not print."""
        if self._open is not None and _MORE_CPUS.fullmatch(line):
            self._add_cpus(number, self._open, line)
            return
        self._open = None
        for pattern, read in self._kinds:
            if match := pattern.fullmatch(line):
                read(number, match)
                return
        if _NO_DISTANCES.fullmatch(line):
            return
        if self._in_matrix and self._columns is None and (match := _HEADER.fullmatch(line)):
            self._columns = _numbers(match[1], number)
        elif self._in_matrix and self._columns is not None and (match := _ROW.fullmatch(line)):
            self._row(number, int(match[1]), _numbers(match[2], number))
        else:
            raise TopologyError(
                f"line {number}: {_checks.shown(line.strip())} is not a line of `numactl --hardware`"
            )

    def _available(self, number: int, match: re.Match[str]) -> None:
        if self._listed is not None:
            raise TopologyError(f"line {number}: the nodes are listed twice")
        self._listed = ids_of(match[2], f"line {number}: nodes")
        if len(self._listed) != int(match[1]):
            raise TopologyError(f"line {number}: {match[1]} nodes, but {len(self._listed)} are listed")

    def _node(self, number: int, match: re.Match[str]) -> None:
        node = int(match[1])
        if node in self._cpus:
            raise TopologyError(f"line {number}: the CPUs of node {node} appear twice")
        if len(self._cpus) == MAX_NODES:
            raise TopologyError(f"line {number}: more than {MAX_NODES} nodes")
        self._cpus[node], self._open = (), node
        self._add_cpus(number, node, match[2])

    def _add_cpus(self, number: int, node: int, text: str) -> None:
        cpus = list(self._cpus[node])
        for word in re.finditer("[0-9]+", text):
            cpu = _small(word[0], number)
            if cpu in self._owner:
                raise TopologyError(
                    f"line {number}: CPU {cpu} of node {node} is of node {self._owner[cpu]} too"
                )
            self._owner[cpu] = node
            cpus.append(cpu)
        self._cpus[node] = tuple(sorted(cpus))

    def _size(self, number: int, match: re.Match[str]) -> None:
        if "size" in match[0]:
            self._sizes[int(match[1])] = int(match[2])

    def _matrix(self, number: int, match: re.Match[str]) -> None:
        self._in_matrix = True
        if match[1]:
            self._columns = _numbers(match[1], number)

    def _row(self, number: int, node: int, distances: list[int]) -> None:
        columns = self._columns or []
        if node in self._rows or node not in columns:
            raise TopologyError(f"line {number}: row {node} of the distances appears twice, or in no column")
        if len(distances) != len(columns):
            raise TopologyError(
                f"line {number}: {len(distances)} distances, the header has {len(columns)} nodes"
            )
        self._rows[node] = distances

    def done(self) -> NumaNodes:
        """Return the NUMA nodes; TopologyError if the lines read are incomplete or contradict each other."""
        ids = self._listed if self._listed is not None else list(self._cpus)
        if not ids:
            raise TopologyError("no NUMA node: the text has no line such as `node 0 cpus: 0 1 2`")
        for node in [*ids, *self._cpus]:
            if node not in self._cpus or node not in ids:
                where = (
                    "has no line of its CPUs" if node not in self._cpus else "is not one of those available"
                )
                raise TopologyError(f"node {node} {where}")
        if self._columns is not None and self._columns != ids:
            found = _checks.shown(self._columns)
            raise TopologyError(f"the distances are of nodes {found}, not of {_checks.shown(ids)}")
        nodes = tuple(NumaNode(node, self._cpus[node], self._sizes.get(node)) for node in ids)
        return NumaNodes(nodes, *self._distances(ids))

    def _distances(self, ids: list[int]) -> tuple[tuple[tuple[int | None, ...], ...], tuple[str, ...]]:
        if not self._rows:
            return (), ("Distances between NUMA nodes are not given.",)
        missing = [node for node in ids if node not in self._rows]
        if missing != ids[len(ids) - len(missing) :]:
            raise TopologyError(f"row {missing[0]} of the distances is missing")
        rows = tuple(tuple(self._rows.get(node, [None] * len(ids))) for node in ids)
        note = f"The distances from NUMA nodes {', '.join(map(str, missing))} are not given."
        return rows, (note,) if missing else ()


def _numbers(text: str, number: int) -> list[int]:
    words = text.split(None, MAX_NODES)
    if len(words) > MAX_NODES:
        raise TopologyError(f"line {number}: more than {MAX_NODES} nodes")
    if any(len(word) > _MAX_DIGITS for word in words):
        raise TopologyError(f"line {number}: a number has more than {_MAX_DIGITS} digits")
    return [int(word) for word in words]


def _small(word: str, number: int) -> int:
    if len(word) > 6 or int(word) > MAX_CPU:
        raise TopologyError(f"line {number}: CPU {_checks.shown(word)} is above {MAX_CPU}")
    return int(word)


def ids_of(text: str, what: str, limit: int = MAX_CPU) -> list[int]:
    """Return the numbers of a list such as "0-3,8", in their order; TopologyError naming `what` for anything else."""
    ids: list[int] = []
    for part in text.split(","):
        match = re.fullmatch(r"([0-9]{1,6})(?:-([0-9]{1,6}))?", part)
        if not match or int(match[2] or match[1]) < int(match[1]) or int(match[2] or match[1]) > limit:
            raise TopologyError(f"{what} = {_checks.shown(text)} is not a list of numbers up to {limit}")
        ids.extend(range(int(match[1]), int(match[2] or match[1]) + 1))
    if len(set(ids)) < len(ids):
        raise TopologyError(f"{what} = {_checks.shown(text)} has a number twice")
    return ids


# ---- combination with a topology -------------------------------------------------------------------------------


def joined(topology: Topology, numa: NumaNodes, *, socket_distance: int = SOCKET_DISTANCE) -> Topology:
    """Return `topology`, one machine, with sockets and CPUs from `numa` for every GPU whose NUMA node is known.

    socket_distance: NUMA nodes nearer to each other than this share a socket. A GPU whose NUMA node has no CPUs gets
    those of the nearest node with CPUs. Raises TopologyError for several machines, for a GPU of a node missing in
    `numa`, and for several nodes without any known distance between them.
    """
    if topology.num_machines != 1:
        raise TopologyError(f"topology has {topology.num_machines} machines; NUMA nodes are of one")
    topology = topology.machine(topology.machine_names[0])
    socket_distance = _checks.integer(socket_distance, "socket_distance", TopologyError, low=11, high=1 << 16)
    sockets = _sockets(numa, socket_distance)
    gpus = list(topology.gpus)
    for gpu in topology.gpus:
        if gpu.numa_node is not None:
            place = numa.place(gpu.numa_node)
            cpus = cpu_list.list_of(numa.nodes[_with_cpus(numa, place)].cpus)
            gpus[gpu.index] = replace(gpu, socket=sockets[place], cpus=cpus or gpu.cpus)
    known = sum(gpu.numa_node is not None for gpu in topology.gpus)
    missing = topology.num_gpus - known
    note = f"The NUMA nodes of {missing} GPUs are not given: their sockets and CPUs are as they were."
    notes = (*topology.notes, *numa.notes, *([note] if missing else []))
    return with_host_paths(replace(topology, gpus=tuple(gpus), notes=notes))


def _sockets(numa: NumaNodes, limit: int) -> list[int]:
    """Return the socket, numbered from 0, of each NUMA node.

    Nodes nearer to each other than `limit` share a socket, and so do nodes joined by a chain of such pairs.
    """
    n = len(numa.nodes)
    if n > 1 and not numa.distances:
        raise TopologyError("the distances between NUMA nodes are unknown, so sockets are too")
    socket = [-1] * n
    for i in range(n):
        if socket[i] < 0:
            number = max(socket) + 1
            left = [i]
            while left:
                a = left.pop()
                socket[a] = number
                left.extend(b for b in range(n) if socket[b] < 0 and _near(numa.distance(a, b), limit))
    return socket


def _near(distance: int | None, limit: int) -> bool:
    return distance is not None and distance < limit


def _with_cpus(numa: NumaNodes, place: int) -> int:
    """Return the index of the nearest node with CPUs to the node with index `place`, which may be that node itself."""
    if numa.nodes[place].cpus:
        return place
    found = [
        (distance, i)
        for i, node in enumerate(numa.nodes)
        if node.cpus and (distance := numa.distance(place, i)) is not None
    ]
    return min(found)[1] if found else place
