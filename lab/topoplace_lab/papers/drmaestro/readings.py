"""Other readings of the thesis where its text and our defaults differ, for 64 jobs on four machines (table 9).

- rounds: W of eq. 13 counts scheduler rounds, as the text says; ours counts seconds. The order of jobs is the same.
- fullest: the load of a network is divided by that of the fullest machine (section 5.6.5.1). Ours is a share of the
  interface's capacity, and also counts a job's effect on others.
- hotspot: the only application without a measured share has a neutral cost (section 5.4). Ours takes the medians of the
  other applications. In the simulation, its network time is the same in both.
- merged: Algorithms 4 and 5 as printed. A round is one batch and solves the model of each resource once. A job that one
  of the mappings leaves out waits for the next round. Ours tries again within a round.
- every second: the scheduler is called periodically (section 5.4.4, without the interval), not at every event.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Final

from topoplace.policies import DRMaestro
from topoplace.policies.drmaestro.costs import Costs
from topoplace_lab.papers.claims import ClaimedQuantity, PaperClaim
from topoplace_lab.papers.drmaestro import rodinia, rows
from topoplace_lab.papers.drmaestro.study import DRMaestroStudy, simulated
from topoplace_lab.simulate.processes import Runner
from topoplace_lab.simulate.samples import Sample

Found = dict[tuple[str, bool], list[tuple[float, float]]]
"""Makespan and mean slowdown for each seed, by reading and by whether GPUs may be remote."""
_EVERY_SECOND: Final = "every second"
_UNAWARE: Final = "every second, not network-aware"
READINGS: Final = ("rounds", "fullest", "hotspot", "all three", "merged", _EVERY_SECOND)


def policy(reading: str, *, disaggregate: bool) -> DRMaestro:
    """Return the network-aware policy with one of `READINGS`, or for `_UNAWARE` the policy that is not."""
    every = reading == "all three"
    costs = Costs(
        waiting="rounds" if every or reading == "rounds" else "seconds",
        load="fullest" if every or reading == "fullest" else "capacity",
    )
    profiles = dict(rodinia.PROFILES)
    if every or reading == "hotspot":
        del profiles["hotspot"]
    return DRMaestro(
        disaggregate=disaggregate,
        network_aware=reading != _UNAWARE,
        profiles=profiles,
        costs=costs,
        retry=reading != "merged",
    )


def measure(runner: Runner, study: DRMaestroStudy) -> Found:
    """Simulate every reading for each seed of the study, without and with remote GPUs."""
    ways = list(product((*READINGS, _UNAWARE), (False, True)))
    calls = [(study.num_jobs, study.num_machines, *way, seed) for way in ways for seed in study.seeds]
    found, count = runner.results(_measured, calls), len(study.seeds)
    return {way: found[i * count : (i + 1) * count] for i, way in enumerate(ways)}


def _measured(
    num_jobs: int, num_machines: int, reading: str, disaggregate: bool, seed: int
) -> tuple[float, float]:
    every = 1.0 if reading in (_EVERY_SECOND, _UNAWARE) else None
    run = simulated(num_jobs, num_machines, policy(reading, disaggregate=disaggregate), seed, every)
    return run.makespan, run.mean_slowdown


def compare(study: DRMaestroStudy, found: Found) -> Iterator[PaperClaim]:
    """Yield a row per reading: what a network-aware policy costs or saves in makespan, as in table 9."""
    for reading in READINGS:
        ratios = [_ratio(study, found, reading, disaggregate=way) for way in (False, True)]
        theirs = rows.TABLE_9[False][True] / rows.TABLE_9[True][True]
        yield ClaimedQuantity(
            f"5.5 reading {reading}",
            f"{study.where}, read otherwise, disaggregated: makespan with the network-aware policy off over on",
            f"{theirs:.2f}",
        ).judged(
            f"{ratios[1]:.2f}",
            rows.rule_of(theirs),
            ratios[1],
            note=f"with local GPUs only {ratios[0]:.3f}; {_slowdowns(study, found, reading)}",
        )


def _ratio(study: DRMaestroStudy, found: Found, reading: str, *, disaggregate: bool) -> Sample:
    off = [run.makespan for run in study.runs(disaggregate=disaggregate)]
    if reading == _EVERY_SECOND:
        off = [makespan for makespan, _ in found[_UNAWARE, disaggregate]]
    on = [makespan for makespan, _ in found[reading, disaggregate]]
    return Sample.of(before / after for before, after in zip(off, on, strict=True))


def _slowdowns(study: DRMaestroStudy, found: Found, reading: str) -> str:
    ours = Sample.of(run.mean_slowdown for run in study.runs(disaggregate=True, network_aware=True))
    theirs = Sample.of(slowdown for _, slowdown in found[reading, True])
    return f"mean slowdown of disaggregated jobs {theirs:.4f}, under our reading {ours:.4f}"
