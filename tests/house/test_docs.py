"""Every Python block of README.md and docs/ runs, the blocks of one file in one namespace, in order.

A line `# -> text` in a block is what the code before it prints.
"""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from packages import PACKAGES, REPOSITORY, own_name

PAGES = [REPOSITORY / "README.md", *sorted((REPOSITORY / "docs").glob("*.md"))]
DOCUMENTS = [
    *(
        REPOSITORY / name
        for name in ("README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md", "cpp/README.md")
    ),
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


NAME = re.compile(r"`([\w./*<>-]+(?:/|\.(?:[ch]pp|py|md|sh|h|lua|html|css|js|proto)))`")


def missing_files(text: str, folders: list[Path]) -> list[str]:
    """Return the names in `text` that are no file or folder.

    A name begins at one of `folders`, or in the folder of one named before it in the text.
    """
    wrong: list[str] = []
    near: list[Path] = []
    for name in NAME.findall(text):
        pattern = re.sub(r"<\w+>", "*", name.rstrip("/"))
        found = next((path for folder in [*folders, *near] for path in folder.glob(pattern)), None)
        if found is None:
            wrong.append(name)
        elif "/" in name:
            near += [found, found.parent] if found.is_dir() else [found.parent]
    return wrong


@pytest.mark.parametrize("document", ["ARCHITECTURE.md", "cpp/README.md"])
def test_maps_of_the_code_name_files(document: str) -> None:
    items = re.split(r"^(?=[|-] )", (REPOSITORY / document).read_text("utf-8"), flags=re.MULTILINE)
    folders = [REPOSITORY, *PACKAGES]
    assert [name for item in items[1:] for name in missing_files(item, folders)] == []


def packages_with_a_guide() -> list[Path]:
    """Return the `__init__.py` of packages whose docstring says which file to change."""
    files = sorted(path for package in PACKAGES for path in package.rglob("__init__.py"))
    return [path for path in files if "\nTo change:\n" in path.read_text("utf-8")]


def test_packages_of_many_files_have_a_guide() -> None:
    """A list of what to change is in the docstring of each package with more than ten modules, the commands aside."""
    folders = [path.parent for package in PACKAGES for path in package.rglob("__init__.py")]
    large = {folder for folder in folders if len([*folder.glob("*.py")]) > 10 and folder.name != "commands"}
    assert large - {path.parent for path in packages_with_a_guide()} == {
        REPOSITORY / "lab/topoplace_lab/capacity/planners",  # in that of `capacity`
    }


@pytest.mark.parametrize(
    "package",
    packages_with_a_guide(),
    ids=lambda path: own_name(path.parent),
)
def test_guides_of_packages_name_files(package: Path) -> None:
    guide = (ast.get_docstring(ast.parse(package.read_text("utf-8"))) or "").partition("\nTo change:\n")[2]
    assert guide.strip()
    folders = [package.parent, *PACKAGES, REPOSITORY]
    assert missing_files(guide, folders) == []
