"""Drawings as text: every GPU and every machine is there once, within the width, whatever names are."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

import pytest

import topoplace as tp
from topoplace.drawing import terminal, topology_text


def text(lines: Sequence[Sequence[terminal.Span]]) -> list[str]:
    return ["".join(part for part, _ in line) for line in lines]


@pytest.mark.parametrize("width", [40, 60, 80])
@pytest.mark.parametrize("name", tp.machines.names())
def test_a_machine_is_drawn_as_tiles_within_the_width(name: str, width: int) -> None:
    topology = tp.machines.get(name)
    n = topology.num_gpus
    lines = terminal.lines(topology, busy=[0], chosen=[n - 1, 2], width=width)
    assert all(len(line) <= width for line in text(lines))
    states = Counter(state for line in lines[1:-1] for part, state in line if state)
    assert states == {"free": n - 3, "busy": 1, "chosen": 2}
    if n <= 64:
        tiles = [(re.sub(r"\D", "", part), state) for line in lines[1:-1] for part, state in line if state]
        assert sorted(int(number) for number, _ in tiles) == list(range(n))
        assert dict(tiles)["0"] == "busy"
        assert dict(tiles)[str(n - 1)] == "chosen"


def test_a_small_machine_reads_as_printed() -> None:
    topology = tp.machines.get("dgx1-v100").with_unhealthy([6])
    assert text(terminal.lines(topology, busy=[1], chosen=[2, 3])) == [
        "dgx1-v100: 8 GPUs (V100)",
        "socket 0 | 0 |#1#|*2*|*3*|",
        "socket 1 | 4 | 5 |x6x| 7 |",
        ". free  # in use  * chosen  x out of service  ",
    ]


def test_a_large_cluster_has_a_letter_for_each_machine() -> None:
    fabric = tp.Fabric.regular(300, {"leaf": 30})
    topology = tp.Topology.cluster(tp.machines.get("dgx-h100"), fabric=fabric, count=300)
    busy = [8 * machine + i for machine in range(300) for i in range(machine % 9)]
    lines = text(terminal.lines(topology, busy=busy, chosen=[0]))
    assert [line.split() for line in lines[1:-1]] == [
        [f"leaf{leaf}", "".join(".1234567#"[(30 * leaf + i) % 9] if leaf or i else "*" for i in range(30))]
        for leaf in range(10)
    ]


def test_what_does_not_fit_is_counted() -> None:
    topology = tp.Topology.cluster(tp.machines.get("dgx-h100"), 12_500)
    lines = text(terminal.lines(topology))
    assert len(lines) == 42
    shown = sum(len(line.strip()) for line in lines[1:-2])
    (more,) = re.findall(r"and (\d+) more lines", lines[-2])
    assert shown // 39 * (int(more) - 1) < 12_500 - shown <= shown // 39 * int(more)


@pytest.mark.parametrize("name", ["\x1b[31mred\n", "🦄" * 60, "x" * 10_000, "机器"])
def test_names_cannot_control_the_terminal(name: str) -> None:
    topology = tp.Topology.from_links(
        3, [], name=name, model=name, machines=[name, name, "b"], names=["a", "b", "c"]
    )
    for line in text(terminal.lines(topology)):
        assert line.isascii()
        assert line.isprintable()
        assert len(line) <= 80


def test_only_a_terminal_gets_the_drawing(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    topology = tp.machines.get("dgx1-v100")
    topology_text.draw(topology)
    assert capsys.readouterr().out == ""
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    topology_text.draw(topology, busy=[1], chosen=[2])
    assert "socket 0 | 0 |#1#|*2*| 3 |" in re.sub(r"\x1b\[[\d;]*m", "", capsys.readouterr().out)
