"""Pictures of what the kernels, the bounds of collectives and the planner of capacity answer, as SVG."""

# matplotlib does not annotate its **kwargs.
# pyright: reportUnknownMemberType=false
from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib import patches
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

import topoplace as tp
from topoplace import kernels
from topoplace_lab.capacity import TABLE_II, CapacityJob, CapacityPlanner, Problem, time_table

BLUE, ORANGE, GREY, RED, DARK = "#0072b2", "#e69f00", "#9a9aa0", "#d55e00", "#444444"
DASHED = (0, (3, 2))
Point = tuple[float, float]


def figure(width: float, height: float) -> tuple[Figure, Any]:
    """Return a figure of so many inches, and its axes without a frame."""
    made = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(made)
    axes = made.add_subplot()
    axes.set_axis_off()
    axes.set_aspect("equal")
    return made, axes


def svg(made: Figure) -> str:
    """Return the figure as SVG, the same in each run."""
    text = io.StringIO()
    with mpl.rc_context({"svg.hashsalt": "topoplace", "svg.fonttype": "none"}):
        made.savefig(text, format="svg", metadata={"Date": None})
    return text.getvalue()


def edge(axes: Any, ends: Sequence[Point], text: str = "", **style: Any) -> None:
    """Draw a line between two points, with a text near its middle. style: of matplotlib's arrows."""
    start, end = ends
    arrow = {"arrowstyle": "-", "color": GREY, "linewidth": 1.5, "shrinkA": 13, "shrinkB": 13, **style}
    axes.annotate("", end, start, arrowprops=arrow, zorder=1)
    if text:
        at = [0.55 * u + 0.45 * v for u, v in zip(start, end, strict=True)]
        box = {"facecolor": "white", "edgecolor": "none", "pad": 1}
        axes.text(*at, text, ha="center", va="center", fontsize=8, bbox=box)


def vertices(
    axes: Any, points: Mapping[int, Point], colours: Mapping[int, str], labels: Mapping[int, str]
) -> None:
    """Draw the vertices with their labels."""
    for v, point in points.items():
        axes.scatter(*point, s=420, color=colours[v], zorder=2)
        style = {"color": "white", "fontsize": 9, "fontweight": "bold", "zorder": 3}
        axes.text(*point, labels[v], ha="center", va="center", **style)


