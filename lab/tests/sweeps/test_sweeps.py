"""Sweeps: cells run once, are kept one by one, and give the same table whenever and wherever they ran."""

from __future__ import annotations

import json
import math
import os
import re
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from topoplace._file_lock import FileLock
from topoplace_lab import sweeps
from topoplace_lab.report.comparison import notes_of
from topoplace_lab.sweeps import Cell, Plan, Scenario
from topoplace_lab.sweeps.finished_cells import FinishedCells

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


DAMAGED = r"%s: not a finished cell, or damaged; remove it and run again$"


@pytest.mark.parametrize(
    "data",
    [
        *(
            b"",
            b"{",
            b"[]",
            b'{"plan": "x"}',
            b'{"plan": "x", "cell": {}, "figures": 3}',
            b"\xff\xfe{",
            b"\0",
        ),
        b"[" * 5000,
        b'{"plan": ' * 5000,
        b'{"plan": 1, "cell": 1, "figures": {"a": ' + b"9" * 5000 + b"}}",
    ],
)
def test_damaged_cells_are_refused_by_name(tmp_path: Path, data: bytes) -> None:
    sweeps.run(PLAN, figures, tmp_path)
    (tmp_path / "cells/000003.json").write_bytes(data)
    with pytest.raises(ValueError, match=DAMAGED % r"000003\.json"):
        sweeps.run(PLAN, figures, tmp_path)


@pytest.mark.parametrize(
    "outcome",
    [
        *('"figures": {"makespan": NaN}', '"figures": {"makespan": "5"}', '"figures": {"makespan": true}'),
        *('"figures": {"makespan": [1]}', '"figures": {"makespan": 1e308}', '"figures": []'),
        *('"refused": 3', '"refused": null', r'"refused": "\ud800"', f'"figures": {{"a": 1{"0" * 400}}}'),
    ],
)
def test_cells_without_figures_are_refused_by_name(tmp_path: Path, outcome: str) -> None:
    sweeps.run(PLAN, figures, tmp_path)
    path = tmp_path / "cells/000003.json"
    about = path.read_text("utf-8").partition('"figures"')[0]
    path.write_text(f"{about}{outcome}}}", encoding="utf-8")
    with pytest.raises(ValueError, match=DAMAGED % r"000003\.json"):
        sweeps.run(PLAN, figures, tmp_path)


@pytest.mark.parametrize("name", ["abc.json", "-00001.json", "1.json", "٠٠٠٠٠١.json", "0_0001.json", ".json"])
def test_files_that_are_not_called_as_cells_are_refused_by_name(tmp_path: Path, name: str) -> None:
    sweeps.run(PLAN, figures, tmp_path)
    cells = tmp_path / "cells"
    (cells / name).write_bytes((cells / "000001.json").read_bytes())
    with pytest.raises(ValueError, match=DAMAGED % re.escape(name)):
        sweeps.run(PLAN, figures, tmp_path)


@pytest.mark.parametrize("make", [Path.mkdir, os.mkfifo, lambda path: path.symlink_to("nowhere")])
def test_what_is_no_file_is_refused_by_name(tmp_path: Path, make: Callable[[Path], None]) -> None:
    (tmp_path / "cells").mkdir()
    make(tmp_path / "cells/000001.json")
    with pytest.raises(ValueError, match=DAMAGED % r"000001\.json"):
        sweeps.run(PLAN, figures, tmp_path)


