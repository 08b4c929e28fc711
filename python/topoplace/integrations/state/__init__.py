"""What must outlive a crash of a program that places jobs: its decisions, and what is held; see docs/state.md.

`Journal` is a file of decisions, each of which goes through the stages intent, told and confirmed. `reconcile` brings a
`Cluster` and a journal in step with what the scheduler itself says. `keep` and `recall` do for drained and held GPUs
and for MIG slices what the journal does for jobs. Nothing here knows any particular scheduler.

To change:

- The stages of a decision, and what an entry says that a job holds: `entry.py`. The columns of the file are in
  `schema.py`, the JSON inside them in `entry.py`.
- What the scheduler says against it: `reconciliation.py`, `recording.py`; what is drained and held, and how idle GPUs
  are sliced: `service.py`.
"""

from __future__ import annotations

from topoplace.integrations.state.entry import Entry, Holding, Stage
from topoplace.integrations.state.journal import Journal
from topoplace.integrations.state.reconciliation import Difference, reconcile
from topoplace.integrations.state.service import keep, recall

__all__ = ["Difference", "Entry", "Holding", "Journal", "Stage", "keep", "recall", "reconcile"]
