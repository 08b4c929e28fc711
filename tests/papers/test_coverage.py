from __future__ import annotations

import importlib
from pathlib import Path

import pytest

import topoplace
from topoplace.experiments.papers.coverage import Part

PAPERS = ("sc17", "tsubame", "mapa", "gpuaas", "drmaestro")


@pytest.mark.parametrize("paper", PAPERS)
def test_parts_name_files(paper: str) -> None:
    coverage = importlib.import_module(f"topoplace.experiments.papers.{paper}.coverage")
    package = Path(topoplace.__file__).parent
    missing = [path for part in coverage.PARTS for path in part.code if not (package / path).exists()]
    assert missing == []


def test_nothing_is_missing_without_a_reason() -> None:
    with pytest.raises(ValueError, match="neither a row nor a note"):
        Part("Fig. 3", "time", ("machines",))
