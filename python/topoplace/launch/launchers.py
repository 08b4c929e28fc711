"""The launchers for which a placement gives files and a command, by name."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping
from typing import Final

from topoplace import _checks
from topoplace.errors import AllocationError
from topoplace.launch.jobset import jobset
from topoplace.launch.mpirun import hostfile, mpirun, rankfile
from topoplace.launch.ranks import Launch, Ranks
from topoplace.launch.srun import srun
from topoplace.launch.torchrun import torchrun
from topoplace.placement import Placement

LAUNCHERS: Final[Mapping[str, Callable[[Ranks, str], Launch]]] = {
    "torchrun": torchrun,
    "mpirun": mpirun,
    "srun": srun,
    "hostfile": hostfile,
    "rankfile": rankfile,
    "jobset": jobset,
}


def launched(placement: Placement, launcher: str, program: str) -> Launch:
    """Return the files and the command of a launcher; see `Placement.launch`."""
    written = LAUNCHERS[_checks.one_of(launcher, "launcher", LAUNCHERS, AllocationError)]
    _checks.text(program, "program", AllocationError)
    try:
        words = shlex.split(program)
    except ValueError as error:
        raise AllocationError(f"program = {_checks.shown(program)}: {error}") from None
    if not words or not {"\n", "\r", "\0"}.isdisjoint(program):
        raise AllocationError(f"program = {_checks.shown(program)} is not a command on one line")
    return written(Ranks.of(placement), program)
