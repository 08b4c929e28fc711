"""Simulations of MAPA's job mix under its four policies, and under Preserve with the artifact's threshold."""

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
    """MAPA's job mix under its policies on one machine, over several seeds; runs are made on first use.

    machine: the artifact's name. like_artifact: use its links and tie-breaking, else ours on the machine as drawn.
    slowdown: run times that depend on bandwidth (the real machine of section 4) instead of fixed ones (section 5).
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
        """Return the machine, with the artifact's links or as drawn."""
        return topology_of(self.machine) if self.like_artifact else machines.get(MACHINES[self.machine])

    def results(self, policy: str) -> tuple[Result, ...]:
        """Return one result per seed."""
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
        """Return the predicted effective bandwidth in GB/s of every sensitive job, for all seeds together."""
        return np.concatenate(
            [score_of(result.sensitive, "effective_bandwidth") for result in self.results(policy)]
        )

    def quantile(self, policy: str, q: float) -> float:
        """Return the quantile `q` of `effective`."""
        return float(np.quantile(self.effective(policy), q))

    def throughput(self, policy: str) -> float:
        """Return the throughput over all seeds relative to Baseline's."""
        return self._makespan("Baseline") / self._makespan(policy)

    def speedup(self, policy: str, q: float) -> float:
        """Return Baseline's quantile `q` of the sensitive jobs' run times over that of `policy`."""
        return self._run_time("Baseline", q) / self._run_time(policy, q)

    def aggregated_quality(self, policy: str, num_gpus: int, ideal: float) -> NDArray[np.float64]:
        """Return AggBW over `ideal` of every job of `num_gpus` GPUs, for all seeds together."""
        rows = np.concatenate([result.jobs[["num_gpus", "scores"]] for result in self.results(policy)])
        quality: NDArray[np.float64] = (
            rows["scores"]["aggregated_bandwidth"][rows["num_gpus"] == num_gpus] / ideal
        )
        return quality

    def _makespan(self, policy: str) -> float:
        return sum(float(np.nanmax(result.jobs["end"])) for result in self.results(policy))

    def _run_time(self, policy: str, q: float) -> float:
        return float(np.quantile(np.concatenate([r.sensitive["run_time"] for r in self.results(policy)]), q))
