"""Build what a placed job needs to start: environment variables for local and remote GPUs, and the numactl prefix."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from topoplace import _checks
from topoplace.errors import AllocationError
from topoplace.placement import Placement
from topoplace.topology.device_numbers import device_numbers
from topoplace.topology.makers import Maker, maker_of

Environment = dict[str, str]
_OWN_VARIABLE: Final = {Maker.AMD: "ROCR_VISIBLE_DEVICES", Maker.GOOGLE: "TPU_VISIBLE_CHIPS"}
"""The variable with which processes see their devices, for makers other than NVIDIA."""
_VISIBLE: Final = frozenset(
    ("CUDA_DEVICE_ORDER", "CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", *_OWN_VARIABLE.values())
)
"""All variables that decide which devices a process sees."""


@dataclass(frozen=True, slots=True)
class LaunchDevice:
    """A GPU as the process that uses it finds it: machine, number or UUID, and whether it is remote."""

    machine: str
    """Name of the GPU's machine."""
    device: str
    """CUDA's number or UUID of the GPU on that machine."""
    remote: bool
    """True if the process reaches the GPU over the network."""


Servers = Callable[[Sequence[LaunchDevice]], Mapping[str, str]]
"""A function from the devices of a machine's processes, in task order, to environment variables.

The variables state where the client of a remote-GPU middleware, such as rCUDA, finds the remote devices. Only the
caller knows these addresses.
"""


def environment(
    placement: Placement, servers: Servers | None, slices: Mapping[tuple[int, int], str]
) -> Environment | dict[str, Environment]:
    """Return the environment variables with which a job's processes find its GPUs; see `Placement.env`.

    slices: the UUIDs of the placement's MIG slices by GPU and start. AllocationError if one is missing, or if there are
    remote GPUs but `servers` is None.
    """
    if placement.slices and placement.remote:
        raise AllocationError(f"remote = {placement.remote}: a MIG slice cannot be used over the network")
    _checks.instance(slices, Mapping, "devices", AllocationError)
    if placement.remote and servers is None:
        raise AllocationError(
            f"remote = {placement.remote}: env needs servers=, a function that returns their addresses"
        )
    by_machine: dict[str, Environment] = {}
    for machine, gpus in _by_host(placement).items():
        if placement.slices:
            by_machine[machine] = _visible(
                placement, gpus, [_slice_uuid(placement, gpu, slices) for gpu in gpus]
            )
            continue
        devices = [_seen(placement, gpu, gpus, machine) for gpu in gpus]
        by_machine[machine] = _visible(placement, gpus, [d.device for d in devices if not d.remote])
        if servers is not None and any(d.remote for d in devices):
            by_machine[machine].update(_client_variables(servers, devices))
    return next(iter(by_machine.values())) if len(by_machine) == 1 else by_machine


def server_environment(placement: Placement) -> dict[str, Environment]:
    """Return, by machine name, the environment variables of remote GPUs' servers; see `Placement.server_env`."""
    served: dict[str, list[int]] = {}
    for gpu in placement.remote:
        served.setdefault(placement.topology.gpus[gpu].machine, []).append(gpu)
    return {
        machine: _visible(placement, gpus, [_device(placement, gpu, gpus) for gpu in gpus])
        for machine, gpus in served.items()
    }


def numactl(placement: Placement) -> tuple[str, ...] | dict[str, tuple[str, ...]]:
    """Return the command prefix that binds a job to the NUMA node of its GPUs; see `Placement.numactl`."""
    commands = {
        machine: _bound(_nodes(placement, gpus, machine)) for machine, gpus in _by_host(placement).items()
    }
    return next(iter(commands.values())) if len(commands) == 1 else commands


def _nodes(placement: Placement, gpus: Sequence[int], machine: str) -> set[int | None]:
    """Return the NUMA nodes of those of `gpus` that are not remote; a socket number replaces an unknown NUMA node.

    None stands for a GPU whose NUMA node and socket are unknown, or for a GPU that is not on `machine`.
    """
    local = [placement.topology.gpus[index] for index in gpus if index not in placement.remote]
    return {
        None if gpu.machine != machine else gpu.socket if gpu.numa_node is None else gpu.numa_node
        for gpu in local
    }


