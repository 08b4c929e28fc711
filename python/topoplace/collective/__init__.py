"""What collective operations among GPUs can carry: rings as a collective library plans them, and the optimum.

Nothing is fitted: bandwidths follow from the graph of a machine, with the rates of links that NCCL assumes.
"""

from __future__ import annotations

from topoplace.collective.bandwidth import (
    Ring,
    RingPlan,
    broadcast_bandwidth,
    host_is_assumed,
    optimal_bandwidth,
    ring_bandwidth,
    rings,
)
from topoplace.collective.rates import PRESETS, Rates
from topoplace.collective.survey import RatedSet, Survey, survey

__all__ = [
    "PRESETS",
    "RatedSet",
    "Rates",
    "Ring",
    "RingPlan",
    "Survey",
    "broadcast_bandwidth",
    "host_is_assumed",
    "optimal_bandwidth",
    "ring_bandwidth",
    "rings",
    "survey",
]
