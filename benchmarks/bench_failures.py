"""Llama 3's 419 interruptions, replayed: 54 days of 16,384 simulated GPUs, on 2,080 machines of 8 in racks of 4.

`python benchmarks/bench_failures.py [--network-out rack] [--picture FILE]` prints, for each rule, the tasks that moved,
over those on parts that failed; how often a step takes no longer than with a fresh placement; and the CPU seconds of
a decision. Each failure strikes the GPU of a task drawn at random, and takes its machine, or rack, out for a day; those
of software move nothing. The rules: `topoplace.repair`; a fresh placement; and Kueue's, which gives the pods of the
failed node to another node in the domain of their level and keeps all others, or else places the whole job again.

`--spares N [--per-rack R]` instead simulates 54 days in which parts fail as often, with N more machines in each rack of
R as spares (`Recovery(spares=...)`), and prints how many failures `topoplace.repair` repairs inside the rack.
"""

from __future__ import annotations

import argparse
import random
import statistics
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

import topoplace as tp
from topoplace_lab.simulate import Failures, FixedTime, Recovery, Workload, simulate

NUM_MACHINES, PER_RACK, DAYS = 2080, 4, 54
DAY = 86_400.0
JOB = tp.JobGraph.parallel(tensor=8, pipeline=16, data=128).grouped("tensor", within="machine")
POLICY = tp.policies.get(tp.DEFAULT_POLICY)
ID = "llama3"
WITHIN = 1.01
"""A step takes as long as with a fresh placement if it takes less than this many times as long."""


@dataclass(frozen=True)
class Strike:
    """A failure: its time in seconds, the task whose GPU fails, and what is out: "machine", "rack" or "nothing"."""

    time: float
    task: int
    out: str


def strikes(failures: Failures, seed: int) -> list[Strike]:
    """Return as many failures of each kind as were counted, at random times."""
    draws = random.Random(seed)
    drawn = [
        Strike(draws.uniform(0, DAYS * DAY), draws.randrange(JOB.num_tasks), part.out)
        for part in failures.parts
        for _ in range(int(part.count))
    ]
    return sorted(drawn, key=lambda strike: strike.time)


Rule = Callable[[tp.Cluster, Sequence[int]], Sequence[int] | None]
"""Returns the GPUs of all tasks after some were lost; None to place the whole job again."""


@dataclass
class World:
    """The gang under one rule, and what has been measured."""

    name: str
    rule: Rule
    cluster: tp.Cluster
    bound: float
    """No placement takes fewer seconds a step."""
    seconds: list[float] = field(default_factory=list[float])
    moved: list[int] = field(default_factory=list[int])
    on_failed: list[int] = field(default_factory=list[int])
    times: list[float] = field(default_factory=list[float])
    """Seconds a step, over the bound, or where they are more, over those with a fresh placement in the same state."""
    placed_again: int = 0
    in_rack: int = 0
    """Failures after which all tasks that moved stayed in their rack."""
    _repairs: list[tuple[float, list[str]]] = field(default_factory=list[tuple[float, list[str]]])

    def strike(self, strike: Strike) -> None:
        """Take out what fails, and let the rule decide."""
        while self._repairs and self._repairs[0][0] <= strike.time:
            for machine in self._repairs.pop(0)[1]:
                self.cluster.undrain(machine)
        if strike.out == "nothing":
            return
        old = self.cluster.gpus_of(ID)
        machines = struck(self.cluster.topology, old[strike.task], strike.out)
        for machine in machines:
            self.cluster.drain(machine)
        self._repairs.append((strike.time + DAY, machines))
        gone = {gpu for machine in machines for gpu in self.cluster.topology.gpus_of[machine]}
        lost = [gpu for gpu in old if gpu in gone]
        begin = time.process_time()
        new = self.rule(self.cluster, lost)
        self.seconds.append(time.process_time() - begin)
        self.placed_again += new is None
        gpus = tuple(placed_now(self.cluster).gpus if new is None else new)
        placement = tp.Placement(gpus, topology=self.cluster.topology, job=JOB)
        is_slow = placement.time >= WITHIN * self.bound
        least = placed_now(self.cluster).time if is_slow else self.bound
        self.cluster.release(ID)
        self.cluster.allocate(ID, placement)
        machine_of = self.cluster.topology.machine_of // PER_RACK
        self.in_rack += bool((machine_of[list(old)] == machine_of[list(gpus)]).all())
        self.on_failed.append(len(lost))
        self.moved.append(sum(a != b for a, b in zip(old, gpus, strict=True)))
        self.times.append(placement.time / least)

    def row(self) -> str:
        """Return the figures as a line."""
        moved, failed = sum(self.moved), sum(self.on_failed)
        as_fast = sum(time < WITHIN for time in self.times) / len(self.times)
        return (
            f"{self.name:22} {moved:9,} moved, {moved / failed:8.2f} x those on failed parts (worst "
            f"{max(a / b for a, b in zip(self.moved, self.on_failed, strict=True)):.2f}); as fast as a fresh placement "
            f"in {as_fast:.1%} (worst {max(self.times):.3f} x); {self.placed_again} placed again; "
            f"{statistics.median(self.seconds):.3f} s, at most {max(self.seconds):.3f}"
        )


def struck(topology: tp.Topology, gpu: int, out: str) -> list[str]:
    """Return the machines that are out of service if the part of a GPU fails."""
    machine = int(topology.machine_of[gpu])
    if out == "machine":
        return [topology.machine_names[machine]]
    first = machine - machine % PER_RACK
    return list(topology.machine_names[first : first + PER_RACK])


def placed(cluster: tp.Cluster) -> tp.Placement:
    """Return where the policy places the gang."""
    placement = POLICY.place(JOB, cluster)
    assert placement is not None
    return placement


