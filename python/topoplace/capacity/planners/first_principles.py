"""First-principle planners: jobs in a simple order, each as suits it best (the baselines of Filippini et al.).

The paper names them (first in first out, earliest deadline first, priority) and says no more. We read them as their
authors published them later: a job's configuration, a VM type and a number of GPUs, is the cheapest that meets its
due date, or else the fastest; a node runs one job, and keeps it until it ends; a job that finds no node free waits. Run
them without preemption, as `simulate_online` does unless told otherwise.

`sharing=True` is a stronger reading of ours: jobs share nodes, a configuration costs its share of the node's price, a
job that finds no new node takes what suits it best among the GPUs left on those that are let, and all is decided anew
whenever something happens.
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
"""The jobs of a problem, first come first: by submission, by due date, by weight."""


@dataclass(frozen=True, slots=True)
class FirstPrinciplePlanner:
    """order: `fifo`, `edf` (earliest due date first) or `ps` (priority: highest tardiness weight first)."""

    order: str
    sharing: bool = False

    def __post_init__(self) -> None:
        if _checks.text(self.order, "order", ValueError) not in ORDERS:
            raise ValueError(f"order = {_checks.shown(self.order)} is not one of {', '.join(ORDERS)}")
        _checks.flag(self.sharing, "sharing", ValueError)

    @property
    def name(self) -> str:
        """`fifo`, `edf`, `ps`, or `fifo-sharing` and so on."""
        return f"{self.order}-sharing" if self.sharing else self.order

    @property
    def preemptive(self) -> bool:
        """Whether it may move jobs that run: those that share nodes."""
        return self.sharing

    def plan(self, problem: Problem) -> Plan:
        """Every job in its turn."""
        _checks.instance(problem, Problem, "problem", ValueError)
        letting = _Letting(problem, self.sharing)
        for job in ORDERS[self.order](problem).tolist():
            if letting.full:
                break
            letting.place(job)
        nodes = [Node(opened.vm_type, tuple(opened.jobs)) for opened in letting.opened]
        return plan_of(problem, nodes)


@dataclass(slots=True)
class _Opened:
    vm_type: int
    free: int
    jobs: list[tuple[int, int]] = field(default_factory=list[tuple[int, int]])


class _Letting:
    """Nodes being let in the course of one plan."""

    def __init__(self, problem: Problem, sharing: bool) -> None:
        self.problem = problem
        self.sharing = sharing
        self.opened: list[_Opened] = []
        gpus = np.arange(1, problem.catalogue.max_gpus + 1)
        share = gpus / problem.num_gpus[:, None] if sharing else 1.0
        self.cost = problem.deployment * share
        """(jobs, types, most GPUs) $ until the job ends; with sharing, of its GPUs only."""

    @property
    def full(self) -> bool:
        """Whether there is no place for any job."""
        if len(self.opened) < self.problem.num_nodes:
            return False
        return not (self.sharing and any(opened.free for opened in self.opened))

    def place(self, job: int) -> None:
        """Where it suits the job best; nowhere when all is taken."""
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
        """(type, GPUs): the cheapest in time or else the fastest, of (type, most GPUs); no GPUs where none will do.

        Ties go to the faster, then the cheaper, then the first in the catalogue with the fewest GPUs.
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
        """The fullest of the nodes that are let where the job fits."""
        fits = [opened for opened in self.opened if opened.vm_type == vm_type and opened.free >= gpus]
        return min(fits, key=lambda opened: opened.free) if fits and self.sharing else None

    def _new(self, vm_type: int) -> _Opened | None:
        if len(self.opened) == self.problem.num_nodes:
            return None
        self.opened.append(_Opened(vm_type, int(self.problem.num_gpus[vm_type])))
        return self.opened[-1]
