"""topoplace inside Ray: exact GPUs for tasks and actors, and gangs that start all or nothing.

To change:

- What is free: `resources.py`; the decision: `placer.py`; a job's GPUs until their release: `gang.py`; Ray Train:
  `train.py`.
"""

from __future__ import annotations

from topoplace_hosts.ray.gang import Gang
from topoplace_hosts.ray.placer import RayPlacer
from topoplace_hosts.ray.resources import node_resources

__all__ = ["Gang", "RayPlacer", "node_resources"]
