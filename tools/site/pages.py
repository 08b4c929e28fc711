"""A hook of MkDocs: pages of the site that are not files of docs/, and links that lead to them."""

from __future__ import annotations

import posixpath
import re
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page
from recorded import page as recorded_page
from reference import c, cpp, python_api

_ROOT = Path(__file__).parents[2]
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
}
"""Pages made of the code by the path of the code: documents link to the code, which is there in a clone, too."""
_EXAMPLES = "examples.md"
_WEIGHTS = {
    "which-policy.md": 2.0,
    "reference/": 0.02,
    "decisions/": 0.1,
    "papers/": 0.1,
    "changelog.md": 0.02,
    "architecture.md": 0.1,
    "contributing.md": 0.1,
    "releasing.md": 0.1,
    "debugging.md": 0.1,
    "trust.md": 0.1,
    "examples.md": 0.1,
    "command-line.md": 0.2,
}
"""Weights in searches, by how the paths of pages begin; all others have 1."""
_COPIED = {
    "LICENSE": "LICENSE",
    "CITATION.cff": "CITATION.cff",
    "assets/iframe-worker.js": "tools/site/iframe-worker.js",
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


def _examples() -> str:
    parts = ["# Examples", "The tests run each of these programs as it is."]
    for language, pattern in (("python", "*.py"), ("yaml", "*.yaml"), ("c", "*.c"), ("go", "*.go")):
        for path in sorted((_ROOT / "examples").rglob(pattern)):
            name = path.relative_to(_ROOT / "examples").as_posix()
            parts += [f"## {name}", f"```{language}\n{path.read_text('utf-8')}```"]
    return "\n\n".join(parts)
