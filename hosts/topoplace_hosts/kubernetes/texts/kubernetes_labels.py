"""Reader of Kubernetes node labels: GPUs by GPU feature discovery, domains by any label.

The text is Node objects, or a list of them, in YAML or JSON (`kubectl get nodes -o json`). It may also be the labels of
one node, as lines of `key=value` or `key: value`. The tables that `kubectl` prints are read, too (see `kubectl_text`).
These
labels are read:

- `nvidia.com/gpu.product`, `.count`, `.memory` (MiB), `.replicas`: the GPUs. Under the MIG strategy "single" they
describe slices, and `gpu.slices.gi` is their size. Under "mixed" `nvidia.com/mig-1g.5gb.count` and similar labels
describe slices, and `status.capacity` counts whole GPUs;
- `nvidia.com/gpu.clique`: ClusterUUID and CliqueId of the NVLink domain, joined by a dot. Only both together identify a
domain, because every cluster numbers its cliques from the start;
- labels of AWS, GKE, OCI, AKS, CoreWeave and Topograph, and others whose name is that of a level, such as rack or
zone. A Topology of Kueue or KAI in the text names others, and so may the caller. A label that may be a level, but is
not read, is noted;
- for other vendors, the capacity under amd.com/gpu, google.com/tpu, huawei.com/Ascend910 and so on.

A node without a level's label is in no domain of that level. Labels describe no links inside a machine. Whole GPUs of a
node in an NVLink domain are taken to meet in its switches, as GPUs of two such nodes do. All other links are of kind
UNKNOWN. Both hold unless the caller gives a template.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from topoplace import _checks
from topoplace.discovery.in_use import GpuUse
from topoplace.discovery.text import decode
from topoplace.discovery.text.yaml_tree import Fields
from topoplace.errors import TopologyError
from topoplace.topology.assemble import joined
from topoplace.topology.devices import Gpu
from topoplace.topology.fabric import Fabric, Level
from topoplace.topology.links.link_kinds import PCIE3_X16_GB_PER_S, Link, LinkKind, nvlink_of
from topoplace.topology.topology import Topology
from topoplace_hosts.kubernetes.texts import level_labels, node_devices, node_objects, node_state, volcano
from topoplace_hosts.kubernetes.texts.level_labels import CLIQUE, NVLINK_DOMAIN
from topoplace_hosts.kubernetes.texts.node_devices import GPU, Slices
from topoplace_hosts.kubernetes.texts.node_record import NodeRecord

MAX_GPUS = 256
"""Limit on the GPUs and slices of one node; more are refused as a mistake."""

_TPU_SHAPE = "cloud.google.com/gke-tpu-topology"


def recognised(text: str) -> bool:
    """Return True if `text` looks like Kubernetes nodes, or the labels of one."""
    return node_objects.recognised(text)


def parse(
    data: str | bytes,
    *,
    levels: Mapping[str, str] | None = None,
    template: Topology | Mapping[str, Topology] | None = None,
    whole_gpus: int | None = None,
    nvlink_gb_per_s: float | None = None,
    pcie_gb_per_s: float = PCIE3_X16_GB_PER_S,
    name: str = "kubernetes",
) -> Topology | Fabric:
    """Read the nodes in `data` that have GPUs, as machines of a topology.

    A text without any number of GPUs, such as a table of nodes and cliques, becomes a Fabric; with a template, a
    topology.

    levels: for each level's name, the node label that gives the domain, such as {"rack": "topology.example.com/rack"};
    innermost first. Labels of outer levels are part of a domain's name. NVLink domains are inside all these levels.
    template: the topology of a node, or one for each `nvidia.com/gpu.product`; it must have as many GPUs as the node.
    whole_gpus: GPUs without slices on each node of the MIG strategy "mixed"; by default the node's `nvidia.com/gpu`
    capacity.
    nvlink_gb_per_s: GB/s of all NVLinks of a GPU into its NVLink domain; by default that of the GPU's model, which is
    also the limit.
    pcie_gb_per_s: GB/s assumed inside a node without a template.
    Raises TopologyError naming the line or the node.
    """
    pcie_gb_per_s = _checks.positive(pcie_gb_per_s, "pcie_gb_per_s", TopologyError)
    keys = _level_keys(levels)
    notes: list[str] = []
    templates = _Templates(template, whole_gpus, nvlink_gb_per_s, pcie_gb_per_s)
    topologies: list[Fields] = []
    text = decode.decoded(data, "nodes")
    nodes = list(node_objects.read(text, notes, topologies))
    tiers = _tiers_of(text, nodes, notes)
    if levels is None:
        keys = _told_levels(nodes, topologies, notes) if tiers is None else {}
        notes += _unread_levels(nodes, keys)
    notes += _slice_shapes(nodes)
    if template is None and (network := _network(nodes, tiers, nvlink_gb_per_s, keys, name, notes)):
        return network
    notes += _closed(nodes)
    machines = {node.name: machine for node in nodes if (machine := templates.of(node)) is not None}
    without = [node.name for node in nodes if node.name not in machines]
    if not machines:
        raise TopologyError(_why_none(nodes, topologies))
    notes += _held(nodes)
    notes += node_state.notes([node for node in nodes if node.name in machines])
    notes += templates.notes()
    notes += [f"Without GPUs, and left out: {_checks.some(without)}."] if without else []
    with_gpus = [node for node in nodes if node.name in machines]
    notes += _left_out(with_gpus)
    found = (*_levels(with_gpus, nvlink_gb_per_s, keys, notes), *_tiers(with_gpus, tiers))
    return joined(machines, found, name, notes)


def _tiers_of(text: str, nodes: Sequence[NodeRecord], notes: list[str]) -> Fabric | None:
    """Return the network of the HyperNodes in a text that has nodes; None if it has no HyperNode, or no node."""
    if not nodes or not volcano.recognised(text):
        return None
    tiers = volcano.parse(text)
    notes += [*tiers.notes, *_strangers(nodes, tiers)]
    return tiers


def _tiers(nodes: Sequence[NodeRecord], tiers: Fabric | None) -> Iterator[Level]:
    """Yield the levels of HyperNodes in the same text, for these nodes."""
    for level in tiers.levels if tiers is not None else ():
        domain_of = dict(zip(tiers.machines, level.domains, strict=True)) if tiers is not None else {}
        yield Level(level.name, tuple(domain_of.get(node.name) for node in nodes))


def _strangers(nodes: Sequence[NodeRecord], tiers: Fabric) -> Iterator[str]:
    """Yield notes on nodes that no HyperNode has, and on those of HyperNodes that the text does not describe."""
    described, named = {node.name for node in nodes}, set(tiers.machines)
    if left := sorted(described - named):
        yield f"In no HyperNode: {_checks.some(left)}."
    if unknown := sorted(named - described):
        yield f"Nodes of HyperNodes that the text does not describe, and left out: {_checks.some(unknown)}."


def _left_out(nodes: Sequence[NodeRecord]) -> Iterator[str]:
    """Yield notes on what is said of nodes with GPUs and not kept: other devices, and types of instances."""
    if others := sorted({one for node in nodes for one in node_devices.others(node)}):
        yield f"Other devices of nodes, which are left out: {_checks.some(others)}."
    if parts := [f"{node.name} ({mode})" for node in nodes if (mode := _parts_of(node))]:
        yield (
            f"The devices of these nodes are parts of AMD's GPUs, and which parts are of one GPU is not given: "
            f"{_checks.some(parts)}."
        )
    unnamed = (node for node in nodes if all(one.model is None for one in node_devices.of(node, 0)))
    types = {name: None for node in unnamed if (name := node_devices.instance_type(node))}
    if types:
        yield f"The model of GPUs is not given, but types of instances: {_checks.some(types)}; give a template."


def _parts_of(node: NodeRecord) -> str:
    """Return the modes that cut the GPUs of AMD of a node; "" if they are whole."""
    counted = (match[1] for key in node.resources if (match := node_devices.PARTITION.fullmatch(key)))
    return ", ".join(dict.fromkeys(filter(None, (node_devices.partition_of(node), *counted))))


def _closed(nodes: Sequence[NodeRecord]) -> Iterator[str]:
    """Yield a note on the nodes to which Kubernetes gives no pods."""
    if closed := _named_closed(nodes):
        yield f"Nodes that get no pods, whose GPUs are marked unhealthy: {closed}."


def _named_closed(nodes: Sequence[NodeRecord]) -> str:
    return _checks.some([f"{node.name} ({node.closed})" for node in nodes if node.closed])


def _why_none(nodes: Sequence[NodeRecord], topologies: Sequence[Fields]) -> str:
    if not nodes and topologies:
        levels = ", ".join(level_labels.of_topology(topologies[0]).values())
        return f"a Topology names levels ({levels}), and there is no node; add what `kubectl get nodes -o yaml` prints"
    if not nodes:
        return "there is no node; give what `kubectl get nodes -o yaml` prints"
    empty = [
        f"{node.name} ({key}: 0)"
        for node in nodes
        if (key := node_devices.resource_of(node)) in node.resources
    ]
    if empty:
        return f"no node has a GPU to give: {_checks.some(empty)}; its device plugin has registered none"
    names = _checks.some([node.name for node in nodes])
    return f"no node has a GPU: {names}; the text has neither {GPU}.count nor a capacity"


def _held(nodes: Sequence[NodeRecord]) -> Iterator[str]:
    """Yield a note on the nodes some of whose GPUs are requested by pods."""
    held = [f"{node.name} ({used})" for node in nodes if (used := _requested(node))]
    if held:
        yield f"GPUs that pods request are free here, because it is not given which they are: {_checks.some(held)}."


def _slice_shapes(nodes: Sequence[NodeRecord]) -> Iterator[str]:
    """Yield a note on shapes of TPU slices, which say nothing of which chip is where."""
    if shapes := dict.fromkeys(node.labels[_TPU_SHAPE] for node in nodes if node.labels.get(_TPU_SHAPE)):
        yield f"TPU slices of shape {', '.join(shapes)}: which chip is at which place is not given, and so no ICI link."


def _ready_of(node: NodeRecord) -> tuple[int | None, int | None]:
    """Return how many accelerators the node can give away, and of how many; None for what is not given."""
    key = node_devices.resource_of(node)
    return node.count("allocatable", key), node.count("capacity", key)


def _closed_by(node: NodeRecord) -> str:
    """Return why no new pod gets a GPU of the node; "" if one may."""
    return node.closed or ("allocatable: 0" if _ready_of(node)[0] == 0 else "")


def _replicas(node: NodeRecord) -> int:
    """Return how many pods share each GPU of a node."""
    keys = (f"{GPU}.replicas", "cloud.google.com/gke-max-shared-clients-per-gpu")
    return max(node.count("labels", key) or 1 for key in keys)


def _requested(node: NodeRecord) -> int:
    return node.count("requested", node_devices.resource_of(node)) or 0


def in_use(data: str | bytes) -> tuple[GpuUse, ...]:
    """Return the use of GPUs on nodes whose GPUs are all requested, or all free, by `kubectl describe nodes`.

    TopologyError names an open node with only some GPUs requested: the text does not say which.
    """
    found: list[GpuUse] = []
    nodes = list(node_objects.read(decode.decoded(data, "nodes"), [], []))
    if not nodes:
        raise TopologyError("there is no node; give `kubectl describe nodes`")
    for node in nodes:
        used, total = _requested(node), sum(one.count for one in node_devices.of(node, None))
        closed = _closed_by(node)
        if not closed:
            _refuse_unnamed(node, used, total)
        why = f"its node gets no pods ({closed})" if closed else ""
        found += [
            GpuUse(node.name, place, by_place=True, taken=used >= total, fault=why)
            for place in range(min(max(used, total), MAX_GPUS))
        ]
    return tuple(found)


def _refuse_unnamed(node: NodeRecord, used: int, total: int) -> None:
    """Raise TopologyError if it is not given which of a node's GPUs are free."""
    if total and not node.requested:
        raise TopologyError(
            f"{node.where}the text does not say what pods request; give `kubectl describe nodes`"
        )
    ready, there = _ready_of(node)
    if ready is not None and there is not None and used < ready < there:
        raise TopologyError(
            f"{node.where}{there - ready} of {there} GPUs cannot be given to pods, but not which; use --busy"
        )
    if 0 < used < total:
        raise TopologyError(f"{node.where}pods request {used} of {total} GPUs, but not which; use --busy")


