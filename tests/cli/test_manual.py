"""The page of commands shows what `--help` does; man reads the manual page, of the same parser, without a warning."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from command_line import run
from topoplace import cli

sys.path.insert(0, str(Path(__file__).parents[2] / "tools"))

import write_manual
from write_manual import command_tree, leaves


@pytest.fixture(scope="module")
def manual(repository: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The manual page, made as the build of a wheel makes it: without any package but ours."""
    page = tmp_path_factory.mktemp("manual") / "topoplace.1"
    command = [sys.executable, "-S", repository / "tools/write_manual.py", "--man", page]
    environment = {**os.environ, "PYTHONPATH": str(repository / "python")}
    subprocess.run(command, env=environment, check=True, timeout=60)
    return page


@pytest.mark.skipif(shutil.which("groff") is None, reason="this host has no groff")
def test_the_page_names_every_command_and_option(manual: Path) -> None:
    command = [
        "groff",
        "-man",
        "-ww",
        "-Tascii",
        "-P-cbou",
        "-rLL=200n",
        str(manual),
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    assert done.stderr == ""
    sections = re.split(r"\n   (?=topoplace)", done.stdout)
    by_name = {section.partition("\n")[0]: section for section in sections}
    for leaf in leaves(command_tree(cli.command_parser(with_added=False))):
        section = by_name[" ".join(("topoplace", *leaf.path))]
        flags = [flag for one in leaf.arguments for flag in one.flags if "--help" not in one.flags]
        assert [flag for flag in flags if not re.search(rf"^ +.*{flag}\b", section, re.MULTILINE)] == []
        for example in leaf.examples:
            assert example in section
    assert "EXIT STATUS" in done.stdout


@pytest.mark.skipif(shutil.which("man") is None, reason="this host has no man")
def test_man_finds_the_page_beside_the_program(manual: Path, tmp_path: Path) -> None:
    """The wheel puts it into share/man of the environment, whose bin is on the PATH."""
    folder = tmp_path / "share/man/man1"
    folder.mkdir(parents=True)
    (tmp_path / "bin").mkdir()
    shutil.copy(manual, folder)
    path = {"PATH": f"{tmp_path / 'bin'}:/usr/bin:/bin", "LC_ALL": "C"}
    done = subprocess.run(["man", "-w", "topoplace"], env=path, capture_output=True, text=True, timeout=60)
    assert done.stdout.strip() == str(folder / "topoplace.1")


def test_help_and_page_show_the_same_examples() -> None:
    text = write_manual.markdown(command_tree(cli.command_parser()))
    for example in re.findall(r"^  (topoplace .*)$", run("place", "--help").stdout, re.MULTILINE):
        assert f"\n    {example}\n" in text
