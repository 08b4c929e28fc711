"""From a word of the command line to what it names: text, a topology, a place to write to."""

from __future__ import annotations

import argparse
import os
import sys
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from topoplace.topology import Topology


def topology(arguments: argparse.Namespace) -> Topology:
    """TOPO: a built-in machine, or text whose content tells what it is."""
    from topoplace import machines
    from topoplace.topology import Topology

    source: str = arguments.topology
    if source in machines.names():
        return machines.get(source)
    if source != "-" and not os.path.exists(source):
        close = get_close_matches(source, machines.names(), n=2, cutoff=0.5)
        hint = f"; did you mean {' or '.join(close)}?" if close else ""
        raise ValueError(f"{source}: no such file, and no built-in machine{hint}")
    content = text(source)
    try:
        if content.lstrip().startswith("{"):
            return Topology.from_json(content)
        return Topology.from_nvidia_smi(content, gpu_model=arguments.gpu_model)
    except ValueError as error:
        raise ValueError(f"{_shown(source)}: {error}") from None


def text(source: str) -> str:
    """The text of a file, or of standard input for `-`; ValueError where there is none."""
    where = _shown(source)
    if source != "-":
        data = Path(source).read_bytes()
    elif sys.stdin:
        data = sys.stdin.buffer.read()
    else:
        raise ValueError(f"{where}: closed")
    if not data.strip():
        raise ValueError(f"{where}: empty")
    try:
        content = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ValueError(
            f"{where}: not a text file (byte {error.start} is 0x{data[error.start]:02x})"
        ) from None
    if "\0" in content:
        raise ValueError(f"{where}: not a text file (byte {data.index(0)} is 0)")
    return content


def output(directory: Path | None, name: str = "") -> Path | None:
    """Where to write `name`, refused before the work is done; None without a directory."""
    if directory is None:
        return None
    if not directory.is_dir():
        raise ValueError(
            f"-o {directory}: {'not a directory' if directory.exists() else 'no such directory'}"
        )
    if not os.access(directory, os.W_OK):
        raise ValueError(f"-o {directory}: cannot be written to")
    return directory / name


def _shown(source: str) -> str:
    return "standard input" if source == "-" else source
