"""Comparisons of the SC'17 paper's numbers with the run times and the simulator that its authors published."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

import numpy as np

from topoplace.jobs.performance_profile import PerformanceProfile
from topoplace.papers.claims import DIFFERS, ORDER_ONLY, REPRODUCED, Claim, exactly, holds_order, listed
from topoplace.papers.sc17.measured import NAMES
from topoplace.papers.sc17.published_simulator import simulator
from topoplace.papers.sc17.published_simulator.simulator import POLICIES, Job, Run
from topoplace.papers.sc17.scenarios import (
    GAIN,
    MAKESPANS,
    NOTICED,
    POLICY_NAMES,
    SPEEDUPS,
    TABLE_1,
    THIRD_ENDS,
    THIRD_STARTS,
    five_jobs,
)
from topoplace.simulate import Workload

_ALEXNET: Final = NAMES[:4]
# Makespans of the published simulator under CPython 2.7 with its own list of jobs, in seconds.
_FIVE_JOBS: Final = (440.0, 440.0, 433.4, 396.0)
# Its makespans for its list of 100 jobs, by number of machines.
_HUNDRED_JOBS: Final = {
    1: (6737.5, 5910.3, 5891.6, 5164.5),
    2: (3818.1, 3320.9, 2839.1, 2641.1),
    5: (1666.5, 1653.3, 1512.5, 1540.0),
    10: (1158.3, 1262.8, 1179.2, 1179.2),
}
# Run time on two GPUs of two sockets over two of one socket: AlexNet, then GoogLeNet, batch 1, 4, 64, 128.
_SPREAD: Final = (1.249, 1.230, 1.019, 1.009, 1.028, 1.021, 0.996, 1.009)
# Slowdown in % of AlexNet (row: batch 1, 4, 64, 128) beside AlexNet (column), 2 GPUs each, over packed GPUs alone ...
_OVER_PACK: Final = (
    *(31.8, 35.1, 24.1, 22.7, 25.9, 32.3, 28.9, 29.5),
    *(4.9, 0.7, 7.9, 6.9, -0.3, 1.2, 2.9, 2.1),
)
# ... and over spread ones.
_OVER_SPREAD: Final = (
    *(5.5, 8.1, -0.6, -1.8, 2.3, 7.5, 4.8, 5.3),
    *(2.9, -1.1, 5.9, 4.9, -1.1, 0.3, 2.1, 1.3),
)
# Fig. 6, in %: tiny beside tiny, tiny beside big, small beside big, big beside big.
_FIG_6: Final = ((0, 0, 30.0), (0, 3, 24.0), (1, 3, 21.0), (3, 3, 0.0))
_FIG_6_TOLERANCE: Final = 5.0


def profile(measured: PerformanceProfile) -> Iterator[Claim]:
    """Compare sections 3.2 and 3.3 with the published run times: slowdown by spreading over sockets and by other jobs.

    measured: the published run times, alone and in pairs.
    """
    ratios = [_spread_over_pack(measured, name) for name in NAMES]
    yield Claim(
        "1.12",
        "AlexNet on 2 GPUs, spread over pack: batch 1; of 64 and 128 no difference",
        "1.27; 1.0",
        f"{ratios[0]:.3f}; {ratios[2]:.3f}, {ratios[3]:.3f}",
        REPRODUCED if abs(ratios[0] - 1.27) <= 0.05 and max(ratios[2:4]) <= 1.03 else DIFFERS,
        "reproduced within 0.05, and 1.03 for the large batches; batch 2 and 8 are not in the published profile",
    )
    yield _digits(
        "1.14", "spread over pack: AlexNet, GoogLeNet, batch 1, 4, 64, 128", _SPREAD, ratios, 3,
        "reproduced if all digits are; computed from the same profile as the paper column: a check of arithmetic",
    )  # fmt: skip
    over_pack, over_spread = (
        [_longer(measured, a, b, place) for a in _ALEXNET for b in _ALEXNET]
        for place in ("intra-socket", "inter-socket")
    )
    figure = [over_pack[4 * own + other] for own, other, _ in _FIG_6]
    near = [abs(ours - paper) <= _FIG_6_TOLERANCE for ours, (*_, paper) in zip(figure, _FIG_6, strict=True)]
    yield Claim(
        "1.17",
        "Fig. 6, % longer over packed GPUs: tiny by tiny, tiny by big, small by big, big by big",
        ", ".join(f"{paper:g}" for *_, paper in _FIG_6),
        ", ".join(f"{value:.1f}" for value in figure),
        REPRODUCED if all(near) else ORDER_ONLY if min(figure[:3]) > 15 and near[3] else DIFFERS,
        f"reproduced within {_FIG_6_TOLERANCE:g} points each, order only if small batches suffer 15 % or more and big "
        "ones do not; the profile was published later than the figure",
    )
    yield _digits(
        "1.18", "all AlexNet pairs, % longer over packed GPUs alone", _OVER_PACK, over_pack, 1,
        "reproduced if all digits are; computed from the same profile as the paper column: a check of arithmetic",
    )  # fmt: skip
    yield _digits(
        "1.19", "the same over spread GPUs alone, which is how pairs were run", _OVER_SPREAD, over_spread, 1,
        "reproduced if all digits are; computed from the same profile as the paper column: a check of arithmetic; it "
        "shows that most of the 30 % of Fig. 6 is lost locality, not interference",
    )  # fmt: skip


def _digits(
    claim_id: str, quantity: str, paper: Sequence[float], ours: Sequence[float], digits: int, why: str
) -> Claim:
    theirs, mine = (" ".join(f"{value:.{digits}f}" for value in values) for values in (paper, ours))
    return Claim(claim_id, quantity, theirs, mine, exactly(theirs, mine), why)


def _spread_over_pack(measured: PerformanceProfile, name: str) -> float:
    return measured.solo[name, 2, "inter-socket"] / measured.solo[name, 2, "intra-socket"]


def _longer(measured: PerformanceProfile, name: str, other: str, placement: str) -> float:
    return (measured.colocation[name, 2, other, 2] / measured.solo[name, 2, placement] - 1) * 100


def prototype() -> Iterator[Claim]:
    """Check the paper's speed-ups in section 5.2 against its own makespans; nothing is simulated."""
    ratios = [seconds / MAKESPANS[3] for seconds in MAKESPANS[:3]]
    yield Claim(
        "1.8",
        "speedup of TOPO-AWARE-P over FCFS, BF, TOPO-AWARE, from the makespans of 1.7",
        " ".join(f"{value:.2f}" for value in SPEEDUPS),
        " ".join(f"{value:.3f}" for value in ratios),
        REPRODUCED if all(abs(a - b) <= 0.01 for a, b in zip(ratios, SPEEDUPS, strict=True)) else DIFFERS,
        f"reproduced within 0.01; a division of the paper's own makespans, nothing is run: "
        f"{MAKESPANS[1]} / {MAKESPANS[3]} is {ratios[1]:.3f}, which the paper gives as {SPEEDUPS[1]:.2f}",
    )


