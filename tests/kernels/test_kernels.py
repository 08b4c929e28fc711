"""The kernels as their callers meet them: known answers, peers, deadlines, threads, and input that is refused."""

from __future__ import annotations

import os
import signal
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import igraph
import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import topoplace as tp
from topoplace import _core, kernels
from topoplace.errors import SearchTimeoutError

COMPLETE3000 = np.stack(np.triu_indices(3000, 1), axis=1)
COMPLETE16 = kernels.Graph.of(nx.complete_graph(16))


def ring(k):
    return kernels.Graph.of(nx.cycle_graph(k))


def random_matrix(size):
    upper = np.triu(np.random.default_rng(1).random((size, size)), 1)
    return upper + upper.T


def torus(*sides):
    return kernels.Graph.of(nx.grid_graph(sides, periodic=True))


# ---- known answers ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("pattern", "target", "mappings"),
    [
        pytest.param(ring(6), COMPLETE16, 5_765_760, id="6-rings of 16 GPUs"),
        pytest.param(ring(5), COMPLETE16, 524_160, id="5-rings of 16 GPUs"),
        pytest.param(ring(10), torus(4, 4, 4), 13_962_240, id="10-rings of a 4x4x4 torus"),
        pytest.param(ring(8), torus(8, 8), 7_424, id="8-rings of an 8x8 torus"),
        pytest.param(ring(9), COMPLETE16, 4_151_347_200, id="9-rings of 16 GPUs"),
    ],
)
def test_counts_every_peer_agrees_on(pattern, target, mappings):
    assert kernels.count_subgraphs(pattern, target) == mappings


def test_images_of_nine_rings():
    assert kernels.count_subgraphs(ring(9), COMPLETE16, distinct="images") == 230_630_400
    assert kernels.count_subgraphs(ring(9), COMPLETE16, distinct="vertex_sets") == 11_440


@pytest.mark.parametrize("k", range(2, 9))
def test_nvlink_rings_of_dgx1(k):
    topology = tp.machines.get("dgx1-v100")
    best = {2: 50, 3: 125, 4: 175, 5: 212, 6: 275, 7: 325, 8: 400}  # PCIe at 12 GB/s
    found = kernels.best_subgraph(tp.JobGraph.ring(k).graph, topology.graph)
    assert (found.score, found.bound, found.optimal, found.complete) == (best[k], best[k], True, True)


def weights_of(machine, *, missing=()):
    weights = machine.bandwidth_matrix().copy()
    for u, v in missing:
        weights[u, v] = weights[v, u] = 12.0
    return weights


def test_mesh_on_the_artifacts_torus():
    weights = weights_of(tp.machines.get("torus2d-16"), missing=[(0, 4)])
    found = kernels.best_subgraph(tp.JobGraph.mesh((3, 4)).graph, weights)
    assert (found.score, found.optimal, found.complete) == (700.0, True, True)


def test_ring_across_sixteen_machines():
    machine = tp.machines.get("dgx1-v100").bandwidth_matrix()
    weights = np.full((128, 128), 3.0)
    for i in range(0, 128, 32):
        weights[i : i + 32, i : i + 32] = 6.0
    for i in range(0, 128, 8):
        weights[i : i + 8, i : i + 8] = machine
    found = kernels.best_subgraph(ring(12), weights)
    assert (found.score, found.bound, found.optimal) == (512.0, 512.0, True)
    assert found.nodes < 10_000  # ten doubled links and two crossings: the ceiling proves it at the root
    assert sorted(found.vertices.tolist()) == list(range(12))


def test_automorphisms():
    groups = {
        2: nx.path_graph(5),
        20: nx.cycle_graph(10),
        120: nx.complete_graph(5),
        24: nx.star_graph(4),
        48: nx.hypercube_graph(3),
        1: nx.Graph([(0, 1), (1, 2), (2, 3), (3, 4), (4, 5), (2, 6), (6, 7), (7, 8), (1, 4)]),
        144: nx.complete_bipartite_graph(3, 4),
    }
    for order, graph in groups.items():
        assert kernels.Graph.of(graph).num_automorphisms == order


# ---- peers -----------------------------------------------------------------------------------------------


