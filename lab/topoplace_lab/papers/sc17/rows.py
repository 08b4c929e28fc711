"""Comparisons of the SC'17 paper's numbers with the run times and the simulator that its authors published."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

import numpy as np

from topoplace.jobs.performance_profile import PerformanceProfile
from topoplace_lab.papers.claims import ClaimedQuantity, PaperClaim, listed
from topoplace_lab.papers.rules import ANY, Equal, Range, Ranges, between, near, ordered
from topoplace_lab.papers.sc17 import scenarios
from topoplace_lab.papers.sc17.measured import NAMES
from topoplace_lab.papers.sc17.published_simulator import simulator
from topoplace_lab.papers.sc17.published_simulator.simulator import POLICIES, SimulatorRun
from topoplace_lab.papers.sc17.scenarios import (
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
from topoplace_lab.simulate import Workload
from topoplace_lab.simulate.samples import Sample

_ALEXNET: Final = NAMES[:4]
# Makespans of the published simulator under CPython 2.7 with its own list of jobs, in seconds.
_FIVE_JOBS: Final = (440.0, 440.0, 433.4, 396.0)
# Its makespans for its lists of 100 and of 1,000 jobs, by number of machines.
_LISTS: Final = {
    100: {
        1: (6737.5, 5910.3, 5891.6, 5164.5),
        2: (3818.1, 3320.9, 2839.1, 2641.1),
        5: (1666.5, 1653.3, 1512.5, 1540.0),
        10: (1158.3, 1262.8, 1179.2, 1179.2),
    },
    1000: {10: (17542.8, 17215.0, 9673.4, 10036.4)},
}
# How many of its 1,000 jobs it places below their least utility on 10 machines.
_BELOW: Final = (104, 158, 182, 0)
# Run time on two GPUs of two sockets over two of one socket: AlexNet, then GoogLeNet, batch 1, 4, 64, 128.
_SPREAD: Final = (1.249, 1.230, 1.019, 1.009, 1.028, 1.021, 0.996, 1.009)
# Slowdown in % of AlexNet (row: batch 1, 4, 64, 128) next to AlexNet (column), 2 GPUs each, over packed GPUs alone ...
_OVER_PACK: Final = (
    *(31.8, 35.1, 24.1, 22.7, 25.9, 32.3, 28.9, 29.5),
    *(4.9, 0.7, 7.9, 6.9, -0.3, 1.2, 2.9, 2.1),
)
# ... and over spread ones.
_OVER_SPREAD: Final = (
    *(5.5, 8.1, -0.6, -1.8, 2.3, 7.5, 4.8, 5.3),
    *(2.9, -1.1, 5.9, 4.9, -1.1, 0.3, 2.1, 1.3),
)
# Fig. 6, in %: tiny next to tiny, tiny next to big, small next to big, big next to big.
_FIG_6: Final = ((0, 0, 30.0), (0, 3, 24.0), (1, 3, 21.0), (3, 3, 0.0))
_FIG_6_TOLERANCE: Final = 5.0
_ARITHMETIC: Final = "computed from the same profile as the paper column: a check of arithmetic"
NO_RISE: Final[Range] = (0.0, math.inf)


def profile(measured: PerformanceProfile) -> Iterator[PaperClaim]:
    """Compare sections 3.2 and 3.3 with the published run times: slowdown by spreading over sockets and by other jobs.

    measured: the published run times, alone and in pairs.
    """
    ratios = [_spread_over_pack(measured, name) for name in NAMES]
    yield ClaimedQuantity(
        "1.12", "AlexNet on 2 GPUs, spread over pack: batch 1; above 16", "1.27; 1.0"
    ).judged(
        f"{ratios[0]:.3f}; {ratios[2]:.3f}, {ratios[3]:.3f}",
        near(1.27, 1.0, 1.0, tolerance=0.05),
        *(ratios[0], *ratios[2:4]),
        note="batch 2 and 8 are not in the published profile",
    )
    yield _digits(
        "1.14", "spread over pack: AlexNet, GoogLeNet, batch 1, 4, 64, 128", _SPREAD, ratios, 3, _ARITHMETIC
    )
    over_pack, over_spread = (
        [_longer(measured, a, b, place) for a in _ALEXNET for b in _ALEXNET]
        for place in ("intra-socket", "inter-socket")
    )
    figure = [over_pack[4 * own + other] for own, other, _ in _FIG_6]
    theirs = [paper for *_, paper in _FIG_6]
    yield ClaimedQuantity(
        "1.17",
        "Fig. 6, % longer over packed GPUs: tiny by tiny, tiny by big, small by big, big by big",
        listed(theirs, "g"),
    ).judged(
        listed(figure),
        near(*theirs, tolerance=_FIG_6_TOLERANCE, unit=" points").or_order(
            "if small batches suffer 15 % or more and big ones do not",
            *[(15.0, math.inf)] * 3,
            (-_FIG_6_TOLERANCE, _FIG_6_TOLERANCE),
        ),
        *figure,
        note="the profile was published later than the figure",
    )
    yield _digits(
        "1.18", "all AlexNet pairs, % longer over packed GPUs alone", _OVER_PACK, over_pack, 1, _ARITHMETIC
    )
    yield _predicted(measured)
    yield _digits(
        "1.19",
        "the same over spread GPUs alone, which is how pairs were run",
        _OVER_SPREAD,
        over_spread,
        1,
        f"{_ARITHMETIC}; it shows that most of the 30 % of Fig. 6 is lost locality, not interference",
    )


def _predicted(measured: PerformanceProfile) -> PaperClaim:
    row = ClaimedQuantity(
        "1.18 predicted",
        "slowdown of a pair that was not measured: root of the mean squared error",
        "not stated",
    )
    medians = f"{measured.median_rms_error:.3f} by medians"
    try:
        error = measured.interference_model.rms_error
    except ValueError as too_few:
        return row.not_comparable(medians, f"no prediction: {too_few}")
    return row.not_comparable(
        f"{error:.3f} predicted from times alone, {medians}",
        f"each of {len(measured.colocation)} measured pairs is left out in turn; `PerformanceProfile.predicting`",
    )


def _digits(
    claim_id: str, quantity: str, paper: Sequence[float], ours: Sequence[float], digits: int, note: str
) -> PaperClaim:
    theirs, mine = (" ".join(f"{value:.{digits}f}" for value in values) for values in (paper, ours))
    rule = Equal((theirs,), "all digits are equal")
    return ClaimedQuantity(claim_id, quantity, theirs).identity(mine, rule, mine, note=note)


def _spread_over_pack(measured: PerformanceProfile, name: str) -> float:
    return measured.solo[name, 2, "inter-socket"] / measured.solo[name, 2, "intra-socket"]


def _longer(measured: PerformanceProfile, name: str, other: str, placement: str) -> float:
    return (measured.colocation[name, 2, other, 2] / measured.solo[name, 2, placement] - 1) * 100


def prototype() -> Iterator[PaperClaim]:
    """Check the paper's speed-ups in section 5.2 against its own makespans; nothing is simulated."""
    ratios = [seconds / MAKESPANS[3] for seconds in MAKESPANS[:3]]
    yield ClaimedQuantity(
        "1.8",
        "speedup of TOPO-AWARE-P over FCFS, BF, TOPO-AWARE, from the makespans of 1.7",
        listed(SPEEDUPS, 2),
    ).of_the_paper(
        listed(ratios, 3),
        f"a division of the paper's own makespans, nothing is run: {MAKESPANS[1]} / {MAKESPANS[3]} is "
        f"{ratios[1]:.3f}, which the paper gives as {SPEEDUPS[1]:.2f}",
    )