# ---- machines --------------------------------------------------------------------------------------------------


class _Templates:
    """The topologies of the nodes read so far; equal nodes share one."""

    def __init__(
        self,
        template: Topology | Mapping[str, Topology] | None,
        whole_gpus: int | None,
        nvlink_gb_per_s: float | None,
        pcie_gb_per_s: float,
    ) -> None:
        if not isinstance(template, Topology) and template is not None:
            _checks.instance(template, Mapping, "template", TopologyError)
        if whole_gpus is not None:
            whole_gpus = _checks.integer(whole_gpus, "whole_gpus", TopologyError, low=0, high=MAX_GPUS)
        self._template = template
        self._whole_gpus = whole_gpus
        self._nvlink_gb_per_s = nvlink_gb_per_s
        self._pcie_gb_per_s = pcie_gb_per_s
        self._shared: list[str] = []
        self._short: list[str] = []
        self._empty: list[str] = []
        self._other_count: list[str] = []
        self._ready_only: list[str] = []
        self._closed: dict[Topology, Topology] = {}
        self._built: dict[tuple[tuple[Slices, ...], bool], Topology] = {}

    def of(self, node: NodeRecord) -> Topology | None:
        """Return the topology of `node`: the caller's template, or one built from its labels; None if it has no GPU.

        The GPUs of a node that gets no pods are unhealthy.
        """
        machine = self._of_open(node)
        if machine is None or not _closed_by(node):
            return machine
        if machine not in self._closed:
            self._closed[machine] = machine.with_unhealthy(range(machine.num_gpus))
        return self._closed[machine]

    def _of_open(self, node: NodeRecord) -> Topology | None:
        """Return the topology of `node` as if it gets pods; None if it has no GPU."""
        if isinstance(self._template, Topology) and _uncounted(node) and _clique(node):
            return self._template
        devices = tuple(found for found in node_devices.of(node, self._whole_gpus) if found.count)
        total = sum(found.count for found in devices)
        if not total:
            return None
        if total > MAX_GPUS:
            raise TopologyError(f"{node.where}{total} GPUs are more than {MAX_GPUS} on one node")
        self._note_counts(node)
        if self._template is not None:
            return self._given(node, total)
        key = devices, _clique(node) is not None
        if key not in self._built:
            self._built[key] = self._untold(*key)
        return self._built[key]

    def _given(self, node: NodeRecord, total: int) -> Topology:
        machine = self._template
        if isinstance(machine, Mapping):
            product = node.labels.get(f"{GPU}.product", "")
            if product not in machine:
                raise TopologyError(
                    f"{node.where}template has no topology for product {_checks.shown(product)}"
                )
            machine = machine[product]
        _checks.instance(machine, Topology, "template", TopologyError)
        if machine is not None and machine.num_gpus == total:
            return machine
        raise TopologyError(f"{node.where}{total} GPUs, but its template has a different number")

    def _untold(self, devices: Sequence[Slices], in_clique: bool) -> Topology:
        """Return a topology for a node whose devices are known, but not the links between them."""
        each = [kind for kind in devices for _ in range(kind.count)]
        gpus = [
            Gpu(
                i,
                f"GPU{i}" if kind.profile is None else f"MIG{i}",
                kind.model,
                memory_gb=kind.memory_gb,
                fraction=kind.fraction,
                maker=kind.maker,
            )
            for i, kind in enumerate(each)
        ]
        unknown = Link(LinkKind.UNKNOWN, 1, self._pcie_gb_per_s)
        ports = [self._port(kind) if in_clique else None for kind in each]
        links = [(u, v, _slower(ports[u], ports[v]) or unknown) for v in range(len(gpus)) for u in range(v)]
        name = " + ".join(dict.fromkeys(kind.model or "GPU" for kind in devices))
        notes = _untold_notes(devices, {link for _, _, link in links})
        return Topology(gpus, links, default=self._pcie_gb_per_s, name=name, notes=tuple(notes))

    def _port(self, kind: Slices) -> Link | None:
        """Return all NVLinks of a whole GPU into the switches of its NVLink domain; None for a slice."""
        if kind.profile is not None:
            return None
        speed, limit = nvlink_of(kind.model or ""), self._nvlink_gb_per_s
        if speed is None:
            return Link(LinkKind.NVSWITCH, 1, limit) if limit else None
        gb_per_s = speed.most_links * speed.gb_per_s
        return Link(LinkKind.NVSWITCH, speed.most_links, min(gb_per_s, limit or gb_per_s))

    def _note_counts(self, node: NodeRecord) -> None:
        """Remember for `notes` if several pods share a GPU of `node`, or if its numbers of GPUs differ."""
        replicas = _replicas(node)
        label, (ready, there) = node_devices.labelled_count(node), _ready_of(node)
        if replicas > 1:
            self._shared.append(node.name)
        if ready is not None and there is not None and ready < there:
            (self._short if ready else self._empty).append(f"{node.name} ({ready} of {there})")
        if label is None and ready is not None and not node.capacity:
            self._ready_only.append(node.name)
        in_slices = any(one.profile for one in node_devices.of(node, self._whole_gpus))
        if (
            label is not None
            and there is not None
            and there not in (label, label * replicas)
            and not in_slices
        ):
            self._other_count.append(f"{node.name} ({label}, and {there})")

    def notes(self) -> Iterator[str]:
        """Yield notes about shared GPUs, GPUs that cannot be given away, and labels that contradict the capacity."""
        if self._shared:
            yield f"GPUs that several pods share are counted once: those of {_checks.some(self._shared)}."
        if self._short:
            yield f"Nodes that cannot give all GPUs to pods, and it is not given which: {_checks.some(self._short)}."
        if self._empty:
            yield f"Nodes that can give no GPU to pods now, and are closed: {_checks.some(self._empty)}."
        if self._ready_only:
            some = _checks.some(self._ready_only)
            yield f"Only the allocatable GPUs are given, there may be more: those of {some}."
        if self._other_count:
            yield (
                f"Nodes whose label {GPU}.count, which is read, differs from the capacity: "
                f"{_checks.some(self._other_count)}."
            )