def five_jobs_on_one_machine(measured: PerformanceProfile) -> Iterator[Claim]:
    """Compare section 5.2 with the published simulator: six jobs on one machine, from two job lists.

    The lists are the one published with the code and the paper's Table 1; the paper's text speaks of five jobs.
    """
    runs = _runs(five_jobs(profile=measured), measured, 1)
    makespans = [round(run.makespan, 1) for run in runs.values()]
    yield Claim(
        "1.7 code",
        f"published simulator, published list on one machine, makespan (s): {POLICY_NAMES}",
        listed(_FIVE_JOBS),
        listed(makespans),
        exactly(list(_FIVE_JOBS), makespans),
        "reproduced if all are equal; the paper column is what the published program prints",
    )
    paper = sorted(zip(MAKESPANS, makespans, strict=True), reverse=True)
    yield Claim(
        "1.7",
        f"makespan (s) of the prototype, and of the published simulator: {POLICY_NAMES}",
        listed(MAKESPANS),
        listed(makespans),
        ORDER_ONLY if holds_order([-ours for _, ours in paper]) and makespans[3] < makespans[2] else DIFFERS,
        "order only if no policy overtakes one that the paper has slower, and TOPO-AWARE-P is faster than all",
    )
    yield from _table_1(measured)


def _table_1(measured: PerformanceProfile) -> Iterator[Claim]:
    runs = list(_runs(five_jobs(TABLE_1, measured), measured, 1).values())
    yield _third_starts(runs[3])
    ends = [math.inf if run.jobs[3].end is None else run.jobs[3].end for run in runs]
    yield third_ends("1.10", "Table 1", ends, measured)
    yield _losses([_largest_loss(run, measured, (1, 3, 4)) for run in runs])


