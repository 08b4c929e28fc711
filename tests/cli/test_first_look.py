"""What a first minute needs: `topoplace` alone on a terminal, `topoplace help`, and commands in groups."""

from __future__ import annotations

import re
import shlex
import sys
from collections.abc import Sequence

import pytest

import topoplace as tp
from command_line import Call, Called
from distributions import whole
from topoplace import cli
from topoplace.drawing import terminal


@pytest.fixture
def on_terminal(call: Call, monkeypatch: pytest.MonkeyPatch) -> Call:
    """Run the command as on a terminal of 80 columns."""
    monkeypatch.setenv("COLUMNS", "80")

    def run(*arguments: object) -> Called:
        with monkeypatch.context() as patched:
            patched.setattr(sys.stdout, "isatty", lambda: True)
            return call(*arguments)

    return run


def find_nothing() -> tp.Topology:
    """Refuse, as `discover` does on a host without a GPU."""
    raise tp.TopologyError("no GPU found; tried: nothing")


def drawn(topology: tp.Topology, busy: Sequence[int], chosen: Sequence[int]) -> list[str]:
    lines = terminal.lines(topology, busy=busy, chosen=chosen)
    return ["".join(text for text, _ in line).rstrip() for line in lines]


def steps(shown: str) -> list[str]:
    """Return the commands to try next."""
    return [line.strip().split("  ")[0] for line in shown.partition("\nnext:\n")[2].splitlines()]


@pytest.mark.parametrize("piped", [False, True], ids=["terminal", "pipe"])
@pytest.mark.parametrize("host", [None, "dgx-h100", "summit", "gb200-nvl72"])
def test_alone_draws_the_host_or_an_example(
    on_terminal: Call, call: Call, monkeypatch: pytest.MonkeyPatch, host: str | None, *, piped: bool
) -> None:
    topology = tp.machines.get(host or "dgx1-v100")
    monkeypatch.setattr(tp.Topology, "discover", (lambda: topology) if host else find_nothing)
    done = call() if piped else on_terminal()
    assert (done.code, done.err) == (0, "")
    shown = [
        line.rstrip() for line in re.sub(r"\x1b\[[0-9;]*m", "", done.out).splitlines()
    ]  # without colours
    states = ((), ()) if host else ((0, 5), (2, 3, 7, 6))
    assert [line for line in drawn(topology, *states) if line not in shown] == []
    assert ("No GPU was found" in done.out) == (host is None)
    assert ("GPUs 2, 3, 7, 6: 40 GB/s; the lowest free ids 6 GB/s (6.7 ×); proven best" in shown) == (
        host is None
    )
    links = "GB/s between GPUs" if topology.num_gpus <= 16 else "pairs of GPUs by link: 2556 NVSWITCH x18"
    assert links in done.out
    named = steps(done.out)
    assert len(named) == 3
    for step in named:
        for part in step.split(" | "):
            words = shlex.split(part)
            assert (words[0], len(words) > 1) == ("topoplace", True)
            cli.command_parser().parse_args(words[1:])


def test_show_alone_prints_the_host_or_lists_machines(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tp.Topology, "discover", find_nothing)
    listed = call("show", "--list", "machines").out
    assert call("show").out == f"No GPU was found on this host. The built-in machines:\n{listed}"
    refused = call("show", "--json")  # a program that asks for this host must not get a list of others
    assert (refused.code, refused.out, "no GPU found" in refused.err) == (2, "", True)
    monkeypatch.setattr(tp.Topology, "discover", lambda: tp.machines.get("summit"))
    assert call("show").out == call("show", "summit").out
    assert call("show", "--json").out == call("show", "summit", "--json").out
    assert call("show", "--since", "minsky").code == 1


@whole
@pytest.mark.parametrize("command", ["", "place", "slurm", "slurm run", "show measure", "help"])
def test_help_is_as_the_option(call: Call, command: str) -> None:
    words = command.split()
    done = call("help", *words)
    assert done == call(*words, "--help")
    assert (done.code, done.err) == (0, "")


def test_help_of_a_misspelt_command_names_the_one_meant(call: Call) -> None:
    done = call("help", "plac")
    assert (done.code, done.out) == (2, "")
    assert "place" in done.err


@whole
def test_every_command_is_in_one_group(call: Call) -> None:
    groups = cli.command_parser().groups
    assert [title.partition(":")[0] for title in groups] == ["look", "decide", "study", "run"]
    shown = call("--help").out
    for title, names in groups.items():
        listed = shown.partition(f"\n  {title}\n")[2].partition("\n\n")[0]
        assert [line.split("  ")[2] for line in listed.splitlines() if line[4] != " "] == list(names)
    everything = [name for group in groups.values() for name in group]
    assert len(everything) == len(set(everything))