def placed_now(cluster: tp.Cluster) -> tp.Placement:
    """Return where the policy would place the gang, which runs, if it started now."""
    with cluster.what_if():
        cluster.release(ID)
        return placed(cluster)


def ours(cluster: tp.Cluster, lost: Sequence[int]) -> Sequence[int] | None:
    """Return the repair with the fewest moves."""
    plans = tp.repair(ID, cluster, lost=lost, further=False).plans
    return plans[0].placement.gpus if plans and plans[0].placement else None


def fresh(cluster: tp.Cluster, lost: Sequence[int]) -> Sequence[int]:
    """Return a fresh placement."""
    return placed_now(cluster).gpus


def kueue(*, in_rack: bool) -> Rule:
    """Return Kueue's rule; in_rack: if the job requires that each of its slices be in one rack."""

    def rule(cluster: tp.Cluster, lost: Sequence[int]) -> Sequence[int] | None:
        topology, new = cluster.topology, dict[int, int]()
        free = Counter(int(topology.machine_of[gpu]) for gpu in cluster.free_gpus())
        whole = [machine for machine, count in free.items() if count == 8]
        for failed in sorted({int(topology.machine_of[gpu]) for gpu in lost}):
            racks = Counter(machine // PER_RACK for machine in whole)
            if in_rack:
                racks = Counter({failed // PER_RACK: racks[failed // PER_RACK]})
            fitting = [rack for rack, count in racks.items() if count]
            if not fitting:
                return None
            best = min(fitting, key=lambda rack: (racks[rack], rack))
            chosen = min(machine for machine in whole if machine // PER_RACK == best)
            whole.remove(chosen)
            new |= {8 * failed + local: 8 * chosen + local for local in range(8)}
        return [new.get(gpu, gpu) for gpu in cluster.gpus_of(ID)]

    return rule


def worlds(machine: str = "dgx-h100") -> Iterator[World]:
    """Yield the gang on an otherwise idle cluster, under each rule."""
    topology = tp.Topology.cluster(tp.machines.get(machine), NUM_MACHINES, racks=PER_RACK)
    rules: dict[str, Rule] = {
        "repair": ours,
        "fresh placement": fresh,
        "Kueue, in the rack": kueue(in_rack=True),
        "Kueue, anywhere": kueue(in_rack=False),
    }
    for name, rule in rules.items():
        cluster = tp.Cluster(topology)
        placement = placed(cluster)
        assert placement.bound is not None
        cluster.allocate(ID, placement)
        yield World(name, rule, cluster, placement.bound)


def with_spares(failures: Failures, spares: int, per_rack: int, seed: int, machine: str = "dgx-h100") -> str:
    """Return what repairs did for the gang in a simulation, on all machines of the racks but the spares."""
    count = -(-(JOB.num_tasks // 8) // (per_rack - spares)) * per_rack
    cluster = tp.Cluster(tp.Topology.cluster(tp.machines.get(machine), count, racks=per_rack))
    cluster.hold_spares(level="rack", machines=spares)
    with cluster.what_if():
        cluster.allocate(ID, placed(cluster))
        left_over = cluster.free_gpus()  # by rounding up
    for gpu in left_over:
        cluster.drain(gpu)
    jobs = Workload([JOB], [0.0], [DAYS * DAY])
    recovery = Recovery(spares={"rack": spares})
    result = simulate(
        cluster, jobs, POLICY, performance=FixedTime(), failures=failures, recovery=recovery, seed=seed
    )
    row = result.jobs[0]
    return (
        f"{spares} of {per_rack}, {count} machines: {row['failures']} failures, {row['tasks_moved']:,} tasks moved, "
        f"{result.repaired_in_rack():.1%} repaired inside the rack; {row['wait'] / DAY:.2f} days in the queue"
    )


def draw(found: Sequence[World], when: Sequence[float], path: str) -> None:
    """Draw the tasks moved so far under each rule, by day."""
    import matplotlib.pyplot as plt
    import numpy as np

    figure, axes = plt.subplots(figsize=(7, 4), layout="constrained")
    for world, width in zip(found, (7, 7, 3, 3), strict=True):  # several lines are the same
        axes.step(when, np.cumsum(world.moved), lw=width, where="post", label=world.name)
    axes.step(when, np.cumsum(found[0].on_failed), "k", lw=1, where="post", label="on failed parts")
    axes.set(yscale="log", xlabel="day", ylabel="tasks moved so far")
    axes.set_title("Llama 3's failures replayed, on 16,384 simulated GPUs")
    axes.legend()
    figure.savefig(path, dpi=150)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--network-out", choices=("machine", "rack"), default="machine")
    parser.add_argument("--picture", metavar="FILE")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--spares", type=int, default=0)
    parser.add_argument("--per-rack", type=int, default=PER_RACK)
    arguments = parser.parse_args()
    failures = Failures.llama3(network=arguments.network_out)
    if arguments.spares:
        print(with_spares(failures, arguments.spares, arguments.per_rack, arguments.seed))
        return
    drawn = strikes(failures, arguments.seed)
    hardware = [strike.time / DAY for strike in drawn if strike.out != "nothing"]
    print(f"{len(drawn)} failures in {DAYS} days, {len(hardware)} of hardware", flush=True)
    found: list[World] = []
    for world in worlds():
        for strike in drawn:
            world.strike(strike)
        print(world.row(), flush=True)
        print(f"{world.in_rack} of {len(world.moved)} repaired inside the rack", flush=True)
        found.append(world)
    if arguments.picture:
        draw(found, hardware, arguments.picture)


if __name__ == "__main__":
    main()