def five_jobs_on_one_machine(measured: PerformanceProfile) -> Iterator[PaperClaim]:
    """Compare section 5.2 with the published simulator: six jobs on one machine, from two job lists.

    The lists are the one published with the code and the paper's Table 1; the paper's text speaks of five jobs.
    """
    runs = _runs(five_jobs(profile=measured), measured, 1)
    makespans = [round(run.makespan, 1) for run in runs.values()]
    yield ClaimedQuantity(
        "1.7 code",
        f"published simulator, published list on one machine, makespan (s): {POLICY_NAMES}",
        listed(_FIVE_JOBS),
    ).judged(
        listed(makespans),
        Equal(_FIVE_JOBS, "reproduced if all are equal"),
        *makespans,
        note="the paper column is what the published program prints",
    )
    paper = sorted(zip(MAKESPANS, makespans, strict=True), reverse=True)
    steps = [slower - faster for (_, slower), (_, faster) in pairwise(paper)]
    yield ClaimedQuantity(
        "1.7",
        f"makespan (s) of the prototype, and of the published simulator: {POLICY_NAMES}",
        listed(MAKESPANS),
        series=scenarios.POLICIES,
    ).judged(
        listed(makespans),
        Ranges(
            (*((seconds - 10, seconds + 10) for seconds in MAKESPANS), *[ANY] * 3),
            (*[ANY] * 4, NO_RISE, NO_RISE, (0.1, math.inf)),
            "reproduced within 10 s each, order only if no policy overtakes one that the paper has slower, and "
            "TOPO-AWARE-P is faster than all",
            MAKESPANS,
        ),
        *(*makespans, *steps),
    )
    yield from _table_1(measured)


