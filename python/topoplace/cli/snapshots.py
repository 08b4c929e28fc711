"""Snapshots of clusters on the command line: the output of a scheduler's programs in files, and notes on it."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from topoplace.cli import reading

if TYPE_CHECKING:
    from topoplace.snapshot import Snapshot

FILES_HELP: Final = (
    "what `scontrol show node -d` and `scontrol show job -d` print, or `kubectl get nodes,pods -A -o json`; "
    "- for standard input"
)


def add_from(parser: Any, *, required: bool = False) -> None:
    """Add the option --from, the files of a snapshot, to a parser or a group of options."""
    parser.add_argument(
        "--from",
        dest="files",
        metavar="FILE",
        nargs="+",
        required=required,
        help=f"the cluster with its jobs: {FILES_HELP}",
    )


def read(files: Sequence[str], arguments: argparse.Namespace) -> Snapshot:
    """Return the snapshot that the files contain; a TOPO is the cluster, or one machine that describes each node."""
    from topoplace import snapshot

    where = None if arguments.topology is None else reading.topology(arguments)
    texts = {reading.shown(file): reading.text(file) for file in files}
    if len(texts) < len(files):
        raise ValueError(f"{', '.join(files)}: a file is given twice")
    return snapshot.read(texts, where)


def print_notes(notes: Sequence[str]) -> None:
    """Print notes to standard error; names in them may be untrusted."""
    from topoplace.drawing import tables

    for note in notes:
        print(tables.plain(f"note: {note}"), file=sys.stderr)
