"""Machines that nodes describe themselves: each writes its own as a ConfigMap, and schedulers read them all.

To change:

- The ConfigMaps: `texts.py`; who follows them: `followed.py`; the command: `kubernetes/options/label.py`.
"""

from __future__ import annotations

from topoplace_hosts.kubernetes.machines.followed import FollowedMachines
from topoplace_hosts.kubernetes.machines.texts import NAMESPACE, config_map, machine

__all__ = ["NAMESPACE", "FollowedMachines", "config_map", "machine"]
