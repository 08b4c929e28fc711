from __future__ import annotations

from pathlib import Path

import pytest

import topoplace as tp
from refusals import refusal
from topoplace import discovery
from topoplace_hosts.kubernetes.texts import volcano


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


NODES = "".join(
    f"---\nkind: Node\nmetadata: {{name: node-{i}, labels: {{rack: r{i // 2}, idle: x}}}}\n"
    "status: {capacity: {nvidia.com/gpu: 2}}\n"
    for i in range(4)
)
BY = """\
kind: HyperNode
metadata: {name: NAME}
spec:
  tier: 1
  members:
  - type: Node
    selector: SELECTOR
"""
LABELS = "{labelMatch: {matchLabels: {rack: r0}}}"
EXPRESSIONS = "{labelMatch: {matchExpressions: [{key: rack, operator: OPERATOR, values: [r0]}]}}"
HALL = """\
---
kind: HyperNode
metadata: {name: hall}
spec:
  tier: 2
  members:
  - {type: HyperNode, selector: {regexMatch: {pattern: "^rack-"}}}
"""


@pytest.mark.parametrize(
    ("selector", "members"),
    [
        (LABELS, "01"),
        (EXPRESSIONS.replace("OPERATOR", "In"), "01"),
        (EXPRESSIONS.replace("OPERATOR", "NotIn"), "23"),
        (EXPRESSIONS.replace("OPERATOR", "Exists"), "0123"),
        ("{regexMatch: {pattern: 'node-[13]$'}}", "13"),
    ],
)
def test_members_chosen_among_the_nodes_of_the_text(selector: str, members: str) -> None:
    text = BY.replace("NAME", "rack-0").replace("SELECTOR", selector) + HALL + NODES
    read = discovery.read(text)
    assert isinstance(read, tp.Topology)
    assert (read.num_gpus, read.fabric.level_names) == (8, ("tier1", "tier2"))
    assert [
        name[-1]
        for name, domain in zip(read.fabric.machines, read.fabric.levels[0].domains, strict=True)
        if domain
    ] == list(members)
    assert read.fabric.levels[1].domains == read.fabric.levels[0].domains or set(
        read.fabric.levels[1].domains
    ) <= {"hall", None}
    left = [i for i in "0123" if i not in members]
    assert any("In no HyperNode: node-" + left[0] in note for note in read.notes) if left else True


@pytest.mark.parametrize(
    ("selector", "why"),
    [
        (LABELS.replace("r0", "r9"), "is selected by labelMatch, which none of node-0"),
        ("{labelMatch: {}}", "labelMatch has neither matchLabels nor matchExpressions"),
        (EXPRESSIONS.replace("OPERATOR", "Gt"), "operator = 'Gt' is not In, NotIn, Exists or DoesNotExist"),
        ("{regexMatch: {pattern: '(a+)+$'}}", "repeats a group"),
        ("{regexMatch: {pattern: '[a'}}", "pattern = '[a': "),
        ("{other: {}}", "is selected by 'other', which only the live cluster resolves; add to the text what"),
    ],
)
def test_a_selector_that_cannot_be_used(selector: str, why: str) -> None:
    text = BY.replace("NAME", "rack-0").replace("SELECTOR", selector) + NODES
    assert why in refusal(discovery.read, text)


def test_nodes_without_gpus_give_the_network() -> None:
    nodes = NODES.replace("status: {capacity: {nvidia.com/gpu: 2}}\n", "")
    read = discovery.read(BY.replace("NAME", "rack-0").replace("SELECTOR", LABELS) + nodes)
    assert isinstance(read, tp.Fabric)
    assert read.machines == ("node-0", "node-1")
