"""What collective operations among GPUs can carry: rings as a collective library plans them, and the optimum.

Nothing is fitted: bandwidths follow from the graph of a machine, with the rates of links that NCCL assumes. The
subpackage `measuring` compares them with nccl-tests, and corrects the rates where that is asked for.

To change:

- How NCCL looks for channels, and what is prepared for a topology: `prepared.py`; rates of links by version of a
  library: `topology/links/rates.py`.
- The graph of a machine that a library sees: `machine_graph.py`; paths in it: `routes.py`.
- Bandwidths: `bandwidth.py`; of all sets of a size: `survey.py`; over machines: `several_machines.py`.
- Rings and reductions in NVSwitches: `nvlink_domains.py` and `nvls.py`.
- Which free GPUs have the best rings: `choice.py`; rates kept for sets, and ties: `rated_sets.py`.
"""

from __future__ import annotations

from topoplace.collective.bandwidth import (
    DEFAULT_RATES,
    Ring,
    RingPlan,
    broadcast_bandwidth,
    host_is_assumed,
    library_of,
    optimal_bandwidth,
    ring_bandwidth,
    rings,
    why_no_rings,
)
from topoplace.collective.choice import best_set, left_bandwidth, ranked_sets
from topoplace.collective.nvlink_domains import domain_ring_rate
from topoplace.collective.nvls import all_reduce_bandwidth, nvls_bandwidth
from topoplace.collective.rated_sets import SetChoice, Wanted, grades
from topoplace.collective.survey import RatedSet, Survey, survey
from topoplace.collective.times import NCCL_LATENCIES, Latencies, collective_time
from topoplace.collective.trees import Hop, SpanningTree, TreePlan, Way, trees
from topoplace.topology.links.rates import PRESETS, Rates

__all__ = [
    "DEFAULT_RATES",
    "NCCL_LATENCIES",
    "PRESETS",
    "Hop",
    "Latencies",
    "RatedSet",
    "Rates",
    "Ring",
    "RingPlan",
    "SetChoice",
    "SpanningTree",
    "Survey",
    "TreePlan",
    "Wanted",
    "Way",
    "all_reduce_bandwidth",
    "best_set",
    "broadcast_bandwidth",
    "collective_time",
    "domain_ring_rate",
    "grades",
    "host_is_assumed",
    "left_bandwidth",
    "library_of",
    "nvls_bandwidth",
    "optimal_bandwidth",
    "ranked_sets",
    "ring_bandwidth",
    "rings",
    "survey",
    "trees",
    "why_no_rings",
]
