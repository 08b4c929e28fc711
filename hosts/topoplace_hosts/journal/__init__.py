"""State that must survive a crash of a program that places jobs: its decisions, and what is held; see docs/state.md.

`Journal` is a file of decisions, each of which goes through the stages intent, told and confirmed. `reconcile` brings a
`Cluster` and a journal in step with what the scheduler itself says. `keep` and `recall` save and restore drained and
held GPUs and MIG slices. Nothing here depends on a particular scheduler.

To change:

- The stages of a decision, and what an entry says that a job holds: `entry.py`. The columns of the file are in
  `schema.py`, the JSON inside them in `entry.py`.
- Comparison with the scheduler: `reconciliation.py`, `recording.py`; repairs: `repairing.py`; what is drained and
  held, and how idle GPUs are sliced: `service.py`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from topoplace._lazy import lazily

if TYPE_CHECKING:
    from topoplace_hosts.journal.entry import Entry as Entry
    from topoplace_hosts.journal.entry import Holding as Holding
    from topoplace_hosts.journal.entry import Stage as Stage
    from topoplace_hosts.journal.journal import Journal as Journal
    from topoplace_hosts.journal.reconciliation import Difference as Difference
    from topoplace_hosts.journal.reconciliation import reconcile as reconcile
    from topoplace_hosts.journal.repairing import carry_out as carry_out
    from topoplace_hosts.journal.service import keep as keep
    from topoplace_hosts.journal.service import recall as recall

__getattr__, __dir__, __all__ = lazily(__name__)
