"""Functions that score a placement, mostly from a `Topology`, a `JobGraph`, and the GPU of each task.

To change:

- MAPA's scores: `links.py`, for many pairs at once `pair_links.py`; the predicted bandwidth:
  `effective_bandwidth.py`.
- SC'17's utility: `utility.py`; as the authors' code has it `authors_utility.py`; eq. 2 as printed
  `printed_utility.py`.
- How long a job communicates: `communication.py`; the GB/s behind that: `job_bandwidth.py`.
- What typical jobs could not use of what is left (FGD): `expected_fragmentation.py`,
  `cpp/src/cluster/fragmentation.cpp`.
"""

from __future__ import annotations

from topoplace.objectives.authors_utility import AuthorsUtility
from topoplace.objectives.effective_bandwidth import FITTED_TASKS, MAPA_COEFFICIENTS, EffectiveBandwidth
from topoplace.objectives.fragmentation import fragmentation, possible_whole_domains, whole_domains
from topoplace.objectives.interference import interference
from topoplace.objectives.links import (
    DOUBLE_NVLINK,
    NUM_LINK_CLASSES,
    OTHER_LINK,
    SINGLE_NVLINK,
    LinkTables,
    aggregated_bandwidth,
    bottleneck_bandwidth,
    class_of,
    link_class,
    link_counts,
    link_scores,
    preserved_bandwidth,
    scores_from,
    scores_of,
)
from topoplace.objectives.printed_utility import PrintedUtility
from topoplace.objectives.utility import Costs, Utility, communication_cost

__all__ = [
    "DOUBLE_NVLINK",
    "FITTED_TASKS",
    "MAPA_COEFFICIENTS",
    "NUM_LINK_CLASSES",
    "OTHER_LINK",
    "SINGLE_NVLINK",
    "AuthorsUtility",
    "Costs",
    "EffectiveBandwidth",
    "LinkTables",
    "PrintedUtility",
    "Utility",
    "aggregated_bandwidth",
    "bottleneck_bandwidth",
    "class_of",
    "communication_cost",
    "fragmentation",
    "interference",
    "link_class",
    "link_counts",
    "link_scores",
    "possible_whole_domains",
    "preserved_bandwidth",
    "scores_from",
    "scores_of",
    "whole_domains",
]
