"""Collectives: what each pair of tasks carries, what a job's graph means, and how both are kept."""

from __future__ import annotations

import json
import pickle
from collections import defaultdict
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import topoplace as tp
from topoplace.collective.bandwidth import DEFAULT_RATES
from topoplace.collective.networks import collective_network
from topoplace.engine.request import exact_request_key, request_key
from topoplace.jobs.collectives import PATTERN_KINDS, arrays_of
from topoplace.objectives.communication import RING_KINDS
from topoplace.objectives.job_bandwidth import only_ring

Collective, JobGraph = tp.Collective, tp.JobGraph
KINDS = ("all_reduce", "all_gather", "reduce_scatter", "all_to_all", "broadcast", "send")


@st.composite
def collectives(draw: st.DrawFn, num_tasks: int = 9) -> tp.Collective:
    tasks = draw(st.permutations(range(num_tasks)))[: draw(st.integers(2, num_tasks))]
    gigabytes = draw(st.floats(1e-3, 1e3))
    kind, dimension = draw(st.sampled_from(KINDS)), draw(st.sampled_from("abc"))
    shares = [draw(st.sampled_from([0.5, 1.0, 4.0])) for _ in tasks if kind == "all_to_all"]
    return Collective(kind, tuple(tasks), gigabytes, dimension, draw(st.sampled_from([(), tuple(shares)])))


def sent(one: tp.Collective) -> dict[tuple[int, int], float]:
    """What each task sends to each other one, by the steps of the algorithm on chunks."""
    tasks, n, amount = one.tasks, len(one.tasks), one.gigabytes
    flows: dict[tuple[int, int], float] = defaultdict(float)
    if one.kind in ("all_reduce", "all_gather", "reduce_scatter"):
        for _step in range((n - 1) * (2 if one.kind == "all_reduce" else 1)):
            for i in range(n):  # each task passes one chunk on
                flows[tasks[i], tasks[(i + 1) % n]] += amount / n
    elif one.kind == "all_to_all":
        shares = one.shares or [1.0] * n
        for a in tasks:
            for b, share in zip(tasks, shares, strict=True):
                if a != b:
                    flows[a, b] += amount * share / sum(shares)
    elif one.kind == "broadcast":
        for i in range(n - 1):
            flows[tasks[i], tasks[i + 1]] += amount
    else:
        for i in range(n - 1):
            flows[tasks[i], tasks[i + 1]] += amount / 2
            flows[tasks[i + 1], tasks[i]] += amount / 2
    return flows


@given(st.lists(collectives(), max_size=6))
def test_edges_carry_what_the_steps_of_each_algorithm_send(given_ones: list[tp.Collective]) -> None:
    expected: dict[tuple[int, int], float] = defaultdict(float)
    for one in given_ones:
        for (a, b), gigabytes in sent(one).items():
            expected[min(a, b), max(a, b)] += gigabytes
    job = JobGraph.from_collectives(9, given_ones, name="mine")
    assert [(a, b) for a, b, _ in job.edges] == sorted(expected)
    assert {(a, b): weight for a, b, weight in job.edges} == pytest.approx(expected)
    assert job.collectives == tuple(given_ones)


@st.composite
def job_graphs(draw: st.DrawFn) -> tp.JobGraph:
    """Jobs of up to 9 tasks: a pattern, any graph, or stated collectives."""
    size = draw(st.integers(1, 9))
    made = draw(st.sampled_from([*PATTERN_KINDS, "chain", "graph", "collectives"]))
    if made == "collectives" and size > 1:
        return JobGraph.from_collectives(size, draw(st.lists(collectives(size), max_size=3)))
    if made not in ("graph", "collectives"):
        return getattr(JobGraph, made)(size)
    pairs = [(a, b) for b in range(size) for a in range(b)]
    chosen = draw(st.lists(st.sampled_from(pairs), unique=True)) if pairs else []
    return JobGraph.from_edges(size, [(a, b, draw(st.floats(0.1, 9))) for a, b in chosen])


