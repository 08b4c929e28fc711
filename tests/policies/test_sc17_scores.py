"""The scores and choices of SC'17's policies by the definitions, computed GPU by GPU."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cache
from itertools import combinations, permutations
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import topoplace as tp
from thoroughness import thorough
from topoplace.engine.machine_state import ClusterView
from topoplace.engine.machines.machine_class import mask_of, members
from topoplace.jobs.performance_profile import PerformanceProfile
from topoplace.objectives import Costs, PrintedUtility, Utility, communication_cost, fragmentation
from topoplace.objectives.colocation import interference, worst_ratio
from topoplace.objectives.utility import Formula
from topoplace.policies.sc17.bipartition import UtilityBipartition
from topoplace.policies.sc17.costs import UtilityPolicy

PROFILE = PerformanceProfile(
    {
        **{("net/1", size, "intra-socket"): 100.0 for size in (1, 2, 3)},
        ("net/1", 2, "inter-socket"): 125.0,
        ("net/1", 3, "inter-machine"): 180.0,
        ("big/9", 1, "intra-socket"): 100.0,
        ("big/9", 2, "intra-socket"): 100.0,
    },
    {
        **{("net/1", a, "net/1", b): 100.0 + 10 * a + b + 25 * (a == 2) for a in (1, 2) for b in (1, 2)},
        ("net/1", 1, "big/9", 1): 140.0,
        ("big/9", 1, "net/1", 1): 101.0,
    },
)
MINSKY = tp.machines.get("minsky")
UNEVEN = tp.Topology.from_links(3, [(0, 1, 50.0), (1, 2, 20.0)], 12.0, sockets=[0, 0, 1])
CLUSTERS = [
    tp.Topology.cluster(MINSKY, count=3, racks=2),
    tp.Topology.cluster([MINSKY, UNEVEN, UNEVEN], network=12.5),
]
PATTERNS = [tp.JobGraph.clique, tp.JobGraph.star, tp.JobGraph.independent]
JOBS = st.builds(
    lambda pattern, size, name: pattern(size).with_(profile=name),
    st.sampled_from(PATTERNS),
    st.sampled_from([1, 1, 2, 2, 3, 4]),
    st.sampled_from(["net/1", "big/9", "other", None]),
)


def kind(job: tp.JobGraph) -> tuple[str, int]:
    return job.profile or "", job.num_tasks


def sockets_of(gpus: Iterable[int], topology: tp.Topology) -> set[tuple[int, int]]:
    return {(int(topology.machine_of[gpu]), int(topology.socket_of[gpu])) for gpu in gpus}


def on_one_machine(topology: tp.Topology, size: int) -> Iterable[tuple[int, ...]]:
    """Every order of every set of GPUs of one machine."""
    for gpus in topology.gpus_of.values():
        yield from permutations(gpus, size)


@cache
def communication_range(job: tp.JobGraph, cluster: int) -> tuple[float, float]:
    """The lowest and the highest communication cost of a job on one machine of one of the clusters."""
    topology = CLUSTERS[cluster]
    possible = [communication_cost(job, gpus, topology) for gpus in on_one_machine(topology, job.num_tasks)]
    return min(possible), max(possible)


def costs_of(job: tp.JobGraph, gpus: Sequence[int], cluster: tp.Cluster) -> Costs:
    """The costs of a placement, which is not allocated; the job fits on an idle machine."""
    topology, free = cluster.topology, cluster.free_gpus()
    by_machine: dict[int, list[int]] = {}
    for gpu in gpus:
        by_machine.setdefault(int(topology.machine_of[gpu]), []).append(gpu)
    suffered, shared, fragments, unused, disturbed = [], [], [], [], []
    for machine, own in by_machine.items():
        there = sockets_of(own, topology)
        where = (
            ("intra-socket" if len(there) == 1 else "inter-socket")
            if len(by_machine) == 1
            else "inter-machine"
        )
        others = [
            other
            for job_id, other in cluster.jobs.items()
            if there & sockets_of(cluster.gpus_of(job_id), topology)
        ]
        ratios = interference(PROFILE, kind(job), where, list(map(kind, others)))
        suffered.append(ratios[0])
        shared.append(ratios[1])
        disturbed += [
            1 / PROFILE.slowdown(*kind(other), *kind(job))
            for other in others
            if job.profile and other.profile
        ]
        fragments.append(fragmentation(own, topology, free))
        numbers = topology.gpus_of[topology.machine_names[machine]]
        by_socket: dict[int, list[bool]] = {}
        for gpu in numbers:
            by_socket.setdefault(int(topology.socket_of[gpu]), []).append(gpu in free and gpu not in gpus)
        unused.append(sum(sum(left) / len(left) for left in by_socket.values()) / len(by_socket))
    weights = [weight for _, _, weight in job.edges]
    return Costs(
        job.num_tasks,
        communication_cost(job, gpus, topology),
        *communication_range(job.with_(profile=None), CLUSTERS.index(topology)),
        *(min(suffered), sum(shared) / len(shared), worst_ratio(PROFILE, kind(job))),
        fragmentation=sum(fragments) / len(fragments),
        disturbed=min(disturbed, default=1.0),
        weight=sum(weights) / len(weights) if weights else 0.0,
        unused=sum(unused) / len(unused),
    )


def policies(**options: Any) -> list[UtilityPolicy]:
    classes = (
        tp.policies.FirstComeFirstServed,
        tp.policies.BestFit,
        tp.policies.TopoAware,
        tp.policies.TopoAwareP,
    )
    return [policy(profile=PROFILE, **options) for policy in classes]


OTHER = Utility(0.2, 0.3, 0.5, heaviest=2.0)
LETTER = Utility(literal_fragmentation=True)
POLICIES: dict[str, tuple[UtilityPolicy, Formula]] = {
    **{policy.name: (policy, Utility()) for policy in policies()},
    **{f"{policy.name}, other weights": (policy, OTHER) for policy in policies(utility=OTHER)},
    "domains": (tp.policies.BestFit(profile=PROFILE, reading="domains"), Utility()),
    "printed": (tp.policies.TopoAware(profile=PROFILE, utility="printed"), PrintedUtility()),
    "in bipartition": (tp.policies.TopoAware(profile=PROFILE, utility_in_bipartition=True), Utility()),
    "eq. 5 to the letter": (tp.policies.TopoAware(profile=PROFILE, utility=LETTER), LETTER),
}


@pytest.mark.parametrize("name", POLICIES)
@given(topology=st.sampled_from(CLUSTERS), jobs=st.lists(JOBS, min_size=1, max_size=8), data=st.data())
@settings(max_examples=thorough(1000, 15))
def test_scores_are_those_of_the_definitions(
    name: str, topology: tp.Topology, jobs: list[tp.JobGraph], data: st.DataObject
) -> None:
    cluster, (policy, formula) = tp.Cluster(topology), POLICIES[name]
    if drained := data.draw(st.sampled_from([None, None, 1, 4])):
        cluster.drain(drained)
    for number, job in enumerate(jobs):
        placement = policy.place(job, cluster)
        assert (placement is None) == (cluster.num_free < job.num_tasks)
        if placement is None:
            continue
        costs = costs_of(job, placement.gpus, cluster)
        expected = {
            "communication_cost": costs.communication,
            "interference": 1 - costs.shared,
            "fragmentation": costs.fragmentation,
            "utility": formula.job(costs),
            "system_utility": formula.system(costs),
        }
        assert {name: placement.scores[name] for name in expected} == pytest.approx(expected)
        explained = policy.explain(job, cluster, top=3).candidates
        assert explained[0] == placement
        for one in explained:
            assert one.scores["system_utility"] == pytest.approx(
                formula.system(costs_of(job, one.gpus, cluster))
            )
        cluster.allocate(str(number), placement)
        if data.draw(st.booleans()):
            cluster.release(data.draw(st.sampled_from(sorted(cluster.allocations))))


@given(st.sampled_from(CLUSTERS), st.lists(JOBS, min_size=1, max_size=7))
@settings(max_examples=thorough(1000, 15))
def test_a_job_on_one_machine_gets_the_highest_system_utility(
    topology: tp.Topology, jobs: list[tp.JobGraph]
) -> None:
    """Of equal ones, the lowest communication cost, and then the machine with the fewest GPUs left."""
    cluster, policy = tp.Cluster(topology), tp.policies.TopoAware(profile=PROFILE)
    for number, job in enumerate(jobs):
        placement = policy.place(job, cluster)
        if placement is None:
            continue
        free = set(cluster.free_gpus())

        def key(
            gpus: Sequence[int], job: tp.JobGraph = job, free: set[int] = free
        ) -> tuple[float, float, int]:
            costs = costs_of(job, gpus, cluster)
            machine = topology.gpus_of[topology.machine_names[int(topology.machine_of[gpus[0]])]]
            left = len(free.intersection(machine)) - len(gpus)
            return -round(Utility().system(costs), 9), round(costs.communication, 9), left

        keys = [key(gpus) for gpus in on_one_machine(topology, job.num_tasks) if free.issuperset(gpus)]
        if keys:
            assert key(placement.gpus) == min(keys)
        cluster.allocate(str(number), placement)


# ---- the simple policies -----------------------------------------------------------------------------------------

DGX1 = tp.Topology.cluster(tp.machines.get("dgx1-v100"), count=2)


def best_fit(free: Sequence[int], size: int, reading: str) -> tuple[int, ...] | None:
    """Best fit on machines of eight GPUs with sockets of four, by its docstring; None if no machine has room."""
    machines = [[gpu for gpu in free if gpu // 8 == machine] for machine in range(2)]
    found = []
    for machine, own in enumerate(machines):
        sockets = [[gpu for gpu in own if gpu // 4 == 2 * machine + socket] for socket in range(2)]
        if len(own) < size:
            continue
        whole = [socket for socket in sockets if len(socket) >= size]
        if reading == "sockets":
            found += [((0, len(socket) - size, len(own) - size), tuple(socket[:size])) for socket in whole]
        if not whole or reading == "domains":
            fullest_first = [gpu for socket in sorted(sockets, key=len) for gpu in socket]
            key = (1, len(own) - size, len(own) - size) if reading == "sockets" else (len(own) - size,)
            found.append((key, tuple(fullest_first[:size])))
    return min(found, key=lambda one: one[0])[1] if found else None


@given(st.sets(st.integers(0, 15), max_size=14), st.integers(1, 8))
def test_first_fit_and_best_fit_by_their_words(busy: set[int], size: int) -> None:
    cluster, job = tp.Cluster(DGX1), tp.JobGraph.clique(size).with_(single_machine=True)
    if busy:
        cluster.allocate("busy", sorted(busy))
    free = cluster.free_gpus()
    rooms = [[gpu for gpu in free if gpu // 8 == machine][:size] for machine in range(2)]
    first = next((tuple(gpus) for gpus in rooms if len(gpus) == size), None)
    for policy, expected in (
        (tp.policies.FirstComeFirstServed(), first),
        (tp.policies.BestFit(), best_fit(free, size, "sockets")),
        (tp.policies.BestFit(reading="domains"), best_fit(free, size, "domains")),
    ):
        placement = policy.place(job, cluster)
        assert (placement and placement.gpus) == expected


# ---- Algorithm 3 -------------------------------------------------------------------------------------------------


class TaskByTask:
    """Algorithm 3 on the halves that the policy finds: each task goes where its system utility is higher."""

    def __init__(self, policy: tp.policies.TopoAware, job: tp.JobGraph, cluster: tp.Cluster) -> None:
        self.cluster, self.job, self.topology = cluster, job, cluster.topology
        view = cluster.view(ClusterView)
        self.rules: UtilityBipartition | None = policy.bipartition
        self.machine_class = view.classes.of(0)
        self.free = set(cluster.free_gpus())
        self.region_of: dict[int, set[int]] = {}
        distances = [self.topology.distance(u, v) for u, v in combinations(range(self.topology.num_gpus), 2)]
        self.farthest = max(distances)

    def halves(self, region: set[int]) -> list[set[int]]:
        assert self.rules is not None
        found = [set(members(half)) for half in self.rules.halves(self.machine_class, mask_of(region))]
        assert found[0] | found[1] == region
        assert abs(len(found[0]) - len(found[1])) <= 1
        every = (set(one) for one in combinations(region, len(found[0])))
        assert self.cut(*found) == min(self.cut(one, region - one) for one in every)
        return found

    def cut(self, one: set[int], other: set[int]) -> float:
        """How near GPUs of two halves are to each other, over all pairs."""
        return sum(self.farthest - self.topology.distance(u, v) for u in one for v in other)

    def mapped(self, tasks: Sequence[int], region: set[int]) -> tuple[int, ...]:
        if tasks and len(region) == 1:
            self.region_of[tasks[0]] = region
        elif tasks:
            halves, shares = self.halves(region), ([], [])
            for task in tasks:
                self.region_of.pop(task, None)
            for task in tasks:
                sides = [side for side in (0, 1) if len(shares[side]) < len(halves[side])]
                side = max(sides, key=lambda side: self.utility(task, halves[side]))
                shares[side].append(task)
                self.region_of[task] = halves[side]
            for share, half in zip(shares, halves, strict=True):
                self.mapped(share, half)
        return tuple(min(self.region_of.get(task, {-1})) for task in range(self.job.num_tasks))

    def utility(self, task: int, half: set[int]) -> float:
        communication = weights = 0.0
        for a, b, weight in self.job.edges:
            other = b if a == task else a
            if task in (a, b) and other in self.region_of:
                pairs = [(u, v) for u in half for v in self.region_of[other] if u != v]
                near = min((self.topology.distance(u, v) for u, v in pairs), default=self.farthest)
                communication += weight * near
                weights += weight
        left = set(self.free)
        regions = [*(region for _, region in sorted(self.region_of.items())), half]
        for region in regions:
            left -= {min(left & region)} if left & region else set()
        taken = self.free - left
        there = sockets_of(half, self.topology)
        everywhere = {socket for region in regions for socket in sockets_of(region, self.topology)}
        others = [
            kind(other)
            for job_id, other in self.cluster.jobs.items()
            if there & sockets_of(self.cluster.gpus_of(job_id), self.topology)
        ]
        where = "intra-socket" if len(everywhere) == 1 else "inter-socket"
        suffered, shared = interference(PROFILE, kind(self.job), where, others)
        costs = Costs(
            *(self.job.num_tasks, communication, 0.0, weights * self.farthest),
            *(suffered, shared, worst_ratio(PROFILE, kind(self.job))),
            fragmentation(taken, self.topology, self.cluster.free_gpus()),
        )
        return Utility().system(costs)


@given(
    st.sampled_from([MINSKY, tp.machines.get("dgx1-v100"), tp.machines.get("summit")]),
    st.lists(
        st.tuples(st.sampled_from([*PATTERNS, tp.JobGraph.ring]), st.integers(2, 7)), min_size=1, max_size=4
    ),
    st.dictionaries(st.integers(0, 3), st.sampled_from(["net/1", "big/9", None]), max_size=3),
)
def test_tasks_are_halved_one_by_one(
    topology: tp.Topology, patterns: list[tuple[Any, int]], beside: dict[int, str | None]
) -> None:
    cluster = tp.Cluster(topology)
    policy = tp.policies.TopoAware(profile=PROFILE, utility_in_bipartition=True)
    for gpu, name in beside.items():
        cluster.allocate(str(gpu), [gpu], tp.JobGraph.independent(1).with_(profile=name))
    for pattern, size in patterns:
        job = pattern(size).with_(profile="net/1")
        placement = policy.place(job, cluster)
        assert (placement is None) == (cluster.num_free < size)
        if placement is not None:
            reference = TaskByTask(policy, job, cluster)
            assert placement.gpus == reference.mapped(range(size), reference.free)


# ---- memory bandwidth --------------------------------------------------------------------------------------------


@given(st.integers(1, 8), st.integers(1, 30), st.integers(0, 12), st.integers(1, 60))
def test_a_machine_takes_as_many_tasks_as_its_memory_bandwidth_allows(
    size: int, asked: int, used: int, limit: int
) -> None:
    costing = tp.policies.TopoAware(memory_bandwidth=float(limit)).costing
    job = tp.JobGraph.independent(size).with_(memory_bandwidth=float(asked))
    enough = [tasks for tasks in range(size + 1) if tasks * asked <= (limit - used) * size]
    assert costing.max_tasks(job, float(used)) == max(enough, default=0)
    assert costing.max_tasks(job) == max(tasks for tasks in range(size + 1) if tasks * asked <= limit * size)
    assert costing.max_tasks(tp.JobGraph.independent(size), float(used)) == size
    assert tp.policies.TopoAware().costing.max_tasks(job, float(used)) == size
