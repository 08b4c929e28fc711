"""The commands that README.md and docs/ show: all are understood, the tutorial's run, transcripts print what they say.

An indented block that begins with `$` is a transcript: `$ cat FILE` shows a file, and another command prints what
follows it.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest

from command_line import run
from topoplace.cli import command_parser

REPOSITORY = Path(__file__).parents[2]
PAGES = [REPOSITORY / "README.md", *sorted((REPOSITORY / "docs").rglob("*.md"))]
BLOCK = re.compile(r"(?:^    .*\n|^\n(?=    ))+", re.MULTILINE)
COMMAND = re.compile(r"(?:^|\| )topoplace (?!slurm file)(.*)")
PYTHON = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
NVIDIA_SMI = """\
\tGPU0\tGPU1\tGPU2\tGPU3\tCPU Affinity
GPU0\t X \tNV2\tSYS\tSYS\t0-15
GPU1\tNV2\t X \tSYS\tSYS\t0-15
GPU2\tSYS\tSYS\t X \tNV2\t16-31
GPU3\tSYS\tSYS\tNV2\t X \t16-31
"""
TRACE = "job_id,submitted,gpus,duration_s,model\n1,0,2,60,vgg\n2,5,1,30,bert\n3,9,4,20,gpt\n"


def blocks(page: Path) -> Iterator[str]:
    """Yield the indented blocks of a page."""
    text = re.sub(r"^```.*?^```$", "", page.read_text("utf-8"), flags=re.MULTILINE | re.DOTALL)
    for block in BLOCK.findall(text):
        yield re.sub(r"^    ", "", block, flags=re.MULTILINE).lstrip("\n")


def commands(page: Path) -> list[list[str]]:
    """Return the arguments of each `topoplace` command that a page shows."""
    lines = (line.removeprefix("$ ") for block in blocks(page) for line in block.splitlines())
    found = (COMMAND.search(line) for line in lines)
    texts = [
        re.split(r" > | \| ", match[1])[0] for match in found if match
    ]  # what the shell does comes after
    return [shlex.split(text, comments=True) for text in texts]


@pytest.mark.parametrize("page", [page for page in PAGES if commands(page)], ids=lambda page: page.name)
def test_commands_are_understood(page: Path) -> None:
    for arguments in commands(page):
        command_parser().parse_args(arguments)  # exits if an argument is unknown


def test_commands_of_the_tutorial_run(tmp_path: Path) -> None:
    tutorial = REPOSITORY / "docs/tutorial.md"
    policy = next(
        block for block in PYTHON.findall(tutorial.read_text("utf-8")) if "class SlowestLinks" in block
    )
    (tmp_path / "my_policy.py").write_text(f"import topoplace as tp\n{policy}", "utf-8")
    (tmp_path / "topo.txt").write_text(NVIDIA_SMI, "utf-8")
    (tmp_path / "my-trace.csv").write_text(TRACE, "utf-8")
    found = commands(tutorial)
    assert len(found) == 8
    for arguments in found:
        done = run(*arguments, cwd=tmp_path)
        assert (done.returncode, done.stderr) == (0, ""), arguments


@pytest.mark.parametrize(("page", "count"), [("beside", 1), ("mig", 2), ("starting", 1), ("training", 1)])
def test_the_first_commands_of_a_page_run_on_the_examples(page: str, count: int, tmp_path: Path) -> None:
    assert run("example", "--all", cwd=tmp_path).returncode == 0
    for arguments in commands(REPOSITORY / f"docs/{page}.md")[:count]:
        assert run(*arguments, cwd=tmp_path).returncode == 0, arguments


def test_make_demo_takes_documented_commands_and_writes_what_it_names(tmp_path: Path) -> None:
    recipe = (REPOSITORY / "Makefile").read_text("utf-8").partition("\ndemo:")[2].partition("\n\n")[0]
    found = [shlex.split(line)[1:] for line in recipe.splitlines() if line.startswith("\ttopoplace ")]
    assert [words[0] for words in found] == ["place", "simulate"]
    for arguments in found:
        done = run(*arguments, cwd=tmp_path)
        assert (done.returncode, done.stderr) == (0, ""), arguments
    assert (tmp_path / "out/report.html").is_file()
    assert len([*(tmp_path / "out").glob("*.png")]) == 2


def transcripts() -> list[tuple[Path, str]]:
    return [(page, block) for page in PAGES for block in blocks(page) if block.startswith("$ ")]


def test_there_are_transcripts() -> None:
    assert len(transcripts()) >= 2


@pytest.mark.parametrize(
    "block", [pytest.param(block, id=f"{page.name} {block[:40]}") for page, block in transcripts()]
)
def test_transcripts(block: str, tmp_path: Path) -> None:
    for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
        command, _, shown = part.partition("\n")
        program, *arguments = shlex.split(command)
        if program == "cat":
            path = tmp_path / arguments[0]
            if path.exists():  # a command before has written it
                assert path.read_text("utf-8") == shown
            path.write_text(shown, "utf-8")
            continue
        assert program == "topoplace"
        done = run(*arguments, cwd=tmp_path)
        printed = [line.rstrip() for line in done.stdout.rstrip().splitlines()]
        assert printed == shown.rstrip().splitlines(), command
