"""Every wrong argument of the kernels about ports is named: nothing is cut to an integer, lost or taken for 0."""

from __future__ import annotations

import math
from typing import Any

import pytest

from topoplace.kernels import Flows, PortNetwork, map_to_tree
from topoplace.kernels.tree_mapping import Exchanges, PortTree

NETWORK: dict[str, Any] = {
    "gb_per_s": [1.0, 1.0],
    "entry": [[0, 1]],
    "segment_of": [0],
    "domain": [[0, 0]],
    "uplink": [[-1, -1]],
}
FLOWS: dict[str, Any] = {"phase_ends": [1], "start": [0], "end": [1], "there": [1.0], "back": [0.0]}
TREE: dict[str, Any] = {
    "parent": [-1, 0, 0],
    "room": [1, 1],
    "uplink": [0, 1, 1],
    "own_class": [0],
    "own": [[1, 1]],
}
EXCHANGES: dict[str, Any] = {
    "num_items": 2,
    "phase_ends": [1],
    "start": [0],
    "end": [1],
    "gigabytes": [1.0],
}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"entry": [[0, 1.7]]}, r"entry\[1\] = 1.7 is not an integer"),
        ({"entry": [[0, math.nan]]}, r"entry\[1\] = nan is not an integer"),
        ({"entry": [[0, 1 << 40]]}, r"entry\[1\] = .* is not an integer in -1\.\.2147483647"),
        ({"entry": None}, "entry has dtype object"),
        ({"segment_of": [0.9]}, r"segment_of\[0\] = 0.9 is not an integer"),
        ({"domain": [["a", "b"]]}, "domain has dtype"),
        ({"links": [[0, 1.5, 0]], "is_slower": [0]}, r"links\[1\] = 1.5 is not an integer"),
    ],
)
def test_a_wrong_network_is_named(change: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        PortNetwork(**(NETWORK | change))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"there": [math.nan]}, r"there\[0\] = nan is not a finite number of GB"),
        ({"there": [math.inf]}, r"there\[0\] = inf is not a finite number of GB"),
        ({"back": [-1.0]}, r"back\[0\] = -1 is not a finite number of GB"),
        ({"phase_ends": [0]}, "phase_ends ends at 0, of 1 flows"),
        ({"phase_ends": []}, "phase_ends ends at 0, of 1 flows"),
        ({"phase_ends": [1.5]}, r"phase_ends\[0\] = 1.5 is not an integer"),
        ({"start": [0.7]}, r"start\[0\] = 0.7 is not an integer"),
    ],
)
def test_wrong_flows_are_named(change: dict[str, Any], message: str) -> None:
    network = PortNetwork(**NETWORK)
    assert network.phase_times(Flows(**FLOWS))[0].seconds == 1.0
    assert network.best_orders(Flows(**FLOWS), [[0, 1]]).seconds.tolist() == [1.0]
    for asked in (network.phase_times, lambda flows: network.best_orders(flows, [[0, 1]])):
        with pytest.raises(ValueError, match=message):
            asked(Flows(**(FLOWS | change)))


@pytest.mark.parametrize(
    ("tree", "exchanges", "message"),
    [
        ({}, {"phase_ends": [1.7]}, r"phase_ends\[0\] = 1.7 is not an integer"),
        ({}, {"phase_ends": [1 << 70]}, "phase_ends"),
        ({}, {"num_items": 1 << 30}, r"num_items = 1073741824 is not in 0\.\.16777216"),
        (
            {"parent": range(-1, 100_000), "uplink": [0] * 100_001, "own_class": [0] * 100_000},
            {},
            r"parent\[1001\] = 1000: .* deeper than 1000",
        ),
    ],
)
def test_a_wrong_tree_mapping_is_named(tree: dict[str, Any], exchanges: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        map_to_tree(PortTree(**(TREE | tree)), Exchanges(**(EXCHANGES | exchanges)))


def test_something_else_than_a_tree_flows_or_exchanges_is_refused() -> None:
    with pytest.raises(ValueError, match="tree = 3 is not a PortTree"):
        map_to_tree(3, Exchanges(**EXCHANGES))  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="exchanges = 4 is not a Exchanges"):
        map_to_tree(PortTree(**TREE), 4)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="flows = 3 is not a Flows"):
        PortNetwork(**NETWORK).phase_times(3)  # type: ignore[arg-type]
