"""Reader of Slurm's nodes as `sinfo`, `scontrol show node` and slurm.conf list them, in text or JSON.

Gres counts a node's GPUs and names their type. GresUsed says which of them jobs hold, by their places on the node, as
in `gpu:a100:2(IDX:0-1)`. `squeue --json` gives the same by job, without the number of GPUs. No text says how the GPUs
of a node are connected: their links are of kind UNKNOWN, unless the caller gives a template. The GPUs of nodes on which
Slurm starts nothing (`node_states.py`) are unhealthy, and so are those that GresDrain names.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from topoplace import _checks
from topoplace.discovery.in_use import GpuUse
from topoplace.discovery.text import decode, host_list, yaml_tree
from topoplace.discovery.text.yaml_tree import Fields
from topoplace.errors import TopologyError
from topoplace.topology.assemble import joined, with_host_paths
from topoplace.topology.devices import Gpu
from topoplace.topology.fabric import Level
from topoplace.topology.links.link_kinds import PCIE3_X16_GB_PER_S, Link, LinkKind
from topoplace.topology.topology import Topology
from topoplace_hosts.slurm.texts import gres, node_states
from topoplace_hosts.slurm.texts.node_states import Meaning

_NAMED = ("NODELIST", "NODE", "HOSTNAMES", "HOSTNAME", "NODE_LIST", "NODEHOST")
_TABLE = re.compile(
    rf"^(?=[A-Z_:/()%\[\]| \t]+\r?$)(?=.*\bGRES(?:_USED)?\b).*\b(?:{'|'.join(_NAMED)})\b.*$", re.MULTILINE
)
_GPU_CELL = re.compile(r"(?:gres[:/])?gpu(?::[\w.+-]+)*:[0-9]{1,9}(?:\([^()\s]*\))?(?:,\S+)?")
_PLAIN_CELL = re.compile(
    r"[0-9][0-9./:%+A-Za-z-]{0,40}|infinite|unlimited|\(null\)|N/A|n/a|none", re.IGNORECASE
)
"""A number, a time limit, or a cell without content."""
_HOST_CELL = re.compile(r"[A-Za-z_][\w.-]*(?:\[[0-9,-]+\][\w.-]*)?")
_MOST_LOOKED_AT = 65_536
"""Number of characters at the start of a text by which a table without titles is recognised."""
_RECORD = re.compile(r"^[ \t]*NodeName=(?=\S+[ \t\r\n])", re.MULTILINE)
_END = re.compile(r"\n(?=\r?\n)|^[ \t]*(?:#|(?:PartitionName|DownNodes|NodeSet)=)", re.MULTILINE)
"""The last possible end of a record."""
_SHOWN = re.compile(r"\b(?:Gres(?:Used|Drain)?|CfgTRES|CPUAlloc|CPUTot|CoresPerSocket|RealMemory|Sockets)=")
_RUNS_NOW = re.compile(r"\bCPUAlloc=|\bAllocTRES=|\bNodeAddr=")
_OF_DEVICES = re.compile(r"\bName=|\bAutoDetect=", re.IGNORECASE)
_JSON = re.compile(r'\A\s*\{.*?"(?:nodes|jobs|sinfo)"\s*:\s*\[', re.DOTALL)
_JSON_OF_SLURM = re.compile(r'"(?:gres_used|gres_detail|slurm)"', re.IGNORECASE)
_KEYS = ("Gres", "GresUsed", "GresDrain", "State", "AllocTRES", "Sockets", "Topology")
_VALUE = re.compile(rf"(?:^|\s)({'|'.join(_KEYS)})=(\S*)")
_FREE_TEXT = re.compile(r"(?:^|\s)(?:Reason|Comment|Extra)=.*", re.MULTILINE)
"""Free text by people, up to the end of the line; Slurm prints it after all fields that are read."""
_ITEM = re.compile(r"((?:[^,()]|\([^()]*\))+)")
_GRES = re.compile(r"gpu(?::([A-Za-z0-9_][\w.+-]*?))??(?::no_consume)?(?:[:=]([0-9]{1,9}))?(?:\(([^()]*)\))?")
_INDEX = re.compile(r"(?:IDX:)?([0-9]{1,6})(?:-([0-9]{1,6}))?")
_ONE_SOCKET = re.compile(r"S:([0-9]{1,4})")
_DEVICE_TYPE = re.compile(r"g[0-9]{1,4}")
"""A type for each device, as topoplace writes them; it names no model."""
_ALLOCATED = re.compile(r"gres/gpu=([0-9]{1,9})")
_ALLOCATED_SHARES = re.compile(r"gres/(?:shard|mps)(?::[^=,]*)?=0*[1-9]")
_SHARES = re.compile(
    r"(shard|mps)(?::([A-Za-z_][\w.+-]*?|[0-9]\w*[A-Za-z_.-][\w.+-]*?))?[:=]([0-9]{1,9})(?:\(([^()]*)\))?"
)
_PART = re.compile(r"([0-9]{1,9})/[0-9]{1,9}")
"""The share of a GPU that is in use, and its total."""
_NONE = frozenset(("", "(null)", "N/A", "n/a"))
HOLDS_GPUS = frozenset(
    ("RUNNING", "COMPLETING", "SUSPENDED", "STOPPED", "CONFIGURING", "SIGNALING", "STAGE_OUT")
)
"""The states of jobs that hold their GPUs."""
_WIDER = "sinfo cuts columns: use -O gres:200"
_WHOLE = re.compile(r"[:=][0-9]+(?:\([^()]*\))?$")
"""The end of an entry that is not cut: its number."""
_WHICH = "`scontrol show node -d` tells which"


@dataclass(frozen=True, slots=True)
class _SlurmNode:
    """What a text says about one node, in Slurm's words; None for what it does not say."""

    name: str
    where: str
    gres: str | None
    used: str | None = None
    state: str | None = ""
    """None if the record shows a running node but no state."""
    allocated: str | None = None
    """AllocTRES."""
    sockets: str = ""
    """The number of its sockets."""
    drained: str = ""
    """GresDrain."""
    topology: str = ""
    """Its places in the topologies of topology.yaml, such as "default:block1"."""

    @property
    def meanings(self) -> Mapping[Meaning, str]:
        """What its state means, each with the word that says it."""
        return node_states.meanings(self.state or "")


