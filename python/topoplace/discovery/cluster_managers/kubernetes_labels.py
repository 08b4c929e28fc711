"""Reader of Kubernetes node labels: GPUs by GPU feature discovery, domains by any label.

The text is Node objects, or a list of them, in YAML or JSON (`kubectl get nodes -o json`). It may also be the labels of
one node as `key=value` lines. These labels are read:

- `nvidia.com/gpu.product`, `.count`, `.memory` (MiB), `.replicas`: the GPUs. Under the MIG strategy "single" they
describe slices, and `gpu.slices.gi` is their size. Under "mixed" `nvidia.com/mig-1g.5gb.count` and similar labels
describe slices, and `status.capacity` counts whole GPUs;
- `nvidia.com/gpu.clique`: ClusterUUID and CliqueId of the NVLink domain, joined by a dot. Only both together identify a
domain, because every cluster numbers its cliques from the start;
- labels that the caller names as levels, such as the node labels of a Kueue Topology or of KAI.

A node without a level's label is in no domain of that level. Labels describe no links inside a machine: all are of kind
UNKNOWN unless the caller gives a template.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType

from topoplace import _checks
from topoplace.discovery.networks import switch_tree
from topoplace.discovery.nvidia.mig import slices_of
from topoplace.discovery.text import decode, yaml_tree
from topoplace.discovery.text.yaml_tree import Fields
from topoplace.errors import TopologyError
from topoplace.topology.devices import Gpu
from topoplace.topology.fabric import Fabric, Level
from topoplace.topology.links.link import Link, LinkKind
from topoplace.topology.links.link_catalogue import PCIE3_X16_GB_PER_S
from topoplace.topology.topology import Topology

NVLINK_DOMAIN = "nvlink_domain"
"""The name of the level of NVLink cliques."""
MAX_GPUS = 256
"""Limit on GPUs and slices of one node; more are refused as a mistake."""

_NOTHING: Mapping[str, str] = MappingProxyType({})
_GPU = "nvidia.com/gpu"
_CLIQUE = "nvidia.com/gpu.clique"
_STRATEGY = "nvidia.com/mig.strategy"
_MIG_COUNT = re.compile(r"nvidia\.com/mig-(([1-8])g\.[0-9]+gb(?:\.me)?(?:\+[a-z.]+)?)\.count")
_PROFILE = re.compile(r"-MIG-[1-8]g\.[0-9]+gb\b.*|-SHARED$")
_LABEL = re.compile(r"\s*([A-Za-z0-9][A-Za-z0-9_./-]*)=(.*)")
_REGEX = re.compile(r"\\[./]|=\[|=\.[*+]|=\(")
_ELLIPSIS = re.compile(r"^[ \t]+\.\.\.[ \t]*\r?$", re.MULTILINE)
_RECOGNISED = re.compile(
    r"(?:^[ \t]*(?:-[ \t]+)?|[{,][ \t]*)\"?"
    r"(?:kind\"?:[ \t]*\"?Node(?:List)?\"?[ \t\r]*(?:[,}]|$)|nvidia\\?\.com\\?/(?:gpu|gfd|mig|cuda))",
    re.MULTILINE,
)


def recognised(text: str) -> bool:
    """Return True if `text` looks like Kubernetes nodes, or the labels of one."""
    return _RECOGNISED.search(text) is not None


def parse(
    data: str | bytes,
    *,
    levels: Mapping[str, str] | None = None,
    template: Topology | Mapping[str, Topology] | None = None,
    whole_gpus: int | None = None,
    nvlink_gb_per_s: float | None = None,
    pcie_gb_per_s: float = PCIE3_X16_GB_PER_S,
    name: str = "kubernetes",
) -> Topology:
    """Read the nodes in `data` that have GPUs, as machines of a topology.

    levels: for each level's name, the node label that gives the domain, such as {"rack": "topology.example.com/rack"};
    innermost first. Labels of outer levels are part of a domain's name. NVLink domains are inside all these levels.
    template: the topology of a node, or one for each `nvidia.com/gpu.product`; it must have as many GPUs as the node.
    whole_gpus: GPUs without slices on each node of the MIG strategy "mixed"; by default the node's `nvidia.com/gpu`
    capacity.
    nvlink_gb_per_s: GB/s of all NVLinks of a GPU into its NVLink domain; by default that of the GPU's model.
    pcie_gb_per_s: GB/s assumed inside a node without a template.
    Raises TopologyError naming the line or the node.
    """
    pcie_gb_per_s = _checks.positive(pcie_gb_per_s, "pcie_gb_per_s", TopologyError)
    keys = _level_keys(levels)
    notes: list[str] = []
    templates = _Templates(template, whole_gpus, pcie_gb_per_s)
    found = [(node, templates.of(node)) for node in _nodes(decode.decoded(data, "nodes"), notes)]
    without = [node.name for node, template in found if template is None]
    machines = {node.name: template for node, template in found if template is not None}
    if not machines:
        raise TopologyError(
            f"no node has a GPU: {switch_tree.some(without)}" if without else "there is no node"
        )
    notes += templates.notes()
    if without:
        notes.append(f"Without GPUs, and left out: {switch_tree.some(without)}.")
    kept = [node for node, template in found if template is not None]
    levels_found = (
        *_clique_level(kept, nvlink_gb_per_s, notes),
        *reversed(list(_label_levels(kept, keys, notes))),
    )
    if len(kept) > 1 or levels_found:
        fabric = Fabric(tuple(machines), levels_found, name, tuple(notes))
        return Topology.cluster(machines, fabric=fabric, name=name)
    ((only, template),) = machines.items()
    gpus = tuple(replace(gpu, machine=only) for gpu in template.gpus)
    return replace(template, gpus=gpus, name=name, notes=tuple(dict.fromkeys((*template.notes, *notes))))


# ---- nodes and labels ------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Node:
    name: str
    where: str  # the start of messages about it
    labels: Mapping[str, str]
    capacity: Mapping[str, str]
    allocatable: Mapping[str, str]

    def count(self, source: str, key: str) -> int | None:
        """Return the number under `key` in the labels, capacity or allocatable record (`source`); None if absent."""
        values: Mapping[str, str] = getattr(self, source)
        text = values.get(key)
        if not text:
            return None
        if not re.fullmatch(r"[0-9]{1,9}", text):
            raise TopologyError(f"{self.where}{source} {key} = {_checks.shown(text)} is not a whole number")
        return int(text)


def _nodes(text: str, notes: list[str]) -> Iterator[_Node]:
    if (lines := _label_lines(text)) is not None:
        yield _Node(lines.get("kubernetes.io/hostname") or "machine0", "", lines, {}, {})
        return
    text, elided = _ELLIPSIS.subn("", text)
    if elided:
        notes.append(f"{elided} lines of the text are '...': what they stand for is not known.")
    seen: set[str] = set()
    for i, one in enumerate(yaml_tree.objects(text, "nodes")):
        node = _node(one, i)
        if node is None:
            continue
        if node.name in seen:
            raise TopologyError(f"{node.where}appears twice")
        seen.add(node.name)
        yield node


def _node(one: Fields, i: int) -> _Node | None:
    kind = yaml_tree.scalar(one, "kind")
    if kind not in (None, "Node"):
        return None
    metadata = yaml_tree.fields(one.get("metadata"), "metadata")
    name = yaml_tree.scalar(metadata, "name") or f"machine{i}"
    where = f"{yaml_tree.at(one)}node {_checks.shown(name)}: "
    status = yaml_tree.fields(one.get("status"), f"{where}status")
    capacity, allocatable, labels = (
        _texts(parent.get(key), where + key)
        for parent, key in ((status, "capacity"), (status, "allocatable"), (metadata, "labels"))
    )
    if kind is None and not labels:
        raise TopologyError(f"{yaml_tree.at(one)}an object that is not a Node and has no labels")
    return _Node(name, where, labels, capacity, allocatable)


def _texts(value: object, what: str) -> Mapping[str, str]:
    found = yaml_tree.fields(value, what)
    if not found:
        return _NOTHING
    for key, text in found.items():
        if text is not None and not isinstance(text, str):
            raise TopologyError(f"{what}: {_checks.shown(key)} = {_checks.shown(text)} is not a plain value")
    return {key: text or "" for key, text in found.items()}


def _label_lines(text: str) -> dict[str, str] | None:
    """Return the labels if all lines of `text` are `key=value`; None for other text."""
    first = text.lstrip()[:1024].partition("\n")[0]
    if "=" not in first or first[0] in "{[#":
        return None
    labels: dict[str, str] = {}
    for number, line in decode.numbered_lines(text):
        if not line.strip():
            continue
        match = _LABEL.fullmatch(line)
        if _REGEX.search(line):
            raise TopologyError(
                f"line {number}: {_checks.shown(line)} is a pattern that labels are tested against, not a label"
            )
        if match is None:
            raise TopologyError(f"line {number}: {_checks.shown(line)} is not a label as key=value")
        if match[1] in labels:
            raise TopologyError(f"line {number}: label {_checks.shown(match[1])} appears twice")
        labels[match[1]] = match[2].strip()
    return labels


# ---- machines --------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Slices:
    """A number of equal devices on one node: whole GPUs, or MIG slices of one profile."""

    count: int
    model: str | None
    memory_gb: float | None
    fraction: float
    profile: str | None = None


class _Templates:
    """The topologies of the nodes read so far; equal nodes share one."""

    def __init__(
        self,
        template: Topology | Mapping[str, Topology] | None,
        whole_gpus: int | None,
        pcie_gb_per_s: float,
    ) -> None:
        if not isinstance(template, Topology) and template is not None:
            _checks.instance(template, Mapping, "template", TopologyError)
        if whole_gpus is not None:
            whole_gpus = _checks.integer(whole_gpus, "whole_gpus", TopologyError, low=0, high=MAX_GPUS)
        self._template = template
        self._whole_gpus = whole_gpus
        self._pcie_gb_per_s = pcie_gb_per_s
        self._shared: list[str] = []
        self._short: list[str] = []
        self._built: dict[tuple[_Slices, ...], Topology] = {}

    def of(self, node: _Node) -> Topology | None:
        """Return the topology of `node`, by default with links of kind UNKNOWN; None for a node without GPUs."""
        devices = tuple(found for found in _devices(node, self._whole_gpus) if found.count)
        total = sum(found.count for found in devices)
        if not total:
            return None
        if total > MAX_GPUS:
            raise TopologyError(f"{node.where}{total} GPUs are more than {MAX_GPUS} on one node")
        self._note_sharing(node)
        if self._template is not None:
            return self._given(node, total)
        if devices not in self._built:
            self._built[devices] = self._unknown(devices)
        return self._built[devices]

    def _given(self, node: _Node, total: int) -> Topology:
        machine = self._template
        if isinstance(machine, Mapping):
            product = node.labels.get(f"{_GPU}.product", "")
            if product not in machine:
                raise TopologyError(
                    f"{node.where}template has no topology for product {_checks.shown(product)}"
                )
            machine = machine[product]
        _checks.instance(machine, Topology, "template", TopologyError)
        if machine is not None and machine.num_gpus == total:
            return machine
        raise TopologyError(f"{node.where}{total} GPUs, but its template has a different number")

    def _unknown(self, devices: Sequence[_Slices]) -> Topology:
        gpus: list[Gpu] = []
        for kind in devices:
            for _ in range(kind.count):
                i = len(gpus)
                label = f"GPU{i}" if kind.profile is None else f"MIG{i}"
                gpus.append(Gpu(i, label, kind.model, memory_gb=kind.memory_gb, fraction=kind.fraction))
        link = Link(LinkKind.UNKNOWN, 1, self._pcie_gb_per_s)
        links = [(u, v, link) for v in range(len(gpus)) for u in range(v)]
        notes = ["Labels do not tell how the GPUs of a machine are connected."] * bool(links)
        if any(kind.profile is not None for kind in devices):
            notes.append("Labels do not tell which MIG slices are parts of the same GPU.")
        name = " + ".join(dict.fromkeys(kind.model or "GPU" for kind in devices))
        return Topology(gpus, links, default=self._pcie_gb_per_s, name=name, notes=tuple(notes))

    def _note_sharing(self, node: _Node) -> None:
        replicas = node.count("labels", f"{_GPU}.replicas")
        if replicas is not None and replicas > 1:
            self._shared.append(node.name)
        ready, there = node.count("allocatable", _GPU), node.count("capacity", _GPU)
        if ready is not None and there is not None and ready < there:
            self._short.append(f"{node.name} ({ready} of {there})")

    def notes(self) -> Iterator[str]:
        """Yield notes about nodes with shared GPUs, and about nodes with fewer allocatable GPUs than their capacity."""
        if self._shared:
            yield f"GPUs that several pods share are counted once: those of {switch_tree.some(self._shared)}."
        if self._short:
            yield f"Nodes that cannot give away all GPUs, which of them is not told: {switch_tree.some(self._short)}."


def _devices(node: _Node, whole_gpus: int | None) -> Iterator[_Slices]:
    """Yield the whole GPUs and MIG slices of `node`, equal devices together."""
    count = node.count("labels", f"{_GPU}.count")
    capacity = node.count("capacity", _GPU)
    product = node.labels.get(f"{_GPU}.product") or None
    memory = _gigabytes(node.count("labels", f"{_GPU}.memory"))
    strategy = node.labels.get(_STRATEGY, "")
    mixed = list(_mixed_slices(node)) if strategy != "single" else []
    if mixed:
        whole = whole_gpus if whole_gpus is not None else capacity
        if whole is None:
            raise TopologyError(
                f"{node.where}has MIG slices of the strategy 'mixed' and an unknown number of whole GPUs: "
                "give Node objects with their status, or whole_gpus="
            )
        yield _Slices(whole, _PROFILE.sub("", product or "") or None, memory, 1.0)
        yield from mixed
    elif strategy == "single" and (size := node.count("labels", f"{_GPU}.slices.gi")):
        model = _PROFILE.sub("", product) if product else None
        fraction = _fraction(size, model, node)
        yield _Slices(count or 0, model, memory, fraction, f"{size}g")
    else:
        model = _PROFILE.sub("", product) if product else None
        yield _Slices(count if count is not None else capacity or 0, model, memory, 1.0)


def _mixed_slices(node: _Node) -> Iterator[_Slices]:
    for key in node.labels:
        if match := _MIG_COUNT.fullmatch(key):
            stem = key.removesuffix(".count")
            product = _PROFILE.sub("", node.labels.get(f"{stem}.product", "")) or None
            memory = _gigabytes(node.count("labels", f"{stem}.memory"))
            count = node.count("labels", key) or 0
            yield _Slices(count, product, memory, _fraction(int(match[2]), product, node), match[1])


def _fraction(slices: int, model: str | None, node: _Node) -> float:
    """Return the share of a GPU's compute in a MIG slice of size `slices`; the size of a GPU of unknown model is 7."""
    whole = slices_of(model or "") or 7
    if slices > whole:
        raise TopologyError(f"{node.where}a MIG slice of {slices} of {whole}")
    return slices / whole


