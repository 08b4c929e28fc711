"""One entry of a journal: a job, the stage of its decision, its GPUs, and why."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from topoplace import _checks
from topoplace.errors import JournalError
from topoplace.topology.topology import Topology

Device = tuple[str, str]
"""A GPU by names that survive a renumbering: the name of its machine, and its own."""


class Stage(StrEnum):
    """How far a decision has come."""

    INTENT = "intent"
    """Decided, and about to be passed to the scheduler."""
    TOLD = "told"
    """The scheduler has accepted it."""
    CONFIRMED = "confirmed"
    """The scheduler shows the job on these GPUs."""
    WITHDRAWN = "withdrawn"
    """Given up before the job started."""
    ENDED = "ended"
    """The job has left its GPUs."""

    @property
    def in_flight(self) -> bool:
        """Return True if the decision's outcome is not known yet."""
        return self in (Stage.INTENT, Stage.TOLD)

    @property
    def final(self) -> bool:
        """Return True if the job holds nothing any more."""
        return self in (Stage.WITHDRAWN, Stage.ENDED)


@dataclass(frozen=True, slots=True)
class Entry:
    """One step of a decision. JournalError names a wrong field."""

    job_id: str
    stage: Stage
    gpus: tuple[Device, ...] = ()
    """(machine, GPU) by name, in task order."""
    why: str = ""
    """The reason in plain English."""
    time: float = 0.0
    """Seconds since 1970."""

    def __post_init__(self) -> None:
        _checks.text(self.job_id, "job_id", JournalError)
        _checks.instance(self.stage, Stage, "stage", JournalError)
        _checks.real(self.time, "time", JournalError)
        if self.why:
            _checks.text(self.why, "why", JournalError)
        object.__setattr__(self, "gpus", _devices(self.gpus, "gpus"))


def named(topology: Topology, gpus: Iterable[int]) -> tuple[Device, ...]:
    """Return the names of GPUs that are given by number."""
    every = topology.derived(_all_names)
    return tuple([every[gpu] for gpu in gpus])


def _all_names(topology: Topology) -> tuple[Device, ...]:
    return tuple((gpu.machine, gpu.name) for gpu in topology.gpus)


def written(gpus: Iterable[Device]) -> str:
    """Return GPUs as the text in which a journal keeps them."""
    return json.dumps([list(gpu) for gpu in gpus])


def parsed(text: str) -> tuple[Device, ...]:
    """Return the GPUs in a text that `written` returned; JournalError for any other text."""
    try:
        listed: Any = json.loads(text)
    except (ValueError, RecursionError):
        raise JournalError(f"gpus = {_checks.shown(text)} is not JSON") from None
    return _devices(listed, "gpus")


def _devices(given: Any, what: str) -> tuple[Device, ...]:
    listed = _checks.ordered(given, what, JournalError)
    found: list[Device] = []
    for i, one in enumerate(listed):
        pair = _checks.ordered(one, f"{what}[{i}]", JournalError)
        if len(pair) != 2:
            raise JournalError(f"{what}[{i}] = {_checks.shown(one)} is not a machine and a GPU")
        machine, gpu = (_checks.text(name, f"{what}[{i}]", JournalError) for name in pair)
        found.append((machine, gpu))
    return tuple(found)
