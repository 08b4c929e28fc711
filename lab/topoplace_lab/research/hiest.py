"""Reader of the JSON in which the authors of SC'17 (Amaral et al.) describe the machines of their experiments.

The object `machines` has an entry per machine, by name. An entry lists for each socket the number of GPUs and the GB of
a GPU's memory. It gives a distance for every pair of GPUs. The distance is 0 from a GPU to itself, 1 if two GPUs are
linked directly, 20 across sockets. A distance implies no speed.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

from topoplace import _checks
from topoplace.discovery.text import decode
from topoplace.errors import TopologyError
from topoplace.topology.devices import Gpu
from topoplace.topology.links.link_kinds import PCIE3_X16_GB_PER_S, Link, LinkKind, path
from topoplace.topology.topology import Topology

MAX_MACHINES = 100_000
MAX_GPUS = 4096
MAX_OBJECTS = 500_000

DUAL_NVLINK1 = Link(LinkKind.NVLINK1, 2, 40.0)
"""Two parallel NVLinks of the first generation, as inside a socket of the paper's machines."""
_DIRECT, _ACROSS = 1, 20


def recognised(text: str) -> bool:
    """Return True if `text` looks like the JSON of SC'17's machines."""
    return text.lstrip()[:1] == "{" and '"gpu_per_socket"' in text and '"gpu_distance"' in text


def parse(
    data: str | bytes,
    *,
    direct: Link = DUAL_NVLINK1,
    pcie_gb_per_s: float = PCIE3_X16_GB_PER_S,
    name: str = "hiest",
) -> Topology:
    """Read all machines that `data` describes as one topology.

    direct: the link of a pair with distance 1.
    pcie_gb_per_s: GB/s of PCIe; a pair without such a link gets the part that a path across sockets carries.
    Raises TopologyError naming the machine, the field and the value.
    """
    pcie_gb_per_s = _checks.positive(pcie_gb_per_s, "pcie_gb_per_s", TopologyError)
    _checks.instance(direct, Link, "direct", TopologyError)
    machines = _field(_json(decode.decoded(data)), "machines", dict, "the text")
    if not 1 <= len(machines) <= MAX_MACHINES:
        raise TopologyError(f"machines has {len(machines)} entries: must have 1 to {MAX_MACHINES}")
    gpus: list[Gpu] = []
    links: list[tuple[int, int, Link]] = []
    crooked = 0
    for machine, fields in machines.items():
        where = f"machines[{_checks.shown(machine)}]"
        first = len(gpus)
        gpus.extend(_gpus(fields, machine, first, where))
        links.extend(_links(fields, first, len(gpus) - first, direct, pcie_gb_per_s, where))
        crooked += not _is_symmetric(fields.get("socket_distance"))
    notes = [f"Distances tell no speeds: 1 is taken as {direct.gb_per_s:g} GB/s."]
    if crooked:
        notes.append(f"socket_distance of {crooked} machines is not symmetric; it is not used.")
    return Topology(tuple(gpus), tuple(links), default=pcie_gb_per_s, name=name, notes=tuple(notes))


def _json(text: str) -> Any:
    if text.count("{") + text.count("[") > MAX_OBJECTS:
        raise TopologyError(f"the JSON has more than {MAX_OBJECTS} objects and lists")
    try:
        return json.loads(text, object_pairs_hook=_object)
    except json.JSONDecodeError as error:
        raise TopologyError(f"line {error.lineno}: not JSON: {error.msg}") from None
    except TopologyError:
        raise
    except (ValueError, RecursionError) as error:
        raise TopologyError(f"not JSON: {error}") from None


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found:
            raise TopologyError(f"{_checks.shown(key)} appears twice in an object")
        found[key] = value
    return found


def _field(record: Any, key: str, kind: type, where: str) -> Any:
    """Return `record[key]`, which must exist and be of type `kind`."""
    if not isinstance(record, dict):
        raise TopologyError(f"{where} = {_checks.shown(record)} is not an object")
    value = cast("dict[str, Any]", record).get(key)
    if not isinstance(value, kind):
        raise TopologyError(f"{where}.{key} = {_checks.shown(value)} is not a {kind.__name__}")
    return value


def _gpus(fields: Any, machine: str, first: int, where: str) -> Iterator[Gpu]:
    """Yield the GPUs of one machine, socket by socket, numbered from `first`."""
    counts = _field(fields, "gpu_per_socket", list, where)
    memory = _list(fields.get("mem_per_gpu", [None] * len(counts)))
    if memory is None or len(memory) != len(counts):
        found = _checks.shown(fields["mem_per_gpu"])
        raise TopologyError(f"{where}.mem_per_gpu = {found} is not a list of {len(counts)}")
    local = 0
    for socket, (count, size) in enumerate(zip(counts, memory, strict=True)):
        what = f"{where}.gpu_per_socket[{socket}]"
        for _ in range(_checks.integer(count, what, TopologyError, low=0, high=MAX_GPUS - local)):
            gigabytes = (
                None if size is None else _checks.positive(size, f"{where}.mem_per_gpu", TopologyError)
            )
            yield Gpu(first + local, f"GPU{local}", None, machine, socket, gigabytes)
            local += 1


def _links(
    fields: Any, first: int, count: int, direct: Link, pcie_gb_per_s: float, where: str
) -> Iterator[tuple[int, int, Link]]:
    """Yield the links of one machine whose `count` GPUs are numbered from `first`."""
    rows = _field(fields, "gpu_distance", dict, where)
    where = f"{where}.gpu_distance"
    if sorted(rows) != sorted(map(str, range(count))):
        raise TopologyError(f"{where} is of GPUs {_checks.shown(list(rows))}, but there are {count}")
    for u in range(count):
        row = _field(rows, str(u), dict, where)
        for v in range(u + 1):
            there = _distance(row, u, v, where)
            back = _distance(_field(rows, str(v), dict, where), v, u, where)
            if there != back:
                raise TopologyError(f"{where} of {u} to {v} is {there}, but of {v} to {u} {back}")
            if there == _DIRECT:
                yield first + v, first + u, direct
            elif u != v:
                yield first + v, first + u, path(LinkKind.SYSTEM, pcie_gb_per_s)


def _distance(row: Mapping[str, Any], u: int, v: int, where: str) -> int:
    value = row.get(str(v))
    known = (0,) if u == v else (_DIRECT, _ACROSS)
    for distance in known:
        if type(value) is int and value == distance:
            return distance
    allowed = " or ".join(map(str, known))
    raise TopologyError(f"{where} of {u} to {v} = {_checks.shown(value)} is not {allowed}")


def _list(value: object) -> Sequence[Any] | None:
    return cast("Sequence[Any]", value) if isinstance(value, list) else None


def _is_symmetric(matrix: object) -> bool:
    """Return True if a matrix in JSON equals its transpose; False for a value that is not a matrix."""
    rows = [_list(row) or [] for row in _list(matrix) or []]
    square = all(len(row) == len(rows) for row in rows)
    return square and all(
        list(column) == row for column, row in zip(zip(*rows, strict=True), rows, strict=True)
    )