def _third_starts(run: Run) -> Claim:
    first_end, start = run.jobs[0].end or math.inf, run.jobs[3].start or math.inf
    packed = len(run.jobs[3].sockets) == 1
    return Claim(
        "1.9",
        "Table 1, TOPO-AWARE-P: job 0 ends, then job 3 starts, on one socket (s)",
        "70; then",
        f"{first_end:.1f}; {start:.1f}",
        REPRODUCED
        if packed and abs(first_end - THIRD_STARTS) <= 5 and first_end <= start < math.inf
        else DIFFERS,
        "reproduced if job 0 ends within 5 s of the paper and job 3 starts after it with both GPUs on one socket",
    )


def third_ends(claim_id: str, jobs: str, ends: Sequence[float], measured: PerformanceProfile) -> Claim:
    """Compare the time at which job 3 ends under each policy with the paper's.

    claim_id: the claim's id. jobs: name of the job list. ends: end of job 3 in seconds by policy, infinite if it never
    ran. measured: run times alone.
    """
    others, last = THIRD_ENDS
    near = abs(ends[3] - last) <= 10 and all(abs(end - others) <= 10 for end in ends[:3])
    first = ORDER_ONLY if GAIN * ends[3] <= min(ends[:3]) and ends[3] < math.inf else DIFFERS
    alone = measured.ideal_time("bvlc_alexnet/4", 2) or 0.0
    return Claim(
        claim_id,
        f"{jobs}, end of job 3 (s): TOPO-AWARE-P; the others",
        f"{last:g}; {others:g}",
        f"{ends[3]:.1f}; {listed(ends[:3])}",
        REPRODUCED if near else first,
        f"reproduced if all are within 10 s, order only if it ends first by {100 * (GAIN - 1):.0f} % under "
        f"TOPO-AWARE-P; 4,000 iterations of job 3 take {alone:.0f} s alone in the profile, so started at "
        f"{THIRD_STARTS:g} s it ends at {THIRD_STARTS + alone:.0f} s at the earliest",
    )


def _losses(slowdowns: Sequence[float]) -> Claim:
    if slowdowns[3] < NOTICED and all(0.4 <= value <= 0.6 for value in slowdowns[:3]):
        verdict = REPRODUCED
    else:
        verdict = ORDER_ONLY if slowdowns[3] < NOTICED < min(slowdowns[:3]) else DIFFERS
    return Claim(
        "1.11",
        f"Table 1, QoS slowdown of jobs 1, 3, 4, the largest (%): {POLICY_NAMES}",
        "50, 50, 50, 0",
        ", ".join(f"{100 * value:.0f}" for value in slowdowns),
        verdict,
        f"reproduced if under {100 * NOTICED:g} for TOPO-AWARE-P and 40 to 60 for the others, order only if just the "
        "former and all others are slower",
    )


def scenarios(measured: PerformanceProfile, lists: Mapping[str, tuple[Workload, int]]) -> Iterator[Claim]:
    """Compare sections 5.5.1 and 5.5.2 with the published simulator: slowdown, wait and service levels by policy.

    lists: the jobs and the number of machines of each job list, by the list's name.
    """
    for name, (workload, machines) in lists.items():
        runs = _runs(workload, measured, machines)
        yield from _orders(name, runs, measured)
        yield _violations(name, runs)
        yield _booked_twice(name, runs)


def _orders(name: str, runs: Mapping[str, Run], measured: PerformanceProfile) -> Iterator[Claim]:
    slowdowns = [_mean([run.slowdown(job, measured) for job in run.jobs]) for run in runs.values()]
    waits = [_mean([_wait(job) for job in run.jobs]) for run in runs.values()]
    left = [sum(job.start is None for job in run.jobs) for run in runs.values()]
    for suffix, quantity, values, digits, tolerance in (
        ("slowdown", "mean QoS slowdown", slowdowns, 3, 0.001),
        ("wait", "mean wait (s)", waits, 1, simulator.STEP_S),
    ):
        falls = not any(left) and holds_order([-value for value in values], tolerance)
        yield Claim(
            f"1.23 {name} {suffix}",
            f"published simulator, {quantity}: {POLICY_NAMES}",
            "falls in this order",
            ", ".join(f"{value:.{digits}f}" for value in values),
            ORDER_ONLY if falls else DIFFERS,
            f"order only if none is above the one before it by more than {tolerance:g} and every job is placed; never "
            f"placed, and in no mean: {', '.join(map(str, left))}; makespans are "
            f"{listed([run.makespan for run in runs.values()])} s",
        )


