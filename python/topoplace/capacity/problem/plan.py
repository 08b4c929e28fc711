"""Plans of a capacity problem, their cost, and the protocol of planners."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from topoplace import _checks

if TYPE_CHECKING:
    from topoplace.capacity.problem.problem import Problem


@dataclass(frozen=True, slots=True)
class Node:
    """A rented virtual machine."""

    vm_type: int
    """Index of its type in the catalogue."""
    jobs: tuple[tuple[int, int], ...]
    """(index of the job, its number of GPUs) of the jobs that run there, ascending."""


@dataclass(frozen=True, slots=True)
class Cost:
    """The parts of the objective (P1a), in $."""

    vm: float
    """Price of each node until the first of its jobs ends."""
    tardiness: float
    """Tardiness of the jobs that run."""
    postponement: float
    """Worst-case tardiness of the jobs that wait."""
    idle: float
    """Penalty for rented but unused GPUs."""

    @property
    def total(self) -> float:
        """Return the sum of all parts, which planners minimise."""
        return self.vm + self.tardiness + self.postponement + self.idle


@dataclass(frozen=True, slots=True)
class Plan:
    """The nodes to rent and their jobs until the next decision. Create a plan with `plan_of`."""

    nodes: tuple[Node, ...]
    postponed: tuple[int, ...]
    """The jobs that wait, ascending."""
    cost: Cost
    bound: float = 0.0
    """Lower bound on the cost of any plan; 0 if nothing better is known."""
    status: str = "heuristic"
    """`optimal` (proven to the requested gap), `timeout` (the best plan until then), or `heuristic`."""
    num_variables: int = 0
    """Number of variables of the largest model solved."""

    @property
    def gap(self) -> float:
        """Return (cost - bound) / cost, the largest share of the cost that a better plan could save.

        It is 0 if the cost equals the bound.
        """
        return (self.cost.total - self.bound) / self.cost.total if self.cost.total > self.bound else 0.0

    def with_bound(self, bound: float) -> Plan:
        """Return the plan with its bound raised to `bound`, capped at its own cost because of rounding."""
        return replace(self, bound=max(self.bound, min(bound, self.cost.total)))


@runtime_checkable
class Planner(Protocol):
    """A planner of one decision at a time. The same problem must give the same plan."""

    @property
    def name(self) -> str:
        """Name the planner in tables."""
        ...

    def plan(self, problem: Problem) -> Plan:
        """Choose which nodes to rent and which jobs run there."""
        ...


def plan_of(
    problem: Problem,
    nodes: Iterable[Node],
    *,
    bound: float = 0.0,
    status: str = "heuristic",
    num_variables: int = 0,
) -> Plan:
    """Build the plan that rents these nodes; jobs on none of them wait.

    There may be fewer nodes than (P1n) requires, but not more than `num_nodes`. ValueError names a node without a job,
    with too few GPUs for its jobs, or with a job that also runs elsewhere or cannot run there.
    """
    given: tuple[Node, ...] = _checks.sequence(nodes, "nodes", ValueError)
    for i, node in enumerate(given):
        _checks.instance(node, Node, f"nodes[{i}]", ValueError)
    ordered = tuple(Node(node.vm_type, tuple(sorted(node.jobs))) for node in given)
    if len(ordered) > problem.num_nodes:
        raise ValueError(f"nodes has {len(ordered)} entries: must be at most num_nodes = {problem.num_nodes}")
    runs: set[int] = set()
    for i, node in enumerate(ordered):
        _check(problem, node, f"nodes[{i}]", runs)
    postponed = tuple(job for job in range(problem.num_jobs) if job not in runs)
    return Plan(ordered, postponed, _cost(problem, ordered, postponed), bound, status, num_variables)


def _check(problem: Problem, node: Node, what: str, runs: set[int]) -> None:
    vm_type = _checks.integer(
        node.vm_type, f"{what}.vm_type", ValueError, low=0, high=len(problem.catalogue) - 1
    )
    most = problem.catalogue[vm_type].num_gpus
    if not node.jobs:
        raise ValueError(f"{what} has no job")
    for job, gpus in node.jobs:
        _checks.integer(job, f"{what}: job", ValueError, low=0, high=problem.num_jobs - 1)
        _checks.integer(gpus, f"{what}: GPUs of job {job}", ValueError, low=1, high=most)
        if job in runs:
            raise ValueError(f"{what}: job {job} is already running")
        if problem.hours[job, vm_type, gpus - 1] == float("inf"):
            name = problem.catalogue[vm_type].name
            raise ValueError(f"{what}: job {job} cannot run on {gpus} GPUs of {name}")
        runs.add(job)
    if sum(gpus for _, gpus in node.jobs) > most:
        raise ValueError(f"{what} uses {sum(gpus for _, gpus in node.jobs)} GPUs: must be at most {most}")


def _cost(problem: Problem, nodes: tuple[Node, ...], postponed: tuple[int, ...]) -> Cost:
    placed = [(job, node.vm_type, gpus - 1) for node in nodes for job, gpus in node.jobs]
    rented = sum(problem.catalogue[node.vm_type].num_gpus for node in nodes)
    return Cost(
        vm=sum(
            min(float(problem.deployment[job, node.vm_type, gpus - 1]) for job, gpus in node.jobs)
            for node in nodes
        ),
        tardiness=sum(float(problem.tardiness[place]) for place in placed),
        postponement=float(problem.waiting[list(postponed)].sum()),
        idle=problem.idle * (rented - sum(gpus + 1 for _, _, gpus in placed)),
    )
