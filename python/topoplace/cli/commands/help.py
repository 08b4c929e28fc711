"""`topoplace help` prints the help of commands; `topoplace` alone shows a machine and its links."""

from __future__ import annotations

import argparse
import contextlib
import threading
from typing import TYPE_CHECKING, Any, Final

from topoplace.cli import options

if TYPE_CHECKING:
    from topoplace.topology.topology import Topology

_EXAMPLE: Final = "dgx1-v100"
_BUSY: Final = (0, 5)
_TASKS: Final = 4
"""Number of tasks of the example's job, a ring."""
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
    """Draw this host's GPUs and their links, or an example if there are none, and name three commands to try next."""
    from topoplace.drawing import topology_text

    topology = _host()
    if topology is None:
        topology = _show_example()
        busy = ",".join(map(str, _BUSY))
        look = f"topoplace explore {_EXAMPLE}"
        place = f"topoplace place {_EXAMPLE} --busy {busy} --gpus {_TASKS}"
    else:
        topology_text.draw(topology, piped=True)
        look, place = "topoplace show", "topoplace show --json | topoplace place - --gpus 1"
    topology_text.show_links(topology)
    print()
    steps = {place: "choose GPUs, and say why", look: "see its links", "topoplace help": "list all commands"}
    room = max(map(len, steps))
    print("next:", *(f"  {step:<{room}}  {what}" for step, what in steps.items()), sep="\n")


def _show_example() -> Topology:
    """Draw a job on a machine whose other GPUs are in use, with what the choice wins; return the machine."""
    from topoplace import machines, place
    from topoplace.cli import headline
    from topoplace.cluster.cluster import Cluster
    from topoplace.drawing import topology_text
    from topoplace.jobs.job_graph import JobGraph
    from topoplace.placement import Placement
    from topoplace.policies.yardsticks import yardsticks
    from topoplace.topology.device_numbers import in_words

    topology, job = machines.get(_EXAMPLE), JobGraph.ring(_TASKS)
    cluster = Cluster(topology)
    cluster.allocate("busy", _BUSY)
    placed = place(job, cluster)
    assert isinstance(placed, Placement)
    print(f"No GPU was found on this host. An example: a ring of {_TASKS} on a machine in use:\n")
    gpus, found = in_words(placed.gpus, topology), yardsticks(placed, job, cluster)
    print(*headline.lines(gpus, placed, found, is_idle=False), "", sep="\n")
    topology_text.draw(topology, busy=_BUSY, chosen=placed.gpus, piped=True)
    return topology


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
