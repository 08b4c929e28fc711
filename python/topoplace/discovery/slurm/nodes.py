"""Reader of Slurm's nodes as `sinfo`, `scontrol show node` and slurm.conf list them, in text or JSON.

Gres counts a node's GPUs and names their type. GresUsed says which of them jobs hold, by their places on the node, as
in `gpu:a100:2(IDX:0-1)`; `squeue --json` says it by job, without the number of GPUs. No text tells how the GPUs of a
node are connected: their links are of kind UNKNOWN, unless the caller gives a template. The GPUs of nodes on which
Slurm starts nothing are unhealthy.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from topoplace import _checks
from topoplace.discovery.in_use import InUse
from topoplace.discovery.networks import switch_tree
from topoplace.discovery.slurm import gres
from topoplace.discovery.text import decode, host_list, yaml_tree
from topoplace.discovery.text.yaml_tree import Fields
from topoplace.errors import TopologyError
from topoplace.topology.assemble import joined, with_host_paths
from topoplace.topology.devices import Gpu
from topoplace.topology.links.link import Link, LinkKind
from topoplace.topology.links.link_catalogue import PCIE3_X16_GB_PER_S
from topoplace.topology.topology import Topology

_NAMED = ("NODELIST", "NODE", "HOSTNAMES", "HOSTNAME", "NODE_LIST", "NODEHOST")
_TABLE = re.compile(
    rf"^[ \t]*(?=.*\bGRES(?:_USED)?\b)(?=.*\b(?:{'|'.join(_NAMED)})\b)[A-Z_:/()%\[\]| \t]+\r?$", re.MULTILINE
)
_RECORD = re.compile(r"^[ \t]*NodeName=(?=\S+[ \t\r\n])", re.MULTILINE)
_END = re.compile(r"\n(?=\r?\n)|^[ \t]*(?:#|(?:PartitionName|DownNodes|NodeSet)=)", re.MULTILINE)
"""Where a record ends at the latest."""
_SHOWN = re.compile(r"\b(?:Gres(?:Used|Drain)?|CfgTRES|CPUAlloc|CPUTot|CoresPerSocket|RealMemory|Sockets)=")
_RUNS_NOW = re.compile(r"\bCPUAlloc=|\bAllocTRES=|\bNodeAddr=")
_OF_DEVICES = re.compile(r"\bName=|\bAutoDetect=", re.IGNORECASE)
_JSON = re.compile(r'\A\s*\{.*?"(?:nodes|jobs|sinfo)"\s*:\s*\[', re.DOTALL)
_JSON_OF_SLURM = re.compile(r'"(?:gres_used|gres_detail|slurm)"', re.IGNORECASE)
_KEYS = ("Gres", "GresUsed", "State", "AllocTRES", "Sockets")
_VALUE = re.compile(rf"(?:^|\s)({'|'.join(_KEYS)})=(\S*)")
_ITEM = re.compile(r"((?:[^,()]|\([^()]*\))+)")
_GRES = re.compile(r"gpu(?::([A-Za-z0-9_][\w.+-]*?))??(?::no_consume)?(?:[:=]([0-9]{1,9}))?(?:\(([^()]*)\))?")
_INDEX = re.compile(r"(?:IDX:)?([0-9]{1,6})(?:-([0-9]{1,6}))?")
_ONE_SOCKET = re.compile(r"S:([0-9]{1,4})")
_DEVICE_TYPE = re.compile(r"g[0-9]{1,4}")
"""A type for each device, as topoplace writes them: no model."""
_ALLOCATED = re.compile(r"gres/gpu=([0-9]{1,9})")
_ALLOCATED_SHARES = re.compile(r"gres/(?:shard|mps)(?::[^=,]*)?=0*[1-9]")
_SHARES = re.compile(
    r"(shard|mps)(?::([A-Za-z_][\w.+-]*?|[0-9]\w*[A-Za-z_.-][\w.+-]*?))?[:=]([0-9]{1,9})(?:\(([^()]*)\))?"
)
_PART = re.compile(r"([0-9]{1,9})/[0-9]{1,9}")
"""How much of a GPU is in use, of how much."""
_NONE = frozenset(("", "(null)", "N/A", "n/a"))
_CLOSED = re.compile(
    r"(?:down|drain|drng|fail|maint|fut|inval|unk|block|not?_resp|pow|reboot|boot)\w*", re.IGNORECASE
)
_CLOSED_SIGNS = tuple("*~#%!")
"""What `sinfo` writes after the state of a node that does not respond, or is powered down, up or about to be."""
_RUNS = frozenset(("RUNNING", "COMPLETING", "SUSPENDED", "STOPPED", "CONFIGURING", "SIGNALING", "STAGE_OUT"))
_WHICH = "`scontrol show node -d` tells which"


@dataclass(frozen=True, slots=True)
class _SlurmNode:
    """What a text says about one node, in Slurm's words; None for what it does not say."""

    name: str
    where: str
    gres: str | None
    used: str | None = None
    state: str = ""
    allocated: str | None = None
    """AllocTRES."""
    sockets: str = ""
    """The number of its sockets."""

    @property
    def closed(self) -> str:
        """Return the first word of its state for which Slurm starts nothing on it; "" if it does."""
        words = re.split(r"[+,\s]+", self.state)
        return next((word for word in words if _CLOSED.match(word) or word.endswith(_CLOSED_SIGNS)), "")