def _by_host(placement: Placement) -> dict[str, list[int]]:
    """Return the placement's GPUs in task order, by the name of the machine on which their process runs.

    If the placement names no processes, the GPUs are listed by their own machine.
    """
    found: dict[str, list[int]] = {}
    names = placement.topology.machine_names if placement.hosts else ()
    for share in placement.hosts:
        found.setdefault(names[share.machine], [])
    for task, gpu in enumerate(placement.gpus):
        host = placement.host_of(task)
        machine = placement.topology.gpus[gpu].machine if host is None else names[host]
        found.setdefault(machine, []).append(gpu)
    return found


def _seen(placement: Placement, index: int, beside: Sequence[int], machine: str) -> LaunchDevice:
    """Return GPU `index` as the processes on `machine` see it; these processes use the GPUs `beside`."""
    own = placement.topology.gpus[index].machine
    if index in placement.remote:
        return LaunchDevice(own, _device(placement, index, [index]), remote=True)
    local = [gpu for gpu in beside if gpu not in placement.remote]
    lent = any(placement.topology.gpus[gpu].machine != machine for gpu in local)
    return LaunchDevice(
        own, _uuid(placement, index) if lent else _device(placement, index, local), remote=False
    )


def _uuid(placement: Placement, index: int) -> str:
    gpu = placement.topology.gpus[index]
    if gpu.uuid is None:
        raise AllocationError(f"gpus: the UUID of {gpu.name} is unknown; slices and lent GPUs need one")
    return gpu.uuid


def _slice_uuid(placement: Placement, gpu: int, slices: Mapping[tuple[int, int], str]) -> str:
    start = placement.slices[placement.gpus.index(gpu)].start
    if (gpu, start) not in slices:
        where = f"({gpu}, {start})"
        raise AllocationError(f"devices: the UUID of the MIG slice {where}, its GPU and start, is missing")
    return _checks.text(slices[gpu, start], f"devices[{gpu}, {start}]", AllocationError)


def _device(placement: Placement, index: int, beside: Sequence[int]) -> str:
    """Return the number of GPU `index` on its machine, or its UUID if one of the GPUs `beside` is a MIG slice.

    AllocationError if the UUID is needed but unknown.
    """
    if any(placement.topology.gpus[other].parent for other in beside):
        return _uuid(placement, index)
    return str(device_numbers(placement.topology)[index])


def _visible(placement: Placement, gpus: Sequence[int], devices: Sequence[str]) -> Environment:
    """Return the variables that show only `devices` to the processes that use `gpus`."""
    named = ",".join(devices)
    other = _OWN_VARIABLE.get(maker_of(placement.topology, gpus[0])) if gpus else None
    if other is not None:
        return {other: named}
    return {"CUDA_DEVICE_ORDER": "PCI_BUS_ID", "CUDA_VISIBLE_DEVICES": named}


def _client_variables(servers: Servers, devices: Sequence[LaunchDevice]) -> Environment:
    """Return the variables that `servers` gives for `devices`.

    AllocationError if the variables are invalid or change which GPUs are visible.
    """
    if not callable(servers):
        raise AllocationError(f"servers = {_checks.shown(servers)} is not callable")
    returned = servers(devices)
    _checks.instance(returned, Mapping, "what servers returned", AllocationError)
    return {_variable_name(key): _variable_value(key, value) for key, value in returned.items()}


def _variable_name(key: object) -> str:
    name = _checks.text(key, "servers: name of a variable", AllocationError)
    if "=" in name or "\0" in name:
        raise AllocationError(f"servers: name of a variable = {_checks.shown(name)} contains '=' or NUL")
    if name in _VISIBLE:
        raise AllocationError(f"servers: must not set {name}, which decides which GPUs are local")
    return name


def _variable_value(key: str, value: object) -> str:
    what = f"servers: {_checks.shown(key)}"
    if not isinstance(value, str):
        raise AllocationError(f"{what} = {_checks.shown(value)} is not a string")
    if value:
        _checks.text(value, what, AllocationError)
    if "\0" in value:
        raise AllocationError(f"{what} = {_checks.shown(value)} contains NUL")
    return value


def _bound(nodes: set[int | None]) -> tuple[str, ...]:
    node = next(iter(nodes)) if len(nodes) == 1 else None
    if node is None:
        return ()
    return ("numactl", f"--cpunodebind={node}", f"--membind={node}")
