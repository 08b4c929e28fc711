"""`topoplace kubernetes resource-slices`: print the devices of a machine for Dynamic Resource Allocation."""

from __future__ import annotations

import argparse
from typing import Any

from topoplace.cli import flags, options, reading, writing


def add(which: Any) -> None:
    """Add `topoplace kubernetes resource-slices`."""
    parser = options.command(
        which,
        "resource-slices",
        "print a node's GPUs as ResourceSlices of resource.k8s.io/v1",
        _run,
        examples=["topoplace kubernetes resource-slices dgx-h100 --node gpu7 --driver gpu.nvidia.com"],
    )
    options.add_host_machine(parser, "the node's")
    parser.add_argument("--node", required=True, metavar="NAME", help="name of this node")
    parser.add_argument(
        "--driver", required=True, metavar="DOMAIN", help="name of the DRA driver that prepares the devices"
    )
    parser.add_argument(
        "--generation",
        type=int,
        default=1,
        metavar="N",
        help="generation of the node's pool, which must grow whenever the devices change (default: 1)",
    )
    parser.add_argument(
        "--clique", default="", metavar="ID", help="the node's label nvidia.com/gpu.clique, if it has one"
    )


def _run(arguments: argparse.Namespace) -> None:
    from topoplace_hosts.kubernetes.resource_slices import resource_slices

    named = {key: f"--{key}" for key in ("node", "driver", "generation", "clique")}
    with flags.named(topology="TOPO", **named):
        slices = resource_slices(
            arguments.node,
            reading.host_machine(arguments),
            arguments.driver,
            generation=arguments.generation,
            clique=arguments.clique,
        )
    writing.as_json({"apiVersion": "v1", "kind": "List", "items": slices})
