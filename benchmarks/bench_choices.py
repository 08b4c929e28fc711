"""What others would choose: how long a job then communicates, and how long the choice takes.

`python benchmarks/bench_choices.py` asks each chooser as its users do, and prints a row for it. On a machine: the
lowest free ids, at which Kueue, Volcano and the kubelet leave it, the rules of NVIDIA's go-gpuallocator, an annealer,
and CP-SAT of OR-tools (`pip install --group peers`) for the largest sum of a ring's links. On a cluster: slices of
eight and a preferred level (Kueue), pods of eight (Volcano, Kubernetes), nodes of eight (Slurm), the annealer, and
CP-SAT for the fewest domains. Times are CPU seconds; communication is in units of that of `least-time`: the geometric
mean over the cases with its 95 % interval (bootstrap), and the extremes; by the library's number, by max-min rates, and
by one ring in the order of the tasks.
"""

from __future__ import annotations

import importlib
import importlib.util
import math
import random
import statistics
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import pairwise
from typing import Any, Final, NamedTuple

import numpy as np
import pytest

import topoplace as tp
from topoplace.jobs.parallel_traffic import Traffic
from topoplace.objectives.communication import communication_time
from topoplace_lab.suite import topologies

MACHINES: Final = ("dgx1-v100", "summit", "l40s-8", "dgx-h100")
CLUSTER: Final = "h100-x64"
LEVEL: Final = "unit"
"""What users of levels prefer there."""
STATES: Final = 20
MOVES: Final = {False: 2_000, True: 4_000}
"""Of the annealer, on a machine and on the cluster."""
LIMIT_S: Final = 10.0
TRAFFIC: Final = Traffic.of("llama3-70b", micro_batches=8)
Gpus = tuple[int, ...]


class Case(NamedTuple):
    kind: str
    job: tp.JobGraph
    cluster: tp.Cluster

    def seconds(self, gpus: Gpus) -> float:
        """Return the communication time of the job on these GPUs, in the order of its tasks."""
        return communication_time(self.job, gpus, self.cluster.topology).seconds

    def by_max_min(self, gpus: Gpus) -> float:
        """Return the time by max-min rates of the flows, as network simulators find it."""
        return communication_time(self.job, gpus, self.cluster.topology, max_min=True).seconds

    def in_task_order(self, gpus: Gpus) -> float:
        """Return the time of one GB over the slowest link of a ring in the order of the tasks."""
        ring = pairwise((*gpus, gpus[0]))
        return 1 / min(self.cluster.topology.bandwidth(*pair) for pair in ring)