def _untold_notes(devices: Iterable[Slices], links: Collection[Link]) -> Iterator[str]:
    """Yield notes on what labels do not state about a node with these devices, and different links between them."""
    if links:
        yield "Labels do not say how the GPUs of a machine are connected."
    if any(link.kind is LinkKind.NVSWITCH for link in links):
        yield "GPUs of one node in an NVLink domain are taken to meet in its switches."
    if any(kind.profile is not None for kind in devices):
        yield "Labels do not say which MIG slices are parts of the same GPU."


def _slower(one: Link | None, other: Link | None) -> Link | None:
    """Return the slower of two ports into one switch; None if one of them is missing."""
    if one is None or other is None:
        return None
    return one if one.gb_per_s <= other.gb_per_s else other


def _uncounted(node: NodeRecord) -> bool:
    """Return True if the text has neither a count of the node's GPUs nor anything about its capacity."""
    counted = f"{GPU}.count" in node.labels or any(map(node_devices.MIG_COUNT.fullmatch, node.labels))
    return not counted and not node.resources


# ---- levels ----------------------------------------------------------------------------------------------------


def _network(
    nodes: Sequence[NodeRecord],
    tiers: Fabric | None,
    gb_per_s: float | None,
    keys: Mapping[str, str],
    name: str,
    notes: list[str],
) -> Fabric | None:
    """Return the network of nodes whose numbers of GPUs are unknown; None if they are known, or no network is given."""
    if not nodes or not all(map(_uncounted, nodes)):
        return None
    if tiers is not None:
        return replace(tiers, notes=(*notes, *_states(nodes)))
    if not (keys or any(map(_clique, nodes))):
        return None
    kept = [node for node in nodes if _clique(node) or any(node.labels.get(key) for key in keys.values())]
    levels = _levels(kept, gb_per_s, keys, notes)
    if left := [node.name for node in nodes if node not in kept]:
        notes.append(f"Without a clique or a level, and left out: {_checks.some(left)}.")
    notes.append("The number of GPUs of a node is not given.")
    return Fabric(tuple(node.name for node in kept), levels, name, (*notes, *_states(kept)))


