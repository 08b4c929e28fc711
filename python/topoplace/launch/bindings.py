"""The location of each task of a placement, and the number of domains of a level that the groups of a job touch."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from topoplace import _checks
from topoplace.binding import Binding
from topoplace.errors import AllocationError
from topoplace.placement import Placement
from topoplace.topology.device_numbers import visible_numbers
from topoplace.topology.nearest_adapters import adapters_machine, own_adapters
from topoplace.topology.topology import Topology


def bindings(placement: Placement) -> tuple[Binding, ...]:
    """Return the location of each task; see `Placement.bindings`."""
    numbers = placement.topology.derived(visible_numbers)
    return tuple(_binding(placement, task, numbers) for task in range(len(placement.gpus)))


def _binding(placement: Placement, task: int, numbers: Sequence[int]) -> Binding:
    topology, index = placement.topology, placement.gpus[task]
    gpu, host = topology.gpus[index], placement.host_of(task)
    machine = gpu.machine if host is None else topology.machine_names[host]
    if machine != gpu.machine or index in placement.remote:
        return Binding(task, machine, index, None, None, None, None)
    numa = gpu.socket if gpu.numa_node is None else gpu.numa_node
    return Binding(task, machine, index, numbers[index], _adapter(topology, index), numa, gpu.cpus)


def _adapter(topology: Topology, gpu: int) -> str | None:
    machine = adapters_machine(topology, gpu)
    return None if machine is None else machine.derived(own_adapters)[topology.local_index[gpu]]


def spread(placement: Placement, dimension: str, level: str) -> tuple[int, float]:
    """Return the largest and the mean number of domains that a group touches; see `Placement.spread`."""
    if placement.job is None:
        raise AllocationError("job = None: a placement without its job has no dimensions")
    dimensions = placement.job.dimensions
    if not dimensions:
        raise AllocationError(f"dimension = {_checks.shown(dimension)}: job {placement.job.name} has none")
    if len(placement.gpus) != placement.job.num_tasks:
        count, tasks = len(placement.gpus), placement.job.num_tasks
        raise AllocationError(
            f"gpus = {_checks.shown(placement.gpus)} are {count}, the job has {tasks} tasks"
        )
    groups = dimensions[_checks.one_of(dimension, "dimension", dimensions, AllocationError)]
    touched = domains_touched(placement, groups, level)
    return max(touched), sum(touched) / len(touched)


def domains_touched(placement: Placement, groups: Iterable[Sequence[int]], level: str) -> list[int]:
    """Return the number of domains of a level that each group touches; AllocationError for an unknown level."""
    domain_of = _domains(placement.topology, level)
    return [len({domain_of(placement.gpus[task]) for task in group}) for group in groups]


def _domains(topology: Topology, level: str) -> Callable[[int], int | tuple[int, int]]:
    """Return the function from a GPU to its domain of a level; a machine in no domain counts as one of its own."""
    levels = {one.name: one for one in topology.levels}
    _checks.one_of(level, "level", ("socket", "machine", *levels), AllocationError)
    if level in levels:
        codes = levels[level].codes

        def domain(gpu: int) -> int | tuple[int, int]:
            machine = int(topology.machine_of[gpu])
            return int(codes[machine]) if codes[machine] >= 0 else (-1, machine)

        return domain
    numbers = topology.socket_of if level == "socket" else topology.machine_of
    return lambda gpu: int(numbers[gpu])
