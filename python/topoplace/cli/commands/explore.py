"""`topoplace explore` serves a page on which to click GPUs and see each policy's choice at once."""

from __future__ import annotations

import argparse
import webbrowser
from typing import Any

from topoplace.cli import options, reading

_MAX_PORT = 65535
_FIRST = {"machine": "dgx1-v100", "busy": "0,5"}
"""The first state of the page, in which the policies' choices differ much."""
_OPENING = "some in use, scattered"


def add(commands: Any) -> None:
    """Add `topoplace explore` and its arguments to the command line."""
    parser = options.command(
        commands,
        "explore",
        "open a page in the browser: click GPUs, and see at once what each policy would choose",
        _run,
        examples=["topoplace explore", "topoplace explore topo.txt --no-browser --port 8080"],
    )
    options.add_topology(parser, without="default: a DGX-1")
    parser.add_argument(
        "--port", type=_port, default=0, metavar="N", help="port on 127.0.0.1 (default: one that is free)"
    )
    parser.add_argument("--no-browser", action="store_true", help="only print the address of the page")


def _port(text: str) -> int:
    try:
        number = int(text)
    except ValueError:
        number = -1
    if not 0 <= number <= _MAX_PORT:
        raise argparse.ArgumentTypeError(f"{text!r} is not a port, 0 to {_MAX_PORT}")
    return number


def _run(arguments: argparse.Namespace) -> None:
    from topoplace.cli.explorer.server import Server

    source, own, start = arguments.topology, None, _FIRST
    if source is not None:
        topology = reading.topology(arguments)
        if reading.is_built_in(source):  # which is on the page's own list
            start = {"machine": source, "preset": _OPENING}
        else:
            own, start = topology, {"machine": "", "preset": _OPENING}
    try:
        server = Server(own, start, arguments.port)
    except OSError as error:
        raise ValueError(f"--port {arguments.port}: {error.strerror}") from None
    with server:
        print(f"{server.address}\nCtrl-C ends it", flush=True)
        if not arguments.no_browser:
            webbrowser.open(server.address)
        server.serve_forever(0.2)
