"""A scheduler for pods that need GPUs: it gives them a node and the GPUs there, and binds them through the API."""

from __future__ import annotations

from topoplace.integrations.kubernetes.scheduler.cluster_state import ClusterState
from topoplace.integrations.kubernetes.scheduler.deciding import decide
from topoplace.integrations.kubernetes.scheduler.scheduler import Scheduler
from topoplace.integrations.kubernetes.scheduler.seats import Seat

__all__ = ["ClusterState", "Scheduler", "Seat", "decide"]
