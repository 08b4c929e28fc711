from __future__ import annotations

import math
import pickle
from typing import Any

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import topoplace as tp
from topoplace.testing.strategies import job_graphs

JobGraph = tp.JobGraph


def pairs(job: tp.JobGraph) -> set[tuple[int, int]]:
    return {(a, b) for a, b, _ in job.edges}


@given(st.integers(1, 12))
def test_patterns_equal_those_of_networkx(k: int) -> None:
    wanted = {
        "chain": nx.path_graph(k),
        "star": nx.star_graph(k - 1),
        "clique": nx.complete_graph(k),
        "independent": nx.empty_graph(k),
        "ring": nx.cycle_graph(k),
    }
    for name, graph in wanted.items():
        job = getattr(JobGraph, name)(k)
        assert job.num_tasks == k
        assert job.name == name
        assert pairs(job) == {(min(e), max(e)) for e in graph.edges if e[0] != e[1]}
        assert all(weight == 1.0 for _, _, weight in job.edges)


@given(st.lists(st.integers(1, 4), min_size=1, max_size=3))
def test_grids_equal_those_of_networkx(dims: list[int]) -> None:
    for name, periodic in (("mesh", False), ("torus", True)):
        grid = nx.grid_graph(dims[::-1], periodic=periodic)
        index = {node: i for i, node in enumerate(sorted(grid.nodes))}
        expected = {tuple(sorted((index[a], index[b]))) for a, b in grid.edges if a != b}
        job = getattr(JobGraph, name)(dims)
        assert job.num_tasks == math.prod(dims)
        assert pairs(job) == expected


def test_small_cases_are_as_documented() -> None:
    assert JobGraph.ring(1).edges == ()
    assert JobGraph.ring(2).edges == ((0, 1, 1.0),)
    assert pairs(JobGraph.torus((2, 2))) == {(0, 1), (0, 2), (1, 3), (2, 3)}
    assert pairs(JobGraph.tree(6)) == {(0, 1), (0, 2), (1, 3), (1, 4), (2, 5)}
    assert pairs(JobGraph.allreduce(6)) == pairs(JobGraph.ring(6)) | pairs(JobGraph.tree(6))


def test_dimensions_of_one_add_nothing() -> None:
    assert JobGraph.mesh((1,) * 99).num_tasks == 1
    assert pairs(JobGraph.torus((1, 3, 1))) == pairs(JobGraph.ring(3))


def test_edges_are_sorted_pairs_with_weights() -> None:
    job = JobGraph.from_edges(3, [(2, 1), (1, 0, 2)])
    assert job.edges == ((0, 1, 2.0), (1, 2, 1.0))
    assert job == JobGraph.from_matrix([[0, 2, 0], [2, 0, 1], [0, 1, 0]])
    assert job == JobGraph.from_edges(3, np.array([[0, 1, 2], [1, 2, 1]]))


def test_from_networkx_takes_nodes_in_order() -> None:
    g = nx.Graph()
    g.add_nodes_from("cab")
    g.add_edge("a", "b", volume=3.0)
    g.add_edge("c", "b")
    assert JobGraph.from_networkx(g, "volume").edges == ((0, 2, 1.0), (1, 2, 3.0))


