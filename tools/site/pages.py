"""A hook of MkDocs: pages of the site that are not files of docs/, and links that lead to them."""

from __future__ import annotations

import posixpath
import re
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from drawings import gallery
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page
from recorded import page as recorded_page
from reference import c, cpp, python_api

from topoplace import cli

_ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(_ROOT / "tools"), str(_ROOT / "benchmarks")]

import write_manual  # noqa: E402
import write_papers  # noqa: E402
import write_trust  # noqa: E402
from published import page as published  # noqa: E402

from duels import record  # noqa: E402

_DOCUMENTS = {
    "README.md": "index.md",
    "ARCHITECTURE.md": "architecture.md",
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
}
"""Pages of the site by the document of the repository that they show."""
_REFERENCES = {
    "python/topoplace": "reference/index.md",
    "cpp/c_interface/topoplace.h": "reference/c.md",
    "cpp/include/topoplace": "reference/cpp.md",
    "tools/write_manual.py": "command-line.md",
    "docs/schemas": "command-line.md",
    "tools/site/drawings.py": "gallery.md",
    "tools/trust/measured": "trust.md",
    "benchmarks/duels/kept.json": "benchmarks.md",
    "benchmarks/suite.txt": "suite.md",
    "tests/objectives/simulated.txt": "simulated.md",
    "tools/published/measurements.json": "published.md",
    "lab/tests/papers/kept": "papers/README.md",
}
"""Made pages by the path of what they are made of: documents link to that, which is there in a clone, too."""
_TABLES = {"suite.md": "Results of the suite", "simulated.md": "Beside network simulators, in tables"}
"""Titles of pages that show kept tables as they are."""
_EXAMPLES = "examples.md"
_WEIGHTS = {
    "reference/": 0.02,
    "decisions.md": 0.1,
    "papers/": 0.1,
    "changelog.md": 0.02,
    "architecture.md": 0.1,
    "contributing.md": 0.1,
    "trust.md": 0.1,
    "examples.md": 0.1,
    "command-line.md": 0.2,
}
"""Weights in searches, by how the paths of pages begin; all others have 1."""
_COPIED = {
    "LICENSE": "LICENSE",
    "CITATION.cff": "CITATION.cff",
    "assets/iframe-worker.js": "tools/site/iframe-worker.js",
    "published/measurements.json": "tools/published/measurements.json",
}
"""Paths of the repository by where they are in the site."""
_TRY = "try"
"""The folder of the page of `topoplace explore` with recorded answers."""
_LINK = re.compile(r"(?<=\]\()(?!\w+:|#)([^)#\s]+)")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages that are not in docs/."""
    made = {page: (_ROOT / name).read_text("utf-8") for name, page in _DOCUMENTS.items()}
    made |= {f"reference/{page}": text for page, text in python_api().items()}
    made |= {_EXAMPLES: _examples(), "reference/c.md": c(), "reference/cpp.md": cpp()}
    made |= {f"{_TRY}/{name}": text for name, text in recorded_page().items()}
    made |= {"command-line.md": write_manual.markdown(write_manual.command_tree(cli.command_parser()))}
    made |= {
        "trust.md": write_trust.text(),
        "published.md": published.page(),
        "benchmarks.md": record.read().page(),
    }
    sources = {page: _ROOT / path for path, page in _REFERENCES.items()}
    made |= {page: f"# {title}\n\n{sources[page].read_text('utf-8')}" for page, title in _TABLES.items()}
    made |= _papers() | gallery()
    for page, text in made.items():
        files.append(File.generated(config, page, content=text))
    for name, path in _COPIED.items():
        files.append(File.generated(config, name, abs_src_path=str(_ROOT / path)))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Let a link to a file of the repository lead to the page that shows it."""
    here = page.file.src_uri
    page.meta["search"] = {"boost": _rank(here)}
    if here.startswith("reference/") or here == _EXAMPLES:
        return markdown
    origin = next((name for name, other in _DOCUMENTS.items() if other == here), f"docs/{here}")

    def of_site(match: re.Match[str]) -> str:
        target = posixpath.normpath(posixpath.join(posixpath.dirname(origin), match[1]))
        return posixpath.relpath(_page_of(target), posixpath.dirname(here) or ".")

    return _LINK.sub(of_site, markdown)


def _rank(page: str) -> float:
    """Return the weight of a page in searches: those that say how to do something come before those that list names."""
    return next((weight for start, weight in _WEIGHTS.items() if page.startswith(start)), 1.0)


def _page_of(path: str) -> str:
    """Return the page of the site that shows a file of the repository."""
    if path == "tools/site/recorded.py":
        return f"{_TRY}/index.html"
    if path == "examples" or path.startswith("examples/"):
        return _EXAMPLES
    return (_DOCUMENTS | _REFERENCES).get(path) or path.removeprefix("docs/")


def _papers() -> dict[str, str]:
    with TemporaryDirectory() as folder:
        write_papers.write(Path(folder))
        return {f"papers/{path.name}": path.read_text("utf-8") for path in Path(folder).iterdir()}


def _examples() -> str:
    parts = ["# Examples", "The tests run each of these programs as it is."]
    for language, pattern in (("python", "*.py"), ("yaml", "*.yaml"), ("c", "*.c"), ("go", "*.go")):
        for path in sorted((_ROOT / "examples").rglob(pattern)):
            name = path.relative_to(_ROOT / "examples").as_posix()
            parts += [f"## {name}", f"```{language}\n{path.read_text('utf-8')}```"]
    return "\n\n".join(parts)
