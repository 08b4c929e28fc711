"""Comparisons of the numbers in the thesis' chapter 5 with our simulations, each with a verdict."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final

from topoplace_lab.papers.claims import ClaimedQuantity, PaperClaim, listed
from topoplace_lab.papers.drmaestro import rodinia
from topoplace_lab.papers.drmaestro.study import DRMaestroStudy, StudyRun
from topoplace_lab.papers.rules import Range, Ranges, between, near, ordered
from topoplace_lab.simulate.samples import Sample

_NEAR: Final = 0.05
"""Ratios of makespans that differ by at most this, and by half of the paper's effect, count as equal."""
_ABOVE_1: Final[Range] = (1.001, math.inf)
_BELOW_1: Final[Range] = (0.0, 0.999)
_BUSY: Final = (100.0, 700.0)
"""Interval in seconds: all jobs have been submitted, and no long job has finished."""
_LONGEST_DECISION: Final = 1.0
"""Limit in seconds; the thesis' decisions are "in the order of sub-seconds"."""
_MOST_POSTPONEMENTS: Final = 10.0
Makespans = tuple[float, float]
"""Makespans in seconds: with local GPUs only, and with GPUs attached over the network."""
EXPERIMENT_1: Final[Makespans] = (2486.0, 2191.0)
TABLE_9: Final[Mapping[bool, Makespans]] = {False: (413.08, 261.77), True: (418.83, 300.07)}
"""Makespans with the network-aware policy off (False) and on (True); TABLE_10 has the same form."""
TABLE_10: Final[Mapping[bool, Makespans]] = {False: (1087.73, 972.20), True: (959.21, 862.15)}
_FIT: Final = (
    "the applications' run times, whose mean follows from experiment 1's makespan, and the long jobs' CPUs, which "
    "leave 6 GPUs with local CPUs"
)


def shares() -> Iterator[PaperClaim]:
    """List the time that programs spend in the network (section 3.3.3), and the slowdowns that this implies."""
    known = {name: app for name, app in rodinia.APPLICATIONS.items() if name != "hotspot"}
    full = {name: rodinia.PROFILES[name].slowdown(1.0, remote=True) for name in known}
    yield ClaimedQuantity(
        "5.8",
        "share of time in the network, alone and next to iperf (%); run time next to iperf over alone",
        ", ".join(f"{name} {app.alone:g} -> {app.contended:g}" for name, app in known.items()),
    ).not_comparable(
        ", ".join(f"{name} {slowdown:.3f}" for name, slowdown in full.items()),
        "the thesis gives shares only; (1 - s) / (1 - s') follows if computing takes equally long both times",
    )


def experiment_1(study: DRMaestroStudy) -> Iterator[PaperClaim]:
    """Compare experiment 1 (section 5.6.2) with our results: makespans, busy GPUs and decision times.

    Each is measured without and with remote GPUs. study: 512 jobs on four machines. The policy ignores network
    contention.
    """
    off, on = study.runs(disaggregate=False), study.runs(disaggregate=True)
    yield _speedup("5.2", f"experiment 1, {study.where}", EXPERIMENT_1, off, on, fitted=_FIT)
    busy = [Sample.of(run.busy_gpus(*_BUSY) for run in runs) for runs in (off, on)]
    yield ClaimedQuantity(
        "5.2b", "experiment 1, GPUs busy while the long jobs run, without and with disaggregation", "6, 16"
    ).judged(listed(busy), near(6.0, 16.0, tolerance=0.5), *busy, fitted=_FIT)
    yield from overhead("5.3", study, slower=True)


def overhead(number: str, study: DRMaestroStudy, *, slower: bool) -> Iterator[PaperClaim]:
    """Compare decision times with figures 24 and 27: the longest, and the ratio of means with to without remote GPUs.

    number: prefix of the claims' ids. slower: True if the thesis' decisions take longer with remote GPUs.
    """
    off, on = (study.runs(disaggregate=way) for way in (False, True))
    longest = Sample.of(max(*a.seconds, *b.seconds) for a, b in zip(off, on, strict=True))
    yield ClaimedQuantity(
        f"{number}a", f"{study.where}: the longest decision (ms)", "in the order of sub-seconds", machine=True
    ).judged(
        f"{longest.times(1e3):.1f}",
        between(-math.inf, _LONGEST_DECISION, f"below {_LONGEST_DECISION:g} s"),
        longest,
        note="CPU time on this machine; one decision plans all waiting jobs",
    )
    ratio = _ratio(on, off, _mean_seconds)
    each = (Sample.of(1e3 * _mean_seconds(run) for run in runs) for runs in (on, off))
    yield ClaimedQuantity(
        f"{number}b",
        f"{study.where}: mean time of a decision with disaggregation over that without (and in ms)",
        "about 2 (two phases, not one)" if slower else "below 1 (the queue is shorter)",
        machine=True,
    ).judged(
        f"{ratio:.2f} ({listed(each, 2)})",
        near(2.0, tolerance=0.5).or_order("above 1", _ABOVE_1) if slower else ordered("below 1", _BELOW_1),
        ratio,
        note="jobs that cannot fit are checked once per kind, so decisions without disaggregation are fast, too",
    )


