"""`topoplace slurm`: the configuration that a Slurm cluster needs so that topoplace can choose GPUs for its jobs."""

from __future__ import annotations

import argparse
from typing import Any

from topoplace.cli import flags, options, reading


def add(commands: Any) -> None:
    """Add `topoplace slurm` to the command line, with its subcommands."""
    slurm = options.command(commands, "slurm", "choose GPUs for the jobs of a Slurm cluster")
    which = slurm.add_subparsers(metavar="WHAT", required=True)
    _add_gres(which)
    _add_file(which)


def _add_gres(which: Any) -> None:
    parser = options.command(which, "gres", "print gres.conf and the nodes' Gres for a topology", _gres)
    options.add_topology(parser)
    parser.add_argument(
        "--device-file",
        default="/dev/nvidia{number}",
        metavar="PATTERN",
        help="device file of a GPU, with {number} on its machine, and {node} (default: %(default)s)",
    )


def _add_file(which: Any) -> None:
    from topoplace.integrations.slurm import shipped

    parser = options.command(which, "file", "print a file for Slurm's hosts, such as job_submit.lua", _file)
    parser.add_argument("name", metavar="NAME", choices=shipped.NAMES, help=", ".join(shipped.NAMES))


def _gres(arguments: argparse.Namespace) -> None:
    from topoplace.discovery.text.host_list import folded
    from topoplace.integrations.slurm import gres

    topology = reading.topology(arguments)
    with flags.named(device_file="--device-file"):
        text = gres.gres_conf(topology, device_file=arguments.device_file)
    print("# gres.conf: a type for each device", text, sep="\n")
    print("# slurm.conf: add to the lines of these nodes")
    by_gres: dict[str, list[str]] = {}
    for node, held in gres.node_gres(topology).items():
        by_gres.setdefault(held, []).append(node)
    for held, nodes in by_gres.items():
        print(f"# NodeName={folded(nodes)} Gres={held}")


def _file(arguments: argparse.Namespace) -> None:
    from topoplace.integrations.slurm import shipped

    print(shipped.text(arguments.name), end="")
