"""What texts tell of a host: the make of CPUs, compute capabilities, several links between one pair."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

import topoplace as tp
from nccl_machines import CPU, machine
from topoplace.topology import compare

POWER9 = machine("power9", [[1], [1]], sm=70, pcie=3, nvlinks={(0, CPU): 3, (1, CPU): 3})


def test_both_links_to_a_cpu_are_kept():
    between = [(a, b, link.kind, link.gb_per_s) for a, b, link in POWER9.component_links]
    assert between == [
        (0, 2, tp.LinkKind.NVLINK2, 75.0),
        (0, 2, tp.LinkKind.PCIE, 15.75),
        (1, 3, tp.LinkKind.NVLINK2, 75.0),
        (1, 3, tp.LinkKind.PCIE, 15.75),
        (2, 3, tp.LinkKind.SYSTEM, 32.0),
    ]
    assert POWER9.bandwidth(0, 1) == 32


def test_a_pair_has_one_link_of_each_kind():
    twice = (*POWER9.component_links, (0, 2, tp.Link(tp.LinkKind.PCIE, 1, 5.0)))
    with pytest.raises(tp.TopologyError, match=r"component_links\[5\] = \(0, 2\) is the pair of"):
        replace(POWER9, component_links=twice)
    with pytest.raises(tp.TopologyError, match=r"links\[1\] = \(0, 1\) is the pair of links\[0\]"):
        tp.Topology.from_links(2, [(0, 1, 5.0, "pcie"), (0, 1, 5.0, "host")])


def test_makes_and_capabilities_are_read_and_written():
    for topology in (POWER9, tp.Topology.from_json(POWER9.to_json())):
        assert topology == POWER9
        assert [part.cpu for part in topology.components] == ["socket-power9"] * 2
        assert [gpu.capability for gpu in topology.gpus] == [70, 70]
    assert machine("amd", [[1, 1]]).components[0].cpu == "socket-amd"


def test_without_a_make_the_json_is_as_before():
    parts = [replace(part, cpu=None) for part in POWER9.components]
    record = json.loads(replace(POWER9, components=tuple(parts)).to_json())
    assert record["components"] == [["numa_node", "NUMA 0"], ["numa_node", "NUMA 1"]]


def test_an_unknown_make_is_refused():
    part = replace(POWER9.components[0], cpu="socket-z80")
    with pytest.raises(tp.TopologyError, match=r"components\[0\]\.cpu = 'socket-z80' is not one of socket-"):
        replace(POWER9, components=(part, *POWER9.components[1:]))


def test_a_lost_link_and_another_make_are_found():
    fewer = tuple(entry for entry in POWER9.component_links if entry[2].kind is not tp.LinkKind.PCIE)
    other = (replace(POWER9.components[0], cpu="socket-arm"), *POWER9.components[1:])
    said = {
        change.what
        for change in compare.diff(POWER9, replace(POWER9, component_links=fewer, components=other))
    }
    assert said == {
        "GPU0 - numa_node NUMA 0, PCIE",
        "GPU1 - numa_node NUMA 1, PCIE",
        "numa_node NUMA 0",
    }
