"""A network as a tree of text: every machine at its place, and a bound on the lines."""

from __future__ import annotations

import io
import re
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from topoplace import discovery
from topoplace.discovery.text import host_list
from topoplace.drawing import fabric_text
from topoplace.topology.fabric import Fabric, Level

CONF = """
SwitchName=core Switches=spine[1-2]
SwitchName=spine1 Switches=leaf[1-2]
SwitchName=spine2 Switches=leaf3 Nodes=login
SwitchName=leaf1 Nodes=n[01-03]
SwitchName=leaf2 Nodes=n[04,06]
SwitchName=leaf3 Nodes=n[10-11]
"""


def test_the_tree_of_a_topology_conf(capsys: pytest.CaptureFixture[str]) -> None:
    fabric_text.show(discovery.read(CONF))
    assert capsys.readouterr().out.splitlines()[:9] == [
        "slurm: 1 x core, 2 x spine, 3 x leaf, 8 machines",
        "core",
        "├── spine2",
        "│   ├── login",
        "│   └── leaf3: n[10-11]",
        "└── spine1",
        "    ├── leaf1: n[01-03]",
        "    └── leaf2: n[04,06]",
        "note: Slurm's topology.conf tells no speeds.",
    ]


def test_a_terminal_without_unicode_gets_ascii(monkeypatch: pytest.MonkeyPatch) -> None:
    output = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    monkeypatch.setattr(sys, "stdout", output)
    fabric_text.show(discovery.read(CONF))
    output.flush()
    assert b"|-- spine2\n|   |-- login\n|   `-- leaf3: n[10-11]\n`-- spine1\n" in output.buffer.getvalue()


def test_names_of_others_cannot_control_the_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    level = Level("\x1b[1mleaf", ("\x1b[31mred",))
    fabric_text.show(Fabric(("bad\x1b,name",), (level,), "evil\x1b", notes=("a\x1b",)))
    assert "\x1b" not in capsys.readouterr().out


@given(st.lists(st.tuples(*[st.sampled_from([None, "a", "b", "c"])] * 3), min_size=1, max_size=30))
def test_every_machine_is_in_the_tree_once(domains: list[tuple[str | None, ...]]) -> None:
    machines = tuple(f"m{i}" for i in range(len(domains)))
    levels = tuple(Level(f"level{k}", tuple(row[k] for row in domains)) for k in range(3))
    lines = fabric_text._tree_lines(fabric_text._tree(Fabric(machines, levels)))
    lists = [re.split(r"── |: ", line)[-1] for line in lines]
    named = [name for text in lists if text.startswith("m") for name in host_list.expanded(text)]
    assert sorted(named) == sorted(machines)


@pytest.mark.parametrize(
    "sizes", [{"leaf": 16, "spine": 256}, {"leaf": 2}, {"a": 2, "b": 4, "c": 8, "d": 16}]
)
def test_a_large_network_says_what_it_leaves_out(
    sizes: dict[str, int], capsys: pytest.CaptureFixture[str]
) -> None:
    fabric_text.show(Fabric.regular(4096, sizes))
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) <= fabric_text.MAX_LINES + 1
    shown = sum(count_of(line) for line in lines[1:])
    hidden = sum(int(found) for line in lines for found in re.findall(r"with (\d+) machines$", line))
    assert hidden > 0
    assert shown + hidden == 4096


def count_of(line: str) -> int:
    """Return the number of machines that a line of the tree lists."""
    listed = re.search(r": (machine\S*)$", line)
    return len(host_list.expanded(listed[1])) if listed else 0


@pytest.mark.parametrize(
    "name", ["slurmtopo-tree.conf", "volcano-hypernodes.yaml", "topographmodel-racks.yaml"]
)
def test_networks_of_any_format_are_drawn(
    name: str, repository: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    fabric = discovery.read((repository / "tests/data" / name).read_bytes())
    fabric_text.show(fabric)
    assert "└── " in capsys.readouterr().out
