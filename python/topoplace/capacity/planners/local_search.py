"""A fast planner by local search: it takes a few milliseconds and also returns a bound."""

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

_LIMIT = 1 << 60


class SearchPlanner:
    """Plan by large neighbourhood search in C++, guided by prices of jobs. The same seed gives the same plan.

    price_steps: steps of the volume algorithm, whose prices guide the search and bound the cost of any plan. None means
    8 per job, at least 400. rounds: how often nodes are emptied and filled again; None means 50 per node. A round
    solves a few knapsacks, in microseconds. timeout: seconds in total; a plan is returned in any case.
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
        self.seed = _checks.integer(seed, "seed", ValueError, low=0, high=_LIMIT)
        self.timeout = None if timeout is None else _checks.real(timeout, "timeout", ValueError)

    def plan(self, problem: Problem) -> Plan:
        """Return the best plan found; its `bound` is valid."""
        _checks.instance(problem, Problem, "problem", ValueError)
        _, unit, _, plan = search_conditioned(problem, self)
        return in_dollars(problem, plan, unit)


def search_conditioned(
    problem: Problem, planner: SearchPlanner
) -> tuple[Problem, float, _core.CapacityTables, Plan]:
    """Search for a plan, and rescale the problem until its costs are comparable with the plan's.

    Returns the rescaled problem, its unit of money in $, its tables and the plan. Almost always no rescaling is needed.
    Otherwise the search is repeated, as a better plan allows lower caps.
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
    """Convert a plan of the rescaled problem, whose unit of money is `unit` $, to a plan of `problem`."""
    same = plan_of(problem, plan.nodes, status=plan.status, num_variables=plan.num_variables)
    return same.with_bound(plan.bound * unit)


class Found(NamedTuple):
    """The answer of the native search. `status` is `heuristic`, or `timeout` if time ran out."""

    nodes: list[NativeNode]
    bound: float
    status: str


def search(
    problem: Problem, tables: _core.CapacityTables, planner: SearchPlanner, start: Sequence[Node] = ()
) -> Plan:
    """Return the best plan found with existing tables. start: nodes of a plan to begin with."""
    found = found_by(planner, tables, problem, start)
    return plan_of(problem, from_native(found.nodes), status=found.status).with_bound(found.bound)


def found_by(
    planner: SearchPlanner, tables: _core.CapacityTables, problem: Problem, start: Sequence[Node] = ()
) -> Found:
    """Run the native search for `used_nodes` nodes that are cheapest by the costs in `tables`."""
    found = _core.search_capacity(
        tables,
        problem.used_nodes,
        to_native(start),
        max(400, 8 * problem.num_jobs) if planner.price_steps is None else planner.price_steps,
        50 * problem.used_nodes if planner.rounds is None else planner.rounds,
        planner.seed,
        planner.timeout,
        None,
    )
    return Found(found.nodes, found.bound, "heuristic" if found.complete else "timeout")


def _effort(value: int | None, name: str) -> int | None:
    return None if value is None else _checks.integer(value, name, ValueError, low=0, high=_LIMIT)
