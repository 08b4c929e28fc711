"""Decision times of the DRMaestro policy on 128 to 12,500 machines.

The thesis has no such figure; the cluster sizes are those of the Firmament paper. Two things are measured:
- A plan: one call of the policy with 256 waiting jobs, while two thirds of the GPUs run a job. Its flow networks leave
  out machines that no optimum needs.
- The full flow network of phase 2 (figure 22), which gives tasks GPUs: all tasks, and an arc to every machine. The
  tasks need two thirds of the GPUs, or 256 more GPUs than exist. Between two decisions, 1 % of the tasks leave and as
  many arrive; the network is then solved from scratch, or updated and re-solved.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Final

import numpy as np
from numpy.typing import NDArray

from topoplace import kernels
from topoplace.cluster.cluster import Cluster
from topoplace.placement import HostShare, Placement
from topoplace.policies import DRMaestro, QueuedJob
from topoplace.policies.drmaestro.costs import LOCAL, REMOTE, Costs, units
from topoplace.policies.drmaestro.free_resources import Ints
from topoplace.policies.drmaestro.phases import Phase
from topoplace_lab.papers.claims import ClaimedQuantity, PaperClaim
from topoplace_lab.papers.drmaestro import rodinia

MACHINES: Final = (128, 1_000, 4_000, 12_500)
_WAITING: Final = 256
_BUSY: Final = 2 / 3
_REPEATS: Final = 5


_CHURN: Final = 0.01
_NO_LIMIT: Final = -(1 << 31)
"""Supply of the sink (negative: a demand); it exceeds any number of tasks, so it stays when tasks come and go."""


@dataclass(frozen=True, slots=True)
class ScaleGraph:
    """Median times in milliseconds for the full flow network of the policy's phase 2, which gives tasks GPUs.

    tasks: number of tasks. cold: solving from scratch. update: applying the changes between two decisions. again:
    re-solving after these changes.
    """

    tasks: int
    cold: float
    update: float
    again: float


@dataclass(frozen=True, slots=True)
class ScaleCost:
    """Median times on a cluster of `machines` machines.

    plan: milliseconds for one call of the policy. busy, full: times for the full flow network of phase 2, which gives
    tasks GPUs. Its tasks need two thirds of the GPUs (busy) or 256 GPUs more than exist (full).
    """

    machines: int
    plan: float
    busy: ScaleGraph
    full: ScaleGraph


def measure(machines: Sequence[int], seed: int) -> list[ScaleCost]:
    """Measure the decision times for each given number of machines, a multiple of four."""
    return [_cost(count, seed) for count in machines]


def rows(costs: Sequence[ScaleCost]) -> Iterator[PaperClaim]:
    """Yield the measured decision times as rows, five per cluster size.

    The times are for one plan of the policy, and for two full flow networks, each solved from scratch and re-solved
    after changes.
    """
    for cost in costs:
        yield _row(
            f"{cost.machines} plan",
            f"{cost.machines} machines, {_WAITING} jobs wait: a plan",
            cost.plan,
            f"one call of the policy, network-aware, with {_BUSY:.0%} of the GPUs busy: all batches and phases, which "
            "contain the cheapest places only, and the placements",
        )
        yield from _graph_rows(cost.machines, "busy", cost.busy)
        yield from _graph_rows(cost.machines, "full", cost.full)


def series(costs: Sequence[ScaleCost]) -> list[tuple[str, list[int], list[float]]]:
    """Return the decision times as lines of a plot, each with its name, numbers of machines, and milliseconds."""
    sizes = [cost.machines for cost in costs]
    return [
        ("a plan", sizes, [cost.plan for cost in costs]),
        ("all of phase 2, from scratch", sizes, [cost.busy.cold for cost in costs]),
        ("all of phase 2, re-solved", sizes, [cost.busy.update + cost.busy.again for cost in costs]),
        ("too many tasks, from scratch", sizes, [cost.full.cold for cost in costs]),
        ("too many tasks, re-solved", sizes, [cost.full.update + cost.full.again for cost in costs]),
    ]


def _graph_rows(machines: int, name: str, graph: ScaleGraph) -> Iterator[PaperClaim]:
    what = f"{machines} machines: all of phase 2, {graph.tasks} tasks for {machines * rodinia.GPUS} GPUs"
    yield _row(
        f"{machines} {name}, cold",
        f"{what}, from scratch",
        graph.cold,
        "one call of min_cost_flow with the network of the next row, whose arrays exist already",
    )
    yield _row(
        f"{machines} {name}, warm",
        f"{what}, re-solved",
        graph.update + graph.again,
        f"a FlowNetwork: {graph.update:.2f} ms to update ({_CHURN:.0%} of the tasks leave, as many arrive, and those "
        f"without a GPU wait at a higher cost), {graph.again:.2f} ms to solve",
    )


def _row(name: str, what: str, milliseconds: float, why: str) -> PaperClaim:
    why = f"{why}; CPU time, median of {_REPEATS} on this machine"
    return ClaimedQuantity(f"scale {name}", what, "no such figure", machine=True).not_comparable(
        f"{milliseconds:.1f} ms", why
    )


def _cost(machines: int, seed: int) -> ScaleCost:
    gpus = machines * rodinia.GPUS
    graphs = (_graph(machines, tasks, seed) for tasks in (round(_BUSY * gpus), gpus + _WAITING))
    return ScaleCost(machines, _plan(machines, seed), *graphs)


def _plan(machines: int, seed: int) -> float:
    cluster = _loaded(machines, seed)
    policy = DRMaestro(network_aware=True, profiles=rodinia.PROFILES)
    workload = rodinia.workload(_WAITING, 4, seed)
    jobs = [job for job in workload.jobs if job.num_tasks]
    queue = [QueuedJob(f"waits {i}", job, float(i)) for i, job in enumerate(jobs)]
    policy.plan(queue, cluster, 0.0)  # builds the columns, which the cluster caches

    def change() -> Callable[[], object]:
        cluster.release(next(iter(cluster.allocations)))
        return lambda: policy.plan(queue, cluster, 1000.0)

    return _milliseconds(change)


def _loaded(machines: int, seed: int) -> Cluster:
    """Return a cluster with single-GPU Rodinia jobs on a random two thirds of its GPUs, using local CPUs."""
    random = np.random.default_rng(seed)
    cluster = Cluster(rodinia.machines(machines), rodinia.MACHINE)
    jobs = {job.profile: job for job in rodinia.workload(_WAITING, 4, seed).jobs if job.num_tasks}
    names = sorted(name for name in jobs if name)
    for gpu in np.flatnonzero(random.random(machines * rodinia.GPUS) < _BUSY).tolist():
        job = jobs[names[int(random.integers(len(names)))]]
        share = HostShare(gpu // rodinia.GPUS, job.cpus or 0, job.memory_gb or 0.0)
        cluster.allocate(f"runs {gpu}", Placement((gpu,), topology=cluster.topology, job=job, hosts=(share,)))
    return cluster


def _graph(machines: int, tasks: int, seed: int) -> ScaleGraph:
    network = _UpdatedNetwork(machines, tasks, seed)
    waiting = network.solve()
    cold: list[float] = []
    update: list[float] = []
    again: list[float] = []
    for _ in range(_REPEATS):
        begin = time.thread_time()
        network.change(waiting)
        changed = time.thread_time()
        waiting = network.solve()
        again.append((time.thread_time() - changed) * 1e3)
        update.append((changed - begin) * 1e3)
        cold.append(network.cold())
    return ScaleGraph(tasks, median(cold), median(update), median(again))


class _UpdatedNetwork:
    """The full flow network of phase 2, which gives tasks GPUs; it is updated and re-solved between decisions."""

    def __init__(self, machines: int, tasks: int, seed: int) -> None:
        self.random = np.random.default_rng(seed)
        waited = np.sort(self.random.random(tasks) * 100)[::-1]
        phase = _phase(
            np.full(machines, rodinia.GPUS),
            self.random.random(machines),
            self.random.integers(machines, size=tasks),
            waited,
        )
        nodes, tail, head, capacity, cost, supply = phase.network()
        self.network = kernels.FlowNetwork()
        self.sink = nodes - 1
        supply[self.sink] = _NO_LIMIT
        self.network.add_nodes(supply)
        self.network.add_arcs(tail, head, capacity, cost)
        number = np.arange(tasks)
        self.aggregator, self.first_machine, self.machines = 2 * tasks, 2 * tasks + 1, machines
        self.columns = np.stack([number, number + tasks, number + 2 * tasks, cost[2 * tasks : 3 * tasks]])
        """(4, tasks): each task's node, the node that keeps it unscheduled, the arc between these two, and its cost."""
        self.cost = 0

    def solve(self) -> NDArray[np.bool_]:
        """Solve the network and return, per task, True if it gets no GPU and waits."""
        solution = self.network.solve()
        self.cost = solution.cost
        waits: NDArray[np.bool_] = solution.flow[self.columns[2]] > 0
        return waits

    def change(self, waiting: NDArray[np.bool_]) -> None:
        """Change the network as in one second: leaving `waiting` tasks unscheduled costs more; replace 1 % of tasks."""
        costs, count = Costs(), self.columns.shape[1]
        self.columns[3, waiting] += units(np.array([costs.impatience]))
        self.network.set_cost(self.columns[2, waiting], self.columns[3, waiting])
        gone = self.random.choice(count, max(1, round(_CHURN * count)), replace=False)
        self.network.remove_nodes(self.columns[:2, gone].ravel())
        self.columns[:, gone] = self._arrived(len(gone), costs)

    def _arrived(self, count: int, costs: Costs) -> Ints:
        task, unscheduled = self.network.add_nodes(np.repeat([1, 0], count)).reshape(2, count)
        host = self.first_machine + self.random.integers(self.machines, size=count)
        wait, ones = costs.wait(np.zeros(count)), np.ones(count, dtype=np.int64)
        local = np.repeat(costs.place(np.ones(1), LOCAL), count)
        arcs = self.network.add_arcs(
            np.concatenate([task, task, task, unscheduled]),
            np.concatenate([unscheduled, host, self.aggregator * ones, self.sink * ones]),
            np.ones(4 * count, dtype=np.int64),
            np.concatenate([wait, local, 0 * ones, 0 * ones]),
        )
        return np.stack([task, unscheduled, arcs[:count], wait]).astype(np.int64)

    def cold(self) -> float:
        """Solve the current network from scratch and return the milliseconds.

        Raises RuntimeError if the minimum cost differs from that of the last call of `solve`.
        """
        columns = self.network.columns()
        begin = time.thread_time()
        found = kernels.min_cost_flow(
            *(columns.num_nodes, columns.tail, columns.head, columns.capacity, columns.cost, columns.supply)
        )
        spent = time.thread_time() - begin
        if found.cost != self.cost:
            raise RuntimeError(f"the minimum cost is {found.cost} from scratch, and {self.cost} re-solved")
        return spent * 1e3


