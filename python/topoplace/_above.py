"""Functions that methods of the values, such as `Topology.from_nvidia_smi`, call in modules above them.

No value imports what stands above it. A value asks here for a function by name. The package's `__init__.py` names the
function's module, which is loaded at the first call.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

_HOME: dict[str, str] = {}


def offer(package: str, home: Mapping[str, str]) -> None:
    """Let the values ask for functions by name; home: MODULE:FUNCTION below `package`, by name."""
    _HOME.update({name: f"{package}.{where}" for name, where in home.items()})


def given(name: str) -> Callable[..., Any]:
    """Return a function that calls the one that is offered by this name."""

    def call(*arguments: Any, **named: Any) -> Any:
        module, _, function = _HOME[name].partition(":")
        return getattr(import_module(module), function)(*arguments, **named)

    return call
