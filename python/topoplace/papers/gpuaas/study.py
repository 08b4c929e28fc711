"""Simulations of clusters of several sizes, each with several lists of jobs, under several planners."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from topoplace.capacity import (
    TABLE_II,
    CapacityJob,
    CapacityPlanner,
    CapacityResult,
    DispatchRule,
    FirstPrinciplePlanner,
    Planner,
    RoundRobin,
    SearchPlanner,
    SharePlanner,
    generate_jobs,
    simulate_online,
)

JOBS_PER_NODE: Final = 10
"""Section V-A."""
NODES_PER_CONTROLLER: Final = 5
"""Section V-A: K = N/5."""
MOST_CENTRALISED: Final = 20
"""Most nodes for which one controller of all nodes is compared; it decides often, about hundreds of jobs."""
FIRST_PRINCIPLES: Final = ("fifo", "edf", "ps")


class Study:
    """Simulations by size, seed, planner, controllers and dispatch rule; each runs on first use and is cached."""

    def __init__(
        self,
        sizes: Sequence[int],
        seeds: Sequence[int],
        tables: Sequence[NDArray[np.float64]] | None = None,
        *,
        timeout: float,
    ) -> None:
        self.sizes, self.seeds, self.tables = tuple(sizes), tuple(seeds), tables
        planners: list[Planner] = [CapacityPlanner(timeout=timeout), SearchPlanner(), SharePlanner()]
        planners += [FirstPrinciplePlanner(name) for name in FIRST_PRINCIPLES]
        planners += [FirstPrinciplePlanner(name, sharing=True) for name in FIRST_PRINCIPLES]
        self.planners = {planner.name: planner for planner in planners}
        self._runs: dict[tuple[int, int, str, int, str], CapacityResult] = {}

    @property
    def large_sizes(self) -> tuple[int, ...]:
        """Return the sizes with more than one controller, or all sizes if there is none."""
        return tuple(size for size in self.sizes if size > NODES_PER_CONTROLLER) or self.sizes

    @property
    def centralised_sizes(self) -> tuple[int, ...]:
        """Return the sizes at which one controller of all nodes is compared with several."""
        return tuple(size for size in self.large_sizes if size <= MOST_CENTRALISED)

    def hierarchical(self, size: int, seed: int, planner: str = "milp") -> CapacityResult:
        """Return the run of the paper's proposal: controllers of five nodes that get jobs in turn."""
        return self.run(size, seed, planner, size // NODES_PER_CONTROLLER, RoundRobin())

    def centralised(self, size: int, seed: int, planner: str = "milp") -> CapacityResult:
        """Return the run with all nodes under one controller."""
        return self.run(size, seed, planner, 1, RoundRobin())

    def best(self, size: int, seed: int, *, sharing: bool = False) -> float:
        """Return the lowest total cost in $ of the first-principle methods, under one controller."""
        ending = "-sharing" if sharing else ""
        return min(self.centralised(size, seed, name + ending).total_cost for name in FIRST_PRINCIPLES)

    def jobs(self, size: int, seed: int) -> tuple[CapacityJob, ...]:
        """Return the jobs of a run: ten per node (section V-A)."""
        return generate_jobs(JOBS_PER_NODE * size, size, seed, tables=self.tables)

    def run(
        self, size: int, seed: int, planner: str, num_controllers: int, rule: DispatchRule
    ) -> CapacityResult:
        """Return the simulation of the jobs of `seed` under the planner of that name."""
        key = (size, seed, planner, num_controllers, rule.name)
        if key not in self._runs:
            self._runs[key] = simulate_online(
                self.jobs(size, seed),
                TABLE_II,
                size,
                self.planners[planner],
                num_controllers=num_controllers,
                dispatch=rule,
                periodic=False,
            )
        return self._runs[key]