def _states(nodes: Sequence[NodeRecord]) -> Iterator[str]:
    """Yield notes on the state of nodes, for a network, in which none of them can be marked."""
    if closed := _named_closed(nodes):
        yield f"Nodes that get no pods, which a network does not mark: {closed}."
    yield from node_state.notes(nodes)


def _levels(
    nodes: Sequence[NodeRecord], gb_per_s: float | None, keys: Mapping[str, str], notes: list[str]
) -> tuple[Level, ...]:
    return (*_clique_level(nodes, gb_per_s, notes), *reversed(list(_label_levels(nodes, keys, notes))))


def _level_keys(levels: Mapping[str, str] | None) -> dict[str, str]:
    if levels is None:
        return {}
    _checks.instance(levels, Mapping, "levels", TopologyError)
    for name, key in levels.items():
        _checks.text(name, "levels: a level's name", TopologyError)
        _checks.text(key, f"levels[{name!r}]", TopologyError)
        if name == NVLINK_DOMAIN:
            raise TopologyError(f"levels: {NVLINK_DOMAIN} is the level of {CLIQUE}")
    return dict(levels)


def _told_levels(
    nodes: Sequence[NodeRecord], topologies: Sequence[Fields], notes: list[str]
) -> dict[str, str]:
    """Return the label of each level, innermost first: of a Topology in the text whose labels nodes have, else known.

    A Topology counts only for labels that some node has.
    """
    for one in topologies:
        keys = {
            name: key
            for name, key in level_labels.of_topology(one).items()
            if any(node.labels.get(key) for node in nodes)
        }
        if keys:
            return keys
    keys = dict(level_labels.known(_perhaps_with_gpus(nodes)))
    if keys:
        named = ", ".join(f"{name} ({key})" for name, key in keys.items())
        notes.append(f"Levels are taken from labels, innermost first: {named}.")
    return keys


