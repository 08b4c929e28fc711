from __future__ import annotations

import importlib

import pytest

from packages import PACKAGES
from topoplace_lab.papers.coverage import Part

PAPERS = ("sc17", "tsubame", "mapa", "gpuaas", "drmaestro")


@pytest.mark.parametrize("paper", PAPERS)
def test_parts_name_files(paper: str) -> None:
    coverage = importlib.import_module(f"topoplace_lab.papers.{paper}.coverage")
    missing = [
        path
        for part in coverage.PARTS
        for path in part.code
        if not any((package / path).exists() for package in PACKAGES)
    ]
    assert missing == []


def test_nothing_is_missing_without_a_reason() -> None:
    with pytest.raises(ValueError, match="neither a row nor a note"):
        Part("Fig. 3", "time", ("machines",))
