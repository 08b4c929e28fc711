from __future__ import annotations

from pathlib import Path

import pytest

from refusals import refusal
from topoplace_hosts.networks import ibnetdiscover

parse = ibnetdiscover.parse


@pytest.fixture(scope="module")
def rails(repository: Path) -> str:
    return (repository / "tests/data/ibnetdiscover-rails.txt").read_text("utf-8")


def test_rails_and_spines(rails: str) -> None:
    assert ibnetdiscover.recognised(rails)
    fabric = parse(rails)
    assert fabric.machines == ("n0", "n1", "n2", "n3")
    leaf, spine = fabric.levels
    assert (leaf.name, leaf.domains, leaf.gb_per_s) == ("leaf", ("A-1", "A-1", "B-1", "B-1"), 50.0)
    assert (spine.name, spine.domains, spine.gb_per_s) == ("spine", ("SP-1",) * 4, 50.0)
    assert spine.oversubscription == 9 / 8  # 8 ports of hosts and 1 that names none, over 4 x 2 cables
    notes = " ".join(fabric.notes)
    assert "6 switches and 10 channel adapters." in notes
    assert "1 channel adapters name no host" in notes
    assert "1 channel adapters are aggregation nodes" in notes
    assert "rail=True" in notes


def test_rates(rails: str) -> None:
    assert parse(rails.replace("4xNDR", "2xHDR")).levels[0].gb_per_s == 12.5
    assert parse(rails.replace("4xNDR", "4xQDR")).levels[0].gb_per_s is None
    mixed = parse(rails.replace('A-1:MQM9790/U1" lid 7 4xNDR', 'A-1:MQM9790/U1" lid 7 4xEDR'))
    assert mixed.levels[0].gb_per_s == 50.0  # the side of the switch comes first
    fabric = parse(rails.replace('"n0 mlx5_0" lid 9 4xNDR', '"n0 mlx5_0" lid 9 4xHDR'))
    assert fabric.levels[0].gb_per_s is None
    assert any("4xNDR (7 ports), 4xHDR (1 ports)" in note for note in fabric.notes)
    assert any("different rates" in note for note in fabric.notes)


def test_switches_of_one_name_keep_their_identity(rails: str) -> None:
    fabric = parse(rails.replace("MF0;A-2:", "MF0;A-1:"))
    assert fabric.levels[0].domains[0] == "S-0000000000000000"


SWITCH = 'Switch 2 "S-1" # "s"\n'
CA = 'Ca 1 "H-1" # "n mlx5_0"\n'


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "no fabric: 0 channel adapters or routers, and no Switch"),
        (CA, "no fabric: 1 channel adapters or routers, and no Switch"),
        (SWITCH, "no fabric: the text has no machine that is plugged into a switch"),
        (SWITCH + CA, "no fabric: the text has no machine"),
        (SWITCH + SWITCH, "line 2: 'S-1' appears twice"),
        ('[1] "S-1"[1]\n', "line 1: a cable before the first Switch or Ca"),
        (SWITCH + '[1] "H-1"[1]\n', "line 2: a cable to 'H-1', which the text does not describe"),
        (SWITCH + '[1] "H-1"[1]\n[1] "H-1"[2]\n' + CA, "line 3: port 1 of 'S-1' has another cable in line 2"),
        ("hello", "line 1: 'hello' is not a line of ibnetdiscover"),
    ],
)
def test_refused(text: str, message: str) -> None:
    assert message in refusal(parse, text)


@pytest.mark.parametrize(
    "line",
    [
        "src/query_smp.c:195; umad (DR path slid 0; dlid 0; 0,1 Attr 0x11:0) bad status 110; Connection timed out",
        "ibwarn: [4711] _do_madrpc: recv failed: Connection timed out",
    ],
)
def test_errors_among_the_output_are_noted(rails: str, line: str) -> None:
    fabric = parse(f"{line}\n{rails}")
    assert fabric.levels == parse(rails).levels
    assert "line 1 is an error of ibnetdiscover: what it could not ask is missing." in fabric.notes


GROUPED = """\
Chassis 1 (guid 0xfc6a10)

switchguid=0xfc6a11(fc6a11)
Switch\t40 "S-fc6a11"\t\t# "MF0;leaf1:CS8500/L01/U1" enhanced port 0 lid 11 lmc 0
[1][ext 1]\t"H-b83f01"[1](b83f01) \t\t# "n1 mlx5_0" lid 1 4xHDR

Non-Chassis Nodes

caguid=0xb83f01
Ca\t1 "H-b83f01"\t\t# "n1 mlx5_0"
[1](b83f01) \t"S-fc6a11"[1][ext 1]\t\t# lid 1 lmc 0 "MF0;leaf1:CS8500/L01/U1" lid 11 4xHDR
"""


def test_headings_of_chassis() -> None:
    fabric = ibnetdiscover.parse(GROUPED)
    assert (fabric.machines, fabric.level_names) == (("n1",), ("leaf",))