def _wait(job: Job) -> float:
    return math.nan if job.start is None else job.start - job.arrival


def _mean(values: Sequence[float]) -> float:
    """Return the mean of the values that are not NaN (jobs that ran); NaN if there are none."""
    known = [value for value in values if not math.isnan(value)]
    return float(np.mean(known)) if known else math.nan


def _violations(name: str, runs: Mapping[str, Run]) -> Claim:
    counts = [
        sum(job.start is None or (job.utility or 0.0) < job.min_utility for job in run.jobs)
        for run in runs.values()
    ]
    return Claim(
        f"1.23 {name} SLO",
        f"published simulator, jobs placed below their least utility, or never: {POLICY_NAMES}",
        "some, some, some, 0",
        ", ".join(map(str, counts)),
        REPRODUCED if counts[3] == 0 < min(counts[:3]) else DIFFERS,
        "reproduced if none for TOPO-AWARE-P and some for the others; TOPO-AWARE-P places no job below its least "
        "utility by construction, so there the row counts jobs never placed; utility as the published code computes it",
    )


def _booked_twice(name: str, runs: Mapping[str, Run]) -> Claim:
    counts = [run.booked_twice() for run in runs.values()]
    return Claim(
        f"1.23 {name} GPUs",
        f"published simulator, number of times that a job got a GPU which another still held: {POLICY_NAMES}",
        "0, 0, 0, 0",
        ", ".join(map(str, counts)),
        exactly([0] * 4, counts),
        "reproduced if never; the published TOPO-AWARE hands out GPUs twice within a step, so its waits are too short",
    )


def published_list(workload: Workload, measured: PerformanceProfile) -> Iterator[Claim]:
    """Compare our port with the original simulator: makespans of the published list, by number of machines."""
    for machines, paper in _HUNDRED_JOBS.items():
        makespans = [round(run.makespan, 1) for run in _runs(workload, measured, machines).values()]
        yield Claim(
            f"1.22 code {machines}",
            f"published simulator, list of 100 jobs, {machines} machines, makespan (s): {POLICY_NAMES}",
            listed(paper),
            listed(makespans),
            exactly(list(paper), makespans),
            "reproduced if all are equal; the paper column is what the published program prints under CPython 2.7 "
            "(its dictionary of sockets kept in order: their addresses decide otherwise)",
        )


def load(workload: Workload, machines: int) -> Claim:
    """Check whether jobs queue at all in section 5.5.2, by the mean number of GPUs that they keep busy.

    machines: number of machines with four GPUs each.
    """
    work = sum(row.base_time * row.job.num_tasks for row in workload)
    busy = work / (workload.submit_time.max() - workload.submit_time.min())
    return Claim(
        "1.22",
        f"GPUs that {len(workload)} jobs keep busy on average, of {4 * machines}; the paper shows long queues",
        "queues",
        f"{busy:.0f}",
        DIFFERS if busy < 2 * machines else REPRODUCED,
        "differs if not even half are busy: with one job per 10 s, as in the published generator, nothing waits on "
        "1,000 machines; shorter gaps or fewer machines are needed",
    )


def _runs(workload: Workload, measured: PerformanceProfile, machines: int) -> dict[str, Run]:
    return {policy: simulator.simulate(workload, measured, policy, machines) for policy in POLICIES}


def _largest_loss(run: Run, measured: PerformanceProfile, jobs: Sequence[int]) -> float:
    """Return the largest slowdown of the given jobs (0.5: 50 % longer) relative to their best run times alone.

    jobs: positions of the jobs in the run. Run times are not rounded to the simulator's time steps.
    """
    chosen = [run.jobs[job] for job in jobs]
    losses = (job.time / (measured.ideal_time(job.name, job.num_gpus) or 1.0) for job in chosen)
    return max(losses) - 1
