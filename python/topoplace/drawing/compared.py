"""Draw two placements of a job in one picture, with the bandwidth of each and the factor between them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from topoplace import _checks
from topoplace.collective import library_of, ring_bandwidth
from topoplace.drawing import legend, svg_text
from topoplace.drawing.picture import WIDTH, draw_body, title_of
from topoplace.drawing.scene import Scene, Text, fitted
from topoplace.drawing.states import Busy, check_job, states_of
from topoplace.errors import TopologyError
from topoplace.objectives.communication import communication_time
from topoplace.objectives.job_bandwidth import job_bandwidth

if TYPE_CHECKING:
    from topoplace.jobs.job_graph import JobGraph
    from topoplace.topology.topology import Topology

_MARGIN: Final = 14.0
_MAX_BESIDE: Final = 16
"""Largest machine of which two are drawn side by side; larger ones are drawn one below the other."""
_MAX_LISTED: Final = 16


@dataclass(frozen=True)
class _Side:
    """A placement and what it carries."""

    gpus: Sequence[int]
    gb_per_s: float
    """Of rings among all GPUs, or of the job's all-reduce in NVSwitches, which are faster."""
    by_switches: bool
    seconds: float | None
    """How long a step communicates; None without a job, or if nothing communicates."""
    per: str
    """What takes these seconds: "a step", or "a GB" if all collectives have one, as without traffic of a model."""


def before_after(
    topology: Topology,
    before: Sequence[int],
    after: Sequence[int],
    *,
    job: JobGraph | None = None,
    busy: Busy = (),
    theme: str = "auto",
) -> str:
    """Return a drawing of two sets of GPUs for one job, with the bandwidth of NCCL's rings on each, as the text of an
    SVG.

    For a job that is one all-reduce, the bandwidth is that of reducing NVSwitches if they are faster. A sentence above
    states the ratio of the bandwidths and, with `job`, the communication time of a step.

    Args:
        before: The GPUs of the first placement, in task order.
        after: The GPUs of the second placement, in task order.
        job: The job whose links are highlighted and whose communication time is computed; None for neither.
        busy: As for `topoplace.drawing.svg`.
        theme: "auto", "light" or "dark".

    Raises:
        TopologyError: Names a wrong argument.
    """
    _checks.one_of(theme, "theme", svg_text.THEMES, TopologyError)
    both = states_of(topology, busy, before, ()), states_of(topology, busy, after, ())
    if len(both[0].task_of) != len(both[1].task_of):
        raise TopologyError(
            f"after = {_checks.shown(after)} has {len(both[1].task_of)} GPUs, before has {len(both[0].task_of)}: "
            "only sets of equal size can be compared"
        )
    for states, name in zip(both, ("before", "after"), strict=True):
        check_job(job, states, name)
    sides = [_rated(topology, list(states.task_of), job) for states in both]
    scene = Scene(float(WIDTH), title=_conclusion(topology, *sides))
    inner = scene.width - 2 * _MARGIN
    scene.add(Text(_MARGIN, 24, fitted(scene.title, inner, 14), 14, "start", "label strong"))
    about = fitted(title_of(topology) + _pace(*sides), inner, 11)
    scene.add(Text(_MARGIN, 42, about, 11, "start", "faint"))
    is_beside = topology.num_gpus <= _MAX_BESIDE
    width = (inner - _MARGIN) / 2 if is_beside else inner
    x, y, bottom = _MARGIN, 64.0, 64.0
    for i, (states, side) in enumerate(zip(both, sides, strict=True)):
        text = fitted(f"{'before' if not i else 'after'}: {_described(side)}", width, 12)
        scene.add(Text(x, y, text, 12, "start", "label strong"))
        bottom = max(bottom, draw_body(scene, states, job, (x, y + 8), width))
        x, y = (x + width + _MARGIN, y) if is_beside else (x, bottom + 24)
    scene.height = legend.draw(scene, bottom + 8) + 8
    return svg_text.written(scene, theme)


def _rated(topology: Topology, gpus: Sequence[int], job: JobGraph | None) -> _Side:
    if len(gpus) < 2:
        return _Side(gpus, 0.0, False, None, "")
    seconds = communication_time(job, gpus, topology).seconds if job else None
    sizes = {one.gigabytes for one in job.collectives} if job else set[float]()
    carried = job_bandwidth(job, gpus, topology) if job else (ring_bandwidth(topology, gpus), False)
    return _Side(gpus, *carried, seconds or None, "a GB" if sizes == {1.0} else "a step")


def _conclusion(topology: Topology, before: _Side, after: _Side) -> str:
    """Return the sentence that compares two placements."""
    now, then = after.gb_per_s, before.gb_per_s
    if not now or not then:
        return "Before and after"
    unit = "NCCL's rings carry" if library_of(topology) == "NCCL" else "rings carry"
    if before.by_switches or after.by_switches:
        unit = "an all-reduce carries"
    factor = now / then
    if factor == 1:
        text = f"{unit} {now:.3g} GB/s on either set of GPUs"
    elif factor > 1:
        text = f"{factor:.3g} × the bandwidth: {unit} {now:.3g} in place of {then:.3g} GB/s"
    else:
        text = f"1/{1 / factor:.3g} of the bandwidth: {unit} {now:.3g} in place of {then:.3g} GB/s"
    return text


def _pace(before: _Side, after: _Side) -> str:
    """Return how much faster, or longer, a step communicates, if that is known."""
    if not (before.seconds and after.seconds):
        return ""
    factor = before.seconds / after.seconds
    if factor < 1:
        return f" – a step communicates {1 / factor:.3g} × as long"
    return f" – a step communicates {factor:.3g} × as fast"


def _described(side: _Side) -> str:
    shown = ", ".join(map(str, side.gpus[:_MAX_LISTED])) + (" …" if len(side.gpus) > _MAX_LISTED else "")
    parts = [f"GPUs {shown}"]
    parts += [f"{side.gb_per_s:.3g} GB/s{' by NVLS' * side.by_switches}"] if side.gb_per_s else []
    parts += [f"{side.seconds * 1e3:.3g} ms {side.per}"] if side.seconds else []
    return " – ".join(parts)
