"""A scheduler for pods that need GPUs: it gives them a node and the GPUs there, and binds them through the API.

To change:

- Which nodes are allowed: `predicates.py`, for all nodes at once `allowed_rows.py`; what is left of them:
  `node_table.py`; who holds which GPUs: `cluster_state.py`.
- A policy's answer for a pod or group: `deciding.py`, where it runs: `seats.py`; which of its pods are together:
  `demands.py`; pods that replace others: `replacing.py`; the order of decisions: `waiting.py`; pre-emption:
  `preempting.py`.
- The loop: `scheduler.py`; events: `intake.py`; bindings and retries: `calls.py`; the journal: `decisions.py`.
"""

from __future__ import annotations

from topoplace_hosts.kubernetes.scheduler.cluster_state import ClusterState
from topoplace_hosts.kubernetes.scheduler.deciding import decide
from topoplace_hosts.kubernetes.scheduler.scheduler import Scheduler
from topoplace_hosts.kubernetes.scheduler.seats import Seat

__all__ = ["ClusterState", "Scheduler", "Seat", "decide"]
