"""Networks for minimum-cost flow, generated from a seed: scheduling graphs, and families after published ones.

NETGEN, GRIDGEN and GOTO are well-known generators; the families here follow their parameters as Kiraly and Kovacs list
them ("Efficient implementations of minimum-cost flow algorithms", 2012) but are made by our own code: they have the
same kinds of arcs, not the same arcs.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

RACK = 40  # machines
SLOTS = 4  # tasks per machine
MOST_PREFERRED = 5

Integers = np.ndarray


class Instance(NamedTuple):
    """A network without lower bounds whose supplies and demands balance; node ids have 32 bits, other values 64."""

    family: str
    name: str
    tail: Integers
    head: Integers
    capacity: Integers
    cost: Integers
    supply: Integers

    @property
    def num_nodes(self) -> int:
        return len(self.supply)

    def with_spares(self, share: float = 0.3, seed: int = 1) -> Instance:
        """Let a share of the tasks, which are nodes of supply 1, supply nothing."""
        tasks = np.flatnonzero(self.supply == 1)
        spare = np.random.default_rng(seed).choice(tasks, round(share * len(tasks)), replace=False)
        supply = self.supply.copy()
        supply[spare] = 0
        supply[supply < 0] += len(spare)  # of the one sink
        return self._replace(name=f"{self.name}, {share:.0%} spare", supply=supply)


class Arcs:
    """A list of arcs to which a call adds arrays or single numbers."""

    def __init__(self) -> None:
        self._rows: list[Integers] = []

    def add(self, tail, head, capacity, cost) -> None:
        rows = np.broadcast_arrays(*(np.atleast_1d(np.asarray(a)) for a in (tail, head, capacity, cost)))
        self._rows.append(np.stack(rows).astype(np.int64))

    @property
    def count(self) -> int:
        return sum(rows.shape[1] for rows in self._rows)

    def instance(self, family: str, name: str, supply: Integers) -> Instance:
        tail, head, capacity, cost = np.concatenate(self._rows, axis=1)
        supply = np.asarray(supply, dtype=np.int64)
        return Instance(family, name, tail.astype(np.int32), head.astype(np.int32), capacity, cost, supply)


# ---- scheduling --------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Workload:
    """Tasks of jobs to place on a cluster, one unit of flow each.

    Nodes of the network, in this order: machines, racks (none in phase 2), the aggregator X, the sink, an unscheduled
    node U_j for each job, tasks.
    """

    family: str
    machines: int
    slots: int
    racks: int
    """Number of racks; with 0, the aggregator leads to the machines directly."""
    job: Integers
    """(tasks,): job of each task."""
    preferred: Integers
    """(tasks, MOST_PREFERRED): preferred machines, -1 for none."""
    preferred_cost: Integers
    aggregator_cost: Integers
    """(tasks,)"""
    waiting_cost: Integers
    """(tasks,): cost of the arc to the job's unscheduled node."""
    machine_cost: Integers
    """(machines,): cost of the arc to each machine from its rack or the aggregator."""

    @property
    def num_tasks(self) -> int:
        return len(self.job)

    @property
    def jobs(self) -> Integers:
        return np.unique(self.job)

    def instance(self) -> Instance:
        arcs = Arcs()
        machines, racks = np.arange(self.machines), self.machines + np.arange(self.racks)
        aggregator = self.machines + self.racks
        sink, unscheduled = aggregator + 1, aggregator + 2 + np.arange(len(self.jobs))
        job = np.searchsorted(self.jobs, self.job)
        tasks = sink + 1 + len(self.jobs) + np.arange(self.num_tasks)
        arcs.add(machines, sink, self.slots, 0)
        above = racks[machines // RACK] if self.racks else aggregator
        arcs.add(above, machines, self.slots, self.machine_cost)
        arcs.add(aggregator, racks, self.slots * RACK, 0)
        arcs.add(unscheduled, sink, np.bincount(job), 0)
        task, which = np.nonzero(self.preferred >= 0)
        arcs.add(tasks[task], self.preferred[task, which], 1, self.preferred_cost[task, which])
        arcs.add(tasks, aggregator, 1, self.aggregator_cost)
        arcs.add(tasks, unscheduled[job], 1, self.waiting_cost)
        supply = np.zeros(tasks[-1] + 1)
        supply[tasks], supply[sink] = 1, -self.num_tasks
        load = round(100 * self.num_tasks / (self.machines * self.slots))
        return arcs.instance(self.family, f"{self.family}, {self.machines:,} machines, {load} %", supply)

    def churn(self, waiting: Integers, seed: int, share: float = 0.01) -> Churn:
        """Remove a share of the tasks, add as many, and raise the cost of waiting for the tasks marked by `waiting`."""
        rng = np.random.default_rng(seed)
        count = max(1, round(share * self.num_tasks))
        left = np.sort(rng.choice(self.num_tasks, count, replace=False))
        kept = np.delete(np.arange(self.num_tasks), left)
        like = TASKS_OF[self.family](self, count, rng)
        raised = replace(self, waiting_cost=self.waiting_cost + 10 * waiting)
        columns = {
            name: np.concatenate([getattr(raised, name)[kept], getattr(like, name)]) for name in TASK_COLUMNS
        }
        columns["job"][len(kept) :] += self.job.max() + 1
        return Churn(left, count, replace(self, **columns))


TASK_COLUMNS = ("job", "preferred", "preferred_cost", "aggregator_cost", "waiting_cost")


class Churn(NamedTuple):
    left: Integers
    """Positions of the tasks that leave, before the change."""
    arrived: int
    """Number of tasks that arrive; they are the last ones after the change."""
    after: Workload


def scheduling_tasks(like: Workload, count: int, rng: np.random.Generator) -> Workload:
    """Return `count` tasks on the machines of `like`.

    Jobs have 1 to 16 tasks, 5 on average; in every third job, all tasks prefer the same machines at the same costs.
    """
    sizes = rng.choice([1, 2, 4, 8, 16], p=[0.2, 0.25, 0.25, 0.2, 0.1], size=count)
    job = np.repeat(np.arange(count), sizes)[:count]
    preferred = rng.integers(like.machines, size=(count, MOST_PREFERRED))
    preferred_cost = rng.integers(10, 200, size=(count, MOST_PREFERRED))
    aggregator_cost = rng.integers(200, 400, size=count)
    waiting_cost = rng.integers(500, 1000, size=count)
    number = rng.integers(3, MOST_PREFERRED + 1, size=count)
    first = np.searchsorted(job, job)  # first task of each task's job
    row = np.where(rng.random(count)[job] < 1 / 3, first, np.arange(count))
    preferred[np.arange(MOST_PREFERRED) >= number[:, None]] = -1
    return replace(
        like,
        job=job,
        preferred=_distinct(preferred)[row],
        preferred_cost=preferred_cost[row],
        aggregator_cost=aggregator_cost[row],
        waiting_cost=waiting_cost[first],
    )


def _distinct(preferred: Integers) -> Integers:
    """Replace repeated machines in a row by -1."""
    for later in range(1, MOST_PREFERRED):
        again = (preferred[:, :later] == preferred[:, later, None]).any(axis=1)
        preferred[again, later] = -1
    return preferred


def phase_2_tasks(like: Workload, count: int, rng: np.random.Generator) -> Workload:
    """Return `count` sub-tasks on the machines of `like`.

    Jobs have 1, 2 or 4 GPUs, 2.6 on average; their sub-tasks all prefer the job's machine.
    """
    sizes = rng.choice([1, 2, 4], p=[0.3, 0.25, 0.45], size=count)
    job = np.repeat(np.arange(count), sizes)[:count]
    preferred = np.full((count, MOST_PREFERRED), -1)
    preferred[:, 0] = rng.integers(like.machines, size=count)[job]
    return replace(
        like,
        job=job,
        preferred=preferred,
        preferred_cost=np.broadcast_to(rng.integers(10, 50, size=count)[job, None], preferred.shape),
        aggregator_cost=rng.integers(100, 200, size=count)[job],
        waiting_cost=rng.integers(500, 1000, size=count)[job],
    )


def wide_cost_tasks(like: Workload, count: int, rng: np.random.Generator) -> Workload:
    """Return sub-tasks as in phase 2 whose costs are as wide as DRMaestro's: hardly two jobs have the same."""
    tasks = phase_2_tasks(like, count, rng)
    one = WIDE_COST
    near, far, waiting = (
        rng.integers(low, high, size=count)[tasks.job]
        for low, high in ((one // 20, one // 2), (one // 10, one), (1000 * one, 1100 * one))
    )
    return replace(
        tasks,
        preferred_cost=np.broadcast_to(near[:, None], tasks.preferred.shape),
        aggregator_cost=far,
        waiting_cost=waiting,
    )


WIDE_COST = 1 << 20
TASKS_OF = {"scheduling": scheduling_tasks, "phase 2": phase_2_tasks, "wide costs": wide_cost_tasks}


def workload(family: str, machines: int, load: float, slots: int = SLOTS, seed: int = 1) -> Workload:
    """Return a workload of `load` times as many tasks as the machines have slots."""
    rng = np.random.default_rng([seed, machines, slots, round(100 * load)])
    racks = -(-machines // RACK) if family == "scheduling" else 0
    none = np.zeros(0, dtype=np.int64)
    machine_cost = rng.integers(0, WIDE_COST if family == "wide costs" else 20, size=machines)
    empty = Workload(family, machines, slots, racks, none, none, none, none, none, machine_cost)
    return TASKS_OF[family](empty, round(load * machines * slots), rng)


# ---- families of networks ----------------------------------------------------------------------------------------


def netgen(
    power: int, *, degree: int | None = 8, supply: int = 1000, family: str = "NETGEN-8", seed: int = 1
) -> Instance:
    """Return a network of 2^power nodes, with as many sources and sinks as the root of that number.

    degree: arcs per node; None for the root of the number of nodes. Costs are 1 to 10,000, capacities 1 to 1,000.
    Chains from each source through inner nodes end at some sinks and can carry its whole supply, `supply` on average.
    All other arcs join random nodes.
    """
    rng = np.random.default_rng([seed, power])
    nodes, some = 1 << power, 1 << power // 2
    arcs, balance = Arcs(), np.zeros(nodes, dtype=np.int64)
    sources, sinks = np.arange(some), nodes - some + np.arange(some)
    balance[sources] = _split(supply * some, some, rng)
    chain_of = rng.integers(some, size=nodes - 2 * some)
    inner = some + rng.permutation(nodes - 2 * some)
    for source in sources:
        chain = np.append(source, inner[chain_of == source])
        arcs.add(chain[:-1], chain[1:], balance[source], _costs(rng, len(chain) - 1))
        ends = rng.choice(sinks, size=min(some, 1 + len(chain) // 4), replace=False)
        given = _split(balance[source], len(ends), rng)
        arcs.add(rng.choice(chain, size=len(ends)), ends, balance[source], _costs(rng, len(ends)))
        np.subtract.at(balance, ends, given)
    rest = nodes * (degree or some) - arcs.count
    tail, head = rng.integers(nodes - some, size=rest), rng.integers(some, nodes, size=rest)
    head = np.where(head == tail, nodes - 1, head)
    arcs.add(tail, head, rng.integers(1, 1001, size=rest), _costs(rng, rest))
    return arcs.instance(family, f"{family} 2^{power}", balance)


def _split(total: int, parts: int, rng: np.random.Generator) -> Integers:
    """Return `parts` random integers with this total."""
    return rng.multinomial(total, rng.dirichlet(np.full(parts, 3.0)))


def _costs(rng: np.random.Generator, count: int, most: int = 10_000) -> Integers:
    return rng.integers(1, most + 1, size=count)


def gridgen(power: int, *, seed: int = 1) -> Instance:
    """Return a grid with arcs both ways between neighbours and random arcs, 8 per node, and many sources and sinks.

    Costs are 1 to 10,000, capacities 1 to 1,000; one more node carries the excess of the grid at a high cost.
    """
    rng = np.random.default_rng([seed, power, 1])
    nodes, some = (1 << power) - 1, 1 << power // 2
    number = np.arange(1 << power).reshape(some, -1)
    ends = np.concatenate([number[:, :-1].ravel(), number[:-1].ravel()])
    others = np.concatenate([number[:, 1:].ravel(), number[1:].ravel()])
    inside = (ends < nodes) & (others < nodes)
    arcs = Arcs()
    for tail, head in ((ends[inside], others[inside]), (others[inside], ends[inside])):
        arcs.add(tail, head, rng.integers(1, 1001, size=len(tail)), _costs(rng, len(tail)))
    chosen = rng.choice(nodes, size=2 * some, replace=False)
    balance = np.zeros(nodes + 1, dtype=np.int64)
    balance[chosen[:some]] = _split(1000 * some, some, rng)
    balance[chosen[some:]] = -_split(1000 * some, some, rng)
    arcs.add(chosen[:some], nodes, 1000 * some, 10_000)
    arcs.add(nodes, chosen[some:], 1000 * some, 10_000 * some)
    rest = 8 * (nodes + 1) - arcs.count
    tail = rng.integers(nodes, size=rest)
    head = (tail + rng.integers(1, nodes, size=rest)) % nodes
    arcs.add(tail, head, rng.integers(1, 1001, size=rest), _costs(rng, rest))
    return arcs.instance("GRIDGEN-8", f"GRIDGEN-8 2^{power}", balance)


def goto(power: int, *, seed: int = 1) -> Instance:
    """Return a torus whose one supply goes to one demand and nearly fills it: hard for every method.

    Eight arcs per node lead ahead by 1, 2 or more columns and to other rows; farther arcs are dearer. Costs reach
    4,096, capacities 16,384. The source has arcs to one column, the sink arcs from one; one arc carries the rest.
    """
    rng = np.random.default_rng([seed, power, 2])
    nodes, rows = 1 << power, 1 << power // 2
    columns = nodes // rows
    node = np.arange(nodes)
    arcs = Arcs()
    for ahead, aside in ((1, 0), (1, 1), (1, -1), (0, 1), (2, 0), (4, 3), (0, -1)):
        head = (node // rows + ahead) % columns * rows + (node % rows + aside) % rows
        far = 512 * (ahead + abs(aside))
        cost = np.minimum(4096, far + rng.integers(1, 1024, size=nodes))
        arcs.add(node, head, rng.integers(1, 16_385, size=nodes), cost)
    source, sink = 0, columns // 2 * rows + 1
    column = np.arange(1, rows)
    arcs.add(source, column, 16_384, rng.integers(1, 9, size=rows - 1))
    ends = columns // 2 * rows + np.delete(np.arange(rows), 1)
    arcs.add(ends, sink, 16_384, rng.integers(1, 9, size=rows - 1))
    arcs.add(source, sink, 16_384 * rows, 4096 * columns)
    rest = 8 * nodes - arcs.count
    tail = rng.integers(nodes, size=rest)
    head = (tail + rng.integers(1, 3 * rows, size=rest)) % nodes
    arcs.add(tail, head, rng.integers(1, 16_385, size=rest), 4096)
    balance = np.zeros(nodes, dtype=np.int64)
    balance[source] = 12_288 * rows
    balance[sink] = -balance[source]
    return arcs.instance("GOTO-8", f"GOTO-8 2^{power}", balance)


MOST_ASSIGNMENT_ARCS = 1 << 20


def assignment(power: int, *, seed: int = 1) -> Instance:
    """Return an assignment of half of 2^power nodes to the other half: all pairs, at most 2^20, costs to 10,000."""
    rng = np.random.default_rng([seed, power, 3])
    half = 1 << power - 1
    degree = min(half, MOST_ASSIGNMENT_ARCS // half)
    left = np.repeat(np.arange(half), degree)
    offset = np.concatenate([np.zeros(1, dtype=np.int64), rng.permutation(half - 1)[: degree - 1] + 1])
    right = (left + np.tile(offset, half)) % half  # offset 0 makes every instance feasible
    arcs = Arcs()
    arcs.add(left, half + right, 1, _costs(rng, len(left)))
    return arcs.instance("assignment", f"assignment 2^{power}", np.repeat([1, -1], half))


FAMILIES: dict[str, Callable[[int], Instance]] = {
    "NETGEN-8": netgen,
    "NETGEN-lo-8": lambda power: netgen(power, supply=10, family="NETGEN-lo-8"),
    "NETGEN-sr": lambda power: netgen(power, degree=None, family="NETGEN-sr"),
    "GRIDGEN-8": gridgen,
    "GOTO-8": goto,
    "assignment": assignment,
}
POWERS = (8, 10, 12, 14)
LOADS = (0.5, 0.95, 1.5)
