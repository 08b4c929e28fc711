from __future__ import annotations

from pathlib import Path

import pytest

from refusals import refusal
from topoplace.discovery.cluster_managers import volcano


def test_tiers(repository: Path) -> None:
    text = (repository / "tests/data/volcano-hypernodes.yaml").read_text("utf-8")
    assert volcano.recognised(text)
    fabric = volcano.parse(text)
    assert fabric.machines == ("n0", "n1", "n2", "n3")
    assert fabric.level_names == ("tier1", "tier3")
    assert fabric.levels[0].domains == ("rack0", "rack0", "rack1", None)
    assert fabric.levels[1].domains == ("hall",) * 4


def test_json_list() -> None:
    text = '{"kind": "HyperNodeList", "items": [{"kind": "HyperNode", "metadata": {"name": "a"}, "spec": {"tier": 1, '
    text += '"members": [{"type": "Node", "selector": {"exactMatch": {"name": "n"}}}]}}]}'
    assert volcano.recognised(text)
    assert volcano.parse(text).levels[0].domains == ("a",)


HYPERNODE = """\
kind: HyperNode
name: a
spec:
  tier: 1
  members:
  - name: n
"""


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("kind: Node", "there is no object of kind HyperNode"),
        (HYPERNODE.replace("name: a", "x: a"), "line 1: a HyperNode without a name"),
        (HYPERNODE.replace("tier: 1", "x: 1"), "line 1: HyperNode 'a' has no tier"),
        (HYPERNODE.replace("tier: 1", "tier: -1"), "line 4: tier = '-1' is not a number"),
        (HYPERNODE.replace("- name: n", "- type: Pod"), "line 6: type = 'Pod' is neither Node nor HyperNode"),
        (HYPERNODE.replace("- name: n", "- type: Node"), "line 6: a member of HyperNode 'a' has no name"),
        (
            HYPERNODE.replace("- name: n", "- selector: {regexMatch: {pattern: 'n.*'}}"),
            "line 6: a member of HyperNode 'a' is selected by 'regexMatch', which only the live cluster resolves",
        ),
        (HYPERNODE.replace("tier: 1", "tier: 2"), "line 1: HyperNode 'a' has the child 'n'"),
        (HYPERNODE + "---\n" + HYPERNODE, "line 8: HyperNode 'a' appears twice, first in line 1"),
        (
            HYPERNODE
            + "---\n"
            + HYPERNODE.replace("name: a", "name: b").replace("name: n", "{name: a, type: HyperNode}"),
            "line 8: HyperNode 'b' is not on a higher level than all its children",
        ),
    ],
)
def test_refused(text: str, message: str) -> None:
    assert message in refusal(volcano.parse, text)


def test_dangling_members_can_be_left_out() -> None:
    text = HYPERNODE + "---\n" + HYPERNODE.replace("name: a", "name: b").replace("tier: 1", "tier: 2")
    fabric = volcano.parse(text, allow_dangling=True)
    assert fabric.machines == ("n",)
    assert any("does not describe them: n." in note for note in fabric.notes)
