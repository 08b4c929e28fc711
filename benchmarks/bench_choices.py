"""What others would choose: how long a job's communication takes on the GPUs of each chooser, and how long that takes.

`python benchmarks/bench_choices.py` prints a row for each chooser: `least-time`, the rules of Kueue and of Slurm, an
annealer that starts from Kueue's choice, and CP-SAT of OR-tools (`pip install --group peers`) on the models that one
would write: the largest sum of a ring's links on a machine, the fewest units and then machines on a cluster. Times are
CPU seconds; communication is in units of that of `least-time`, the geometric mean over the cases and the worst.
"""

from __future__ import annotations

import importlib
import importlib.util
import math
import random
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, Final, NamedTuple

import pytest

import topoplace as tp
from topoplace.experiments.suite import topologies
from topoplace.objectives.communication import communication_time

MACHINES: Final = ("torus2d-16", "cubemesh-16")
CLUSTER: Final = "h100-x64"
STATES: Final = 20
MOVES: Final = {"machine": 2_000, "cluster": 4_000}
LIMIT_S: Final = 10.0
Gpus = tuple[int, ...]


class Case(NamedTuple):
    kind: str
    job: tp.JobGraph
    cluster: tp.Cluster

    def seconds(self, gpus: Gpus) -> float:
        """Return the communication time of the job on these GPUs, in the order of its tasks."""
        return communication_time(self.job, gpus, self.cluster.topology).seconds


def cases(kind: str) -> Iterator[Case]:
    """Yield rings on machines of 16 GPUs, half of them busy, or training jobs on 64 machines, half busy."""
    rng = random.Random(kind)
    for number in range(STATES):
        if kind == "machine":
            cluster = tp.Cluster(tp.machines.get(MACHINES[number % 2]))
            cluster.allocate("busy", rng.sample(range(16), 8))
            yield Case(kind, tp.JobGraph.ring(2 + number % 7), cluster)
        else:
            cluster = tp.Cluster(topologies.built(CLUSTER))
            for machine in range(64):
                own = range(8 * machine, 8 * machine + 8)
                if busy := rng.choice((0, 2, 4, 6, 8)):
                    cluster.allocate(f"busy{machine}", rng.sample(own, busy))
            data = (2, 4)[number % 2]
            yield Case(kind, tp.JobGraph.parallel(tensor=8, pipeline=4, data=data), cluster)


# ---- choosers ------------------------------------------------------------------------------------------------------


def by_policy(name: str, case: Case) -> Gpus:
    placement = tp.policies.get(name).place(case.job, case.cluster)
    assert isinstance(placement, tp.Placement), placement
    return placement.gpus


def annealed(case: Case) -> Gpus:
    """Return what swaps of two tasks, or of a task's GPU for a free one, find from Kueue's choice."""
    rng = random.Random(1)
    now = list(by_policy("kueue-best-fit", case))
    others = sorted(set(case.cluster.free_gpus()).difference(now))
    size, moves = len(now), MOVES[case.kind]
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
    return (_largest_ring if case.kind == "machine" else _fewest_units)(case, cp_model.CpModel(), solver)


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


def _fewest_units(case: Case, model: Any, solver: Any) -> Gpus:
    """Return GPUs on the fewest units, then the fewest machines, ranks in the order of the machines."""
    topology = case.cluster.topology
    free: dict[int, list[int]] = {}
    for gpu in sorted(case.cluster.free_gpus()):
        free.setdefault(int(topology.machine_of[gpu]), []).append(gpu)
    unit_of = next(level for level in topology.levels if level.name == "unit").codes
    units = {int(unit_of[machine]) for machine in free}
    has_unit = {unit: model.new_bool_var(f"unit{unit}") for unit in units}
    has_machine = {machine: model.new_bool_var(f"machine{machine}") for machine in free}
    taken = {machine: model.new_int_var(0, len(own), f"taken{machine}") for machine, own in free.items()}
    for machine, own in free.items():
        model.add(taken[machine] <= len(own) * has_machine[machine])
        model.add_implication(has_machine[machine], has_unit[int(unit_of[machine])])
    model.add(sum(taken.values()) == case.job.num_tasks)
    model.minimize(1000 * sum(has_unit.values()) + sum(has_machine.values()))
    solver.solve(model)
    return tuple(gpu for machine, own in free.items() for gpu in own[: solver.value(taken[machine])])


CHOOSERS: Final[dict[str, Callable[[Case], Gpus]]] = {
    **{
        name: partial(by_policy, name)
        for name in ("least-time", "kueue-best-fit", "slurm-tree", "volcano-binpack")
    },
    "annealer": annealed,
    "CP-SAT": by_cp_sat,
}


# ---- measuring -----------------------------------------------------------------------------------------------------


class Answer(NamedTuple):
    cpu_s: float
    seconds: float
    """The communication time of the job on the GPUs chosen."""


def answers(name: str, kind: str) -> list[Answer]:
    """Return what a chooser takes for each case, and how good it is; a first case that is not counted warms it up."""
    found: list[Answer] = []
    for case in (next(cases(kind)), *cases(kind)):
        begin = time.process_time()
        gpus = CHOOSERS[name](case)
        spent = time.process_time() - begin
        assert len(set(gpus)) == case.job.num_tasks
        assert set(gpus) <= set(case.cluster.free_gpus())
        found.append(Answer(spent, case.seconds(gpus)))
    return found[1:]


def row(name: str, found: Sequence[Answer], ours: Sequence[Answer]) -> str:
    ratios = [one.seconds / best.seconds for one, best in zip(found, ours, strict=True)]
    cpu_ms = 1e3 * statistics.median(one.cpu_s for one in found)
    return f"{name:16} {cpu_ms:10.3f} {statistics.geometric_mean(ratios):8.2f} {max(ratios):8.2f} {min(ratios):8.2f}"


def names() -> list[str]:
    return [name for name in CHOOSERS if name != "CP-SAT" or importlib.util.find_spec("ortools")]


@pytest.mark.parametrize("kind", MOVES)
@pytest.mark.parametrize("name", names())
def test_choice(benchmark: Any, name: str, kind: str) -> None:
    case = next(cases(kind))
    CHOOSERS[name](case)
    gpus = benchmark.pedantic(CHOOSERS[name], (case,), rounds=3)
    assert case.seconds(gpus) > 0


def main() -> None:
    for kind in MOVES:
        ours = answers("least-time", kind)
        print(f"{kind:16} {'median ms':>10} {'mean ×':>8} {'worst ×':>8} {'best ×':>8}")
        for name in names():
            print(row(name, ours if name == "least-time" else answers(name, kind), ours))


if __name__ == "__main__":
    main()
