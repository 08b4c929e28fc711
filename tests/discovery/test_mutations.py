"""No broken text does more than be refused: of every fixture, and of every real sample next to the checkout."""

from __future__ import annotations

import os
import tracemalloc
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import mutations
from mutations import FIXTURES, WAYS, format_of, refused_at_most, swollen
from thoroughness import share, thorough
from topoplace import discovery

SAMPLES = Path(os.environ.get("TOPOPLACE_SHARED", Path(__file__).parents[3] / "shared")) / "data/topo"
REAL = sorted(path for path in SAMPLES.iterdir() if path.suffix != ".md") if SAMPLES.is_dir() else []
ONE_OF_EACH_FORMAT = {format_of(path): path for path in reversed(FIXTURES)}.values()
TEXTS = {path.name: path for path in (*FIXTURES, *REAL)}


@pytest.mark.parametrize("name", sorted(TEXTS))
def test_broken_text_is_refused_at_most(name: str) -> None:
    original, format = TEXTS[name].read_bytes(), format_of(TEXTS[name])

    @settings(max_examples=thorough(1000, 8), suppress_health_check=list(HealthCheck), database=None)
    @given(st.data())
    def check(data: st.DataObject) -> None:
        refused_at_most(data.draw(mutations.broken(original)), format)

    check()


def test_every_format_has_a_fixture() -> None:
    found = {format_of(path) for path in FIXTURES}
    assert {one.name for one in discovery.formats()} - {one.name for one in found if one} == {
        "topoplace JSON"
    }


@pytest.mark.parametrize("path", ONE_OF_EACH_FORMAT, ids=lambda path: path.name)
def test_anything_needs_little_memory(path: Path) -> None:
    original, format = path.read_bytes(), format_of(path)
    size = thorough(1 << 20, 1 << 16)
    refused_at_most(original, format)  # imports and caches are paid for before the measurement
    for how in share(WAYS, sorted(TEXTS).index(path.name), of=len(WAYS)):
        data = swollen(original, how, size)
        for one in (None, format):  # by its content, and by its name
            tracemalloc.start()
            refused_at_most(data, one, by_content=one is None)
            peak = tracemalloc.get_traced_memory()[1]
            tracemalloc.stop()
            assert peak <= 20 * len(data) + (4 << 20), how
