"""What collective operations carry: one score, all sets of a machine, trees, and decisions of least-time by rings.

`python benchmarks/bench_collective.py` prints the medians.
"""

from __future__ import annotations

import random
import statistics
from collections.abc import Iterator
from functools import partial
from itertools import combinations

import topoplace as tp
from timing.measure import microseconds, timed
from topoplace import collective, kernels

EIGHT = ("dgx1-v100", "l40s-8", "dgx-h100")
SIXTEEN = ("torus2d-16", "cubemesh-16", "dgx2")
SIZES = range(2, 9)
MACHINES = 12_500


def fresh(name: str) -> tp.Topology:
    """Return a machine of which nothing is prepared but the graph."""
    topology = tp.Topology.from_json(tp.machines.get(name).to_json())
    collective.ring_bandwidth(topology, [0, 1])
    return topology


def all_sets_us(name: str) -> float:
    """Return the time of rating all 247 sets of a machine of eight GPUs for the first time."""
    sets = [gpus for size in range(2, 9) for gpus in combinations(range(8), size)]
    times = []
    for _ in range(7):
        topology = fresh(name)
        times.append(timed(lambda t=topology: [collective.ring_bandwidth(t, gpus) for gpus in sets])[0])
    return 1e6 * statistics.median(times)


def one_score_us(name: str) -> float:
    """Return the time of one score of eight GPUs that was computed before."""
    topology, gpus = fresh(name), tuple(range(8))
    collective.ring_bandwidth(topology, gpus)
    return microseconds(lambda: collective.ring_bandwidth(topology, gpus))


def decisions_us(name: str, size: int, *, seen: bool) -> float:
    """Return the time of a decision with 8 of 16 GPUs busy; seen: in a condition that was met before."""
    topology, job, policy = fresh(name), tp.JobGraph.ring(size), tp.policies.get("least-time")
    draws = random.Random(size)
    clusters = []
    for _ in range(60):
        cluster = tp.Cluster(topology)
        cluster.allocate("running", draws.sample(range(16), 8))
        clusters.append(cluster)
    every = collective.Wanted(size, 0xFFFF, 0, 0xFFFF)
    next(collective.ranked_sets(topology, every))  # rates all sets
    if seen:
        for cluster in clusters:
            policy.place(job, cluster)
    return 1e6 * statistics.median(timed(partial(policy.place, job, cluster))[0] for cluster in clusters)


def first_decision_us(name: str) -> float:
    """Return the time of the first decision for 8 GPUs of an idle machine of 16."""
    times: list[float] = []
    for _ in range(5):
        topology, policy = fresh(name), tp.policies.get("least-time")
        cluster = tp.Cluster(topology)
        times.append(timed(partial(policy.place, tp.JobGraph.ring(8), cluster))[0])
    return 1e6 * statistics.median(times)


def cluster_us(machine: str) -> float:
    """Return the time of a decision on 12,500 machines, of which jobs of all sizes take and give back GPUs."""
    cluster = tp.Cluster(tp.Topology.cluster(tp.machines.get(machine), MACHINES))
    policy, draws = tp.policies.get("least-time"), random.Random(0)
    jobs = [tp.JobGraph.ring(size) for size in SIZES]
    running: list[str] = []
    times: list[float] = []
    for number in range(3000):
        job = draws.choice(jobs)
        seconds, placement = timed(partial(policy.place, job, cluster))
        times.append(seconds)
        assert placement is not None
        cluster.allocate(str(number), placement)
        running.append(str(number))
        if number > 1000:
            cluster.release(running.pop(draws.randrange(len(running))))
    return 1e6 * statistics.median(times[1000:])


def boxes_of_a100(boxes: int) -> kernels.TerminalGraph:
    """Return boxes of 8 GPUs with 300 GB/s into the box's NVSwitch, and 25 GB/s into a switch of all boxes."""
    links = [(gpu, 8 * boxes + gpu // 8, 300) for gpu in range(8 * boxes)]
    return _network(8 * boxes, boxes + 1, links + [(gpu, 9 * boxes, 25) for gpu in range(8 * boxes)])


def boxes_of_mi250(boxes: int) -> kernels.TerminalGraph:
    """Return boxes of 16 GPUs with seven links of 50 GB/s, four of them to one GPU, and 16 GB/s into a switch."""
    links = [(16 * box + 2 * i, 16 * box + 2 * i + 1, 200) for box in range(boxes) for i in range(8)]
    links += [
        (16 * box + 2 * i, 16 * box + 2 * (i + d) % 16 + 1, 50)
        for box in range(boxes)
        for i in range(8)
        for d in (1, 2, 3)
    ]
    return _network(16 * boxes, 1, links + [(gpu, 16 * boxes, 16) for gpu in range(16 * boxes)])


def _network(terminals: int, switches: int, links: list[tuple[int, int, int]]) -> kernels.TerminalGraph:
    arcs = [arc for u, v, gb_per_s in links for arc in ((u, v, gb_per_s), (v, u, gb_per_s))]
    return kernels.TerminalGraph(terminals + switches, terminals, arcs)


def fabrics() -> Iterator[tuple[str, kernels.TerminalGraph]]:
    """Yield fabrics of several boxes, by name."""
    yield "8 boxes of 8 A100", boxes_of_a100(8)
    yield "4 boxes of 16 MI250", boxes_of_mi250(4)


def trees_us(graph: kernels.TerminalGraph) -> float:
    """Return the time of packing and verifying the trees of all terminals."""
    everyone = range(graph.num_terminals)

    def packed() -> None:
        assert kernels.verify_trees(graph, everyone, kernels.pack_trees(graph, everyone))

    return microseconds(packed, rounds=5)


def rows() -> Iterator[tuple[str, float]]:
    """Yield what is measured, and microseconds."""
    for name in EIGHT:
        yield f"one score of 8 GPUs, known, {name}", one_score_us(name)
        yield f"all 247 sets for the first time, {name}", all_sets_us(name)
    for name in SIXTEEN:
        for seen in (True, False):
            slowest = max(decisions_us(name, size, seen=seen) for size in SIZES)
            condition = "a condition met before" if seen else "a new condition"
            yield f"decision, 8 of 16 GPUs busy, {condition}, {name}: slowest size", slowest
        yield f"first decision for 8 of 16 idle GPUs, {name}", first_decision_us(name)
    for what, graph in fabrics():
        yield f"trees of {what}, verified", trees_us(graph)
    for name in EIGHT[:2]:
        yield f"decision on {MACHINES:,} machines, {name}", cluster_us(name)


def main() -> None:
    for what, us in rows():
        print(f"{us:10.1f} us  {what}")


if __name__ == "__main__":
    main()