def recognised(text: str) -> bool:
    """Return True if `text` looks like Slurm's nodes or, in JSON, its jobs."""
    if _JSON.match(text):
        return _JSON_OF_SLURM.search(text) is not None
    if _TABLE.search(text) or _titles_of(text[:_MOST_LOOKED_AT]):
        return True
    return bool(_RECORD.search(text) and _SHOWN.search(text) and not _OF_DEVICES.search(text))


def parse(
    data: str | bytes,
    *,
    template: Topology | None = None,
    gpu_model: str | None = None,
    pcie_gb_per_s: float = PCIE3_X16_GB_PER_S,
    name: str = "slurm nodes",
) -> Topology:
    """Read the nodes in `data` that have GPUs, as machines of a topology. Equal nodes share a template.

    template: the topology of a node; it must have as many GPUs. gpu_model: replaces the types of Gres.
    pcie_gb_per_s: GB/s assumed between the GPUs of a node without a template.
    Raises TopologyError naming the line or the node.
    """
    pcie_gb_per_s = _checks.positive(pcie_gb_per_s, "pcie_gb_per_s", TopologyError)
    nodes = list(_nodes(decode.decoded(data, "Slurm's nodes")))
    if not any(node.gres is not None for node in nodes):
        raise TopologyError(
            "the text says which GPUs jobs hold, not how many there are; use it as --busy-from FILE, or give "
            "`scontrol show node`"
        )
    built: dict[tuple[object, ...], Topology | None] = {}
    machines: dict[str, Topology] = {}
    for node in nodes:
        key = node.gres, Meaning.CLOSED in node.meanings, node.drained
        if key not in built:
            built[key] = _machine(node, template, gpu_model, pcie_gb_per_s)
        if (machine := built[key]) is not None:
            machines[node.name] = machine
    return _cluster(nodes, machines, name, template is None)


