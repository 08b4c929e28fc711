"""Conversion of a topology to a networkx graph, and back."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import combinations
from typing import TYPE_CHECKING, Any

from topoplace import _checks
from topoplace.errors import TopologyError, require_package
from topoplace.topology import devices
from topoplace.topology.devices import Gpu
from topoplace.topology.links.link_kinds import NONE, LinkKind
from topoplace.topology.topology import Topology
from topoplace.topology.validate import LinkSpec, parsed_links

if TYPE_CHECKING:
    import networkx as nx

MAX_GPUS = 1 << 11
"""Limit on GPUs in a networkx graph, which takes much memory per edge."""


def from_networkx(
    g: nx.Graph[Any],
    weight: str = "bandwidth",
    *,
    default: float | None = None,
    network: float | None = None,
    name: str | None = None,
) -> Topology:
    """Build a topology from an undirected networkx graph whose edges carry GB/s in the attribute `weight`.

    GPU i is the i-th node. Optional attributes, as `to_networkx` writes them: `kind` and `lanes` of edges; `name`,
    `model`, `machine`, `socket` and `memory_gb` of nodes; `default`, `network` and `name` of the graph. An argument
    that is not None overrides the graph's attribute. Raise TopologyError as `Topology.from_links` does.
    """
    _checks.simple_graph(g, "g", TopologyError)
    index = {node: i for i, node in enumerate(g.nodes)}
    gpus = tuple(_gpu(i, data) for i, data in enumerate(g.nodes.values()))
    specs = [_link(index[a], index[b], data, weight) for a, b, data in g.edges(data=True)]
    given: dict[str, Any] = {"default": default, "network": network, "name": name}
    settings = {key: g.graph[key] for key in given if key in g.graph}
    settings |= {key: value for key, value in given.items() if value is not None}
    return Topology(gpus, parsed_links(specs, "edges"), **settings)


def to_networkx(topology: Topology) -> nx.Graph[int]:
    """Return all pairs that have a path as a networkx graph on 0..n-1; `from_networkx` reads it back.

    Edges carry `bandwidth` (GB/s), `distance`, `kind` (LinkKind) and `lanes`; nodes carry the fields of `Gpu`.
    Adapters, components, partitions, notes, assumed kinds and levels are lost. Raise TopologyError for more than 2,048
    GPUs.
    """
    if topology.num_gpus > MAX_GPUS:
        raise TopologyError(f"{topology.num_gpus} GPUs are too many for networkx (at most {MAX_GPUS})")
    require_package("networkx", "to_networkx")
    import networkx as nx

    g: nx.Graph[int] = nx.Graph(name=topology.name, default=topology.default, network=topology.network)
    for gpu in topology.gpus:
        g.add_node(gpu.index, **{key: getattr(gpu, key) for key in devices.GPU_KEYS})
    for u, v in combinations(range(topology.num_gpus), 2):
        link = topology.link(u, v)
        if link != NONE or topology.pairs.default_link(u, v) != NONE:
            distance = topology.distance(u, v)
            g.add_edge(u, v, bandwidth=link.gb_per_s, distance=distance, kind=link.kind, lanes=link.lanes)
    return g


def _gpu(i: int, data: Mapping[str, Any]) -> Gpu:
    known = {key: data[key] for key in devices.GPU_KEYS if key in data}
    return Gpu(i, known.pop("name", f"GPU{i}"), **known)


def _link(u: int, v: int, data: Mapping[str, Any], weight: str) -> LinkSpec:
    if weight not in data:
        raise TopologyError(f"edge ({u}, {v}) has no attribute {weight!r}")
    return u, v, data[weight], data.get("kind", LinkKind.UNKNOWN), data.get("lanes", 1)
