"""Comparisons of the numbers in the TSUBAME paper with our simulations, each with a verdict.

G is the queue without remote GPUs, R the queue with them.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Final

import numpy as np

from topoplace_lab.papers.claims import ClaimedQuantity, PaperClaim, listed
from topoplace_lab.papers.rules import ANY, Equal, Range, Ranges, alike, between, near
from topoplace_lab.papers.tsubame import machine
from topoplace_lab.papers.tsubame.study import (
    G_QUEUE,
    R_QUEUE,
    Floats,
    GeneratedLog,
    Log,
    StudyOutcome,
    TsubameStudy,
    workload_of,
)
from topoplace_lab.simulate import Transfers, Workload
from topoplace_lab.simulate.samples import Sample
from topoplace_lab.simulate.workloads.logged_jobs import CONNECTIONS

MEANS: Final = {"wait": 3818.0, "execution": 15_148.0, "life": 18_965.0}
"""Means in seconds under G on 480 nodes, implied by Table 3 and the percentages of section 4.2."""
CHANGES: Final = {"wait": -0.2524, "execution": 0.0003, "life": -0.0506}
"""Relative changes of the means under R, section 4.2."""
TABLE_3: Final = {
    "wait": ((-901.49, -32.87, 449.14, 963.60), (4236.04, 3654.48, 3277.54, 6678.48)),
    "execution": ((-5.81, -4.55, -4.31, -3.96), (39.46, 35.27, 34.41, 32.25)),
    "life": ((-907.29, -37.42, 444.83, 959.65), (4238.53, 3651.69, 3272.51, 6674.77)),
}
"""Mean and standard deviation in seconds of G on 480 nodes minus R on 450, 460, 470 and 480."""
_TABLE_TOLERANCE: Final = {"wait": 190.0, "execution": 1.0, "life": 190.0}
"""Largest difference from Table 3 that counts as equal, in seconds: 5 % of the mean wait, a quarter of execution's."""
_FACTOR: Final = 2.0
"""Shares of jobs, or times, that differ by up to this factor count as alike."""
_YEAR: Final = 360 * 86_400.0
"""Seconds that a log must span to count as a year; its last days may have no jobs."""
_LAB_GB_PER_S: Final = 6.38
"""Network bandwidth of the laboratory's machines, measured on FDR InfiniBand (section 2.1)."""
_LAB_NATIVE_GB_PER_S: Final = 172.0
_LAB: Final = {
    "Jacobi": ((7, 1.01),),
    "LAMMPS": ((7, 1.17), (9, 1.78)),
}
"""(number of streams that share the network's bandwidth, slowdown), section 2.1.2."""
_NEAR_LAMMPS: Final = 0.1
_UP: Final[Range] = (0.0, math.inf)
_FIT: Final = (
    "`generator.Habits`: a search chose campaigns, sizes, requests and run times to match the waits on 480, 460 "
    "and 450 nodes, the execution time and the share of jobs that wait longer under R; `day_swing` matches the mean "
    "wait in the year of seed 0, and years of other seeds were not fitted"
)


# ---- section 2: the copy model ------------------------------------------------------------------------------


