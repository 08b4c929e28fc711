"""Instruction counts of kernels: a rise fails and says what rose; other compilers are not compared."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[2]
sys.path.insert(0, str(REPOSITORY / "tools"))

import count_instructions as tool  # noqa: E402

BUILT_WITH = {"compiler": "gcc 12.2", "processor": "x86-64", "library": "glibc 2.36"}
PROGRAM = """#!/bin/sh
case "$1" in
  --built-with) printf 'compiler\\t%s\\nprocessor\\tx86-64\\nlibrary\\tglibc 2.36\\n' "{compiler}" ;;
  --list) echo rings ;;
esac
"""


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a program that lists one case, whose count in the table is 1,000."""
    path = tmp_path / "cases"
    path.write_text(PROGRAM.format(compiler=BUILT_WITH["compiler"]), encoding="utf-8")
    path.chmod(0o755)
    monkeypatch.setattr(tool, "TABLE", tmp_path / "counts.json")
    monkeypatch.setattr(shutil, "which", lambda name: f"/usr/bin/{name}")
    tool.Table(BUILT_WITH, {"rings": 1000}).write(tool.TABLE)
    return path


def counts(monkeypatch: pytest.MonkeyPatch, instructions: int) -> None:
    monkeypatch.setattr(tool, "count_one", lambda program, name, folder: instructions)


@pytest.mark.parametrize(("instructions", "code"), [(1000, 0), (1100, 0), (1101, 1), (100, 0)])
def test_more_than_a_tenth_more_fails(
    program: Path, monkeypatch: pytest.MonkeyPatch, instructions: int, code: int
) -> None:
    counts(monkeypatch, instructions)
    assert tool.main([str(program)]) == code


def test_a_rise_names_case_both_counts_and_percent(
    program: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    counts(monkeypatch, 1150)
    tool.main([str(program)])
    assert capsys.readouterr().err.startswith("rings: 1,000 instructions before, 1,150 now, +15.0%")


def test_a_fall_asks_for_a_new_table(
    program: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    counts(monkeypatch, 800)
    tool.main([str(program)])
    assert "800 now, -20.0%: keep it by make counts" in capsys.readouterr().err
    tool.main([str(program), "--write"])
    assert tool.Table.read(tool.TABLE) == (BUILT_WITH, {"rings": 800})


def test_cases_without_a_count_and_counts_without_a_case_fail(
    program: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    tool.Table(BUILT_WITH, {"trees": 1000}).write(tool.TABLE)
    counts(monkeypatch, 1000)
    assert tool.main([str(program)]) == 1
    assert re.findall(r"^\w+: ", capsys.readouterr().err, re.MULTILINE) == ["rings: ", "trees: "]


def test_another_compiler_is_skipped_by_name(
    program: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    counts(monkeypatch, 9999)
    program.write_text(PROGRAM.format(compiler="gcc 13.1"), encoding="utf-8")
    assert tool.main([str(program)]) == 0
    assert "skipped, the table was counted with gcc 12.2, and this is gcc 13.1" in capsys.readouterr().err
    program.write_text(PROGRAM.format(compiler="gcc 12.4"), encoding="utf-8")
    assert tool.main([str(program)]) == 1


def test_without_valgrind_nothing_is_compared_or_written(
    program: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(shutil, "which", lambda name: None)
    assert tool.main([str(program)]) == 0
    assert "skipped, there is no valgrind" in capsys.readouterr().err
    assert tool.main([str(program), "--write"]) == 1


def test_a_case_that_counts_nothing_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "rings").write_text("summary: 0\n", encoding="utf-8")
    monkeypatch.setattr(
        subprocess, "run", lambda command, **_: subprocess.CompletedProcess(command, 0, stdout="")
    )
    with pytest.raises(RuntimeError, match="rings: callgrind counted nothing"):
        tool.count_one(Path("cases"), "rings", tmp_path)


def test_the_kept_table_names_each_case_once() -> None:
    kept = tool.Table.read(REPOSITORY / "cpp/tests/instructions/counts.json")
    sources = (REPOSITORY / "cpp/tests/instructions").glob("*.cpp")
    cases = [
        name for path in sources for name in re.findall(r"^TEST\((\w+)\)", path.read_text("utf-8"), re.M)
    ]
    assert sorted(kept.instructions) == sorted(cases)
    assert len(cases) >= 20
