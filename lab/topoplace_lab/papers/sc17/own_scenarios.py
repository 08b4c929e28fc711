"""Comparisons of the SC'17 paper's simulated scenarios with our own simulator and policies."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from topoplace import machines
from topoplace.jobs.performance_profile import PerformanceProfile
from topoplace.objectives import Utility
from topoplace.topology.topology import Topology
from topoplace_lab.papers.claims import ClaimedQuantity, PaperClaim, listed
from topoplace_lab.papers.rules import Ranges, ordered
from topoplace_lab.papers.sc17.own_prototype import run
from topoplace_lab.papers.sc17.rows import falling, steps_down
from topoplace_lab.papers.sc17.scenarios import NOTICED, POLICIES, POLICY_NAMES
from topoplace_lab.simulate import SC17_WEIGHTS, Result, Workload
from topoplace_lab.simulate.performance.models import placement_class
from topoplace_lab.simulate.processes import Runner
from topoplace_lab.simulate.samples import Sample

_CLEARLY: Final = 0.05
"""Slowdowns above this (5 %) count as clear."""
_PROTECTED: Final = (1.0, 1.05)
_PAPERS_MILLISECONDS: Final = (450.0, 440.0, 3000.0, 3000.0)
SCENARIO_2: Final = (
    ("1000 machines", 1000, 10.0),
    ("200 machines", 200, 0.49),
    ("200 machines, overloaded", 200, 0.3),
)
"""Settings of scenario 2: name, machines, mean seconds between jobs.

