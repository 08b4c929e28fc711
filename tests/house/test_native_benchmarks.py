"""Rows beside native programs: formats of files, answers that agree, and a page that keeps what was measured."""

from __future__ import annotations

import stat
import subprocess
import sys
from pathlib import Path

import pytest

import native_page
from duels import page_text
from duels.duel import OURS, Outcome
from duels.page_text import Machine
from native import sources, subgraph_questions
from native.kept import KEPT, Native
from native.solvers import SOLVERS, Solver, gfu_text, lad_text, vf_text
from native.sources import Source, digest, fetched
from native.subgraph_questions import GROUPS, Group, Question
from timing.measure import Spread
from topoplace.kernels import Graph, count_subgraphs

TRIANGLES = Question.of("clique", 3, "dgx1-v100 complete")
PATH_OF_3 = [(0, 1), (1, 2)]
MACHINE = Machine(2, "a processor", "3.11.7", "gcc 12.2.0", {"RI": "3.6"}, load=0.0)
OUTCOME = Outcome("count_subgraphs", "rings", ["RI"], ["VF3"], 2, Spread(1, 1, 2), Spread(9, 8, 10))


def test_graphs_are_written_in_the_formats_of_programs() -> None:
    assert vf_text(3, PATH_OF_3) == "3\n0 0\n1 0\n2 0\n1\n0 1\n2\n1 0\n1 2\n1\n2 1\n"
    assert gfu_text(3, PATH_OF_3) == "#graph\n3\n0\n0\n0\n2\n0 1\n1 2\n"
    assert lad_text(3, PATH_OF_3) == "3\n1 1\n2 0 2\n1 1\n"


@pytest.mark.parametrize(
    ("name", "printed"),
    [
        ("VF3", "12 1e-06 2e-05\n"),
        ("RI", "matching time: 0.1\nnumber of found matches: 12\nsearch space size: 30\n"),
        ("Glasgow", "status = true\nsolution_count = 12\nnodes = 30\n"),
    ],
)
def test_the_number_of_mappings_is_found_in_what_programs_print(name: str, printed: str) -> None:
    assert SOLVERS[name].count(printed) == 12
    with pytest.raises(ValueError, match="no number of mappings in 'nothing'"):
        SOLVERS[name].count("nothing")


def program_that_prints(text: str, path: Path) -> Path:
    path.write_text(f"#!{sys.executable}\nprint({text!r})\n", encoding="utf-8")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


@pytest.fixture
def solver(monkeypatch: pytest.MonkeyPatch) -> Solver:
    monkeypatch.setattr(subgraph_questions, "ROUNDS", 2)
    return SOLVERS["RI"]


def test_a_program_is_asked_in_each_round(solver: Solver, tmp_path: Path) -> None:
    program = program_that_prints("number of found matches: 336", tmp_path / "right")
    found = subgraph_questions.figures(TRIANGLES, False, {"RI": (solver, program)})
    assert {name: len(seconds) for name, seconds in found.items()} == {
        "enumerate_subgraphs": 2,
        "count_subgraphs": 2,
        "RI": 2,
    }
    assert set(subgraph_questions.row(found, "count_subgraphs", "RI")) == {OURS, "RI"}


def test_a_program_that_counts_otherwise_stops_the_measurement(solver: Solver, tmp_path: Path) -> None:
    program = program_that_prints("number of found matches: 335", tmp_path / "wrong")
    with pytest.raises(AssertionError, match="RI counts 335, we 336"):
        subgraph_questions.figures(TRIANGLES, False, {"RI": (solver, program)})


def test_a_program_that_fails_is_no_answer(solver: Solver, tmp_path: Path) -> None:
    program = tmp_path / "failing"
    program.write_text("#!/bin/sh\necho bad; exit 3\n", encoding="utf-8")
    program.chmod(0o700)
    with pytest.raises(OSError, match="failing ended with exit code 3: bad"):
        subgraph_questions.asked(solver, program, False, tmp_path, tmp_path)


@pytest.mark.parametrize("group", GROUPS, ids=lambda group: group.name)
def test_questions_have_many_mappings_but_not_too_many(group: Group) -> None:
    for pattern, target in group.questions():
        graphs = [Graph.from_edges(len(one), subgraph_questions.edges_of(one)) for one in (pattern, target)]
        assert 40_000 < count_subgraphs(*graphs, induced=group.induced) < 3_000_000


@pytest.mark.parametrize("place", ["{there}/a", "file://{there}"])
def test_sources_come_from_a_folder_or_an_address_and_are_checked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    git = ["git", "-C", str(tmp_path / "a/solver"), "-c", "user.name=a", "-c", "user.email=a@b"]
    (tmp_path / "a/solver").mkdir(parents=True)
    (tmp_path / "a/solver/main.cpp").write_text("int main() {}\n", encoding="utf-8")
    for arguments in (["init", "--quiet"], ["add", "main.cpp"], ["commit", "--quiet", "-m", "one"]):
        subprocess.run([*git, *arguments], check=True)
    commit = subprocess.run([*git, "rev-parse", "HEAD"], capture_output=True, text=True, check=True).stdout
    monkeypatch.setattr(sources, "PLACE", place.format(there=tmp_path))
    right = Source("a/solver", commit.strip(), ("main.cpp",), digest({"main.cpp": b"int main() {}\n"}))
    for _ in range(2):  # the second time from what was fetched
        folder = fetched(right, tmp_path / "build")
        assert (folder / "main.cpp").read_text(encoding="utf-8") == "int main() {}\n"
    with pytest.raises(ValueError, match=r"a/solver at .*: files have digest .*, not 0"):
        fetched(right._replace(digest="0"), tmp_path / "build")


def test_what_was_measured_is_kept(tmp_path: Path) -> None:
    measured = Native("2026-11-23", MACHINE, [OUTCOME, OUTCOME._replace(ratio=None, peers=[])])
    measured.write(tmp_path / "kept.json")
    assert Native.read(tmp_path / "kept.json") == measured
    assert Native.read(tmp_path / "none.json") is None


def test_the_part_about_native_solvers_replaces_the_one_before() -> None:
    once = page_text.with_native("# Page\n", "2026-11-23", MACHINE, [OUTCOME])
    assert "**9.00 ×** [8.00, 10] faster than RI" in once
    assert "left out: VF3." in once
    again = page_text.with_native(once, "2026-11-24", MACHINE, [OUTCOME])
    assert again == once.replace("2026-11-23", "2026-11-24")


def test_the_kept_page_has_the_kept_rows() -> None:
    kept = Native.read()
    assert kept is not None, f"{KEPT} is missing: run make bench-native"
    text = native_page.PAGE.read_text(encoding="utf-8")
    assert page_text.with_native(text, *kept) == text, "run python benchmarks/native_page.py --text"