def in_use(data: str | bytes) -> tuple[GpuUse, ...]:
    """Return the use of GPUs, by node and place on the node. Without Gres, only GPUs that jobs hold are returned.

    Raises TopologyError naming the node if the text gives only the number of GPUs in use.
    """
    text = decode.decoded(data, "Slurm's nodes")
    if "jobs" in (document := _document(text)):
        return tuple(dict.fromkeys(_of_jobs(document)))
    return tuple(found for node in _nodes(text) for found in _held(node))


# ---- machines --------------------------------------------------------------------------------------------------


def _machine(
    node: _SlurmNode, template: Topology | None, gpu_model: str | None, pcie_gb_per_s: float
) -> Topology | None:
    kinds = list(_kinds(node))
    if not (total := _total(node)):
        return None
    unhealthy = _unhealthy(node, total)
    if template is not None:
        _checks.instance(template, Topology, "template", TopologyError)
        if template.num_gpus != total:
            raise TopologyError(f"{node.where}{total} GPUs, but its template has {template.num_gpus}")
        return template.with_unhealthy(sorted(unhealthy)) if unhealthy else template
    each = [(kind, socket) for kind, count, socket in kinds for _ in range(count)]
    complete = all(socket is not None for _, socket in each)
    gpus = [
        gres.of_type(
            Gpu(i, f"GPU{i}", gpu_model, socket=socket if complete else None, healthy=i not in unhealthy),
            kind,
            node.where,
        )
        for i, (kind, socket) in enumerate(each)
    ]
    unknown = Link(LinkKind.UNKNOWN, 1, pcie_gb_per_s)
    links = [(u, v, unknown) for v in range(total) for u in range(v)]
    return with_host_paths(Topology(gpus, links, default=pcie_gb_per_s, name=gpus[0].model or "GPU"))


def _total(node: _SlurmNode) -> int:
    """Return the number of GPUs that Gres counts. TopologyError says that there are too many."""
    total = sum(count for _, count, _ in _kinds(node))
    if total > gres.MAX_GPUS:
        raise TopologyError(f"{node.where}{total} GPUs are more than {gres.MAX_GPUS} on one node")
    return total


def _kinds(node: _SlurmNode) -> Iterator[tuple[str | None, int, int | None]]:
    """Yield type, number and socket of equal GPUs of a node; devices of a type each have no model.

    The socket is None unless Gres names a single one for them.
    """
    for kind, count, said in _gpus_in(node.gres or "", f"{node.where}Gres"):
        socket = _ONE_SOCKET.fullmatch(said or "")
        model = None if kind is None or _DEVICE_TYPE.fullmatch(kind) else kind
        yield model, count, int(socket[1]) if socket else None


def _unhealthy(node: _SlurmNode, total: int) -> set[int]:
    """Return the places of the GPUs that no job gets, of `total` on the node."""
    if Meaning.CLOSED in node.meanings:
        return set(range(total))
    found = {place for places, _ in _drained(node) for place in places}
    if outside := sorted(found - set(range(total))):
        raise TopologyError(f"{node.where}GresDrain names GPU {outside[0]}, but Gres has {total}")
    return found


def _drained(node: _SlurmNode) -> Iterator[tuple[Sequence[int], bool]]:
    """Yield the places of GPUs that each entry of GresDrain closes, and True if it says which they are.

    If it does not, all GPUs of its type are closed, as each may be the one.
    """
    for kind, count, indices in _gpus_in(node.drained, f"{node.where}GresDrain"):
        if count:
            named = list(_places(indices or ""))
            said = len(named) == count
            yield (named if said else _places_of_type(node, kind) or _places_of_type(node, None)), said


