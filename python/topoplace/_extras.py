"""Optional packages: which extra of topoplace installs each, and one error for all that are missing.

Call `need` before the work that uses a package, not after: a run of minutes must not end in a missing package.
"""

from __future__ import annotations

import importlib
from typing import Final

# Module to import -> (name of the package in messages, extra of topoplace that installs it).
_PACKAGES: Final = {
    "defusedxml.sax": ("defusedxml", "discovery"),
    "highspy": ("HiGHS", "capacity"),
    "matplotlib.figure": ("matplotlib", "plot"),
    "networkx": ("networkx", "networkx"),
    "pandas": ("pandas", "pandas"),
    "yaml": ("PyYAML", "discovery"),
}


def need(module: str, what: str) -> None:
    """Import `module`, an optional package; ModuleNotFoundError says that `what` needs it and how to install it.

    module: one of "defusedxml.sax", "highspy", "matplotlib.figure", "networkx", "pandas", "yaml". what: the function or
    option that uses it.
    """
    package, extra = _PACKAGES[module]
    try:
        importlib.import_module(module)
    except ImportError:
        message = f"{what} needs {package}: pip install 'topoplace[{extra}]'"
        raise ModuleNotFoundError(message) from None