def copies() -> Iterator[PaperClaim]:
    """Compare section 2 with our results: copy times to remote GPUs (eqs. 1 and 2).

    The last row only states what the measured slowdowns imply.
    """
    streams = (1, 2, 4, 8)
    theirs = [3.47e-3 + 1.0 / (_LAB_GB_PER_S / count) * 1.09 for count in streams]
    ours = [machine.SPEEDS.remote_copies(1.0, 1, _LAB_GB_PER_S / count) for count in streams]
    yield ClaimedQuantity(
        "2.1",
        "seconds of one copy of 1 GB by rCUDA, 6.38 GB/s shared by 1, 2, 4 and 8 streams (eqs. 1 and 2)",
        listed(theirs, 4),
    ).identity(
        listed(ours, 4),
        near(*theirs, tolerance=1e-9),
        *ours,
        note="the paper's formula; its fit to measurements (R2 = 0.986) cannot be repeated: they are in a figure only",
    )
    ratio = machine.SPEEDS.remote_copies(1.0, 1, _LAB_GB_PER_S) * _LAB_NATIVE_GB_PER_S
    yield ClaimedQuantity(
        "2.2",
        "time of one copy of 1 GB between GPUs by rCUDA over that inside a node, network idle",
        "a lot more (6.38 against 172 GB/s)",
    ).identity(
        f"{ratio:.1f}", between(10.0, math.inf, "above 10"), ratio, note="the paper gives the speeds only"
    )
    implied = {name: [(s - 1) / (parts - 1) for parts, s in measured] for name, measured in _LAB.items()}
    yield ClaimedQuantity(
        "2.3",
        "slowdown next to 6, and 8, streams; the share of time in the network that each implies",
        "Jacobi 1.01; LAMMPS 1.17, 1.78",
    ).not_comparable(
        "; ".join(f"{name} {listed((100 * s for s in shares), 1)} %" for name, shares in implied.items()),
        "the applications' traffic is unknown; a job that spends a share s of its time in the network takes 1 + (k "
        "- 1) s times as long with 1/k of the bandwidth. LAMMPS's two values imply different shares, so transfers "
        "must overlap with computing, as the paper assumes",
    )
    yield _lammps()


def _lammps() -> PaperClaim:
    """Predict LAMMPS next to 8 streams from its slowdown next to 6, without hidden transfers, as we simulate."""
    slowdown = dict(_LAB["LAMMPS"])
    few, many = sorted(slowdown)
    slow, slower = slowdown[few], slowdown[many]
    predicted = 1 + (many - 1) * (slow - 1) / (few - 1)
    hidden = many - (slower - 1) * (many - few) / (slower - slow)
    return ClaimedQuantity(
        "2.3 LAMMPS", "LAMMPS next to 8 streams, predicted from its slowdown next to 6", f"{slower:g}"
    ).judged(
        f"{predicted:.2f}",
        near(slower, tolerance=_NEAR_LAMMPS).or_order(
            "above its slowdown next to 6", (slow + 1e-9, math.inf)
        ),
        predicted,
        note=f"by 1 + (k - 1) s as in row 2.3; if transfers overlap with computing until they take longer, the two "
        f"values put that point at 1/{hidden:.1f} of the bandwidth, next to {hidden - 1:.1f} streams",
    )


# ---- section 4.1: the simulation's inputs -------------------------------------------------------------------


def inputs(study: TsubameStudy) -> Iterator[PaperClaim]:
    """Compare the paper's node (Table 2) and transfers (Table 1) with our inputs, and state the size of the first log.

    The row of data transfers is left out if the log has none.
    """
    node = (
        *(machine.NODE.cpus, machine.GPUS, machine.MEMORY),
        *(machine.SPEEDS.network_gb_per_s, machine.SPEEDS.network_latency * 1e3, machine.SPEEDS.gpu_gb_per_s),
        machine.SPEEDS.remote_latency * 1e3,
    )
    yield ClaimedQuantity(
        "2.4",
        "a node: CPUs, GPUs, GB of memory, network GB/s and ms, GPU to GPU GB/s, ms of a copy by rCUDA (Table 2)",
        "8, 3, 22, 10, 1.2, 171, 3.47",
    ).identity(
        ", ".join(f"{value:g}" for value in node),
        Equal((8, 3, 22, 10.0, 1.2, 171.0, 3.47)),
        *node,
        note="constants; the 0.92 x net.bw for rCUDA in Table 2 equals the 1 / 1.09 of eq. 1, which we use, to two "
        "digits",
    )
    workload = workload_of(study.logs[0])
    sent = [entry for entry in workload.transfers if entry is not None]
    if sent:
        yield _estimates(workload, sent)
    never = int(np.isnan(study.run(study.logs[0], G_QUEUE).wait).sum())
    yield ClaimedQuantity(
        "2.6",
        "the first log: jobs, and days from the first submission to the last",
        "the G queue's jobs of 2013, not published and not counted",
    ).not_comparable(
        f"{len(workload)}, {np.ptp(workload.submit_time) / 86_400:.0f}"
        + (f" ({never} jobs never fit and are left out)" if never else ""),
        "a generated log, or the one given",
    )


