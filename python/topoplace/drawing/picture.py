"""Draw a topology: choose its layout, draw it with a title and a legend, and write it as an SVG."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final

from topoplace import _checks
from topoplace.drawing import cluster_layout, legend, ring_layout, row_layout, svg_text, torus_layout
from topoplace.drawing.frame import Frame
from topoplace.drawing.scene import Scene, Text, fitted
from topoplace.drawing.states import Busy, States, check_job, states_of
from topoplace.drawing.traffic import Traffic, traffic_of
from topoplace.drawing.wires import Wiring, direct_links
from topoplace.errors import TopologyError
from topoplace.topology.links.link_kinds import LinkKind

if TYPE_CHECKING:
    from topoplace.jobs.job_graph import JobGraph
    from topoplace.topology.topology import Topology

WIDTH: Final = 800
_NARROWEST, _WIDEST = 320, 4000
_TITLE: Final = 15.0
_MARGIN: Final = 14.0
_AROUND: Final = 110.0
"""Total height of the title, the sentence and the legend around the machines."""
_MAX_LINES: Final = 300
"""Limit on direct links that are drawn in a machine; more could not be distinguished."""


def svg(
    topology: Topology,
    *,
    busy: Busy | None = (),
    chosen: Sequence[int] = (),
    job: JobGraph | None = None,
    degraded: Iterable[int] = (),
    width: int = WIDTH,
    height: int | None = None,
    theme: str = "auto",
) -> str:
    """Return a drawing of `topology` as the text of an SVG; equal arguments give equal text.

    A GPU is an element with the attribute `data-gpu` and the classes "gpu" and its state: "free", "busy", "chosen",
    "unhealthy" or "other", and "degraded" besides. A link is one with `data-link`, such as "0-3", and the classes of
    its kind and its speed ("kind-nvlink2 speed-2"). A machine of a cluster has `data-machine`, a network adapter
    `data-adapter`. With more than 1,024 GPUs, or more than fit `height`, each machine is one tile, shaded by the share
    of its GPUs in use. Every colour is a custom property of CSS, such as `--topoplace-busy`.

    Args:
        busy: GPUs in use, or the GPUs of each job by its name, as `Cluster.allocations` returns them. None if unknown:
            GPUs that are not chosen then have the state "other".
        chosen: The GPUs of a job, in task order.
        job: With `chosen`, also highlight the links that carry its data: on one machine, those of the rings that the
            library plans, with the slowest of them.
        degraded: GPUs that work, but with faults.
        width: Width in pixels; racks of NVSwitches get at least the default.
        height: Limit in pixels for many machines; if they do not fit, they are tiles with names. None for no limit.
        theme: "auto" follows the reader's colour scheme, "light" and "dark" force one.

    Raises:
        TopologyError: Names a wrong argument.
    """
    _checks.one_of(theme, "theme", svg_text.THEMES, TopologyError)
    return svg_text.written(
        scene(topology, busy=busy, chosen=chosen, job=job, degraded=degraded, width=width, height=height),
        theme,
    )


def scene(
    topology: Topology,
    *,
    busy: Busy | None = (),
    chosen: Sequence[int] = (),
    job: JobGraph | None = None,
    degraded: Iterable[int] = (),
    width: int = WIDTH,
    height: int | None = None,
) -> Scene:
    """Return the drawing that `svg` writes; arguments and errors are the same."""
    states = states_of(topology, busy, chosen, degraded)
    check_job(job, states, "chosen")
    wide = _checks.integer(width, "width", TopologyError, low=_NARROWEST, high=_WIDEST)
    if topology.num_machines > 1 and any(level.kind is LinkKind.NVSWITCH for level in topology.levels):
        wide = max(wide, WIDTH)  # room for the two rows of a domain, with its switches between them
    made = Scene(float(wide), title=title_of(topology))
    text = fitted(made.title, made.width - 2 * _MARGIN, _TITLE)
    made.add(Text(_MARGIN, 24, text, _TITLE, "start", "label strong"))
    room = math.inf
    if height is not None:
        room = _checks.integer(height, "height", TopologyError, low=_NARROWEST, high=_WIDEST) - _AROUND
    bottom = draw_body(made, states, job, (_MARGIN, 34.0), made.width - 2 * _MARGIN, room)
    made.height = legend.draw(made, bottom + 8) + 8
    return made


def title_of(topology: Topology) -> str:
    """Return a line that describes a topology, as the title."""
    machines = f"{topology.num_machines:,} machines, " if topology.num_machines > 1 else ""
    models = {gpu.model for template in topology.templates for gpu in template.gpus}
    model = f" ({', '.join(sorted(str(model) for model in models))})" if models != {None} else ""
    return f"{topology.name}: {machines}{topology.num_gpus:,} GPUs{model}"


def draw_body(
    made: Scene,
    states: States,
    job: JobGraph | None,
    at: tuple[float, float],
    width: float,
    height: float = math.inf,
) -> float:
    """Draw the topology of `states` at (x, y) = `at` of a scene, and return the y coordinate of its end."""
    wiring = Wiring(made)
    frame = Frame(made, states, *at, width, height, _traffic(states, job), wiring)
    bottom = _draw(frame, states.topology)
    wiring.explain()
    return bottom


def _traffic(states: States, job: JobGraph | None) -> Traffic:
    if job is None or not states.task_of:
        return Traffic()
    return traffic_of(states.topology, job, list(states.task_of))


def _draw(frame: Frame, topology: Topology) -> float:
    if grid := torus_layout.grid_of(topology):
        return torus_layout.draw(frame, grid)
    lines = len(direct_links(topology)) if topology.tiling is None else 0
    if topology.tiling is None and topology.num_gpus <= ring_layout.MAX_GPUS and 0 < lines <= _MAX_LINES:
        return ring_layout.draw(frame)
    if topology.num_machines == 1 and topology.num_gpus <= row_layout.MAX_GPUS and not lines:
        return row_layout.draw(frame)
    return cluster_layout.draw(frame)
