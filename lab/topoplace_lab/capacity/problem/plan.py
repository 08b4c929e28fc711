"""Plans (which VMs to rent and what runs there), their cost, and the interface of planners."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from topoplace import _checks

if TYPE_CHECKING:
    from topoplace_lab.capacity.problem.problem import Problem


@dataclass(frozen=True, slots=True)
class Node:
    """A rented virtual machine of a plan, with the jobs that run there."""

    vm_type: int
    """Index of the machine's VM type in the catalogue."""
    jobs: tuple[tuple[int, int], ...]
    """(job index, number of GPUs) of each job that runs there, ascending."""


@dataclass(frozen=True, slots=True)
class Cost:
    """The four parts of a plan's cost in $: rented VMs, late jobs, waiting jobs, and unused GPUs.

    Their sum is the objective (P1a) of Filippini et al.
    """

    vm: float
    """Price of each rented node until the first of its jobs ends."""
    tardiness: float
    """Penalty for running jobs that will end after their due dates."""
    postponement: float
    """Penalty for jobs that wait, by how late they would be in the worst case."""
    idle: float
    """Penalty for GPUs of rented nodes that no job uses."""

    @property
    def total(self) -> float:
        """Return the sum of the four parts in $, which planners minimise."""
        return self.vm + self.tardiness + self.postponement + self.idle


@dataclass(frozen=True, slots=True)
class Plan:
    """A planner's decision: the nodes (VMs) to rent and the jobs that run there. Create a plan with `plan_of`."""

    nodes: tuple[Node, ...]
    postponed: tuple[int, ...]
    """Indices of the jobs that wait, ascending."""
    cost: Cost
    bound: float = 0.0
    """Lower bound in $ on the cost of any plan of the problem; 0 if nothing better is known."""
    status: str = "heuristic"
    """`optimal` (proven to the requested gap), `timeout` (the best plan found in time), or `heuristic`."""
    num_variables: int = 0
    """Number of variables of the largest optimisation model solved; 0 if none was solved."""

    @property
    def gap(self) -> float:
        """Return the largest fraction of this plan's cost that a better plan could save: (cost - bound) / cost.

        It is 0 if the bound reaches the cost, which proves that no plan is cheaper.
        """
        return (self.cost.total - self.bound) / self.cost.total if self.cost.total > self.bound else 0.0

    def with_bound(self, bound: float) -> Plan:
        """Return the plan with its lower bound raised to `bound`, but not above the plan's cost."""
        return replace(self, bound=max(self.bound, min(bound, self.cost.total)))


@runtime_checkable
class Planner(Protocol):
    """The interface of planners, which turn one problem into one plan; equal problems must give equal plans."""

    @property
    def name(self) -> str:
        """Return the planner's name, as printed in tables."""
        ...

    def plan(self, problem: Problem) -> Plan:
        """Return a plan for the problem: which nodes (VMs) to rent, and which jobs run there on how many GPUs."""
        ...


def plan_of(
    problem: Problem,
    nodes: Iterable[Node],
    *,
    bound: float = 0.0,
    status: str = "heuristic",
    num_variables: int = 0,
) -> Plan:
    """Return the plan that rents `nodes`, with its cost; jobs that are on none of these nodes wait.

    There may be at most `problem.num_nodes` nodes. There may be fewer than `used_nodes`, although the paper's (P1n)
    forbids this.

    Args:
        bound: See `Plan`.
        status: See `Plan`.
        num_variables: See `Plan`.

    Raises:
        ValueError: For a node without a job, with too few GPUs for its jobs, or with a job that also runs elsewhere or
            cannot run there.
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