The first is that of the published generator, in which no job waits. The second has the mean gap of the published list
of 5,000 jobs; the third overloads the machines.
"""


@dataclass(frozen=True, slots=True)
class ScenarioFigures:
    """The compared figures of one simulation; times are in seconds.

    slowdown, with_wait: mean slowdown of jobs, without and with their wait. missed: jobs rejected, or started below
    their `min_utility`. slowed, clearly: shares of jobs slowed by more than 0.5 and 5 %; worst: the largest slowdown.
    apart: jobs of two GPUs that span sockets. small, large: mean wait of jobs of one and of three GPUs. milliseconds:
    CPU time of the simulation over its jobs.
    """

    slowdown: float
    wait: float
    with_wait: float
    makespan: float
    missed: float
    slowed: float
    clearly: float
    worst: float
    apart: float
    small: float
    large: float
    milliseconds: float


Runs = Sequence[Sequence[ScenarioFigures]]
"""For each policy, in the order of `POLICIES`, the figures of every list of jobs."""


def simulated(
    lists: Sequence[Workload], machines: int, profile: PerformanceProfile, runner: Runner
) -> list[list[ScenarioFigures]]:
    """Simulate every list of jobs under every policy on a number of machines."""
    calls: list[tuple[object, ...]] = [
        (workload, machines, policy, profile, {}) for policy in POLICIES for workload in lists
    ]
    found, count = runner.results(_figures, calls), len(lists)
    return [found[begin : begin + count] for begin in range(0, len(found), count)]


def _figures(
    workload: Workload, count: int, policy: str, profile: PerformanceProfile, options: Mapping[str, Any]
) -> ScenarioFigures:
    began = time.process_time()
    result = run(Topology.cluster(machines.get("minsky"), count=count), workload, policy, profile, **options)
    spent = time.process_time() - began
    summary, slowdown = result.summary(), result.jobs["slowdown"]
    slowdown = slowdown[~np.isnan(slowdown)]
    return ScenarioFigures(
        slowdown=summary["mean_slowdown"],
        wait=summary["mean_wait"],
        with_wait=summary["mean_slowdown_with_wait"],
        makespan=summary["makespan"],
        missed=summary["slo_violations"] + summary["rejected"],
        slowed=float((slowdown > 1 + NOTICED).mean()),
        clearly=float((slowdown > 1 + _CLEARLY).mean()),
        worst=float(slowdown.max()),
        apart=_pairs_apart(result),
        small=_mean_wait(result, 1),
        large=_mean_wait(result, 3),
        milliseconds=1e3 * spent / len(workload),
    )


def orders(name: str, runs: Runs) -> Iterator[PaperClaim]:
    """Compare sections 5.5.1 and 5.5.2 with our results: slowdowns and waits by policy.

    name: the name of the job lists.
    """
    notes = (
        f"2-GPU jobs that span sockets: {listed(_of(runs, 'apart'), 0)}; makespans are "
        f"{listed(_of(runs, 'makespan'), 0)} s",
        _by_size(runs),
        "",
    )
    for note, (key, quantity, digits, tolerance) in zip(
        notes,
        (
            ("slowdown", "mean QoS slowdown", 4, 0.001),
            ("wait", "mean wait (s)", 1, 0.5),
            ("with_wait", "mean QoS slowdown with the wait", 3, 0.01),
        ),
        strict=True,
    ):
        values = _of(runs, key)
        row = ClaimedQuantity(
            f"1.23 own, {name}, {key}", f"{quantity}: {POLICY_NAMES}", "falls in this order"
        )
        if key == "wait" and max(value.mean for value in values) <= tolerance:
            yield row.not_comparable(listed(values, digits), "nothing waits")
            continue
        yield row.judged(
            listed(values, digits),
            ordered(
                f"if none is above the one before it by more than {tolerance:g}",
                *falling(len(values), tolerance),
            ),
            *steps_down(values),
            note=note,
        )


def service_levels(name: str, runs: Runs) -> PaperClaim:
    """Compare section 5.5.1 with our results: jobs whose service level is missed, by policy.

    name: the name of the job lists.
    """
    missed = _of(runs, "missed")
    return ClaimedQuantity(
        f"1.23 own, {name}, SLO",
        f"jobs rejected, or started below their min_utility: {POLICY_NAMES}",
        "any, any, any, 0",
    ).identity(
        listed(missed, 0),
        Ranges(((0.0, 0.0),), None, "none under TOPO-AWARE-P"),
        missed[3],
        note="by construction, it starts no job below its min_utility, so the row tests that it rejects none either",
    )


def slowed(name: str, runs: Runs) -> PaperClaim:
    """Compare the end of section 5.5.1 with our results: TOPO-AWARE slows some jobs, and TOPO-AWARE-P none.

    name: of the job lists.
    """
    shares, clearly, worst = (_of(runs, key) for key in ("slowed", "clearly", "worst"))
    return ClaimedQuantity(
        f"1.23 own, {name}, slowed jobs",
        f"share of jobs slowed by more than {NOTICED:.1%}: {POLICY_NAMES}",
        "some, some, some, none",
    ).judged(
        listed(shares, ".1%"),
        Ranges(
            (*[(0.001, 1.0)] * 3, (0.0, 0.0)),
            (*[(0.001, 1.0)] * 3, (0.0, 0.001)),
            "reproduced if none under TOPO-AWARE-P and some under the others, order only up to 0.1 %",
        ),
        *shares,
        note="jobs that arrive later slow down running ones, which the paper's TOPO-AWARE-P does not consider; "
        "slowed by more "
        f"than {_CLEARLY:.0%}: {listed(clearly, '.1%')}; the worst of a list: {listed(worst, 2)}",
    )


def other_best_fit(
    lists: Sequence[Workload], count: int, profile: PerformanceProfile, runner: Runner, runs: Runs
) -> Runs:
    """Return the runs with those of a literal Best Fit, which takes GPUs from the most used sockets first.

    lists: the lists of jobs. count: the number of machines.
    """
    calls = [(workload, count, "best-fit", profile, {"reading": "domains"}) for workload in lists]
    return [runs[0], runner.results(_figures, calls), *runs[2:]]


def protected(
    name: str, lists: Sequence[Workload], count: int, profile: PerformanceProfile, runner: Runner
) -> Iterator[PaperClaim]:
    """Compare the end of section 5.5.1 with TOPO-AWARE-P when it protects running jobs, and show what that costs.

    name: the name of the job lists. count: the number of machines.
    """
    for limit in (None, *_PROTECTED):
        calls = [(workload, count, POLICIES[3], profile, {"protect_running": limit}) for workload in lists]
        runs = [runner.results(_figures, calls)]
        (share,), (clearly,), (worst,), (wait,) = (
            _of(runs, key) for key in ("slowed", "clearly", "worst", "wait")
        )
        yield ClaimedQuantity(
            f"1.23 own, {name}, protect_running={limit}",
            f"TOPO-AWARE-P, protect_running={limit}: share of jobs slowed by more than {NOTICED:.1%}; mean wait (s)",
            "none; not stated",
        ).judged(
            f"{share:.1%}; {wait:.1f}",
            Ranges(((0.0, 0.0),), ((0.0, 0.01),), "reproduced if none is slowed, order only up to 1 %"),
            share,
            note="a job may still take a place where it is slowed itself, if its utility suffices; slowed by more "
            f"than {_CLEARLY:.0%}: {clearly:.1%}; the worst of a list: {worst:.2f}",
        )


_WEIGHTED: Final = "batch weights 4 to 1, over the heaviest"
_READINGS: Final[Mapping[str, Mapping[str, Any]]] = {
    "as by default": {},
    "Algorithm 3, utility inside the bipartition": {"utility_in_bipartition": True},
    "eq. 2 as printed": {"utility": "printed"},
    "eq. 2 as coded": {"utility": "authors"},
    "eq. 5 to the letter": {"utility": Utility(literal_fragmentation=True)},
    _WEIGHTED: {"utility": Utility(heaviest=max(SC17_WEIGHTS.values()))},
}
"""Readings of the paper, with the options of TOPO-AWARE and TOPO-AWARE-P that follow them."""


def readings(
    lists: Sequence[Workload],
    weighted: Sequence[Workload],
    count: int,
    profile: PerformanceProfile,
    runner: Runner,
) -> Iterator[PaperClaim]:
    """Compare section 5.5.1 with TOPO-AWARE and TOPO-AWARE-P under other readings of their equations.

    lists: the lists of jobs. weighted: the same jobs with edges of weights 4 to 1 by batch size, for the last reading.
    count: the number of machines.
    """
    name, size = f"{len(lists)} lists", len(lists)
    calls: list[tuple[object, ...]] = [
        (each, count, policy, profile, {}) for policy in POLICIES[:2] for each in lists
    ]
    for reading, options in _READINGS.items():
        jobs = weighted if reading == _WEIGHTED else lists
        calls += [(each, count, policy, profile, options) for policy in POLICIES[2:] for each in jobs]
    found = runner.results(_figures, calls)
    by_list = [found[begin : begin + size] for begin in range(0, len(found), size)]
    for number, reading in enumerate(_READINGS, 1):
        runs = (*by_list[:2], *by_list[2 * number : 2 * number + 2])
        slowdowns, waits, missed, apart = (_of(runs, key) for key in ("slowdown", "wait", "missed", "apart"))
        yield ClaimedQuantity(
            f"1.23 own, {name}, reading: {reading}",
            f"{reading}, mean QoS slowdown: {POLICY_NAMES}",
            "falls in this order",
        ).judged(
            listed(slowdowns, 4),
            ordered("if none is above the one before it by more than 0.001", *falling(len(slowdowns), 0.001)),
            *steps_down(slowdowns),
            note=f"of the last two: mean waits {listed(waits[2:], 1)} s; jobs started below their min_utility "
            f"{listed(missed[2:], 1)}; pairs that span sockets {listed(apart[2:], 1)}",
        )


def decision_times(name: str, runs: Runs) -> PaperClaim:
    """Compare the time of a placement in scenario 2 with ours; name: the name of the job lists."""
    ours = [Sample.of(run.milliseconds for run in each) for each in runs]
    return ClaimedQuantity(
        f"1.24 own, {name}",
        f"mean time of a placement in scenario 2 (ms): {POLICY_NAMES}",
        listed(_PAPERS_MILLISECONDS, "g"),
        machine=True,
    ).identity(
        ", ".join(f"< {_bound(value.mean)}" for value in ours),
        Ranges(
            tuple((0.0, limit) for limit in _PAPERS_MILLISECONDS), None, "none is longer than the paper's"
        ),
        *ours,
        note="an upper bound on another machine; ours is the CPU time of a whole simulation over its jobs, rounded up "
        "to a power of ten, at least 1",
    )


def _bound(milliseconds: float) -> int:
    """Return the next power of ten, at least 1: a bound coarse enough to be equal each time it is measured."""
    return 10 ** max(0, math.ceil(math.log10(milliseconds))) if milliseconds else 1


def _of(runs: Runs, key: str) -> list[Sample]:
    return [Sample.of(getattr(one, key) for one in each) for each in runs]


def _by_size(runs: Runs) -> str:
    """Return a clause that compares the mean waits of 1-GPU and 3-GPU jobs under Best Fit and TOPO-AWARE."""
    (small_bf, small), (large_bf, large) = (_of(runs, key)[1:3] for key in ("small", "large"))
    return (
        f"jobs of 1 and of 3 GPUs wait {listed((small_bf.mean, large_bf.mean))} s under BF, "
        f"{listed((small.mean, large.mean))} s under TOPO-AWARE"
    )


def _mean_wait(result: Result, num_gpus: int) -> float:
    waits = result.jobs["wait"][(result.jobs["num_gpus"] == num_gpus) & ~np.isnan(result.jobs["wait"])]
    return float(waits.mean()) if len(waits) else math.nan


def _pairs_apart(result: Result) -> int:
    """Return the number of 2-GPU jobs whose GPUs are on different sockets."""
    pairs = (record.placement for record in result.records if record.submitted.job.num_tasks == 2)
    return sum(placement is not None and placement_class(placement) != "intra-socket" for placement in pairs)