@given(
    edges=st.sets(
        st.tuples(st.integers(0, 11), st.integers(0, 11)).filter(lambda e: e[0] < e[1]), min_size=3
    ),
    pattern=st.sampled_from(["cycle", "path", "star", "complete", "tree"]),
    k=st.integers(2, 6),
    induced=st.booleans(),
)
@settings(max_examples=60)
def test_counts_agree_with_igraph_and_networkx(edges, pattern, k, induced):
    small = {
        "cycle": lambda: nx.cycle_graph(k) if k > 2 else nx.path_graph(2),
        "path": lambda: nx.path_graph(k),
        "star": lambda: nx.star_graph(k - 1),
        "complete": lambda: nx.complete_graph(k),
        "tree": lambda: nx.from_prufer_sequence([0] * (k - 3) + [1]) if k > 2 else nx.path_graph(2),
    }[pattern]()
    large = nx.Graph(edges)
    large.add_nodes_from(range(12))
    target = kernels.Graph.from_edges(12, sorted(edges))
    ours = kernels.count_subgraphs(small, target, induced=induced)
    peer = igraph.Graph(12, sorted(edges))
    peer_pattern = igraph.Graph(small.number_of_nodes(), list(small.edges))
    if induced:
        matcher = nx.isomorphism.GraphMatcher(large, small)
        assert ours == sum(1 for _ in matcher.subgraph_isomorphisms_iter())
        assert ours == len(peer.get_subisomorphisms_lad(peer_pattern, induced=True))
    else:
        matcher = nx.isomorphism.GraphMatcher(large, small)
        assert ours == sum(1 for _ in matcher.subgraph_monomorphisms_iter())
        assert ours == peer.count_subisomorphisms_vf2(peer_pattern)


# ---- deadlines, threads, interruption --------------------------------------------------------------------

HARD = np.random.default_rng(7).uniform(8, 300, (48, 48))
HARD = np.triu(HARD, 1) + np.triu(HARD, 1).T


@pytest.mark.parametrize("objective", ["sum", "bottleneck", "bottleneck_sum"])
def test_best_at_the_deadline_has_a_true_bound(objective):
    found = kernels.best_subgraph(ring(24), HARD, objective=objective, timeout=0.05)
    images = found.vertices.tolist()
    used = [HARD[images[i], images[i - 1]] for i in range(24)]
    assert found.score == pytest.approx(min(used) if objective == "bottleneck" else sum(used), rel=1e-9)
    assert found.bound >= found.score
    assert found.optimal == (found.bound == found.score) or not found.optimal
    assert kernels.verify_embedding(ring(24), HARD, images)


def test_a_remainder_at_the_deadline_is_what_was_found():
    found = kernels.best_remainder(ring(20), HARD, timeout=0.05)
    assert not found.optimal
    left = sorted(set(range(48)) - set(found.vertices.tolist()))
    assert found.remainder == pytest.approx(np.triu(HARD[np.ix_(left, left)]).sum(), rel=1e-9)


def test_counting_at_the_deadline_is_not_a_count():
    with pytest.raises(SearchTimeoutError, match=r"after 0.05 s") as caught:
        kernels.count_subgraphs(ring(16), kernels.Graph.of(nx.complete_graph(40)), timeout=0.05)
    assert caught.value.partial > 0
    with pytest.raises(TimeoutError):
        kernels.enumerate_subgraphs(ring(12), COMPLETE16, timeout=0.02)


def test_no_time_at_all():
    assert kernels.best_subgraph(ring(4), COMPLETE16, timeout=0).score == 4
    assert kernels.count_subgraphs(ring(4), COMPLETE16, timeout=0) == 43_680  # done before the clock is asked


def test_the_gil_is_released_and_answers_do_not_depend_on_threads():
    topology = tp.machines.get("cubemesh-16")
    patterns = [tp.JobGraph.tree(k).graph for k in range(2, 14)]
    alone = [kernels.best_subgraph(p, topology.graph).vertices.tolist() for p in patterns]
    fresh = kernels.Graph(topology.bandwidth_matrix())  # its caches are filled by many threads at once
    with ThreadPoolExecutor(8) as pool:
        together = list(pool.map(lambda p: kernels.best_subgraph(p, fresh).vertices.tolist(), patterns * 4))
    assert together == alone * 4

    ticks = []
    done = threading.Event()
    counter = threading.Thread(target=lambda: (kernels.count_subgraphs(ring(9), COMPLETE16), done.set()))
    counter.start()
    while not done.wait(0.001):
        ticks.append(None)
    counter.join()
    assert len(ticks) > 3


