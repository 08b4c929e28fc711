"""The rules of schedulers in use: small cases with known answers, and the answers that their own suites state."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import topoplace as tp
from scheduler_cases import Answer, kueue_answers, slurm_answers, volcano_answers

SUITES = {
    "kueue": (kueue_answers, 86),
    "volcano": (volcano_answers, 25),
    "slurm": (slurm_answers, 12),
}
"""What reads the answers of a suite, and how many of them are the same here."""
DIFFERENT = {
    "kueue-cache-L4542/0": "one pod: its slice is the whole job, so its level cannot be above that of the job",
    "kueue-cache-L7372/0": "a preferred affinity of nodes, which is not modelled",
    "volcano-L3294": "the stated node has no room for both pods of the first subgroup",
}
"""Why an answer differs."""


@pytest.mark.parametrize("suite", SUITES)
def test_the_answer_is_that_of_the_original(
    shared: Path, suite: str, record_property: pytest.RecordProperty
) -> None:
    folder = shared / "data" / "rivals"
    if not folder.is_dir():
        pytest.skip(f"needs the cases of other schedulers, and {folder} does not exist")
    read, least = SUITES[suite]
    answers, others = read(folder)
    different = [answer.case.name for answer in answers if not is_same(answer)]
    record_property("answers", f"{len(answers)} asked, {len(different)} different, others: {others}")
    assert set(different) <= DIFFERENT.keys()
    assert len(answers) - len(different) >= least


def is_same(answer: Answer) -> bool:
    """Return whether the policy answers as the scheduler does; a refused job is one that does not fit."""
    cluster = answer.case.cluster()
    try:
        placement = cluster and tp.policies.get(answer.policy).place(answer.case.job(), cluster)
    except ValueError:
        placement = None
    found = names(placement) if placement else []
    return (
        (placement is not None) == answer.fits
        and (answer.places is None or Counter(found) == answer.places)
        and all(found[task] == machine for task, machine in answer.of_task.items())
    )


def names(placement: tp.Placement) -> list[str]:
    """Return the machine of each task."""
    topology = placement.topology
    return [topology.machine_names[topology.machine_of[gpu]] for gpu in placement.gpus]


# ---- small cases of our own ----------------------------------------------------------------------------------


def cluster_of(free: list[int], *levels: tuple[str, str], gpus: int = 8, **options: Any) -> tp.Cluster:
    """Return machines with so many free GPUs, m0 and so on; a level is its name and the domain of each machine."""
    machines = tuple(f"m{i}" for i in range(len(free)))
    fabric = tp.Fabric(machines, tuple(tp.Level(name, tuple(domains)) for name, domains in levels))
    machine = tp.Topology.from_links(gpus, [], 12.0)
    topology = tp.Topology.cluster([machine] * len(free), fabric=fabric)
    cluster = tp.Cluster(topology, **options)
    for number, count in enumerate(free):
        if count < gpus:
            cluster.allocate(f"busy{number}", [number * gpus + gpu for gpu in range(gpus - count)])
    return cluster


def counts(policy: str, job: tp.JobGraph, cluster: tp.Cluster) -> dict[str, int] | None:
    """Return how many tasks each machine gets."""
    placement = tp.policies.get(policy).place(job, cluster)
    return dict(sorted(Counter(names(placement)).items())) if placement else None


def tasks(number: int, **wishes: Any) -> tp.JobGraph:
    return tp.JobGraph.independent(number).with_(**wishes)


RACKS = ("rack", "aabbcc")
PODS = ("pod", "xxxxyy")


@pytest.mark.parametrize(
    ("policy", "job", "expected"),
    [
        ("kueue-best-fit", tasks(3), {"m2": 3}),  # the smallest machine that fits
        ("kueue-least-free", tasks(3), {"m2": 3}),
        ("kueue-best-fit", tasks(9), {"m0": 8, "m4": 1}),  # the largest first, the last one fits best
        ("kueue-least-free", tasks(9), {"m1": 2, "m2": 4, "m4": 1, "m5": 2}),  # the smallest first
        ("kueue-best-fit", tasks(6, within="rack"), {"m4": 1, "m5": 5}),  # racks have 10, 10 and 6 free
        ("kueue-best-fit", tasks(7, within="rack"), {"m0": 7}),
        ("kueue-best-fit", tasks(12, within="rack"), None),
        ("kueue-best-fit", tasks(12, prefer="rack"), {"m0": 8, "m2": 4}),  # one pod; inside, rack after rack
        ("kueue-best-fit", tasks(8).grouped(4, within="machine"), {"m0": 8}),
    ],
)
def test_kueue(policy: str, job: tp.JobGraph, expected: dict[str, int] | None) -> None:
    cluster = cluster_of([8, 2, 4, 6, 1, 5], RACKS, PODS)
    assert counts(policy, job, cluster) == expected


def test_kueue_takes_the_smallest_machines_below_slices() -> None:
    """A required level is filled from the largest machine; in the domain of a slice, the original takes small ones."""
    cluster = cluster_of([3, 2, 1, 2, 3], ("rack", "aaabb"))
    assert counts("kueue-best-fit", tasks(4).grouped(4, within="rack"), cluster) == {"m3": 1, "m4": 3}
    sliced = tasks(8).grouped(4, within="rack")
    assert counts("kueue-best-fit", sliced, cluster) == {"m0": 1, "m1": 2, "m2": 1, "m3": 2, "m4": 2}


@pytest.mark.parametrize(
    ("job", "expected"),
    [
        (tasks(12, prefer="rack"), {"m0": 6, "m1": 6}),
        (tasks(13, prefer="rack"), {"m0": 7, "m1": 6}),  # what remains goes to the one with the most room
        (tasks(12, within="rack"), {"m0": 8, "m1": 4}),  # as kueue-best-fit
        (tasks(12).grouped(12, prefer="machine"), {"m0": 6, "m1": 6}),
        (
            tasks(20, prefer="rack"),
            {"m0": 8, "m1": 6, "m2": 6},
        ),  # three machines of two racks, six or more on each
        (
            tasks(12, prefer="rack").grouped(4, within="machine"),
            {"m0": 8, "m1": 4},
        ),  # three slices: two and one
    ],
)
def test_kueue_balanced(job: tp.JobGraph, expected: dict[str, int]) -> None:
    assert counts("kueue-balanced", job, cluster_of([8, 8, 8, 8], ("rack", "aabb"))) == expected


LEAVES = ("leaf", "aaabbccc")
SPINES = ("spine", "xxxxxyyy")


@pytest.mark.parametrize(
    ("free", "job", "expected"),
    [
        ([1] * 8, tasks(2), {"m3": 1, "m4": 1}),  # the leaf switch of two
        ([1] * 8, tasks(3), {"m0": 1, "m1": 1, "m2": 1}),
        (
            [1] * 8,
            tasks(4),
            {"m0": 1, "m1": 1, "m2": 1, "m3": 1},
        ),  # under x, its largest leaf switch, then the other
        ([1, 1, 0, 1, 1, 1, 1, 1], tasks(4), {"m0": 1, "m1": 1, "m3": 1, "m4": 1}),
        ([1] * 8, tasks(6), {"m0": 1, "m1": 1, "m2": 1, "m3": 1, "m4": 1, "m5": 1}),
        ([1] * 8, tasks(4, within="leaf"), None),  # --switches=1
        ([0, 1, 0, 1, 1, 1, 1, 0], tasks(2, within="leaf"), {"m3": 1, "m4": 1}),
        ([0, 2, 0, 1, 2, 2, 1, 0], tasks(2, single_machine=True), {"m1": 2}),  # --nodes=1
    ],
)
def test_slurm_tree(free: list[int], job: tp.JobGraph, expected: dict[str, int] | None) -> None:
    assert counts("slurm-tree", job, cluster_of(free, LEAVES, SPINES, gpus=max(free))) == expected


BASE_BLOCKS = ("block4", "aaaabbbbccccdddd")
BLOCKS_OF_8 = ("block8", "xxxxxxxxyyyyyyyy")


@pytest.mark.parametrize(
    ("busy", "job", "expected"),
    [
        ({4, 5, 6}, tasks(1), "b"),  # the base block with the least room
        ({4, 5, 6}, tasks(5), "aaaab"),  # the block of eight that it fills
        ({4, 5, 6}, tasks(8), "ccccdddd"),
        ({0, 4, 8, 12}, tasks(4), None),  # no base block has four, and no other may be used
        ({0, 4, 8, 12}, tasks(6), "cccddd"),  # of equal blocks, the last
        ({0, 4, 8, 12}, tasks(12), "aaabbbcccddd"),
        ({0, 4, 8, 12}, tasks(9), "bbbcccddd"),  # one block of eight, and of the other what fits
        ({0, 1, 4, 8, 9, 12}, tasks(6), None),  # two blocks of eight have five each
        (set[int](), tasks(6).grouped(3, within="block4"), "cccddd"),
        (
            {0, 4, 8},
            tasks(9).grouped(3, within="block4"),
            "aaabbbccc",
        ),  # a segment in each block that it fills
        ({0, 1, 4, 5, 8, 9, 12, 13}, tasks(6).grouped(3, within="block4"), None),
    ],
)
def test_slurm_block(busy: set[int], job: tp.JobGraph, expected: str | None) -> None:
    cluster = cluster_of([int(i not in busy) for i in range(16)], BASE_BLOCKS, BLOCKS_OF_8, gpus=1)
    placement = tp.policies.get("slurm-block").place(job, cluster)
    blocks = placement and "".join(
        BASE_BLOCKS[1][int(name[1:])] for name in sorted(names(placement), key=_number)
    )
    assert blocks == expected


def _number(name: str) -> int:
    return int(name[1:])


@pytest.mark.parametrize(
    ("job", "expected"),
    [
        (tasks(1), {"m4": 1}),  # the fullest machine
        (tasks(6), {"m1": 2, "m4": 1, "m5": 3}),  # pod after pod, in the fullest hypernodes
        (tasks(6, within="rack"), {"m4": 1, "m5": 5}),  # the rack that it fills most
        (tasks(12, within="pod"), {"m0": 8, "m1": 2, "m2": 2}),  # m1 is the fullest, m0 nearest to it
        (tasks(12, within="rack"), None),
        (tasks(6, prefer="pod"), {"m4": 1, "m5": 5}),  # near the first one, in the fullest machine
        (tasks(8).grouped(4, within="rack"), {"m0": 2, "m1": 2, "m4": 1, "m5": 3}),
        (tasks(5, single_machine=True), {"m5": 5}),
    ],
)
def test_volcano(job: tp.JobGraph, expected: dict[str, int] | None) -> None:
    assert counts("volcano-binpack", job, cluster_of([8, 2, 4, 6, 1, 5], RACKS, PODS)) == expected


def test_kubernetes_spreads_pods_over_the_emptiest_machines() -> None:
    cluster = cluster_of([8, 2, 4, 6, 1, 5], RACKS, PODS)
    assert counts("kubernetes-default", tasks(3), cluster) == {"m0": 3}  # 87, 75 and 62 % are left
    assert counts("kubernetes-default", tasks(5), cluster) == {"m0": 4, "m3": 1}
    assert counts("kubernetes-default", tasks(4, single_machine=True), cluster) == {"m0": 4}


def test_kubernetes_weighs_what_is_left_against_balance() -> None:
    """A pod of 4 of 10 CPUs: 69 + 70 where 2 CPUs are used, 54 + 95 where half of the memory is; GPUs do not count."""
    cluster = cluster_of([4, 8], ("rack", "aa"), hosts=tp.HostResources(cpus=10, memory_gb=10.0))
    for number, job in enumerate([tasks(1, cpus=2), tasks(1, memory_gb=5.0)]):
        found = next(
            one
            for one in tp.policies.get("kueue-best-fit").explain(job, cluster, top=2).candidates
            if names(one) == [f"m{number}"]
        )
        cluster.allocate(f"host{number}", found)
    assert counts("kubernetes-default", tasks(1, cpus=4), cluster) == {"m1": 1}
    assert counts("kubernetes-default", tasks(1, cpus=1), cluster) == {"m0": 1}


# ---- pod after pod, as the originals do ----------------------------------------------------------------------

FEW = st.lists(st.integers(0, 4), min_size=4, max_size=8)
"""The free GPUs of machines of four."""


def domains_of(count: int, each: int) -> str:
    return "".join("abcdefgh"[i // each] for i in range(count))


@given(FEW, st.integers(1, 12), st.sampled_from([None, 1, 3]))
def test_kubernetes_by_one_pod_at_a_time(free: list[int], size: int, cpus: int | None) -> None:
    """The score of a node by the plugins' formulas; a node without GPUs left is filtered out."""
    hosts = None if cpus is None else tp.HostResources(16, 64.0)
    cluster = cluster_of(free, ("rack", domains_of(len(free), 2)), gpus=4, hosts=hosts)
    job = tasks(size) if cpus is None else tasks(size, cpus=cpus * size, memory_gb=2.0 * size)
    pods = [0] * len(free)

    def score(node: int) -> int:
        number = pods[node] + 1
        if cpus is None:
            return (free[node] - number) * 100 // 4
        used = [cpus * number / 16, 2 * number / 64]
        left = [int((1 - share) * 100 + 1e-9) for share in used]
        return sum(left) // 2 + int((1 - abs(used[0] - used[1]) / 2) * 100 + 1e-9)

    for _ in range(size):
        fitting = [i for i in range(len(free)) if pods[i] < free[i] and (cpus or 0) * (pods[i] + 1) <= 16]
        if not fitting:
            assert counts("kubernetes-default", job, cluster) is None
            return
        pods[max(fitting, key=lambda node: (score(node), -node))] += 1
    expected = {f"m{i}": number for i, number in enumerate(pods) if number}
    assert counts("kubernetes-default", job, cluster) == expected


