"""Which known name is meant by an unknown one, in the library's messages and on the command line."""

from __future__ import annotations

import pytest

import topoplace as tp
from command_line import Call, Called
from distributions import whole
from topoplace._similar_names import did_you_mean, not_one_of


@pytest.mark.parametrize(
    ("name", "known", "hint"),
    [
        ("dgx1v100", ("dgx1-v100", "summit"), "did you mean dgx1-v100?"),
        ("mapa", ("mapa-greedy", "baseline", "mapa-preserve"), "did you mean mapa-greedy or mapa-preserve?"),
        ("RING", ("ring", "chain"), "did you mean ring?"),
        ("a", ("ab", "ac", "ad", "ae"), "did you mean ab or ac or ad?"),
        ("xyz", ("ring", "chain"), ""),
        ("", ("ring", "chain"), ""),
        ("rin" * 9999, ("ring", "chain"), ""),
    ],
    ids=lambda value: str(value)[:20],
)
def test_names_that_contain_it_or_are_similar(name: str, known: tuple[str, ...], hint: str) -> None:
    assert did_you_mean(name, known) == hint
    everything = f"not one of {', '.join(known)}"
    assert not_one_of(name, known) == (f"{everything}; {hint}" if hint else everything)


def test_arguments_of_the_library() -> None:
    with pytest.raises(
        ValueError, match=r"relay = 'chose' is not one of chosen, all; did you mean chosen\?$"
    ):
        tp.collective.optimal_bandwidth(tp.machines.get("summit"), [0, 1], relay="chose")
    with pytest.raises(ValueError, match=r"'dgx1v100' is not a machine; did you mean dgx1-v100"):
        tp.machines.get("dgx1v100")


@whole
@pytest.mark.parametrize(
    ("command", "hint"),
    [
        ("plac dgx1-v100", "did you mean place? (see topoplace --help)"),
        ("plcae dgx1-v100", "did you mean place or policies? (see topoplace --help)"),
        ("papers mpa", "did you mean mapa? (see topoplace papers --help)"),
        ("place summit --polcy fcfs", "did you mean --policy or --role? (see topoplace place --help)"),
        ("place summit --polcy=fcfs", "did you mean --policy or --role? (see topoplace place --help)"),
        ("place summit --policy fcs", "did you mean fcfs?"),
        ("place summit --pattern rin", "did you mean ring?"),
        ("show sumit", "did you mean summit?"),
        ("show dgx1-v10", "did you mean dgx1-v100?"),
        ("capacity a b --planner shres", "did you mean shares? (see topoplace capacity --help)"),
        ("place summit minsky", "unrecognized arguments: minsky (see topoplace place --help)"),
        ("show summit -x", "unrecognized arguments: -x (see topoplace show --help)"),
    ],
)
def test_the_command_line_suggests_names(call: Call, command: str, hint: str) -> None:
    done: Called = call(*command.split())
    assert (done.code, done.out) == (2, "")
    assert done.err.endswith(f"{hint}\n")
    assert len(done.err.splitlines()) == 1
