"""Functions that score a placement, mostly from a `Topology`, a `JobGraph`, and the GPU of each task.

To change:

- MAPA's scores: `links.py`, for many pairs at once `pair_links.py`; the predicted bandwidth:
  `effective_bandwidth.py`.
- SC'17's utility: `utility.py`; as the authors' code has it `authors_utility.py`; eq. 2 as printed
  `printed_utility.py`.
- How long a job communicates: `communication.py`; the GB/s behind that: `job_bandwidth.py`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from topoplace._lazy import lazily

if TYPE_CHECKING:
    from topoplace.objectives.authors_utility import AuthorsUtility as AuthorsUtility
    from topoplace.objectives.colocation import interference as interference
    from topoplace.objectives.domains import fragmentation as fragmentation
    from topoplace.objectives.domains import possible_whole_domains as possible_whole_domains
    from topoplace.objectives.domains import whole_domains as whole_domains
    from topoplace.objectives.effective_bandwidth import FITTED_TASKS as FITTED_TASKS
    from topoplace.objectives.effective_bandwidth import MAPA_COEFFICIENTS as MAPA_COEFFICIENTS
    from topoplace.objectives.effective_bandwidth import EffectiveBandwidth as EffectiveBandwidth
    from topoplace.objectives.links import LinkTables as LinkTables
    from topoplace.objectives.links import aggregated_bandwidth as aggregated_bandwidth
    from topoplace.objectives.links import bottleneck_bandwidth as bottleneck_bandwidth
    from topoplace.objectives.links import link_class as link_class
    from topoplace.objectives.links import link_counts as link_counts
    from topoplace.objectives.links import link_scores as link_scores
    from topoplace.objectives.links import preserved_bandwidth as preserved_bandwidth
    from topoplace.objectives.links import scores_from as scores_from
    from topoplace.objectives.links import scores_of as scores_of
    from topoplace.objectives.pair_links import DOUBLE_NVLINK as DOUBLE_NVLINK
    from topoplace.objectives.pair_links import NUM_LINK_CLASSES as NUM_LINK_CLASSES
    from topoplace.objectives.pair_links import OTHER_LINK as OTHER_LINK
    from topoplace.objectives.pair_links import SINGLE_NVLINK as SINGLE_NVLINK
    from topoplace.objectives.pair_links import class_of as class_of
    from topoplace.objectives.pair_links import communication_cost as communication_cost
    from topoplace.objectives.printed_utility import PrintedUtility as PrintedUtility
    from topoplace.objectives.utility import Costs as Costs
    from topoplace.objectives.utility import Utility as Utility

__getattr__, __dir__, __all__ = lazily(__name__)