def _table_1(measured: PerformanceProfile) -> Iterator[PaperClaim]:
    runs = list(_runs(five_jobs(TABLE_1, measured), measured, 1).values())
    yield _third_starts(runs[3])
    ends = [math.inf if run.jobs[3].end is None else run.jobs[3].end for run in runs]
    yield third_ends("1.10", "Table 1", ends, measured)
    yield losses("1.11", "Table 1", [_largest_loss(run, measured, (1, 3, 4)) for run in runs])


def _third_starts(run: SimulatorRun) -> PaperClaim:
    first_end, start = run.jobs[0].end or math.inf, run.jobs[3].start or math.inf
    packed = len(run.jobs[3].sockets) == 1
    return ClaimedQuantity(
        "1.9", "Table 1, TOPO-AWARE-P: job 0 ends, then job 3 starts, on one socket (s)", "70; then"
    ).judged(
        f"{first_end:.1f}; {start:.1f}",
        Ranges(
            ((THIRD_STARTS - 5, THIRD_STARTS + 5), (0.0, 10.0), (1.0, 1.0)),
            None,
            "reproduced if job 0 ends within 5 s of the paper, and job 3 starts in the 10 s after that with both GPUs "
            "on one socket",
            (THIRD_STARTS,),
        ),
        *(first_end, start - first_end, float(packed)),
    )


def third_ends(claim_id: str, jobs: str, ends: Sequence[float], measured: PerformanceProfile) -> PaperClaim:
    """Compare the time at which job 3 ends under each policy with the paper's.

    claim_id: the claim's id. jobs: name of the job list. ends: end of job 3 in seconds by policy, infinite if it never
    ran. measured: run times alone.
    """
    others, last = THIRD_ENDS
    alone = measured.ideal_time("bvlc_alexnet/4", 2) or 0.0
    ahead = min(ends[:3]) / ends[3] if ends[3] < math.inf else 0.0
    return ClaimedQuantity(
        claim_id,
        f"{jobs}, end of job 3 (s): TOPO-AWARE-P; the others",
        f"{last:g}; {others:g}",
        series=(scenarios.POLICIES[3], *scenarios.POLICIES[:3]),
    ).judged(
        f"{ends[3]:.1f}; {listed(ends[:3])}",
        Ranges(
            ((last - 10, last + 10), *[(others - 10, others + 10)] * 3, ANY),
            (*[ANY] * 4, (GAIN, math.inf)),
            f"reproduced if all are within 10 s, order only if it ends first by {100 * (GAIN - 1):.0f} % under "
            "TOPO-AWARE-P",
            (last, *[others] * 3),
        ),
        *(ends[3], *ends[:3], ahead),
        note=f"4,000 iterations of job 3 take {alone:.0f} s alone in the profile, so started at {THIRD_STARTS:g} s it "
        f"ends at {THIRD_STARTS + alone:.0f} s at the earliest",
    )


