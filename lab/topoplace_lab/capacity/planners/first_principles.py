"""First-principle planners, the baselines of Filippini et al.: they place jobs one by one in a simple order.

The paper only names the orders: first in first out, earliest deadline first, priority. We follow the authors' later
publication. A configuration is a VM type and a number of GPUs. A job gets the cheapest configuration that meets its due
date, or else the fastest configuration. A node (VM) runs one job until the job ends; a job without a free node waits.
Run these planners without preemption, which is the default of `simulate_online` for them.

`sharing=True` is our stronger variant: several jobs share a node, and a configuration costs its GPUs' fraction of the
node's price. If no new node can be rented, a job gets its best configuration among the free GPUs of rented nodes. Every
decision plans all jobs again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final

import numpy as np
from numpy.typing import NDArray

from topoplace import _checks
from topoplace_lab.capacity.problem.plan import Node, Plan, plan_of
from topoplace_lab.capacity.problem.problem import Problem

ORDERS: Final[Mapping[str, Callable[[Problem], NDArray[np.intp]]]] = MappingProxyType(
    {
        "fifo": lambda problem: np.arange(problem.num_jobs),
        "edf": lambda problem: np.argsort(problem.due, kind="stable"),
        "ps": lambda problem: np.argsort(-problem.weight, kind="stable"),
    }
)
"""Functions that return a problem's jobs sorted by submission, by due date, or by decreasing weight."""


@dataclass(frozen=True, slots=True)
class FirstPrinciplePlanner:
    """A planner that places jobs one by one in a simple order, each on its best VM type and number of GPUs.

    Best is the cheapest that meets the due date, or else the fastest.

    Args:
        order: `fifo` (submission), `edf` (earliest due date first) or `ps` (priority: highest cost of tardiness per
            hour first).
        sharing: Several jobs may share a node.
    """

    order: str
    sharing: bool = False

    def __post_init__(self) -> None:
        _checks.one_of(self.order, "order", ORDERS, ValueError)
        _checks.flag(self.sharing, "sharing", ValueError)

    @property
    def name(self) -> str:
        """Return the planner's name: its order, with the suffix `-sharing` if jobs share nodes."""
        return f"{self.order}-sharing" if self.sharing else self.order

    @property
    def preemptive(self) -> bool:
        """Return True if plans may stop, move or resize running jobs; this is so only with `sharing`."""
        return self.sharing

    def plan(self, problem: Problem) -> Plan:
        """Return the plan that places jobs in the planner's order as long as nodes are left; other jobs wait.

        With `sharing`, jobs are placed as long as any node has free GPUs.
        """
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
    """The nodes (VMs) rented so far by a plan under construction, with their jobs."""

    def __init__(self, problem: Problem, sharing: bool) -> None:
        self.problem = problem
        self.sharing = sharing
        self.opened: list[_Opened] = []
        gpus = np.arange(1, problem.catalogue.max_gpus + 1)
        share = gpus / problem.num_gpus[:, None] if sharing else 1.0
        self.cost = problem.deployment * share
        """(jobs, types, max GPUs): price in $ until a job ends: of the whole node or, with sharing, of its GPUs."""

    @property
    def full(self) -> bool:
        """Return True if no job can be placed any more."""
        if len(self.opened) < self.problem.num_nodes:
            return False
        return not (self.sharing and any(opened.free for opened in self.opened))

    def place(self, job: int) -> None:
        """Place a job on its best VM type and number of GPUs, on a rented or new node; if impossible, the job waits."""
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
        """Return the VM type and number of GPUs that is cheapest for a job among those that meet its due date.

        If none meets the due date, the fastest is returned. rooms: (VM type, most GPUs) to choose from. Returns 0 GPUs
        if the job can run on none. Ties between costs go to the faster, ties between times to the cheaper. Remaining
        ties go to the first type in the catalogue, then to fewer GPUs.
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
        """Return the rented node of this VM type with the fewest free GPUs, but at least `gpus`; None if none.

        Without `sharing` the result is always None.
        """
        fits = [opened for opened in self.opened if opened.vm_type == vm_type and opened.free >= gpus]
        return min(fits, key=lambda opened: opened.free) if fits and self.sharing else None

    def _new(self, vm_type: int) -> _Opened | None:
        if len(self.opened) == self.problem.num_nodes:
            return None
        self.opened.append(_Opened(vm_type, int(self.problem.num_gpus[vm_type])))
        return self.opened[-1]