def _estimates(workload: Workload, sent: Sequence[Transfers]) -> PaperClaim:
    counts = np.array([(entry.network_connections, entry.gpu_connections) for entry in sent])
    low, high = CONNECTIONS
    middle = (low + high) / 2
    sizes = [(job.memory_gb or 0.0) / job.processes for job in workload.jobs]
    same = all(
        entry is None or entry.network_gb == entry.gpu_gb == size
        for entry, size in zip(workload.transfers, sizes, strict=True)
    )
    error = 5 * (high - low) / math.sqrt(12 * counts.size)
    within = (float(low), float(high))
    return ClaimedQuantity(
        "2.5",
        "connections per node, least, mean and most; data sizes equal the memory requested (Table 1)",
        f"{low}, {middle:.0f}, {high}; yes",
    ).identity(
        f"{counts.min():.0f}, {counts.mean():.0f}, {counts.max():.0f}; {'yes' if same else 'no'}",
        Ranges(
            (within, (middle - error, middle + error), within, (1.0, 1.0)),
            None,
            "reproduced if within the bounds, the mean within five standard errors, and sizes are equal",
        ),
        *(float(counts.min()), float(counts.mean()), float(counts.max()), float(same)),
        note="numbers of connections are drawn as Table 1 says",
    )


def means(study: TsubameStudy) -> PaperClaim:
    """Compare the mean wait, execution time and life (their sum) of jobs without remote GPUs with the paper's."""
    found = [study.mean(name) for name in MEANS]
    ours = _shown(study, found, ",.0f")
    row = ClaimedQuantity(
        "2.13",
        f"mean wait, execution and life under G on {study.nodes} nodes (s)",
        listed(MEANS.values(), 0),
        series=tuple(MEANS),
    )
    if np.ptp(workload_of(study.logs[0]).submit_time) < _YEAR:
        return row.not_comparable(ours, "the paper's log is of a year")
    return row.judged(
        ours,
        Ranges(
            tuple((0.9 * value, 1.1 * value) for value in MEANS.values()),
            None,
            "reproduced within 10 % each",
            tuple(MEANS.values()),
        ),
        *found,
        fitted=_fit(study),
    )


# ---- section 4.2: G next to R --------------------------------------------------------------------------------


def changes(study: TsubameStudy) -> Iterator[PaperClaim]:
    """Compare section 4.2 with our results: how remote GPUs change jobs' wait, execution time and life (their sum).

    For the last row, the share of jobs that borrow GPUs, the paper has no number.
    """
    rules = {
        "wait": near(CHANGES["wait"], tolerance=0.05).or_order("below -0.01", (-math.inf, -0.01)),
        "execution": between(0.0001, 0.0009, "from +0.01 to +0.09 %"),
        "life": near(CHANGES["life"], tolerance=0.015).or_order("below -0.01", (-math.inf, -0.01)),
    }
    for letter, (name, theirs) in zip("abc", CHANGES.items(), strict=True):
        change = study.change(name)
        row = ClaimedQuantity(
            f"2.7{letter}",
            f"mean {name} under R over that under G, {study.nodes} nodes",
            f"{100 * theirs:+.2f} %",
        )
        if math.isnan(change.mean):
            yield row.not_comparable("none under G", "G's mean is 0 in a log")
            continue
        ours = _shown(study, [change], "+.3%" if name == "execution" else "+.2%")
        yield row.judged(ours, rules[name], change, fitted=_fit(study))
    yield _hurt(study, "2.8a", "wait longer under R", "wait", (0.0081, 3.51), fitted=_fit(study))
    yield _hurt(study, "2.8c", "finish later under R", "life", (0.028, 6.81))
    yield _worst(study)
    yield ClaimedQuantity("2.8d", "share of jobs that borrow GPUs", "not stated").not_comparable(
        f"{study.each(lambda log: float(study.run(log, R_QUEUE).remote.mean())):.2%}",
        "jobs run 3.96 s longer on average, and one with the mean number of connections 174 s, which would be 2.3 % "
        "of the jobs",
    )