def _phase(free: Ints, load: np.ndarray, host: Ints, waited: np.ndarray) -> Phase:
    """Return the policy's phase 2 (figure 22), a flow network that gives each task a GPU or lets it wait.

    free, load: free GPUs and network load of each machine. host: machine of each task's process, where a GPU costs
    less than on other machines. waited: seconds that each task has waited.
    """
    costs, tasks = Costs(), np.arange(len(host), dtype=np.int64)
    one = np.zeros(1, dtype=np.int64)
    local = np.repeat(costs.place(np.ones(1), LOCAL), len(host))
    remote = costs.place(1 + load * rodinia.PROFILES["nw"].sensitivity(remote=True), REMOTE)
    places = np.arange(len(free), dtype=np.int64)
    return Phase(
        job=tasks,
        kind=np.repeat(one, len(host)),
        aggregated=np.repeat(one, len(host)),
        unscheduled=costs.wait(waited),
        room=free,
        preferred=(tasks, host, local),
        offered=(np.repeat(one, len(free)), places, free, remote),
    )


def _milliseconds(change: Callable[[], Callable[[], object]]) -> float:
    """Call `change`, then the function that it returns; repeat, and return that function's median milliseconds."""
    times: list[float] = []
    for _ in range(_REPEATS):
        step = change()
        begin = time.thread_time()
        step()
        times.append((time.thread_time() - begin) * 1e3)
    return median(times)