@given(FEW, st.integers(1, 12), st.booleans())
def test_volcano_by_one_pod_at_a_time(free: list[int], size: int, is_near: bool) -> None:
    """The score of a node by the plugins' formulas: how full it is, and how near, or how full its hypernodes are."""
    racks, rows = domains_of(len(free), 2), domains_of(len(free), 4)
    cluster = cluster_of(free, ("rack", racks), ("row", rows), gpus=4)
    job = tasks(size, prefer="row") if is_near else tasks(size)
    pods = [0] * len(free)
    tiers = [racks, rows, "a" * len(free)]

    def fullness(domains: str, node: int) -> float:
        inside = [i for i in range(len(free)) if domains[i] == domains[node]]
        return (sum(4 - free[i] + pods[i] for i in inside) + 1) / (4 * len(inside))

    def nearness(node: int) -> float:
        used = [i for i in range(len(free)) if pods[i]]
        shared = [tier for tier, at in enumerate(tiers) if len({at[i] for i in (*used, node)}) == 1]
        return (2 - shared[0]) / 2 if used else 0.0

    def scores(fitting: list[int]) -> dict[int, float]:
        if not is_near:
            worth = {i: sum(0.8**t * fullness(at, i) for t, at in enumerate(tiers)) / 2.44 for i in fitting}
            return {i: worth[i] + (4 - free[i] + pods[i] + 1) / 4 for i in fitting}
        near = {i: nearness(i) for i in fitting}
        together = {
            i: sum(pods[j] for j in range(len(free)) if racks[j] == racks[i]) / size
            for i in fitting
            if near[i] == max(near.values())
        }
        return {i: near[i] + together.get(i, 0.0) + (4 - free[i] + pods[i] + 1) / 4 for i in fitting}

    for _ in range(size):
        fitting = [i for i in range(len(free)) if pods[i] < free[i]]
        if not fitting:
            assert counts("volcano-binpack", job, cluster) is None
            return
        found = scores(fitting)
        pods[max(fitting, key=lambda node: (round(found[node], 9), -node))] += 1
    expected = {f"m{i}": number for i, number in enumerate(pods) if number}
    assert counts("volcano-binpack", job, cluster) == expected