def losses(claim_id: str, jobs: str, slowdowns: Sequence[float], note: str = "") -> PaperClaim:
    """Compare the largest QoS slowdown of jobs 1, 3 and 4 (0.5: 50 % longer), by policy, with the paper's.

    claim_id: the claim's id. jobs: name of the job list. note: what else the column "why" says.
    """
    none: Range = (-math.inf, NOTICED)
    return ClaimedQuantity(
        claim_id,
        f"{jobs}, QoS slowdown of jobs 1, 3, 4, the largest (%): {POLICY_NAMES}",
        "50, 50, 50, 0",
        series=scenarios.POLICIES,
    ).judged(
        listed((100 * value for value in slowdowns), 1),
        Ranges(
            (*[(0.4, 0.6)] * 3, none),
            (*[(NOTICED, math.inf)] * 3, none),
            f"reproduced if up to {100 * NOTICED:g} for TOPO-AWARE-P and 40 to 60 for the others, order only if just "
            "the former and all others are slower",
            (0.5,) * 3,
        ),
        *slowdowns,
        note=note,
    )


@dataclass(frozen=True, slots=True)
class RowFigures:
    """The compared figures of one run of the published simulator.

    slowdown, wait: means over the jobs that ran; the wait in seconds. makespan: seconds. never: jobs never placed.
    below: jobs placed below their least utility, or never. booked_twice: see `Run.booked_twice`.
    """

    slowdown: float
    wait: float
    makespan: float
    never: float
    below: float
    booked_twice: float


def figures(workload: Workload, measured: PerformanceProfile, policy: str, machines: int) -> RowFigures:
    """Run the published simulator and return its figures to compare."""
    run = simulator.simulate(workload, measured, policy, machines)
    return RowFigures(
        slowdown=_mean([run.slowdown(job, measured) for job in run.jobs]),
        wait=_mean([math.nan if job.start is None else job.start - job.arrival for job in run.jobs]),
        makespan=run.makespan,
        never=sum(job.start is None for job in run.jobs),
        below=sum(job.start is None or (job.utility or 0.0) < job.min_utility for job in run.jobs),
        booked_twice=run.booked_twice(),
    )


def scenario(name: str, runs: Mapping[str, Sequence[RowFigures]]) -> Iterator[PaperClaim]:
    """Compare sections 5.5.1 and 5.5.2 with the published simulator: slowdown, wait and service levels by policy.

    name: the name of the job lists. runs: for each policy, in the paper's order, the figures of every list.
    """

    def of(field: str) -> list[Sample]:
        return [Sample.of(getattr(run, field) for run in each) for each in runs.values()]

    never, makespans = of("never"), of("makespan")
    for suffix, quantity, values, digits, tolerance in (
        ("slowdown", "mean QoS slowdown", of("slowdown"), 3, 0.001),
        ("wait", "mean wait (s)", of("wait"), 1, simulator.STEP_S),
    ):
        yield ClaimedQuantity(
            f"1.23 {name} {suffix}",
            f"published simulator, {quantity}: {POLICY_NAMES}",
            "falls in this order",
        ).judged(
            listed(values, digits),
            ordered(
                f"if none is above the one before it by more than {tolerance:g} and every job is placed",
                *falling(len(values), tolerance),
                *[(0.0, 0.0)] * len(never),
            ),
            *(*steps_down(values), *never),
            note=f"jobs never placed, which the mean leaves out: {listed(never, 0)}; makespans are "
            f"{listed(makespans)} s",
        )
    below, twice = of("below"), of("booked_twice")
    yield ClaimedQuantity(
        f"1.23 {name} SLO",
        f"published simulator, jobs placed below their least utility, or never: {POLICY_NAMES}",
        "some, some, some, 0",
    ).identity(
        listed(below, 0),
        Ranges((*[(1.0, math.inf)] * 3, (0.0, 0.0)), None, "none for TOPO-AWARE-P and some for the others"),
        *below,
        note="TOPO-AWARE-P places no job below its least utility by construction, so there the row counts jobs never "
        "placed; utility as the published code computes it",
    )
    yield ClaimedQuantity(
        f"1.23 {name} GPUs",
        f"published simulator, number of times that a job got a GPU which another still held: {POLICY_NAMES}",
        "0, 0, 0, 0",
    ).judged(
        listed(twice, 0),
        Ranges(((0.0, 0.0),) * 4, None, "reproduced if never"),
        *twice,
        note="the published TOPO-AWARE can assign a GPU twice within a time step, so its waits are too short",
    )