def _unread_levels(nodes: Sequence[NodeRecord], keys: Mapping[str, str]) -> Iterator[str]:
    """Yield a note on labels that look like those of levels, and are not in `keys`, the labels that are read."""
    if left := level_labels.unread(_perhaps_with_gpus(nodes), keys.values()):
        yield f"Labels that may be levels are left out: {_checks.some(left)}; give levels to read them."


def _perhaps_with_gpus(nodes: Sequence[NodeRecord]) -> list[NodeRecord]:
    """Return the nodes but those whose resources have no GPU."""
    return [
        node for node in nodes if not node.resources or any(one.count for one in node_devices.of(node, 0))
    ]


def _label_levels(nodes: Sequence[NodeRecord], keys: Mapping[str, str], notes: list[str]) -> Iterator[Level]:
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


def _clique_level(nodes: Sequence[NodeRecord], gb_per_s: float | None, notes: list[str]) -> Iterator[Level]:
    cliques = tuple(_clique(node) for node in nodes)
    if any(cliques):
        kind = LinkKind.NVSWITCH
        if not gb_per_s and not all(map(_has_known_nvlinks, nodes)):
            kind = LinkKind.NETWORK
            notes.append("The speed of NVLinks is not known without the GPUs' model: give nvlink_gb_per_s.")
        yield Level(NVLINK_DOMAIN, cliques, gb_per_s, kind=kind)
    if any(node.labels.get(CLIQUE) and clique is None for node, clique in zip(nodes, cliques, strict=True)):
        notes.append(f"A {CLIQUE} without a ClusterUUID tells no NVLink domain: cliques of clusters repeat.")


def _has_known_nvlinks(node: NodeRecord) -> bool:
    devices = [one for one in node_devices.of(node, 0) if one.count]
    return all(one.profile is None and nvlink_of(one.model or "") is not None for one in devices)


def _clique(node: NodeRecord) -> str | None:
    """Return the NVLink domain of `node`; None if its label is missing or has no ClusterUUID."""
    cluster, dot, clique = node.labels.get(CLIQUE, "").rpartition(".")
    known = dot and clique and cluster.strip("0-")
    return f"{cluster}.{clique}" if known else level_labels.nvlink_domain(node)
