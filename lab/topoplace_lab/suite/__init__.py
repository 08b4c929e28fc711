"""The standard suite: how good a policy is, on a fixed set of machines, clusters and workloads.

`plan` returns a fixed sweep, `simulate` runs its cells, and `scores_of` rates the policies.

To change:

- Machines and workloads: `topologies.py`, `workloads.py`; what a cell measures: `measures.py`; its queue, the seeds and
  the version: `cells.py`; how policies are compared: `scores.py`; the table in a document: `document.py`.
"""

from __future__ import annotations

from topoplace_lab.suite.cells import POLICIES, SEEDS, VERSION, plan, simulate
from topoplace_lab.suite.measures import MEASURES
from topoplace_lab.suite.scores import REFERENCE, Score, scores_of

__all__ = [
    "MEASURES",
    "POLICIES",
    "REFERENCE",
    "SEEDS",
    "VERSION",
    "Score",
    "plan",
    "scores_of",
    "simulate",
]