def _cluster(
    nodes: Sequence[_SlurmNode], machines: Mapping[str, Topology], name: str, links_unknown: bool
) -> Topology:
    without = [node.name for node in nodes if node.name not in machines]
    if not machines:
        why = _other_devices(nodes)
        raise TopologyError(f"no node has a GPU: Gres of {_checks.some(without)} has none{why}")
    notes = ["Slurm does not state how the GPUs of a node are connected."] if links_unknown else []
    notes += _closed([node for node in nodes if node.name in machines])
    if without:
        notes.append(f"Without GPUs, and left out: {_checks.some(without)}.")
    if any(node.used not in (None, *_NONE) for node in nodes):
        notes.append(
            "The GPUs that jobs hold are free here; --busy-from reads which they are from the same text."
        )
    notes += _left_out([node for node in nodes if node.name in machines])
    return joined(machines, _levels(nodes, machines, notes), name, notes)


def _other_devices(nodes: Sequence[_SlurmNode]) -> str:
    """Return which kinds of devices are there in place of GPUs, as the end of a sentence; "" if there are none."""
    others = ", ".join(sorted({kind for node in nodes for kind in _other_kinds(node)}))
    why = f"; of its kinds, {others}, none is read: gpu is" if others else ""
    is_npu = "npu" in others
    return why + (", and `npu-smi info -t topo` tells how those of a node are connected" if is_npu else "")


def _levels(
    nodes: Sequence[_SlurmNode], machines: Mapping[str, Topology], notes: list[str]
) -> tuple[Level, ...]:
    """Return the level that Topology= tells: nodes of one unit of a topology, a block or a leaf, are a domain."""
    # For each node the unit in each topology; a unit may be below others, as in default:spine1:leaf2.
    places = {
        node.name: {
            place.split(":")[0]: place.rsplit(":", 1)[1] for place in node.topology.split(",") if ":" in place
        }
        for node in nodes
        if node.name in machines
    }
    names = list(dict.fromkeys(name for found in places.values() for name in found))
    if not names:
        return ()
    first, *others = names
    more = f", and {_checks.some(others)} is left out" if others else ""
    notes.append(
        f"The level {first} is what Topology= of the nodes tells{more}; topology.yaml, or what `scontrol show "
        "topology` prints, tells all levels."
    )
    return (Level(first, tuple(places[name].get(first) for name in machines)),)


def _closed(nodes: Sequence[_SlurmNode]) -> Iterator[str]:
    """Yield notes on nodes with GPUs whose state, or GresDrain, keeps jobs off them."""
    for meaning in Meaning:
        named = [f"{node.name} ({word})" for node in nodes if (word := node.meanings.get(meaning))]
        if named and meaning is not Meaning.OPEN:
            yield f"{meaning.value}: {_checks.some(named)}."
    if untold := [node.name for node in nodes if node.state is None]:
        yield f"Nodes whose state is not given, and which are assumed to be open: {_checks.some(untold)}."
    yield from _drained_gpus(nodes)


def _drained_gpus(nodes: Sequence[_SlurmNode]) -> Iterator[str]:
    drained = [node for node in nodes if Meaning.CLOSED not in node.meanings]
    for said, which in ((True, ""), (False, ", and with them all that may be meant")):
        named = [
            f"{node.name} ({node.drained})" for node in drained if said in (one for _, one in _drained(node))
        ]
        if named:
            yield f"GPUs that Slurm has drained are unhealthy{which}: {_checks.some(named)}."


