"""The service of section 5.4 on our simulator, and the validation of a simulator that draws run times (section 5.6.3).

The service gets the jobs of experiment 1. Every ten seconds, it gets the network load of each running job, and the
finished jobs. It is called whenever jobs arrive or end, and solves each flow once.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from topoplace.policies import DRMaestro
from topoplace_lab.papers.claims import ClaimedQuantity, PaperClaim
from topoplace_lab.papers.drmaestro import rodinia
from topoplace_lab.papers.drmaestro.study import DRMaestroStudy, StudyRun, simulated
from topoplace_lab.papers.rules import ordered
from topoplace_lab.policies.drmaestro import DRMaestroService, InferenceEngine
from topoplace_lab.simulate import RunTimeHistograms, TelemetryLog
from topoplace_lab.simulate.processes import Runner
from topoplace_lab.simulate.samples import Sample

MEASURE_EVERY: Final = 10.0
"""Seconds between two readings; the thesis gives no interval."""
_EARLIER: Final = 1000
"""Offset of the seed for the earlier list of jobs, from which history is collected."""
_ALIKE: Final = (0.98, 1.02)


class ServiceOutcome(NamedTuple):
    """The results of the simulations of one seed."""

    unknown: StudyRun
    """The service that starts without any model."""
    history: StudyRun
    """The service after its engine has watched another list of jobs."""
    error: float
    """Mean error of the inferred slowdowns on a full network, relative to the true ones, after both lists."""
    redrawn: tuple[float, float]
    """Makespan with run times drawn from histograms, over that of the counted runs: without and with remote GPUs."""


def measure(runner: Runner, study: DRMaestroStudy) -> list[ServiceOutcome]:
    """Simulate the service on the jobs of a study, with remote GPUs, for each seed."""
    return runner.results(_found, [(study.num_jobs, study.num_machines, seed) for seed in study.seeds])


def _found(num_jobs: int, num_machines: int, seed: int) -> ServiceOutcome:
    def served(engine: InferenceEngine, seed: int) -> StudyRun:
        service = DRMaestroService(engine)
        return simulated(num_jobs, num_machines, service, seed, observer=service, measure_every=MEASURE_EVERY)

    engine = InferenceEngine()
    unknown = served(engine, seed)
    experienced = InferenceEngine()
    served(experienced, _EARLIER + seed)
    history = served(experienced, seed)
    redrawn = (_redrawn(num_jobs, num_machines, seed, disaggregate=way) for way in (False, True))
    return ServiceOutcome(unknown, history, _error(experienced), (next(redrawn), next(redrawn)))


def _error(engine: InferenceEngine) -> float:
    """Return the mean relative error of slowdowns on a full network, over applications; unknown means no slowdown."""
    errors: list[float] = []
    for name, true in rodinia.PROFILES.items():
        inferred = engine.profile(name)
        full = inferred.slowdown(1.0, remote=True) if inferred else 1.0
        errors.append(abs(full / true.slowdown(1.0, remote=True) - 1))
    return sum(errors) / len(errors)


def _redrawn(num_jobs: int, num_machines: int, seed: int, *, disaggregate: bool) -> float:
    policy, log = DRMaestro(disaggregate=disaggregate), TelemetryLog()
    counted = simulated(
        num_jobs, num_machines, policy, seed, observer=log, measure_every=rodinia.WARM_UP_SECONDS
    )
    histograms = RunTimeHistograms.of_runs(log.runs)
    drawn = simulated(num_jobs, num_machines, policy, seed, performance=histograms)
    return drawn.makespan / counted.makespan


def rows(study: DRMaestroStudy, found: Sequence[ServiceOutcome]) -> Iterator[PaperClaim]:
    """Yield the rows on the service, next to the policy with given profiles; study: that of `measure`."""
    off, given = (study.runs(disaggregate=True, network_aware=way) for way in (False, True))
    error = Sample.of(each.error for each in found)
    for name, start in (("unknown", "all applications unknown at first"), ("history", "after another list")):
        runs: list[StudyRun] = [getattr(each, name) for each in found]
        ratio = _slowdowns(off).over(_slowdowns(runs))
        yield ClaimedQuantity(
            f"5.4 service, {name}",
            f"{study.where}, disaggregated: mean slowdown with the network-aware policy off, with given profiles, and "
            f"under the service, {start}",
            "lower with network awareness (figures 29 and 31, without numbers)",
        ).judged(
            ", ".join(f"{_slowdowns(each):.4f}" for each in (off, given, runs)),
            ordered("if the mean off over that of the service is above 1", (1.001, float("inf"))),
            ratio,
            note=f"the ratio is {ratio:.4f}; makespans {_makespans(off):.0f}, {_makespans(given):.0f} and "
            f"{_makespans(runs):.0f} s; error of inferred slowdowns after two lists {error:.1%}",
        )
    local, remote = (Sample.of(each.redrawn[way] for each in found) for way in (0, 1))
    yield ClaimedQuantity(
        "5.2 validation",
        f"{study.where}: makespan with run times drawn from histograms of a run's trace over that of the run, without "
        "and with disaggregation",
        "very similar (experiment 2, figure 25)",
    ).judged(
        f"{local:.3f}, {remote:.3f}",
        ordered("if both are within 2 % of 1", _ALIKE, _ALIKE),
        local,
        remote,
        note="our simulation stands in for the prototype; the histograms already contain the cost of contention, "
        "which is not modelled a second time",
    )


def _slowdowns(runs: Sequence[StudyRun]) -> Sample:
    return Sample.of(run.mean_slowdown for run in runs)


def _makespans(runs: Sequence[StudyRun]) -> Sample:
    return Sample.of(run.makespan for run in runs)
