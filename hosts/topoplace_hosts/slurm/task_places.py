"""The place of each task of a job, which the placer notes in the job's AdminComment; no user can write there.

Slurm keeps a job's nodes and devices, but not the place of each task. The last word of the AdminComment is, for
example, `at=n[0-1]:6.3+n4:1.2`. Tasks 0 and 1 are then on devices 6 and 3 of n0, and tasks 2 and 3 on those of n1.
Tasks 4 and 5 are on devices 1 and 2 of n4.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Final

from topoplace import _checks
from topoplace.discovery.text.host_list import expanded, folded
from topoplace.errors import SlurmError
from topoplace.topology.topology import Topology
from topoplace_hosts.slurm.request import MAX_TASKS

_WORD: Final = ";at="
_RUN = re.compile(r"([A-Za-z0-9_.,\[\]-]{1,4096}):([0-9]{1,4}(?:\.[0-9]{1,4})*)")
_MOST_CHARACTERS = 3000
"""Limit on the characters of a note: scontrol may read lines of 4,095 characters."""

Place = tuple[str, int]
"""A node and the number of a device there."""


def written(topology: Topology, gpus: Sequence[int]) -> str:
    """Return the note for GPUs in task order; "" if it would be too long for Slurm's commands."""
    places = [
        (topology.machine_names[int(topology.machine_of[gpu])], topology.local_index[gpu]) for gpu in gpus
    ]
    runs = [
        (node, ".".join(str(number) for _, number in own))
        for node, own in groupby(places, key=lambda place: place[0])
    ]
    text = "+".join(
        f"{folded(node for node, _ in alike)}:{numbers}"
        for numbers, alike in groupby(runs, key=lambda run: run[1])
    )
    return text if len(text) <= _MOST_CHARACTERS else ""


def read(text: str) -> tuple[Place, ...]:
    """Return the place of each task in a note; SlurmError for a text that is not from `written`."""
    found: list[Place] = []
    for run in text.split("+"):
        match = _RUN.fullmatch(run)
        if match is None:
            raise SlurmError(f"AdminComment: {_checks.shown(run)} is not nodes:devices")
        found += _places(match[1], [int(number) for number in match[2].split(".")])
        if len(found) > MAX_TASKS:
            raise SlurmError(f"AdminComment: places of more than {MAX_TASKS} tasks")
    if len(set(found)) < len(found):
        raise SlurmError("AdminComment: two tasks have the same device")
    return tuple(found)


def _places(nodes: str, numbers: Sequence[int]) -> Iterator[Place]:
    for node in expanded(nodes, "AdminComment", limit=MAX_TASKS):
        yield from ((node, number) for number in numbers)


def joined(mark: str, places: str) -> str:
    """Return the AdminComment of a job: its request, and the places of its tasks."""
    return f"{mark}{_WORD}{places}" if places else mark


def split(admin_comment: str) -> tuple[str, str]:
    """Return a job's request, and the places of its tasks; "" if these are not noted."""
    mark, _, places = admin_comment.partition(_WORD)
    return mark, places
