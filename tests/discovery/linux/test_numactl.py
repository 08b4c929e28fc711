from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

import topoplace as tp
from topoplace.discovery.linux import numactl
from topoplace.discovery.text.cpu_list import list_of


@pytest.fixture
def text(repository: Path) -> str:
    """Two sockets, each with a node of CPUs and one of high-bandwidth memory alone."""
    return (repository / "tests/data/numactl-2-sockets-hbm.txt").read_text("utf-8")


def machine(*numa_nodes: int | None) -> tp.Topology:
    gpus = tuple(tp.Gpu(i, f"GPU{i}", numa_node=node) for i, node in enumerate(numa_nodes))
    return tp.Topology(gpus, default=10.0)


def test_nodes_with_their_cpus_sizes_and_distances(text: str) -> None:
    numa = numactl.parse(text)
    assert [(node.id, list_of(node.cpus), node.size_mb) for node in numa.nodes] == [
        (0, "0-3,8-11", 128000),
        (1, "4-7,12-15", 128000),
        (2, "", 65536),
        (3, "", 65536),
    ]
    assert numa.distances == ((10, 21, 13, 23), (21, 10, 23, 13), (13, 23, 10, 23), (23, 13, 23, 10))
    assert numa.notes == ()


def test_distances_that_are_cut_off_are_open_and_taken_from_the_way_back(text: str) -> None:
    numa = numactl.parse(text[: text.index("  3:  23")].encode())
    assert numa.distances[3] == (None, None, None, None)
    assert (numa.distance(3, 1), numa.distance(3, 3)) == (13, None)
    assert numa.notes == ("The distances from NUMA nodes 3 are not given.",)


def test_joining_sets_sockets_and_cpus(text: str) -> None:
    joined = numactl.joined(machine(0, 1, 2, 3, None), numactl.parse(text))
    assert [(gpu.socket, gpu.cpus) for gpu in joined.gpus] == [
        (0, "0-3,8-11"),
        (1, "4-7,12-15"),
        (0, "0-3,8-11"),  # memory only: the CPUs of the nearest node
        (1, "4-7,12-15"),
        (None, None),
    ]
    assert joined.link(0, 2).kind is tp.LinkKind.HOST_BRIDGES
    assert joined.link(0, 1).kind is tp.LinkKind.SYSTEM
    assert joined.notes == (
        "The NUMA nodes of 1 GPUs are not given: their sockets and CPUs are as they were.",
    )


def test_how_far_sockets_reach_can_be_set(text: str) -> None:
    joined = numactl.joined(machine(0, 1), numactl.parse(text), socket_distance=22)
    assert [gpu.socket for gpu in joined.gpus] == [0, 0]


def test_joining_needs_one_machine_and_its_nodes(text: str) -> None:
    numa = numactl.parse(text)
    with pytest.raises(tp.TopologyError, match="NUMA node 7 is none of '0, 1, 2, 3'"):
        numactl.joined(machine(7), numa)
    two = tp.Topology((tp.Gpu(0, "GPU0"), tp.Gpu(1, "GPU0", machine="machine1")))
    with pytest.raises(tp.TopologyError, match="topology has 2 machines"):
        numactl.joined(two, numa)
    with pytest.raises(tp.TopologyError, match="so sockets are too"):
        numactl.joined(machine(0), replace(numa, distances=()))


def test_text_without_nodes_is_refused() -> None:
    with pytest.raises(tp.TopologyError, match=r"^no NUMA node"):
        numactl.parse("")
    with pytest.raises(tp.TopologyError, match=r"^line 1: 'No NUMA available"):
        numactl.parse("No NUMA available on this system\n")


def test_a_prompt_before_the_nodes_is_skipped(text: str) -> None:
    assert numactl.parse("me@node:~$ numactl -H\n" + text) == numactl.parse(text)


WRAPPED = """\
available: 2 nodes (0-1)
node 0 cpus: 0 1 2 3
8 9 10 11
node 0 size: 1000 MB
node 1 cpus: 4 5 6 7
12 13
14 15
node distances:node   0   1
0:  10  21
1:  21  10
"""


def test_cpus_may_go_on_in_the_next_line() -> None:
    numa = numactl.parse(WRAPPED)
    assert [list_of(node.cpus) for node in numa.nodes] == ["0-3,8-11", "4-7,12-15"]
    assert numa.distances == ((10, 21), (21, 10))
    with pytest.raises(tp.TopologyError, match="line 6: CPU 2 of node 1 is of node 0 too"):
        numactl.parse(WRAPPED.replace("12 13", "2 13"))
    with pytest.raises(tp.TopologyError, match="line 5: '8 9' is not a line of"):
        numactl.parse(WRAPPED.replace("node 1 cpus", "8 9\nnode 1 cpus"))


def test_lines_above_and_below_are_noted(text: str) -> None:
    numa = numactl.parse(f"Our nodes:\n$ numactl -H | cat\n{text}\nThe last two have no CPUs.\n")
    last = len(text.splitlines()) + 4
    assert numa.nodes == numactl.parse(text).nodes
    assert numa.notes == (
        f"Lines from which nothing is read: line 1: 'Our nodes:'; line {last}: 'The last two have no CPUs.'.",
    )


def test_nodes_alone_tell_no_distances() -> None:
    numa = numactl.parse("$ numactl -H | grep cpus\nnode 0 cpus: 0 1\nnode 1 cpus: 2 3\n")
    assert [node.cpus for node in numa.nodes] == [(0, 1), (2, 3)]
    assert numa.notes == ("Distances between NUMA nodes are not given.",)


def test_a_machine_without_a_table_of_distances() -> None:
    numa = numactl.parse("available: 1 nodes (0)\nnode 0 cpus: 0 1\nNo distance information available.\n")
    assert numa.nodes == (numactl.NumaNode(0, (0, 1)),)
    assert numa.notes == ("Distances between NUMA nodes are not given.",)


def test_recognised(text: str) -> None:
    assert numactl.recognised(text)
    assert not numactl.recognised("node distances")


@pytest.mark.parametrize("text", ["0", "0-3", "0-3,8,10-11"])
def test_lists_read_as_written(text: str) -> None:
    assert list_of(numactl.ids_of(text, "ids")) == text