@given(job_graphs())
def test_kernels_get_the_traffic_that_users_see(job: tp.JobGraph) -> None:
    network = collective_network(tp.Topology.cluster(tp.machines.get("dgx1-v100"), 2), DEFAULT_RATES)
    spread = np.arange(job.num_tasks, dtype=np.int32) * 5 % 16
    (flows, rings), (seen, seen_rings) = (
        network.flows(one, spread) for one in (job.traffic_arrays, arrays_of(job.traffic))
    )
    assert [np.asarray(one).tolist() for one in flows] == [np.asarray(one).tolist() for one in seen]
    assert rings == seen_rings
    batches = [batch for listed in job.traffic.values() for batch in listed]
    is_ring = len(batches) == 1 and batches[0].kind in RING_KINDS
    found = only_ring(job)
    if is_ring and batches[0].tasks.shape == (1, job.num_tasks):
        assert found is not None
        assert found.tasks == batches[0].tasks[0].tolist()
        assert found.gigabytes == batches[0].carried[0]
    else:
        assert found is None


def test_small_cases_are_as_documented() -> None:
    pair = JobGraph.from_collectives(2, [Collective("all_reduce", (0, 1), 3)])
    assert pair.edges == ((0, 1, 6.0),)  # both halves of the ring
    ring = JobGraph.from_collectives(
        4, [Collective("all_reduce", (0, 1, 2, 3), gigabytes=1.5, dimension="data")]
    )
    assert ring.edges == ((0, 1, 2.25), (0, 3, 2.25), (1, 2, 2.25), (2, 3, 2.25))
    chain = JobGraph.from_collectives(3, [Collective("send", [2, 0, 1], 2)])  # type: ignore[arg-type]
    assert chain.edges == ((0, 1, 2.0), (0, 2, 2.0))


@pytest.mark.parametrize("name", ["ring", "tree", "allreduce"])
@pytest.mark.parametrize("k", [2, 3, 4, 9])
def test_patterns_of_all_reduce_mean_one_of_1_gb(name: str, k: int) -> None:
    job = getattr(JobGraph, name)(k)
    assert job.collectives == (Collective("all_reduce", tuple(range(k)), 1.0),)
    assert job.dimensions == {"all": (tuple(range(k)),)}
    assert all(weight == 1.0 for *_, weight in job.edges)
    assert JobGraph.from_json(job.to_json()).collectives == job.collectives
    assert "collectives" not in job.to_json()


def test_a_clique_is_an_all_to_all_and_other_graphs_send_along_their_edges() -> None:
    assert JobGraph.clique(5).collectives == (Collective("all_to_all", (0, 1, 2, 3, 4), 1.0),)
    assert JobGraph.star(3).collectives == (Collective("send", (0, 1), 1.0), Collective("send", (0, 2), 1.0))
    weighted = JobGraph.from_edges(3, [(2, 1, 2.5)])
    assert weighted.collectives == (Collective("send", (1, 2), 2.5),)
    unlike = JobGraph.from_edges(3, [(0, 1, 2.0), (1, 2), (0, 2)], name="ring")
    assert {one.kind for one in unlike.collectives} == {"send"}
    for one in (JobGraph.ring(1), JobGraph.independent(4), JobGraph.without_gpus(cpus=1)):
        assert one.collectives == ()
        assert one.dimensions == {}


@given(
    st.sampled_from(["ring", "tree", "allreduce", "clique", "star", "chain"]), st.integers(1, 5), st.data()
)
def test_another_name_does_not_change_what_a_job_does(name: str, k: int, data: st.DataObject) -> None:
    job = renamed = getattr(JobGraph, name)(k)
    for new in data.draw(
        st.lists(st.sampled_from(["mine", "ring", "tree", "clique", "star"]), min_size=1, max_size=3)
    ):
        renamed = renamed.with_(name=new)
        assert renamed.collectives == job.collectives
        assert renamed.edges == job.edges
        assert JobGraph.from_json(renamed.to_json()) == renamed
        assert JobGraph.from_json(renamed.to_json()).collectives == job.collectives
    assert renamed.with_(name=job.name) == job


def test_collectives_that_the_graph_implies_are_not_stated() -> None:
    assert JobGraph.from_collectives(3, [Collective("send", (0, 2), 4)]) == JobGraph.from_edges(
        3, [(0, 2, 4)]
    )
    assert JobGraph(
        3, JobGraph.ring(3).edges, "ring", stated_collectives=JobGraph.ring(3).collectives
    ) == JobGraph.ring(3)


