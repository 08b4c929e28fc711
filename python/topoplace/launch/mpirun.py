"""Start a placed job with Open MPI: each rank on the GPU of its task, by a host file or a rank file."""

from __future__ import annotations

from topoplace.binding import Launch
from topoplace.errors import AllocationError
from topoplace.launch.ranks import Ranks, rank_script

_RANK = "OMPI_COMM_WORLD_RANK"


def mpirun(ranks: Ranks, program: str) -> Launch:
    """Return a host file with a line for each rank, which Open MPI's sequential mapper takes line by line.

    That mapper does not accept the name localhost.
    """
    if ranks.is_unnamed:
        return hostfile(ranks, program)
    files = {"hosts.txt": "".join(f"{host}\n" for host in ranks.hosts), "rank.sh": _script(ranks)}
    return Launch(files, f"{_command(ranks, '--map-by seq --bind-to none')} {program}")


def hostfile(ranks: Ranks, program: str) -> Launch:
    """Return a host file with the slots of each machine; AllocationError unless ranks fill machine after machine."""
    if not ranks.are_in_blocks:
        raise AllocationError(
            'launcher = "hostfile": the ranks of a machine do not follow each other, and a host file with slots '
            'cannot say so; use "mpirun" or "rankfile"'
        )
    files = {"hosts.txt": _slots(ranks), "rank.sh": _script(ranks)}
    return Launch(files, f"{_command(ranks, '--map-by slot --bind-to none')} {program}")


def rankfile(ranks: Ranks, program: str) -> Launch:
    """Return a rank file with the machine and the CPUs of each rank, as Linux numbers them, for Open MPI 4.

    Raise AllocationError if the CPUs of a rank are unknown, since a rank file must state them.
    """
    lines: list[str] = []
    for binding, host in zip(ranks.bindings, ranks.hosts, strict=True):
        if binding.cpus is None:
            raise AllocationError(
                f'launcher = "rankfile": the CPUs near the GPU of task {binding.task} are unknown, and a rank file '
                'must tell them; use "mpirun"'
            )
        lines.append(f"rank {binding.task}={host} slot={binding.cpus}\n")
    unbound = rank_script(_RANK, ranks.environments, [None] * len(lines), "mpirun")
    files = {"hosts.txt": _slots(ranks), "ranks.txt": "".join(lines), "rank.sh": unbound}
    options = "--mca rmaps_rank_file_physical 1 --rankfile ranks.txt"
    return Launch(files, f"{_command(ranks, options)} {program}")


def _slots(ranks: Ranks) -> str:
    return "".join(f"{ranks.host(name)} slots={len(tasks)}\n" for name, tasks in ranks.tasks_of.items())


def _script(ranks: Ranks) -> str:
    return rank_script(_RANK, ranks.environments, ranks.cpus, "mpirun")


def _command(ranks: Ranks, options: str) -> str:
    return f"mpirun --hostfile hosts.txt {options} -np {len(ranks.bindings)} sh rank.sh"
