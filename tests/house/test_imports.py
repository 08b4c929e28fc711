"""No circle of imports between files, those for type checkers and those inside functions included."""

from __future__ import annotations

import ast
import importlib
import re
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

from topoplace import _above

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
def imports(repository: Path) -> dict[str, list[tuple[str, int]]]:
    known = modules(repository / "python" / "topoplace")
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


def test_what_values_ask_of_modules_above_is_what_the_front_doors_offer(repository: Path) -> None:
    texts = "\n".join(path.read_text("utf-8") for path in (repository / "python").rglob("*.py"))
    asked = set(re.findall(r'_above\.given\("(\w+)"\)', texts))
    importlib.import_module("topoplace.experiments")
    assert asked == _above._HOME.keys()
    for where in _above._HOME.values():
        module, _, function = where.partition(":")
        assert callable(getattr(importlib.import_module(module), function)), where
