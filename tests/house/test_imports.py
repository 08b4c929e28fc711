"""No circle of imports between files, those for type checkers and those inside functions included."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

# Methods that open what stands above them, imported when they are called: the only imports that go up. The package
# itself is the front door of all public names.
LAZY_DOORS = {
    "topoplace.topology.topology": (
        "topoplace.discovery",
        "topoplace.drawing",
        "topoplace.topology.assemble",
        "topoplace.topology.cluster_links",
        "topoplace.topology.tiling",
        "topoplace.topology.topology_json",
        "topoplace.topology.topology_networkx",
    ),
    "topoplace.cluster.cluster": ("topoplace.drawing",),
    "topoplace.collective.measuring.measurements": ("topoplace.collective.measuring.measurements_json",),
    "topoplace.collective.rates": ("topoplace.collective.rates_json",),
    "topoplace.jobs.job_graph": ("topoplace.jobs.job_json", "topoplace.jobs.roles"),
    "topoplace.placement": ("topoplace.drawing", "topoplace.launch", "topoplace.objectives.communication"),
    "topoplace.experiments.simulate.metrics": (
        "topoplace.experiments.report.measures",
        "topoplace.experiments.report.plots",
        "topoplace.experiments.simulate.storage.results",
    ),
}


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


def is_door(module: str, name: str) -> bool:
    return any(f"{name}.".startswith(f"{door}.") for door in LAZY_DOORS.get(module, ()))


@pytest.fixture(scope="module")
def imports(repository: Path) -> dict[str, list[tuple[str, int]]]:
    known = modules(repository / "python" / "topoplace")
    found = {name: list(imported(ast.parse(path.read_text("utf-8")), known)) for name, path in known.items()}
    return {name: edges for name, edges in found.items() if name != "topoplace"}


def test_no_circle_of_imports(imports: dict[str, list[tuple[str, int]]]) -> None:
    graph = {
        module: {name for name, _ in edges if name not in (module, "topoplace") and not is_door(module, name)}
        for module, edges in imports.items()
    }
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        pytest.fail(" imports ".join(reversed(error.args[1])))


def test_doors_are_lazy_and_none_is_left_over(imports: dict[str, list[tuple[str, int]]]) -> None:
    for module, doors in LAZY_DOORS.items():
        depths = {
            door: [d for name, d in imports[module] if f"{name}.".startswith(f"{door}.")] for door in doors
        }
        assert all(depths.values()), (
            f"{module} no longer opens {[door for door in doors if not depths[door]]}"
        )
        assert all(min(found) > 0 for found in depths.values()), f"{module} imports a door at its top"
