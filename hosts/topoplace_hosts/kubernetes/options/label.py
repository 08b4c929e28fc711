"""`topoplace kubernetes label`: describe the machine of this node in Kubernetes."""

from __future__ import annotations

import argparse
import sys
from contextlib import closing
from typing import Any

from topoplace.cli import flags, options, reading, writing
from topoplace_hosts.kubernetes.options import arguments as shared

_SIGNALS_S = 0.2
"""Seconds between checks for a signal to end."""


def add(which: Any) -> None:
    """Add `topoplace kubernetes label`."""
    parser = options.command(
        which,
        "label",
        "describe this node's machine in a ConfigMap, for scheduler and extender",
        _run,
        examples=["topoplace kubernetes label --node gpu7 --every 600"],
    )
    options.add_host_machine(parser, "the node's")
    parser.add_argument("--node", required=True, metavar="NAME", help="name of this node")
    shared.add_namespace(parser, "where the ConfigMap is")
    shared.add_kubeconfig(parser)
    parser.add_argument(
        "--every",
        type=float,
        metavar="SECONDS",
        help="repeat this every SECONDS until stopped, and write what has changed (default: once)",
    )
    parser.add_argument(
        "--print", action="store_true", dest="printed", help="print the ConfigMap, and write nothing"
    )


def _run(arguments: argparse.Namespace) -> None:
    from topoplace import _checks
    from topoplace.errors import KubernetesError
    from topoplace_hosts.kubernetes.client import api
    from topoplace_hosts.kubernetes.client.connection import Connection

    every = None
    if arguments.every is not None:
        with flags.named(every="--every"):
            every = _checks.positive(arguments.every, "every", ValueError)
        if arguments.printed:
            raise ValueError("--every has no effect with --print")
    if arguments.printed and arguments.kubeconfig is not None:
        raise ValueError("--kubeconfig has no effect with --print")
    namespace, value = shared.namespace(arguments), _config_map(arguments)
    if arguments.printed:
        value["metadata"]["namespace"] = namespace
        writing.as_json(value)
        return
    with closing(Connection(shared.access(arguments))) as connection:
        api.put_config_map(connection, namespace, value)
        print(f"{namespace}/{value['metadata']['name']}: written", file=sys.stderr)
        if every is None:
            return
        stop = shared.until_told()
        waited = 0.0
        while not stop.wait(_SIGNALS_S):  # a signal delivered to another thread does not wake this one
            waited += _SIGNALS_S
            if waited < every:
                continue
            waited = 0.0
            try:
                api.put_config_map(connection, namespace, _config_map(arguments))
            except KubernetesError as error:
                print(f"not written: {error}", file=sys.stderr)


def _config_map(arguments: argparse.Namespace) -> dict[str, Any]:
    from topoplace_hosts.kubernetes.machines import config_map

    with flags.named(node="--node", topology="TOPO"):
        return config_map(arguments.node, reading.host_machine(arguments))