# ---- pods of several tasks --------------------------------------------------------------------------------------

BY_PODS = ("slurm-tree", "slurm-block", "volcano-binpack", "kubernetes-default")


@pytest.mark.parametrize("policy", BY_PODS)
@given(
    free=st.lists(st.integers(0, 4), min_size=6, max_size=6),
    number=st.integers(1, 8),
    size=st.integers(2, 4),
    within=st.sampled_from([None, "rack"]),
)
def test_pods_of_several_tasks_go_where_single_tasks_of_smaller_machines_go(
    policy: str, free: list[int], number: int, size: int, within: str | None
) -> None:
    within = None if policy in ("slurm-block", "kubernetes-default") else within
    single = counts(policy, tasks(number, within=within), cluster_of(free, RACKS, PODS, gpus=4))
    large = cluster_of([size * one for one in free], RACKS, PODS, gpus=4 * size)
    job = tasks(number * size, within=within).grouped(size, within="machine")
    found = counts(policy, job, large)
    assert found == (None if single is None else {name: size * count for name, count in single.items()})


@pytest.mark.parametrize("policy", BY_PODS)
@given(
    free=st.lists(st.integers(0, 8), min_size=6, max_size=6),
    ranks=st.integers(1, 4).flatmap(lambda number: st.permutations(range(3 * number))),
)
def test_each_pod_has_one_machine(policy: str, free: list[int], ranks: list[int]) -> None:
    pods = [tp.Group(tuple(ranks[i : i + 3]), "machine") for i in range(0, len(ranks), 3)]
    job = tasks(len(ranks)).with_(groups=pods)
    placement = tp.policies.get(policy).place(job, cluster_of(free, RACKS, PODS))
    fits = sum(one // 3 for one in free) >= len(pods)
    assert (placement is not None) == fits or (fits and policy == "slurm-block")  # which uses few blocks
    if placement:
        machines = names(placement)
        assert all(len({machines[task] for task in pod.tasks}) == 1 for pod in pods)


@pytest.mark.parametrize("policy", BY_PODS)
def test_groups_inside_pods_are_met_by_them(policy: str) -> None:
    cluster = cluster_of([1, 4, 4, 2, 6, 0], RACKS, PODS)
    job = tasks(8).grouped(4, within="machine").grouped(2, within="rack")
    plain = tasks(8).grouped(4, within="machine")
    assert counts(policy, job, cluster) == counts(policy, plain, cluster)


@pytest.mark.parametrize("policy", ["slurm-block", "volcano-binpack"])
def test_pods_inside_segments_and_subgroups(policy: str) -> None:
    cluster = cluster_of([2, 3, 8, 6, 4, 4], RACKS, PODS)
    job = tasks(8).grouped(2, within="machine").grouped(4, within="rack")
    placement = tp.policies.get(policy).place(job, cluster)
    assert placement is not None
    at = names(placement)
    assert all(at[task] == at[task + 1] for task in range(0, 8, 2))
    rack = dict(zip((f"m{i}" for i in range(6)), RACKS[1], strict=True))
    assert all(len({rack[at[task]] for task in range(first, first + 4)}) == 1 for first in (0, 4))


# ---- what the originals do not know --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("policy", "job", "reason"),
    [
        (
            "kueue-best-fit",
            tasks(6, within="pod", prefer="rack"),
            "prefer = 'rack' cannot be honoured: kueue-best",
        ),
        (
            "kueue-best-fit",
            tasks(6).grouped([4, 2], within="rack"),
            "groups cannot be honoured: kueue-best-fit knows s",
        ),
        (
            "kueue-best-fit",
            tasks(6).grouped(3, prefer="rack"),
            "groups cannot be honoured: kueue-best-fit prefers",
        ),
        ("kueue-best-fit", tasks(6, within="rack").grouped(3, within="pod"), "groups cannot be honoured"),
        ("kueue-balanced", tasks(6, balanced="rack"), "balanced = 'rack' cannot be honoured"),
        (
            "slurm-tree",
            tasks(6, within="pod"),
            "within = 'pod' cannot be honoured: slurm-tree takes one leaf switch",
        ),
        (
            "slurm-tree",
            tasks(6).grouped(3, within="rack"),
            "groups cannot be honoured: slurm-tree knows no parts",
        ),
        ("slurm-block", tasks(6, within="rack"), "within = 'rack' cannot be honoured"),
        (
            "slurm-block",
            tasks(6).grouped([4, 2], within="rack"),
            "groups cannot be honoured: slurm-block takes seg",
        ),
        (
            "volcano-binpack",
            tasks(6).grouped(2, within="rack").grouped(4, within="pod"),
            "groups cannot be honoured",
        ),
        ("kubernetes-default", tasks(6, within="rack"), "within = 'rack' cannot be honoured"),
        ("kubernetes-default", tasks(6).grouped(3, within="rack"), "groups cannot be honoured"),
    ],
)
def test_what_the_original_does_not_know_is_refused_by_name(
    policy: str, job: tp.JobGraph, reason: str
) -> None:
    cluster = cluster_of([8, 2, 4, 6, 1, 5], RACKS, PODS)
    with pytest.raises(ValueError, match=f"^{reason}"):
        tp.policies.get(policy).place(job, cluster)
    refusal = tp.policies.get(policy).explain(job, cluster).refusal
    assert refusal is not None
    assert refusal.permanent