def _left_out(nodes: Sequence[_SlurmNode]) -> Iterator[str]:
    """Yield notes on what the text says of nodes with GPUs and a topology has no place for."""
    held = [
        f"{node.name} ({what})"
        for node in nodes
        if node.used in (None, *_NONE) and (what := _allocated_in_words(node))
    ]
    if held:
        yield f"GPUs that jobs hold are free here: {_checks.some(held)}; {_WHICH}."
    if sockets := [node.name for node in nodes if _is_split(node)]:
        yield f"Nodes with several sockets, and which GPU is near which is not given: {_checks.some(sockets)}."
    if others := sorted({kind for node in nodes for kind in _other_kinds(node)}):
        yield f"Other entries of Gres, which are left out: {', '.join(others)}."


def _other_kinds(node: _SlurmNode) -> Iterator[str]:
    """Yield the kinds of Gres of a node that are no GPUs."""
    for text in (node.gres, node.drained):
        if text is not None and text not in _NONE:
            kinds = (item.partition(":")[0] for item in _ITEM.findall(text))
            yield from (kind for kind in kinds if not kind.startswith("gpu"))


def _is_split(node: _SlurmNode) -> bool:
    """Return True if a node has several sockets, and a GPU whose socket is not given."""
    several = node.sockets not in ("", "0", "1") or "(S:" in (node.gres or "")
    return several and any(socket is None for _, _, socket in _kinds(node))


def _allocated(node: _SlurmNode) -> int:
    """Return the number of GPUs that AllocTRES counts."""
    found = _ALLOCATED.search(node.allocated or "")
    return int(found[1]) if found else 0


def _allocated_in_words(node: _SlurmNode) -> str:
    """Return how many GPUs AllocTRES counts, or that it counts shares of them; "" if there are none."""
    shares = "shares" if _ALLOCATED_SHARES.search(node.allocated or "") else ""
    return str(_allocated(node) or shares)


# ---- GPUs in use -----------------------------------------------------------------------------------------------


def _held(node: _SlurmNode) -> Iterator[GpuUse]:
    """Yield the use of a node's GPUs; without Gres, of those that jobs hold and of a node that starts nothing."""
    unlisted = node.used is None or (node.used in _NONE and node.allocated)
    held = set(_all_or_none(node) if unlisted else _used(node, node.used or ""))
    closed = node.meanings.get(Meaning.CLOSED)
    fault = f"Slurm starts nothing on its node ({closed})" if closed else f"GresDrain is {node.drained}"
    if node.gres is None:
        yield from (GpuUse(node.name, place, by_place=True, only_held=True) for place in sorted(held))
        if closed:
            yield GpuUse(node.name, None, taken=False, fault=fault, only_held=True)
        return
    total = _total(node)
    unhealthy = _unhealthy(node, total)
    for place in sorted(held.union(range(total))):
        why = fault if place in unhealthy else ""
        yield GpuUse(node.name, place, by_place=True, taken=place in held, fault=why)


def _used(node: _SlurmNode, used: str) -> Iterator[int]:
    """Yield the places of the GPUs that GresUsed lists."""
    for _, count, indices in _gpus_in(used, f"{node.where}GresUsed"):
        places = list(_places(indices or ""))
        if count and len(places) != count:
            raise TopologyError(f"{node.where}{count} GPUs are in use, but not which they are; {_WHICH}")
        yield from places
    yield from _shared(node, used)


def _all_or_none(node: _SlurmNode) -> range:
    """Return the places of all GPUs, or of none, if AllocTRES counts that many; else raise TopologyError."""
    total = _total(node)
    if Meaning.CLOSED in node.meanings and _allocated(node) < total:
        return range(0)  # no job gets any of them
    if total and node.allocated is None:
        raise TopologyError(f"{node.where}the text does not say which GPUs are in use; {_WHICH}")
    used = _allocated(node)
    if 0 < used < total:
        raise TopologyError(f"{node.where}{used} of {total} GPUs are in use; {_WHICH}")
    if used < total:
        _refuse_unnamed_shares(node)
    return range(min(used, gres.MAX_GPUS))


