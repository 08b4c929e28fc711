"""`topoplace example` writes the files that the examples of `--help` name, so that they run as printed."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from topoplace._similar_names import not_one_of
from topoplace.cli import options, writing


def add(commands: Any) -> None:
    """Add `topoplace example` and its arguments to the command line."""
    parser = options.command(
        commands,
        "example",
        "write the files that the examples of --help name; without arguments, list them",
        _run,
        examples=["topoplace example", "topoplace example topo.txt cluster.json", "topoplace example --all"],
    )
    parser.add_argument("names", metavar="NAME", nargs="*", help="write this file into the current directory")
    parser.add_argument(
        "--all",
        metavar="DIR",
        nargs="?",
        const=Path(),
        type=options.path,
        help="write all files into this directory, created if missing (default: the current one)",
    )


def _run(arguments: argparse.Namespace) -> None:
    from topoplace.cli.example_files import content, files

    for name in arguments.names:
        if name not in files():
            raise ValueError(f"NAME = {name!r}: {not_one_of(name, files())}")
    if arguments.all is not None and arguments.names:
        raise ValueError("--all writes all files; leave out the names, or --all")
    names = list(files()) if arguments.all is not None else list(dict.fromkeys(arguments.names))
    if not names:
        _list()
        return
    folder = writing.folder(arguments.all or Path(), "--all")
    contents = {folder / name: content(name) for name in names}
    for path, data in contents.items():
        if path.exists() and (not path.is_file() or path.read_bytes() != data):
            raise ValueError(f"{path}: exists, and is another; use an empty directory")
    for path, data in contents.items():
        writing.file(path, "NAME").write_bytes(data)
        writing.wrote(path, beside_json=False)


def _list() -> None:
    from topoplace.cli.example_files import files
    from topoplace.drawing import tables

    tables.show(("file", "what"), [(name, what) for name, (what, _) in files().items()])
    print("topoplace example --all DIR writes them all")
