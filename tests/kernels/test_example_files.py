"""The examples that read graphs in METIS' format and networks in DIMACS' format, and solve them."""

from __future__ import annotations

import gzip
import runpy
import subprocess
import sys
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from topoplace import kernels

EXAMPLES = Path(__file__).parents[2] / "examples"
METIS = runpy.run_path(str(EXAMPLES / "partition_metis.py"))
DIMACS = runpy.run_path(str(EXAMPLES / "min_cost_flow_dimacs.py"))
PATH = "3 2\n2\n1 3\n2\n"
NETWORK: str = DIMACS["NETWORK"]
NARROW = NETWORK.replace("a 2 4 0 3 3", "a 2 4 0 1 3").replace("a 3 4 0 5 1", "a 3 4 0 2 1")
ENDLESS = "p min 3 3\na 1 2 0 -1 1\na 2 3 0 -1 1\na 3 1 0 -1 -3\n"


def written(edges, n, sizes=None, vertex_weights=None, edge_weights=True, comment=""):
    """The text of a graph, as the format asks for it."""
    code = f"{int(sizes is not None)}{int(vertex_weights is not None)}{int(edge_weights)}"
    lines = [f"{n} {len(edges)} {code}"]
    for v in range(n):
        words = [values[v] for values in (sizes, vertex_weights) if values is not None]
        for a, b, weight in edges:
            if v in (a, b):
                words += [1 + (b if v == a else a), weight][: 1 + edge_weights]
        lines.append(" ".join(map(str, words)))
    return "\n".join([f"{line}\n{comment}" if comment else line for line in lines]) + "\n"


@st.composite
def graphs(draw):
    n = draw(st.integers(1, 12))
    pairs = [(u, v) for u, v in product(range(n), repeat=2) if u < v]
    chosen = draw(st.lists(st.sampled_from(pairs), unique=True)) if pairs else []
    weighted = draw(st.booleans())
    return n, [(u, v, draw(st.integers(1, 9)) if weighted else 1) for u, v in chosen], weighted


@given(graph=graphs(), sized=st.booleans(), heavy=st.booleans(), comment=st.sampled_from(["", "% 1 2 x"]))
def test_a_graph_that_is_written_is_read(graph, sized, heavy, comment):
    n, edges, weighted = graph
    weights = list(range(3, 3 + n)) if heavy else [1] * n
    text = written(edges, n, [7] * n if sized else None, weights if heavy else None, weighted, comment)
    num_vertices, rows, read = METIS["read"](text)
    assert (num_vertices, read.tolist()) == (n, weights)
    assert sorted(map(tuple, rows.tolist())) == sorted(edges)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (PATH.replace("3 2\n2\n", "3 3\n2\n"), "4 neighbours; the first line promises 3 edges"),
        ("3 2\n2\n1 3\n", "2 lines of vertices; the first line promises 3"),
        ("3 1\n2\n\n\n", "not named by both of its ends"),
        ("2 1 1\n2 4\n1 5\n", "not with the same weight"),
        ("3 2 10 2\n1 1 2\n", "2 weights for each vertex"),
    ],
)
def test_a_wrong_graph_is_refused(text, message):
    with pytest.raises(ValueError, match=message):
        METIS["read"](text)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (NETWORK.replace("p min", "p max"), "a problem 'max'"),
        (NETWORK.replace("p min 4 5", "p min 4 6"), "with 6 arcs is promised; 5 follow"),
        (NETWORK.replace("n 1 4", "n 0 4"), r"NODE = 0 is not in 1\.\.4"),
    ],
)
def test_a_wrong_network_is_refused(text, message):
    with pytest.raises(ValueError, match=message):
        DIMACS["read"](text)


def test_a_capacity_without_limit_is_read():
    network = DIMACS["read"]("p min 2 1\na 1 2 3 -1 0\n")
    assert (network["lower"].tolist(), network["capacity"].tolist()) == ([3], [kernels.INFINITE])


def solved(name: str, text: str, folder: Path) -> tuple[int, str, str]:
    """Run an example on a gzipped file; return its exit code, what it printed, and the file that it wrote."""
    source, target = folder / "problem.gz", folder / "solution"
    source.write_bytes(gzip.compress(text.encode()))
    command = [sys.executable, EXAMPLES / name, source, target]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    return done.returncode, done.stdout + done.stderr, target.read_text("utf-8") if target.exists() else ""


def test_a_graph_is_split(tmp_path: Path) -> None:
    text = written([(0, 1, 1), (1, 2, 5), (2, 3, 5)], 4, vertex_weights=[9, 3, 3, 3])
    code, printed, sides = solved("partition_metis.py", text, tmp_path)
    assert (code, printed) == (0, "4 vertices, 3 edges: cut 1, sides of weight 9 and 9\n")
    assert np.array(sides.split()).tolist() in (["0", "1", "1", "1"], ["1", "0", "0", "0"])


@pytest.mark.parametrize(
    ("text", "code", "message", "solution"),
    [
        (NETWORK, 0, "4 nodes, 5 arcs: cost 14", "s 14\nf 1 2 2\nf 1 3 2\nf 2 3 2\nf 2 4 0\nf 3 4 4\n"),
        (NARROW, 1, "infeasible: nodes [1, 2, 3], arcs []", ""),
        (ENDLESS, 1, "unbounded: nodes [], arcs [", ""),
    ],
)
def test_a_network_is_solved(tmp_path: Path, text: str, code: int, message: str, solution: str) -> None:
    found = solved("min_cost_flow_dimacs.py", text, tmp_path)
    assert (found[0], found[2]) == (code, solution)
    assert found[1].startswith(message)
