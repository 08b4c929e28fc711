from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import topoplace as tp
from refusals import refusal
from topoplace.discovery.text import host_list
from topoplace.topology.fabric import Fabric
from topoplace_hosts.slurm.texts import topology_conf


def fixture(repository: Path, name: str) -> Fabric:
    text = (repository / "tests/data" / name).read_text("utf-8")
    assert topology_conf.recognised(text)
    return topology_conf.parse(text)


def domains(fabric: Fabric, level: str) -> dict[str | None, str]:
    """The machines of each domain of a level."""
    found: dict[str | None, list[str]] = {}
    (one,) = [one for one in fabric.levels if one.name == level]
    for machine, domain in zip(fabric.machines, one.domains, strict=True):
        found.setdefault(domain, []).append(machine)
    return {domain: host_list.folded(machines) for domain, machines in found.items()}


def test_tree(repository: Path) -> None:
    fabric = fixture(repository, "slurmtopo-tree.conf")
    assert fabric.level_names == ("leaf", "spine", "core")
    leaves = {"leaf1": "n[01-03]", "leaf2": "n[04,06],x9", "leaf3": "n[10-11]", "old": "k1"}
    assert domains(fabric, "leaf") == leaves | {None: "login[1-2]"}
    assert domains(fabric, "spine")["spine2"] == "login[1-2],n[10-11]"
    assert domains(fabric, "core")[None] == "k1"
    notes = " ".join(fabric.notes)
    assert "Nothing joins 2 trees" in notes
    assert "LinkSpeed, whose unit is arbitrary, is not used: '400' (1 times)" in notes
    assert all(level.gb_per_s is None for level in fabric.levels)


def test_fat_tree_is_a_tree(repository: Path) -> None:
    fabric = fixture(repository, "slurmtopo-fattree.conf")
    assert domains(fabric, "leaf") == {"l0": "tux[0-1]", "l1": "tux[2-3]"}
    assert domains(fabric, "spine") == {"s0": "tux[0-3]"}
    assert "switch s0 and s1" in fabric.notes[0]


def test_blocks(repository: Path) -> None:
    fabric = fixture(repository, "slurmtopo-block.conf")
    assert fabric.level_names == ("block", "blocks_2")
    assert domains(fabric, "block") == {"b1": "n[01-04]", "b2": "n[05-08]", "b3": "n[09-12]"}
    assert domains(fabric, "blocks_2") == {"b1 and on": "n[01-08]", "b3 and on": "n[09-12]"}
    assert "Slurm plans with so many machines of a block, and the blocks have 4 to 4" in fabric.notes[0]


def test_switches_as_scontrol_shows_them(repository: Path) -> None:
    shown = """$ scontrol show topology
SwitchName=top Level=2 LinkSpeed=1 Nodes=k1,login1,n[01-04] Switches=old,spine
SwitchName=spine Level=1 LinkSpeed=1 Nodes=login1,n[01-04] Switches=leaf[1-2]
SwitchName=leaf1 Level=0 LinkSpeed=1 Nodes=n[01-02]
SwitchName=leaf2 Level=0 LinkSpeed=1 Nodes=n[03-04]
SwitchName=old Level=0 LinkSpeed=1 Nodes=k1
"""
    fabric = topology_conf.parse(shown)
    assert domains(fabric, "leaf") == {"leaf1": "n[01-02]", "leaf2": "n[03-04]", "old": "k1", None: "login1"}
    assert domains(fabric, "spine") == {"spine": "login1,n[01-04]", None: "k1"}
    assert tp.discovery.read(shown) == fabric
    with pytest.raises(
        tp.TopologyError, match=r"^line 3: Level = '' is not a number, but other lines have one"
    ):
        topology_conf.parse(shown.replace("spine Level=1", "spine"))
    with pytest.raises(tp.TopologyError, match="n01"):
        topology_conf.parse(shown.replace("n[03-04]\n", "n[01-04]\n"))


def test_blocks_as_scontrol_shows_them() -> None:
    shown = "BlockName=b1 BlockIndex=0 Nodes=n[1-2] BlockSize=2\nBlockName=b2 BlockIndex=1 Nodes=n[3-4] BlockSize=2\n"
    assert topology_conf.parse(shown).level_names == ("block",)
    larger = "AggregatedBlock=b[1-2] BlockIndex=2 Nodes=n[1-4] BlockSize=4\n"
    same = topology_conf.parse("BlockName=b1 Nodes=n[1-2]\nBlockName=b2 Nodes=n[3-4]\nBlockSizes=2,4\n")
    assert topology_conf.parse(shown + larger) == same