def steps_down(values: Sequence[Sample]) -> list[Sample]:
    """Return by how much each value is below the one before it."""
    return [before.minus(after) for before, after in pairwise(values)]


def falling(count: int, tolerance: float) -> list[Range]:
    """Return the ranges of `steps_down` of that many values that fall, apart from rises of at most `tolerance`."""
    return [(-tolerance, math.inf)] * (count - 1)


def _mean(values: Sequence[float]) -> float:
    """Return the mean of the values that are not NaN (jobs that ran); NaN if there are none."""
    known = [value for value in values if not math.isnan(value)]
    return float(np.mean(known)) if known else math.nan


def published_list(workload: Workload, measured: PerformanceProfile) -> Iterator[PaperClaim]:
    """Compare our port with the original simulator: makespans of a published list, by number of machines.

    workload: the list of 100 or of 1,000 jobs, those of equal arrival in the order of the published manifests. For
    the latter, jobs placed below their least utility are counted too.
    """
    size = len(workload)
    for machines, paper in _LISTS.get(size, {}).items():
        runs = _runs(workload, measured, machines).values()
        makespans = [round(run.makespan, 1) for run in runs]
        yield ClaimedQuantity(
            f"1.22 code {machines}" if size == 100 else f"1.22 code {size} jobs",
            f"published simulator, list of {size:,} jobs, {machines} machines, makespan (s): {POLICY_NAMES}",
            listed(paper),
        ).judged(
            listed(makespans),
            Equal(paper, "reproduced if all are equal"),
            *makespans,
            note="the paper column is what the published program prints under CPython 2.7 (its dictionary of sockets "
            "kept in order: their addresses decide otherwise)",
        )
        if size == 1000:
            yield _below_their_least(runs)


def _below_their_least(runs: Iterable[SimulatorRun]) -> PaperClaim:
    below = tuple(sum((job.utility or 0.0) < job.min_utility for job in run.jobs) for run in runs)
    return ClaimedQuantity(
        "1.22 code 1000 jobs, below",
        f"the same, jobs placed below their least utility: {POLICY_NAMES}",
        listed(_BELOW, "g"),
    ).judged(
        listed(below, "g"),
        Equal(_BELOW, "reproduced if all are equal"),
        *below,
        note="the paper column is counted in the published program under CPython 2.7.18, whose 1,000 jobs have the "
        "same machine, GPUs, times and utility as ours. In the order of Python 3's dictionaries it has 253 and 0 for "
        "TOPO-AWARE and TOPO-AWARE-P: a port to Python 3 is no reference here. Jobs of equal arrival come by the field "
        "`color`, and with another order of them it is 275 and 0, in the published program as in ours",
    )


def load(workload: Workload, machines: int) -> PaperClaim:
    """Check whether jobs queue at all in section 5.5.2, by the mean number of GPUs that they keep busy.

    machines: number of machines with four GPUs each.
    """
    work = sum(row.base_time * row.job.num_tasks for row in workload)
    busy = work / (workload.submit_time.max() - workload.submit_time.min())
    return ClaimedQuantity(
        "1.22",
        f"GPUs that {len(workload)} jobs keep busy on average, of {4 * machines}; the paper shows long queues",
        "queues",
    ).judged(
        f"{busy:.0f}",
        between(2.0 * machines, math.inf, "if at least half are busy"),
        busy,
        note="with one job per 10 s, as in the published generator, nothing waits on 1,000 machines; shorter gaps or "
        "fewer machines are needed",
    )


def _runs(workload: Workload, measured: PerformanceProfile, machines: int) -> dict[str, SimulatorRun]:
    return {policy: simulator.simulate(workload, measured, policy, machines) for policy in POLICIES}


def _largest_loss(run: SimulatorRun, measured: PerformanceProfile, jobs: Sequence[int]) -> float:
    """Return the largest slowdown of the given jobs (0.5: 50 % longer) relative to their best run times alone.

    jobs: positions of the jobs in the run. Run times are not rounded to the simulator's time steps.
    """
    chosen = [run.jobs[job] for job in jobs]
    losses = (job.time / (measured.ideal_time(job.name, job.num_gpus) or 1.0) for job in chosen)
    return max(losses) - 1
