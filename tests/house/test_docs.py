"""Every Python block of README.md and docs/ runs, the blocks of one file in one namespace, in order.

A line `# -> text` in a block is what the code before it prints.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[2]
PAGES = [REPOSITORY / "README.md", *sorted((REPOSITORY / "docs").glob("*.md"))]
DOCUMENTS = [
    *(REPOSITORY / name for name in ("README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md")),
    *sorted((REPOSITORY / "docs").rglob("*.md")),
]
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.name)
def test_python_blocks_run(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    namespace: dict[str, object] = {"__name__": "__main__"}
    for block in BLOCK.finditer(page.read_text("utf-8")):
        run_block(block, page, namespace)
        promised = re.findall(r"^# -> (.*)$", block[1], re.MULTILINE)
        printed = capsys.readouterr().out.splitlines()
        assert printed == promised, f"{page.name}, line {line_of(block)}"


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.name)
def test_a_block_that_imports_topoplace_can_be_pasted_alone(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    later = [*BLOCK.finditer(page.read_text("utf-8"))][1:]
    for block in later:
        if block[1].startswith("import topoplace as tp\n"):
            run_block(block, page, {"__name__": "__main__"})


def run_block(block: re.Match[str], page: Path, namespace: dict[str, object]) -> None:
    """Run a block as if it stood alone in its page, so that errors have the page's lines."""
    exec(compile("\n" * (line_of(block) - 1) + block[1], str(page), "exec"), namespace)


def line_of(block: re.Match[str]) -> int:
    return block.string.count("\n", 0, block.start(1)) + 1


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.relative_to(REPOSITORY).as_posix())
def test_links_lead_somewhere(document: Path) -> None:
    targets = re.findall(r"\]\((?!https?:)([^)#]+)", document.read_text("utf-8"))
    assert [target for target in targets if not (document.parent / target).exists()] == []


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.relative_to(REPOSITORY).as_posix())
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
