"""First-principle planners: jobs in a simple order, each in its best configuration (baselines of Filippini et al.).

The paper only names them: first in first out, earliest deadline first, priority. We follow the authors' later
publication. A configuration is a VM type and a number of GPUs. A job gets the cheapest one that meets its due date, or
else the fastest one. A node runs one job until it ends, and a job without a free node waits. Run these planners without
preemption, which is the default of `simulate_online` for them.

`sharing=True` is our stronger variant: jobs share nodes, and a configuration costs its share of the node's price. If no
new node can be rented, a job gets its best configuration among the free GPUs of rented nodes. Each event plans all jobs
again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final

import numpy as np
from numpy.typing import NDArray

from topoplace import _checks
from topoplace.capacity.problem.plan import Node, Plan, plan_of
from topoplace.capacity.problem.problem import Problem

ORDERS: Final[Mapping[str, Callable[[Problem], NDArray[np.intp]]]] = MappingProxyType(
    {
        "fifo": lambda problem: np.arange(problem.num_jobs),
        "edf": lambda problem: np.argsort(problem.due, kind="stable"),
        "ps": lambda problem: np.argsort(-problem.weight, kind="stable"),
    }
)
"""Functions that sort the jobs of a problem: by submission, by due date, by decreasing weight."""


@dataclass(frozen=True, slots=True)
class FirstPrinciplePlanner:
    """A planner that places jobs one by one in a fixed order, each in its best configuration.

    order: `fifo`, `edf` (earliest due date first) or `ps` (priority: highest tardiness weight first). sharing: jobs may
    share nodes.
    """

    order: str
    sharing: bool = False

    def __post_init__(self) -> None:
        if _checks.text(self.order, "order", ValueError) not in ORDERS:
            raise ValueError(f"order = {_checks.shown(self.order)} is not one of {', '.join(ORDERS)}")
        _checks.flag(self.sharing, "sharing", ValueError)

    @property
    def name(self) -> str:
        """Return the order, with the suffix `-sharing` if jobs share nodes."""
        return f"{self.order}-sharing" if self.sharing else self.order

    @property
    def preemptive(self) -> bool:
        """Return True if the planner may move running jobs, which it does only with `sharing`."""
        return self.sharing

    def plan(self, problem: Problem) -> Plan:
        """Place the jobs in the planner's order until no node has room; the others wait."""
        _checks.instance(problem, Problem, "problem", ValueError)
        rented = _RentedNodes(problem, self.sharing)
        for job in ORDERS[self.order](problem).tolist():
            if rented.full:
                break
            rented.place(job)
        nodes = [Node(opened.vm_type, tuple(opened.jobs)) for opened in rented.opened]
        return plan_of(problem, nodes)


@dataclass(slots=True)
class _Opened:
    vm_type: int
    free: int
    jobs: list[tuple[int, int]] = field(default_factory=list[tuple[int, int]])


class _RentedNodes:
    """The nodes that a plan under construction rents."""

    def __init__(self, problem: Problem, sharing: bool) -> None:
        self.problem = problem
        self.sharing = sharing
        self.opened: list[_Opened] = []
        gpus = np.arange(1, problem.catalogue.max_gpus + 1)
        share = gpus / problem.num_gpus[:, None] if sharing else 1.0
        self.cost = problem.deployment * share
        """(jobs, types, max GPUs) price in $ until the job ends: of the whole node, or with sharing of its GPUs."""

    @property
    def full(self) -> bool:
        """Return True if no job can be placed any more."""
        if len(self.opened) < self.problem.num_nodes:
            return False
        return not (self.sharing and any(opened.free for opened in self.opened))

    def place(self, job: int) -> None:
        """Place a job in its best configuration, or nowhere if no node has room for it."""
        types, most = range(len(self.problem.catalogue)), self.problem.num_gpus.tolist()
        vm_type, gpus = self._best(job, zip(types, most, strict=True))
        node = self._with_room(vm_type, gpus) or self._new(vm_type)
        if node is None and self.sharing:
            left = {opened.vm_type: opened.free for opened in sorted(self.opened, key=lambda o: o.free)}
            vm_type, gpus = self._best(job, left.items())
            node = self._with_room(vm_type, gpus) if gpus else None
        if node is not None:
            node.jobs.append((job, gpus))
            node.free -= gpus

    def _best(self, job: int, rooms: Iterable[tuple[int, int]]) -> tuple[int, int]:
        """Return the cheapest configuration (type, GPUs) that meets the due date, or else the fastest one.

        rooms: (type, free GPUs) to choose from. Returns 0 GPUs if the job can run in none. Ties go to the faster or
        cheaper one, then to the first type in the catalogue, then to fewer GPUs.
        """
        ways: list[tuple[bool, float, float, int, int]] = []
        for vm_type, most in rooms:
            hours = self.problem.hours[job, vm_type, :most].tolist()
            costs = self.cost[job, vm_type, :most].tolist()
            for gpus, (time, cost) in enumerate(zip(hours, costs, strict=True), 1):
                late = time > self.problem.due[job]
                ways.append((late, *((time, cost) if late else (cost, time)), vm_type, gpus))
        finite = [way for way in ways if way[1] != np.inf]
        return min(finite)[3:] if finite else (0, 0)

    def _with_room(self, vm_type: int, gpus: int) -> _Opened | None:
        """Return the fullest rented node of this type with enough free GPUs; None if there is none, or no `sharing`."""
        fits = [opened for opened in self.opened if opened.vm_type == vm_type and opened.free >= gpus]
        return min(fits, key=lambda opened: opened.free) if fits and self.sharing else None

    def _new(self, vm_type: int) -> _Opened | None:
        if len(self.opened) == self.problem.num_nodes:
            return None
        self.opened.append(_Opened(vm_type, int(self.problem.num_gpus[vm_type])))
        return self.opened[-1]
