"""The site is built without a warning, shows every public name, and asks nothing of other hosts."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("material")
pytest.importorskip("matplotlib")

REPOSITORY = Path(__file__).parents[2]
sys.path.insert(0, str(REPOSITORY / "tools/site"))

import drawings  # noqa: E402
import pictures  # noqa: E402
from reference import public_modules, public_names  # noqa: E402


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--quiet", "--strict", "--site-dir", str(folder)],
        cwd=REPOSITORY,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stderr) == (0, "")
    return folder


def test_each_public_name_has_an_entry(site: Path) -> None:
    entries = {
        entry
        for page in (site / "reference").glob("*.html")
        for entry in re.findall(r'<h\d id="(topoplace[\w.]+)"', page.read_text("utf-8"))
    }
    for module in public_modules():
        missing = [name for name in public_names(module) if f"{module.__name__}.{name}" not in entries]
        assert missing == [], module.__name__


def test_nothing_is_loaded_from_elsewhere(site: Path) -> None:
    elsewhere = re.compile(
        r"<(?:script|img|iframe)\b[^>]*\bsrc=.https?:|<link\b[^>]*\bstylesheet\b[^>]*\bhref=.https?:"
    )
    pages = list(site.rglob("*.html"))
    assert len(pages) > 50
    assert [page.name for page in pages if elsewhere.search(page.read_text("utf-8"))] == []


def test_drawings_are_those_of_the_library() -> None:
    kept = {path.stem: path.read_text("utf-8") for path in drawings.IMAGES.glob("*.svg")}
    assert kept == dict(drawings.pictures())


def test_pictures_are_drawn_from_answers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pictures, "IMAGES", tmp_path)
    for draw in (pictures.partition, pictures.mapping, pictures.flow, pictures.collective, pictures.capacity):
        draw()
    drawn = {path.name for path in tmp_path.iterdir()}
    assert drawn == {path.name for path in (REPOSITORY / "docs/images").glob("*.svg")}
    cut = (tmp_path / "collective-cut.svg").read_text("utf-8")
    assert "4 · 72 / 3 = 96 GB/s" in cut  # text stays text
