"""Reader of the nodes of cluster traces: CSV with a machine per row, its GPUs, their model, its CPUs and memory.

Lists of Alibaba are read: `openb_node_list_*` of `cluster-trace-gpu-v2023`, `pai_machine_spec` of
`cluster-trace-gpu-v2020` (with or without a header). Lists with the columns of its trace of 2026 (`node_name`,
`gpu_model`, `gpu_capacity_num`) are read, too. Others are `cluster_machine_list` of Microsoft's Philly trace, and
topoplace's own format, `machine,num_gpus` and optionally `gpu_type,cpus,mem_mib`. No list says how the GPUs of a
machine are connected: the links are of kind UNKNOWN, unless the caller gives a template. Machines without GPUs are left
out.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple

from topoplace import _checks
from topoplace.cluster.hosts import HostResources
from topoplace.discovery.text import decode
from topoplace.errors import TopologyError
from topoplace.text_formats.csv_rows import checked_header, lines, number, rows_below
from topoplace.topology.devices import Gpu
from topoplace.topology.fabric import Fabric
from topoplace.topology.links.link_kinds import PCIE3_X16_GB_PER_S, Link, LinkKind
from topoplace.topology.topology import Topology

MAX_GPUS: Final = 256
"""Limit on the GPUs of one machine; more are refused as a mistake."""
_MIB: Final = 1 << 20
_GIB: Final = 1 << 30


class _Columns(NamedTuple):
    """The columns of a list: names, and what their values are multiplied with. "" for one that a list lacks."""

    machine: str
    gpus: str
    model: str = ""
    cpus: str = ""
    memory: str = ""
    cpus_times: float = 1.0
    memory_bytes: float = _MIB
    gpu_memory: str = ""


_LISTS: Final = (
    _Columns("sn", "gpu", "model", "cpu_milli", "memory_mib", cpus_times=0.001),
    _Columns("machine", "cap_gpu", "gpu_type", "cap_cpu", "cap_mem", memory_bytes=_GIB),
    _Columns("machineId", "number of GPUs", gpu_memory="single GPU mem"),
    _Columns("node_name", "gpu_capacity_num", "gpu_model", "cpu_num"),
    _Columns("machine", "num_gpus", "gpu_type", "cpus", "mem_mib"),
)
_NEEDED: Final = (3, 3, 2, 3, 2)
"""The number of leading columns that identify a list; further columns of the last format are optional."""
_PAI_HEADER: Final = ("machine", "gpu_type", "cap_cpu", "cap_mem", "cap_gpu")
_NUMBER: Final = r"[0-9]{1,6}(?:\.[0-9]{1,6})?"
_PAI_ROW: Final = re.compile(rf"\w{{8,64}},[\w-]{{1,40}},{_NUMBER},{_NUMBER},{_NUMBER}\s*")
_MEMORY: Final = re.compile(r"\s*([0-9]{1,6}(?:\.[0-9]{1,3})?)\s*GB\s*")


@dataclass(frozen=True)
class TraceNodes:
    """The machines of a trace that have GPUs."""

    topology: Topology
    hosts: tuple[HostResources, ...]
    """CPUs and memory of each machine, for `Cluster` and `simulate`; () if the list does not have both."""


class _TraceNode(NamedTuple):
    name: str
    num_gpus: int
    model: str | None
    gpu_memory_gb: float | None
    hosts: HostResources | None


def recognised(text: str) -> bool:
    """Return True if the first line of `text` has the columns of a list of nodes."""
    first = text.lstrip()[:1000].split("\n", 1)[0]
    return _columns_of(first.strip("\r").split(",")) is not None or _PAI_ROW.fullmatch(first) is not None


def parse(
    data: str | bytes,
    *,
    template: Topology | Mapping[str, Topology] | None = None,
    pcie_gb_per_s: float = PCIE3_X16_GB_PER_S,
    name: str = "trace nodes",
) -> Topology:
    """Read the machines in `data` that have GPUs; the arguments are those of `read_nodes`."""
    return read_nodes(data, template=template, pcie_gb_per_s=pcie_gb_per_s, name=name).topology


def read_nodes(
    data: str | bytes,
    *,
    template: Topology | Mapping[str, Topology] | None = None,
    pcie_gb_per_s: float = PCIE3_X16_GB_PER_S,
    name: str = "trace nodes",
) -> TraceNodes:
    """Read the machines in `data` that have GPUs, with their CPUs and memory. Equal machines share a template.

    template: the topology of a machine, or one for each GPU model. It must have as many GPUs as the machine; its own
    GPU models replace those of the list. pcie_gb_per_s: GB/s assumed between the GPUs of a machine without a template.
    Raises TopologyError naming the line.
    """
    pcie_gb_per_s = _checks.positive(pcie_gb_per_s, "pcie_gb_per_s", TopologyError)
    built: dict[tuple[int, str | None, float | None], Topology] = {}
    machines: dict[str, Topology] = {}
    hosts: list[HostResources | None] = []
    without: list[str] = []
    for line, node in _nodes(decode.decoded(data, "nodes")):
        if not node.num_gpus:
            without.append(node.name)
            continue
        if node.name in machines:
            raise TopologyError(f"line {line}: {_checks.shown(node.name)} is also an earlier machine")
        key = node[1:4]
        if key not in built:
            built[key] = _machine(node, pcie_gb_per_s) if template is None else _given(template, node, line)
        machines[node.name] = built[key]
        hosts.append(node.hosts)
    if not machines:
        raise TopologyError("no machine of the list has a GPU")
    notes = ["The list does not say how the GPUs of a machine are connected."] if template is None else []
    if without:
        notes.append(f"Without GPUs, and left out: {_checks.some(without)}.")
    cluster = Topology.cluster(machines, fabric=Fabric(tuple(machines), (), name, tuple(notes)), name=name)
    known = tuple(one for one in hosts if one is not None)
    return TraceNodes(cluster, known if len(known) == len(hosts) else ())


def _columns_of(header: list[str]) -> _Columns | None:
    names = {one.strip() for one in header}
    for columns, needed in zip(_LISTS, _NEEDED, strict=True):
        if names.issuperset(columns[:needed]):
            return columns
    return None


def _nodes(text: str) -> Iterator[tuple[int, _TraceNode]]:
    """Yield (line number, node) of each row; TopologyError names a row that cannot be read."""
    try:
        rows = lines(text)
        line, first = next(rows, (1, list[str]()))
        columns, header = _columns_of(first), first
        if columns is None and _PAI_ROW.fullmatch(",".join(first)):
            columns, header = _LISTS[1], list(_PAI_HEADER)
            yield line, _node(columns, line, dict(zip(header, first, strict=True)))
        if columns is None:
            raise TopologyError(f"line {line}: {_checks.shown(first)}: not the columns of a list of nodes")
        for line, cells in rows_below(checked_header(header, ()), rows):
            yield line, _node(columns, line, cells)
    except TopologyError:
        raise
    except ValueError as error:
        raise TopologyError(str(error)) from None


def _node(columns: _Columns, line: int, cells: Mapping[str, str]) -> _TraceNode:
    name = _checks.text(cells[columns.machine].strip(), f"line {line}: {columns.machine}", TopologyError)
    num_gpus = number(cells[columns.gpus], float, line, columns.gpus, high=MAX_GPUS)
    if not num_gpus.is_integer():
        raise TopologyError(f"line {line}: {columns.gpus} = {cells[columns.gpus]}: must be a whole number")
    hosts = None
    if cells.get(columns.cpus) and cells.get(columns.memory):
        cpus = number(cells[columns.cpus], float, line, columns.cpus, high=2**30) * columns.cpus_times
        memory = number(cells[columns.memory], float, line, columns.memory) * columns.memory_bytes / 1e9
        hosts = HostResources(round(cpus, 3), memory)
    memory_gb = _MEMORY.fullmatch(cells.get(columns.gpu_memory, ""))
    return _TraceNode(
        name,
        int(num_gpus),
        cells.get(columns.model, "").strip() or None,
        float(memory_gb[1]) if memory_gb else None,
        hosts,
    )


def _machine(node: _TraceNode, pcie_gb_per_s: float) -> Topology:
    gpus = [Gpu(i, f"GPU{i}", node.model, memory_gb=node.gpu_memory_gb or None) for i in range(node.num_gpus)]
    unknown = Link(LinkKind.UNKNOWN, 1, pcie_gb_per_s)
    links = [(u, v, unknown) for v in range(len(gpus)) for u in range(v)]
    return Topology(gpus, links, default=pcie_gb_per_s, name=node.model or "GPU")


def _given(template: Topology | Mapping[str, Topology], node: _TraceNode, line: int) -> Topology:
    if isinstance(template, Mapping):
        machine = template.get(node.model or "")
        if machine is None:
            raise TopologyError(
                f"line {line}: template has no topology for model {_checks.shown(node.model)}"
            )
    else:
        machine = template
    _checks.instance(machine, Topology, "template", TopologyError)
    if machine.num_gpus != node.num_gpus:
        raise TopologyError(f"line {line}: {node.num_gpus} GPUs, but its template has {machine.num_gpus}")
    return machine
