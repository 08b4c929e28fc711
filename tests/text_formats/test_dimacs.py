"""Networks in DIMACS' format: what is written is read, what is refused and where, and the command that solves them."""

from __future__ import annotations

import codecs
import gzip
import json
from typing import get_args

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from command_line import assert_command_refuses, run
from instances.flow_instances import FAMILIES, workload
from mutations import assert_line_is_named
from topoplace import kernels
from topoplace.cli.commands import flow as command
from topoplace.kernels.min_cost_flow import Algorithm
from topoplace.text_formats import dimacs

SMALL = b"""c four nodes, two ways
p min 4 5
n 1 4
n 4 -4
a 1 2 0 4 2
a 1 3 0 2 2
a 2 3 0 2 1
a 2 4 0 3 3
a 3 4 0 5 1
"""
SIXTY_FOUR_BITS = st.integers(-(2**63) + 1, 2**63 - 1)


@st.composite
def networks(draw):
    n = draw(st.integers(1, 6))
    node, most = st.integers(0, n - 1), st.integers(0, 2**63 - 1)
    rows = draw(st.lists(st.tuples(node, node, most, most, SIXTY_FOUR_BITS)))
    tail, head, one, other, cost = np.array(rows, dtype=np.int64).reshape(-1, 5).T
    supply = draw(st.lists(SIXTY_FOUR_BITS, min_size=n, max_size=n))
    return (
        n,
        tail,
        head,
        np.minimum(one, other),
        np.maximum(one, other),
        cost,
        np.array(supply, dtype=np.int64),
    )


@given(network=networks())
def test_what_is_written_is_read(network):
    n, tail, head, lower, capacity, cost, supply = network
    text = dimacs.format_network(n, tail, head, capacity, cost, supply, lower=lower)
    file = dimacs.parse(text.encode())
    assert file.num_nodes == n
    for read, expected in zip(file[1:], (tail, head, lower, capacity, cost, supply), strict=True):
        assert read.tolist() == expected.tolist()


def test_layout_is_free():
    plain = dimacs.parse(SMALL)
    lines = SMALL.splitlines(keepends=True)
    for text in (
        SMALL.replace(b"\n", b"\r\n"),
        SMALL[:-1],
        codecs.BOM_UTF8 + SMALL,
        b"c" * 500_000 + b"\n" + SMALL.replace(b" ", b" \t ").replace(b"n 1 4", b"\n\n  n 1 +4\ncomment"),
        b"".join(lines[:2] + lines[4:] + lines[2:4]),
    ):
        for read, expected in zip(dimacs.parse(text)[1:], plain[1:], strict=True):
            assert read.tolist() == expected.tolist()
    unlimited = dimacs.parse(b"p min 2 1\na 1 2 3 -1 0\n")
    assert (unlimited.lower.tolist(), unlimited.capacity.tolist()) == ([3], [kernels.INFINITE])