@pytest.mark.parametrize("policy", ["kueue-best-fit", "volcano-binpack"])
def test_levels_that_cross_are_refused(policy: str) -> None:
    cluster = cluster_of([1, 1, 1, 1], ("rack", "aabb"), ("zone", "xyxy"), gpus=1)
    job = tasks(2).grouped(2, within="rack").grouped(1, within="zone")
    with pytest.raises(ValueError, match=f"^groups cannot be honoured: {policy} knows levels"):
        tp.policies.get(policy).place(job, cluster)


def test_slices_of_tasks_that_do_not_follow_each_other() -> None:
    job = tasks(4).with_(groups=[tp.Group((0, 2), "rack"), tp.Group((1, 3), "rack")])
    placement = tp.policies.get("kueue-best-fit").place(job, cluster_of([2, 1, 1], ("rack", "abb"), gpus=2))
    assert placement is not None
    assert names(placement) == ["m0", "m1", "m0", "m2"]


@pytest.mark.parametrize(
    "policy", [name for name in tp.policies.names() if name.startswith(("kueue", "slurm"))]
)
def test_cpus_count_as_room(policy: str) -> None:
    """Machines of 4, 8 and 16 CPUs have room for 1, 2 and 4 of these tasks, however many GPUs are free."""
    hosts = [tp.HostResources(cpus, 64.0) for cpus in (16, 8, 4)]
    cluster = cluster_of([8, 8, 8], ("rack", "abc"), hosts=hosts)
    assert counts(policy, tasks(2, cpus=8), cluster) == {"m1": 2}
