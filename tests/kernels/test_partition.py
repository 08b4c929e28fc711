"""The partition kernel: against brute force where there are few vertices, against its promises elsewhere."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from itertools import product
from math import ceil, floor, inf

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import topoplace as tp
from topoplace import kernels
from topoplace.errors import InfeasibleError, SearchTimeoutError

FRACTIONS = [0.0, 0.25, 0.3, 0.5, 0.7, 1.0]
IMBALANCES = [0.0, 0.03, 0.1, 0.5]


@st.composite
def problems(draw, smallest, largest, weights=(0.0, 0.0, 1.0, 2.0, 12.5)):
    """A weight matrix, and the keyword arguments of a bipartition of it."""
    n = draw(st.integers(smallest, largest))
    picked = draw(st.lists(st.sampled_from(weights), min_size=n * (n - 1) // 2, max_size=n * (n - 1) // 2))
    matrix = np.zeros((n, n))
    matrix[np.triu_indices(n, 1)] = picked
    options = {
        "fraction": draw(st.sampled_from(FRACTIONS)),
        "imbalance": draw(st.sampled_from(IMBALANCES)),
        "vertex_weights": draw(st.none() | st.lists(st.integers(0, 4), min_size=n, max_size=n)),
        "fixed": draw(st.none() | st.lists(st.sampled_from([-1, -1, -1, 0, 1]), min_size=n, max_size=n)),
    }
    return matrix + matrix.T, options


def limits(n, fraction, imbalance, vertex_weights):
    total = n if vertex_weights is None else sum(vertex_weights)
    share, slack = Fraction(str(fraction)), 1 + Fraction(str(imbalance))
    return floor(slack * ceil(share * total)), floor(slack * ceil((1 - share) * total))


def is_allowed(side, fraction, imbalance, vertex_weights, fixed):
    weights = [1] * len(side) if vertex_weights is None else vertex_weights
    held = [sum(w for s, w in zip(side, weights, strict=True) if s == which) for which in (0, 1)]
    most = limits(len(side), fraction, imbalance, vertex_weights)
    return (
        held[0] <= most[0]
        and held[1] <= most[1]
        and (fixed is None or all(f in (-1, s) for s, f in zip(side, fixed, strict=True)))
    )


def cut_of(matrix, side):
    side = np.asarray(side)
    return matrix[np.ix_(side == 0, side == 1)].sum()


def brute_force(matrix, options):
    """The least cut and the lexicographically smallest side vector that has it."""
    allowed = (s for s in product((0, 1), repeat=len(matrix)) if is_allowed(s, **options))
    return min(((cut_of(matrix, side), side) for side in allowed), default=None)


@given(problem=problems(0, 9))
@settings(max_examples=100)
def test_the_proof_is_brute_forces_answer(problem):
    matrix, options = problem
    expected = brute_force(matrix, options)
    if expected is None:
        with pytest.raises(InfeasibleError, match="no bipartition exists"):
            kernels.bipartition(matrix, **options)
        return
    found = kernels.bipartition(matrix, **options)
    assert (found.cut, tuple(found.side.tolist())) == expected
    assert found.optimal
    assert found.complete
    assert found.side.dtype == np.int8
    assert found.start_cut == inf
    assert kernels.verify_bipartition(matrix, found.side, found.cut, **options)


@given(problem=problems(1, 9), seed=st.integers(0, 2**64 - 1))
def test_refinement_keeps_balance_and_fixed_vertices(problem, seed):
    matrix, options = problem
    try:
        found = kernels.bipartition(matrix, seed=seed, exact_up_to=0, **options)
    except InfeasibleError:
        if options["vertex_weights"] is None:  # then every share can be met, unless fixed vertices forbid it
            assert brute_force(matrix, options) is None
        return
    assert not found.optimal
    assert is_allowed(found.side.tolist(), **options)
    assert found.cut == cut_of(matrix, found.side)
    assert found.cut >= brute_force(matrix, options)[0]
    assert found.cut <= found.start_cut
    assert found.rollbacks <= found.moves
    assert kernels.verify_bipartition(matrix, found.side, found.cut, **options)


@given(problem=problems(25, 48, weights=(0.0, 0.0, 0.0, 1.0, 2.5, 0.1)), seed=st.integers(0, 2**32))
def test_larger_graphs(problem, seed):
    matrix, options = problem
    options |= {"vertex_weights": None, "fixed": None}
    graph = kernels.Graph(matrix)
    found = kernels.bipartition(graph, seed=seed, **options)
    assert is_allowed(found.side.tolist(), **options)
    assert found.cut == pytest.approx(cut_of(matrix, found.side))
    assert found.cut <= found.start_cut * (1 + 1e-12)
    again = kernels.bipartition(kernels.Graph(matrix), seed=seed, **options)
    assert again.side.tolist() == found.side.tolist()
    assert again[1:] == found[1:]
    once = kernels.bipartition(graph, seed=seed, starts=1, **options)
    assert once.cut >= found.cut * (
        1 - 1e-12
    )  # sums of the same weights in another order differ in the last bit


@st.composite
def large_problems(draw):
    """Edges of a random graph large enough for coarser levels, and the keyword arguments of a bipartition of it."""
    n = draw(st.integers(61, 500))
    random = np.random.default_rng(draw(st.integers(0, 2**32)))
    ends = np.unique(np.sort(random.integers(0, n, (draw(st.integers(1, 4)) * n, 2))), axis=0)
    ends = ends[ends[:, 0] != ends[:, 1]]
    weights = random.choice(draw(st.sampled_from([[1.0], [1.0, 7.0], [0.1, 2.5]])), len(ends))
    options = {
        "fraction": draw(st.sampled_from(FRACTIONS)),
        "imbalance": draw(st.sampled_from(IMBALANCES)),
        "vertex_weights": draw(st.sampled_from([None, random.integers(1, 4, n)])),
        "fixed": draw(st.sampled_from([None, random.choice([-1, -1, -1, -1, -1, -1, -1, -1, 0, 1], n)])),
        "cycles": draw(st.integers(0, 2)),
    }
    return (
        kernels.Graph.from_edges(n, np.column_stack([ends, weights])),
        np.column_stack([ends, weights]),
        options,
    )


@given(problem=large_problems(), seed=st.integers(0, 2**32))
def test_coarser_levels_keep_every_promise(problem, seed):
    graph, edges, options = problem
    try:
        found = kernels.bipartition(graph, seed=seed, **options)
    except InfeasibleError:  # weights of 1 to 3 fit as soon as there is some room, unless vertices are fixed
        assert options["fixed"] is not None or options["imbalance"] < 0.03
        return
    rules = {name: value for name, value in options.items() if name != "cycles"}
    assert is_allowed(found.side.tolist(), **rules)
    crossing = found.side[edges[:, 0].astype(int)] != found.side[edges[:, 1].astype(int)]
    assert found.cut == pytest.approx(edges[crossing, 2].sum())
    assert found.cut <= found.start_cut * (1 + 1e-12)
    assert kernels.verify_bipartition(graph, found.side, found.cut, **rules)
    again = kernels.bipartition(graph, seed=seed, **options)
    assert again.side.tolist() == found.side.tolist()
    assert again[1:] == found[1:]


@given(problem=problems(2, 14, weights=(0.0, 1.0, 3.0)), data=st.data())
def test_names_of_vertices_do_not_change_the_least_cut(problem, data):
    matrix, options = problem
    order = data.draw(st.permutations(range(len(matrix))))
    renamed = {
        name: value if value is None or np.isscalar(value) else [value[v] for v in order]
        for name, value in options.items()
    }
    try:
        expected = kernels.bipartition(matrix, **options).cut
    except InfeasibleError:
        with pytest.raises(InfeasibleError):
            kernels.bipartition(matrix[np.ix_(order, order)], **renamed)
    else:
        assert kernels.bipartition(matrix[np.ix_(order, order)], **renamed).cut == expected


@given(weights=st.lists(st.floats(1e-3, 1e3), min_size=28, max_size=28))
def test_real_weights(weights):
    matrix = np.zeros((8, 8))
    matrix[np.triu_indices(8, 1)] = weights
    matrix += matrix.T
    options = {"fraction": 0.5, "imbalance": 0.0, "vertex_weights": None, "fixed": None}
    assert kernels.bipartition(matrix).cut == pytest.approx(brute_force(matrix, options)[0])


@pytest.mark.parametrize(
    ("machine", "cut", "most_nodes"),
    [("dgx1-v100", 294.0, 40), ("torus2d-16", 872.0, 250), ("cubemesh-16", 870.0, 250)],
)
def test_machines_are_halved_with_little_work(machine, cut, most_nodes):
    found = kernels.bipartition(tp.machines.get(machine).bandwidth_matrix())
    assert found.cut == cut
    assert found.optimal
    assert found.nodes <= most_nodes


@pytest.mark.parametrize(
    ("machine", "cut", "links"),
    [
        ("torus2d-16", 859.0, {(0, 4): 12.0}),
        (
            "cubemesh-16",
            820.0,
            {(4, 5): 12.0, (12, 13): 12.0, (1, 5): 25.0, (3, 8): 25.0, (0, 11): 25.0, (9, 13): 25.0},
        ),
    ],
)
def test_machines_as_mapas_artifact_has_them(machine, cut, links):
    """A link of the torus is missing there, and of the cube mesh two double ones are PCIe and four single."""
    matrix = tp.machines.get(machine).bandwidth_matrix().copy()
    for (u, v), gb_per_s in links.items():
        matrix[u, v] = matrix[v, u] = gb_per_s
    found = kernels.bipartition(matrix)
    assert (found.cut, found.optimal) == (cut, True)


@pytest.mark.parametrize("graph", ["empty", "complete"])
def test_ties_alone_cost_no_search(graph):
    matrix = np.zeros((24, 24)) if graph == "empty" else 1.0 - np.eye(24)
    found = kernels.bipartition(matrix)
    assert found.side.tolist() == [0] * 12 + [1] * 12
    assert found.nodes <= 40


@pytest.mark.parametrize("size", [10, 32, 100])
def test_grids_are_cut_almost_straight(size):
    grid = kernels.Graph.of(nx.grid_2d_graph(size, size))
    found = kernels.bipartition(grid, imbalance=0.03)
    assert size <= found.cut <= 1.2 * size
    assert not found.optimal


def test_a_pass_moves_each_vertex_once():
    found = kernels.bipartition(nx.grid_2d_graph(20, 20))
    assert found.moves <= found.passes * 400
    assert 0 < found.rollbacks < found.moves


def test_parts_that_hang_together_stay_together():
    cliques = nx.disjoint_union_all([nx.complete_graph(8)] * 6)
    assert kernels.bipartition(cliques).cut == 0
    assert kernels.bipartition(cliques, fraction=1 / 3).cut == 0
    assert kernels.bipartition(cliques, fraction=1 / 3).side.tolist().count(0) == 16


def test_heavy_vertices_are_packed():
    weights = [40] + [1] * 40
    found = kernels.bipartition(nx.star_graph(40), vertex_weights=weights)
    assert found.side[0] != found.side[1]
    assert found.side[1:].tolist() == [found.side[1]] * 40
    assert found.cut == 40


def test_no_balance_is_said_so():
    with pytest.raises(InfeasibleError, match=r"no bipartition exists with fraction = 0.5 and imbalance = 0"):
        kernels.bipartition(nx.path_graph(3), vertex_weights=[5, 1, 1])
    with pytest.raises(InfeasibleError, match="no bipartition was found"):
        kernels.bipartition(nx.path_graph(30), vertex_weights=[50] + [1] * 29)
    with pytest.raises(InfeasibleError, match="larger imbalance"):
        kernels.bipartition(nx.path_graph(4), fixed=[0, 0, 0, -1])
    assert kernels.bipartition(nx.path_graph(3), vertex_weights=[5, 1, 1], imbalance=0.25).cut == 1


def test_deadlines():
    grid = kernels.Graph.of(nx.grid_2d_graph(60, 60))
    found = kernels.bipartition(grid, timeout=0)
    assert not found.complete
    assert kernels.verify_bipartition(grid, found.side, found.cut)
    with pytest.raises(SearchTimeoutError, match="timeout = 0"):
        kernels.bipartition(grid, vertex_weights=[5000] + [1] * 3599, timeout=0)
    assert not kernels.bipartition(grid, cycles=2**31 - 1, timeout=0.05).complete
    matrix = np.random.default_rng(1).integers(0, 100, (24, 24)).astype(float)
    dense = np.triu(matrix, 1) + np.triu(matrix, 1).T
    early = kernels.bipartition(dense, timeout=0)
    assert not early.optimal
    assert kernels.bipartition(dense).cut <= early.cut == cut_of(dense, early.side)


def test_answers_do_not_depend_on_threads():
    grids = [kernels.Graph.of(nx.grid_2d_graph(12, k)) for k in range(5, 17)]
    alone = [kernels.bipartition(grid).side.tolist() for grid in grids]
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(lambda grid: kernels.bipartition(grid).side.tolist(), grids * 3)) == alone * 3


def test_the_verifier_refuses():
    path = kernels.Graph.of(nx.path_graph(4))
    assert kernels.verify_bipartition(path, [0, 0, 1, 1], 1)
    assert not kernels.verify_bipartition(path, [0, 0, 1, 1], 2)
    assert not kernels.verify_bipartition(path, [0, 0, 0, 1], 1)
    assert not kernels.verify_bipartition(path, [0, 0, 1], 1)
    assert not kernels.verify_bipartition(path, [0, 0, 1, 2], 1)
    assert not kernels.verify_bipartition(path, [0, 0, 1, 1], 1, fixed=[1, -1, -1, -1])
    assert not kernels.verify_bipartition(path, [0, 0, 1, 1], 1, vertex_weights=[1, 1, 1, 5])
    assert kernels.verify_bipartition(path, [0, 0, 0, 1], 1, vertex_weights=[1, 1, 1, 3])


PATH = nx.path_graph(3)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: kernels.bipartition(PATH, fraction=1.5), r"fraction = 1.5 is not in 0..1"),
        (lambda: kernels.bipartition(PATH, fraction=np.nan), r"fraction = nan"),
        (lambda: kernels.bipartition(PATH, imbalance=-0.1), r"imbalance = -0.1 is not at least 0"),
        (lambda: kernels.bipartition(PATH, imbalance=np.inf), r"imbalance = inf"),
        (lambda: kernels.bipartition(PATH, vertex_weights=[1, 1]), r"vertex_weights has shape \(2,\)"),
        (lambda: kernels.bipartition(PATH, vertex_weights=[1, -1, 1]), r"vertex_weights\[1\] = -1 is not"),
        (lambda: kernels.bipartition(PATH, vertex_weights=[1, 1.5, 1]), r"vertex_weights\[1\] = 1.5 is not"),
        (lambda: kernels.bipartition(PATH, vertex_weights=[1, 1, np.nan]), r"vertex_weights\[2\] = nan"),
        (lambda: kernels.bipartition(PATH, vertex_weights=[2**52] * 3), r"vertex_weights sum to"),
        (lambda: kernels.bipartition(PATH, vertex_weights="heavy"), r"vertex_weights has dtype"),
        (lambda: kernels.bipartition(PATH, fixed=[0, 1]), r"fixed has shape \(2,\); expected \(3,\)"),
        (lambda: kernels.bipartition(PATH, fixed=[0, 1, 2]), r"fixed\[2\] = 2 is not an integer in -1..1"),
        (lambda: kernels.bipartition(PATH, starts=0), r"starts = 0 is not in 1.."),
        (lambda: kernels.bipartition(PATH, cycles=-1), r"cycles = -1 is not in 0.."),
        (lambda: kernels.bipartition(PATH, seed=-1), r"seed = -1 is not in 0.."),
        (lambda: kernels.bipartition(PATH, exact_up_to=25), r"exact_up_to = 25 is not in 0..24"),
        (lambda: kernels.bipartition(PATH, timeout=-1), r"timeout = -1"),
        (
            lambda: kernels.bipartition([(0, 1, 1e308), (1, 2, 1e308), (0, 2, 1e308)]),
            r"sum of the graph's weights is not finite",
        ),
    ],
)
def test_bad_input_is_refused_by_name(call, message):
    with pytest.raises(ValueError, match=message):
        call()