def edited(old, new):
    assert old in SMALL
    return SMALL.replace(old, new)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"c nothing\n", "no line `p min NODES ARCS`"),
        (b"a 1 2 0 1 1\n", "line 1: 'a' before the line `p min"),
        (edited(b"p min", b"p max"), "line 2: 'max' is not the problem `min`"),
        (edited(b"p min 4 5", b"p"), "line 2: '' is not the problem `min`"),
        (edited(b"p min 4 5", b"p min 4"), "line 2: 1 values after p; expected NODES ARCS"),
        (edited(b"p min 4 5", b"p min 4 6"), "line 2 promises 6 arcs; 5 follow"),
        (edited(b"p min 4 5", b"p min -4 5"), "line 2: NODES = -4 is not in 0"),
        (edited(b"p min 4 5", b"p min 9999999999 5"), "line 2: NODES = 9999999999 is not in 0"),
        (
            edited(b"p min 4 5", b"p min 2000000000 5"),
            "line 2: of 2000000000 nodes more than 10000000 have no",
        ),
        (SMALL + b"p min 4 5\n", "line 10: a second problem; the first is in line 2"),
        (SMALL + b"x 4 5\n", "line 10: 'x' is none of c, p, n, a"),
        (edited(b"n 1 4", b"n 1"), "line 3: 1 values after n; expected NODE SUPPLY"),
        (edited(b"n 1 4", b"n 5 4"), r"line 3: NODE = 5 is not in 1\.\.4"),
        (edited(b"n 1 4", b"n 4 4"), "line 4: NODE = 4 has a supply already, 4"),
        (edited(b"n 1 4", b"n 1 4.5"), r"line 3: SUPPLY = '4\.5' is not a whole number of 64 bits"),
        (edited(b"n 1 4", b"n 1 9223372036854775808"), "line 3: SUPPLY = '9223372036854775808' is not"),
        (edited(b"n 1 4", b"n 1 " + b"9" * 5000), "line 3: SUPPLY = '9{40}' is not"),
        (edited(b"a 1 2 0 4 2", b"a 0 2 0 4 2"), r"line 5: TAIL = 0 is not in 1\.\.4"),
        (edited(b"a 1 2 0 4 2", b"a 1 5 0 4 2"), r"line 5: HEAD = 5 is not in 1\.\.4"),
        (edited(b"a 2 4 0 3 3", b"a 2 9 0 3 3"), r"line 8: HEAD = 9 is not in 1\.\.4"),
        (edited(b"a 1 3 0", b" a 1 3 0").replace(b"a 2 4 0", b"a 2 4 7"), "line 8: LOWER = 7 is not in"),
        (edited(b"a 1 2 0 4 2", b"a 1 2 5 4 2"), r"line 5: LOWER = 5 is not in 0\.\.CAPACITY = 4"),
        (edited(b"a 1 2 0 4 2", b"a 1 2 0 -2 2"), r"line 5: LOWER = 0 is not in 0\.\.CAPACITY = -2"),
        (edited(b"a 1 2 0 4 2", b"a 1 2 -1 4 2"), r"line 5: LOWER = -1 is not in"),
        (edited(b"a 1 2 0 4 2", b"a 1 2 0 4"), "line 5: 4 values after a; expected TAIL HEAD LOWER"),
        (edited(b"a 1 2 0 4 2", b"a 1 2 0 4 1_0"), "line 5: COST = '1_0' is not"),
    ],
)
def test_what_is_wrong_is_said_with_its_line(text, message):
    with pytest.raises(ValueError, match=message):
        dimacs.parse(text)


def test_what_cannot_be_written_is_refused():
    with pytest.raises(ValueError, match=r"capacity\[1\] = -1 is below 0"):
        dimacs.format_network(2, [0, 1], [1, 0], [1, -1], [0, 0], [0, 0])
    with pytest.raises(ValueError, match="supply has 1 entries; the network has 2 nodes"):
        dimacs.format_network(2, [0], [1], [1], [0], [0])


ONE_ARC = {"num_nodes": 2, "tail": [0], "head": [1], "capacity": [4], "cost": [1], "supply": [1, -1]}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"capacity": [1.7]}, r"capacity\[0\] = 1\.7 is not an integer"),
        ({"cost": [1.9]}, r"cost\[0\] = 1\.9 is not an integer"),
        ({"cost": [-(2**63)]}, r"cost\[0\] = -9223372036854775808 is below"),
        ({"tail": [0.5]}, r"tail\[0\] = 0\.5 is not an integer"),
        ({"supply": [1.5, -1.5]}, r"supply\[0\] = 1\.5 is not an integer"),
        ({"head": [5]}, r"head\[0\] = 5 is not a node; nodes are 0\.\.1"),
        ({"tail": [-1]}, r"tail\[0\] = -1 is not a node"),
        ({"head": [1, 1]}, "head has 2 entries; the network has 1 arcs"),
        ({"lower": [1, 1]}, "lower has 2 entries; the network has 1 arcs"),
        ({"lower": [5]}, r"lower\[0\] = 5 is above the capacity"),
        ({"lower": [-1]}, r"lower\[0\] = -1 is below 0"),
    ],
)
def test_no_other_network_is_written_than_is_given(change, message):
    with pytest.raises(ValueError, match=message):
        dimacs.format_network(**ONE_ARC | change)


def test_a_capacity_without_limit_is_written_as_none():
    for none in (np.inf, kernels.INFINITE):
        assert "\na 1 2 0 -1 1\n" in dimacs.format_network(**ONE_ARC | {"capacity": [none]})


@pytest.mark.parametrize(
    ("solution", "message"),
    [
        (([0], [1], [1.5], 1), r"flow\[0\] = 1\.5 is not an integer"),
        (([0], [1, 0], [1], 1), "head has 2 entries; flow has 1"),
        (([-1], [1], [1], 1), r"tail\[0\] = -1 is not a node"),
        (([0], [1], [1], 1.5), r"cost = 1\.5 is not an integer"),
    ],
)
def test_no_other_solution_is_written_than_is_given(solution, message):
    with pytest.raises(ValueError, match=message):
        dimacs.format_solution(*solution)