def partition() -> str:
    """Draw a grid, and the edges that its halves cut."""
    grid = [(v, v + 1) for v in range(12) if v % 4 < 3] + [(v, v + 4) for v in range(8)]
    halves = kernels.bipartition(grid)
    points = {v: (float(v % 4), -float(v // 4)) for v in range(12)}
    made, axes = figure(4.2, 3.2)
    for u, v in grid:
        is_cut = halves.side[u] != halves.side[v]
        style = {"color": RED, "linewidth": 2.5, "linestyle": DASHED} if is_cut else {}
        edge(axes, (points[u], points[v]), **style)
    colours = {v: (BLUE, ORANGE)[int(halves.side[v])] for v in points}
    vertices(axes, points, colours, {v: str(v) for v in points})
    axes.margins(0.12)
    axes.set_title(f"the least cut: {halves.cut:g} edges", fontsize=10)
    return svg(made)


def mapping() -> str:
    """Draw a chain of four tasks on four machines of two GPUs, in the order of the ids, and mapped."""
    machine = np.arange(8) // 2
    distance = np.where(machine[:, None] == machine, 1, 9) - np.eye(8)
    chain = [(0, 1, 1), (1, 2, 5), (2, 3, 1)]
    source = kernels.Graph.from_edges(4, chain)
    mapped = kernels.map_graph(source, kernels.TargetDistance(distance), method="exact")
    assert mapped is not None
    made, axes = figure(6.2, 3.0)
    for row, (title, target_of) in enumerate((("lowest ids", range(4)), ("mapped", mapped.target_of))):
        at = {gpu: (gpu + gpu // 2 * 0.6, -2.1 * row) for gpu in range(8)}
        gpus = [int(gpu) for gpu in target_of]
        task_on = {gpu: task for task, gpu in enumerate(gpus)}
        cost = sum(weight * distance[gpus[a], gpus[b]] for a, b, weight in chain)
        for first in range(0, 8, 2):
            corner = (at[first][0] - 0.35, at[first][1] - 0.35)
            box = {"boxstyle": "round,pad=0.08", "color": "#e9e9ee", "zorder": 0}
            axes.add_patch(patches.FancyBboxPatch(corner, 1.7, 0.7, **box))
        for a, b, weight in chain:
            ends = sorted((at[gpus[a]], at[gpus[b]]))
            edge(axes, ends, color=BLUE, linewidth=1 + weight, connectionstyle="arc3,rad=-0.35")
        colours = {gpu: ORANGE if gpu in task_on else GREY for gpu in at}
        vertices(axes, at, colours, {gpu: str(task_on.get(gpu, "")) for gpu in at})
        axes.text(-0.5, at[0][1] + 0.85, f"{title}: cost {cost:g}", fontsize=10)
    axes.set_xlim(-0.7, 9.6)
    axes.set_ylim(-2.7, 1.4)
    return svg(made)


def flow() -> str:
    """Draw a scheduling graph with its cheapest flow."""
    tail, head = [0, 0, 0, 1, 1, 2, 3, 4], [2, 3, 4, 2, 4, 5, 5, 5]
    cost = [3, 5, 20, 4, 20, 0, 0, 0]
    capacity = [1] * 7 + [kernels.INFINITE]
    found = kernels.min_cost_flow(6, tail, head, capacity, cost, [1, 1, 0, 0, 0, -2])
    assert found.flow is not None
    points = {0: (0.0, 1.0), 1: (0.0, -1.0), 2: (2.6, 1.6), 3: (2.6, 0.0), 4: (2.6, -1.6), 5: (4.8, 0.0)}
    made, axes = figure(6.2, 4.0)
    for u, v, price, amount in zip(tail, head, cost, found.flow.tolist(), strict=True):
        style = {"color": BLUE, "linewidth": 3} if amount else {"linewidth": 1}
        edge(axes, (points[u], points[v]), str(price), arrowstyle="-|>", **style)
    colours = {0: ORANGE, 1: ORANGE, 2: BLUE, 3: BLUE, 4: GREY, 5: DARK}
    vertices(axes, points, colours, {v: str(v) for v in points})
    names = ((0, 0.45, "tasks"), (2, 0.45, "machines"), (5, 0.45, "sink"), (4, -0.55, "waiting"))
    for v, above, text in names:
        axes.text(points[v][0], points[v][1] + above, text, ha="center", fontsize=9)
    axes.set_title(f"the cheapest flow: cost {found.cost}", fontsize=10)
    axes.set_xlim(-0.8, 5.6)
    axes.set_ylim(-2.4, 2.4)
    return svg(made)


def collective() -> str:
    """Draw the cut that bounds an all-gather among GPUs 0, 3, 4 and 7 of DGX-1V."""
    machine = tp.machines.get("dgx1-v100")
    points = {0: (0.0, 1.0), 3: (0.0, -1.0), 4: (2.4, 1.0), 7: (5.2, 0.0)}
    rates = tp.collective.PRESETS["nccl-2.30"].gb_per_s
    inside, crossing = {0, 3, 4}, rates["pcie3"]
    made, axes = figure(6.6, 3.6)
    for u, v, link in machine.links:
        if u in points and v in points:
            rate = rates["nvlink2"] * link.lanes
            across = (u in inside) != (v in inside)
            crossing += rate * across
            style = {"color": RED if across else BLUE, "linewidth": 1 + rate / 15}
            edge(axes, (points[u], points[v]), f"{rate:g}", **style)
    switch = (3.6, -1.5)
    edge(axes, (switch, points[7]), f"{rates['pcie3']:g}", color=RED, linestyle=DASHED)
    axes.text(switch[0] - 0.1, switch[1], "PCIe and CPUs", ha="right", va="center", fontsize=9)
    axes.add_patch(patches.Arc((5.6, 0.0), 3.4, 4.6, theta1=110, theta2=250, color=DARK, linestyle="--"))
    colours = {gpu: BLUE if gpu in inside else ORANGE for gpu in points}
    vertices(axes, points, colours, {gpu: str(gpu) for gpu in points})
    bound = len(points) * crossing / len(inside)
    assert bound == tp.collective.optimal_bandwidth(machine, list(points))
    text = f"{crossing:g} GB/s lead to GPU 7, for the data of three: 4 · {crossing:g} / 3 = {bound:g} GB/s"
    axes.set_title(text, fontsize=10)
    axes.set_xlim(-0.7, 6.0)
    axes.set_ylim(-2.1, 2.1)
    return svg(made)


def capacity() -> str:
    """Draw a plan of rented machines: GPUs of each rented node over time."""
    table = {("NC6", 1): 20.0, ("NC12", 2): 11.0, ("Custom2", 1): 8.0, ("Custom2", 4): 2.5}
    hours = time_table(table, TABLE_II)
    jobs = [CapacityJob(f"job-{i}", due=6.0 + i, weight=0.5, hours=hours) for i in range(12)]
    plan = CapacityPlanner(gap=0.0).plan(Problem.of(jobs, TABLE_II, num_nodes=3, now=0.0))
    made, axes = figure(6.6, 5.0)
    axes.set_axis_on()
    axes.set_aspect("auto")
    lowest, middles, labels = 0.0, [], []
    for node in plan.nodes:
        kind = TABLE_II[node.vm_type]
        middles.append(lowest + kind.num_gpus / 2)
        labels.append(f"{kind.name}\n{kind.num_gpus} GPUs")
        at = lowest
        for job, gpus in node.jobs:
            time = table[kind.name, gpus]
            axes.barh(at + gpus / 2, time, gpus - 0.12, color=BLUE if gpus > 1 else ORANGE)
            axes.text(0.15, at + gpus / 2, jobs[job].job_id, va="center", color="white", fontsize=8)
            axes.plot([jobs[job].due] * 2, [at + 0.1, at + gpus - 0.1], color=RED, linewidth=2)
            at += gpus
        lowest += kind.num_gpus + 1.5
    axes.set_yticks(middles, labels, fontsize=8)
    axes.set_xlim(0, 18)
    axes.set_xlabel("hours; red: when the job is due", fontsize=9)
    axes.set_title(f"the cheapest plan: {plan.cost.total:.2f} $, proven", fontsize=10)
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)
    return svg(made)
