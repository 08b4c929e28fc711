"""Graph files in METIS' format: every code, what is refused and where, and the command that splits them."""

from __future__ import annotations

import json
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from command_line import assert_command_refuses, run
from mutations import assert_line_is_named
from topoplace import kernels
from topoplace.text_formats import metis

PATH = b"3 2\n2\n1 3\n2\n"


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
    return ("\n".join([f"{line}\n{comment}" if comment else line for line in lines]) + "\n").encode()


@st.composite
def graphs(draw):
    n = draw(st.integers(1, 12))
    pairs = [(u, v) for u, v in product(range(n), repeat=2) if u < v]
    chosen = draw(st.lists(st.sampled_from(pairs), unique=True)) if pairs else []
    weighted = draw(st.booleans())
    return n, [(u, v, draw(st.integers(1, 9)) if weighted else 1) for u, v in chosen], weighted


@given(graph=graphs(), sized=st.booleans(), heavy=st.booleans(), comment=st.sampled_from(["", "% 1 2 x"]))
def test_what_is_written_is_read(graph, sized, heavy, comment):
    n, edges, weighted = graph
    weights = list(range(3, 3 + n)) if heavy else None
    text = written(edges, n, [7] * n if sized else None, weights, weighted, comment)
    file = metis.parse(text)
    expected = kernels.Graph.from_edges(n, np.array(edges, dtype=float).reshape(-1, 3))
    assert (file.graph.num_vertices, file.graph.num_edges) == (n, len(edges))
    assert (file.vertex_weights is None) != heavy
    if heavy:
        assert file.vertex_weights.tolist() == weights
    sides = [(v * 7 + 1) % 3 % 2 for v in range(n)]
    cut = sum(weight for u, v, weight in edges if sides[u] != sides[v])
    for read in (file.graph, expected):
        assert kernels.verify_bipartition(read, sides, cut, imbalance=float(n))


def test_layout_is_free():
    for text in (
        PATH.replace(b"\n", b"\r\n"),
        PATH[:-1],
        b"%" * 500_000 + b"\n3 2\n2\n1 3\n2\n",
        b"\n% first\n  3   2 000 1\n2\n   % indented\n1\t3\n2\n\n\n",
    ):
        file = metis.parse(text)
        assert (file.graph.num_vertices, file.graph.num_edges) == (3, 2)
    assert metis.parse(b"2 0\n\n\n").graph.num_vertices == 2


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"% nothing\n", "no line with the numbers"),
        (b"3\n", "line 1: 1 numbers; expected"),
        (b"% a\n3 2 2\n", "line 2: the code 2 is not three digits"),
        (b"3 2 10 2\n", "line 1: 2 weights for each vertex"),
        (b"9999999999 2\n", "line 1: 9999999999 vertices are more than"),
        (b"3 2\n2\n1 3\n", "line 1 promises 3 vertices; 2 lines follow"),
        (PATH + b"\n1\n", "line 6: beyond the 3 vertices that line 1 promises"),
        (b"3 2\n2\n1 x3\n2\n", "line 3: 'x3' is not a whole number"),
        (b"3 2\n2\n1 3.5\n2\n", r"line 3: '3\.5' is not a whole number"),
        (b"3 2\n-2\n1 3\n2\n", "line 2: '-2' is not a whole number"),
        (b"3 2\n2 % no\n1 3\n2\n", "line 2: '%' is not"),
        (b"3 2\n1234567890123456\n1 3\n2\n", "line 2: '1234567890123456' has more than 15 digits"),
        (b"3 2\n2\n1 4\n2\n", r"line 3: neighbour 4 is not in 1\.\.3"),
        (b"3 2\n0\n1 3\n2\n", r"line 2: neighbour 0 is not in 1\.\.3"),
        (b"3 2\n1\n1 3\n2\n", "line 2: neighbour 1 is the vertex itself"),
        (b"3 2\n2 2\n1 3\n2\n", "line 2: neighbour 2 is named twice"),
        (b"3 2\n2\n1 1 3\n2\n", "line 3: neighbour 1 is named twice"),
        (b"3 2\n2\n3\n2\n", r"line 2: neighbour 2 does not name 1 \(line 3\)"),
        (b"3 2\n\n1 3\n2\n", r"line 3: neighbour 1 does not name 2 \(line 2\)"),
        (b"3 3\n2\n1 3\n2\n", "line 1 promises 3 edges; 2 follow"),
        (b"2 1 1\n2\n1 5\n", "line 2 has a neighbour without the weight"),
        (b"2 1 1\n2 0\n1 0\n", "line 2: neighbour 2 is joined by an edge of weight 0"),
        (b"2 1 1\n2 4\n1 5\n", "line 2: the edge to 2 has weight 4; line 3 gives it 5"),
        (b"2 1 10\n2 2\n\n", "line 3 lacks the vertex's size or weight"),
    ],
)
def test_what_is_wrong_is_said_with_its_line(text, message):
    with pytest.raises(ValueError, match=message):
        metis.parse(text)


@given(data=st.binary(max_size=60) | st.text("0123 %\n-x", max_size=60).map(str.encode))
def test_any_bytes_are_read_or_refused(data):
    assert_line_is_named(metis.parse, data)


def split(*arguments, stdin=b""):
    done = run("partition", *arguments, stdin=stdin)
    return done.returncode, done.stdout, done.stderr


def test_the_command_prints_and_writes_sides(tmp_path):
    ladder = [(v, v + 1, 9) for v in range(99)] + [(v, v + 100, 2) for v in range(100)]
    ladder += [(v, v + 1, 9) for v in range(100, 199)]
    source, sides = tmp_path / "ladder.graph", tmp_path / "ladder.part.2"
    source.write_bytes(written(ladder, 200))
    code, printed, errors = split(source, "-o", sides)
    assert (code, errors) == (0, "")
    assert "200 vertices, 298 edges" in printed
    side = np.loadtxt(sides, dtype=int)
    facts = json.loads(split(source, "--json")[1])
    assert facts["cut"] == 18
    assert facts["side_vertices"] == facts["side_weights"] == np.bincount(side).tolist()
    assert sum(weight for u, v, weight in ladder if side[u] != side[v]) == 18
    assert not facts["proven"]
    assert facts["complete"]
    assert facts["seconds"] < 10


def test_the_command_balances_weights_and_proves_small_ones():
    text = written([(0, 1, 1), (1, 2, 5), (2, 3, 5)], 4, vertex_weights=[9, 3, 3, 3])
    code, printed, _ = split("-", "--json", stdin=text)
    facts = json.loads(printed)
    assert (code, facts["cut"], facts["proven"], facts["side_weights"]) == (0, 1, True, [9, 9])
    code, printed, _ = split("-", "--imbalance", "0", "--fraction", "0.4", stdin=text)
    assert code == 1
    assert "not split: no bipartition exists with fraction = 0.4" in printed


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["-"], "standard input: line 3: neighbour 4 is not in 1..3"),
        (["nowhere.graph"], "nowhere.graph: No such file"),
        (["-", "--fraction", "2"], "line 3"),
        (["-", "--starts", "0"], "0 is not at least 1"),
    ],
)
def test_the_command_refuses_in_one_line(arguments, message):
    assert_command_refuses("partition", *arguments, message=message, stdin=b"3 2\n2\n1 4\n2\n")
