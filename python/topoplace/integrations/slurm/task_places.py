"""Where each task of a job runs, as the placer notes it in the job's AdminComment, which no user can write.

Slurm keeps the nodes of a job and their devices, and not which task is where. The last word of the AdminComment is
`at=n[0-1]:6.3+n4:1.2`: tasks 0 and 1 are on devices 6 and 3 of n0, then two on those of n1, then two on n4.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Final

from topoplace import _checks
from topoplace.discovery.text.host_list import expanded, folded
from topoplace.errors import SlurmError
from topoplace.integrations.slurm.request import MAX_TASKS
from topoplace.topology.topology import Topology

_WORD: Final = ";at="
_RUN = re.compile(r"([A-Za-z0-9_.,\[\]-]{1,4096}):([0-9]{1,4}(?:\.[0-9]{1,4})*)")
_MOST_CHARACTERS = 3000
"""Longest text that is noted: scontrol may read lines of 4,095 characters."""

Place = tuple[str, int]
"""A node and the number of a device there."""


def written(topology: Topology, gpus: Sequence[int]) -> str:
    """Return the text for GPUs in the order of tasks; "" if it were too long for Slurm's commands."""
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
    """Return the place of each task; SlurmError for a text that `written` does not make."""
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
    """Return the AdminComment of a job: what it asks for, and where its tasks are."""
    return f"{mark}{_WORD}{places}" if places else mark


def split(admin_comment: str) -> tuple[str, str]:
    """Return what a job asks for, and where its tasks are; "" if that is not noted."""
    mark, _, places = admin_comment.partition(_WORD)
    return mark, places
