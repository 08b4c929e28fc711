"""A text around one code block of Markdown: read where a reader can, else the block alone is, with a note."""

from __future__ import annotations

import pytest

import topoplace as tp
from distributions import whole
from refusals import refusal
from topoplace import discovery
from topoplace.discovery.text import code_blocks
from topoplace.topology.fabric import Fabric

CONF = "SwitchName=s0 Nodes=n[0-1]\nSwitchName=s1 Nodes=n[2-3]\nSwitchName=s2 Switches=s[0-1]\n"
GRES = "Name=gpu Type=V100 File=/dev/nvidia[0-3]\n"


def test_a_block_keeps_its_line_numbers() -> None:
    assert list(code_blocks.blocks("a\n```conf\nb\nc\n```\nd\n~~~\ne\n~~~\n```\nf")) == [
        ("\n\nb\nc\n\n\n\n\n\n\n", {3, 4}),
        ("\n\n\n\n\n\n\ne\n\n\n", {8}),
    ]
    assert list(code_blocks.blocks("no fence")) == []


@whole
def test_the_only_block_of_the_format_is_read() -> None:
    text = f"Our switches are:\n```\n{CONF}```\nThe nodes 0 and 1 share one.\n\n```sh\nls\n```\n"
    for data in (text, text.encode()):
        fabric = discovery.read(data)
        assert isinstance(fabric, Fabric)
        assert fabric.machines == ("n0", "n1", "n2", "n3")
        assert fabric.notes[-1] == (
            "Lines from which nothing is read: line 1: 'Our switches are:'; "
            "line 7: 'The nodes 0 and 1 share one.'; line 10: 'ls'."
        )


@whole
@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            f"```\n{CONF}```\nor\n```\n{CONF}```\n",
            "line 6: 'or' is not KEY=VALUE",
        ),
        (f"As follows:\n```\n{GRES}oops\n```\n", "line 1: 'As follows:' is not KEY=VALUE"),
    ],
)
def test_the_first_fault_is_named_otherwise(text: str, message: str) -> None:
    assert refusal(discovery.read, text) == message


@whole
def test_a_topology_in_a_block_has_the_note_too() -> None:
    topology = discovery.read(f"gres.conf of gpu7:\n\n```\n{GRES}```\n")
    assert isinstance(topology, tp.Topology)
    assert topology.num_gpus == 4
    assert "Lines from which nothing is read: line 1: 'gres.conf of gpu7:'." in topology.notes
