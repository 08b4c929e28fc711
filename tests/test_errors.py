"""Optional packages: what is missing is named with the extra that installs it, and every extra exists."""

from __future__ import annotations

import sys
import tomllib
from pathlib import Path

import pytest

import topoplace as tp
from distributions import whole
from topoplace import errors


@pytest.mark.parametrize("module", errors._OPTIONAL_PACKAGES)
def test_the_extra_that_installs_it_is_named(
    module: str, repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package, wanted = errors._OPTIONAL_PACKAGES[module]
    distribution, _, extra = wanted.rstrip("]").partition("[")
    folder = repository / distribution.removeprefix("topoplace").removeprefix("-")
    project = tomllib.loads((folder / "pyproject.toml").read_text("utf-8"))["project"]
    assert extra in project["optional-dependencies"]
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(ModuleNotFoundError) as caught:
        errors.require_package(module, "this")
    assert str(caught.value) == f"this needs {package}: pip install '{wanted}'"


@whole
def test_conversions_name_what_they_need(monkeypatch: pytest.MonkeyPatch) -> None:
    topology = tp.machines.get("minsky")
    run = tp.simulate(topology, tp.simulate.Workload.mapa(1), tp.policies.get("baseline"))
    for module in ("networkx", "pandas"):
        monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(
        ImportError, match=r"^to_networkx needs networkx: pip install 'topoplace\[networkx\]'$"
    ):
        topology.to_networkx()
    with pytest.raises(ImportError, match=r"^to_pandas needs pandas: pip install 'topoplace-lab\[pandas\]'$"):
        run.to_pandas()
