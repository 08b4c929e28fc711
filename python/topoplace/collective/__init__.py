"""Bandwidth of collective operations among GPUs: of rings as a collective library plans them, and the optimum.

Nothing is fitted: bandwidths follow from the graph of a machine, with the rates of links that NCCL assumes.
`topoplace_lab.measuring` compares them with nccl-tests, and corrects the rates on request.

To change:

- The search for channels, and data prepared for a topology: `prepared.py`; rates of links by version of a library:
  `topology/links/nccl_rates.py`.
- The graph of a machine that a library sees: `machine_graph.py`; paths in it: `routes.py`.
- Bandwidths: `bandwidth.py`; of all sets of a size: `surveys.py`; over machines: `several_machines.py`.
- Rings and reductions in NVSwitches: `nvlink_domains.py`, `bandwidth.py`.
- The free GPUs with the best rings: `choice.py`; cached rates of sets, and ties: `rated_sets.py`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from topoplace._lazy import lazily

if TYPE_CHECKING:
    from topoplace.collective.bandwidth import DEFAULT_RATES as DEFAULT_RATES
    from topoplace.collective.bandwidth import Ring as Ring
    from topoplace.collective.bandwidth import RingPlan as RingPlan
    from topoplace.collective.bandwidth import all_reduce_bandwidth as all_reduce_bandwidth
    from topoplace.collective.bandwidth import broadcast_bandwidth as broadcast_bandwidth
    from topoplace.collective.bandwidth import host_is_assumed as host_is_assumed
    from topoplace.collective.bandwidth import library_of as library_of
    from topoplace.collective.bandwidth import nvls_bandwidth as nvls_bandwidth
    from topoplace.collective.bandwidth import optimal_bandwidth as optimal_bandwidth
    from topoplace.collective.bandwidth import ring_bandwidth as ring_bandwidth
    from topoplace.collective.bandwidth import rings as rings
    from topoplace.collective.bandwidth import why_no_rings as why_no_rings
    from topoplace.collective.choice import best_set as best_set
    from topoplace.collective.choice import left_bandwidth as left_bandwidth
    from topoplace.collective.choice import ranked_sets as ranked_sets
    from topoplace.collective.nvlink_domains import domain_ring_rate as domain_ring_rate
    from topoplace.collective.rated_sets import SetChoice as SetChoice
    from topoplace.collective.rated_sets import Wanted as Wanted
    from topoplace.collective.rated_sets import grades as grades
    from topoplace.collective.surveys import RatedSet as RatedSet
    from topoplace.collective.surveys import Survey as Survey
    from topoplace.collective.surveys import survey as survey
    from topoplace.collective.times import NCCL_LATENCIES as NCCL_LATENCIES
    from topoplace.collective.times import Latencies as Latencies
    from topoplace.collective.times import collective_time as collective_time
    from topoplace.collective.tree_plans import Hop as Hop
    from topoplace.collective.tree_plans import SpanningTree as SpanningTree
    from topoplace.collective.tree_plans import TreePlan as TreePlan
    from topoplace.collective.tree_plans import Way as Way
    from topoplace.collective.tree_plans import trees as trees
    from topoplace.topology.links.nccl_rates import PRESETS as PRESETS
    from topoplace.topology.links.nccl_rates import Rates as Rates

__getattr__, __dir__, __all__ = lazily(__name__)
