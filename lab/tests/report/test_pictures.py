"""What pictures show: as many bars as can be read, labels that do not overlap, a colour for each policy."""

from __future__ import annotations

from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import topoplace as tp
from topoplace.drawing import figures, style
from topoplace_lab.report import gantt_plot, looks, plots
from topoplace_lab.simulate import MapaSlowdown, Workload, fragmentation_series, simulate


@pytest.fixture
def drawn(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The figures drawn during the test, which are not written."""
    found: list[Any] = []
    monkeypatch.setattr(figures, "save", lambda figure, path: found.append(figure))
    return found


def lab(colour: str) -> np.ndarray:
    """Return a colour's CIE L*a*b* coordinates, in which distances are about what the eye sees."""
    srgb = np.array([int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)])
    linear = np.where(srgb <= 0.04045, srgb / 12.92, ((srgb + 0.055) / 1.055) ** 2.4)
    xyz = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]]) @ linear
    xyz = xyz / (0.9505, 1.0, 1.089)
    f = np.where(xyz > 0.008856, np.cbrt(xyz), 7.787 * xyz + 16 / 116)
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])


def test_every_policy_has_a_look_of_its_own() -> None:
    numbers = range(len(tp.policies.names()))
    assert len({(looks.colour(i), looks.hatch(i)) for i in numbers}) == len(numbers)
    distance = {(a, b): float(np.linalg.norm(lab(a) - lab(b))) for a, b in combinations(style.COLOURS, 2)}
    assert min(distance.values()) > 20, min(distance, key=lambda pair: distance[pair])


def test_a_policy_has_one_look_in_every_picture() -> None:
    known = list(tp.policies.names())
    assert looks.policy_numbers(known) == list(range(len(known)))
    assert looks.policy_numbers([known[7], "own", f"{known[2]} (share)", known[2], "other"]) == [
        *(7, len(known), 2),
        *(len(known) + 1, len(known) + 2),
    ]


@pytest.mark.parametrize("page", ["#ffffff", style.PALETTE["page"][1]])
def test_lines_of_every_colour_are_seen_on_the_page(page: str) -> None:
    for colour in style.COLOURS:
        light, dark = sorted((lab(colour)[0], lab(page)[0]), reverse=True)
        assert light - dark > 20, colour


def test_more_series_than_colours_differ_in_hatch_and_line() -> None:
    styles = {(looks.colour(i), looks.hatch(i), looks.line_style(i)) for i in range(40)}
    assert len(styles) == 40


@pytest.mark.parametrize("machines", [("summit",), ("minsky", "dgx1-v100", "torus2d-16")])
def test_labels_of_the_comparison_do_not_overlap(machines: tuple[str, ...], drawn: list[Any]) -> None:
    results = [
        simulate(tp.machines.get(machine), Workload.mapa(8), tp.policies.get(name))
        for machine in machines
        for name in tp.policies.names()
    ]
    plots.comparison(results, "unused.png")
    (figure,) = drawn
    figure.canvas.draw()
    named = [axes for axes in figure.axes if any(label.get_text() for label in axes.get_yticklabels())]
    assert len(named) == len(machines)
    for axes in named:
        labels = axes.get_yticklabels()
        assert [label.get_text() for label in labels] == list(tp.policies.names())
        boxes = [label.get_window_extent() for label in labels]
        assert not any(a.overlaps(b) for a, b in combinations(boxes, 2))
        looks = {(patch.get_facecolor(), patch.get_hatch()) for patch in axes.patches}
        assert len(looks) == len(labels)


def run_of(num_jobs: int, topology: tp.Topology | None = None) -> tp.simulate.Result:
    topology = topology or tp.machines.get("dgx1-v100")
    workload = Workload.mapa(num_jobs)
    return simulate(topology, workload, tp.policies.get("baseline"), performance=MapaSlowdown())


def test_a_short_run_has_a_bar_for_each_gpu_of_each_job(drawn: list[Any]) -> None:
    result = run_of(30)
    plots.gantt(result, "unused.png")
    axes = drawn[0].axes[0]
    bars = [path for collection in axes.collections for path in collection.get_paths()]
    assert len(bars) == sum(map(len, result.jobs["gpus"]))
    assert "30 jobs on GPUs" in axes.get_title()


def test_a_long_run_shows_how_many_gpus_are_busy(drawn: list[Any]) -> None:
    result = run_of(3000)
    assert sum(map(len, result.jobs["gpus"])) > gantt_plot.MAX_BARS
    plots.gantt(result, "unused.png")
    axes = drawn[0].axes[0]
    assert len(axes.patches) < 20
    assert "3,000 jobs, too many for a bar each" in axes.get_title()
    top = axes.patches[-1].get_data()
    seconds = 3600.0
    busy = float((top.values * np.diff(top.edges)).sum() * seconds)
    assert busy == pytest.approx(float((result.jobs["run_time"] * result.jobs["num_gpus"]).sum()))
    assert float(top.values.max()) <= result.topology.num_gpus + 1e-6


def test_fragmentation_is_drawn_as_steps(drawn: list[Any]) -> None:
    series = fragmentation_series(run_of(60))
    assert series["fragment"].any()
    plots.fragmentation(series, "unused.png", of="baseline on $dgx1")
    axes = drawn[0].axes[0]
    for patch, column in zip(axes.patches, ("left", "fragment"), strict=True):
        steps = patch.get_data()
        assert steps.values.tolist() == series[column][:-1].tolist()
        assert steps.edges * 3600 == pytest.approx(series["time"])  # longer than two hours
    assert axes.get_title().startswith(r"baseline on \$dgx1: ")
    plots.fragmentation(series[:0], "unused.png", of="nothing")
    assert not drawn[1].axes[0].patches


def test_many_gpus_and_sizes_are_drawn_in_few_colours(drawn: list[Any], tmp_path: Path) -> None:
    topology = tp.Topology.cluster(tp.machines.get("dgx1-v100"), 40)
    sizes = [*range(1, 20), 40, 100]
    workload = Workload(
        [tp.JobGraph.independent(size) for size in sizes], [0.0] * len(sizes), [9.0] * len(sizes)
    )
    plots.gantt(simulate(topology, workload, tp.policies.get("baseline")), tmp_path / "unused.png")
    labels = [text.get_text() for text in drawn[0].axes[0].get_legend().get_texts()]
    assert labels == ["1", "2-3", "4-7", "8-15", "16-31", "32-63", "64-127"]


def test_jobs_that_are_not_sensitive_are_compared_by_their_waiting(drawn: list[Any]) -> None:
    workload = Workload([tp.JobGraph.ring(2)] * 9, [0.0] * 9, [10.0] * 9)
    topology = tp.machines.get("minsky")
    results = [simulate(topology, workload, tp.policies.get(name)) for name in ("baseline", "fcfs")]
    plots.comparison(results, "unused.png")
    wait, slowdown, turnaround, makespan = drawn[0].axes
    assert (wait.get_title(), slowdown.get_title()) == (
        "minsky: waiting time (s)",
        "minsky: slowdown incl. wait",
    )
    assert all(len(axes.patches) == 2 for axes in (wait, slowdown, turnaround, makespan))
    assert turnaround.get_title() == "minsky: mean turnaround (s)"
    assert [bar.get_width() for bar in turnaround.patches] == [
        result.summary()["mean_turnaround"] for result in results
    ]
    assert makespan.get_title() == "minsky: makespan (s)"
    widths = [bar.get_width() for bar in makespan.patches]
    assert widths == [result.summary()["makespan"] for result in results]
    assert wait.get_xlim()[1] > 40
