"""topoplace inside Ray: exact GPUs for tasks and actors, gangs all or nothing.

To change:

- What is free: `resources.py`; the decision: `placer.py`; a job's GPUs until their release: `gang.py`; Ray Train:
  `train.py`.
"""

from __future__ import annotations

from topoplace.integrations.ray.gang import Gang
from topoplace.integrations.ray.placer import RayPlacer
from topoplace.integrations.ray.resources import node_resources

__all__ = ["Gang", "RayPlacer", "node_resources"]
