"""The environment variables of a placed job, for local and remote GPUs, and its numactl prefix."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Final

from topoplace import _checks
from topoplace.binding import Environment, LaunchDevice, Servers
from topoplace.errors import AllocationError
from topoplace.placement import Placement
from topoplace.topology.device_numbers import visible_numbers
from topoplace.topology.makers import Maker, maker_of
from topoplace.topology.topology import Topology

_VARIABLE: Final = {
    Maker.NVIDIA: "CUDA_VISIBLE_DEVICES",
    Maker.AMD: "ROCR_VISIBLE_DEVICES",
    Maker.GOOGLE: "TPU_VISIBLE_CHIPS",
    Maker.INTEL: "ZE_AFFINITY_MASK",
    Maker.GAUDI: "HABANA_VISIBLE_DEVICES",
    Maker.ASCEND: "ASCEND_RT_VISIBLE_DEVICES",
    Maker.MOORE_THREADS: "MUSA_VISIBLE_DEVICES",
    Maker.CAMBRICON: "MLU_VISIBLE_DEVICES",
    Maker.HYGON: "HIP_VISIBLE_DEVICES",
}
"""The variable that selects the devices of a process, or of its container, by their numbers.

NEURON_RT_VISIBLE_CORES is missing: it numbers cores, whose number on a Neuron device depends on its configuration.
"""
ASCENDING: Final = (Maker.ASCEND,)
"""Makers whose variable must list the devices ascending."""
_TILE: Final = re.compile(r"\S+[0-9]/[0-9]+")
"""The name of a part of an Intel GPU, such as GPU0/1."""
_NUMBERS: Final = re.compile(r"[0-9]+(?:,[0-9]+)*")
_VISIBLE: Final = frozenset(
    (
        "ASCEND_VISIBLE_DEVICES",
        "CUDA_DEVICE_ORDER",
        "HABANA_VISIBLE_MODULES",
        "HIP_VISIBLE_DEVICES",
        "NEURON_RT_VISIBLE_CORES",
        "ONEAPI_DEVICE_SELECTOR",
        "ZE_FLAT_DEVICE_HIERARCHY",
        *_VARIABLE.values(),
    )
)
"""All variables that decide which devices a process sees."""


def environment(
    placement: Placement, servers: Servers | None, slices: Mapping[tuple[int, int], str]
) -> Environment | dict[str, Environment]:
    """Return the environment variables with which a job's processes find its GPUs; see `Placement.env`."""
    by_machine = machine_environments(placement, servers, slices)
    return next(iter(by_machine.values())) if len(by_machine) == 1 else by_machine


def machine_environments(
    placement: Placement,
    servers: Servers | None = None,
    slices: Mapping[tuple[int, int], str] = MappingProxyType({}),
) -> dict[str, Environment]:
    """Return, by machine name, the environment variables with which a job's processes find its GPUs.

    slices: the UUIDs of the placement's MIG slices by GPU and start. Raise AllocationError if a UUID is missing, or if
    there are remote GPUs but `servers` is None.
    """
    if placement.slices and placement.remote:
        raise AllocationError(f"remote = {placement.remote}: a MIG slice cannot be used over the network")
    _checks.instance(slices, Mapping, "devices", AllocationError)
    if placement.remote and servers is None:
        raise AllocationError(
            f"remote = {placement.remote}: env needs servers=, a function that returns their addresses"
        )
    by_machine: dict[str, Environment] = {}
    hosts = _by_host(placement)
    for machine, gpus in hosts.items():
        if placement.slices:
            uuids = [_slice_uuid(placement, gpu, slices) for gpu in gpus]
            by_machine[machine] = _visible(placement, gpus, uuids)
        else:
            devices = [_seen(placement, gpu, gpus, machine) for gpu in gpus]
            by_machine[machine] = _visible(placement, gpus, [d.device for d in devices if not d.remote])
            if servers is not None and any(d.remote for d in devices):
                by_machine[machine].update(_client_variables(servers, devices))
        by_machine[machine].update(_adapters(placement, hosts, machine))
    return by_machine


def task_environments(placement: Placement) -> tuple[Environment, ...]:
    """Return, for each task, the environment variables with which its process sees only its own GPU.

    The placement must have neither remote GPUs nor slices.
    """
    hosts = _by_host(placement)
    adapters = {machine: _adapters(placement, hosts, machine) for machine in hosts}
    found: dict[int, Environment] = {}
    for machine, gpus in hosts.items():
        for gpu in gpus:
            device = _seen(placement, gpu, [gpu], machine).device
            found[gpu] = _visible(placement, [gpu], [device]) | adapters[machine]
    return tuple(found[gpu] for gpu in placement.gpus)


def _adapters(placement: Placement, hosts: Mapping[str, Sequence[int]], machine: str) -> Environment:
    """Return the variables that name the adapters of the job's GPUs on a machine; {} for a job of one machine."""
    gpus = hosts[machine]
    if len(hosts) == 1 or not gpus:
        return {}
    from topoplace.launch.nccl import adapter_variables

    return adapter_variables(placement.topology, gpus, machine)


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


