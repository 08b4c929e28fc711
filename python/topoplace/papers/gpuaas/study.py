"""Simulations of renting VMs for jobs with due dates: several cluster sizes, job lists and planners."""

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
"""Jobs of a simulation per node (section V-A)."""
NODES_PER_CONTROLLER: Final = 5
"""Nodes of each controller in the paper's proposal (section V-A)."""
MOST_CENTRALISED: Final = 20
"""Largest cluster simulated with one controller for all nodes; larger ones take too long to decide."""
FIRST_PRINCIPLES: Final = ("fifo", "edf", "ps")


class Study:
    """Simulations by cluster size, seed, planner, number of controllers and dispatch rule.

    A simulation runs when its result is first needed and is cached. sizes: numbers of nodes (VMs) of the clusters.
    tables: measured run times to draw jobs from, or None. timeout: seconds per decision of the planner "milp".
    """

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
        """Return the cluster sizes that need more than one controller of five nodes; all sizes if none does."""
        return tuple(size for size in self.sizes if size > NODES_PER_CONTROLLER) or self.sizes

    @property
    def centralised_sizes(self) -> tuple[int, ...]:
        """Return the cluster sizes for which a run with one controller for all nodes is also simulated."""
        return tuple(size for size in self.large_sizes if size <= MOST_CENTRALISED)

    def hierarchical(self, size: int, seed: int, planner: str = "milp") -> CapacityResult:
        """Return the result of the paper's proposal: controllers of five nodes each, which get new jobs in turn.

        size: nodes of the cluster. planner: name of the planner that every controller uses.
        """
        return self.run(size, seed, planner, size // NODES_PER_CONTROLLER, RoundRobin())

    def centralised(self, size: int, seed: int, planner: str = "milp") -> CapacityResult:
        """Return the result with one controller for all `size` nodes; planner: the name of its planner."""
        return self.run(size, seed, planner, 1, RoundRobin())

    def best(self, size: int, seed: int, *, sharing: bool = False) -> float:
        """Return the lowest total cost in $ of ordering jobs by arrival, due date or priority, with one controller.

        sharing: use the variants of these methods that put several jobs on a node and preempt jobs.
        """
        ending = "-sharing" if sharing else ""
        return min(self.centralised(size, seed, name + ending).total_cost for name in FIRST_PRINCIPLES)

    def jobs(self, size: int, seed: int) -> tuple[CapacityJob, ...]:
        """Return the generated jobs for a cluster of `size` nodes: ten jobs per node (section V-A)."""
        return generate_jobs(JOBS_PER_NODE * size, size, seed, tables=self.tables)

    def run(
        self, size: int, seed: int, planner: str, num_controllers: int, rule: DispatchRule
    ) -> CapacityResult:
        """Return the simulation's result for a cluster of `size` nodes and the jobs of `seed`; cached.

        planner: name of the planner of every controller. rule: how new jobs are sent to controllers.
        """
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
