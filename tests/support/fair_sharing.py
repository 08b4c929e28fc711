"""Max-min fair sharing by its words, in exact fractions: all flows speed up together until a hop of theirs is full."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from topoplace.testing.recomputed_time import Phase


@dataclass
class _Stream:
    hops: Sequence[int]
    left: Fraction
    owner: tuple[int, int]
    rate: Fraction = Fraction(0)


def phase_seconds(jobs: Sequence[Sequence[Phase]], gb_per_s: Mapping[int, float]) -> list[list[float]]:
    """Return, for each job and phase, the seconds until the last of its flows has ended, if all jobs begin at once."""
    now = Fraction(0)
    began: dict[tuple[int, int], Fraction] = {}
    seconds: dict[tuple[int, int], float] = {}
    streams: list[_Stream] = []
    running = dict.fromkeys(range(len(jobs)), -1)
    while True:
        for job in list(running):
            while job in running and _is_over(jobs, job, running[job], began, streams, now):
                running[job] += 1
                if running[job] == len(jobs[job]):
                    del running[job]
                    continue
                owner = job, running[job]
                began[owner], seconds[owner] = now, 0.0
                for hops, gigabytes in jobs[job][running[job]].flows:
                    if hops is None or any(gb_per_s[hop] == 0 for hop in hops):
                        seconds[owner] = math.inf
                    elif hops:
                        streams.append(_Stream(hops, Fraction(gigabytes), owner))
        if not running:
            return [[seconds[job, i] for i in range(len(phases))] for job, phases in enumerate(jobs)]
        set_fair_rates(streams, gb_per_s)
        waits = [began[job, i] + Fraction(jobs[job][i].at_least) - now for job, i in running.items()]
        step = min([one.left / one.rate for one in streams] + [wait for wait in waits if wait > 0])
        now += step
        for one in streams:
            one.left -= step * one.rate
            if not one.left:
                seconds[one.owner] = max(seconds[one.owner], float(now - began[one.owner]))
        streams = [one for one in streams if one.left]


def _is_over(
    jobs: Sequence[Sequence[Phase]],
    job: int,
    phase: int,
    began: Mapping[tuple[int, int], Fraction],
    streams: Sequence[_Stream],
    now: Fraction,
) -> bool:
    if phase < 0:
        return True
    is_running = any(one.owner == (job, phase) for one in streams)
    return not is_running and now >= began[job, phase] + Fraction(jobs[job][phase].at_least)


def set_fair_rates(streams: Sequence[_Stream], gb_per_s: Mapping[int, float]) -> None:
    """Raise the rates of all streams by the same amount until a hop is full; its streams stay, the others go on."""
    free = {hop: Fraction(gb_per_s[hop]) for one in streams for hop in one.hops}
    growing = list(streams)
    for one in growing:
        one.rate = Fraction(0)
    while growing:
        crossing = Counter(hop for one in growing for hop in one.hops)
        more = min(free[hop] / count for hop, count in crossing.items())
        for one in growing:
            one.rate += more
        for hop, count in crossing.items():
            free[hop] -= more * count
        growing = [one for one in growing if all(free[hop] for hop in one.hops)]
