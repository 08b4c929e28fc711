"""Simulations of the MAPA paper's job mix on one machine, under its four policies and a variant of Preserve."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property, partial
from typing import Final

import numpy as np
from numpy.typing import NDArray

from topoplace import machines
from topoplace.policies import Baseline, Greedy, MapaTopoAware, Policy, Preserve
from topoplace.topology.topology import Topology
from topoplace_lab.papers.mapa.artifact import MACHINES, THRESHOLD, topology_of
from topoplace_lab.papers.mapa.artifact_order import (
    BaselineOfArtifact,
    GreedyOfArtifact,
    PreserveOfArtifact,
    TopoAwareOfArtifact,
)
from topoplace_lab.simulate import FixedTime, MapaSlowdown, PerformanceModel, Result, Workload, simulate
from topoplace_lab.simulate.metrics import score_of
from topoplace_lab.simulate.processes import Runner
from topoplace_lab.simulate.samples import Sample

POLICIES: Final[Mapping[str, Callable[[], Policy]]] = {
    "Baseline": Baseline,
    "Topo-aware": MapaTopoAware,
    "Greedy": Greedy,
    "Preserve": Preserve,
    "Preserve, threshold": partial(Preserve, THRESHOLD),
}
_OF_ARTIFACT: Final[Mapping[str, Callable[[], Policy]]] = {
    "Baseline": BaselineOfArtifact,
    "Topo-aware": TopoAwareOfArtifact,
    "Greedy": GreedyOfArtifact,
    "Preserve": PreserveOfArtifact,
    "Preserve, threshold": partial(PreserveOfArtifact, THRESHOLD),
}
FOUR: Final = tuple(POLICIES)[:4]


class MapaStudy:
    """Simulations of MAPA's job mix on one machine, by policy and seed; a simulation runs on first use.

    machine: its name in MAPA's published code. like_artifact: use that code's links and tie-breaking; otherwise the
    paper's links and our tie-breaking. slowdown: run times depend on bandwidth (section 4); else they are fixed.
    """

    def __init__(
        self,
        machine: str,
        seeds: Sequence[int],
        *,
        num_jobs: int = 300,
        like_artifact: bool = True,
        slowdown: bool = False,
    ) -> None:
        self.machine = machine
        self.seeds = tuple(seeds)
        self.num_jobs = num_jobs
        self.like_artifact = like_artifact
        self.performance: PerformanceModel = MapaSlowdown() if slowdown else FixedTime()
        self._runs: dict[str, tuple[Result, ...]] = {}

    @cached_property
    def topology(self) -> Topology:
        """Return the machine's topology, with the links of MAPA's published code or of the paper."""
        return topology_of(self.machine) if self.like_artifact else machines.get(MACHINES[self.machine])

    @property
    def policies(self) -> Mapping[str, Callable[[], Policy]]:
        """Return the policies that are compared, by name."""
        return _OF_ARTIFACT if self.like_artifact else POLICIES

    def run_all(self, runner: Runner) -> None:
        """Run all simulations of the study."""
        calls = [(self, policy, seed) for policy in self.policies for seed in self.seeds]
        runs, count = runner.results(_simulated, calls), len(self.seeds)
        self._runs = {
            policy: tuple(runs[count * i : count * (i + 1)]) for i, policy in enumerate(self.policies)
        }

    def results(self, policy: str) -> tuple[Result, ...]:
        """Return the simulation results under the policy of that name, one per seed."""
        if policy not in self._runs:
            self._runs[policy] = tuple(_simulated(self, policy, seed) for seed in self.seeds)
        return self._runs[policy]

    def quantile(self, policy: str, q: float) -> Sample:
        """Return the quantile `q` (0 to 1) of the bandwidth-sensitive jobs' effective bandwidth in GB/s."""
        return Sample.of(
            float(np.quantile(score_of(result.sensitive, "effective_bandwidth"), q))
            for result in self.results(policy)
        )

    def largest(self, policies: Sequence[str]) -> Sample:
        """Return the largest effective bandwidth (GB/s) of a bandwidth-sensitive job under any of the policies."""
        return Sample.of(
            map(max, zip(*(self.quantile(policy, 1.0).values for policy in policies), strict=True))
        )

    def throughput(self, policy: str) -> Sample:
        """Return the throughput relative to that of the policy Baseline."""
        ends = [
            Sample.of(float(np.nanmax(result.jobs["end"])) for result in self.results(name))
            for name in ("Baseline", policy)
        ]
        return ends[0].over(ends[1])

    def speedup(self, policy: str, q: float) -> Sample:
        """Return the speed-up over the policy Baseline at quantile `q` (0 to 1) of run times.

        It is Baseline's quantile over that of `policy`, among bandwidth-sensitive jobs; above 1 is faster.
        """
        times = [
            Sample.of(float(np.quantile(result.sensitive["run_time"], q)) for result in self.results(name))
            for name in ("Baseline", policy)
        ]
        return times[0].over(times[1])

    def aggregated_quality(self, policy: str, num_gpus: int, ideal: float) -> list[NDArray[np.float64]]:
        """Return aggregated link bandwidth over `ideal` (GB/s) of each job with `num_gpus` GPUs, by seed."""
        rows = [result.jobs[["num_gpus", "scores"]] for result in self.results(policy)]
        return [each["scores"]["aggregated_bandwidth"][each["num_gpus"] == num_gpus] / ideal for each in rows]


def _simulated(study: MapaStudy, policy: str, seed: int) -> Result:
    return simulate(
        study.topology,
        Workload.mapa(study.num_jobs, seed),
        study.policies[policy](),
        performance=study.performance,
        seed=seed,
    )