def _refuse_unnamed_shares(node: _SlurmNode) -> None:
    if _ALLOCATED_SHARES.search(node.allocated or ""):
        raise TopologyError(f"{node.where}shares of GPUs are in use, but not of which; {_WHICH}")


def _shared(node: _SlurmNode, used: str) -> Iterator[int]:
    """Yield the places of GPUs of which jobs hold shards or a part of MPS: no job can have the whole of them."""
    found = [match for item in _ITEM.findall(used) if (match := _SHARES.fullmatch(item.strip()))]
    if not found:
        _refuse_unnamed_shares(node)
    for match in found:
        if not int(match[3]):
            continue
        parts = _PART.findall(match[4] or "")
        places = _places_of_shares(node, match[2], len(parts))
        if not places:
            raise TopologyError(f"{node.where}{match[1]} of GPUs is in use, but not of which; {_WHICH}")
        yield from (place for place, part in zip(places, parts, strict=True) if int(part))


def _places_of_shares(node: _SlurmNode, kind: str | None, num_parts: int) -> Sequence[int]:
    """Return the places of the GPUs that shares of a type list in so many parts; none if the text leaves it open."""
    if node.gres:
        choices = (_places_of_type(node, kind), _places_of_type(node, None))
        return next((places for places in choices if len(places) == num_parts), ())
    types = {one for one, _, _ in _gpus_in(node.used or "", f"{node.where}GresUsed")}
    return range(num_parts) if kind is None or types in ({None}, {kind}) else ()


def _places_of_type(node: _SlurmNode, kind: str | None) -> list[int]:
    """Return the places of the GPUs of a type on a node; of all GPUs if it is None."""
    entries = _gpus_in(node.gres or "", f"{node.where}Gres")
    each = [one for one, count, _ in entries for _ in range(count)]
    return [place for place, one in enumerate(each) if kind in (None, one)]


def _of_jobs(document: Fields) -> Iterator[GpuUse]:
    for job in yaml_tree.items(document, "jobs"):
        fields = yaml_tree.fields(job, "a job")
        where = f"job {_checks.shown(yaml_tree.scalar(fields, 'job_id'))}: "
        if HOLDS_GPUS.isdisjoint(_words(fields.get("job_state"))):
            continue
        details = _words(fields.get("gres_detail"))
        hosts = yaml_tree.scalar(fields, "nodes") or ""
        names = host_list.expanded(hosts, f"{where}nodes") if details else []
        for node, detail in zip(names, details, strict=False):
            yield from _held(_SlurmNode(node, f"{where}node {_checks.shown(node)}: ", None, detail))


# ---- texts -----------------------------------------------------------------------------------------------------


def gpus_of(detail: str) -> tuple[int, ...]:
    """Return the places of GPUs in a text such as "gpu:a100:2(IDX:0-1),gpu:g5:1(IDX:5)", ascending."""
    found = (indices for _, _, indices in _gpus_in(detail, "GRES"))
    return tuple(sorted(place for indices in found for place in _places(indices or "")))


def _gpus_in(text: str, where: str) -> Iterator[tuple[str | None, int, str | None]]:
    """Yield type, number, and what is in parentheses, of each entry of GPUs in a value of Gres or GresUsed."""
    if text in _NONE:
        return
    for item in _ITEM.findall(text.strip().removesuffix(",")):
        if not item.removeprefix("gres/").removeprefix("gres:").startswith("gpu"):
            continue
        match = _GRES.fullmatch(item.removeprefix("gres/").removeprefix("gres:"))
        if match is None or text.count("(") != text.count(")"):
            raise TopologyError(f"{where} = {_checks.shown(item)} is not like gpu:a100:4; {_WIDER}")
        yield match[1], int(match[2] or 1), match[3]


