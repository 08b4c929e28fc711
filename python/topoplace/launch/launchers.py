"""The launchers for which a placement gives files and a command, by name."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Mapping
from typing import Final

from topoplace import _checks
from topoplace.binding import Launch
from topoplace.errors import AllocationError
from topoplace.jobs.job_graph import JobGraph
from topoplace.jobs.roles import tasks_of
from topoplace.launch.jobset import jobset
from topoplace.launch.mpirun import hostfile, mpirun, rankfile
from topoplace.launch.ranks import Ranks
from topoplace.launch.srun import srun
from topoplace.launch.torchrun import PORT, torchrun
from topoplace.placement import Placement

LAUNCHERS: Final[Mapping[str, Callable[[Ranks, str], Launch]]] = {
    "torchrun": torchrun,
    "mpirun": mpirun,
    "srun": srun,
    "hostfile": hostfile,
    "rankfile": rankfile,
    "jobset": jobset,
}
_FOLDER: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,99}")


def launched(placement: Placement, launcher: str, program: str | Mapping[str, str]) -> Launch:
    """Return the files and the command of a launcher; see `Placement.launch`."""
    written = LAUNCHERS[_checks.one_of(launcher, "launcher", LAUNCHERS, AllocationError)]
    if isinstance(program, Mapping):
        return _by_role(placement, launcher, program)
    _check_program(program, "program")
    return written(Ranks.of(placement), program)


def _by_role(placement: Placement, launcher: str, programs: Mapping[str, str]) -> Launch:
    """Return a folder of files for each role of a joined job, whose ranks count from 0, and a line to start each."""
    Ranks.of(placement)  # refuses what no launcher can give to a rank
    roles = dict(tasks_of(placement.job.roles)) if placement.job is not None else {}
    for name in (*programs, *roles):
        if name not in programs or name not in roles:
            known = ", ".join(roles) or "none"
            raise AllocationError(
                f"program: {_checks.shown(name)} is not a role of both; the job has {known}"
            )
        if not _FOLDER.fullmatch(name):
            raise AllocationError(f"program: role {_checks.shown(name)}: not the name of a folder")
        _check_program(programs[name], f"program[{name!r}]")
    files: dict[str, str] = {}
    commands: list[str] = []
    for number, (name, tasks) in enumerate(roles.items()):
        job = JobGraph.independent(len(tasks)).with_(name=name)
        gpus = tuple([placement.gpus[task] for task in tasks])
        part = Placement(gpus, topology=placement.topology, job=job)
        own = launched(part, launcher, programs[name])
        files |= {f"{name}/{file}": text for file, text in own.files.items()}
        port = f"MASTER_PORT={PORT + number} " if launcher == "torchrun" and number else ""
        commands.append(f"(cd {name} && {port}{own.command})")
    return Launch(files, "\n".join(commands))


def _check_program(program: object, what: str) -> None:
    """Raise AllocationError unless this is a command on one line; what: how messages call it."""
    text = _checks.text(program, what, AllocationError)
    try:
        words = shlex.split(text)
    except ValueError as error:
        raise AllocationError(f"{what} = {_checks.shown(text)}: {error}") from None
    if not words or not {"\n", "\r", "\0"}.isdisjoint(text):
        raise AllocationError(f"{what} = {_checks.shown(text)} is not a command on one line")
