"""What a planner decides, and what it costs."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from topoplace import _checks

if TYPE_CHECKING:
    from topoplace.capacity.problem.problem import Problem


@dataclass(frozen=True, slots=True)
class Node:
    """A virtual machine that is let."""

    vm_type: int
    """The place of its type in the catalogue."""
    jobs: tuple[tuple[int, int], ...]
    """(index of the job, GPUs it has) of those that run there, ascending."""


@dataclass(frozen=True, slots=True)
class Cost:
    """The objective (P1a) in its parts, $."""

    vm: float
    """Of each node, its price until the first of its jobs ends."""
    tardiness: float
    """Of the jobs that run."""
    postponement: float
    """The worst-case tardiness of those that wait."""
    idle: float
    """Of GPUs that are let and not used."""

    @property
    def total(self) -> float:
        """What planners minimise."""
        return self.vm + self.tardiness + self.postponement + self.idle


@dataclass(frozen=True, slots=True)
class Plan:
    """Who runs where until the next decision. Make one with `plan_of`."""

    nodes: tuple[Node, ...]
    postponed: tuple[int, ...]
    """The jobs that wait, ascending."""
    cost: Cost
    bound: float = 0.0
    """No plan costs less; 0 where nothing better is known."""
    status: str = "heuristic"
    """`optimal` (proven to the gap that was asked for), `timeout` (the best until then), `heuristic`."""
    num_variables: int = 0
    """Of the largest model that was solved."""

    @property
    def gap(self) -> float:
        """(cost - bound) / cost, the relative distance at most from the best plan; 0 where both are 0."""
        return (self.cost.total - self.bound) / self.cost.total if self.cost.total > self.bound else 0.0

    def with_bound(self, bound: float) -> Plan:
        """The same plan, where none costs less than `bound`; one above its own cost is due to rounding."""
        return replace(self, bound=max(self.bound, min(bound, self.cost.total)))


@runtime_checkable
class Planner(Protocol):
    """Decides at one point in time; same problem, same plan."""

    @property
    def name(self) -> str:
        """How tables call it."""
        ...

    def plan(self, problem: Problem) -> Plan:
        """Which nodes to let, and who runs there."""
        ...


def plan_of(
    problem: Problem,
    nodes: Iterable[Node],
    *,
    bound: float = 0.0,
    status: str = "heuristic",
    num_variables: int = 0,
) -> Plan:
    """The plan that lets these nodes; jobs on none of them wait.

    There may be fewer nodes than (P1n) has. ValueError naming the node for more of them, a node without a job, one
    with more GPUs given away than it has, a job that is there twice and one that cannot run as it should.
    """
    given: tuple[Node, ...] = _checks.sequence(nodes, "nodes", ValueError)
    for i, node in enumerate(given):
        _checks.instance(node, Node, f"nodes[{i}]", ValueError)
    ordered = tuple(Node(node.vm_type, tuple(sorted(node.jobs))) for node in given)
    if len(ordered) > problem.num_nodes:
        raise ValueError(f"nodes: {len(ordered)} of them, there are {problem.num_nodes}")
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
            raise ValueError(f"{what}: job {job} runs already")
        if problem.hours[job, vm_type, gpus - 1] == float("inf"):
            name = problem.catalogue[vm_type].name
            raise ValueError(f"{what}: job {job} cannot run on {gpus} GPUs of {name}")
        runs.add(job)
    if sum(gpus for _, gpus in node.jobs) > most:
        raise ValueError(f"{what}: {sum(gpus for _, gpus in node.jobs)} GPUs given away of {most}")


def _cost(problem: Problem, nodes: tuple[Node, ...], postponed: tuple[int, ...]) -> Cost:
    placed = [(job, node.vm_type, gpus - 1) for node in nodes for job, gpus in node.jobs]
    let = sum(problem.catalogue[node.vm_type].num_gpus for node in nodes)
    return Cost(
        vm=sum(
            min(float(problem.deployment[job, node.vm_type, gpus - 1]) for job, gpus in node.jobs)
            for node in nodes
        ),
        tardiness=sum(float(problem.tardiness[place]) for place in placed),
        postponement=float(problem.waiting[list(postponed)].sum()),
        idle=problem.idle * (let - sum(gpus + 1 for _, _, gpus in placed)),
    )
