"""The planner to run between two solutions of a model: a few milliseconds, and a bound besides."""

from __future__ import annotations

import math
import time
from copy import copy
from typing import TYPE_CHECKING, NamedTuple

from topoplace import _checks, _core
from topoplace.capacity.planners.native_tables import NativeNode, from_native, tables_of, to_native
from topoplace.capacity.planners.rescale import conditioned, well_conditioned
from topoplace.capacity.problem.plan import Plan, plan_of
from topoplace.capacity.problem.problem import Problem

if TYPE_CHECKING:
    from collections.abc import Sequence

    from topoplace.capacity.problem.plan import Node

_MOST = 1 << 60


class SearchPlanner:
    """Large neighbourhood search in C++ around prices of jobs; anytime, and the same plan for the same seed.

    price_steps: of the volume algorithm, whose prices guide the search and bound what any plan costs; 8 per job and at
    least 400 if None. rounds: how often nodes are cleared and filled again, each a few knapsacks, which are
    microseconds; 50 per node if None. timeout: seconds, for all of it; there is always a plan.
    """

    name = "search"

    def __init__(
        self,
        *,
        price_steps: int | None = None,
        rounds: int | None = None,
        seed: int = 0,
        timeout: float | None = None,
    ) -> None:
        self.price_steps = _effort(price_steps, "price_steps")
        self.rounds = _effort(rounds, "rounds")
        self.seed = _checks.integer(seed, "seed", ValueError, low=0, high=_MOST)
        self.timeout = None if timeout is None else _checks.real(timeout, "timeout", ValueError)

    def plan(self, problem: Problem) -> Plan:
        """The best plan found; its `bound` is valid."""
        _checks.instance(problem, Problem, "problem", ValueError)
        _, unit, _, plan = search_conditioned(problem, self)
        return in_dollars(problem, plan, unit)


def search_conditioned(
    problem: Problem, planner: SearchPlanner
) -> tuple[Problem, float, _core.CapacityTables, Plan]:
    """`search`, and the problem, its unit of money in $ and the tables in which costs are comparable with the plan's.

    Almost always that is the problem itself. Otherwise a better plan may be needed to tell what is comparable.
    """
    deadline = math.inf if planner.timeout is None else time.monotonic() + planner.timeout
    easier, unit, tables = problem, 1.0, tables_of(problem)
    plan = search(easier, tables, planner)
    known, again = math.inf, copy(planner)
    while not well_conditioned(easier, plan.cost.total) and plan.cost.total * unit < known / 2:
        known = plan_of(problem, plan.nodes).cost.total
        if not known:
            break
        easier, unit = conditioned(problem, known)
        tables = tables_of(easier)
        again.timeout = None if deadline == math.inf else max(deadline - time.monotonic(), 0.0)
        plan = search(easier, tables, again, plan.nodes)
    return easier, unit, tables, plan


def in_dollars(problem: Problem, plan: Plan, unit: float) -> Plan:
    """A plan of the problem that was made in another unit of money."""
    same = plan_of(problem, plan.nodes, status=plan.status, num_variables=plan.num_variables)
    return same.with_bound(plan.bound * unit)


class Found(NamedTuple):
    """What a search has found."""

    nodes: list[NativeNode]
    bound: float
    status: str


def search(
    problem: Problem, tables: _core.CapacityTables, planner: SearchPlanner, start: Sequence[Node] = ()
) -> Plan:
    """As `SearchPlanner.plan`, where the tables are there already, and maybe a plan to begin with."""
    found = found_by(planner, tables, problem, start)
    return plan_of(problem, from_native(found.nodes), status=found.status).with_bound(found.bound)


def found_by(
    planner: SearchPlanner, tables: _core.CapacityTables, problem: Problem, start: Sequence[Node] = ()
) -> Found:
    """As many nodes as the problem uses, for whatever the tables say they cost."""
    nodes, _, bound, complete, *_ = _core.search_capacity(
        tables,
        problem.used_nodes,
        to_native(start),
        max(400, 8 * problem.num_jobs) if planner.price_steps is None else planner.price_steps,
        50 * problem.used_nodes if planner.rounds is None else planner.rounds,
        planner.seed,
        planner.timeout,
        None,
    )
    return Found(nodes, bound, "heuristic" if complete else "timeout")


def _effort(value: int | None, name: str) -> int | None:
    return None if value is None else _checks.integer(value, name, ValueError, low=0, high=_MOST)
