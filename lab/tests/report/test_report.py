from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

import topoplace as tp
from topoplace import drawing
from topoplace._progress import Progress
from topoplace.drawing import tables
from topoplace_lab.report import plots
from topoplace_lab.simulate import Workload, simulate

PNG = b"\x89PNG"


@pytest.mark.parametrize("name", tp.machines.names())
def test_every_machine_can_be_drawn(name: str, tmp_path: Path) -> None:
    plots.topology(tp.machines.get(name), tmp_path / "machine.png", busy=[0], chosen=[2, 1])
    assert (tmp_path / "machine.png").read_bytes().startswith(PNG)


@pytest.mark.parametrize(
    "topology",
    [
        tp.Topology.from_links(1, []),
        tp.Topology.from_links(9, [(0, 8, 30.0)]),
        tp.Topology.from_links(4, [(0, 1, 50.0)], machines=["a", "a", "b", "b"], sockets=[0, 1, 0, None]),
    ],
    ids=["one GPU", "no sockets", "two machines"],
)
def test_odd_topologies_can_be_drawn(topology: tp.Topology, tmp_path: Path) -> None:
    plots.topology(topology, tmp_path / "odd.png")
    assert (tmp_path / "odd.png").read_bytes().startswith(PNG)


def test_runs_without_jobs_can_be_drawn(tmp_path: Path) -> None:
    empty = simulate(tp.machines.get("summit"), Workload([], [], []), tp.policies.Baseline())
    rejected = simulate(
        tp.machines.get("summit"), Workload([tp.JobGraph.ring(7)], [0], [1]), tp.policies.Baseline()
    )
    empty.gantt(tmp_path / "empty.png")
    plots.comparison([empty, rejected], tmp_path / "compared.png")
    assert len(list(tmp_path.iterdir())) == 2


def test_without_matplotlib_the_package_to_install_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(ImportError, match=r"pip install 'topoplace\[plot\]'"):
        plots.topology(tp.machines.get("minsky"), tmp_path / "machine.png")
    plots.topology(tp.machines.get("minsky"), tmp_path / "machine.svg")
    assert (tmp_path / "machine.svg").read_text("utf-8") == drawing.svg(tp.machines.get("minsky"))


def test_a_notebook_shows_the_key_figures_of_a_result() -> None:
    topology = tp.Topology.from_links(2, [(0, 1, 50.0)], name="<b>two & more")
    result = simulate(
        topology, Workload([tp.JobGraph.ring(2)] * 3, [0.0] * 3, [10.0] * 3), tp.policies.Baseline()
    )
    table = result._repr_html_()
    assert "<caption>baseline, 3 jobs on &lt;b&gt;two &amp; more</caption>" in table
    cells = dict(re.findall(r"<tr><td[^>]*>([^<]*)</td><td>([^<]*)</td></tr>", table))
    assert (cells["makespan"], cells["utilization"], cells["mean wait"]) == ("30 s", "100 %", "10 s")
    assert "nan" not in table


ROWS = [("first", 1, 2.5), ("second", 20, 10.0)]


def test_tables_are_plain_text_in_a_pipe(capsys: pytest.CaptureFixture[str]) -> None:
    tables.show(("name", "count", "value"), ROWS, "Title")
    assert (
        capsys.readouterr().out == "Title\nname    count  value\nfirst       1    2.5\nsecond     20     10\n"
    )


@pytest.mark.parametrize("has_rich", [True, False])
def test_tables_on_a_terminal(
    has_rich: bool, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    if not has_rich:
        monkeypatch.setitem(sys.modules, "rich.table", None)
    tables.show(("name", "count", "value"), ROWS, "Title")
    shown = capsys.readouterr().out
    assert "Title" in shown
    assert "second" in shown
    assert ("─" in shown) == has_rich


@pytest.mark.parametrize("width", [20, 30, 40, 80])
def test_a_narrow_terminal_cuts_no_name_and_breaks_no_number(
    width: int, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", str(width))
    rows = [("mapa-preserve", 12345.0, 1.5, 2.5), ("topo-aware *", 1.0, 123456.0, 3.5)]
    tables.show(("policy", "makespan in seconds", "throughput speed-up", "x"), rows, "Title")
    shown = capsys.readouterr().out.split()
    assert {"mapa-preserve", "12345", "1.5", "123456", "3.5", "topo-aware"} <= set(shown)


def test_a_run_shows_a_bar_if_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    shown: list[tuple[str, float]] = []
    monkeypatch.setattr(Progress, "_show", lambda bar, before: shown.append((bar.what, before)))
    for asked in (True, False):
        result = simulate(
            tp.machines.get("summit"), Workload.mapa(200), tp.policies.Baseline(), progress=asked
        )
        assert len(result.jobs) == 200
    assert shown == [("simulating", 0.0)]


@pytest.mark.parametrize("sizes", [[], [99], [1, 2, 3, 4, 5, 6] * 2])
def test_any_result_is_drawn_without_a_warning(tmp_path: Path, sizes: list[int]) -> None:
    jobs = [tp.JobGraph.ring(size) for size in sizes]
    workload = tp.simulate.Workload(jobs, [0.0] * len(jobs), [10.0] * len(jobs))
    result = tp.simulate(tp.machines.get("summit"), workload, tp.policies.get("baseline"))
    result.gantt(tmp_path / "gantt.png")
    plots.comparison([result], tmp_path / "comparison.png")
    assert {path.name for path in tmp_path.iterdir()} == {"gantt.png", "comparison.png"}
