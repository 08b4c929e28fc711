"""Simulations of the MAPA paper's job mix on one machine, under its four policies and a variant of Preserve."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Final

import numpy as np
from numpy.typing import NDArray

from topoplace import machines
from topoplace.papers.mapa.artifact import MACHINES, topology_of
from topoplace.policies import Baseline, Greedy, MapaTopoAware, Policy, Preserve
from topoplace.policies.mapa.artifact_order import TieBreak
from topoplace.simulate import FixedTime, MapaSlowdown, Result, Workload, simulate
from topoplace.simulate.metrics import score_of
from topoplace.topology.topology import Topology

# Eq. 2 without any link is 12.335063; the artifact's Preserve refuses predictions that do not exceed it.
ARTIFACT_THRESHOLD: Final = 12.3351
POLICIES: Final[Mapping[str, Callable[[TieBreak], Policy]]] = {
    "Baseline": lambda tie_break: Baseline(tie_break=tie_break),
    "Topo-aware": lambda tie_break: MapaTopoAware(tie_break=tie_break),
    "Greedy": lambda tie_break: Greedy(tie_break=tie_break),
    "Preserve": lambda tie_break: Preserve(tie_break=tie_break),
    "Preserve, threshold": lambda tie_break: Preserve(ARTIFACT_THRESHOLD, tie_break=tie_break),
}
FOUR: Final = tuple(POLICIES)[:4]


class Study:
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
        self.performance = MapaSlowdown() if slowdown else FixedTime()
        self._runs: dict[str, tuple[Result, ...]] = {}

    @cached_property
    def topology(self) -> Topology:
        """Return the machine's topology, with the links of MAPA's published code or of the paper."""
        return topology_of(self.machine) if self.like_artifact else machines.get(MACHINES[self.machine])

    def results(self, policy: str) -> tuple[Result, ...]:
        """Return the simulation results under the policy of that name, one per seed."""
        if policy not in self._runs:
            chosen = POLICIES[policy]("artifact" if self.like_artifact else "lexicographic")
            self._runs[policy] = tuple(
                simulate(
                    self.topology,
                    Workload.mapa(self.num_jobs, seed),
                    chosen,
                    performance=self.performance,
                    seed=seed,
                )
                for seed in self.seeds
            )
        return self._runs[policy]

    def effective(self, policy: str) -> NDArray[np.float64]:
        """Return the predicted effective bandwidth (GB/s) of every bandwidth-sensitive job, all seeds together."""
        return np.concatenate(
            [score_of(result.sensitive, "effective_bandwidth") for result in self.results(policy)]
        )

    def quantile(self, policy: str, q: float) -> float:
        """Return the quantile `q` (0 to 1) of the bandwidth-sensitive jobs' effective bandwidth in GB/s."""
        return float(np.quantile(self.effective(policy), q))

    def throughput(self, policy: str) -> float:
        """Return the throughput over all seeds, relative to that of the policy Baseline."""
        return self._makespan("Baseline") / self._makespan(policy)

    def speedup(self, policy: str, q: float) -> float:
        """Return the speed-up over the policy Baseline at quantile `q` (0 to 1) of run times.

        It is Baseline's quantile over that of `policy`, among bandwidth-sensitive jobs; above 1 is faster.
        """
        return self._run_time("Baseline", q) / self._run_time(policy, q)

    def aggregated_quality(self, policy: str, num_gpus: int, ideal: float) -> NDArray[np.float64]:
        """Return aggregated link bandwidth over `ideal` (GB/s) of each job with `num_gpus` GPUs, all seeds together."""
        rows = np.concatenate([result.jobs[["num_gpus", "scores"]] for result in self.results(policy)])
        quality: NDArray[np.float64] = (
            rows["scores"]["aggregated_bandwidth"][rows["num_gpus"] == num_gpus] / ideal
        )
        return quality

    def _makespan(self, policy: str) -> float:
        return sum(float(np.nanmax(result.jobs["end"])) for result in self.results(policy))

    def _run_time(self, policy: str, q: float) -> float:
        return float(np.quantile(np.concatenate([r.sensitive["run_time"] for r in self.results(policy)]), q))