@pytest.mark.parametrize("data", ["p min 0 0", None, bytearray(b"p min 0 0")])
def test_only_bytes_are_read(data):
    with pytest.raises(ValueError, match=r"data = .* is not a bytes"):
        dimacs.parse(data)


@given(
    data=st.binary(max_size=60) | st.text("0123 acnpmin\n-x", max_size=60).map(str.encode),
    at=st.integers(0, 100),
)
def test_any_bytes_are_read_or_refused(data, at):
    for text in (data, SMALL[:at] + data + SMALL[at:]):
        assert_line_is_named(dimacs.parse, text)


def solve(*arguments, stdin=b""):
    done = run("flow", *arguments, stdin=stdin)
    return done.returncode, done.stdout, done.stderr


def test_the_command_knows_all_algorithms():
    assert get_args(Algorithm) == command.ALGORITHMS


def test_the_command_prints_and_writes_flow(tmp_path):
    source, target = tmp_path / "small.min.gz", tmp_path / "small.sol"
    source.write_bytes(gzip.compress(SMALL))
    code, printed, errors = solve(source, "-o", target)
    assert (code, errors) == (0, "")
    assert "4 nodes, 5 arcs" in printed
    assert "14" in printed
    assert target.read_text("utf-8") == "s 14\nf 1 2 2\nf 1 3 2\nf 2 3 2\nf 2 4 0\nf 3 4 4\n"
    for algorithm in command.ALGORITHMS:
        facts = json.loads(solve("-", "--json", "--algorithm", algorithm, stdin=SMALL)[1])
        assert (facts["status"], facts["cost"], facts["arcs_with_flow"]) == ("optimal", 14, 4)
        assert algorithm in ("auto", facts["algorithm"])
        assert facts["seconds"] < 10


def test_the_command_shows_why_not(tmp_path):
    target = tmp_path / "none.sol"
    narrow = edited(b"a 2 4 0 3 3", b"a 2 4 0 1 3").replace(b"a 3 4 0 5 1", b"a 3 4 0 2 1")
    code, printed, _ = solve("-", "-o", target, stdin=narrow)
    assert code == 1
    assert "infeasible" in printed
    assert "1, 2, 3" in printed
    assert not target.exists()
    assert json.loads(solve("-", "--json", stdin=narrow)[1])["cut"] == [1, 2, 3]
    endless = b"p min 3 3\na 1 2 0 -1 1\na 2 3 0 -1 1\na 3 1 0 -1 -3\n"
    code, printed, _ = solve("-", stdin=endless)
    assert code == 1
    assert "unbounded" in printed
    assert sorted(json.loads(solve("-", "--json", stdin=endless)[1])["cycle"]) == [1, 2, 3]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["-"], "standard input: line 2: 'x' is none of c, p, n, a"),
        (["nowhere.min"], "nowhere.min: No such file"),
        (["-", "--algorithm", "magic"], "invalid choice: 'magic'"),
    ],
)
def test_the_command_refuses_in_one_line(arguments, message):
    assert_command_refuses("flow", *arguments, message=message, stdin=b"p min 2 0\nx\n")


INSTANCES = [build(8) for build in FAMILIES.values()]
INSTANCES += [
    workload(family, 10, load).instance() for family in ("scheduling", "phase 2") for load in (0.5, 1.5)
]


@pytest.mark.parametrize("instance", INSTANCES, ids=lambda instance: instance.name)
def test_instances_of_the_benchmarks_have_one_optimum(instance):
    """Through the text, by every algorithm that is fast enough."""
    arrays = instance.tail, instance.head, instance.capacity, instance.cost, instance.supply
    file = dimacs.parse(dimacs.format_network(instance.num_nodes, *arrays).encode())
    costs = set()
    for algorithm in ("auto", "cost_scaling", "network_simplex", "successive_shortest_path"):
        found = kernels.min_cost_flow(
            file.num_nodes, file.tail, file.head, file.capacity, file.cost, file.supply, algorithm=algorithm
        )
        assert found.status == "optimal"
        assert found.verify()
        costs.add(found.cost)
    assert len(costs) == 1
