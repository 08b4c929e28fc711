"""The site is built without a warning, shows every public name, and asks nothing of other hosts."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

griffe = pytest.importorskip("griffe")
pytest.importorskip("material")
pytest.importorskip("matplotlib")

from packages import PACKAGES, REPOSITORY  # noqa: E402
from thoroughness import thorough  # noqa: E402

ELSEWHERE = re.compile(
    r"<(?:script|img|iframe)\b[^>]*\bsrc=.https?:|<link\b[^>]*\bstylesheet\b[^>]*\bhref=.https?:"
)
sys.path.insert(0, str(REPOSITORY / "tools/site"))

import drawings  # noqa: E402
import pictures  # noqa: E402
from reference import public_modules, public_names  # noqa: E402


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the site; but for the night, the page of `topoplace explore` has the answers for few states."""
    folder = tmp_path_factory.mktemp("site")
    program = "from mkdocs.__main__ import cli; cli()"
    if thorough(0, 1):
        program = f"import recorded; recorded.MACHINES, recorded.SIZES = ('minsky',), (2,); {program}"
    done = subprocess.run(
        [
            *(sys.executable, "-c", f"import sys; sys.path.append('tools/site'); {program}"),
            *("build", "--quiet", "--strict", "--site-dir", str(folder)),
        ],
        cwd=REPOSITORY,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stderr) == (0, "")
    return folder


def test_what_renders_the_reference_finds_each_public_name() -> None:
    loader = griffe.GriffeLoader(search_paths=[package.parent for package in PACKAGES])
    loaded = {package.name: loader.load(package.name) for package in PACKAGES}
    for module in public_modules():
        top, _, below = module.__name__.partition(".")
        within = loaded[top][below]
        assert [name for name in public_names(module) if name not in within.members] == [], module.__name__


def test_no_source_of_a_page_names_a_picture_elsewhere() -> None:
    elsewhere = re.compile(r"!\[[^\]]*\]\(https?:|" + ELSEWHERE.pattern)
    pages = list((REPOSITORY / "docs").rglob("*.md"))
    assert len(pages) > 20
    assert [page.name for page in pages if elsewhere.search(page.read_text("utf-8"))] == []


@pytest.mark.deep
def test_each_public_name_has_an_entry(site: Path) -> None:
    entries = {
        entry
        for page in (site / "reference").glob("*.html")
        for entry in re.findall(r'<h\d id="(topoplace[\w.]+)"', page.read_text("utf-8"))
    }
    for module in public_modules():
        missing = [name for name in public_names(module) if f"{module.__name__}.{name}" not in entries]
        assert missing == [], module.__name__


@pytest.mark.deep
def test_nothing_is_loaded_from_elsewhere(site: Path) -> None:
    pages = list(site.rglob("*.html"))
    assert len(pages) > 50
    assert [page.name for page in pages if ELSEWHERE.search(page.read_text("utf-8"))] == []


def test_the_picture_of_readme_is_that_of_the_library() -> None:
    assert drawings.SHOWN.read_text("utf-8") == drawings.before_after()


def test_pages_are_made_from_records_and_show_their_pictures(site: Path) -> None:
    for page in ("command-line", "trust", "published", "gallery", "papers/index", "papers/sc17"):
        text = (site / f"{page}.html").read_text("utf-8")
        for picture in re.findall(r'<img [^>]*src="([^":]+\.svg)"', text):
            assert (site / page).parent.joinpath(picture).is_file(), (page, picture)
    assert len([*(site / "images").glob("*.svg")]) > 15
    assert (site / "schemas/place.json").is_file()


def test_pictures_are_drawn_from_answers() -> None:
    cut = pictures.collective()
    assert "4 · 72 / 3 = 96 GB/s" in cut  # text stays text
