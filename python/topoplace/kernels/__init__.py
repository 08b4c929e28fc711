"""Graph algorithms that are independent of GPUs: numpy arrays in, numpy arrays out.

Every search releases the GIL, respects a deadline in seconds, responds to Ctrl-C, and is deterministic unless a
deadline ends it. Among equally good embeddings it returns the one with the lexicographically smallest sorted vertex
list, then the lexicographically smallest mapping. Among equally good bipartitions that are proven optimal, it returns
the lexicographically smallest side vector.

A graph argument is a `Graph`, an (n, n) weight matrix, an (m, 2) or (m, 3) edge array, or a networkx graph. A `Graph`
caches data that searches prepare (search plans, automorphisms, weight levels), so pass the same object to all calls.

To change:

- A parameter: its `Params` in `cpp/include/topoplace/`, its line in `cpp/bindings/`, its argument here; then `make
  stubs`.
- What is accepted as a graph: `graph.py`, `cpp/src/graph/graph.cpp`; checks of arguments: `arguments.py`,
  `cpp/bindings/convert.hpp` (also Ctrl-C).
- When a search ends: `cpp/include/topoplace/stop_condition.hpp`; several searches together: `work_budget.py`; all of
  a thread: `deadline.py`.
- The searches themselves: `cpp/README.md`.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from topoplace.kernels.distribution import Distribution, distribute, verify_distribution
from topoplace.kernels.flow_network import FlowNetwork
from topoplace.kernels.graph import Graph
from topoplace.kernels.group_packing import GroupPacking, pack_groups, verify_group_packing
from topoplace.kernels.mapping import Mapping, TargetDistance, map_graph, verify_task_mapping
from topoplace.kernels.matching import (
    Embedding,
    LinkCountScore,
    Remainder,
    best_remainder,
    best_subgraph,
    count_subgraphs,
    enumerate_subgraphs,
    verify_embedding,
)
from topoplace.kernels.min_cost_flow import INFINITE, FlowSolution, min_cost_flow, verify_flow
from topoplace.kernels.partition import MAX_EXACT_VERTICES, Bipartition, bipartition, verify_bipartition
from topoplace.kernels.ring_packing import (
    MAX_LEVEL,
    ChannelRules,
    Channels,
    RingNetwork,
    RingPacking,
    Route,
    best_channels,
    channel_rate,
    pack_rings,
    verify_rings,
)
from topoplace.kernels.terminal_cuts import (
    LeastFlow,
    TerminalGraph,
    ThroughputBound,
    least_max_flow,
    throughput_bound,
    verify_least_flow,
    verify_throughput,
)
from topoplace.kernels.tree_packing import PackedTree, TreePacking, pack_trees, verify_trees
from topoplace.kernels.work_budget import WorkBudget

if TYPE_CHECKING:  # for type checkers; `_LATER` says the same to the interpreter
    from topoplace.kernels.gang_mapping import GangMapping as GangMapping
    from topoplace.kernels.gang_mapping import GangPlaces as GangPlaces
    from topoplace.kernels.gang_mapping import map_gang as map_gang
    from topoplace.kernels.gang_mapping import verify_gang_mapping as verify_gang_mapping
    from topoplace.kernels.job_traffic import CollectiveNetwork as CollectiveNetwork
    from topoplace.kernels.job_traffic import JobCollectives as JobCollectives
    from topoplace.kernels.job_traffic import Places as Places
    from topoplace.kernels.job_traffic import RingRates as RingRates
    from topoplace.kernels.job_traffic import Rings as Rings
    from topoplace.kernels.job_traffic import SwitchRates as SwitchRates
    from topoplace.kernels.job_traffic import TrafficTime as TrafficTime
    from topoplace.kernels.job_traffic import reduced_bandwidth as reduced_bandwidth
    from topoplace.kernels.port_network import FlowCounts as FlowCounts
    from topoplace.kernels.port_network import Flows as Flows
    from topoplace.kernels.port_network import MaxMinTimes as MaxMinTimes
    from topoplace.kernels.port_network import Orders as Orders
    from topoplace.kernels.port_network import PhaseTime as PhaseTime
    from topoplace.kernels.port_network import PortNetwork as PortNetwork
    from topoplace.kernels.tree_mapping import Exchanges as Exchanges
    from topoplace.kernels.tree_mapping import PortTree as PortTree
    from topoplace.kernels.tree_mapping import TreeBound as TreeBound
    from topoplace.kernels.tree_mapping import TreeMapping as TreeMapping
    from topoplace.kernels.tree_mapping import map_to_tree as map_to_tree
    from topoplace.kernels.tree_mapping import tree_bound as tree_bound
    from topoplace.kernels.tree_mapping import verify_tree_mapping as verify_tree_mapping

__all__ = [
    "INFINITE",
    "MAX_EXACT_VERTICES",
    "MAX_LEVEL",
    "Bipartition",
    "ChannelRules",
    "Channels",
    "CollectiveNetwork",
    "Distribution",
    "Embedding",
    "Exchanges",
    "FlowCounts",
    "FlowNetwork",
    "FlowSolution",
    "Flows",
    "GangMapping",
    "GangPlaces",
    "Graph",
    "GroupPacking",
    "JobCollectives",
    "LeastFlow",
    "LinkCountScore",
    "Mapping",
    "MaxMinTimes",
    "Orders",
    "PackedTree",
    "PhaseTime",
    "Places",
    "PortNetwork",
    "PortTree",
    "Remainder",
    "RingNetwork",
    "RingPacking",
    "RingRates",
    "Rings",
    "Route",
    "SwitchRates",
    "TargetDistance",
    "TerminalGraph",
    "ThroughputBound",
    "TrafficTime",
    "TreeBound",
    "TreeMapping",
    "TreePacking",
    "WorkBudget",
    "best_channels",
    "best_remainder",
    "best_subgraph",
    "bipartition",
    "channel_rate",
    "count_subgraphs",
    "distribute",
    "enumerate_subgraphs",
    "least_max_flow",
    "map_gang",
    "map_graph",
    "map_to_tree",
    "min_cost_flow",
    "pack_groups",
    "pack_rings",
    "pack_trees",
    "reduced_bandwidth",
    "throughput_bound",
    "tree_bound",
    "verify_bipartition",
    "verify_distribution",
    "verify_embedding",
    "verify_flow",
    "verify_gang_mapping",
    "verify_group_packing",
    "verify_least_flow",
    "verify_rings",
    "verify_task_mapping",
    "verify_throughput",
    "verify_tree_mapping",
    "verify_trees",
]

_LATER = {
    **dict.fromkeys(("GangMapping", "GangPlaces", "map_gang", "verify_gang_mapping"), "gang_mapping"),
    **dict.fromkeys(
        (
            "CollectiveNetwork",
            "JobCollectives",
            "Places",
            "RingRates",
            "Rings",
            "SwitchRates",
            "TrafficTime",
            "reduced_bandwidth",
        ),
        "job_traffic",
    ),
    **dict.fromkeys(
        ("FlowCounts", "Flows", "MaxMinTimes", "Orders", "PhaseTime", "PortNetwork"), "port_network"
    ),
    **dict.fromkeys(
        (
            "Exchanges",
            "PortTree",
            "TreeBound",
            "TreeMapping",
            "map_to_tree",
            "tree_bound",
            "verify_tree_mapping",
        ),
        "tree_mapping",
    ),
}
"""The module of each name that is loaded when it is first asked for."""


def __getattr__(name: str) -> Any:
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(importlib.import_module(f"{__name__}.{_LATER[name]}"), name)
    return value