def _places(indices: str) -> Iterator[int]:
    for part in indices.split(","):
        if match := _INDEX.fullmatch(part.strip()):
            last = min(int(match[2] or match[1]), int(match[1]) + gres.MAX_GPUS)
            yield from range(int(match[1]), last + 1)


def _nodes(text: str) -> Iterator[_SlurmNode]:
    """Yield the nodes in `text`, each once."""
    if document := _document(text):
        found: Iterable[_SlurmNode] = _json_nodes(document)
    elif _TABLE.search(text):
        found = _rows(text)
    elif _RECORD.search(text):
        found = _records(text)
    else:
        found = _rows(text, _titles_of(text))
    seen: dict[str, _SlurmNode] = {}
    for node in found:
        first = seen.setdefault(node.name, node)
        if (first.gres, first.used) != (node.gres, node.used):
            raise TopologyError(f"{node.where}appears twice, with other GPUs")
    yield from seen.values()


def _titles_of(text: str) -> list[str]:
    """Return the titles of a table of sinfo without them (--noheader), by its cells; none if they do not state them.

    Nodes are in the first column. A column whose GPUs have places (IDX) is of those in use.
    """
    rows: list[list[str]] = []
    for _, line in decode.numbered_lines(text):
        if not (cells := _cells(line)):
            continue
        rows.append(cells)
        if len(cells) < 2 or len(cells) != len(rows[0]) or not _HOST_CELL.fullmatch(cells[0]):
            return []
    titles = ["NODELIST", *(_title_of(column) for column in list(zip(*rows, strict=True))[1:])]
    named = [title for title in titles if title != _UNTITLED]
    is_told = "" not in titles and len(set(named)) == len(named)
    return titles if is_told and any(title.startswith("GRES") for title in titles) else []


_UNTITLED = "-"
"""The title of a column of numbers that is not read."""


def _title_of(column: Sequence[str]) -> str:
    """Return the title of a column by its cells; "" if they do not state it."""
    if any(map(_GPU_CELL.fullmatch, column)):
        known = all(_GPU_CELL.fullmatch(cell) or cell in _NONE for cell in column)
        return ("GRES_USED" if any("(IDX:" in cell for cell in column) else "GRES") if known else ""
    if all(map(node_states.is_state, column)):
        return "STATE"
    return _UNTITLED if all(map(_PLAIN_CELL.fullmatch, column)) else ""


def _rows(text: str, titles: Sequence[str] = ()) -> Iterator[_SlurmNode]:
    """Yield the nodes of a table of sinfo; a node in several partitions has several rows.

    titles: those of a table without them.
    """
    width = 0
    for number, line in decode.numbered_lines(text):
        if _TABLE.match(line):
            titles, width = _cells(line), _width(line)
            continue
        cells = _cells(line)
        if not cells or not titles:
            continue
        if len(cells) != len(titles):
            raise TopologyError(f"line {number}: {len(cells)} cells below {len(titles)} titles; {_WIDER}")
        row = dict(zip(titles, cells, strict=True))
        for title, cell in row.items():
            if title.startswith("GRES") and len(cell) == width and not _WHOLE.search(cell):
                raise TopologyError(f"line {number}: {title} = {_checks.shown(cell)} is cut off; {_WIDER}")
        listed = next(row[title] for title in _NAMED if title in row)
        for name in host_list.expanded(listed, f"line {number}: NODELIST"):
            where = f"line {number}: node {_checks.shown(name)}: "
            yield _SlurmNode(name, where, row.get("GRES"), row.get("GRES_USED"), row.get("STATE"))


def _width(titles: str) -> int:
    """Return the width of the columns of `sinfo -O`, which are equally wide unless the user chose it; 0 if unknown."""
    starts = [match.start() for match in re.finditer(r"\S+", titles)]
    widths = {end - start for start, end in pairwise(starts)}
    return widths.pop() if len(widths) == 1 else 0


