"""`topoplace state` shows a journal: which jobs hold GPUs, which decisions are in flight, and why."""

from __future__ import annotations

import argparse
import time
from collections import Counter
from typing import TYPE_CHECKING, Any

from topoplace.cli import options, writing

if TYPE_CHECKING:
    from topoplace_hosts.journal import Entry, Journal


def add(commands: Any) -> None:
    """Add `topoplace state` and its arguments to the command line."""
    parser = options.command(
        commands,
        "state",
        "show the decisions and allocations in a journal",
        _run,
        examples=["topoplace state decisions.journal", "topoplace state decisions.journal --job 4711"],
    )
    parser.add_argument("file", metavar="FILE", help="a journal, which another program may be writing")
    parser.add_argument("--job", metavar="ID", help="show all entries of this job")
    options.add_json(parser)


def _run(arguments: argparse.Namespace) -> None:
    from topoplace_hosts.journal import Journal

    with Journal(arguments.file, read_only=True) as journal:
        entries = _entries(journal, arguments.job)
        digest, appends = journal.topology_digest, journal.num_appends
    if arguments.json:
        rows = [_as_dict(entry) for entry in entries]
        writing.as_json({"topology": digest, "appends": appends, "entries": rows})
    else:
        _print(entries, digest, appends, arguments.file)


def _entries(journal: Journal, job_id: str | None) -> list[Entry]:
    if job_id is None:
        return [entry for entry in journal.latest().values() if not entry.stage.final]
    if not (entries := list(journal.history(job_id))):
        raise ValueError(f"--job {job_id}: the journal has no such job")
    return entries


def _as_dict(entry: Entry) -> dict[str, Any]:
    return {
        "job": entry.job_id,
        "stage": entry.stage.value,
        "gpus": [list(gpu) for gpu in entry.gpus],
        "why": entry.why,
        "time": entry.time,
    }


def _print(entries: list[Entry], digest: str | None, appends: int, source: str) -> None:
    from topoplace.drawing import tables

    rows = [
        (
            options.one_line(one.job_id),
            one.stage.value,
            _when(one.time),
            _gpus(one),
            options.one_line(one.why),
        )
        for one in entries
    ]
    tables.show(("job", "stage", "since (UTC)", "GPUs by task", "why"), rows, source)
    stages = Counter(entry.stage.value for entry in entries)
    counted = ", ".join(f"{count} {stage}" for stage, count in sorted(stages.items())) or "no job"
    print(f"{counted}; {appends} appends; topology {digest or 'not set'}")


def _when(seconds: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(seconds))


def _gpus(entry: Entry) -> str:
    """Return the GPUs of each machine, in task order, such as `n1: GPU6 GPU3`."""
    machines: dict[str, list[str]] = {}
    for machine, gpu in entry.gpus:
        machines.setdefault(machine, []).append(gpu)
    return options.one_line("; ".join(f"{machine}: {' '.join(gpus)}" for machine, gpus in machines.items()))
