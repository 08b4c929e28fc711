"""Start a placed job with torchrun: one command on each machine, which starts a process for each rank there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from topoplace.binding import Environment, Launch
from topoplace.errors import AllocationError
from topoplace.launch.environment import ASCENDING, machine_environments, makers_of
from topoplace.launch.ranks import Ranks, exported, numbered_in_slurm, rank_script

PORT: Final = 29500
"""The port on which the first machine waits for the others; torchrun's default."""


@dataclass(frozen=True, slots=True)
class Node:
    """A machine as torchrun starts it: process i is task `tasks[i]`, whose GPU is visible device i."""

    machine: str
    tasks: tuple[int, ...]
    variables: Environment


def nodes(ranks: Ranks) -> tuple[Node, ...]:
    """Return the machines in the order of their node ranks; AllocationError for slices that CUDA does not list."""
    gpus = ranks.placement.topology.gpus
    ascending = makers_of(ranks.placement.topology, ranks.placement.gpus) <= set(ASCENDING)
    variables = machine_environments(ranks.placement)
    found: list[Node] = []
    for machine, tasks in ranks.tasks_of.items():
        own = [ranks.bindings[task] for task in tasks]
        if len(own) > 1 and any(gpus[binding.gpu].fraction < 1 for binding in own):
            raise AllocationError(
                f"machine {machine}: torchrun shows all its devices to each process, and CUDA shows a process only "
                'one MIG slice; use "mpirun" or "srun"'
            )
        if ascending:
            own.sort(key=lambda binding: binding.local_gpu or 0)
        found.append(Node(machine, tuple(binding.task for binding in own), variables[machine]))
    return tuple(found)


def torchrun(ranks: Ranks, program: str) -> Launch:
    """Return a script that each machine runs.

    torchrun gives the processes of node rank 0 the first ranks, and so on. If the placement has another order,
    `rank.sh` gives each process the rank of its task instead.
    """
    machines = nodes(ranks)
    script = _start(ranks, machines)
    files = {"torchrun.sh": script}
    started = started_ranks(machines)
    if any(started) or any(ranks.cpus):
        cpus = [ranks.cpus[task] for node in machines for task in node.tasks]
        files["rank.sh"] = rank_script("RANK", started, cpus, "torchrun")
        files["torchrun.sh"] = script.replace('"$@"', 'sh "${0%torchrun.sh}rank.sh" "$@"')
    return Launch(files, f"sh torchrun.sh {program}")


def started_ranks(machines: Sequence[Node]) -> list[Mapping[str, str]]:
    """Return, for each rank of torchrun, variables with the rank of the placement; {} for each if all are equal."""
    tasks = [task for node in machines for task in node.tasks]
    if tasks == list(range(len(tasks))):
        return [{} for _ in tasks]
    return [{"RANK": str(task), "ROLE_RANK": str(task)} for task in tasks]


def _start(ranks: Ranks, machines: Sequence[Node]) -> str:
    head = "#!/bin/sh\n# Starts this machine's ranks of the job with torchrun. Written by topoplace.\n"
    shown, renumbered = numbered_in_slurm([node.variables for node in machines])
    if len(machines) == 1:
        own = "".join(f"{line}\n" for line in exported(machines[0].variables))
        count = len(machines[0].tasks)
        return f'{head}{shown}{own}{renumbered}exec torchrun --standalone --nproc-per-node={count} --no-python "$@"\n'
    cases = "".join(
        f"    ({node.machine}) {'; '.join([*exported(node.variables), f'node={i} count={len(node.tasks)}'])} ;;\n"
        for i, node in enumerate(machines)
    )  # behind a parenthesis, even esac is a name
    return (
        f"{head}{shown}choose() {{\n    case $1 in\n{cases}    *) return 1 ;;\n    esac\n}}\n"
        'machine=${TOPOPLACE_MACHINE:-$(uname -n)}\nchoose "$machine" || choose "${machine%%.*}" || {\n'
        f'    echo "torchrun.sh: $machine is none of the job\'s {len(machines)} machines; set TOPOPLACE_MACHINE" >&2\n'
        f"    exit 1\n}}\n{renumbered}exec torchrun --nnodes={len(machines)} --node-rank=$node --nproc-per-node=$count "
        f"--master-addr={ranks.host(machines[0].machine)} --master-port=${{MASTER_PORT:-{PORT}}} "
        '--no-python "$@"\n'
    )