def _cells(line: str) -> list[str]:
    """Return the cells of a row, which blanks or bars separate."""
    return line.replace("|", " ").split()


def _records(text: str) -> Iterator[_SlurmNode]:
    """Yield the nodes of records that begin with NodeName=, on one line or several.

    NodeName=DEFAULT of slurm.conf is no node: it gives values that the following ones have unless they say otherwise.
    """
    starts = [match.start() for match in _RECORD.finditer(text)]
    defaults: dict[str, str] = {}
    number, counted = 1, 0
    for start, end in pairwise([*starts, len(text)]):
        number, counted = number + text.count("\n", counted, start), start
        record = _END.split(text[start:end], maxsplit=1)[0].strip()
        names, rest = [*record.removeprefix("NodeName=").split(maxsplit=1), ""][:2]
        rest = _FREE_TEXT.sub("", rest)
        values = defaults | {key: value.strip('"') for key, value in _VALUE.findall(rest)}
        if names.upper() == "DEFAULT":
            defaults = values
            continue
        for name in host_list.expanded(names, f"line {number}: NodeName"):
            where = f"line {number}: node {_checks.shown(name)}: "
            state = _state_in(values, rest)
            used, allocated = values.get("GresUsed"), values.get("AllocTRES")
            sockets, drained = values.get("Sockets", ""), values.get("GresDrain", "")
            topology = values.get("Topology", "")
            yield _SlurmNode(
                name, where, values.get("Gres", ""), used, state, allocated, sockets, drained, topology
            )


def _state_in(values: Mapping[str, str], record: str) -> str | None:
    """Return the state that the values of a record tell; None if it is of a node as it runs now, and has none."""
    state = values.get("State")
    if _RUNS_NOW.search(record) is None and (state or "UNKNOWN").upper() == "UNKNOWN":
        return ""  # the default of slurm.conf: the node has the state it had before
    return state


def _document(text: str) -> Fields:
    """Return the object of JSON in `text`; an empty one if the text is not JSON."""
    if not text.lstrip().startswith("{"):
        return Fields()
    return yaml_tree.fields(next(yaml_tree.documents(text, "Slurm's nodes")), "Slurm's nodes")


def _json_nodes(document: Fields) -> Iterator[_SlurmNode]:
    """Yield the nodes that `scontrol`, `sinfo` or slurmrestd list."""
    for one in yaml_tree.items(document, "nodes"):
        node = yaml_tree.fields(one, "a node")
        name = _checks.text(yaml_tree.scalar(node, "name"), "nodes: name", TopologyError)
        state = "+".join((*_words(node.get("state")), *_words(node.get("state_flags")))) or None
        used, allocated = yaml_tree.scalar(node, "gres_used"), yaml_tree.scalar(node, "tres_used")
        where = f"node {_checks.shown(name)}: "
        gres_of_node, sockets, drained = (
            yaml_tree.scalar(node, key) or "" for key in ("gres", "sockets", "gres_drained")
        )
        yield _SlurmNode(name, where, gres_of_node, used, state, allocated, sockets, drained)
    for one in yaml_tree.items(document, "sinfo"):
        group = yaml_tree.fields(one, "an entry of sinfo")
        held = yaml_tree.fields(group.get("gres"), "gres")
        state = "+".join(_words(yaml_tree.fields(group.get("node"), "node").get("state"))) or None
        for listed in _words(yaml_tree.fields(group.get("nodes"), "nodes").get("nodes")):
            for name in host_list.expanded(listed, "nodes"):
                total, used = yaml_tree.scalar(held, "total"), yaml_tree.scalar(held, "used")
                yield _SlurmNode(name, f"node {_checks.shown(name)}: ", total or "", used, state)


def _words(value: object) -> list[str]:
    """Return the texts of a list, or the one that a value is."""
    found = value if isinstance(value, yaml_tree.Items) else [value]
    return [word for word in found if isinstance(word, str)]