BAD_JOBS: list[tuple[Any, str]] = [
    (lambda: JobGraph.ring(0), r"k = 0 is not in 1\.\."),
    (lambda: JobGraph.ring(True), r"k = True is not an integer"),
    (lambda: JobGraph.star(2.0), "k = 2.0 is not an integer"),
    (lambda: JobGraph.tree(10**12), "k = 1000000000000 is not in"),
    (lambda: JobGraph.clique(10**6), "k = 1000000: a clique must have at most"),
    (lambda: JobGraph.mesh(()), "dims is empty"),
    (lambda: JobGraph.mesh((2, 0)), r"dims\[1\] = 0"),
    (lambda: JobGraph.mesh((2, -1)), r"dims\[1\] = -1"),
    (lambda: JobGraph.mesh((10**6, 10**6)), "the product of dims"),
    (lambda: JobGraph.mesh(4), "dims = 4 is not a sequence"),
    (lambda: JobGraph.from_edges(3, [(0, 3)]), r"edges\[0\]\[1\] = 3 is not in 0\.\.2"),
    (lambda: JobGraph.from_edges(3, [(0, 1), (1, 0)]), r"edges\[1\] = \(1, 0\) repeats edges\[0\]"),
    (lambda: JobGraph.from_edges(3, [(1, 1)]), r"edges\[0\] = \(1, 1\) joins a task with itself"),
    (lambda: JobGraph.from_edges(3, [(0, 1, math.nan)]), r"edges\[0\]\[2\] = nan is not a finite"),
    (lambda: JobGraph.from_edges(3, [(0, 1, 0)]), r"edges\[0\]\[2\] = 0 is not above 0"),
    (lambda: JobGraph.from_edges(3, [(0, 1, -1)]), r"edges\[0\]\[2\] = -1"),
    (lambda: JobGraph.from_edges(3, [(0, 1, "2")]), r"edges\[0\]\[2\] = '2' is not a number"),
    (lambda: JobGraph.from_edges(3, [(0, 1.0)]), r"edges\[0\]\[1\] = 1.0 is not an integer"),
    (lambda: JobGraph.from_edges(3, [(0,)]), r"edges\[0\] = \(0,\) is not"),
    (lambda: JobGraph.from_edges(3, 7), "edges = 7 is not a sequence"),
    (lambda: JobGraph.from_matrix([[0, math.inf], [math.inf, 0]]), r"weights\[0, 1\] = inf"),
    (lambda: JobGraph.from_matrix([[0, 1], [2, 0]]), r"weights\[0, 1\] = 1 but weights\[1, 0\] = 2"),
    (lambda: JobGraph.from_matrix([[1]]), r"weights\[0, 0\] = 1 is on the diagonal"),
    (lambda: JobGraph.from_matrix([[0, 1]]), r"weights has shape \(1, 2\)"),
    (lambda: JobGraph.from_matrix([[0], [1, 2]]), "weights has rows of different lengths"),
    (lambda: JobGraph.from_matrix([["a"]]), "weights has dtype"),
    (lambda: JobGraph.from_matrix(np.zeros((0, 0))), "num_tasks = 0"),
    (lambda: JobGraph.from_networkx(nx.DiGraph()), "g is a DiGraph"),
]


@pytest.mark.parametrize(("build", "message"), BAD_JOBS, ids=[message for _, message in BAD_JOBS])
def test_bad_graph_is_refused_by_name(build: Any, message: str) -> None:
    with pytest.raises(tp.JobGraphError, match=message):
        build()


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("min_utility", 1.5),
        ("min_utility", math.nan),
        ("gpu_fraction", 0.0),
        ("gpu_fraction", 1.01),
        ("gpu_memory_gb", -1),
        ("gpu_memory_gb", math.inf),
        ("memory_gb", True),
        ("memory_bandwidth", 0),
        ("tflop", 0),
        ("tflop", math.nan),
        ("cpus", -1),
        ("cpus", 1.2345),
        ("gpu_model", ""),
        ("profile", 3),
        ("bandwidth_sensitive", 1),
        ("single_machine", None),
        ("anti_affinity", "no"),
        ("name", ""),
    ],
)
def test_bad_requirement_is_refused_by_name(field: str, value: Any) -> None:
    with pytest.raises(tp.JobGraphError, match=f"{field} = "):
        JobGraph.ring(2).with_(**{field: value})


def test_unknown_and_contradicting_requirements_are_refused() -> None:
    with pytest.raises(tp.JobGraphError, match="colour is not a requirement; known: name, bandwidth"):
        JobGraph.ring(2).with_(colour="red")
    with pytest.raises(tp.JobGraphError, match="num_tasks is not a requirement"):
        JobGraph.ring(2).with_(num_tasks=3)
    with pytest.raises(tp.JobGraphError, match="exclude each other"):
        JobGraph.ring(2).with_(single_machine=True, anti_affinity=True)


def test_with_keeps_the_graph_and_the_original() -> None:
    ring = JobGraph.ring(4)
    job = ring.with_(bandwidth_sensitive=True, min_utility=0.5, gpu_memory_gb=16, cpus=4, profile="alexnet/1")
    assert (job.edges, job.name, job.num_tasks) == (ring.edges, "ring", 4)
    assert (job.bandwidth_sensitive, job.gpu_memory_gb, ring.bandwidth_sensitive) == (True, 16.0, False)
    assert job != ring
    assert pickle.loads(pickle.dumps(job)) == job
    assert hash(job) == hash(pickle.loads(pickle.dumps(job)))


def test_equal_patterns_and_their_copies_share_their_edges() -> None:
    job = tp.JobGraph.ring(8)
    assert tp.JobGraph.ring(8) is job
    assert job.with_(bandwidth_sensitive=True).edges is tp.JobGraph.ring(8).edges
    with pytest.raises(tp.JobGraphError, match="k = True"):
        tp.JobGraph.ring(True)
    with pytest.raises(tp.JobGraphError, match=r"k = 8\.0"):
        tp.JobGraph.ring(8.0)  # type: ignore[arg-type]


