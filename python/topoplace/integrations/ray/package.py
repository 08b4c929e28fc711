"""The package ray, whose types are known only in part."""

from __future__ import annotations

from importlib import import_module
from typing import Any, Final

from topoplace.errors import require_package

require_package("ray", "topoplace.integrations.ray")
ray: Final[Any] = import_module("ray")
placement_groups: Final[Any] = import_module("ray.util.placement_group")
strategies: Final[Any] = import_module("ray.util.scheduling_strategies")
