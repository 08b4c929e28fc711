"""Policies that share GPUs, against the rules written out for one machine after the other."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import topoplace as tp
from topoplace._core import Fragmentation
from topoplace.topology.fabric import Fabric, Level
from topoplace_lab.sharing.expected_fragmentation import TypicalJobs
from topoplace_lab.simulate import Workload


def machine_of(size: int, model: str) -> tp.Topology:
    bare = tp.Topology.from_links(size, [], 12.0)
    return replace(bare, gpus=tuple(replace(gpu, model=model) for gpu in bare.gpus))


TEMPLATES = [machine_of(1, "P4"), machine_of(2, "P4"), machine_of(4, "T4")]
JOBS = st.builds(
    lambda tasks, share, cpus, model: tp.JobGraph.independent(tasks).with_(
        gpu_fraction=share if tasks < 4 else 1.0, cpus=cpus, gpu_model=model, single_machine=True
    ),
    st.sampled_from([1, 1, 1, 2, 4]),
    st.sampled_from([0.2, 0.47, 0.65, 0.81, 1.0]),
    st.sampled_from([None, 1, 3.152, 8]),
    st.sampled_from([None, None, "T4"]),
) | st.sampled_from([tp.JobGraph.without_gpus(cpus=2.5), tp.JobGraph.without_gpus(cpus=8)])
TYPICAL = TypicalJobs(
    {
        tp.JobGraph.independent(1).with_(gpu_fraction=0.47, cpus=3): 3,
        tp.JobGraph.independent(1).with_(cpus=6.5): 2,
        tp.JobGraph.independent(2).with_(gpu_model="T4"): 1,
        tp.JobGraph.without_gpus(cpus=4): 1,
    }
)


class Machine:
    """What is left of one machine, read from the cluster."""

    def __init__(self, cluster: tp.Cluster, number: int) -> None:
        topology = cluster.topology
        self.gpus = topology.gpus_of[topology.machine_names[number]]
        self.model = topology.gpus[self.gpus[0]].model
        self.left = [round(cluster.share_left(gpu) * 1000) for gpu in self.gpus]
        self.cpus = cluster.hosts.left(number).cpus if cluster.hosts.resources else math.inf
        self.kinds = {
            0 if job.gpu_fraction < 1 else job.num_tasks
            for job_id, job in cluster.jobs.items()
            if set(cluster.gpus_of(job_id)) & set(self.gpus)
        }

    def after(self, job: tp.JobGraph, name: str) -> list[tuple[list[int], list[int]]]:
        """The GPUs that the job may get, and what is then left of each GPU.

        For FGD, a share may be of any GPU; else it is of those that have least left. Whole GPUs are the lowest ones.
        """
        share = round(job.gpu_fraction * 1000)
        if self.cpus < (job.cpus or 0) or (job.gpu_model and self.model not in job.gpu_models):
            return []
        able = [gpu for gpu, left in enumerate(self.left) if left >= share]
        if len(able) < job.num_tasks:
            return []
        tightest = sorted(able, key=lambda gpu: (self.left[gpu], gpu)) if share < 1000 else able
        sets = [tightest[: job.num_tasks]]
        if name in FGD and job.num_tasks == 1 and share < 1000:
            sets = [[gpu] for gpu in able]
        return [(gpus, [left - share * (gpu in gpus) for gpu, left in enumerate(self.left)]) for gpus in sets]


def fragment(machine: Machine, left: Sequence[int], cpus: float, stranded: float) -> float:
    """The expected fragment of section 3 of the paper, typical job by typical job."""
    total = 0.0
    for job, weight in TYPICAL.weights.items():
        share = round(job.gpu_fraction * 1000)
        suits = not job.gpu_model or machine.model in job.gpu_models
        fits = suits and cpus >= (job.cpus or 0) and sum(one >= share for one in left) >= job.num_tasks
        lost = sum(one for one in left if one < share) if fits and job.num_tasks else sum(left)
        total += weight * lost
        if job.num_tasks and suits and job.cpus:
            total += stranded * weight * max(0.0, sum(left) - cpus / job.cpus * job.num_tasks * share)
    return total


def fgd(stranded: float) -> Callable[[tp.JobGraph, Machine, list[int], list[int]], float]:
    def score(job: tp.JobGraph, machine: Machine, gpus: list[int], left: list[int]) -> float:
        before = fragment(machine, machine.left, machine.cpus, stranded)
        after = fragment(machine, left, machine.cpus - (job.cpus or 0), stranded)
        return 1 / (1 + math.exp((after - before) / 1000))

    return score


def packing(job: tp.JobGraph, machine: Machine, gpus: list[int], left: list[int]) -> float:
    if not job.num_tasks:
        return 0
    free = machine.left.count(1000)
    if free == len(machine.left):
        return max(33 - free, free)
    share = round(job.gpu_fraction * 1000)
    tightest = sorted(one for one in machine.left if one >= share)[: job.num_tasks]
    if 1000 in tightest:
        return max(50 - tightest.count(1000), 33)
    return max(100 - sum(one // 10 for one in tightest) // 10, 50)


def clustering(job: tp.JobGraph, machine: Machine, gpus: list[int], left: list[int]) -> float:
    if not job.num_tasks:
        return 0
    own = 0 if job.gpu_fraction < 1 else job.num_tasks
    fullness = 25 * (4000 - sum(machine.left)) // 4000
    if own in machine.kinds:
        return fullness + (75 if machine.kinds == {own} else 50)
    return fullness + (0 if machine.kinds else 25)


def vectors(weigh: Callable[..., Fraction]) -> Callable[[tp.JobGraph, Machine, list[int], list[int]], float]:
    """Scores by CPUs and GPUs, needed and free, as shares of the largest machine; unknown CPUs do not count."""

    def score(job: tp.JobGraph, machine: Machine, gpus: list[int], left: list[int]) -> float:
        used = sum(machine.left) - sum(left)
        known = 0 if machine.cpus == math.inf else machine.cpus
        cpus = [Fraction(round(1000 * cpus), 16000) for cpus in (job.cpus or 0, known)]
        return weigh(cpus[0], Fraction(used, 4000), cpus[1], Fraction(sum(machine.left), 4000))

    return score


def in_hundredths(
    score: Callable[[tp.JobGraph, Machine, list[int], list[int]], float],
) -> Callable[[tp.JobGraph, Machine, list[int], list[int]], float]:
    return lambda *state: math.floor(100 * score(*state)) / 100


FGD = ("fgd", "least-stranded")
VECTORS = {
    "dot-product": (
        tp.policies.DotProduct,
        vectors(lambda c, g, free_c, free_g: 1 - (c * free_c + g * free_g) / 2),
    ),
    "vector-best-fit": (
        tp.policies.VectorBestFit,
        vectors(lambda c, g, free_c, free_g: 1 - (free_c - c + free_g - g) / 2),
    ),
    "vector-worst-fit": (
        tp.policies.VectorWorstFit,
        vectors(lambda c, g, free_c, free_g: (free_c - c + free_g - g) / 2),
    ),
}
RULES = {
    "fgd": (tp.policies.FragmentationGradientDescent(typical=TYPICAL, rounded=False), fgd(0.0)),
    "least-stranded": (tp.policies.LeastStranded(typical=TYPICAL), fgd(1.0)),
    "gpu-packing": (tp.policies.GpuPacking(), packing),
    "gpu-clustering": (tp.policies.GpuClustering(), clustering),
    **{f"{name}, exact": (policy(rounded=False), score) for name, (policy, score) in VECTORS.items()},
    **{name: (policy(), in_hundredths(score)) for name, (policy, score) in VECTORS.items()},
}
"""Each policy with the score by which its docstring says that it chooses."""


@pytest.mark.parametrize("name", RULES)
@given(
    machines=st.lists(
        st.tuples(st.sampled_from(TEMPLATES), st.sampled_from([4, 15.95, 16])), min_size=1, max_size=4
    ),
    jobs=st.lists(JOBS, min_size=1, max_size=12),
    know_hosts=st.sampled_from([True, True, False]),
)
@settings(max_examples=60, deadline=None)
def test_the_best_machine_is_chosen(
    name: str, machines: list[tuple[tp.Topology, float]], jobs: list[tp.JobGraph], know_hosts: bool
) -> None:
    policy, score = RULES[name]
    hosts = [tp.HostResources(cpus, 64.0) for cpus in (*(cpus for _, cpus in machines), 16)]
    topology = tp.Topology.cluster([*(machine for machine, _ in machines), TEMPLATES[2]])
    cluster = tp.Cluster(topology, hosts if know_hosts else None)
    if not know_hosts:
        jobs = [job.with_(cpus=None) for job in jobs if job.num_tasks]
    for number, job in enumerate(jobs):
        if name in FGD and job.num_tasks > 1:
            job = job.with_(gpu_fraction=1.0)
        states = [Machine(cluster, machine) for machine in range(topology.num_machines)]
        rated = [
            (score(job, state, gpus, left), machine, tuple(state.gpus[gpu] for gpu in gpus))
            for machine, state in enumerate(states)
            for gpus, left in state.after(job, name)
        ]
        placement = policy.place(job, cluster)
        if not rated:
            assert placement is None
            continue
        assert placement is not None
        best = float(max(value for value, _, _ in rated))
        assert placement.scores[policy.score_name] == pytest.approx(best)
        at_best = [(machine, gpus) for value, machine, gpus in rated if value >= best - 1e-9]
        where = placement.hosts[0].machine if placement.hosts else int(topology.machine_of[placement.gpus[0]])
        assert (where, placement.gpus) in at_best
        if policy.score_name == "score" and "exact" not in name:  # without roundings, ties are ties
            assert (where, placement.gpus) == at_best[0]
        cluster.allocate(f"job-{number}", placement)


def part_of_a_gpu(share: float) -> tp.JobGraph:
    return tp.JobGraph.independent(1).with_(gpu_fraction=share)


def test_fragmentation_scores_are_compared_in_hundredths() -> None:
    """Half a GPU takes 0.4945 GPUs of fragment from the first machine, and 0.495 from the second."""
    typical = TypicalJobs({tp.JobGraph.independent(1): 99, part_of_a_gpu(0.1): 1})
    cluster = tp.Cluster(tp.Topology.cluster(TEMPLATES[0], 2))
    for gpu, taken in enumerate((0.45, 0.4)):
        cluster.allocate(str(gpu), [gpu], part_of_a_gpu(taken))
    for rounded, gpu, score in ((True, 0, 0.62), (False, 1, 1 / (1 + math.exp(-0.495)))):
        policy = tp.policies.FragmentationGradientDescent(typical=typical, rounded=rounded)
        placement = policy.place(part_of_a_gpu(0.5), cluster)
        assert placement is not None
        assert placement.gpus == (gpu,)
        assert placement.scores == {**placement.scores, "fragmentation_score": pytest.approx(score)}


def test_a_share_of_a_model_is_not_of_another_gpu_of_the_machine() -> None:
    """The half GPU that is left would fragment less, but is of another model."""
    plain = tp.Topology.from_links(2, [], 12.0)
    models = (replace(gpu, model=model) for gpu, model in zip(plain.gpus, ("P4", "T4"), strict=True))
    cluster = tp.Cluster(replace(plain, gpus=tuple(models)))
    cluster.allocate("half", [0], part_of_a_gpu(0.5))
    for model, gpu in ((None, 0), ("T4", 1)):
        placement = tp.policies.get("fgd").place(part_of_a_gpu(0.5).with_(gpu_model=model), cluster)
        assert placement is not None
        assert placement.gpus == (gpu,)


def test_without_typical_jobs_common_ones_are_halves_and_1_2_4_and_8_gpus() -> None:
    """On eight GPUs, five kinds with the weights 1, 4, 2, 1 and 1 fit; after one GPU is taken, eight do not."""
    cluster = tp.Cluster(machine_of(8, "A"))
    typical = {
        part_of_a_gpu(0.5): 1,
        **{tp.JobGraph.independent(2**i): w for i, w in enumerate((4, 2, 1, 1))},
    }
    told = tp.policies.FragmentationGradientDescent(typical=TypicalJobs(typical), rounded=False)
    for job in (tp.JobGraph.independent(1), part_of_a_gpu(0.6), tp.JobGraph.independent(5)):
        placement = tp.policies.FragmentationGradientDescent(rounded=False).place(job, cluster)
        assert placement == told.place(job, cluster)
        assert placement is not None
        cluster.allocate(repr(job), placement)


@pytest.mark.parametrize("name", ["random-fit", "two-choices"])
def test_draws_are_repeatable_and_differ(name: str) -> None:
    cluster = tp.Cluster(tp.Topology.cluster(TEMPLATES[2], 20))
    job = tp.JobGraph.independent(1).with_(gpu_fraction=0.5)
    drawn = set()
    for seed in range(10):
        placement = tp.policies.get(name, seed=seed).place(job, cluster)
        assert placement is not None
        assert placement == tp.policies.get(name, seed=seed).place(job, cluster.copy())
        drawn.add(placement.gpus)
    assert len(drawn) > 5


@pytest.mark.parametrize("name", ["random-fit", "two-choices"])
def test_gpus_are_drawn_anew_for_each_decision(name: str) -> None:
    cluster, job = tp.Cluster(tp.Topology.cluster(TEMPLATES[2], 3)), part_of_a_gpu(0.5)
    policy, drawn = tp.policies.get(name), set()
    for number in range(12):
        placement = policy.place(job, cluster)
        assert placement == tp.policies.get(name).place(job, cluster.copy())
        assert placement is not None
        drawn.add(placement.gpus[0] % 4)
        cluster.allocate(f"job-{number}", [number], tp.JobGraph.independent(1).with_(gpu_fraction=0.01))
    assert len(drawn) > 2


def test_a_rule_that_draws_nothing_picks_once_for_equal_machines() -> None:
    picked = list[tuple[int, ...]]()

    class Counting(tp.policies.FragmentationGradientDescent):
        def pick(self, request: Any, room: Any, view: Any) -> tuple[int, ...]:
            picked.append(super().pick(request, room, view))
            return picked[-1]

    cluster, policy = tp.Cluster(tp.Topology.cluster(TEMPLATES[2], 8)), Counting()
    for machine in range(8):
        placement = policy.place(tp.JobGraph.independent(4), cluster)
        assert placement is not None
        assert placement.gpus == tuple(range(4 * machine, 4 * machine + 4))
        cluster.allocate(f"job-{machine}", placement)
    assert picked == [(0, 1, 2, 3)]


@pytest.mark.parametrize("few_cpus", [False, True])
def test_a_machine_is_drawn_from_the_list_of_those_with_room(few_cpus: bool) -> None:
    without_room = (0, 3, 4, 11, 19)
    able = [machine for machine in range(20) if machine not in without_room]
    hosts = [tp.HostResources(16 if machine in able else 0.5, 64.0) for machine in range(20)]
    cluster = tp.Cluster(tp.Topology.cluster(TEMPLATES[2], 20), hosts if few_cpus else None)
    job = tp.JobGraph.independent(1).with_(cpus=1 if few_cpus else None)
    if not few_cpus:
        cluster.allocate("others", [4 * machine + gpu for machine in without_room for gpu in range(4)])
    state = f"{len(cluster.allocations)} {cluster.num_free} {cluster.hosts.free.sum() if few_cpus else 0}"
    for seed in range(20):
        (machine,) = random.Random(f"{seed} machines {state}").sample(able, 1)
        placement = tp.policies.get("random-fit", seed=seed).place(job, cluster)
        assert placement is not None
        assert cluster.topology.machine_of[placement.gpus[0]] == machine


def drawn(cluster: tp.Cluster, seed: int, of: str) -> random.Random:
    """The random numbers for a cluster that does not know its hosts, by the class's docstring."""
    return random.Random(f"{seed} {of} {len(cluster.allocations)} {cluster.num_free} 0")