def _worst(study: TsubameStudy) -> PaperClaim:
    worst = study.each(lambda log: -float(study.difference(log, "execution").min()) / 60)
    return ClaimedQuantity("2.8b", "largest rise of a job's execution time (min)", "about 7").identity(
        f"{worst:.1f}",
        alike(7.0, factor=_FACTOR),
        worst,
        note="an upper bound: 100,000 connections of 3.47 ms are 5.8 min, and some job comes near it",
    )


def _hurt(
    study: TsubameStudy, number: str, title: str, of: str, theirs: tuple[float, float], *, fitted: str = ""
) -> PaperClaim:
    later = [-study.difference(log, of) for log in study.logs]
    share = Sample.of(float((seconds > 0).mean()) for seconds in later)
    minutes = Sample.of(
        float(seconds[seconds > 0].mean()) / 60 if (seconds > 0).any() else 0.0 for seconds in later
    )
    return ClaimedQuantity(
        number,
        f"share of jobs that {title}, and by how much on average (min)",
        f"{theirs[0]:.2%}, {theirs[1]:.2f}",
        series=("share", "minutes"),
    ).judged(
        f"{share:.2%}, {minutes:.2f}",
        alike(*theirs, factor=_FACTOR).or_order(
            "if these are less than a tenth of the jobs", (0.0, 0.1), ANY
        ),
        *(share, minutes),
        fitted=fitted,
    )


# ---- section 4.3: fewer nodes -------------------------------------------------------------------------------


def table_3(study: TsubameStudy) -> Iterator[PaperClaim]:
    """Compare Table 3 with our results: job times without remote GPUs on all nodes, minus those with them on fewer.

    Two more rows check the table's sums, and compare how many nodes remote GPUs save.
    """
    where = f"R on {', '.join(map(str, study.sizes))} nodes, G on {study.nodes}"
    series = tuple(f"{size} nodes" for size in study.sizes)
    for number, (name, (mean, spread)) in zip(("2.9", "2.10", "2.11"), TABLE_3.items(), strict=True):
        ours = [study.saved(name, size) for size in study.sizes]
        tolerance = _TABLE_TOLERANCE[name]
        steps = [more.minus(fewer) for fewer, more in pairwise(ours)]
        rule = near(*mean, tolerance=tolerance, unit=" s")
        yield ClaimedQuantity(
            f"{number}", f"mean {name} under G minus R (s); {where}", listed(mean, 2), series=series
        ).judged(
            _shown(study, ours, ".2f"),
            Ranges(
                (*(rule.reproduced or ()), *[ANY] * len(steps)),
                (*[ANY] * len(ours), *[_UP] * len(steps)),
                f"{rule.text}, order only if it rises with the nodes",
                rule.paper,
            ),
            *(*ours, *steps),
            fitted=_fit(study),
        )
        deviations = [
            study.each(lambda log, of=name, on=size: float(study.difference(log, of, on).std()))  # type: ignore[misc]
            for size in study.sizes
        ]
        yield ClaimedQuantity(
            f"{number} STD",
            f"standard deviation of {name} under G minus R (s); {where}",
            listed(spread, 2),
            series=series,
        ).judged(
            listed(deviations, 0),
            alike(*spread, factor=_FACTOR),
            *deviations,
            note="it depends on bursts in the log",
        )
    yield _sums(study)
    yield saving(study)


def _sums(study: TsubameStudy) -> PaperClaim:
    def off(wait: float, execution: float, life: float) -> float:
        return abs(wait + execution - life)

    ours = max(off(*(study.saved(name, size).mean for name in TABLE_3)) for size in study.sizes)
    theirs = max(off(*row) for row in zip(*(mean for mean, _ in TABLE_3.values()), strict=True))
    return ClaimedQuantity(
        "2.12", "wait plus execution is life: largest error of a row of Table 3 (s)", f"{theirs:.2f}"
    ).identity(f"{ours:.2f}", between(0.0, 0.015, "up to 0.015, which is rounding"), ours)


