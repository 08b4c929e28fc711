from __future__ import annotations

from pathlib import Path

import pytest

from refusals import refusal
from topoplace.topology.links.link_kinds import LinkKind
from topoplace_hosts.networks import netq


def test_compute_nodes(repository: Path) -> None:
    text = (repository / "tests/data/netq-computenodes.json").read_text("utf-8")
    assert netq.recognised(text)
    fabric = netq.parse(text)
    assert fabric.machines == ("t1", "t2", "t3", "t4")
    (level,) = fabric.levels
    assert (level.name, level.kind, level.domains) == (
        "nvlink_domain",
        LinkKind.NVSWITCH,
        ("d-1", "d-1", "d-2", None),
    )
    assert fabric.notes == (
        "1 machines have 0 GPUs.",
        "1 machines have 1 GPUs.",
        "2 machines have 2 GPUs.",
        "Not healthy: t2.",
    )


def test_graph(repository: Path) -> None:
    text = (repository / "tests/data/netq-graph.json").read_text("utf-8")
    assert netq.recognised(text)
    fabric = netq.parse(text)
    assert fabric.machines == ("h1", "h2", "h3")
    assert {level.name: level.domains for level in fabric.levels} == {
        "leaf": ("leaf1", "leaf1", "leaf2"),
        "spine": ("spine1", "spine1", "spine1"),
    }
    assert fabric.levels[1].oversubscription == 9 / 4
    assert "Links between machines are left out: h1 to h2." in fabric.notes


GRAPH = '[{"nodes": [{"id": "1", "name": "s", "device_type": "switch"}, {"id": "2", "name": "h"}], "links": [%s]}]'


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: 1", "not JSON: it must begin with"),
        ("[]", "is empty"),
        ("[1]", "an entry = '1' is not a mapping"),
        ("[{}]", "entry 0 has no Name: no compute node"),
        ('[{"Name": "a"}]', "entry 0 has no DomainUUID: no compute node"),
        (
            '[{"Name": "a", "DomainUUID": "d"}, {"Name": "a", "DomainUUID": "d"}]',
            "compute node 'a' appears twice",
        ),
        ('{"nodes": [{"id": "1"}], "links": []}', "a node of the graph has no name"),
        (GRAPH.replace('"2"', '"1"') % "", "node '1' of the graph appears twice"),
        (GRAPH.replace('"h"', '"s"') % "", "2 nodes of the graph have the name 's'"),
        (GRAPH % "", "no fabric: the graph has no machine that is plugged into a switch"),
        (GRAPH % '{"src": "1", "target": "3"}', "target of a link = '3' is not a node of the graph"),
        (GRAPH % '{"src": "1", "target": "2", "size": 0}', "size = '0' is not a number in 1..100000"),
    ],
)
def test_refused(text: str, message: str) -> None:
    assert message in refusal(netq.parse, text)
