"""Simulations of renting VMs for jobs with due dates: several cluster sizes, job lists and planners."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Final

import numpy as np
from numpy.typing import NDArray

from topoplace_lab.capacity import (
    TABLE_II,
    CapacityJob,
    CapacityPlanner,
    CapacityResult,
    DispatchRule,
    FirstPrinciplePlanner,
    Planner,
    SearchPlanner,
    SharePlanner,
    VariantPlanner,
    generate_jobs,
    simulate_online,
)
from topoplace_lab.capacity.online.dispatch import RULES
from topoplace_lab.simulate.processes import Runner

Tables = Sequence[NDArray[np.float64]] | None
_Key = tuple[int, int, str, int, str]
"""Nodes, seed, planner, number of controllers, dispatch rule."""

JOBS_PER_NODE: Final = 10
"""Jobs of a simulation per node (section V-A)."""
NODES_PER_CONTROLLER: Final = 5
"""Nodes of each controller in the paper's proposal (section V-A)."""
MOST_CENTRALISED: Final = 10
"""Largest cluster simulated with one controller for all nodes; larger ones take too long to decide."""
EARLIER: Final = "linear"
"""The planner with the objective of the authors' earlier, centralised model."""
VARIANTS: Final = ("earliness", "convex")
"""The planners with the other objectives of section IV."""
FIRST_PRINCIPLES: Final = ("fifo", "edf", "ps")


class GpuaasStudy:
    """Simulations by cluster size, seed, planner, number of controllers and dispatch rule.

    A simulation runs when its result is first needed, or with all others in `run_all`. sizes: numbers of nodes (VMs) of
    the clusters. tables: measured run times to draw jobs from, or None. timeout: seconds per decision of the planner
    "milp". same_model: whether `run_all` also runs this planner with one controller for all nodes.
    """

    def __init__(
        self,
        sizes: Sequence[int],
        seeds: Sequence[int],
        tables: Tables = None,
        *,
        timeout: float,
        same_model: bool = True,
    ) -> None:
        self.same_model = same_model
        self.sizes, self.seeds, self.tables, self.timeout = tuple(sizes), tuple(seeds), tables, timeout
        planners: list[Planner] = [CapacityPlanner(timeout=timeout), SearchPlanner(), SharePlanner()]
        planners += [VariantPlanner(name) for name in (EARLIER, *VARIANTS)]
        planners += [FirstPrinciplePlanner(name) for name in FIRST_PRINCIPLES]
        planners += [FirstPrinciplePlanner(name, sharing=True) for name in FIRST_PRINCIPLES]
        self.planners = {planner.name: planner for planner in planners}
        self._runs: dict[_Key, CapacityResult] = {}

    def run_all(self, runner: Runner) -> None:
        """Run all simulations that the rows need."""
        calls = [key for size in self.sizes for seed in self.seeds for key in self._needed(size, seed)]
        self._runs.update(
            zip(calls, runner.results(partial(_simulate, self.planners, self.tables), calls), strict=True)
        )

    def _needed(self, size: int, seed: int) -> Iterator[_Key]:
        round_robin, several = RULES[0], size // NODES_PER_CONTROLLER
        variants = VARIANTS if size == min(self.sizes) else ()
        for planner in ("milp", "search", "shares", *variants):
            yield size, seed, planner, several, round_robin.name
        for name in FIRST_PRINCIPLES:
            yield size, seed, name, 1, round_robin.name
            yield size, seed, f"{name}-sharing", 1, round_robin.name
        if size in self.centralised_sizes:
            if self.same_model:
                yield size, seed, "milp", 1, round_robin.name
            yield size, seed, EARLIER, 1, round_robin.name
            for rule in RULES[1:]:
                yield size, seed, "search", several, rule.name

    @property
    def large_sizes(self) -> tuple[int, ...]:
        """Return the cluster sizes that need more than one controller of five nodes; all sizes if none does."""
        return tuple(size for size in self.sizes if size > NODES_PER_CONTROLLER) or self.sizes

    @property
    def centralised_sizes(self) -> tuple[int, ...]:
        """Return those of `large_sizes` that are simulated with one controller for all nodes, too."""
        return tuple(size for size in self.large_sizes if size <= MOST_CENTRALISED)

    def hierarchical(self, size: int, seed: int, planner: str = "milp") -> CapacityResult:
        """Return the result of the paper's proposal: controllers of five nodes each, which get new jobs in turn.

        size: nodes of the cluster. planner: name of the planner that every controller uses.
        """
        return self.run(size, seed, planner, size // NODES_PER_CONTROLLER, RULES[0])

    def centralised(self, size: int, seed: int, planner: str = "milp") -> CapacityResult:
        """Return the result with one controller for all `size` nodes; planner: the name of its planner."""
        return self.run(size, seed, planner, 1, RULES[0])

    def best(self, size: int, seed: int, *, sharing: bool = False) -> float:
        """Return the lowest total cost in $ of ordering jobs by arrival, due date or priority, with one controller.

        sharing: use the variants of these methods that put several jobs on a node and preempt jobs.
        """
        ending = "-sharing" if sharing else ""
        return min(self.centralised(size, seed, name + ending).total_cost for name in FIRST_PRINCIPLES)

    def jobs(self, size: int, seed: int) -> tuple[CapacityJob, ...]:
        """Return the generated jobs for a cluster of `size` nodes: ten jobs per node (section V-A)."""
        return _jobs(size, seed, self.tables)

    def run(
        self, size: int, seed: int, planner: str, num_controllers: int, rule: DispatchRule
    ) -> CapacityResult:
        """Return the simulation's result for a cluster of `size` nodes and the jobs of `seed`; cached.

        planner: name of the planner of every controller. rule: how new jobs are sent to controllers.
        """
        key = (size, seed, planner, num_controllers, rule.name)
        if key not in self._runs:
            self._runs[key] = _simulate(self.planners, self.tables, *key)
        return self._runs[key]


def _simulate(
    planners: Mapping[str, Planner],
    tables: Tables,
    size: int,
    seed: int,
    planner: str,
    num_controllers: int,
    rule: str,
) -> CapacityResult:
    return simulate_online(
        _jobs(size, seed, tables),
        TABLE_II,
        size,
        planners[planner],
        num_controllers=num_controllers,
        dispatch=next(each for each in RULES if each.name == rule),
        periodic=False,
    )


def _jobs(size: int, seed: int, tables: Tables) -> tuple[CapacityJob, ...]:
    return generate_jobs(JOBS_PER_NODE * size, size, seed, tables=tables)