def test_rings(repository: Path) -> None:
    fabric = fixture(repository, "slurmtopo-ring.conf")
    assert domains(fabric, "ring") == {"r0": "n[01-04]", "r1": "n[05-08]"}
    assert "does not state the distance along a ring" in fabric.notes[0]


def test_a_cluster_of_it(repository: Path) -> None:
    fabric = fixture(repository, "slurmtopo-tree.conf")
    machine = tp.Topology.from_links(2, [(0, 1, 25.0)])
    cluster = tp.Topology.cluster(machine, fabric=fabric.with_level("leaf", gb_per_s=50.0))
    assert cluster.num_gpus == 2 * len(fabric.machines)
    assert cluster.bandwidth(cluster.gpus_of["n01"][0], cluster.gpus_of["n02"][0]) == 50.0


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "no line has SwitchName, BlockName, RingName"),
        ("# nothing\n", "no line has"),
        ("BlockSizes=4", "no line has"),
        ("Switchname s0", "line 1: 'Switchname s0' is not KEY=VALUE"),
        ("SwitchName=a Node=b", "line 1: 'Node' is not a key"),
        ("SwitchName=a Nodes=b nodes=c", "line 1: nodes appears twice"),
        ("\nSwitchName=a", "line 2: SwitchName without Nodes or Switches"),
        ("BlockName=a", "line 1: BlockName without Nodes"),
        ("SwitchName=a Nodes=n[1-", "line 1: nodes: the bracket in '[1-' has no partner"),
        ("SwitchName=a Nodes=b BlockName=c", "line 1: SwitchName and BlockName in one line"),
        (
            "SwitchName=a Nodes=b\nRingName=r Nodes=c",
            "line 2: RingName in a file that has SwitchName in line 1",
        ),
        ("SwitchName=a Nodes=b\nBlockSizes=4", "line 2: BlockSizes in a file of SwitchName"),
        ("Nodes=b", "line 1: none of SwitchName"),
        ("Include other.conf", "line 1: 'Include other.conf' is not KEY=VALUE"),
        ("Include=other.conf", "line 1: Include names another file"),
        ("BlockName=a Nodes=b\nBlockSizes=4,x", "line 2: BlockSizes: 'x' is not a number"),
        ("BlockName=a Nodes=b\nBlockSizes=4,12", "12 is not the first size times a larger power of two"),
        ("BlockName=a Nodes=b\nBlockSizes=4,4", "4 is not the first size times a larger power of two"),
        (
            "BlockName=a Nodes=b\nBlockSizes=4\nBlockSizes=4",
            "line 3: BlockSizes appears twice, first in line 2",
        ),
        ("BlockName=a Nodes=b Switches=c", "line 1: Switches in a line of BlockName"),
        ("BlockName=a Nodes=n1\nBlockName=b Nodes=n1", "line 2: no tree: machine 'n1' is below block 'b'"),
        ("SwitchName=a Switches=b", "line 1: switch 'a' has the child 'b'"),
        ("SwitchName= Nodes=b", "line 1"),
        (
            "SwitchName=a Nodes=n[0-999999]\nSwitchName=b Nodes=n",
            "line 2: nodes: with 'n' there are more than 0",
        ),
    ],
)
def test_refused(text: str, message: str) -> None:
    assert message in refusal(topology_conf.parse, text)


def test_a_line_that_is_continued_by_nothing() -> None:
    assert topology_conf.parse("SwitchName=a \\\nNodes=n1\\").machines == ("n1",)


def test_many_short_lines_are_refused() -> None:
    with pytest.raises(tp.TopologyError, match="line 20834: more than 20833 lines with content"):
        topology_conf.parse("SwitchName=a Nodes=n1\n" * 45_455)


def test_dangling_switches_can_be_left_out() -> None:
    fabric = topology_conf.parse("SwitchName=a Switches=b,c\nSwitchName=b Nodes=n1", allow_dangling=True)
    assert fabric.level_names == ("leaf", "spine")


@given(
    st.lists(
        st.sampled_from(
            [
                "SwitchName=",
                "Nodes=",
                "a",
                "b",
                ",",
                "[1-2]",
                "[",
                "]",
                "\n",
                "#",
                "\\",
                "BlockName=",
                "Switches=",
            ]
        )
    )
)
def test_junk(words: list[str]) -> None:
    with suppress(tp.TopologyError):
        topology_conf.parse("".join(words))