@given(st.lists(collectives(), max_size=5))
def test_json_pickle_and_copies_keep_collectives(given_ones: list[tp.Collective]) -> None:
    job = JobGraph.from_collectives(9, given_ones).with_(cpus=2, name="a")
    text = job.to_json()
    assert JobGraph.from_json(text) == job
    assert JobGraph.from_json(text).collectives == tuple(given_ones)
    assert JobGraph.from_json(text).to_json() == text
    copy = pickle.loads(pickle.dumps(job))
    assert (copy, hash(copy), copy.collectives) == (job, hash(job), job.collectives)
    assert job.with_(cpus=3).collectives == tuple(given_ones)


def test_json_of_edges_that_are_not_the_sums_has_both() -> None:
    one = Collective("all_reduce", (0, 1, 2), 1.0)
    job = JobGraph(3, ((0, 1, 7.0),), stated_collectives=(one,))
    assert json.loads(job.to_json())["edges"] == [[0, 1, 7.0]]
    assert JobGraph.from_json(job.to_json()) == job
    assert "edges" not in json.loads(JobGraph.from_collectives(3, [one]).to_json())


@given(st.lists(collectives(), max_size=8))
def test_dimensions_have_each_largest_group_once(given_ones: list[tp.Collective]) -> None:
    job = JobGraph.from_collectives(9, given_ones)
    assert list(job.dimensions) == list(dict.fromkeys(one.dimension for one in job.collectives))
    for name, groups in job.dimensions.items():
        sets = [frozenset(one.tasks) for one in job.collectives if one.dimension == name]
        assert {frozenset(group) for group in groups} == {
            s for s in sets if not any(s < other for other in sets)
        }
        assert len({frozenset(group) for group in groups}) == len(groups)
    with pytest.raises(TypeError):
        job.dimensions["x"] = ()  # type: ignore[index]


def test_jobs_of_equal_edges_and_other_collectives_are_told_apart() -> None:
    once = JobGraph.from_collectives(4, [Collective("all_gather", (0, 1, 2, 3), 2)])
    twice = JobGraph.from_collectives(4, [Collective("all_reduce", (0, 1, 2, 3), 1)])
    assert once.edges == twice.edges
    assert once != twice
    assert request_key(once) != request_key(twice)
    assert exact_request_key(once) != exact_request_key(twice)


BAD: list[tuple[Any, str]] = [
    (
        lambda: Collective("allreduce", (0, 1), 1),
        "kind = 'allreduce' is not one of .*did you mean all_reduce",
    ),
    (lambda: Collective(3, (0, 1), 1), "kind = 3 is not one of"),  # type: ignore[arg-type]
    (lambda: Collective("send", (0,), 1), r"tasks = \(0,\): a collective has at least two tasks"),
    (lambda: Collective("send", {0, 1}, 1), r"tasks = \{0, 1\} is a set"),  # type: ignore[arg-type]
    (lambda: Collective("send", (0, 1, 0), 1), r"tasks\[2\] = 0 repeats tasks\[0\]"),
    (lambda: Collective("send", (0, -1), 1), r"tasks\[1\] = -1 is not in 0\.\."),
    (lambda: Collective("send", (0, 1.0), 1), r"tasks\[1\] = 1.0 is not an integer"),  # type: ignore[arg-type]
    (lambda: Collective("send", (0, 1), 0), "gigabytes = 0 is not above 0"),
    (lambda: Collective("send", (0, 1), float("nan")), "gigabytes = nan is not a finite number"),
    (lambda: Collective("send", (0, 1), "1"), "gigabytes = '1' is not a number"),  # type: ignore[arg-type]
    (lambda: Collective("send", (0, 1), 1e15), "gigabytes = 1000000000000000.0 is more than 1000000000000"),
    (lambda: Collective("send", (0, 1), 1, ""), "dimension = '' is not a non-empty string"),
    (
        lambda: JobGraph.from_collectives(2, [Collective("send", (0, 2), 1)]),
        r"collectives\[0\].tasks\[1\] = 2 is not in 0\.\.1",
    ),
    (
        lambda: JobGraph.from_collectives(2, [("send", (0, 1), 1)]),
        r"collectives\[0\] = .* is not a Collective",
    ),  # type: ignore[list-item]
    (lambda: JobGraph.from_collectives(2, 7), "collectives = 7 is not a sequence"),  # type: ignore[arg-type]
    (lambda: JobGraph.from_collectives(0, []), "num_tasks = 0"),
    (
        lambda: JobGraph.from_collectives(5000, [Collective("all_to_all", tuple(range(5000)), 1)]),
        "collectives have 12497500 pairs of tasks; at most 8388608",
    ),
]


