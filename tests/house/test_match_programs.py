"""The benchmark of programs for subgraphs: formats of files, answers that agree."""

from __future__ import annotations

import stat
import sys
from pathlib import Path

import pytest

import bench_match_programs as bench
from bench_match_programs import GROUPS, Group, Question
from duels.duel import OURS
from libraries.match_programs import SOLVERS, Solver, gfu_text, lad_text, vf_text
from topoplace.kernels import Graph, count_subgraphs

TRIANGLES = Question.of("clique", 3, "dgx1-v100 complete")
PATH_OF_3 = [(0, 1), (1, 2)]


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
    monkeypatch.setattr(bench, "ROUNDS", 2)
    return SOLVERS["RI"]


def test_a_program_is_asked_in_each_round(solver: Solver, tmp_path: Path) -> None:
    program = program_that_prints("number of found matches: 336", tmp_path / "right")
    found = bench.figures(TRIANGLES, False, {"RI": (solver, program)})
    assert {name: len(seconds) for name, seconds in found.items()} == {
        "enumerate_subgraphs": 2,
        "count_subgraphs": 2,
        "RI": 2,
    }
    assert set(bench.row(found, "count_subgraphs", "RI")) == {OURS, "RI"}


def test_a_program_that_counts_otherwise_stops_the_measurement(solver: Solver, tmp_path: Path) -> None:
    program = program_that_prints("number of found matches: 335", tmp_path / "wrong")
    with pytest.raises(AssertionError, match="RI counts 335, we 336"):
        bench.figures(TRIANGLES, False, {"RI": (solver, program)})


def test_a_program_that_fails_is_no_answer(solver: Solver, tmp_path: Path) -> None:
    program = tmp_path / "failing"
    program.write_text("#!/bin/sh\necho bad; exit 3\n", encoding="utf-8")
    program.chmod(0o700)
    with pytest.raises(OSError, match="failing ended with exit code 3: bad"):
        bench.asked(solver, program, False, tmp_path, tmp_path)


@pytest.mark.parametrize("group", GROUPS, ids=lambda group: group.name)
def test_questions_have_many_mappings_but_not_too_many(group: Group) -> None:
    for pattern, target in group.questions():
        graphs = [Graph.from_edges(len(one), bench.edges_of(one)) for one in (pattern, target)]
        assert 40_000 < count_subgraphs(*graphs, induced=group.induced) < 3_000_000


def test_rows_are_printed_of_the_programs_that_are_given(
    solver: Solver, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    program = program_that_prints("number of found matches: 336", tmp_path / "ri")
    monkeypatch.setattr(bench, "GROUPS", (Group("triangles", False, lambda: [TRIANGLES]),))
    assert bench.main(["--ri", str(program)]) == 0
    assert capsys.readouterr().out.count("| triangles: ") == 2
    with pytest.raises(SystemExit):
        bench.main([])
