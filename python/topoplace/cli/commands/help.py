"""`topoplace help` prints the help of commands; `topoplace` alone, on a terminal, draws a machine."""

from __future__ import annotations

import argparse
import contextlib
import threading
from typing import TYPE_CHECKING, Any, Final

from topoplace.cli import options

if TYPE_CHECKING:
    from topoplace.topology.topology import Topology

_EXAMPLE: Final = "dgx1-v100"
_PATIENCE_S: Final = 5.0


def add(commands: Any) -> None:
    """Add `topoplace help` and its arguments to the command line."""
    parser = options.command(
        commands,
        "help",
        "print the help of a command, or of all, as --help does",
        _run,
        examples=["topoplace help", "topoplace help place", "topoplace help slurm run"],
    )
    parser.add_argument("names", metavar="COMMAND", nargs="*", help="a command, such as place or slurm run")


def first_look(_: argparse.Namespace) -> None:
    """Draw this host's GPUs, or a DGX-1 if none is found, and name three commands to try next."""
    from topoplace import machines
    from topoplace.experiments.report import topology_text

    topology = _host()
    if topology is None:
        topology = machines.get(_EXAMPLE)
        print("An example, for no GPU was found on this host:\n")
        look, place = f"topoplace explore {_EXAMPLE}", f"topoplace place {_EXAMPLE} --gpus 2"
    else:
        look, place = "topoplace discover", "topoplace discover --json | topoplace place - --gpus 1"
    topology_text.draw(topology)
    steps = {place: "choose GPUs, and say why", look: "see its links", "topoplace help": "list all commands"}
    room = max(map(len, steps))
    print("next:", *(f"  {step:<{room}}  {what}" for step, what in steps.items()), sep="\n")


def _host() -> Topology | None:
    """Return this host's topology; None if no source answers soon, or none finds a GPU."""
    from topoplace.errors import TopologyError
    from topoplace.topology.topology import Topology

    found: list[Topology] = []

    def look() -> None:
        with contextlib.suppress(TopologyError, OSError):
            found.append(Topology.discover())

    thread = threading.Thread(target=look, daemon=True)  # a driver that hangs does not delay the end
    thread.start()
    thread.join(_PATIENCE_S)
    return found[0] if found else None


def _run(arguments: argparse.Namespace) -> None:
    arguments.parser.parse_args([*arguments.names, "--help"])
