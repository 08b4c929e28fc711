"""One job of several roles: what each role keeps, and what goes between them."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

import topoplace as tp
from topoplace import JobGraph

PREFILL = JobGraph.parallel(tensor=4, name="prefill").with_(within="rack")
DECODE = JobGraph.parallel(tensor=2, data=2, name="decode").grouped("tensor", within="machine")


def some_job(size: int, pattern: int, group: int) -> JobGraph:
    made: list[Callable[[int], JobGraph]] = [JobGraph.ring, JobGraph.clique, JobGraph.independent]
    job = made[pattern](size)
    return job.grouped(min(group, size), within="machine") if group else job


jobs = st.builds(some_job, st.integers(1, 6), st.integers(0, 2), st.integers(0, 3))


def carried(job: JobGraph) -> dict[tuple[int, int], float]:
    return {(a, b): weight for a, b, weight in job.edges}


@given(st.lists(jobs, min_size=1, max_size=4), st.randoms(use_true_random=False))
def test_the_parts_of_a_joined_job_are_its_roles(parts: list[JobGraph], random: object) -> None:
    """Every edge, collective and group of a role is there with shifted tasks, and nothing else but the traffic."""
    traffic = {
        (i, j): 1.0 + i + j
        for i in range(len(parts))
        for j in range(i)
        if random.random() < 0.5  # type: ignore[attr-defined]
    }
    job = JobGraph.joined(parts, traffic)
    firsts = [sum(part.num_tasks for part in parts[:i]) for i in range(len(parts))]
    assert job.num_tasks == sum(part.num_tasks for part in parts)
    assert [tasks for name, _ in job.roles for (tasks,) in [job.dimensions[name]]] == [
        tuple(range(first, first + part.num_tasks)) for part, first in zip(parts, firsts, strict=True)
    ]
    expected: dict[tuple[int, int], float] = {}
    for part, first in zip(parts, firsts, strict=True):
        expected |= {(a + first, b + first): weight for (a, b), weight in carried(part).items()}
    for (i, j), gigabytes in traffic.items():
        sizes = parts[i].num_tasks * parts[j].num_tasks
        expected |= {
            (firsts[j] + b, firsts[i] + a): gigabytes / sizes
            for a in range(parts[i].num_tasks)
            for b in range(parts[j].num_tasks)
        }
    assert carried(job) == expected
    groups = Counter(
        (tuple(task + first for task in group.tasks), group.within)
        for part, first in zip(parts, firsts, strict=True)
        for group in part.groups
    )
    assert Counter((group.tasks, group.within) for group in job.groups) == groups
    assert JobGraph.from_json(job.to_json()) == job


def test_prefill_and_decode_by_name() -> None:
    job = JobGraph.joined([PREFILL, DECODE], {("decode", "prefill"): 8.0})
    assert job.roles == (("prefill", 4), ("decode", 4))
    assert job.dimensions["prefill"] == ((0, 1, 2, 3),)
    assert job.dimensions["tensor"] == ((0, 1, 2, 3), (4, 5), (6, 7))
    assert len(job.dimensions["prefill to decode"]) == 16
    assert job.groups == (
        tp.Group((0, 1, 2, 3), "rack"),
        tp.Group((4, 5), "machine"),
        tp.Group((6, 7), "machine"),
    )
    assert job.within is None
    between = [one for one in job.collectives if one.dimension == "prefill to decode"]
    assert math.fsum(one.gigabytes for one in between) == 8.0
    assert job.grouped("decode", prefer="rack").groups[1] == tp.Group((4, 5, 6, 7), prefer="rack")


def test_requirements_of_all_tasks_become_groups_and_amounts_add_up() -> None:
    one = JobGraph.ring(2).with_(
        name="one", single_machine=True, prefer="rack", cpus=4, memory_gb=8.0, gpu_model="H100"
    )
    two = JobGraph.ring(4).with_(
        name="two", cpus=8, memory_gb=16.0, gpu_model="H100", bandwidth_sensitive=True
    )
    job = JobGraph.joined([one, two])
    assert set(job.groups) == {tp.Group((0, 1), "machine"), tp.Group((0, 1), prefer="rack")}
    assert (job.cpus, job.memory_gb, job.gpu_model) == (12, 24.0, "H100")
    assert (job.single_machine, job.prefer, job.bandwidth_sensitive, job.processes) == (False, None, True, 1)


def test_the_task_that_computes_most_counts_for_all_roles() -> None:
    one, two = JobGraph.ring(2).with_(tflop=3.0), JobGraph.ring(4).with_(tflop=5.0)
    assert JobGraph.joined([one, two]).tflop == 5.0
    assert JobGraph.joined([one, two, JobGraph.ring(3)]).tflop is None


def test_roles_of_one_name_are_numbered_and_survive_with() -> None:
    job = JobGraph.joined([JobGraph.ring(3)] * 2).with_(name="service", priority=2)
    assert job.roles == (("ring 0", 3), ("ring 1", 3))
    assert job.dimensions["ring 1"] == ((3, 4, 5),)
    assert job.dimensions["all"] == ((0, 1, 2), (3, 4, 5))


def test_a_joined_job_is_placed_with_each_role_where_it_must_be() -> None:
    racks = [tp.Topology.from_links(4, [], 12.0, name=f"m{i}") for i in range(4)]
    fabric = tp.Fabric(tuple(f"m{i}" for i in range(4)), (tp.Level("rack", ("a", "b", "a", "b")),))
    cluster = tp.Cluster(tp.Topology.cluster(racks, fabric=fabric))
    cluster.allocate("other", [0, 1, 4])
    prefill = JobGraph.ring(5).with_(name="prefill", within="rack")
    decode = JobGraph.ring(4).with_(name="decode", single_machine=True)
    placement = tp.policies.get("topo-aware").place(JobGraph.joined([prefill, decode]), cluster)
    assert placement is not None
    machines = [gpu // 4 for gpu in placement.gpus]
    assert len({machine % 2 for machine in machines[:5]}) == 1
    assert len(set(machines[5:])) == 1


@pytest.mark.parametrize(
    ("roles", "traffic", "message"),
    [
        ([], None, "roles is empty"),
        ([PREFILL, 3], None, r"roles\[1\] = 3"),
        ([JobGraph.without_gpus(cpus=1)], None, r"roles\[0\] has no tasks"),
        (
            [PREFILL, DECODE],
            {("prefill", "router"): 1.0},
            "'router' is no role; the roles are prefill, decode",
        ),
        ([PREFILL, DECODE], {(0, 2): 1.0}, r"traffic\[\(0, 2\)\] = 2"),
        ([PREFILL, DECODE], {(0, 0): 1.0}, "a role and itself"),
        ([PREFILL, DECODE], {(0, 1): 1.0, ("decode", 0): 2.0}, "repeats"),
        ([PREFILL, DECODE], {(0, 1): -1.0}, "-1"),
        ([PREFILL, DECODE], {(0, 1): math.nan}, "nan"),
        ([PREFILL, DECODE], {(0, 1): "8"}, "'8'"),
        ([PREFILL, DECODE], {0: 1.0}, r"traffic\[0\]"),
        ([PREFILL, DECODE], [1.0], "traffic = "),
        ([PREFILL, DECODE.with_(gpu_model="H100")], None, r"roles\[1\]\.gpu_model = 'H100' differs"),
        ([PREFILL, DECODE.with_(priority=1)], None, r"roles\[1\]\.priority"),
        ([PREFILL.with_(cpus=4), DECODE], None, r"roles\[1\]\.cpus is 0 for each task"),
        ([PREFILL.with_(processes=4), DECODE], None, r"roles\[1\]\.processes = 1"),
        ([PREFILL, DECODE.with_(max_machines=1)], None, r"roles\[1\]\.max_machines = 1"),
        ([PREFILL, DECODE.with_(balanced="rack")], None, r"roles\[1\]\.balanced = 'rack'"),
        ([JobGraph.ring(2).with_(name="all")], None, "has the name of a dimension, 'all'"),
        ([JobGraph.independent(1 << 11)] * 2, {(0, 1): 1.0}, "4194304 pairs of tasks"),
        ([JobGraph.independent(600_000)] * 2, None, "roles have 1200000 tasks; at most 1048576"),
    ],
)
def test_wrong_roles_are_refused_by_name(roles: list[JobGraph], traffic: object, message: str) -> None:
    with pytest.raises(tp.JobGraphError, match=message):
        JobGraph.joined(roles, traffic)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("roles", "message"),
    [
        ([["a", 2], ["b", 3]], "roles have 5 tasks, the job has 4"),
        ([["a", 2], ["a", 2]], r"roles\[1\] has the name of roles\[0\]"),
        ([["a", 0], ["b", 4]], r"roles\[0\]\[1\] = 0"),
        ([["a"]], r"roles\[0\] = .* is not \(name, number of tasks\)"),
        (3, "roles = 3"),
    ],
)
def test_wrong_roles_in_json_are_refused(roles: object, message: str) -> None:
    with pytest.raises(tp.JobGraphError, match=message):
        JobGraph(4, roles=roles)  # type: ignore[arg-type]
