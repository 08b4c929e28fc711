from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import topoplace as tp
from topoplace_hosts.slurm.texts import topology_conf, topology_yaml

parse = topology_yaml.parse


@pytest.fixture
def text(repository: Path) -> str:
    return (repository / "tests/data/slurmtopo-topologies.yaml").read_text("utf-8")


def test_the_default_is_what_the_conf_would_say(text: str) -> None:
    fabric = parse(text)
    lines = (
        "SwitchName=top Switches=left,right\nSwitchName=left Nodes=n[1-4]\nSwitchName=right Nodes=n[5-8]\n"
    )
    same = topology_conf.parse(lines)
    assert (fabric.machines, fabric.levels) == (same.machines, same.levels)
    assert fabric.notes == (
        "This is fabric of the topologies racks, fabric, loop, login, cube.",
        "Slurm's topology.yaml tells no speeds.",
    )
    assert tp.discovery.read(text) == fabric


def test_another_one_by_its_name(text: str) -> None:
    racks = parse(text, topology="racks")
    assert racks.level_names == ("block", "blocks_2")
    assert racks.levels[1].domains == ("r1 and on",) * 4 + ("r3 and on",) * 2
    assert parse(text, topology="loop").level_names == ("ring",)


def test_the_only_one_needs_no_name() -> None:
    fabric = parse("- topology: a\n  tree: {switches: [{switch: s, nodes: n1}]}\n")
    assert (fabric.machines, fabric.notes) == (("n1",), ("Slurm's topology.yaml tells no speeds.",))


def test_topologies_that_tell_no_levels(text: str) -> None:
    with pytest.raises(
        tp.TopologyError, match=r"^line 27: topology 'login' is flat: .*it names none; `scontrol"
    ):
        parse(text, topology="login")
    with pytest.raises(tp.TopologyError, match=r"^topology = 'x' is none of racks, fabric"):
        parse(text, topology="x")
    with pytest.raises(tp.TopologyError, match=r"^topology.yaml is one list of topologies"):
        parse("racks: 1")


def test_toruses_are_domains() -> None:
    text = """- topology: pods
  torus3d:
    toruses:
    - name: one
      dims: {x: 2, y: 1, z: 1}
      nodes: "n[1-2]"
    - name: two
      dims: {x: 2, y: 2, z: 1}
      regions:
      - anchor: {x: 0, y: 0, z: 0}
        nodes: "n3"
      - nodes: "n4"
"""
    fabric = parse(text)
    assert [(level.name, level.domains) for level in fabric.levels] == [
        ("torus", ("one", "one", "two", "two"))
    ]
    assert "The places of nodes in a torus form no levels, and are left out." in fabric.notes
    with pytest.raises(tp.TopologyError, match="line 12: node 'n1' appears twice"):
        parse(text.replace('"n4"', '"n1"'))
    with pytest.raises(tp.TopologyError, match="topology 'pods' has no nodes"):
        parse("- topology: pods\n  torus3d:\n    toruses: []\n")


def test_recognised(text: str) -> None:
    assert topology_yaml.recognised(text)
    assert not topology_yaml.recognised("- topology: x\n  rack: y\n")
    assert not topology_yaml.recognised("topology:\n  tree: 1\n")


@given(
    st.lists(
        st.sampled_from(["- topology: a", "  tree:", "    switches:", "      - switch: s", "- ", ": ", "n1"])
    )
)
def test_junk(lines: list[str]) -> None:
    with suppress(tp.TopologyError):
        parse("\n".join(lines))


PHANTOMS = """\
- topology: t
  block:
    block_sizes: [2, 8]
    blocks:
      - {block: a0, nodes: "n[0-1]"}
      - {block: a1, nodes: ""}
      - {block: a2, nodes: ""}
      - {block: a3, nodes: ""}
      - {block: b0, nodes: "n[2-3]"}
"""


def test_blocks_without_nodes_fill_larger_ones() -> None:
    fabric = parse(PHANTOMS)
    assert fabric.level_names == ("block", "blocks_4")
    assert fabric.levels[1].domains == ("a0 and on",) * 2 + ("b0 and on",) * 2
    assert "Blocks without nodes, which fill larger blocks: a1, a2, a3." in fabric.notes


def test_blocks_of_no_nodes_at_all_are_refused() -> None:
    with pytest.raises(tp.TopologyError):
        parse("- topology: t\n  block:\n    blocks:\n      - {block: a, nodes: ''}\n")