def _seen(placement: Placement, index: int, used: Sequence[int], machine: str) -> LaunchDevice:
    """Return GPU `index` as the processes on `machine` see it; these processes use the GPUs `used`."""
    own = placement.topology.gpus[index].machine
    if index in placement.remote:
        return LaunchDevice(own, _device(placement, index, [index]), remote=True)
    local = [gpu for gpu in used if gpu not in placement.remote]
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


def _device(placement: Placement, index: int, used: Sequence[int]) -> str:
    """Return the number of GPU `index` on its machine, or its UUID if one of the GPUs `used` is a MIG slice.

    Raise AllocationError if the UUID is needed but unknown.
    """
    gpus = placement.topology.gpus
    if any(gpus[other].parent or gpus[other].fraction < 1 for other in used):
        return _uuid(placement, index)
    return str(placement.topology.derived(visible_numbers)[index])


def unset(placement: Placement) -> str | None:
    """Return for which devices `environment` sets no variable, and why; None if it sets one on each machine."""
    if nameless := slices_without_uuid(placement):
        return (
            f"no variable is printed for the MIG slices {', '.join(nameless)}: processes see slices by their UUIDs, "
            "which are not known; `nvidia-smi -L` prints them"
        )
    if placement.remote:
        return (
            "no variable is printed, as the job reaches GPUs over the network: `Placement.env` takes the addresses of "
            "their servers"
        )
    silent = {
        machine: gpus
        for machine, gpus in _by_host(placement).items()
        if gpus and _only_maker(placement.topology, gpus) is None
    }
    if not silent:
        return None
    numbers = placement.topology.derived(visible_numbers)
    where = "; ".join(
        f"{machine}: {', '.join(str(numbers[gpu]) for gpu in gpus)}" for machine, gpus in silent.items()
    )
    why = _why_silent(placement.topology, [gpu for gpus in silent.values() for gpu in gpus])
    return f"no variable is printed for devices {where}: {why}"


def _why_silent(topology: Topology, gpus: Sequence[int]) -> str:
    """Return why there is no variable for these devices."""
    makers = makers_of(topology, gpus)
    if makers == {Maker.NEURON}:
        return (
            "NEURON_RT_VISIBLE_CORES numbers cores, of which a device has several: set those of these devices"
        )
    if len(makers) > 1:
        return f"they are of several makers ({', '.join(sorted(maker.value for maker in makers))})"
    devices = [topology.gpus[gpu] for gpu in gpus]
    names = sorted({device.model or device.maker or device.name for device in devices})
    return f"the maker of {', '.join(names)} is not known: set the variable of your devices"


def assigned(name: str, value: str) -> str:
    """Return the assignment of a variable, quoted for a shell, as UUIDs come from untrusted texts."""
    return f"{name}={shlex.quote(value)}"


def slices_without_uuid(placement: Placement) -> list[str]:
    """Return the names of the job's devices that are MIG slices without a UUID; `environment` needs the UUIDs."""
    gpus = (placement.topology.gpus[index] for index in placement.gpus)
    return [gpu.name for gpu in gpus if gpu.uuid is None and (gpu.parent or gpu.fraction < 1)]


def numbering_variable(variables: Environment | Mapping[str, str]) -> str | None:
    """Return the name of the variable that selects devices by number; None without one, or if it has UUIDs."""
    return next((name for name in _VARIABLE.values() if _NUMBERS.fullmatch(variables.get(name, ""))), None)


def makers_of(topology: Topology, gpus: Sequence[int]) -> set[Maker]:
    """Return the makers of some GPUs."""
    return {maker_of(topology, gpu) for gpu in gpus}


def _only_maker(topology: Topology, gpus: Sequence[int]) -> Maker | None:
    """Return the maker of some GPUs if there is only one, and a variable shows its devices by number; else None."""
    makers = makers_of(topology, gpus) or {Maker.NVIDIA}
    maker = makers.pop()
    return None if makers or maker not in _VARIABLE else maker


def _visible(placement: Placement, gpus: Sequence[int], devices: Sequence[str]) -> Environment:
    """Return the variables that show only `devices` to the processes that use `gpus`; {} if none is known to."""
    maker = _only_maker(placement.topology, gpus)
    if maker is None:
        return {}
    listed = sorted(devices, key=int) if maker in ASCENDING else devices
    variables = {_VARIABLE[maker]: ",".join(listed)}
    if maker is Maker.NVIDIA:
        return {"CUDA_DEVICE_ORDER": "PCI_BUS_ID", **variables}
    if maker is Maker.INTEL:  # the mask numbers whole GPUs or their tiles, as the hierarchy says
        tiles = all(_TILE.fullmatch(placement.topology.gpus[gpu].name) for gpu in gpus)
        return {"ZE_FLAT_DEVICE_HIERARCHY": "FLAT" if tiles else "COMPOSITE", **variables}
    return variables


def _client_variables(servers: Servers, devices: Sequence[LaunchDevice]) -> Environment:
    """Return the variables that `servers` gives for `devices`.

    Raise AllocationError if the variables are invalid or change which GPUs are visible.
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
