"""The ranks of a placement, one for each task, and the script that gives each rank its GPU and CPUs."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final, Self

from topoplace import _checks
from topoplace.binding import Binding, Environment
from topoplace.errors import AllocationError
from topoplace.launch.bindings import bindings
from topoplace.launch.environment import (
    makers_of,
    numbering_variable,
    task_environments,
    unset,
)
from topoplace.placement import Placement
from topoplace.topology.devices import UNNAMED
from topoplace.topology.makers import Maker

_HOST: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,252}")


@dataclass(frozen=True)
class Ranks:
    """The ranks of a placement: rank i is task i, on the task's machine and GPU."""

    placement: Placement
    bindings: tuple[Binding, ...]

    @classmethod
    def of(cls, placement: Placement) -> Self:
        """Return the ranks of a placement; AllocationError for GPUs that no launcher can give to a rank."""
        if not placement.gpus:
            raise AllocationError("gpus = (): a launcher starts a rank for each GPU")
        if placement.remote:
            raise AllocationError(
                f"remote = {placement.remote}: only the middleware knows how a rank reaches these; use env(servers)"
            )
        if placement.slices:
            raise AllocationError("slices: their UUIDs are not known before they are cut; use env(devices=…)")
        if (why := unset(placement)) is not None:
            raise AllocationError(why)
        if makers_of(placement.topology, placement.gpus) == {Maker.GAUDI}:
            raise AllocationError(
                "HABANA_VISIBLE_DEVICES is for containers: a rank cannot choose its Gaudi by it"
            )
        ranks = cls(placement, bindings(placement))
        for machine in ranks.tasks_of:
            if not _HOST.fullmatch(machine):
                raise AllocationError(f"machine {_checks.shown(machine)}: not the name of a host")
        return ranks

    @cached_property
    def tasks_of(self) -> Mapping[str, Sequence[int]]:
        """Return the tasks of each machine, ascending; machines are in the order of their first task."""
        found: dict[str, list[int]] = {}
        for binding in self.bindings:
            found.setdefault(binding.machine, []).append(binding.task)
        return found

    @cached_property
    def environments(self) -> tuple[Environment, ...]:
        """Return, for each rank, the variables with which it sees only its own GPU."""
        return task_environments(self.placement)

    @property
    def cpus(self) -> tuple[str | None, ...]:
        """Return, for each rank, the CPUs near its GPU; None if unknown."""
        return tuple(binding.cpus for binding in self.bindings)

    @property
    def is_unnamed(self) -> bool:
        """Return True if there is one machine, whose host name is unknown."""
        return self.placement.topology.num_machines == 1 and tuple(self.tasks_of) == (UNNAMED,)

    def host(self, machine: str) -> str:
        """Return the name by which a launcher reaches a machine."""
        return "localhost" if self.is_unnamed else machine

    @property
    def hosts(self) -> tuple[str, ...]:
        """Return the host of each rank."""
        return tuple(self.host(binding.machine) for binding in self.bindings)

    @property
    def are_in_blocks(self) -> bool:
        """Return True if the ranks of each machine follow each other."""
        return [task for tasks in self.tasks_of.values() for task in tasks] == list(range(len(self.bindings)))


def rank_script(
    rank: str, variables: Sequence[Mapping[str, str]], cpus: Sequence[str | None], launcher: str
) -> str:
    """Return a shell script that starts a program as one rank: with its variables, on its CPUs.

    rank: the environment variable in which `launcher` gives a process its rank. variables, cpus: one item for each
    rank.
    """
    alike: dict[str, list[int]] = {}
    for number, (own, near) in enumerate(zip(variables, cpus, strict=True)):
        commands = [*exported(own), *([f"cpus={near or ''}"] if any(cpus) else [])]
        alike.setdefault("; ".join(commands) or ":", []).append(number)
    cases = "".join(f"{'|'.join(map(str, numbers))}) {commands} ;;\n" for commands, numbers in alike.items())
    bound = _BOUND.replace("RANK", rank) if any(cpus) else ""
    shown, renumbered = numbered_in_slurm(variables)
    return (
        f"#!/bin/sh\n# Starts a program as the rank in {rank}, which {launcher} sets. Written by topoplace.\n"
        f"{shown}case ${rank} in\n{cases}"
        f'*) echo "rank.sh: {rank}=${rank} is none of the ranks 0 to {len(variables) - 1}" >&2; exit 1 ;;\n'
        f'esac\n{renumbered}{bound}exec "$@"\n'
    )


_BOUND: Final = """\
if [ "$cpus" ]; then
    if taskset -c "$cpus" true 2>/dev/null; then exec taskset -c "$cpus" "$@"; fi
    echo "rank.sh: rank $RANK is not bound: this machine does not give it CPUs $cpus" >&2
fi
"""
"""Shell commands for known CPUs; a machine may have fewer, or a container or job may not allow them."""


def numbered_in_slurm(variables: Iterable[Mapping[str, str]]) -> tuple[str, str]:
    """Return shell commands for before and after the export of variables, which adapt device numbers to those of the
    job.

    A Slurm job that cannot see other jobs' devices (ConstrainDevices) numbers its own devices from 0. Both results are
    "" for variables that select no devices by number.
    """
    name = next(filter(None, map(numbering_variable, variables)), None)
    if name is None:
        return "", ""
    return f"shown=${name}\n", _RENUMBERED.replace("VARIABLE", name)


_RENUMBERED: Final = """\
given=$(echo "${SLURM_STEP_GPUS:-$SLURM_JOB_GPUS}" | tr , ' ')
shown=$(echo "$shown" | tr , '\\n' | sort -n | tr '\\n' ' ')
if [ "$given" ] && [ "$shown" = "$(i=0; for one in $given; do printf "$i "; i=$((i + 1)); done)" ]; then
    own= # Slurm numbers the devices of this job from 0
    for number in $(echo "$VARIABLE" | tr , ' '); do
        i=0
        for one in $given; do [ "$one" -ge "$number" ] || i=$((i + 1)); done
        own="$own${own:+,}$i"
    done
    export VARIABLE="$own"
fi
"""


def exported(variables: Mapping[str, str]) -> list[str]:
    """Return the shell command that exports variables, in a list; [] for no variables."""
    words = (f"{name}={shlex.quote(value)}" for name, value in variables.items())
    return [f"export {' '.join(words)}"] if variables else []
