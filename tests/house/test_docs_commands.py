"""The commands that README.md and docs/ show: all are understood, and run where they can; transcripts are true.

An indented block that begins with `$` is a transcript: `$ cat FILE` shows a file, and another command prints what
follows it.
"""

from __future__ import annotations

import gzip
import re
import shlex
import shutil
from collections.abc import Iterator
from glob import glob
from pathlib import Path
from typing import Final

import pytest

from command_line import run
from offline_commands import NOT_HERE, why_not
from topoplace.cli import command_parser
from topoplace.cli.example_files import content, files

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


MODELS: Final = "job_id,submit_s,num_gpus,model\n1,0,2,vgg\n2,5,1,alexnet\n"
IN_DOCS: Final = {
    **NOT_HERE,
    "kubernetes resource-slices": "needs a GPU of this host",
    "show dgx1-v100 --collective 2 --rates": "needs what `show measure` writes",
    "simulate openb-nodes": "needs Alibaba's trace",
    "papers tsubame --log": "needs the accounting logs",
    "state /var": "needs a scheduler that runs",
    "sweep": "takes a minute; the manual's sweep runs",
    "place cluster.json --parallel tensor=4,pipeline=4,data=32": "needs a cluster of 512 GPUs",
}
"""Commands of the docs that do not run here, by how they begin, and why."""
OWN: Final = {
    "after.json": "today.json",
    "before.json": "monday.json",
    "gres.conf": None,
    "jobs.txt": None,
    "node1.txt": "topo.txt",
    "nodes.txt": None,
    "trace.csv.gz": None,
    "year.swf": "cluster.swf",
}
"""Files that readers have of their own, and the example that stands for each."""
ELSEWHERE: Final = ("tutorial",)
"""Pages whose commands another test runs."""


def lone_commands(page: Path) -> list[list[str]]:
    """Return the commands of a page that are in no transcript and can run here, with the files that `*` stands for."""
    shown = commands(page)
    for block in blocks(page):
        if block.startswith("$ "):
            shown = [one for one in shown if f"$ topoplace {shlex.join(one)}" not in block]
    return [one for one in shown if why_not(f"{shlex.join(one)}  ", IN_DOCS) is None]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a folder with the files of `topoplace example --all`, and those that readers have."""
    for name in files():
        (tmp_path / name).write_bytes(content(name))
    for name, example in OWN.items():
        if example:
            shutil.copy(tmp_path / example, tmp_path / name)
    nodes, jobs = content("scontrol.txt").split(b"JobId=", 1)
    (tmp_path / "nodes.txt").write_bytes(nodes)
    (tmp_path / "jobs.txt").write_bytes(b"JobId=" + jobs)
    (tmp_path / "trace.csv.gz").write_bytes(gzip.compress(MODELS.encode()))
    (tmp_path / "gres.conf").write_text("NodeName=tux3 Name=gpu Type=v100 File=/dev/nvidia[0-3]\n", "utf-8")
    return tmp_path


@pytest.mark.parametrize(
    "page",
    [page for page in PAGES if page.stem not in ELSEWHERE and lone_commands(page)],
    ids=lambda page: page.stem,
)
def test_commands_of_a_page_run_as_printed(page: Path, folder: Path) -> None:
    """They end with 0, or with 1 for a negative answer, such as a refusal."""
    for arguments in lone_commands(page):
        words = [name for word in arguments for name in sorted(glob(word, root_dir=folder)) or [word]]
        done = run(*words, cwd=folder, stdin=content("topo.txt"))
        assert done.returncode in (0, 1), (arguments, done.stderr)
        assert done.stdout, arguments


def test_each_reason_not_to_run_a_command_is_of_one_that_the_docs_show() -> None:
    shown = [f"{shlex.join(arguments)}  " for page in PAGES for arguments in commands(page)]
    own = [begin for begin in IN_DOCS if begin not in NOT_HERE]  # the others are of the manual
    assert [begin for begin in own if not any(one.startswith(begin) for one in shown)] == []


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
    "block", [pytest.param(block, id=f"{page.name} {block[:80]}") for page, block in transcripts()]
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
