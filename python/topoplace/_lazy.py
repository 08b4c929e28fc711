"""Names that are loaded when they are first used: those of packages, and functions that stand above the values.

No value, such as `Topology`, imports what stands above it. Its methods ask here for a function by name. The package's
`__init__.py` names the function's module, which is loaded at the first call.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

_IMPORT = re.compile(r"^    from (\S+) import (\w+) as (\w+)$", re.MULTILINE)
_HOME: dict[str, str] = {}


def lazily(package: str) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """Return `__getattr__`, `__dir__` and `__all__` of a package.

    The names are read from the imports for type checkers, `from MODULE import NAME as NAME` under `if TYPE_CHECKING`,
    so that each is listed only once.
    """
    module = sys.modules[package]
    source = getattr(module.__loader__, "get_source")(package)  # noqa: B009
    home = {shown: (where, name) for where, name, shown in _IMPORT.findall(source)}

    def get(name: str) -> Any:
        if name not in home:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        where, original = home[name]
        if where != package and hasattr(above := import_module(where), original):
            value = getattr(above, original)
        else:
            value = import_module(f"{where}.{original}")
        setattr(module, name, value)
        return value

    names = sorted(home)
    return get, lambda: names, names


def offer(package: str, home: Mapping[str, str]) -> None:
    """Let the values ask for functions by name; home: MODULE:FUNCTION below `package`, by name."""
    _HOME.update({name: f"{package}.{where}" for name, where in home.items()})


def above(name: str) -> Callable[..., Any]:
    """Return a function that calls the one that is offered by this name."""

    def call(*arguments: Any, **named: Any) -> Any:
        module, _, function = _HOME[name].partition(":")
        return getattr(import_module(module), function)(*arguments, **named)

    return call