@pytest.mark.parametrize(("build", "message"), BAD, ids=[message for _, message in BAD])
def test_bad_collectives_are_refused_by_name(build: Any, message: str) -> None:
    with pytest.raises(tp.JobGraphError, match=message):
        build()


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        (3, r"collectives\[0\] = 3 is not a dict"),
        ({"kind": "send", "tasks": [0, 1]}, r"collectives\[0\] has no gigabytes"),
        (
            {"kind": "send", "tasks": [0, 1], "gigabytes": 1, "gb": 2},
            r"collectives\[0\] has the unknown key 'gb'",
        ),
        ({"kind": "sand", "tasks": [0, 1], "gigabytes": 1}, r"collectives\[0\]: kind = 'sand'"),
        ({"kind": "send", "tasks": 4, "gigabytes": 1}, r"collectives\[0\]: tasks = 4 is not a sequence"),
        (
            {"kind": "send", "tasks": [0, 9], "gigabytes": 1},
            r"collectives\[0\].tasks\[1\] = 9 is not in 0\.\.1",
        ),
    ],
)
def test_bad_json_is_refused_by_place(entry: Any, message: str) -> None:
    record = {"format": "topoplace.jobgraph", "version": 1, "num_tasks": 2, "collectives": [entry]}
    with pytest.raises(tp.JobGraphError, match=message):
        JobGraph.from_json(json.dumps(record))
    with pytest.raises(tp.JobGraphError, match="unknown key 'stated_collectives'"):
        JobGraph.from_json(json.dumps({**record, "stated_collectives": []}))


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=4),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["kind", "tasks", "gigabytes", "dimension", "x"]), inner, max_size=4
        )
    ),
    max_leaves=12,
)


@given(JSON)
def test_any_json_of_collectives_is_read_or_refused(value: Any) -> None:
    record = {"format": "topoplace.jobgraph", "version": 1, "num_tasks": 3, "collectives": value}
    try:
        job = JobGraph.from_json(json.dumps(record))
    except tp.JobGraphError:
        return
    assert JobGraph.from_json(job.to_json()) == job


def test_equal_shares_are_none() -> None:
    assert Collective("all_to_all", (0, 1), 2.0, shares=(3, 3)) == Collective("all_to_all", (0, 1), 2.0)
    uneven = Collective("all_to_all", (2, 0, 1), 6.0, shares=[1, 2, 0])  # type: ignore[arg-type]
    job = JobGraph.from_collectives(3, [uneven])
    assert job.edges == ((0, 1, 4.0), (0, 2, 6.0), (1, 2, 2.0))
    assert uneven.shares == (1.0, 2.0, 0.0)
    assert JobGraph.from_json(job.to_json()) == job
    assert "shares" not in JobGraph.clique(3).with_(name="mine").to_json()


@pytest.mark.parametrize(
    ("kind", "shares", "message"),
    [
        (
            "all_reduce",
            (1, 2),
            r"shares = \(1.0, 2.0\): the tasks of an all_to_all have some, not of all_reduce",
        ),
        ("all_to_all", (1, 2, 3), "shares has 3 numbers for 2 tasks"),
        ("all_to_all", (0, 0), r"shares = \(0.0, 0.0\): all are 0"),
        ("all_to_all", (1, -1), r"shares\[1\] = -1"),
        ("all_to_all", (1, float("nan")), r"shares\[1\] = nan is not a finite number"),
        ("all_to_all", ("a", 1), r"shares\[0\] = 'a' is not a number"),
        ("all_to_all", {1, 2}, "shares"),
    ],
)
def test_wrong_shares_are_named(kind: str, shares: tuple[float, ...], message: str) -> None:
    with pytest.raises(tp.JobGraphError, match=message):
        Collective(kind, (0, 1), 1.0, shares=shares)
