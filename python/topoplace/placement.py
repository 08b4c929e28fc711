"""What a policy decides: a Placement, or Deferred with the reason why not now."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, field

from topoplace import _checks
from topoplace.errors import AllocationError
from topoplace.jobgraph import JobGraph
from topoplace.topology import Topology

Environment = dict[str, str]
_NUMBERED = re.compile(r"(?:GPU|nvidia)([0-9]{1,6})")


@dataclass(frozen=True, slots=True)
class Placement:
    """The GPUs a job gets: task i runs on `gpus[i]`."""

    gpus: tuple[int, ...]
    _: KW_ONLY
    topology: Topology = field(repr=False)
    scores: Mapping[str, float] = field(default_factory=dict[str, float], hash=False)
    """Named scores, such as "aggregated_bandwidth" in GB/s; to be read only."""
    optimal: bool = False
    """True only where the search proved that no placement is better for the policy's objective."""
    job: JobGraph | None = field(default=None, repr=False, compare=False)
    """The job it was made for; the cluster remembers it, so that later jobs can be kept from disturbing this one."""

    def __post_init__(self) -> None:
        gpus = _checks.sequence(self.gpus, "gpus", AllocationError)
        _checks.instance(self.topology, Topology, "topology", AllocationError)
        last = self.topology.num_gpus - 1
        if set(map(type, gpus)) != {int} or min(gpus) < 0 or max(gpus) > last:
            gpus = tuple(
                _checks.integer(gpu, f"gpus[{i}]", AllocationError, low=0, high=last)
                for i, gpu in enumerate(gpus)
            )
        if not gpus or len(set(gpus)) != len(gpus):
            raise AllocationError(f"gpus = {gpus} names no GPU, or one twice")
        object.__setattr__(self, "gpus", gpus)

    def env(self) -> Environment | dict[str, Environment]:
        """The environment that makes process-local device i the GPU of task i.

        On one machine the variables themselves; on several, a dict of them by machine name, each with the
        tasks of that machine in task order. GPUs are numbered as their own machine numbers them: by the number in a
        name such as "GPU3" or "nvidia3", or else by their place. Where a slice (MIG) is among them, all are named by
        their UUIDs; AllocationError where these are not known.
        """
        visible: dict[str, list[str]] = {}
        for gpu in self.gpus:
            machine = self.topology.gpus[gpu].machine
            visible.setdefault(machine, []).append(self._device(gpu))
        by_machine = {
            machine: {"CUDA_DEVICE_ORDER": "PCI_BUS_ID", "CUDA_VISIBLE_DEVICES": ",".join(ids)}
            for machine, ids in visible.items()
        }
        return next(iter(by_machine.values())) if len(by_machine) == 1 else by_machine

    def numactl(self) -> tuple[str, ...] | dict[str, tuple[str, ...]]:
        """The command to put before a job's own so that it keeps to the NUMA nodes of its GPUs.

        `("numactl", "--cpunodebind=0", "--membind=0")` where all its GPUs share a NUMA node (SC'17 binds such jobs to
        the socket, section 5.1), () where they do not or where nobody knows theirs: a job across sockets needs both. A
        GPU whose NUMA node is unknown takes the number of its socket. By machine name where there are several machines.
        """
        by_machine: dict[str, set[int | None]] = {}
        for index in self.gpus:
            gpu = self.topology.gpus[index]
            node = gpu.socket if gpu.numa_node is None else gpu.numa_node
            by_machine.setdefault(gpu.machine, set()).add(node)
        commands = {machine: _bound(nodes) for machine, nodes in by_machine.items()}
        return next(iter(commands.values())) if len(commands) == 1 else commands

    def _device(self, index: int) -> str:
        """What CUDA calls a GPU on its machine."""
        gpu = self.topology.gpus[index]
        beside = [self.topology.gpus[other] for other in self.gpus]
        if any(other.parent and other.machine == gpu.machine for other in beside):
            if gpu.uuid is None:
                raise AllocationError(f"gpus: {gpu.name} has no known UUID, by which slices are named")
            return gpu.uuid
        single = self.topology.num_machines == 1 or self.topology.fabric is not None
        number = (
            _NUMBERED.fullmatch(gpu.name) if single else None
        )  # else GPUs may be numbered across machines
        return number[1] if number else str(self.topology.local_index[index])


def _bound(nodes: set[int | None]) -> tuple[str, ...]:
    (node, *others) = nodes
    if others or node is None:
        return ()
    return ("numactl", f"--cpunodebind={node}", f"--membind={node}")


@dataclass(frozen=True, slots=True)
class Deferred:
    """No placement now, and the reason, for a person to read."""

    reason: str
