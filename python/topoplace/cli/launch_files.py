"""The option --launch: the files with which a placed job starts, in the directory -o, and the command to run there."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from topoplace.cli import flags, writing

if TYPE_CHECKING:
    from topoplace.placement import Placement


def folder(arguments: argparse.Namespace) -> Path | None:
    """Return the directory for the files of --launch; None without this option."""
    if arguments.launch is None:
        return None
    if arguments.output is None:
        raise ValueError("--launch needs -o, the directory into which its files are written")
    return writing.folder(arguments.output)


def write(placed: Placement, folder: Path, arguments: argparse.Namespace) -> None:
    """Write the files of --launch and print the command; ValueError if another file has the name of one."""
    with flags.named(launcher="--launch"):
        roles = [name for name, _ in placed.job.roles] if placed.job is not None else []
        by_role = {name: f"python {name}.py" for name in roles}
        launch = placed.launch(arguments.launch, by_role) if by_role else placed.launch(arguments.launch)
    texts = {folder / name: text for name, text in launch.files.items()}
    for path, text in texts.items():
        if path.exists() and (not path.is_file() or path.read_bytes() != text.encode()):
            raise ValueError(f"{path}: exists, and is another; use an empty directory")
    for path, text in texts.items():
        writing.write(writing.file(path), text)
        writing.wrote(path, beside_json=arguments.json)
    print(f"start it there: {launch.command}", file=sys.stderr if arguments.json else sys.stdout)