def saving(study: TsubameStudy) -> PaperClaim:
    """Compare the number of nodes that remote GPUs save, at equal mean life of jobs, with the paper's.

    A job's life is its time from submission to end.
    """
    lives = [study.saved("life", size).values for size in study.sizes]
    shares = Sample.of(1 - _crossing(study.sizes, log) / study.nodes for log in zip(*lives, strict=True))
    return ClaimedQuantity(
        "2.15", f"share of {study.nodes} nodes that R saves at G's mean life", "4.2 % (480 to 460)"
    ).judged(
        _shown(study, [shares], ".1%"),
        between(0.03, 0.055, "from 3 to 5.5 %").or_order("above 0.5 %", (0.005, 1.0)),
        shares,
        note="interpolated between Table 3's sizes; the text once says 480 to 450, which is 6.25 %; by its Table 3, "
        "jobs take 907 s longer there, so this must be a slip",
        fitted=_fit(study),
    )


def _crossing(sizes: Sequence[int], lives: Sequence[float]) -> float:
    """Return the cluster size at which remote GPUs neither shorten nor lengthen the mean life of jobs.

    lives: seconds by which remote GPUs shorten the mean life, for each size; the zero is interpolated linearly. If
    they do not change sign, the first or last size is returned.
    """
    for (fewer, more), (low, high) in zip(pairwise(sizes), pairwise(lives), strict=True):
        if low <= 0 < high:
            return fewer + (more - fewer) * low / (low - high)
    return float(sizes[0] if lives[0] > 0 else sizes[-1])


# ---- abstract: the congested queue --------------------------------------------------------------------------


def congested(ends: Sequence[tuple[StudyOutcome, StudyOutcome]], num_jobs: int, nodes: int) -> PaperClaim:
    """Compare the congested queue with our results: the makespan saved by remote GPUs if all jobs arrive at once.

    ends: for each list of jobs, the job times without and with remote GPUs.
    """
    saved = Sample.of(1 - after.makespan / before.makespan for before, after in ends)
    return ClaimedQuantity(
        "2.14",
        f"congested queue, {num_jobs} jobs on {nodes} nodes: time saved until the end of the last job under R",
        "15 to 30 %",
    ).judged(
        f"{saved:.1%}",
        between(0.15, 0.30, "from 15 to 30 %").or_order("above 1 %", (0.01, 1.0)),
        saved,
        note="the paper does not describe its jobs; ours are all submitted at once, and what they request is drawn "
        "uniformly",
    )


# ---- what was fitted ----------------------------------------------------------------------------------------


def _fit(study: TsubameStudy) -> str:
    """Return the parameters by which the generator was fitted to the paper; none if the log is given."""
    return _FIT if isinstance(study.logs[0], GeneratedLog) else ""


def _shown(study: TsubameStudy, values: Sequence[Sample], spec: str) -> str:
    """Return the values as text, and those of the first log, seed 0 of which the generator was fitted to."""
    mean = listed(values, spec)
    if len(study.logs) == 1:
        return mean
    return f"{mean}; first log {listed((value.values[0] for value in values), spec)}"


# ---- figures ------------------------------------------------------------------------------------------------


def histograms(study: TsubameStudy) -> list[tuple[str, Floats]]:
    """Return the panels of figures 9 to 11 for the first log, each a title and a value per job.

    They are the wait and the life that remote GPUs save in hours, and the execution time that they add in minutes.
    """

    def difference(of: str, log: Log = study.logs[0]) -> Floats:
        return study.difference(log, of)

    return [
        ("wait, G minus R (h)", difference("wait") / 3600),
        ("execution, R minus G (min)", -difference("execution") / 60),
        ("life, G minus R (h)", difference("life") / 3600),
    ]
