"""MAPA's speedups with run times from the rings of a collective library, next to those from eq. 2.

Every sensitive job is data-parallel training: its steps compute, and then add up gradients by an all-reduce. Other jobs
take their base time, as under eq. 2. The paper has no such numbers, so no row can agree or differ.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from topoplace.policies import LeastTime, Policy
from topoplace_lab.papers.claims import ClaimedQuantity, PaperClaim, listed
from topoplace_lab.papers.mapa.study import POLICIES, MapaStudy
from topoplace_lab.simulate import StepTime
from topoplace_lab.simulate.processes import Runner

if TYPE_CHECKING:
    import numpy as np

    from topoplace.placement import Placement
    from topoplace_lab.simulate.samples import Sample
    from topoplace_lab.simulate.workloads.submitted_job import SubmittedJob

DEFAULT_STEP = (0.1, 0.5)
"""Seconds of computing and GB of gradients of a step: those of a network of 125 million parameters of 4 bytes."""
_POLICIES: Final[Mapping[str, Callable[[], Policy]]] = {
    **POLICIES,
    "Least-time": LeastTime,
}
COMPARED = ("Topo-aware", "Greedy", "Preserve", "Least-time")
_QUANTILES = {"25th percentile": 0.25, "median": 0.5, "75th percentile": 0.75, "maximum": 1.0}


class SensitiveCollectives:
    """A model of run times: the steps of `StepTime`, alone, for sensitive jobs; the base time for others."""

    def __init__(self, step: tuple[float, float]) -> None:
        self._model = StepTime(default_step=step)

    def run_time(self, job: SubmittedJob, placement: Placement, random: np.random.Generator) -> float:
        """Return the run time in seconds."""
        if not job.job.bandwidth_sensitive:
            return job.base_time
        return self._model.run_time(job, placement, random)


class RingStudy(MapaStudy):
    """Simulations of MAPA's job mix on its DGX-1V, with least-time next to the paper's policies.

    step: the training step of a sensitive job, as in `StepTime`; None takes eq. 2's run times.
    """

    def __init__(self, seeds: Sequence[int], step: tuple[float, float] | None, num_jobs: int = 300) -> None:
        super().__init__("dgx-v", seeds, num_jobs=num_jobs, like_artifact=False, slowdown=True)
        if step is not None:
            self.performance = SensitiveCollectives(step)

    @property
    def policies(self) -> Mapping[str, Callable[[], Policy]]:
        """Return the paper's policies and least-time, by name."""
        return _POLICIES


def rows(seeds: Sequence[int], step: tuple[float, float], runner: Runner) -> Iterator[PaperClaim]:
    """Yield a row for the throughput and for each quantile of run times: speedups over Baseline by both models."""
    by_rings, by_eq2 = RingStudy(seeds, step), RingStudy(seeds, None)
    for study in (by_rings, by_eq2):
        study.run_all(runner)
    names = ", ".join(COMPARED)
    yield _row("C.1", f"throughput: {names}", *(_throughputs(study) for study in (by_rings, by_eq2)))
    for i, (name, quantile) in enumerate(_QUANTILES.items(), 2):
        speedups = ([study.speedup(policy, quantile) for policy in COMPARED] for study in (by_rings, by_eq2))
        yield _row(f"C.{i}", f"sensitive run time, {name}: {names}", *speedups)


def _throughputs(study: MapaStudy) -> list[Sample]:
    return [study.throughput(policy) for policy in COMPARED]


def _row(number: str, quantity: str, by_rings: Sequence[Sample], by_eq2: Sequence[Sample]) -> PaperClaim:
    return ClaimedQuantity(
        number, f"Speedup over Baseline of {quantity}", f"eq. 2: {listed(by_eq2, 3)}"
    ).not_comparable(
        f"rings: {listed(by_rings, 3)}",
        "the paper's run times follow eq. 2; both columns are our simulations",
    )