@pytest.mark.skipif(os.name != "posix", reason="needs POSIX signals")
@pytest.mark.parametrize(
    "search",
    [
        pytest.param(
            lambda: kernels.count_subgraphs(ring(16), nx.complete_graph(40), timeout=20), id="matching"
        ),
        pytest.param(
            lambda: kernels.map_graph(random_matrix(40), random_matrix(100), method="exact", timeout=20),
            id="mapping",
        ),
        pytest.param(lambda: kernels.Graph.from_edges(3000, COMPLETE3000), id="making a graph"),
    ],
)
def test_control_c_stops_a_search(search):
    def interrupt(*_):
        raise KeyboardInterrupt

    begin = time.perf_counter()
    previous = signal.signal(signal.SIGALRM, interrupt)
    signal.setitimer(
        signal.ITIMER_REAL, 0.1, 1.0
    )  # again, should the first one hit a destructor, which swallows it
    try:
        with pytest.raises(KeyboardInterrupt):
            search()
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, previous)
    assert time.perf_counter() - begin < 5


# ---- graphs in every form --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "target",
    [
        pytest.param(nx.complete_graph(4), id="networkx"),
        pytest.param(1.0 - np.eye(4), id="matrix"),
        pytest.param(np.array(list(nx.complete_graph(4).edges)), id="edges"),
        pytest.param([(u, v, 2.0) for u, v in nx.complete_graph(4).edges], id="weighted edges"),
        pytest.param(kernels.Graph(1.0 - np.eye(4)), id="Graph"),
    ],
)
def test_graph_arguments(target):
    assert kernels.count_subgraphs([[0, 1], [1, 2], [2, 0]], target) == 24
    assert kernels.best_subgraph(ring(3), target).vertices.tolist() == [0, 1, 2]


@pytest.mark.parametrize("words", [1, 2, 8, 64], ids=lambda w: f"{64 * w} vertices")
def test_every_width(words):
    n = 64 * words
    target = kernels.Graph.of(nx.cycle_graph(n))
    assert kernels.count_subgraphs(nx.path_graph(4), target) == 2 * n
    found = kernels.best_subgraph(nx.path_graph(3), target, free=range(n - 3, n))
    assert found.vertices.tolist() == [n - 3, n - 2, n - 1]
    assert kernels.best_remainder(nx.path_graph(2), target, free=range(n - 4, n)).vertices.tolist() == [
        n - 4,
        n - 3,
    ]


def test_the_empty_and_the_impossible():
    empty = kernels.Graph(np.zeros((0, 0)))
    assert kernels.count_subgraphs(empty, COMPLETE16) == 1
    assert kernels.enumerate_subgraphs(empty, COMPLETE16).shape == (1, 0)
    assert kernels.best_subgraph(empty, COMPLETE16).vertices.shape == (0,)
    assert kernels.enumerate_subgraphs(ring(5), nx.complete_graph(4)).shape == (0, 5)
    assert kernels.best_subgraph(ring(5), nx.complete_graph(4)) is None
    assert kernels.best_subgraph(ring(3), COMPLETE16, free=[0, 1]) is None
    assert kernels.best_subgraph(ring(3), COMPLETE16, free=[0, 1, 2], required=[3]) is None
    assert kernels.best_remainder(ring(3), COMPLETE16, free=[]) is None
    assert kernels.best_subgraph(empty, COMPLETE16, required=[3]) is None
    assert kernels.best_remainder(empty, COMPLETE16, required=[3]) is None


def test_what_is_no_embedding():
    assert kernels.verify_embedding(ring(3), COMPLETE16, [0, 1, 2])
    for vertices in ([0, 1], [0, 1, 1], [0, 1, 16], [0, 1, 0.5], "abc"):
        assert not kernels.verify_embedding(ring(3), COMPLETE16, vertices)


