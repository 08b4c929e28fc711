"""The first lines of a decision: the gain over the lowest free ids, and the distance from the best placement."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from topoplace.placement import Placement
    from topoplace.policies.yardsticks import Speed, Yardsticks

_CLEAR: Final = 1.1
"""Least ratio that is printed as a ratio; a smaller one is printed in per cent."""
_TWICE: Final = 1.995


def lines(gpus: str, placed: Placement, found: Yardsticks | None, *, is_idle: bool) -> Iterator[str]:
    """Yield a placement's gain over the lowest free ids, and how much slower it is than the best on the idle cluster.

    Args:
        gpus: The GPUs of the placement in words.
        placed: The placement.
        found: The placement and those with which it is compared; None if it cannot be compared.
        is_idle: True if the cluster has no jobs, so that the second line is omitted.
    """
    if found is None:
        yield f"{gpus}: {_why_not_compared(placed)}"
        return
    what = "" if found.placed.gb_per_s else "communication "
    assumed = " (assumed)" * _is_assumed(placed)
    parts = [f"{gpus}: {what}{_carried(found.placed)}{assumed}", _beside_lowest(found), _proof(placed)]
    yield "; ".join(part for part in parts if part)
    where = "machine" if placed.topology.num_machines == 1 else "cluster"
    more = _share_of_step(found.placed) if is_idle else _beside_idle(found, where)
    if more:
        yield more


def proof(placement: Placement) -> str:
    """Return the statement that no placement is better, or the limit in percent by which others can be faster."""
    if placement.optimal:
        return "yes"
    if not placement.bound:
        return "no"
    more = math.ceil(100 * (placement.time / placement.bound - 1))
    return f"within {more} %" if more < 100 else "no"


def _why_not_compared(placed: Placement) -> str:
    job = placed.job
    if job is None or not job.edges or job.num_tasks < 2:
        return "nothing is communicated"
    if job.takes_parts or placed.slices:
        return "not compared with other GPUs, as the job takes parts of GPUs"
    if placed.remote:
        return "not compared with other GPUs, as it reaches some over the network"
    return "not compared with other GPUs, as a link's speed is not known"


def _is_assumed(placed: Placement) -> bool:
    """Return True if speeds on a machine of the placement are assumed."""
    from topoplace.topology.speed_overrides import speeds_of

    topology = placed.topology
    tiling, numbers = topology.tiling, topology.machine_of[list(placed.gpus)].tolist()
    machines = [tiling.template(number) for number in set(numbers)] if tiling else [topology]
    return any(one.assumed or speeds_of(one) == "assumed" for one in machines)


def _proof(placement: Placement) -> str:
    """Return the proof in words, if it is about time: other policies prove what they maximise."""
    if placement.bound is None:
        return ""
    said = proof(placement)
    return {"yes": "proven best", "no": ""}.get(said, f"{said} of the best")


def _carried(speed: Speed) -> str:
    """Return GB/s of a job that is one ring collective, else how long it communicates."""
    from topoplace.drawing import tables

    if not speed.gb_per_s:
        return tables.duration(speed.seconds)
    return f"{tables.number(speed.gb_per_s)} GB/s{' by NVLS' if speed.by_switches else ''}"


def _beside_lowest(found: Yardsticks) -> str:
    placed, lowest = found.placed, found.lowest
    if lowest is None:
        return "the lowest free ids cannot serve this job"
    if sorted(placed.gpus) == sorted(lowest.gpus) and placed.equals(lowest):
        return "these are the lowest free ids"
    if placed.equals(lowest):
        return "no better than the lowest free ids: equally fast"
    if lowest.seconds < placed.seconds:
        how = _times(placed.seconds / lowest.seconds, "faster")
    else:
        how = _times(lowest.seconds / placed.seconds, "slower")
    if sorted(placed.gpus) == sorted(lowest.gpus):
        what = "the same GPUs in the order of their ids"
    else:
        what = "the lowest free ids" + (" are faster:" if lowest.seconds < placed.seconds else "")
    return f"{what} {_carried(lowest)} ({how})"


def _beside_idle(found: Yardsticks, where: str) -> str:
    """Return how much longer the job communicates, and how long a step takes, than at best without other jobs."""
    placed, idle = found.placed, found.idle
    best = "at best" if found.is_idle_proven else "the best found"
    parts = [f"as fast as {best} on the idle {where}", _share_of_step(placed)]
    if not placed.equals(idle):
        parts[0] = f"{best} on the idle {where} {_carried(idle)}: communication takes "
        parts[0] += _longer(placed.seconds / idle.seconds)
        if placed.step_s is not None and idle.step_s is not None:
            parts[0] += f", a step {_longer(placed.step_s / idle.step_s)}"
    return "; ".join(part for part in parts if part)


def _share_of_step(placed: Speed) -> str:
    """Return what share of a step communicates; "" if it is not known how long a step computes."""
    from topoplace.topology.accelerators import USUAL_EFFICIENCY

    if placed.step_s is None:
        return ""
    peak = f"GPUs computing at {_percent(USUAL_EFFICIENCY)} of their peak"
    return f"communication is {_percent(placed.seconds / placed.step_s)} of a step, {peak}"


def _longer(ratio: float) -> str:
    return f"{_times(ratio)} as long" if ratio >= _TWICE else f"{_percent(ratio - 1)} longer"


def _percent(share: float) -> str:
    from topoplace.drawing import tables

    return f"{tables.number(float(f'{100 * share:.2g}'))} %"


def _times(ratio: float, which: str = "") -> str:
    """Return a ratio above 1 in words; `which` says of a small one whether it is slower or faster."""
    if ratio < _CLEAR:
        return f"{_percent(ratio - 1)} {which}"
    return f"{ratio:.0f} ×" if ratio >= 9.95 else f"{ratio:.2g} ×"