def table(number: str, study: DRMaestroStudy, paper: Mapping[bool, Makespans]) -> Iterator[PaperClaim]:
    """Compare table 9 or 10 with our results: makespan ratios due to remote GPUs, a network-aware policy, and both.

    number: prefix of the claims' ids. paper: the table's makespans, by whether the policy is network-aware.
    """
    for aware in (False, True):
        off, on = (study.runs(disaggregate=way, network_aware=aware) for way in (False, True))
        title = f"{study.where}, network-aware policy {'on' if aware else 'off'}"
        yield _speedup(f"{number} {'aware' if aware else 'off'}", title, paper[aware], off, on)
    for way in (False, True):
        yield _policy_speedup(number, study, paper, disaggregate=way)
    yield _both(number, study, paper)


def slowdowns(number: str, study: DRMaestroStudy) -> Iterator[PaperClaim]:
    """Compare figures 29 and 31 with our results: job slowdowns without and with a network-aware policy.

    A slowdown is run time over run time alone. The last row counts postponements of a job. number: prefix of the
    claims' ids.
    """
    for way in (False, True):
        off, aware = (study.runs(disaggregate=way, network_aware=value) for value in (False, True))
        means = [Sample.of(run.mean_slowdown for run in runs) for runs in (off, aware)]
        worst = [Sample.of(float(run.slowdowns[0]) for run in runs) for runs in (off, aware)]
        ratio = _ratio(off, aware, lambda run: run.mean_slowdown)
        yield ClaimedQuantity(
            f"{number} slowdown, {way_of(way)}",
            f"{study.where}: mean slowdown of jobs, network-aware policy off and on (in brackets the worst)",
            "lower with it (figure without numbers)",
        ).judged(
            f"{listed(means, 4)} ({listed((each.mean for each in worst), 3)})",
            ordered("if the mean off over that on is above 1", _ABOVE_1),
            ratio,
            note=f"the ratio is {ratio:.4f}",
        )
    most = max(run.most_postponements for run in study.runs(disaggregate=True, network_aware=True))
    yield ClaimedQuantity(
        f"{number} postponed", f"{study.where}: most postponements of a job", "at most 10"
    ).identity(
        str(most),
        between(0.0, _MOST_POSTPONEMENTS, "up to 10"),
        float(most),
        note="a parameter: the policy never postpones a job an eleventh time",
    )


def _speedup(
    number: str,
    title: str,
    paper: Makespans,
    off: Sequence[StudyRun],
    on: Sequence[StudyRun],
    *,
    fitted: str = "",
) -> PaperClaim:
    ratio, theirs = _ratio(off, on), paper[0] / paper[1]
    makespans = [Sample.of(run.makespan for run in runs) for runs in (off, on)]
    return ClaimedQuantity(
        number,
        f"{title}: makespan without disaggregation, with it (s), and their ratio",
        f"{paper[0]:.0f}, {paper[1]:.0f}, {theirs:.2f}",
    ).judged(
        f"{listed(makespans, 0)}, {ratio:.2f}",
        rule_of(theirs),
        ratio,
        note="the ratio is compared; the CPUs of the long jobs are known for experiment 1 only",
        fitted=fitted,
    )


def _policy_speedup(
    number: str, study: DRMaestroStudy, paper: Mapping[bool, Makespans], *, disaggregate: bool
) -> PaperClaim:
    theirs = paper[False][disaggregate] / paper[True][disaggregate]
    off, aware = (study.runs(disaggregate=disaggregate, network_aware=value) for value in (False, True))
    title = f"{study.where}: makespan with the network-aware policy off over on"
    return _ratio_row(f"{number} policy, {way_of(disaggregate)}", title, theirs, _ratio(off, aware))


def _both(number: str, study: DRMaestroStudy, paper: Mapping[bool, Makespans]) -> PaperClaim:
    theirs = paper[False][0] / paper[True][1]
    ratio = _ratio(study.runs(disaggregate=False), study.runs(disaggregate=True, network_aware=True))
    return _ratio_row(
        f"{number} both", f"{study.where}: makespan with neither over that with both", theirs, ratio
    )


def _ratio_row(number: str, title: str, theirs: float, ratio: Sample) -> PaperClaim:
    return ClaimedQuantity(number, title, f"{theirs:.2f}").judged(f"{ratio:.2f}", rule_of(theirs), ratio)


def rule_of(theirs: float) -> Ranges:
    """Return the rule that judges our ratio of makespans by the paper's: near it, or else on the same side of 1.

    theirs: the paper's ratio. The tolerance is at most half of its distance from 1, so that 1 is never near.
    """
    side = ("above 1", _ABOVE_1) if theirs > 1 else ("below 1", _BELOW_1)
    return near(theirs, tolerance=min(_NEAR, abs(theirs - 1) / 2)).or_order(*side)


def _ratio(
    off: Sequence[StudyRun],
    on: Sequence[StudyRun],
    of: Callable[[StudyRun], float] = lambda run: run.makespan,
) -> Sample:
    """Return, for each seed, the ratio of a quantity in its run of `off` to that in its run of `on`.

    of: the quantity, by default the makespan. Both runs of a seed have the same jobs.
    """
    return Sample.of(of(before) / of(after) for before, after in zip(off, on, strict=True))


def _mean_seconds(run: StudyRun) -> float:
    return sum(run.seconds) / len(run.seconds)


def way_of(disaggregate: bool) -> str:
    """Return the name of runs with or without remote GPUs in ids of rows."""
    return "disaggregated" if disaggregate else "local GPUs"