def _gigabytes(mebibytes: int | None) -> float | None:
    return mebibytes * 1.048576e-3 if mebibytes else None


# ---- levels ----------------------------------------------------------------------------------------------------


def _level_keys(levels: Mapping[str, str] | None) -> dict[str, str]:
    if levels is None:
        return {}
    _checks.instance(levels, Mapping, "levels", TopologyError)
    for name, key in levels.items():
        _checks.text(name, "levels: a level's name", TopologyError)
        _checks.text(key, f"levels[{name!r}]", TopologyError)
        if name == NVLINK_DOMAIN:
            raise TopologyError(f"levels: {NVLINK_DOMAIN} is the level of {_CLIQUE}")
    return dict(levels)


def _label_levels(nodes: Sequence[_Node], keys: Mapping[str, str], notes: list[str]) -> Iterator[Level]:
    """Yield the levels in `keys`, which maps a level's name to the node label of its domains; outermost first."""
    paths: list[tuple[str, ...]] = [()] * len(nodes)
    for level, key in reversed(list(keys.items())):
        values = [node.labels.get(key, "") for node in nodes]
        paths = [(*path, value) for path, value in zip(paths, values, strict=True)]
        missing = values.count("")
        if missing == len(nodes):
            raise TopologyError(f"levels[{level!r}]: no node with GPUs has the label {_checks.shown(key)}")
        if missing:
            notes.append(f"{missing} nodes have no label {key}: they are in no known {level}.")
        yield Level(level, tuple("/".join(path) if path[-1] else None for path in paths))


def _clique_level(nodes: Sequence[_Node], gb_per_s: float | None, notes: list[str]) -> Iterator[Level]:
    cliques = tuple(_clique(node) for node in nodes)
    if any(cliques):
        yield Level(NVLINK_DOMAIN, cliques, gb_per_s, kind=LinkKind.NVSWITCH)
    if any(node.labels.get(_CLIQUE) and clique is None for node, clique in zip(nodes, cliques, strict=True)):
        notes.append(f"A {_CLIQUE} without a ClusterUUID tells no NVLink domain: cliques of clusters repeat.")


def _clique(node: _Node) -> str | None:
    """Return the NVLink domain of `node`; None if its label is missing or has no ClusterUUID."""
    cluster, dot, clique = node.labels.get(_CLIQUE, "").rpartition(".")
    known = dot and clique and cluster.strip("0-")
    return f"{cluster}.{clique}" if known else None
