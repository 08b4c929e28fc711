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
- Conversion to a graph: `graph.py`, `cpp/src/graph/graph.cpp`; checks of arguments: `arguments.py`,
  `cpp/bindings/convert.hpp` (also Ctrl-C).
- When a search ends: `cpp/include/topoplace/stop_condition.hpp`; several searches together, and
  all of a thread: `limits.py`.
- The searches themselves: `cpp/README.md`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from topoplace._lazy import lazily

if TYPE_CHECKING:
    from topoplace.kernels.cost_scaling import INFINITE as INFINITE
    from topoplace.kernels.cost_scaling import FlowSolution as FlowSolution
    from topoplace.kernels.cost_scaling import min_cost_flow as min_cost_flow
    from topoplace.kernels.cost_scaling import verify_flow as verify_flow
    from topoplace.kernels.distribution import Distribution as Distribution
    from topoplace.kernels.distribution import distribute as distribute
    from topoplace.kernels.distribution import verify_distribution as verify_distribution
    from topoplace.kernels.divisions import Division as Division
    from topoplace.kernels.divisions import DivisionProblem as DivisionProblem
    from topoplace.kernels.divisions import Divisions as Divisions
    from topoplace.kernels.divisions import divide as divide
    from topoplace.kernels.divisions import verify_division as verify_division
    from topoplace.kernels.flow_network import FlowNetwork as FlowNetwork
    from topoplace.kernels.gang_mapping import GangMapping as GangMapping
    from topoplace.kernels.gang_mapping import GangPlaces as GangPlaces
    from topoplace.kernels.gang_mapping import map_gang as map_gang
    from topoplace.kernels.gang_mapping import verify_gang_mapping as verify_gang_mapping
    from topoplace.kernels.graph import Graph as Graph
    from topoplace.kernels.group_packing import GroupPacking as GroupPacking
    from topoplace.kernels.group_packing import GroupRepacking as GroupRepacking
    from topoplace.kernels.group_packing import pack_groups as pack_groups
    from topoplace.kernels.group_packing import repack_groups as repack_groups
    from topoplace.kernels.group_packing import verify_group_packing as verify_group_packing
    from topoplace.kernels.group_packing import verify_group_repacking as verify_group_repacking
    from topoplace.kernels.job_traffic import CollectiveNetwork as CollectiveNetwork
    from topoplace.kernels.job_traffic import JobCollectives as JobCollectives
    from topoplace.kernels.job_traffic import Places as Places
    from topoplace.kernels.job_traffic import RingRates as RingRates
    from topoplace.kernels.job_traffic import Rings as Rings
    from topoplace.kernels.job_traffic import SwitchRates as SwitchRates
    from topoplace.kernels.job_traffic import TrafficTime as TrafficTime
    from topoplace.kernels.job_traffic import reduced_bandwidth as reduced_bandwidth
    from topoplace.kernels.limits import WorkBudget as WorkBudget
    from topoplace.kernels.mapping import Mapping as Mapping
    from topoplace.kernels.mapping import TargetDistance as TargetDistance
    from topoplace.kernels.mapping import map_graph as map_graph
    from topoplace.kernels.mapping import verify_task_mapping as verify_task_mapping
    from topoplace.kernels.matching import Embedding as Embedding
    from topoplace.kernels.matching import LinkCountScore as LinkCountScore
    from topoplace.kernels.matching import Remainder as Remainder
    from topoplace.kernels.matching import best_remainder as best_remainder
    from topoplace.kernels.matching import best_subgraph as best_subgraph
    from topoplace.kernels.matching import count_subgraphs as count_subgraphs
    from topoplace.kernels.matching import enumerate_subgraphs as enumerate_subgraphs
    from topoplace.kernels.matching import verify_embedding as verify_embedding
    from topoplace.kernels.partition import MAX_EXACT_VERTICES as MAX_EXACT_VERTICES
    from topoplace.kernels.partition import Bipartition as Bipartition
    from topoplace.kernels.partition import bipartition as bipartition
    from topoplace.kernels.partition import verify_bipartition as verify_bipartition
    from topoplace.kernels.port_network import FlowCounts as FlowCounts
    from topoplace.kernels.port_network import Flows as Flows
    from topoplace.kernels.port_network import MaxMinTimes as MaxMinTimes
    from topoplace.kernels.port_network import Orders as Orders
    from topoplace.kernels.port_network import PhaseTime as PhaseTime
    from topoplace.kernels.port_network import PortNetwork as PortNetwork
    from topoplace.kernels.ring_packing import MAX_LEVEL as MAX_LEVEL
    from topoplace.kernels.ring_packing import ChannelRules as ChannelRules
    from topoplace.kernels.ring_packing import Channels as Channels
    from topoplace.kernels.ring_packing import RingNetwork as RingNetwork
    from topoplace.kernels.ring_packing import RingPacking as RingPacking
    from topoplace.kernels.ring_packing import Route as Route
    from topoplace.kernels.ring_packing import best_channels as best_channels
    from topoplace.kernels.ring_packing import channel_rate as channel_rate
    from topoplace.kernels.ring_packing import pack_rings as pack_rings
    from topoplace.kernels.ring_packing import verify_rings as verify_rings
    from topoplace.kernels.terminal_cuts import LeastFlow as LeastFlow
    from topoplace.kernels.terminal_cuts import TerminalGraph as TerminalGraph
    from topoplace.kernels.terminal_cuts import ThroughputBound as ThroughputBound
    from topoplace.kernels.terminal_cuts import least_max_flow as least_max_flow
    from topoplace.kernels.terminal_cuts import throughput_bound as throughput_bound
    from topoplace.kernels.terminal_cuts import verify_least_flow as verify_least_flow
    from topoplace.kernels.terminal_cuts import verify_throughput as verify_throughput
    from topoplace.kernels.tree_mapping import Exchanges as Exchanges
    from topoplace.kernels.tree_mapping import PortTree as PortTree
    from topoplace.kernels.tree_mapping import TreeBound as TreeBound
    from topoplace.kernels.tree_mapping import TreeMapping as TreeMapping
    from topoplace.kernels.tree_mapping import map_to_tree as map_to_tree
    from topoplace.kernels.tree_mapping import tree_bound as tree_bound
    from topoplace.kernels.tree_mapping import verify_tree_mapping as verify_tree_mapping
    from topoplace.kernels.tree_packing import PackedTree as PackedTree
    from topoplace.kernels.tree_packing import TreePacking as TreePacking
    from topoplace.kernels.tree_packing import pack_trees as pack_trees
    from topoplace.kernels.tree_packing import verify_trees as verify_trees

__getattr__, __dir__, __all__ = lazily(__name__)
