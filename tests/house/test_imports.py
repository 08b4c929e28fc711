"""No circle of imports between files, those for type checkers and those inside functions included."""

from __future__ import annotations

import ast
import importlib
import pkgutil
import re
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from types import ModuleType

import pytest

from packages import PACKAGES
from topoplace import _lazy

# Imports for type checkers alone that would close a circle.
FOR_TYPES = frozenset(
    {
        ("topoplace.jobs.roles", "topoplace.jobs.job_graph"),
        ("topoplace.topology.cluster_links", "topoplace.topology.tiling"),
        ("topoplace.topology.topology", "topoplace.topology.cluster_links"),
        ("topoplace.topology.topology", "topoplace.topology.tiling"),
    }
)


def modules(package: Path) -> dict[str, Path]:
    found: dict[str, Path] = {}
    for path in sorted(package.rglob("*.py")):
        parts = path.relative_to(package.parent).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def imported(tree: ast.AST, known: dict[str, Path]) -> Iterator[tuple[str, int]]:
    """Yield each module of the package that `tree` imports, and how deep the statement is indented."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            below = [f"{node.module}.{alias.name}" for alias in node.names]
            names = [name if name in known else node.module for name in below if "_core" not in name]
        else:
            continue
        yield from ((name, node.col_offset) for name in names if name in known)


@pytest.fixture(scope="module")
def imports() -> dict[str, list[tuple[str, int]]]:
    known: dict[str, Path] = {}
    for package in PACKAGES:
        known |= modules(package)
    found = {name: list(imported(ast.parse(path.read_text("utf-8")), known)) for name, path in known.items()}
    return {name: edges for name, edges in found.items() if name != "topoplace"}


def test_no_circle_of_imports(imports: dict[str, list[tuple[str, int]]]) -> None:
    graph = {
        module: {
            name for name, _ in edges if name not in (module, "topoplace") and (module, name) not in FOR_TYPES
        }
        for module, edges in imports.items()
    }
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        pytest.fail(" imports ".join(reversed(error.args[1])))


def test_what_values_ask_of_modules_above_is_what_the_front_doors_offer() -> None:
    files = (path for package in PACKAGES for path in package.rglob("*.py"))
    texts = "\n".join(path.read_text("utf-8") for path in files)
    asked = set(re.findall(r'\babove\("(\w+)"\)', texts))
    importlib.import_module("topoplace_lab")
    assert asked == _lazy._HOME.keys()
    for where in _lazy._HOME.values():
        module, _, function = where.partition(":")
        assert callable(getattr(importlib.import_module(module), function)), where


@pytest.mark.parametrize("package", ["collective", "kernels", "objectives", "policies"])
def test_no_name_of_a_package_is_that_of_a_module_in_it(package: str) -> None:
    """Importing the module would put it in the place of the name, which is loaded lazily."""
    found = importlib.import_module(f"topoplace.{package}")
    modules = {one.name for one in pkgutil.iter_modules(found.__path__)}
    assert not [
        name
        for name in modules.intersection(found.__all__)
        if not isinstance(getattr(found, name), ModuleType)
    ]