@st.composite
def needy_jobs(draw: st.DrawFn) -> tp.JobGraph:
    positive = st.none() | st.floats(1e-3, 1e6)
    text = st.text(st.characters(exclude_categories=("Cs",)), min_size=1, max_size=5)
    job = draw(job_graphs()).with_(
        name=draw(text),
        min_utility=draw(st.floats(0, 1)),
        gpu_memory_gb=draw(positive),
        gpu_model=draw(st.none() | text),
        gpu_fraction=draw(st.integers(1, 1000)) / 1000,
        cpus=draw(st.none() | st.integers(0, 99)),
        memory_gb=draw(positive),
        single_machine=draw(st.booleans()),
        profile=draw(st.none() | text),
        memory_bandwidth=draw(positive),
        tflop=draw(positive),
    )
    return job if job.single_machine else job.with_(anti_affinity=draw(st.booleans()))


@given(needy_jobs())
def test_json_keeps_every_field(job: tp.JobGraph) -> None:
    text = job.to_json()
    assert JobGraph.from_json(text) == job
    assert JobGraph.from_json(text.encode()).to_json() == text
    assert text.isascii()


def test_a_job_without_needs_is_short_json() -> None:
    job = JobGraph.independent(2).with_(name="custom")
    assert job.to_json() == '{"format":"topoplace.jobgraph","num_tasks":2,"version":1}'


@pytest.mark.parametrize(
    ("text", "job"),
    [
        ('{"pattern":"ring","num_tasks":4}', JobGraph.ring(4)),
        (
            '{"pattern":"star","num_tasks":3,"format":"topoplace.jobgraph","version":1,"single_machine":true}',
            JobGraph.star(3).with_(single_machine=True),
        ),
        ('{"pattern":"torus","dims":[3,2],"name":"t"}', JobGraph.torus((3, 2)).with_(name="t")),
        (
            '{"pattern":"ring","num_tasks":2,"gpu_model":["A100","H100"],"bandwidth_sensitive":true}',
            JobGraph.ring(2).with_(gpu_model=("A100", "H100"), bandwidth_sensitive=True),
        ),
    ],
)
def test_json_may_name_a_pattern(text: str, job: tp.JobGraph) -> None:
    assert JobGraph.from_json(text) == job


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "not JSON"),
        ("[]", r"the text = \[\] is not a dict"),
        ("{}", r"format and version = \(None, None\)"),
        ('{"format":"topoplace.jobgraph","version":true,"num_tasks":1}', "format and version"),
        ('{"format":"topoplace.jobgraph","version":1}', "no num_tasks"),
        ('{"format":"topoplace.jobgraph","version":1,"num_tasks":1,"x":2}', "unknown key 'x'"),
        ('{"format":"topoplace.jobgraph","version":1,"num_tasks":0}', "num_tasks = 0"),
        (
            '{"format":"topoplace.jobgraph","version":1,"num_tasks":2,"edges":[[0,1,NaN]]}',
            r"edges\[0\]\[2\]",
        ),
        ('{"format":"topoplace.jobgraph","version":1,"num_tasks":2,"edges":3}', "edges = 3"),
        ('{"pattern":"rong","num_tasks":2}', "pattern = 'rong' is not one of .* mesh, torus"),
        ('{"pattern":["ring"],"num_tasks":2}', r"pattern = \['ring'\]"),
        ('{"pattern":"ring"}', "no num_tasks"),
        ('{"pattern":"ring","dims":[2]}', "unknown key 'dims'"),
        ('{"pattern":"mesh","num_tasks":4}', "unknown key 'num_tasks'"),
        ('{"pattern":"mesh","dims":4}', "dims = 4"),
        ('{"pattern":"ring","num_tasks":2,"edges":[]}', "unknown key 'edges'"),
        ('{"pattern":"ring","num_tasks":2,"single_node":true}', "unknown key 'single_node'"),
        ('{"pattern":"ring","num_tasks":2,"priority":"high"}', "priority = 'high'"),
        ('{"pattern":"ring","num_tasks":2,"version":2}', "format and version"),
    ],
)
def test_bad_json_is_refused(text: str, message: str) -> None:
    with pytest.raises(tp.JobGraphError, match=message):
        JobGraph.from_json(text)
