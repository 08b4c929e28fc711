"""Every Python block of README.md and docs/ runs, the blocks of one file in one namespace, in order.

A line `# -> text` in a block is what the code before it prints.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[2]
PAGES = [REPOSITORY / "README.md", *sorted((REPOSITORY / "docs").glob("*.md"))]
DOCUMENTS = [*PAGES, REPOSITORY / "ARCHITECTURE.md", REPOSITORY / "CONTRIBUTING.md"]
MADE = re.compile(
    "reference/"
)  # pages of the site that tools/site makes; test_docs_site.py follows these links
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.name)
def test_python_blocks_run(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    text = page.read_text("utf-8")
    namespace: dict[str, object] = {"__name__": "__main__"}
    for block in BLOCK.finditer(text):
        line = text.count("\n", 0, block.start(1))
        exec(compile("\n" * line + block[1], str(page), "exec"), namespace)
        promised = re.findall(r"^# -> (.*)$", block[1], re.MULTILINE)
        printed = capsys.readouterr().out.splitlines()
        assert printed == promised, f"{page.name}, line {line + 1}"


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_links_lead_somewhere(document: Path) -> None:
    targets = re.findall(r"\]\((?!https?:)([^)#]+)", document.read_text("utf-8"))
    assert [
        target for target in targets if not (document.parent / target).exists() and not MADE.match(target)
    ] == []


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_named_paths_exist(document: Path) -> None:
    """Every `path/with/slashes` in backquotes is there; <name> and * stand for any text."""
    folders = "cpp|python|tests|docs|benchmarks|examples|tools"
    named = re.findall(rf"`((?:{folders})/[\w./*<>-]*)`", document.read_text("utf-8"))
    globs = {path: re.sub(r"<\w+>", "*", path.rstrip("/")) for path in named}
    assert [path for path, pattern in globs.items() if not list(REPOSITORY.glob(pattern))] == []


def test_rows_of_architecture_name_files() -> None:
    """A name in a row begins at the repository or the package, or is a file beside the one named before it."""
    wrong: list[str] = []
    for row in (REPOSITORY / "ARCHITECTURE.md").read_text("utf-8").splitlines():
        folders = [REPOSITORY, REPOSITORY / "python/topoplace"]
        for name in re.findall(
            r"`([\w./*<>-]+(?:/|\.[ch]pp|\.py|\.md))`", row if row.startswith("|") else ""
        ):
            pattern = re.sub(r"<\w+>", "*", name.rstrip("/"))
            found = next((path for folder in folders for path in folder.glob(pattern)), None)
            if found is None:
                wrong.append(name)
            elif "/" in name:
                folders[2:] = [found if found.is_dir() else found.parent]
    assert wrong == []
