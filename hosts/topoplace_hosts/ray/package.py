"""The package ray, which is only partly typed."""

from __future__ import annotations

from importlib import import_module
from typing import Any, Final

from topoplace.errors import require_package

require_package("ray", "topoplace_hosts.ray")
ray: Final[Any] = import_module("ray")
placement_groups: Final[Any] = import_module("ray.util.placement_group")
strategies: Final[Any] = import_module("ray.util.scheduling_strategies")