def test_searches_share_a_budget_until_it_is_spent():
    budget = kernels.WorkBudget(10)
    assert [budget.limit(None), budget.limit(3), budget.limit(30)] == [10, 3, 10]
    budget.charge(9)
    assert budget.limit(3) == 1
    budget.charge(5)
    assert budget.spent
    with pytest.raises(SearchTimeoutError, match="the budget of nodes is spent"):
        kernels.best_subgraph(ring(3), COMPLETE16, budget=budget)
    endless = kernels.WorkBudget()
    endless.charge(10**9)
    assert (endless.spent, endless.limit(None), endless.limit(7)) == (False, None, 7)


def score_of_three(counts):
    return counts[:, 0] * 3.0 + counts[:, 1]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: kernels.Graph([[0, 1], [2, 0]]), r"weights\[0, 1\] = 1 but weights\[1, 0\] = 2"),
        (lambda: kernels.Graph([[0, np.nan], [np.nan, 0]]), r"weights\[0, 1\] = nan is not a finite number"),
        (lambda: kernels.Graph([[0, -1], [-1, 0]]), r"weights\[0, 1\] = -1 is negative"),
        (lambda: kernels.Graph([[0, np.inf], [np.inf, 0]]), r"weights\[0, 1\] = inf is not a finite number"),
        (lambda: kernels.Graph([[1.0]]), r"weights\[0, 0\] = 1 is on the diagonal"),
        (lambda: kernels.Graph([1.0, 2.0]), r"weights has shape \(2,\)"),
        (lambda: kernels.Graph.from_edges(3, [(0, 3)]), r"edges\[0\] = \(0, 3"),
        (lambda: kernels.Graph.from_edges(3, [(1, 1)]), r"edges\[0\] = .* is a loop"),
        (lambda: kernels.Graph.from_edges(3, [(0, 1), (1, 0)]), r"edge \(0, 1\) is listed twice"),
        (lambda: kernels.Graph.from_edges(3, [(0, 1.5)]), r"edges\[0, 1\] = 1.5 is not a vertex"),
        (lambda: kernels.Graph.from_edges(3, [(0, 1, 0.0)]), r"weight must be positive"),
        (lambda: kernels.Graph.from_edges(3, [(0, 1, 1.0, 2.0)]), r"edges has shape \(1, 4\); expected"),
        (lambda: kernels.Graph.of([[0, 1], [1, np.nan], [2, 0]]), r"graph\[1\] is not finite"),
        (
            lambda: kernels.Graph.of([[0, 1, 2], [1, 0, 2], [1, 2, 0]]),
            r"graph has a zero diagonal, but graph\[0, 2\] = 2 and graph\[2, 0\] = 1: a weight matrix is",
        ),
        (lambda: kernels.Graph.of(nx.DiGraph([(0, 1)])), r"graph is a DiGraph"),
        (
            lambda: kernels.count_subgraphs(ring(3), COMPLETE16, distinct="all"),
            r"distinct = 'all' is not one of",
        ),
        (lambda: kernels.count_subgraphs(ring(3), COMPLETE16, limit="1"), r"limit = '1' is not an integer"),
        (lambda: kernels.count_subgraphs(ring(3), COMPLETE16, timeout="1"), r"timeout = '1' is not a number"),
        (lambda: kernels.count_subgraphs(ring(3), "graph"), r"target has dtype"),
        (lambda: kernels.count_subgraphs(ring(3), [[1, 2], [3]]), r"target has rows of different lengths"),
        (lambda: kernels.best_subgraph(ring(3), COMPLETE16, free=3), r"free = 3 is not a sequence"),
        (lambda: kernels.best_subgraph(ring(3), COMPLETE16, free=[2**70]), r"free\[0\] = .* is not in 0..15"),
        (lambda: kernels.count_subgraphs(ring(3), COMPLETE16, limit=-1), r"limit = -1 is not in 0.."),
        (lambda: kernels.count_subgraphs(ring(3), COMPLETE16, timeout=-1), r"timeout = -1 is not at least 0"),
        (lambda: kernels.count_subgraphs(ring(3), COMPLETE16, min_weight=np.nan), r"min_weight = nan"),
        (
            lambda: kernels.count_subgraphs(ring(3), COMPLETE16, candidates=np.ones((3, 2))),
            r"candidates has shape \(3, 2\); expected \(3, 16\)",
        ),
        (
            lambda: kernels.count_subgraphs([[0.0]], 1 - np.eye(2), candidates=np.array([["a", "b"]])),
            r"candidates has dtype <U1; booleans or numbers are needed",
        ),
        (
            lambda: kernels.count_subgraphs([[0.0]], 1 - np.eye(2), candidates=np.array([[1.0, np.nan]])),
            r"candidates\[0, 1\] is not a number",
        ),
        (
            lambda: kernels.best_subgraph(ring(3), COMPLETE16, objective="max"),
            r"objective = 'max' is not one of",
        ),
        (
            lambda: kernels.best_subgraph(ring(3), COMPLETE16, free=[0, 16]),
            r"free\[1\] = 16 is not in 0..15",
        ),
        (lambda: kernels.best_subgraph(ring(3), COMPLETE16, free=[0, -1]), r"free\[1\] = -1"),
        (
            lambda: kernels.best_subgraph(ring(3), COMPLETE16, free=[0.5]),
            r"free\[0\] = 0.5 is not an integer",
        ),
        (lambda: kernels.best_subgraph(ring(3), COMPLETE16, required=[99]), r"required\[0\] = 99"),
        (
            lambda: kernels.LinkCountScore(np.full((2, 2), 9), score_of_three),
            r"link_class contains a value outside",
        ),
        (lambda: kernels.LinkCountScore(np.zeros((2, 3)), score_of_three), r"link_class has shape \(2, 3\)"),
        (lambda: kernels.LinkCountScore(np.zeros((2, 2), int), 3), r"function = 3 is not a function"),
        (
            lambda: kernels.best_subgraph(
                ring(3),
                COMPLETE16,
                objective=kernels.LinkCountScore(np.zeros((16, 16), int), lambda c: c[:1, 0] / 0),
            ),
            r"finite scores",
        ),
    ],
)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_bad_input_is_refused_by_name(call, message):
    with pytest.raises(ValueError, match=message):
        call()