def test_the_emptier_of_two_machines_is_chosen_and_on_it_any_gpu() -> None:
    cluster = tp.Cluster(tp.Topology.cluster(TEMPLATES[2], 6))
    for gpu, share in ((0, 0.9), (1, 0.2), (5, 0.3), (8, 1.0), (13, 0.4), (17, 0.7)):
        cluster.allocate(f"job-{gpu}", [gpu], part_of_a_gpu(share))
    left = [sum(round(1000 * cluster.share_left(gpu)) for gpu in range(4 * m, 4 * m + 4)) for m in range(6)]
    job = part_of_a_gpu(0.25)
    for seed in range(40):
        first, second = drawn(cluster, seed, "machines").sample(range(6), 2)
        machine = second if left[second] > left[first] else first
        able = [gpu for gpu in range(4 * machine, 4 * machine + 4) if cluster.share_left(gpu) >= 0.25]
        policy = tp.policies.TwoChoices(seed=seed)
        explained = policy.explain(job, cluster, top=6)
        assert explained.candidates[0] == policy.place(job, cluster)
        assert list(explained.candidates[0].gpus) == drawn(cluster, seed, "GPUs").sample(able, 1)
        assert explained.candidates[0].scores["score"] == left[machine]
        machines = [int(cluster.topology.machine_of[one.gpus[0]]) for one in explained.candidates]
        assert sorted(machines) == list(range(6))
    pair = tp.policies.RandomFit(seed=3).place(tp.JobGraph.independent(2).with_(single_machine=True), cluster)
    assert pair is not None
    assert list(pair.gpus) == [gpu for gpu in cluster.free_gpus() if gpu // 4 == pair.gpus[0] // 4][:2]


def test_two_choices_balance_better_than_one() -> None:
    def most(name: str) -> int:
        cluster = tp.Cluster(tp.Topology.cluster(TEMPLATES[2], 32))
        policy = tp.policies.get(name)
        for number in range(64):
            placement = policy.place(tp.JobGraph.independent(1), cluster)
            assert placement is not None
            cluster.allocate(str(number), placement)
        used = np.bincount(
            cluster.topology.machine_of[[gpu for gpus in cluster.allocations.values() for gpu in gpus]]
        )
        return int(used.max())

    assert most("two-choices") < most("random-fit")


def test_rounded_scores_go_to_the_lowest_machine() -> None:
    """The second machine has a few CPUs less; in whole hundredths both are equal."""
    hosts = [tp.HostResources(cpus, 64.0) for cpus in (16, 15.95)]
    cluster = tp.Cluster(tp.Topology.cluster(TEMPLATES[2], 2), hosts)
    job = tp.JobGraph.independent(1).with_(cpus=1)
    chosen = [tp.policies.VectorBestFit(rounded=rounded).place(job, cluster) for rounded in (False, True)]
    assert [placement.gpus for placement in chosen if placement] == [(4,), (0,)]


def test_typical_jobs_are_the_most_common_ones() -> None:
    one, two = tp.JobGraph.independent(1), tp.JobGraph.independent(2)
    jobs = [one] * 60 + [two] * 36 + [one.with_(cpus=3.5)] * 4
    assert TypicalJobs.of(jobs).weights == {one: 60 / 96, two: 36 / 96}
    assert len(TypicalJobs.of(jobs, covered=1.0).weights) == 3
    assert TypicalJobs.of([one.with_(name="a"), one.with_(name="b")]).weights == {one.with_(name="a"): 1.0}


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: TypicalJobs({}), "^weights is empty"),
        (lambda: TypicalJobs({tp.JobGraph.ring(2): -1.0}), "weight of job 0 = "),
        (lambda: TypicalJobs.of([]), "jobs is empty"),
        (lambda: TypicalJobs({"x": 1}), "job 0 of weights"),  # type: ignore[dict-item]
        (lambda: TypicalJobs.of(["x"]), r"^jobs\[0\]"),  # type: ignore[list-item]
        (lambda: TypicalJobs({tp.JobGraph.ring(2): 1e308}), "the weight of job 0"),
        (lambda: TypicalJobs.of([tp.JobGraph.ring(2)], covered=1.5), "covered = 1.5"),
        (lambda: tp.policies.get("fgd", typical=3), "typical"),
        (lambda: tp.policies.get("fgd", rounded=1), "rounded"),
        (lambda: tp.policies.get("random-fit", seed=-1), "seed = -1"),
        (lambda: Fragmentation([(0, 1, 0, 1.0, [True])]), r"jobs\[0\]"),
        (lambda: Fragmentation([(0, 1, 10, 1.0, [True])], stranded=math.nan), "stranded"),
        (lambda: Fragmentation([]), "jobs"),
    ],
)
def test_wrong_input_is_named(call: Callable[[], object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call()


def test_what_a_sharing_policy_says_of_a_job_that_waits() -> None:
    cluster = tp.Cluster(tp.Topology.cluster(TEMPLATES[1], 1))
    for number in (0, 1):
        cluster.allocate(str(number), [number], tp.JobGraph.independent(1).with_(gpu_fraction=0.6))
    policy = tp.policies.get("fgd")
    half = tp.JobGraph.independent(1).with_(gpu_fraction=0.5)
    assert policy.place(half, cluster) is None
    refusal = policy.explain(half, cluster).refusal
    assert refusal is not None
    assert not refusal.permanent
    placement = policy.place(half.with_(gpu_fraction=0.4), cluster)
    assert placement is not None
    assert placement.gpus == (0,)


def test_a_drained_gpu_makes_no_used_machine() -> None:
    cluster = tp.Cluster(tp.Topology.cluster(TEMPLATES[2], 2))
    cluster.drain(3)
    cluster.allocate("used", [4], tp.JobGraph.independent(1))
    placement = tp.policies.get("gpu-packing").place(tp.JobGraph.independent(1), cluster)
    assert placement is not None
    assert placement.gpus == (5,)


def test_packing_compares_what_is_left_in_tenths_of_a_gpu() -> None:
    cluster = tp.Cluster(tp.Topology.cluster(machine_of(1, "A"), 2))
    for gpu, taken in enumerate((0.45, 0.5)):  # 0.55 and 0.5 are left: both are 5 tenths
        cluster.allocate(f"job{gpu}", [gpu], tp.JobGraph.independent(1).with_(gpu_fraction=taken))
    job = tp.JobGraph.independent(1).with_(gpu_fraction=0.3)
    placement = tp.policies.get("gpu-packing").place(job, cluster)
    assert placement is not None
    assert placement.gpus == (0,)


def test_jobs_that_need_other_memory_are_of_another_kind() -> None:
    small, large = (tp.JobGraph.independent(1).with_(gpu_memory_gb=size) for size in (10, 80))
    assert TypicalJobs.of([small] * 2 + [large] * 98).weights == {large: 1.0}


def test_shares_count_in_the_utilization() -> None:
    jobs = [tp.JobGraph.independent(1).with_(gpu_fraction=0.5)] * 8
    result = tp.simulate(TEMPLATES[2], Workload(jobs, [0] * 8, [10] * 8), tp.policies.get("fgd"))
    assert result.summary()["utilization"] == 1.0


def test_the_order_of_the_queue_can_be_kept() -> None:
    cluster = tp.Cluster(tp.Topology.cluster(machine_of(2, "A"), 2))
    queue = [
        tp.policies.QueuedJob("large", tp.JobGraph.independent(2).with_(single_machine=True), 0.0),
        tp.policies.QueuedJob("small", tp.JobGraph.independent(1), 0.0),
    ]
    cluster.allocate("a", [0])
    cluster.allocate("b", [2])
    overtaken, kept = (
        tp.policies.get("vector-best-fit", in_order=in_order).plan(queue, cluster, 0.0)
        for in_order in (False, True)
    )
    assert [job_id for job_id, _ in overtaken.start] == ["small"]
    assert not kept.start
    with pytest.raises(ValueError, match="in_order = 1"):
        tp.policies.get("dot-product", in_order=1)


# ---- domains of a fabric -------------------------------------------------------------------------------------

RACKS = ("a", "a", "b", "b", None)
KINDS: dict[tp.JobGraph, float] = {
    tp.JobGraph.independent(6).with_(within="rack"): 2,
    tp.JobGraph.independent(8).grouped(4, within="rack"): 1,
    tp.JobGraph.independent(2): 3,
}


def in_racks(free: Sequence[int], size: int = 4) -> tp.Cluster:
    """Return a cluster of machines in racks, each with so many free GPUs."""
    machine = tp.Topology.from_links(
        size, [(u, v, 50.0, tp.LinkKind.NVSWITCH) for u in range(size) for v in range(u)]
    )
    names = tuple(f"m{i}" for i in range(len(free)))
    cluster = tp.Cluster(tp.Topology.cluster(machine, fabric=Fabric(names, (Level("rack", RACKS, 25.0),))))
    for number, left in enumerate(free):
        for gpu in range(number * size + left, (number + 1) * size):
            cluster.allocate(f"{number} {gpu}", [gpu])
    return cluster


def of_rack(free: Sequence[int], rack: str, taken: int) -> float:
    """The expected fragment of a rack, with as many GPUs taken."""
    left = sum(gpus for gpus, name in zip(free, RACKS, strict=True) if name == rack) - taken
    total = sum(KINDS.values())
    return sum(weight / total * left for need, weight in ((6, 2), (4, 1)) if left < need)


@given(st.lists(st.integers(0, 4), min_size=5, max_size=5).filter(any), st.data())
def test_domains_of_which_typical_jobs_need_the_whole_have_fragments(
    free: list[int], data: st.DataObject
) -> None:
    size = data.draw(st.integers(1, max(free)))
    cluster, job = in_racks(free), tp.JobGraph.independent(size)
    policy = tp.policies.FragmentationGradientDescent(typical=TypicalJobs(KINDS), rounded=False)
    alone = tp.policies.FragmentationGradientDescent(
        typical=TypicalJobs({job.with_(within=None, groups=()): weight for job, weight in KINDS.items()}),
        rounded=False,
    )
    of_machine = {
        found.gpus[0] // 4: found.scores["fragmentation_score"]
        for found in alone.explain(job, cluster, top=10).candidates
    }
    placement = policy.place(job, cluster)
    assert placement is not None
    scores = {}
    for machine, left in enumerate(free):
        if left >= size:
            rack = RACKS[machine]
            less = 0.0 if rack is None else of_rack(free, rack, 0) - of_rack(free, rack, size)
            scores[machine] = of_machine[machine] + (0.0 if rack is None else 1 / (1 + math.exp(-less)))
    best = max(scores.values())
    chosen = placement.gpus[0] // 4
    assert scores[chosen] == pytest.approx(best)
    assert chosen == min(machine for machine, score in scores.items() if score > best - 1e-9)
    ranked = [found.gpus[0] // 4 for found in policy.explain(job, cluster, top=10).candidates]
    assert [scores[machine] for machine in ranked] == pytest.approx(
        sorted(scores.values(), reverse=True)[: len(ranked)]
    )


def test_a_rack_that_a_typical_job_needs_is_not_broken() -> None:
    cluster = in_racks([4, 4, 3, 4, 0])
    job = tp.JobGraph.independent(4)
    whole = tp.JobGraph.independent(8).with_(within="rack")
    told = tp.policies.FragmentationGradientDescent(typical=TypicalJobs({whole: 1, job: 4}))
    assert tp.policies.FragmentationGradientDescent().place(job, cluster).gpus == (0, 1, 2, 3)
    assert told.place(job, cluster).gpus == (12, 13, 14, 15)
    assert TypicalJobs.of([job.with_(within="rack"), job]).weights.keys() == {job.with_(within="rack"), job}
