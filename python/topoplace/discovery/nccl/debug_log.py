"""Reader of the debug log of NCCL and RCCL (`NCCL_DEBUG=INFO`): the graph of the system, and NVLink cliques.

With NCCL_DEBUG_SUBSYS=INIT,GRAPH each rank prints the graph of the machines that its job runs on, as NCCL sees
them: see `system_graph`. On machines of one multi-node NVLink domain (MNNVL) each rank prints the fabric and the clique
of its GPU. The log of several hosts becomes a cluster. Rings and trees describe the job: `JobGraph.from_nccl_log`
reads them.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from topoplace import _checks
from topoplace.discovery.nccl import system_graph
from topoplace.discovery.nccl.system_graph import SystemGraph, bus_id
from topoplace.discovery.text import decode
from topoplace.discovery.text.cpu_list import list_of_mask
from topoplace.errors import TopologyError
from topoplace.topology.devices import Gpu
from topoplace.topology.fabric import Fabric, Level, numbered
from topoplace.topology.links.link_kinds import PCIE3_X16_GB_PER_S, SPEEDS, Link, LinkKind, nvlink_of
from topoplace.topology.topology import Topology

_BEGIN = re.compile(r"=== System : max(?:Bw|Width) [0-9.]+")
_END = re.compile(r"={20,}")
_RECOGNISED = re.compile(r"NCCL INFO (?:=== System : |MNNVL busId )")
_LINE = re.compile(r"(?:([^\s:\[\]<>|]+):(\d+):\d+ \[(\d+)\] )?(?:\S+:\d+ )?NCCL INFO (.*)")
_FABRIC = re.compile(
    r"MNNVL busId 0x([0-9a-fA-F]{1,16}) fabric UUID (\S{1,80}) cliqueId 0x([0-9a-fA-F]{1,8}) state (\d+)"
)
_CLIQUE = re.compile(r"MNNVL \d+ cliqueId (?:0x)?([0-9a-fA-F]{1,8}) cliqueSize (\d{1,6})")
_NUMBERED = re.compile(r"\bcudaDev \d{1,4} nvmlDev (\d{1,4}) busId ([0-9a-fA-F]{1,16})\b")
_ADAPTERS = re.compile(r"\bNET/IB : Using (\[0\].*)")
_ADAPTER = re.compile(r"\[(\d{1,4})\]([\w.-]{1,64}):\d+/")
_AFFINITY = re.compile(r"Setting affinity for GPU \d{1,4} to ([0-9a-fA-F,]{1,1024})$")
_MASK = re.compile(r"[0-9a-fA-F]{1,8}(?:,[0-9a-fA-F]{8}){0,255}")
_OF_GRAPH = re.compile(r" *\+ |[A-Z]{3}/|={20}")
_RINGS = re.compile(r"(?:Channel|Ring|Trees?) ?[\[0-9]")
_COMPLETED = "3"
_MAX_HOSTS = 4096


_Rank = tuple[str, str]
"""A process of a host, and the number of its GPU."""


@dataclass(frozen=True, slots=True)
class _Member:
    """The GPU of a rank, and the clique of its fabric."""

    bus_id: str
    number: int | None
    domain: str | None
    """Fabric UUID and clique, joined by a dot; None if the GPU has not joined its fabric."""


@dataclass(slots=True)
class _LogHost:
    """What the ranks of one host print."""

    graphs: list[list[tuple[int, str]]] = field(default_factory=list[list[tuple[int, str]]])
    """The lines of each graph."""
    open_: dict[_Rank, int] = field(default_factory=dict[_Rank, int])
    """The graph whose end is still to come, of each rank that has one."""
    members: dict[str, _Member] = field(default_factory=dict[str, _Member])
    """By bus id."""
    numbers: dict[str, int] = field(default_factory=dict[str, int])
    """The numbers of GPUs, by bus id."""
    adapters: dict[str, str] = field(default_factory=dict[str, str])
    """The names of adapters, by number."""
    cpus: dict[_Rank, str] = field(default_factory=dict[_Rank, str])
    """The CPUs near the GPU of a rank."""
    gpus: dict[_Rank, str] = field(default_factory=dict[_Rank, str])
    """The bus id of the GPU of a rank."""

    def near(self) -> Mapping[str, str]:
        """Return the CPUs near each GPU, by bus id."""
        return {self.gpus[rank]: cpus for rank, cpus in self.cpus.items() if rank in self.gpus}


@dataclass(slots=True)
class _Log:
    hosts: dict[str, _LogHost] = field(default_factory=dict[str, _LogHost])
    sizes: dict[str, int] = field(default_factory=dict[str, int])
    """The number of ranks of each clique."""
    rings: int = 0


def recognised(text: str) -> bool:
    """Return True if `text` has the graph of a system, or the fabric of a GPU, as NCCL logs them."""
    return _RECOGNISED.search(text) is not None


def parse(
    data: str | bytes,
    gpu_model: str | None = None,
    *,
    name: str = "nccl log",
    machine: str = "machine0",
) -> Topology:
    """Read the machines of the ranks whose log is in `data`.

    gpu_model: the model of every GPU, for the speed of a clique's NVLinks, which a log without a graph lacks. machine:
    the name of a machine whose lines lack the name of their host. Raise TopologyError, naming the line, if no line
    states a GPU.
    """
    gpu_model = None if gpu_model is None else _checks.text(gpu_model, "gpu_model", TopologyError)
    log = _read(decode.decoded(data, "a log of NCCL"))
    graphs = {label: graph for label, host in log.hosts.items() if (graph := _graph(host)) is not None}
    shared = next((graph for graph in graphs.values() if len(graph.hosts) > 1), None)
    notes = list(_notes(log))
    if shared is not None:
        return _domain_of(shared, gpu_model, name, notes)
    machines = {
        label or machine: found
        for label, host in log.hosts.items()
        if (found := _machine(host, graphs.get(label), gpu_model, name, label or machine)) is not None
    }
    if not machines:
        raise TopologyError(
            "the log has the head of NCCL's graph and no GPU below it; give the lines up to '=====', from "
            "NCCL_DEBUG=INFO with NCCL_DEBUG_SUBSYS=INIT,GRAPH"
        )
    if len(machines) == 1:
        only = next(iter(machines.values()))
        return replace(only, notes=(*only.notes, *notes))
    return _cluster(log, machines, name, notes, machine)


# ---- lines -----------------------------------------------------------------------------------------------------


def _read(text: str) -> _Log:
    log = _Log()
    for number, line in decode.numbered_lines(text):
        if (found := _LINE.search(line)) is None:
            continue
        host = log.hosts.setdefault(found[1] or "", _LogHost())
        if len(log.hosts) > _MAX_HOSTS:
            raise TopologyError(f"line {number}: more than {_MAX_HOSTS} hosts")
        rank, said = (found[2] or "", found[3] or ""), found[4].rstrip()
        if not _of_graph(host, rank, number, said):
            _of_rank(log, host, rank, said)
    return log


def _of_graph(host: _LogHost, rank: _Rank, number: int, said: str) -> bool:
    """Return True if a line is of a graph that the rank prints, and keep it."""
    if _BEGIN.match(said):
        host.open_[rank] = len(host.graphs)
        host.graphs.append([])
        return True
    if rank not in host.open_ or not _OF_GRAPH.match(said):
        return False
    if _END.match(said):
        del host.open_[rank]
    else:
        host.graphs[host.open_[rank]].append((number, said))
    return True


def _of_rank(log: _Log, host: _LogHost, rank: _Rank, said: str) -> None:
    """Keep what a line outside graphs tells about the GPU of its rank, or about adapters."""
    if found := _FABRIC.match(said):
        address = host.gpus.setdefault(rank, bus_id(found[1]))
        joined = found[4] == _COMPLETED and found[2].strip("0.")
        domain = f"{found[2]}.{int(found[3], 16)}" if joined else None
        number = int(rank[1]) if rank[1] else None
        host.members.setdefault(address, _Member(address, number, domain))
    elif found := _CLIQUE.match(said):
        log.sizes[str(int(found[1], 16))] = int(found[2])
    elif found := _NUMBERED.search(said):
        address = host.gpus.setdefault(rank, bus_id(found[2]))
        host.numbers.setdefault(address, int(found[1]))
    elif found := _ADAPTERS.search(said):
        host.adapters.update(_ADAPTER.findall(found[1]))
    elif (found := _AFFINITY.match(said)) and _MASK.fullmatch(found[1]):
        cpus = list_of_mask(int(found[1].replace(",", ""), 16))
        if cpus:
            host.cpus.setdefault(rank, cpus)
    else:
        log.rings += _RINGS.match(said) is not None


def _graph(host: _LogHost) -> SystemGraph | None:
    """Return the graph of the rank that shows most GPUs, with notes on other ranks; None if none shows a GPU."""
    unended = set(host.open_.values())
    read = [(system_graph.read(lines), i in unended) for i, lines in enumerate(host.graphs)]
    found, is_open = max(
        read, key=lambda pair: (len(pair[0].bus_ids), not pair[1]), default=(SystemGraph(), False)
    )
    if not found.bus_ids:
        return None
    if is_open:
        found.notes.append("NCCL's graph has no end in the log: what follows its last line is missing.")
    others = {one for graph, _ in read for one in graph.bus_ids} - found.bus_ids
    if others:
        found.notes.append(
            f"Other ranks show GPUs that are left out: {', '.join(sorted(address for _, address in others))}."
        )
    return found


# ---- machines --------------------------------------------------------------------------------------------------


def _machine(
    host: _LogHost, graph: SystemGraph | None, gpu_model: str | None, name: str, label: str
) -> Topology | None:
    """Return the machine of a host: by its graph, else by the GPUs with a known fabric; None without a GPU."""
    if graph is None:
        return _fabric_machine(host, gpu_model, name, label) if host.members else None
    only = next(iter(graph.hosts.values()))
    found = system_graph.machine(only, _numbers(host), host.adapters, gpu_model, name, label)
    near = host.near()
    gpus = tuple(replace(gpu, cpus=near.get(gpu.bus_id or "")) for gpu in found.gpus)
    return replace(found, gpus=gpus, notes=(*found.notes, *graph.notes))


def _numbers(host: _LogHost) -> Mapping[str, int]:
    of_ranks = {member.bus_id: member.number for member in host.members.values() if member.number is not None}
    return {**of_ranks, **host.numbers}


def _fabric_machine(host: _LogHost, gpu_model: str | None, name: str, label: str) -> Topology:
    """Return the GPUs of a host that logs no graph; those of one clique meet in its switches."""
    members = sorted(host.members.values(), key=lambda member: member.bus_id)
    numbers = _numbers(host)
    named = [numbers.get(member.bus_id) for member in members]
    if None in named or len(set(named)) < len(named):
        named = list(range(len(members)))
    near = host.near()
    gpus = tuple(
        Gpu(i, f"GPU{number}", gpu_model, label, bus_id=member.bus_id, cpus=near.get(member.bus_id))
        for i, (member, number) in enumerate(zip(members, named, strict=True))
    )
    known = nvlink_of(gpu_model or "")
    speed = known or SPEEDS["nvlink4"]
    switched = Link(LinkKind.NVSWITCH, speed.most_links, speed.most_links * speed.gb_per_s)
    unknown = Link(LinkKind.UNKNOWN, 1, PCIE3_X16_GB_PER_S)
    links = tuple(
        (u, v, switched if one.domain is not None and one.domain == members[u].domain else unknown)
        for v, one in enumerate(members)
        for u in range(v)
    )
    assumed = () if known or switched not in (link for _, _, link in links) else (LinkKind.NVSWITCH,)
    notes = [
        "The log has no graph of the system (NCCL_DEBUG_SUBSYS=INIT,GRAPH): only NVLink cliques are given."
    ]
    if assumed:
        notes.append(f"The GPU model is not given: {speed.gb_per_s:g} GB/s per NVLink is assumed.")
    return Topology(gpus, links, name=name, notes=tuple(notes), assumed=assumed)


def _domain_of(graph: SystemGraph, gpu_model: str | None, name: str, notes: list[str]) -> Topology:
    """Return the hosts of one graph, which NCCL shows together if they are of one NVLink domain."""
    labels = numbered("host", len(graph.hosts))
    hosts = {
        label: system_graph.machine(host, {}, {}, gpu_model, name, label)
        for label, host in zip(labels, graph.hosts.values(), strict=True)
        if host.gpus
    }
    note = "Hosts in one graph of NCCL are taken to be in one NVLink domain; their names are not given."
    shared = Level("nvlink_domain", (name,) * len(hosts), kind=LinkKind.NVSWITCH)
    fabric = Fabric(tuple(hosts), (shared,), notes=(*notes, *graph.notes, note))
    return Topology.cluster(hosts, fabric=fabric, name=name)


def _cluster(
    log: _Log, machines: Mapping[str, Topology], name: str, notes: list[str], unnamed: str
) -> Topology:
    """Join the machines of a log; those whose GPUs are of one clique share an NVLink domain."""
    domains: list[str | None] = []
    for label in machines:
        members = log.hosts["" if label == unnamed and "" in log.hosts else label].members.values()
        cliques = {member.domain for member in members}
        domains.append(cliques.pop() if len(cliques) == 1 else None)
    levels = (Level("nvlink_domain", tuple(domains), kind=LinkKind.NVSWITCH),) if any(domains) else ()
    fabric = Fabric(
        tuple(machines), levels, notes=(*notes, "The log does not state the network of its hosts.")
    )
    return Topology.cluster(machines, fabric=fabric, name=name)


def _notes(log: _Log) -> Iterator[str]:
    cliques: dict[str, list[str]] = defaultdict(list)
    outside: list[str] = []
    for label, host in log.hosts.items():
        for member in host.members.values():
            where = f"{label}/{member.bus_id}" if label else member.bus_id
            cliques[member.domain].append(where) if member.domain else outside.append(where)
    for domain, members in cliques.items():
        yield f"In the NVLink domain {domain} (fabric UUID and clique): {len(members)} GPUs."
        size = log.sizes.get(domain.rpartition(".")[2])
        if size is not None and size != len(members):
            yield f"The clique {domain.rpartition('.')[2]} has {size} ranks: the others are not in the log."
    if outside:
        yield f"GPUs that have not joined an NVLink fabric: {', '.join(outside[:8])}."
    if log.rings:
        yield "The rings and trees of the log are the job's; `JobGraph.from_nccl_log` reads them."
