from __future__ import annotations

import sys
from pathlib import Path

import pytest

from packages import PACKAGES

sys.path.insert(0, str(Path(__file__).parents[3] / "tools"))

from paper_pages import coverage

PAPERS = ("sc17", "tsubame", "mapa", "gpuaas", "drmaestro")


@pytest.mark.parametrize("paper", PAPERS)
def test_parts_name_files(paper: str) -> None:
    missing = [
        path
        for part in coverage.of_paper(paper).parts
        for path in part.code
        if not any((package / path).exists() for package in PACKAGES)
    ]
    assert missing == []


def test_nothing_is_missing_without_a_reason() -> None:
    with pytest.raises(ValueError, match="neither a row nor a note"):
        coverage.Part("Fig. 3", "time", ("machines",))
