"""Every real sample next to the checkout is read as it should be, or refused as it should be; a table says which."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable
from pathlib import Path

import pytest

import samples
from samples import Expected

EXPECTED: dict[str, Expected] = {}
for module in pkgutil.iter_modules(samples.__path__):
    EXPECTED |= importlib.import_module(f"samples.{module.name}").EXPECTED


@pytest.mark.parametrize("name", sorted(EXPECTED))
def test_sample(name: str, shared: Path, record_property: Callable[[str, object], None]) -> None:
    path = shared / "data/topo" / name
    if not path.exists():
        pytest.skip(f"the sample {name} is not on this machine")
    record_property("says", EXPECTED[name].says)
    EXPECTED[name].check(path.read_bytes())


def test_no_sample_is_forgotten(shared: Path) -> None:
    there = {path.name for path in (shared / "data/topo").iterdir()} - {"INDEX.md"}
    assert there == set(EXPECTED)
