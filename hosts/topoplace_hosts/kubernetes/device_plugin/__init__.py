"""A device plugin of the kubelet: `DevicePlugin` is the service, `PreferredAllocation` only the choice of devices.

An existing plugin in Python calls `PreferredAllocation.choose`; one in another language forwards its
GetPreferredAllocation calls to the socket of a `DevicePlugin`.

To change:

- The choice: `preferred.py`; methods: `service.py`; health and NUMA nodes: `device_list.py`, `nvml_health.py`; the
  socket: `plugin.py`; what the scheduler decided: `decided.py`; messages: `device_plugin.proto` in this folder,
  `messages.py`, `tools/check_messages.py`.
"""

from __future__ import annotations

from topoplace_hosts.kubernetes.device_plugin.plugin import DIRECTORY, DevicePlugin, Unhealthy
from topoplace_hosts.kubernetes.device_plugin.preferred import PreferredAllocation
from topoplace_hosts.kubernetes.device_plugin.service import Passing

__all__ = ["DIRECTORY", "DevicePlugin", "Passing", "PreferredAllocation", "Unhealthy"]