@pytest.mark.parametrize(
    "handle", [_core.Graph, _core.TargetDistance, _core.LinkCountScore, _core.ClusterState]
)
def test_a_handle_that_was_never_made_is_a_type_error(handle):
    for empty in (handle.__new__(handle), None):
        for name, member in vars(handle).items():
            if isinstance(member, property):
                with pytest.raises(TypeError):
                    member.fget(empty)
            elif not name.startswith("_") and name not in ("restore", "allocate"):
                for arguments in ((), (0,), ("job",), ([0],)):
                    with pytest.raises(TypeError):
                        member(empty, *arguments)
    with pytest.raises(TypeError):
        _core.ClusterState.allocate(_core.ClusterState.__new__(_core.ClusterState), "job", [0])
    with pytest.raises(TypeError, match=r"Graph\.__init__ has not been run"):
        kernels.count_subgraphs(kernels.Graph.__new__(kernels.Graph), COMPLETE16)


def test_a_handle_whose_constructor_threw_is_a_type_error():
    class Kept(kernels.TargetDistance):
        def __init__(self, distance):
            kept.append(self)
            super().__init__(distance)

    kept: list[Kept] = []
    with pytest.raises(ValueError, match=r"target_distance\[0, 1\] = 1 but"):
        Kept([[0, 1], [2, 0]])
    with pytest.raises(TypeError, match=r"TargetDistance\.__init__ has not been run"):
        repr(kept[0])


def test_an_unknown_kernel_is_no_attribute() -> None:
    with pytest.raises(AttributeError, match="no attribute 'verify'"):
        _ = kernels.verify


def test_results_have_the_fields_that_cross_the_border() -> None:
    named = {
        "best_subgraph": kernels.Embedding,
        "best_remainder": kernels.Remainder,
        "map_graph": kernels.Mapping,
    }
    assert {name: result._fields for name, result in named.items()} == _core.result_fields()