@given(data=st.data())
def test_a_cell_cut_off_or_changed_is_read_or_refused_by_name(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    folder = tmp_path_factory.mktemp("sweep")
    FinishedCells(folder, PLAN).add(0, figures(PLAN.cells[0]))
    path = folder / "000000.json"
    whole = path.read_bytes()
    begin = data.draw(st.integers(0, len(whole)))
    end = data.draw(st.integers(begin, len(whole)))
    path.write_bytes(whole[:begin] + data.draw(st.binary(max_size=5)) + whole[end:])
    try:
        assert FinishedCells(folder, PLAN).outcomes.keys() <= {0}
    except ValueError as error:
        assert str(error).startswith(f"{path}: ")  # noqa: PT017 - not every change is an error


# ---- one sweep at a time ---------------------------------------------------------------------------------------


def test_a_second_sweep_in_the_folder_is_refused_and_leaves_it_alone(tmp_path: Path) -> None:
    said: list[str] = []

    def simulate(cell: Cell) -> sweeps.Outcome:
        if not said:
            part = tmp_path / "cells/.000000.json.77.part"
            part.touch()
            with pytest.raises(ValueError, match="runs a sweep here") as refusal:
                sweeps.run(PLAN, figures, tmp_path)
            said.append(str(refusal.value))
            assert part.exists()
        return figures(cell)

    assert len(sweeps.run(PLAN, simulate, tmp_path)) == len(PLAN.cells)
    assert said[0].startswith(f"{tmp_path}: process {os.getpid()} on ")
    assert said[0].endswith("; wait for its end, or use another directory")
    assert sweeps.run(PLAN, figures, tmp_path)  # it is free again


def test_a_whole_sweep_is_read_while_another_has_the_folder(tmp_path: Path) -> None:
    outcomes = sweeps.run(PLAN, figures, tmp_path)
    with closing(FileLock(tmp_path / ".lock")):
        assert len(sweeps.run(PLAN, figures, tmp_path)) == len(outcomes)


def test_a_folder_that_cannot_be_locked_is_named(tmp_path: Path) -> None:
    (tmp_path / ".lock").mkdir()
    with pytest.raises(ValueError, match=re.escape(f"{tmp_path}: cannot be locked (Is a directory); use ")):
        sweeps.run(PLAN, figures, tmp_path)


# ---- the code that gave the figures ----------------------------------------------------------------------------


def with_code(code: str) -> Plan:
    """The plan, in which policy "one" has other code."""
    return Plan(
        tuple(replace(cell, code=code) if cell.policy == "one" else cell for cell in PLAN.cells), PLAN.about
    )


def test_a_changed_policy_runs_its_own_cells_again(tmp_path: Path) -> None:
    sweeps.run(with_code("a"), figures, tmp_path)
    calls: list[int] = []
    with pytest.warns(UserWarning, match="4 cells are simulated again, as the code of one has changed"):
        sweeps.run(with_code("b"), counted(calls), tmp_path)
    assert [PLAN.cells[index].policy for index in calls] == ["one"] * 4
    calls.clear()
    sweeps.run(with_code("b"), counted(calls), tmp_path)
    assert calls == []


def test_a_changed_library_runs_all_cells_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sweeps.run(PLAN, figures, tmp_path)
    monkeypatch.setattr("topoplace_lab.sweeps.finished_cells.library_digest", lambda: "another")
    calls: list[int] = []
    with pytest.warns(UserWarning, match="8 cells are simulated again, as the code of topoplace has changed"):
        sweeps.run(PLAN, counted(calls), tmp_path)
    assert calls == list(range(8))


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
    with pytest.raises(ValueError, match=r"cells\[1\] = .*'seed': 0.*: appears twice"):
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


def test_seeds_that_change_nothing_give_no_interval(tmp_path: Path) -> None:
    def always(cell: Cell) -> sweeps.Outcome:
        makespan = 5.0 + (cell.seed if cell.policy == "two" else 0)
        return {"makespan": makespan, "rejected": 0.0, "mean_wait": NAN}

    rows = sweeps.rows_of(PLAN, [always(cell) for cell in PLAN.cells])
    assert [(row.policy, row.equal_seeds) for row in rows] == [("one", 2), ("two", 0)] * 2
    assert rows[0].samples["makespan"].values == (5.0,)
    assert rows[1].samples["makespan"].values == (5.0, 6.0)
    first, second = sections_of("equal", rows, tmp_path)
    assert first["rows"] == second["rows"]
    one, two = (row["figures"]["makespan"] for row in first["rows"])
    assert one == [5, 5, 5]
    assert two == pytest.approx([5.5, 1.733, 17.459], abs=1e-3)
    assert "jobs on machine: the seeds change nothing under one, so there is no interval." in first["notes"]


def test_a_load_that_is_not_reached_is_noted() -> None:
    """Under policy "two", jobs use a tenth of the GPU time although they ask for half of it."""
    plan = Plan(PLAN.cells[4:])
    used = {"one": 0.4, "two": 0.1}
    rows = sweeps.rows_of(plan, [{"utilization": used[cell.policy] + cell.seed / 100} for cell in plan.cells])
    assert notes_of(rows) == [
        "jobs on machine, load 0.5: load 0.5 is not reached: jobs used of all GPU time 10.5 % under two"
    ]


def page_of(title: str, rows: Sequence[sweeps.ComparisonRow], folder: Path) -> str:
    sweeps.write_page(title, rows, folder / "page.html")
    return (folder / "page.html").read_text("utf-8")


def sections_of(title: str, rows: Sequence[sweeps.ComparisonRow], folder: Path) -> list[dict[str, Any]]:
    found = re.search(r'id="data">(.*?)</script>', page_of(title, rows, folder))
    assert found
    sections: list[dict[str, Any]] = json.loads(found[1])["sections"]
    return sections


def test_the_page_compares_policies_and_needs_no_other_file(tmp_path: Path) -> None:
    rows = sweeps.rows_of(PLAN, [figures(cell) for cell in PLAN.cells])
    page = page_of("a <sweep>", rows, tmp_path)
    assert "<h1>a &lt;sweep&gt;</h1>" in page
    assert re.findall(r'(?:src|href)="(?!data:)', page) == []
    sections = sections_of("a <sweep>", rows, tmp_path)
    assert [section["title"] for section in sections] == ["jobs on machine", "jobs on machine, load 0.5"]
    one, two = sections[1]["rows"]
    assert one["figures"]["makespan"] == pytest.approx([10.167, 8.255, 12.521], abs=1e-3)
    assert (two["instead"], two["figures"]["makespan"]) == ("refuses", [None] * 3)
    assert "two refuses: it cannot" in sections[1]["notes"]
    looks = [{(row["policy"], row["colour"], row["dash"]) for row in section["rows"]} for section in sections]
    assert looks[0] == looks[1]  # a policy has one colour in all charts


def test_the_page_begins_with_what_follows(tmp_path: Path) -> None:
    plan = Plan(PLAN.cells[:4])
    turnaround = {"one": 10.0, "two": 5.0}
    rows = sweeps.rows_of(
        plan,
        [{"mean_turnaround": turnaround[cell.policy] + cell.seed, "rejected": 0.0} for cell in plan.cells],
    )
    found = re.search(r'<div id="conclusions"><p>(.*?)</p>', page_of("sooner", rows, tmp_path))
    assert found
    assert found[1].startswith(
        "jobs on machine: two: jobs finish 47.7 % sooner than under one (95 % interval "
    )
    (section,) = sections_of("sooner", rows, tmp_path)
    assert found[1] == f"jobs on machine: {section['sentence']}."
    assert section["measures"][0]["about"].startswith("Mean time from submission to end, in days")
