"""Names of a package that are loaded when they are first used."""

from __future__ import annotations

import importlib
import re
import sys
from collections.abc import Callable
from typing import Any

_IMPORT = re.compile(r"^    from (\S+) import (\w+) as (\w+)$", re.MULTILINE)


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
        if where != package and hasattr(above := importlib.import_module(where), original):
            value = getattr(above, original)
        else:
            value = importlib.import_module(f"{where}.{original}")
        setattr(module, name, value)
        return value

    names = sorted(home)
    return get, lambda: names, names