def on_machines() -> Iterator[Case]:
    """Yield rings on machines with a quarter to half of their GPUs busy."""
    rng = random.Random("machine")
    for name in MACHINES:
        for _ in range(STATES):
            cluster = tp.Cluster(tp.machines.get(name))
            total = cluster.num_free
            cluster.allocate("busy", rng.sample(range(total), rng.randint(total // 4, total // 2)))
            yield Case(name, tp.JobGraph.ring(rng.randint(2, cluster.num_free - 1)), cluster)


def on_clusters() -> Iterator[Case]:
    """Yield training jobs on 64 machines, of which a third is idle and a third busy."""
    rng = random.Random("cluster")
    for number in range(STATES):
        cluster = tp.Cluster(topologies.built(CLUSTER))
        for machine in range(64):
            own = range(8 * machine, 8 * machine + 8)
            if busy := rng.choice((0, 0, 2, 6, 8, 8)):
                cluster.allocate(f"busy{machine}", rng.sample(own, busy))
        job = tp.JobGraph.parallel(tensor=8, pipeline=4, data=(2, 4)[number % 2], traffic=TRAFFIC)
        yield Case(CLUSTER, job, cluster)


def cases(kind: str) -> list[Case]:
    """Return the cases on a machine, or on the cluster."""
    return [case for case in (on_clusters() if kind == CLUSTER else on_machines()) if case.kind == kind]


# ---- choosers ------------------------------------------------------------------------------------------------------


def by_policy(name: str, case: Case, *, is_near: bool = False) -> Gpus:
    """Return the choice of a policy; on a cluster for eight GPUs of a machine at a time, unless it is ours.

    is_near: asks for a preferred level.
    """
    job = case.job.with_(prefer=LEVEL) if is_near else case.job
    if case.kind == CLUSTER and name != "least-time":
        job = job.grouped("tensor", within="machine")
    placement = tp.policies.get(name).place(job, case.cluster)
    assert isinstance(placement, tp.Placement), placement
    return placement.gpus


def annealed(case: Case) -> Gpus:
    """Return what swaps of two tasks, or of a task's GPU for a free one, find from the lowest ids or Kueue's choice."""
    rng = random.Random(1)
    now = list(CHOOSERS[case.kind][KUEUE if case.kind == CLUSTER else LOWEST](case))
    others = sorted(set(case.cluster.free_gpus()).difference(now))
    size, moves = len(now), MOVES[case.kind == CLUSTER]
    seconds = least = case.seconds(tuple(now))
    best = tuple(now)
    for move in range(moves):
        temperature = 0.2 * least * 0.01 ** (move / moves)
        i, j = rng.randrange(size), rng.randrange(size + len(others))
        changed = now.copy()
        changed[i] = now[j] if j < size else others[j - size]
        if j < size:
            changed[j] = now[i]
        found = case.seconds(tuple(changed))
        if found > seconds and rng.random() >= math.exp((seconds - found) / temperature):
            continue
        if j >= size:
            others[j - size] = now[i]
        now, seconds = changed, found
        if seconds < least:
            best, least = tuple(now), seconds
    return best


def by_cp_sat(case: Case) -> Gpus:
    cp_model = importlib.import_module("ortools.sat.python.cp_model")
    solver = cp_model.CpSolver()
    solver.parameters.max_time_in_seconds = LIMIT_S
    solver.parameters.num_workers = 1
    return (_fewest_domains if case.kind == CLUSTER else _largest_ring)(case, cp_model.CpModel(), solver)


def _largest_ring(case: Case, model: Any, solver: Any) -> Gpus:
    """Return the ring of free GPUs whose links have the largest sum."""
    topology, free = case.cluster.topology, sorted(case.cluster.free_gpus())
    size = case.job.num_tasks
    unused = {gpu: model.new_bool_var(f"unused{gpu}") for gpu in free}
    arcs = {(u, v): model.new_bool_var(f"{u}-{v}") for u in free for v in free if u != v}
    model.add_circuit(
        [(u, u, one) for u, one in unused.items()] + [(u, v, one) for (u, v), one in arcs.items()]
    )
    model.add(sum(unused.values()) == len(free) - size)
    model.maximize(sum(round(topology.bandwidth(u, v)) * one for (u, v), one in arcs.items()))
    solver.solve(model)
    after = {u: v for (u, v), one in arcs.items() if solver.value(one)}
    ring = [min(after)]
    while after[ring[-1]] != ring[0]:
        ring.append(after[ring[-1]])
    return tuple(ring)


def _fewest_domains(case: Case, model: Any, solver: Any) -> Gpus:
    """Return GPUs in the fewest domains, then on the fewest machines, ranks in the order of the machines."""
    topology = case.cluster.topology
    free: dict[int, list[int]] = {}
    for gpu in sorted(case.cluster.free_gpus()):
        free.setdefault(int(topology.machine_of[gpu]), []).append(gpu)
    domain_of = next(level for level in topology.levels if level.name == LEVEL).codes
    domains = {int(domain_of[machine]) for machine in free}
    has_domain = {one: model.new_bool_var(f"domain{one}") for one in domains}
    has_machine = {machine: model.new_bool_var(f"machine{machine}") for machine in free}
    taken = {machine: model.new_int_var(0, len(own), f"taken{machine}") for machine, own in free.items()}
    for machine, own in free.items():
        model.add(taken[machine] <= len(own) * has_machine[machine])
        model.add_implication(has_machine[machine], has_domain[int(domain_of[machine])])
    model.add(sum(taken.values()) == case.job.num_tasks)
    model.minimize(1000 * sum(has_domain.values()) + sum(has_machine.values()))
    solver.solve(model)
    return tuple(gpu for machine, own in free.items() for gpu in own[: solver.value(taken[machine])])


LOWEST: Final = "lowest free ids"
KUEUE: Final = "Kueue, slices of 8, preferred level"
ON_MACHINE: Final[Mapping[str, Callable[[Case], Gpus]]] = {
    "least-time": partial(by_policy, "least-time"),
    LOWEST: partial(by_policy, "baseline"),
    "go-gpuallocator": partial(by_policy, "nvidia-allocator"),
    "annealer": annealed,
    "CP-SAT": by_cp_sat,
}
ON_CLUSTER: Final[Mapping[str, Callable[[Case], Gpus]]] = {
    "least-time": partial(by_policy, "least-time"),
    KUEUE: partial(by_policy, "kueue-best-fit", is_near=True),
    "Kueue, slices of 8": partial(by_policy, "kueue-least-free"),
    "Volcano, pods of 8, soft mode": partial(by_policy, "volcano-binpack", is_near=True),
    "Volcano, pods of 8": partial(by_policy, "volcano-binpack"),
    "Slurm, nodes of 8, tree": partial(by_policy, "slurm-tree"),
    "Kubernetes, pods of 8": partial(by_policy, "kubernetes-default"),
    "annealer": annealed,
    "CP-SAT": by_cp_sat,
}
CHOOSERS: Final = {**dict.fromkeys(MACHINES, ON_MACHINE), CLUSTER: ON_CLUSTER}


# ---- measuring -----------------------------------------------------------------------------------------------------

YARDSTICKS: Final[Mapping[str, Callable[[Case, Gpus], float]]] = {
    "time": Case.seconds,
    "max-min": Case.by_max_min,
    "task order": Case.in_task_order,
}


class Answer(NamedTuple):
    cpu_s: float
    seconds: Mapping[str, float]
    """The communication time of the job on the GPUs chosen, by yardstick."""


def answers(name: str, kind: str) -> list[Answer]:
    """Return what a chooser takes for each case, and how good it is; a first case that is not counted warms it up."""
    found: list[Answer] = []
    own = cases(kind)
    for case in (own[0], *own):
        begin = time.process_time()
        gpus = CHOOSERS[kind][name](case)
        spent = time.process_time() - begin
        assert len(set(gpus)) == case.job.num_tasks
        assert set(gpus) <= set(case.cluster.free_gpus())
        found.append(Answer(spent, {what: measure(case, gpus) for what, measure in YARDSTICKS.items()}))
    return found[1:]


def row(name: str, found: Sequence[Answer], ours: Sequence[Answer]) -> str:
    """Return the CPU time, then for each yardstick the mean ratio, its interval, the worst and the best."""
    cells = [f"{name:34} {1e3 * statistics.median(one.cpu_s for one in found):8.2f} ms"]
    for what in YARDSTICKS:
        logs = np.log([one.seconds[what] / best.seconds[what] for one, best in zip(found, ours, strict=True)])
        drawn = np.random.default_rng(1).choice(logs, (2_000, len(logs))).mean(axis=1)
        low, high = np.exp(np.quantile(drawn, (0.025, 0.975)))
        mean, worst, best = np.exp([logs.mean(), logs.max(), logs.min()])
        cells.append(f"{what} {mean:.2f} [{low:.2f}, {high:.2f}], {best:.2f} to {worst:.2f}")
    return "; ".join(cells)


def names(kind: str) -> list[str]:
    """Return the choosers that are at hand."""
    has_solver = importlib.util.find_spec("ortools") is not None
    return [name for name in CHOOSERS[kind] if name != "CP-SAT" or has_solver]


@pytest.mark.parametrize(("kind", "name"), [(kind, name) for kind in CHOOSERS for name in names(kind)])
def test_choice(benchmark: Any, name: str, kind: str) -> None:
    case = cases(kind)[0]
    choose = CHOOSERS[kind][name]
    choose(case)
    gpus = benchmark.pedantic(choose, (case,), rounds=3)
    assert case.seconds(gpus) > 0


def main() -> None:
    for kind in CHOOSERS:
        print(f"{kind}: {len(cases(kind))} cases, in units of least-time")
        ours = answers("least-time", kind)
        for name in names(kind):
            print(row(name, ours if name == "least-time" else answers(name, kind), ours), flush=True)


if __name__ == "__main__":
    main()
