"""The examples of `--help` run as printed, in a folder with the files of `topoplace example --all`."""

from __future__ import annotations

import re
import shlex
import sys
from pathlib import Path
from typing import Final

import pytest

from command_line import Call, run
from distributions import whole
from offline_commands import NOT_HERE, why_not
from topoplace import cli
from topoplace.cli.example_files import content, files

sys.path.insert(0, str(Path(__file__).parents[2] / "tools"))

from write_manual import command_tree, leaves

EXAMPLES: Final = tuple(
    dict.fromkeys(example for leaf in leaves(command_tree(cli.command_parser())) for example in leaf.examples)
)
"""Commands that take seconds to a minute; `make reproductions` runs them."""
NEGATIVE: Final = {"topoplace show today.json --since monday.json": 1}
"""Examples whose answer is a negative one, with their exit codes."""


def cases() -> list[object]:
    here = [example for example in EXAMPLES if why_not(example.removeprefix("topoplace ")) is None]
    marks = {"papers": pytest.mark.reproduction, "sweep suite": pytest.mark.deep}
    return [
        pytest.param(
            example, marks=[mark for begin, mark in marks.items() if f"topoplace {begin} " in example]
        )
        for example in here
    ]


@pytest.fixture(scope="module")
def contents() -> dict[str, bytes]:
    return {name: content(name) for name in files()}


@pytest.fixture
def folder(tmp_path: Path, contents: dict[str, bytes]) -> Path:
    for name, data in contents.items():
        (tmp_path / name).write_bytes(data)
    return tmp_path


@whole
@pytest.mark.parametrize("example", cases())
def test_an_example_runs_as_printed(example: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(folder)
    words = shlex.split(example.partition(" > ")[0])  # the shell writes this file
    done = run(*words[1:], cwd=folder)
    assert done.returncode == NEGATIVE.get(example, 0), done.stderr
    assert "topoplace: " not in done.stderr  # notes begin with the file
    assert done.stdout
    if output := re.search(r"(?:-o|--save) (\S+)", example):
        assert (folder / output[1]).exists()


@whole
def test_what_cannot_run_here_is_an_example() -> None:
    for begin in NOT_HERE:
        assert any(example.startswith(f"topoplace {begin}") for example in EXAMPLES)


@whole
def test_every_file_that_an_example_reads_can_be_written(call: Call) -> None:
    """Output files, credentials of a cluster, and where a shell looks for completions are not among them."""
    own = {"admin.conf", "server.crt,server.key", "ca.crt"}
    for example in EXAMPLES:
        inputs = re.sub(r"(?:-o|--save|--log|>) \S+", "", example)
        named = re.findall(r"[\w-]+\.(?:\w+(?:,\S+)?)(?= |$)", inputs)
        read = {name for name in named if not re.fullmatch(r"[\d.]+|gpu\.nvidia\.com|nvidia\.com", name)}
        if "slurm file" not in example:
            assert read - own <= files().keys(), example


def test_all_files_are_written_as_they_are_listed(call: Call, tmp_path: Path) -> None:
    folder = tmp_path / "new"
    done = call("example", "--all", folder)
    assert (done.code, done.err) == (0, "")
    assert {path.name for path in folder.iterdir()} == files().keys()
    assert all(f"\n{name} " in call("example").out for name in files())
    assert call("example", "--all", folder).code == 0  # the same bytes again


@whole
def test_one_file_goes_into_the_current_directory(
    call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert call("example", "topo.txt", "runs.csv").code == 0
    assert {path.name for path in tmp_path.iterdir()} == {"topo.txt", "runs.csv"}


@whole
def test_a_file_of_the_user_is_kept(call: Call, tmp_path: Path) -> None:
    own = tmp_path / "jobs.csv"
    own.write_text("mine", "utf-8")
    done = call("example", "--all", tmp_path)
    assert (done.code, done.err) == (2, f"topoplace: {own}: exists, and is another; use an empty directory\n")
    assert [path.name for path in tmp_path.iterdir()] == ["jobs.csv"]
    assert own.read_text("utf-8") == "mine"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["topo.text"], "NAME = 'topo.text': not one of topo.txt"),
        (["topo.txt", "--all", "x"], "--all writes all files"),
        (["--all", ""], "'' is not a path"),
    ],
)
def test_wrong_arguments(call: Call, arguments: list[str], message: str) -> None:
    done = call("example", *arguments)
    assert done.code == 2
    assert message in done.err
