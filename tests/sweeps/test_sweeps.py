"""Sweeps: cells run once, are kept one by one, and give the same table whenever and wherever they ran."""

from __future__ import annotations

import json
import math
import re
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from topoplace import sweeps
from topoplace.sweeps import Cell, Plan, Scenario
from topoplace.sweeps.finished_cells import FinishedCells

NAN = math.nan
PLAN = Plan(
    tuple(
        Cell(policy, Scenario("machine", "jobs", load), seed)
        for load in (None, 0.5)
        for seed in (0, 1)
        for policy in ("one", "two")
    ),
    {"file": 1},
)


def figures(cell: Cell) -> sweeps.Outcome:
    if cell.policy == "two" and cell.scenario.load:
        return "it cannot"
    return {"makespan": 10.0 + cell.seed / 3, "mean_wait": NAN if cell.seed else 2.0}


def counted(calls: list[int], *, fails_at: int | None = None) -> Callable[[Cell], sweeps.Outcome]:
    def simulate(cell: Cell) -> sweeps.Outcome:
        calls.append(PLAN.cells.index(cell))
        if calls[-1] == fails_at:
            raise KeyboardInterrupt
        return figures(cell)

    return simulate


def test_only_missing_cells_run(tmp_path: Path) -> None:
    first: list[int] = []
    with pytest.raises(KeyboardInterrupt):
        sweeps.run(PLAN, counted(first, fails_at=5), tmp_path)
    assert first == [0, 1, 2, 3, 4, 5]
    second: list[int] = []
    outcomes = sweeps.run(PLAN, counted(second), tmp_path)
    assert second == [5, 6, 7]
    whole = sweeps.run(PLAN, figures, tmp_path / "whole")
    for form in ("csv", "parquet"):
        if form == "parquet":
            pytest.importorskip("pyarrow")
        sweeps.write_table(PLAN, outcomes, tmp_path / f"a.{form}")
        sweeps.write_table(PLAN, whole, tmp_path / f"b.{form}")
        assert (tmp_path / f"a.{form}").read_bytes() == (tmp_path / f"b.{form}").read_bytes()


def test_the_table_has_a_row_for_each_cell(tmp_path: Path) -> None:
    sweeps.write_table(PLAN, [figures(cell) for cell in PLAN.cells], tmp_path / "table.csv")
    about, *lines = (tmp_path / "table.csv").read_text("utf-8").splitlines()
    assert json.loads(about.removeprefix("# "))["plan"] == PLAN.digest
    assert lines[0] == "policy,topology,workload,load,seed,refused,makespan,mean_wait"
    assert lines[1] == "one,machine,jobs,,0,,10.0,2.0"
    assert lines[4] == "two,machine,jobs,,1,,10.333333333333334,"
    assert lines[8] == "two,machine,jobs,0.5,1,it cannot,,"
    assert len(lines) == 9


def test_cells_of_another_plan_are_refused_by_name(tmp_path: Path) -> None:
    sweeps.run(PLAN, figures, tmp_path)
    other = Plan(PLAN.cells, {"file": 2})
    message = f"cells/000000.json: a cell of the plan '{PLAN.digest}', not of '{other.digest}'"
    with pytest.raises(ValueError, match=re.escape(message)):
        sweeps.run(other, figures, tmp_path)


@pytest.mark.parametrize("text", ["", "{", "[]", '{"plan": "x"}', '{"plan": "x", "cell": {}, "figures": 3}'])
def test_damaged_cells_are_refused_by_name(tmp_path: Path, text: str) -> None:
    sweeps.run(PLAN, figures, tmp_path)
    (tmp_path / "cells/000003.json").write_text(text, encoding="utf-8")
    with pytest.raises(ValueError, match=r"000003\.json: not a finished cell, or damaged"):
        sweeps.run(PLAN, figures, tmp_path)


def test_a_cell_under_another_number_is_refused(tmp_path: Path) -> None:
    cells = FinishedCells(tmp_path, PLAN)
    cells.add(0, figures(PLAN.cells[0]))
    (tmp_path / "000000.json").rename(tmp_path / "000001.json")
    with pytest.raises(ValueError, match="is not number 1 of the plan"):
        FinishedCells(tmp_path, PLAN)


def test_what_killed_runs_left_is_removed_at_the_end(tmp_path: Path) -> None:
    left = tmp_path / "cells/.000001.json.77.part"
    left.parent.mkdir()
    left.write_text("{", encoding="utf-8")
    sweeps.run(PLAN, figures, tmp_path)
    assert len(list(left.parent.iterdir())) == len(PLAN.cells)


def test_plans_say_what_is_wrong() -> None:
    with pytest.raises(ValueError, match=r"cells: 0 of them"):
        Plan(())
    with pytest.raises(ValueError, match=r"cells\[1\] = .*'seed': 0.*: there twice"):
        Plan((PLAN.cells[0], PLAN.cells[0]))


def test_rows_have_the_mean_of_what_seeds_have() -> None:
    rows = sweeps.rows_of(PLAN, [figures(cell) for cell in PLAN.cells])
    assert [(row.scenario.load, row.policy, row.refused) for row in rows] == [
        (None, "one", ""),
        (None, "two", ""),
        (0.5, "one", ""),
        (0.5, "two", "it cannot"),
    ]
    assert rows[0].samples["makespan"].values == (10.0, 10.0 + 1 / 3)
    assert rows[0].samples["mean_wait"].values == (2.0,)
    assert rows[3].samples == {}


def page_of(folder: Path) -> str:
    rows = sweeps.rows_of(PLAN, [figures(cell) for cell in PLAN.cells])
    sweeps.write_page("a <sweep>", rows, folder / "page.html")
    return (folder / "page.html").read_text("utf-8")


def test_the_page_compares_policies_and_needs_no_other_file(tmp_path: Path) -> None:
    page = page_of(tmp_path)
    assert "<h1>a &lt;sweep&gt;</h1>" in page
    assert "<h2>jobs on machine, load 0.5</h2>" in page
    assert "<td>one</td><td>10.2 ± 2.12</td><td>2</td>" in page
    assert "<td>two</td><td>refuses</td><td>refuses</td>" in page
    assert "two refuses: it cannot" in page
    assert re.findall(r'(?:src|href)="(?!data:)', page) == []


def test_the_page_has_a_picture_of_slowdowns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("matplotlib")
    slow = [{"mean_slowdown_with_wait": 1.0 + cell.seed} for cell in PLAN.cells]
    rows = sweeps.rows_of(PLAN, slow)
    sweeps.write_page("slow", rows, tmp_path / "page.html")
    assert "data:image/png;base64,iVBOR" in (tmp_path / "page.html").read_text("utf-8")
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    sweeps.write_page("slow", rows, tmp_path / "page.html")
    assert "No picture: " in (tmp_path / "page.html").read_text("utf-8")
