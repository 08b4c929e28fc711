"""A fast planner by local search in C++, which takes milliseconds and also gives a lower bound on the cost."""

from __future__ import annotations

import math
import time
from copy import copy
from typing import TYPE_CHECKING, NamedTuple

from topoplace import _checks, _core
from topoplace_lab.capacity.planners.conditioning import conditioned, well_conditioned
from topoplace_lab.capacity.planners.native_tables import NativeNode, from_native, tables_of, to_native
from topoplace_lab.capacity.problem.plan import Plan, plan_of
from topoplace_lab.capacity.problem.problem import Problem

if TYPE_CHECKING:
    from collections.abc import Sequence

    from topoplace_lab.capacity.problem.plan import Node

_LIMIT = 1 << 60


class SearchPlanner:
    """A planner by large neighbourhood search in C++.

    The same seed gives the same plan unless `timeout` ends the search.

    Args:
        price_steps: Steps of the volume algorithm, which computes a dual price per job. The prices guide the search and
            give a lower bound on any plan's cost. None means 8 per job, at least 400.
        rounds: How often the search empties some nodes (VMs) and fills them again; a round takes tens to hundreds of
            microseconds. None means 50 per node that a plan may use.
        timeout: Limit on the seconds of the whole search; a plan is returned in any case.
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
        """Return the best plan found, with a valid lower bound on the cost of any plan."""
        _checks.instance(problem, Problem, "problem", ValueError)
        _, unit, _, plan = search_conditioned(problem, self)
        return in_dollars(problem, plan, unit)


def search_conditioned(
    problem: Problem, planner: SearchPlanner
) -> tuple[Problem, float, _core.CapacityTables, Plan]:
    """Search for a plan, and rescale the problem if it is not `well_conditioned` for the plan's cost.

    Rescaling caps large costs (see `conditioning`); it is rarely needed. The search is then repeated, as a better plan
    allows lower caps. Returns the rescaled problem, its unit of money in $, its cost tables for the C++ search, and the
    plan.
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
    """Return a plan of a rescaled problem as a plan of the original `problem`, with cost and bound in $.

    unit: the rescaled problem's unit of money in $.
    """
    same = plan_of(problem, plan.nodes, status=plan.status, num_variables=plan.num_variables)
    return same.with_bound(plan.bound * unit)


class Found(NamedTuple):
    """The answer of the C++ search: the nodes of its plan, and a lower bound on the cost of any plan.

    status: `heuristic`, or `timeout` if time ran out.
    """

    nodes: list[NativeNode]
    bound: float
    status: str


def search(
    problem: Problem, tables: _core.CapacityTables, planner: SearchPlanner, start: Sequence[Node] = ()
) -> Plan:
    """Run the C++ search and return the best plan found.

    tables: cost tables of the problem. planner: options of the search. start: nodes of a plan to begin with.
    """
    found = found_by(planner, tables, problem, start)
    return plan_of(problem, from_native(found.nodes), status=found.status).with_bound(found.bound)


def found_by(
    planner: SearchPlanner, tables: _core.CapacityTables, problem: Problem, start: Sequence[Node] = ()
) -> Found:
    """Run the C++ search for the `used_nodes` nodes, with their jobs, that are cheapest by the costs in `tables`.

    planner: options of the search. start: nodes of a plan to begin with.
    """
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