def recognised(text: str) -> bool:
    """Return True if `text` looks like Slurm's nodes or, in JSON, its jobs."""
    if _JSON.match(text):
        return _JSON_OF_SLURM.search(text) is not None
    if _TABLE.search(text):
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
            "the text tells which GPUs jobs hold, not how many there are; use it as --busy-from FILE, or give "
            "`scontrol show node`"
        )
    built: dict[tuple[str | None, bool], Topology | None] = {}
    machines: dict[str, Topology] = {}
    for node in nodes:
        key = node.gres, bool(node.closed)
        if key not in built:
            built[key] = _machine(node, template, gpu_model, pcie_gb_per_s)
        if (machine := built[key]) is not None:
            machines[node.name] = machine
    return _cluster(nodes, machines, name, template is None)


def in_use(data: str | bytes) -> tuple[InUse, ...]:
    """Return the GPUs that jobs hold, by node and place on the node.

    Raises TopologyError naming the node if the text tells only how many they are.
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
    total = sum(count for _, count, _ in kinds)
    if not total:
        return None
    if total > gres.MAX_GPUS:
        raise TopologyError(f"{node.where}{total} GPUs are more than {gres.MAX_GPUS} on one node")
    if template is not None:
        _checks.instance(template, Topology, "template", TopologyError)
        if template.num_gpus != total:
            raise TopologyError(f"{node.where}{total} GPUs, but its template has {template.num_gpus}")
        return template.with_unhealthy(range(total)) if node.closed else template
    each = [(kind, socket) for kind, count, socket in kinds for _ in range(count)]
    complete = all(socket is not None for _, socket in each)
    gpus = [
        gres.of_type(
            Gpu(i, f"GPU{i}", gpu_model, socket=socket if complete else None, healthy=not node.closed),
            kind,
            node.where,
        )
        for i, (kind, socket) in enumerate(each)
    ]
    unknown = Link(LinkKind.UNKNOWN, 1, pcie_gb_per_s)
    links = [(u, v, unknown) for v in range(total) for u in range(v)]
    return with_host_paths(Topology(gpus, links, default=pcie_gb_per_s, name=gpus[0].model or "GPU"))


def _kinds(node: _SlurmNode) -> Iterator[tuple[str | None, int, int | None]]:
    """Yield type, number and socket of equal GPUs of a node; devices of a type each have no model.

    The socket is None unless Gres names a single one for them.
    """
    for kind, count, said in _gpus_in(node.gres or "", f"{node.where}Gres"):
        socket = _ONE_SOCKET.fullmatch(said or "")
        model = None if kind is None or _DEVICE_TYPE.fullmatch(kind) else kind
        yield model, count, int(socket[1]) if socket else None


def _cluster(
    nodes: Sequence[_SlurmNode], machines: Mapping[str, Topology], name: str, links_unknown: bool
) -> Topology:
    without = [node.name for node in nodes if node.name not in machines]
    if not machines:
        raise TopologyError(f"no node has a GPU: Gres of {switch_tree.some(without)} has none")
    closed = [f"{node.name} ({node.closed})" for node in nodes if node.name in machines and node.closed]
    notes = ["Slurm does not tell how the GPUs of a node are connected."] if links_unknown else []
    if closed:
        notes.append(
            f"Nodes on which Slurm starts nothing, whose GPUs are unhealthy: {switch_tree.some(closed)}."
        )
    if without:
        notes.append(f"Without GPUs, and left out: {switch_tree.some(without)}.")
    if any(node.used not in (None, *_NONE) for node in nodes):
        notes.append(
            "The GPUs that jobs hold are free here; --busy-from reads which they are from the same text."
        )
    notes += _left_out([node for node in nodes if node.name in machines])
    return joined(machines, (), name, notes)


def _left_out(nodes: Sequence[_SlurmNode]) -> Iterator[str]:
    """Yield notes on what the text says of nodes with GPUs and a topology has no place for."""
    held = [f"{node.name} ({count})" for node in nodes if node.used is None and (count := _allocated(node))]
    if held:
        yield f"GPUs that jobs hold are free here: {switch_tree.some(held)}; {_WHICH}."
    if sockets := [node.name for node in nodes if _is_split(node)]:
        yield f"Nodes with several sockets, and which GPU is near which is not given: {switch_tree.some(sockets)}."
    if others := sorted({kind for node in nodes for kind in _other_kinds(node)}):
        yield f"Other entries of Gres, which are left out: {', '.join(others)}."
    if reserved := [node.name for node in nodes if "RESERVED" in node.state.upper()]:
        yield f"Nodes in a reservation, which only its jobs get: {switch_tree.some(reserved)}."


def _other_kinds(node: _SlurmNode) -> Iterator[str]:
    """Yield the kinds of Gres of a node that are no GPUs."""
    if node.gres is not None and node.gres not in _NONE:
        kinds = (item.partition(":")[0] for item in _ITEM.findall(node.gres))
        yield from (kind for kind in kinds if not kind.startswith("gpu"))


def _is_split(node: _SlurmNode) -> bool:
    """Return True if a node has several sockets, and a GPU whose socket is not given."""
    several = node.sockets not in ("", "0", "1") or "(S:" in (node.gres or "")
    return several and any(socket is None for _, _, socket in _kinds(node))


def _allocated(node: _SlurmNode) -> int:
    """Return the number of GPUs that AllocTRES counts."""
    found = _ALLOCATED.search(node.allocated or "")
    return int(found[1]) if found else 0


# ---- GPUs in use -----------------------------------------------------------------------------------------------


def _held(node: _SlurmNode) -> Iterator[InUse]:
    places = _used(node, node.used) if node.used is not None else _all_or_none(node)
    return (InUse(node.name, place, by_place=True) for place in places)


def _used(node: _SlurmNode, used: str) -> Iterator[int]:
    """Yield the places of the GPUs that GresUsed lists."""
    for _, count, indices in _gpus_in(used, f"{node.where}GresUsed"):
        places = list(_places(indices or ""))
        if count and len(places) != count:
            raise TopologyError(f"{node.where}{count} GPUs are in use, but not which they are; {_WHICH}")
        yield from places
    yield from _shared(node, used)


def _all_or_none(node: _SlurmNode) -> range:
    """Return the places of all GPUs, or of none, if AllocTRES counts that many."""
    total = sum(count for _, count, _ in _kinds(node))
    if total and node.allocated is None:
        raise TopologyError(f"{node.where}the text does not tell which GPUs are in use; {_WHICH}")
    used = _allocated(node)
    if 0 < used < total:
        raise TopologyError(f"{node.where}{used} of {total} GPUs are in use; {_WHICH}")
    if used < total and _ALLOCATED_SHARES.search(node.allocated or ""):
        raise TopologyError(f"{node.where}shares of GPUs are in use, but not of which; {_WHICH}")
    return range(used)


def _shared(node: _SlurmNode, used: str) -> Iterator[int]:
    """Yield the places of GPUs of which jobs hold shards or a part of MPS: no job can have the whole of them."""
    for item in _ITEM.findall(used):
        match = _SHARES.fullmatch(item.strip())
        if match is None or not int(match[3]):
            continue
        parts = _PART.findall(match[4] or "")
        places = _places_of_type(node, match[2])
        if len(parts) != len(places):
            every = list(range(sum(count for _, count, _ in _kinds(node))))
            places = every if len(every) in (0, len(parts)) else []
        if not parts or (node.gres and len(parts) != len(places)):
            raise TopologyError(f"{node.where}{match[1]} of GPUs is in use, but not of which; {_WHICH}")
        yield from (
            place for place, part in zip(places or range(len(parts)), parts, strict=True) if int(part)
        )


def _places_of_type(node: _SlurmNode, kind: str | None) -> list[int]:
    """Return the places of the GPUs of a type on a node; of all GPUs if it is None."""
    kinds = [one for one, count, _ in _kinds(node) for _ in range(count)]
    return [place for place, one in enumerate(kinds) if kind in (None, one)]


def _of_jobs(document: Fields) -> Iterator[InUse]:
    for job in yaml_tree.items(document, "jobs"):
        fields = yaml_tree.fields(job, "a job")
        where = f"job {_checks.shown(yaml_tree.scalar(fields, 'job_id'))}: "
        if _RUNS.isdisjoint(_words(fields.get("job_state"))):
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
            raise TopologyError(
                f"{where} = {_checks.shown(item)} is not such as gpu:a100:4; sinfo cuts columns: use -O gres:200"
            )
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
    else:
        found = _records(text)
    seen: dict[str, _SlurmNode] = {}
    for node in found:
        first = seen.setdefault(node.name, node)
        if (first.gres, first.used) != (node.gres, node.used):
            raise TopologyError(f"{node.where}appears twice, with other GPUs")
    yield from seen.values()


def _rows(text: str) -> Iterator[_SlurmNode]:
    """Yield the nodes of a table of sinfo; a node in several partitions has several rows."""
    titles: list[str] = []
    for number, line in decode.numbered_lines(text):
        if _TABLE.match(line):
            titles = _cells(line)
            continue
        cells = _cells(line)
        if not cells or not titles:
            continue
        if len(cells) != len(titles):
            raise TopologyError(f"line {number}: {len(cells)} cells below {len(titles)} titles")
        row = dict(zip(titles, cells, strict=True))
        listed = next(row[title] for title in _NAMED if title in row)
        for name in host_list.expanded(listed, f"line {number}: NODELIST"):
            where = f"line {number}: node {_checks.shown(name)}: "
            yield _SlurmNode(name, where, row.get("GRES"), row.get("GRES_USED"), row.get("STATE", ""))


def _cells(line: str) -> list[str]:
    """Return the cells of a row, which blanks or bars separate."""
    return line.replace("|", " ").split()


def _records(text: str) -> Iterator[_SlurmNode]:
    """Yield the nodes of records that begin with NodeName=, on one line or several.

    NodeName=DEFAULT of slurm.conf is no node: it gives values that the following ones have unless they say otherwise.
    """
    starts = [match.start() for match in _RECORD.finditer(text)]
    defaults: dict[str, str] = {}
    for start, end in pairwise([*starts, len(text)]):
        number = text.count("\n", 0, start) + 1
        record = _END.split(text[start:end], maxsplit=1)[0].strip()
        names, rest = [*record.removeprefix("NodeName=").split(maxsplit=1), ""][:2]
        values = defaults | {key: value.strip('"') for key, value in _VALUE.findall(rest)}
        if names.upper() == "DEFAULT":
            defaults = values
            continue
        for name in host_list.expanded(names, f"line {number}: NodeName"):
            where = f"line {number}: node {_checks.shown(name)}: "
            state = values.get("State", "")
            if _RUNS_NOW.search(rest) is None and state.upper() == "UNKNOWN":
                state = ""  # the default of slurm.conf: the node has the state it had before
            used, allocated = values.get("GresUsed"), values.get("AllocTRES")
            sockets = values.get("Sockets", "")
            yield _SlurmNode(name, where, values.get("Gres", ""), used, state, allocated, sockets)


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
        state = "+".join((*_words(node.get("state")), *_words(node.get("state_flags"))))
        used, allocated = yaml_tree.scalar(node, "gres_used"), yaml_tree.scalar(node, "tres_used")
        where = f"node {_checks.shown(name)}: "
        sockets = yaml_tree.scalar(node, "sockets") or ""
        yield _SlurmNode(name, where, yaml_tree.scalar(node, "gres") or "", used, state, allocated, sockets)
    for one in yaml_tree.items(document, "sinfo"):
        group = yaml_tree.fields(one, "an entry of sinfo")
        held = yaml_tree.fields(group.get("gres"), "gres")
        state = "+".join(_words(yaml_tree.fields(group.get("node"), "node").get("state")))
        for listed in _words(yaml_tree.fields(group.get("nodes"), "nodes").get("nodes")):
            for name in host_list.expanded(listed, "nodes"):
                total, used = yaml_tree.scalar(held, "total"), yaml_tree.scalar(held, "used")
                yield _SlurmNode(name, f"node {_checks.shown(name)}: ", total or "", used, state)


def _words(value: object) -> list[str]:
    """Return the texts of a list, or the one that a value is."""
    found = value if isinstance(value, yaml_tree.Items) else [value]
    return [word for word in found if isinstance(word, str)]
