from __future__ import annotations

from pathlib import Path

import pytest

from refusals import refusal
from topoplace.topology.links.link_kinds import LinkKind
from topoplace_hosts.kubernetes.texts import topograph


def test_model(repository: Path) -> None:
    text = (repository / "tests/data/topographmodel-racks.yaml").read_text("utf-8")
    assert topograph.recognised(text)
    fabric = topograph.parse(text)
    assert fabric.machines == ("n01", "n02", "n03", "n05", "11", "12", "n21")
    assert fabric.level_names == ("nvlink_subdomain", "nvlink_domain", "leaf", "spine", "core")
    told = {level.name: level.domains for level in fabric.levels}
    assert told["nvlink_subdomain"] == (*["d1/s1"] * 4, *["d1/s2"] * 2, None)
    assert told["nvlink_domain"] == (*["d1"] * 6, None)
    assert told["leaf"] == (*["rack-1"] * 4, *["rack-2"] * 2, "rack-3")
    assert told["spine"] == (*["spine-1"] * 6, "spine-2")
    assert told["core"] == ("core",) * 7
    assert [level.kind for level in fabric.levels[:2]] == [LinkKind.NVSWITCH, LinkKind.NETWORK]
    assert "Without nodes: switch rack-4." in fabric.notes


def test_every_switch_without_nodes_below_it_is_noted() -> None:
    text = OLD.replace("switches: [a, b]", "switches: [a, b, c]") + "# nothing below d\n"
    text = text.replace(
        "capacity_blocks:\n- {", "- name: c\n  switches: [d]\n- name: d\ncapacity_blocks:\n- {"
    )
    fabric = topograph.parse(text)
    assert fabric.machines == ("n1-1", "n1-2", "n2-1")
    assert "Without nodes: switch c, d." in fabric.notes


OLD = """\
switches:
- name: top
  switches: [a, b]
- name: a
  capacity_blocks: [one]
- name: b
  capacity_blocks: [two]
capacity_blocks:
- {name: one, type: GB200, nvlink: x, nodes: [n1-1, n1-2]}
- {name: two, type: GB200, nvlink: y, nodes: [n2-1]}
"""


def test_older_models() -> None:
    assert topograph.recognised(OLD)
    fabric = topograph.parse(OLD)
    assert {level.name: level.domains for level in fabric.levels} == {
        "nvlink_domain": ("x", "x", "y"),
        "leaf": ("a", "a", "b"),
        "spine": ("top", "top", "top"),
    }
    assert fabric.levels[0].kind is LinkKind.NVSWITCH


def test_blocks_alone() -> None:
    fabric = topograph.parse("blocks:\n- switch: a\n  nodes: [n1]\n- switch: a\n  nodes: [n2]\n")
    assert fabric.level_names == ("leaf",)
    assert fabric.levels[0].domains == ("a", "a")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "a model is one document"),
        ("- a", "a model is one document"),
        ("switches: {}", "the model has no blocks"),
        ("blocks:\n- nodes: [a]", "line 2: a block without a switch"),
        ("blocks:\n- switch: a\n  nodes: ['n[1']", "line 2: nodes: the bracket"),
        ("blocks:\n- switch: a\n  nodes: [[1]]", "line 2: nodes = ['1'] is not a non-empty string"),
        (
            "switches: {r: {switches: [b]}}\nblocks:\n- switch: a\n  nodes: [n]",
            "line 3: switch 'a' is below no switch",
        ),
        (
            "switches: {r: {switches: [[b]]}}\nblocks: [{switch: r, nodes: [n]}]",
            "switches has ['b'], which is not a name",
        ),
        ("blocks:\n- switch: a\n  nodes: [n]\n- switch: b\n  nodes: [n]", "machine 'n' is below switch 'b'"),
        (
            "blocks:\n- switch: a\n  nodes: [n]\n  annotations: {x/domain: a, y/domain: b}",
            "line 2: two annotations end in /domain",
        ),
    ],
)
def test_refused(text: str, message: str) -> None:
    assert message in refusal(topograph.parse, text)
