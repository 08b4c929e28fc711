"""The page of trust: what is kept gives it, what is short of a bar is named, and no survivor stays unexplained."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path
from typing import Any

import pytest

REPOSITORY = Path(__file__).parents[2]
sys.path.insert(0, str(REPOSITORY / "tools"))

import write_trust as tool  # noqa: E402
from mutants import Copy, Mutant, changed_tests  # noqa: E402
from trust import fuzzing, kept, kernel_coverage, mutation, page, python_coverage, threads  # noqa: E402

SURVIVOR: kept.Kept = {
    "file": "python/topoplace/engine/a.py",
    "text": "if a < b:",
    "nth": 0,
    "column": 3,
    "old": "a < b",
    "new": "a <= b",
    "equal": True,
    "why": "they are never equal",
}
FUZZER = """#!/bin/sh
for argument; do case $argument in -artifact_prefix=*) findings=${argument#*=};; esac; done
printf '#2 INITED cov: 10 ft: 12 corp: 2/4b\\n#9 NEW cov: 30 ft: 40 corp: 5/9b\\n' >&2
[ -z "$CRASHES" ] || touch "${findings}crash-1"
touch "${findings}slow-unit-1"
[ -n "$SILENT" ] || printf 'stat::number_of_executed_units: 1234\\n' >&2
exit ${CRASHES:-0}
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Let the tool keep numbers in an empty folder."""
    monkeypatch.setattr(kept, "FOLDER", tmp_path)
    return tmp_path


@pytest.fixture
def fuzzer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Return a program that prints what libFuzzer prints."""
    monkeypatch.setattr(fuzzing, "FINDINGS", tmp_path / "findings")
    path = tmp_path / "fuzzer"
    path.write_text(FUZZER, "utf-8")
    path.chmod(0o755)
    return str(path)


def test_all_survivors_that_are_kept_are_explained() -> None:
    assert tool.main(["--check"]) == 0


def test_parts_never_measured_are_left_out(folder: Path) -> None:
    kept.write("threads", {"tests": 9, "reports": 0, "failed": False})
    text = tool.text()
    assert "| reports of ThreadSanitizer | 0 | 0 in 9 tests | yes |" in text
    assert "## Fuzzing" not in text


@pytest.mark.parametrize("missing", [{"why": ""}, {"equal": None}])
def test_a_survivor_without_explanation_fails(
    folder: Path, capsys: pytest.CaptureFixture[str], missing: dict[str, Any]
) -> None:
    verdicts = {"killed": 9, "survived": 1}
    about = {"seed": 0, "first": verdicts, "verdicts": verdicts}
    kept.write("mutants", {"engine": {**about, "survivors": [SURVIVOR]}})
    assert tool.main(["--check"]) == 0
    kept.write("mutants", {"engine": {**about, "survivors": [SURVIVOR | missing]}})
    assert tool.main(["--check"]) == 1
    assert "python/topoplace/engine/a.py: if a < b:" in capsys.readouterr().err


@pytest.mark.parametrize(("taken", "reached"), [(950, "yes"), (949, "**no**")])
def test_a_bar_is_met_exactly_or_not_reached(taken: int, reached: str) -> None:
    counts = {
        "python": "3.11",
        "without": [],
        "packages": {"topoplace.a": [10, 10, 400, 400], "topoplace.b": [5, 5, 600, taken - 400]},
    }
    text = page.page({"coverage": python_coverage}, {"coverage": counts})
    assert f"| 95 % | {taken / 10} % | {reached} |" in text


def test_what_was_left_out_is_named() -> None:
    counts = {"python": "3.11", "without": ["lab/tests/papers"], "packages": {"topoplace": [1, 1, 2, 2]}}
    assert (
        "and this time `lab/tests/papers`, so that the figures are lower bounds"
        in python_coverage.section(counts)
    )
    assert "this time" not in python_coverage.section(counts | {"without": []})


def test_shares_are_rounded_down() -> None:
    assert kept.share(99_999, 100_000) == "99.9 %"
    assert kept.share(0, 0) == "–"


def test_python_files_count_for_their_package() -> None:
    def summary(*counts: int) -> dict[str, Any]:
        return {"summary": dict(zip(python_coverage.COUNTS, counts, strict=True))}

    files = {
        "python/topoplace/errors.py": summary(4, 3, 2, 1),
        "python/topoplace/engine/memo.py": summary(10, 9, 4, 4),
        "python/topoplace/engine/deep/er.py": summary(1, 0, 0, 0),
    }
    assert python_coverage.packages({"files": files}) == {
        "topoplace": [4, 3, 2, 1],
        "topoplace.engine": [11, 9, 4, 4],
    }


def test_cpp_files_count_for_their_kernel_and_headers_as_one() -> None:
    lines = {
        "cpp/src/flow/solve.cpp": (10, 9),
        "cpp/src/flow/a/b.hpp": (5, 5),
        "cpp/include/topoplace/x.hpp": (3, 1),
    }
    files = [
        {"filename": name, "line_total": total, "line_covered": executed}
        for name, (total, executed) in lines.items()
    ]
    found = kernel_coverage.folders({"files": files})
    assert found == {"cpp/include": [3, 1], "cpp/src/flow": [15, 14]}
    assert not kernel_coverage.bars({"folders": found})[0].reached


@pytest.mark.parametrize(("crashes", "findings"), [("", 0), ("1", 1)])
def test_a_fuzzer_is_read(fuzzer: str, monkeypatch: pytest.MonkeyPatch, crashes: str, findings: int) -> None:
    monkeypatch.setenv("CRASHES", crashes)
    row = fuzzing.fuzz([fuzzer], 1, [])
    assert row == {"inputs": 1234, "cpu_seconds": 0, "edges": 30, "corpus": 5, "findings": findings}
    assert fuzzing.bars({"bodies": {"a": row}})[0].reached is not bool(findings)
    assert [path.name for path in fuzzing.FINDINGS.iterdir()] == ["crash-1"] * findings


def test_a_fuzzer_that_did_not_run_is_no_result(fuzzer: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SILENT", "1")
    with pytest.raises(SystemExit, match="did not fuzz"):
        fuzzing.fuzz([fuzzer], 1, [])


def test_bodies_that_cannot_run_here_keep_their_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fuzzing, "reader", lambda body, seconds: None)
    row = {"inputs": 5, "cpu_seconds": 1, "edges": 2, "corpus": 3, "findings": 0}
    given = argparse.Namespace(bodies=["system_xml"], seconds=1)
    assert fuzzing.measure(given, {"bodies": {"system_xml": row}}) == {"bodies": {"system_xml": row}}
    with pytest.raises(SystemExit, match="no fuzz body is called fuzz_nothing"):
        fuzzing.measure(argparse.Namespace(bodies=["fuzz_nothing"], seconds=1), {})


def test_threads_without_reports_but_with_a_failure_miss_the_bar() -> None:
    assert not threads.bars({"tests": 2, "reports": 0, "failed": True})[0].reached


@pytest.fixture
def mutants(monkeypatch: pytest.MonkeyPatch) -> list[Mutant]:
    """Return two mutants of a line that is there twice; nothing is tried, all survive."""
    path = Path("python/topoplace/engine/memo.py")
    text = (REPOSITORY / path).read_text("utf-8")
    begin = text.index("import annotations")
    monkeypatch.setattr(mutation, "attempt", lambda copy, tests, mutant: "survived")
    return [Mutant(path, begin + more, 1, "import", "") for more in (0, 1)]


def test_explanations_outlast_a_measurement(mutants: list[Mutant]) -> None:
    first, second = (mutation.described(one) for one in mutants)
    assert first["text"].startswith("from __future__ import")
    assert second["column"] == first["column"] + 1
    known = {**first, "equal": False, "why": "no reason"}
    found: Any = mutation.tried(None, None, mutants, mutation.Counter(killed=1), [known])  # type: ignore[arg-type]
    assert found == {"verdicts": {"killed": 1, "survived": 2}, "survivors": [known, second]}


def test_lines_of_the_same_text_are_told_apart() -> None:
    path = Path("python/topoplace/engine/effort.py")
    text = (REPOSITORY / path).read_text("utf-8")
    line = "self.complete = False"
    begins = [text.index(line), text.rindex(line)]
    found = [mutation.described(Mutant(path, begin, 1, line, "pass")) for begin in begins]
    assert [one["nth"] for one in found] == [0, 1]
    assert mutation.identity(found[0]) != mutation.identity(found[1])


def test_others_are_drawn_for_survivors_whose_code_is_gone(
    folder: Path, mutants: list[Mutant], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mutation, "Copy", lambda root: None)
    monkeypatch.setattr(mutation, "PythonTests", lambda copy, budget: None)
    (present,) = mutation.sample([REPOSITORY / "python/topoplace/snapshot"], 1, 0, None)
    survivors = [mutation.described(present), SURVIVOR]
    old = {
        "seed": 0,
        "first": {"survived": 2},
        "verdicts": {"killed": 8, "survived": 2},
        "survivors": survivors,
    }
    given = argparse.Namespace(folders=["snapshot"], count=9, seed=0, budget=1.0, again=True)
    about = mutation.measure(given, {"snapshot": old})["snapshot"]
    assert about["verdicts"] == {"killed": 8, "survived": 2}
    assert about["first"] == old["first"]
    assert survivors[0] in about["survivors"]
    assert SURVIVOR not in about["survivors"]


def test_lines_of_tests_are_not_kept_if_one_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plugin = pytest.importorskip("tests_by_line", reason="needs the package coverage", exc_type=ImportError)
    monkeypatch.setattr(plugin, "REPORT", tmp_path / "tests_by_line.json")
    plugin.pytest_sessionfinish(1)
    assert not plugin.REPORT.exists()


def test_new_tests_are_read_again(tmp_path: Path) -> None:
    copy = Copy.__new__(Copy)
    copy.root = tmp_path
    names = (
        "tests/engine/test_new.py",
        "tests/engine/test_old.py",
        "tests/cluster/test_interrupts.py",
        "tests/cli/test_x.py",
    )
    for name in names:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    since = (tmp_path / names[1]).stat().st_mtime
    os.utime(tmp_path / names[1], (since - 10, since - 10))
    assert changed_tests(copy, since - 5) == [names[0]]
