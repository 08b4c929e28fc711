"""The devices of a topology: accelerators and network adapters, and the checks of them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, fields

from topoplace import _checks
from topoplace.errors import TopologyError


@dataclass(frozen=True, slots=True)
class Gpu:
    """One accelerator of a topology."""

    index: int
    """Its position in the topology, from 0."""
    name: str
    """Its name on its machine, such as "GPU0"."""
    model: str | None = None
    """Such as "V100", where known."""
    machine: str = "machine0"
    """The name of the machine it is in."""
    socket: int | None = None
    """The CPU socket (or PCIe root) of its machine it hangs on, where known."""
    memory_gb: float | None = None
    """Its memory in GB, where known."""


@dataclass(frozen=True, slots=True)
class Nic:
    """A network adapter and its path to every GPU."""

    name: str
    paths: tuple[str, ...]
    """(n,) one path class per GPU, as NCCL names them, nearest first: PIX, PXB, PHB, NODE, SYS."""


PATH_CLASSES = ("PIX", "PXB", "PHB", "NODE", "SYS")
GPU_KEYS = tuple(field.name for field in fields(Gpu) if field.name != "index")
"""What is written about a GPU beside its position."""

_MAX_SOCKET = 1 << 16


def checked_gpus(gpus: Iterable[object], limit: int) -> tuple[Gpu, ...]:
    """`gpus` with every field checked; at least one, at most `limit`, each at its own index."""
    found = _checks.sequence(gpus, "gpus", TopologyError)
    if not 1 <= len(found) <= limit:
        raise TopologyError(f"gpus has {len(found)} entries; a topology has 1..{limit}")
    return tuple(_checked_gpu(gpu, i) for i, gpu in enumerate(found))


def _checked_gpu(gpu: object, i: int) -> Gpu:
    where = f"gpus[{i}]"
    if not isinstance(gpu, Gpu):
        raise TopologyError(f"{where} = {_checks.shown(gpu)} is not a Gpu")
    if gpu.index != i:
        raise TopologyError(f"{where}.index = {_checks.shown(gpu.index)} is not {i}")
    _checks.text(gpu.name, f"{where}.name", TopologyError)
    _checks.text(gpu.machine, f"{where}.machine", TopologyError)
    if gpu.model is not None:
        _checks.text(gpu.model, f"{where}.model", TopologyError)
    socket, memory_gb = gpu.socket, gpu.memory_gb
    if socket is not None:
        socket = _checks.integer(socket, f"{where}.socket", TopologyError, low=0, high=_MAX_SOCKET)
    if memory_gb is not None:
        memory_gb = _checks.positive(memory_gb, f"{where}.memory_gb", TopologyError)
    return Gpu(i, gpu.name, gpu.model, gpu.machine, socket, memory_gb)


def checked_nics(nics: Iterable[object], num_gpus: int) -> tuple[Nic, ...]:
    """`nics` with unique names and one known path class for each of `num_gpus` GPUs."""
    checked: dict[str, Nic] = {}
    for i, nic in enumerate(nics):
        if not isinstance(nic, Nic):
            raise TopologyError(f"nics[{i}] = {_checks.shown(nic)} is not a Nic")
        name = _checks.text(nic.name, f"nics[{i}].name", TopologyError)
        paths = _checks.sequence(nic.paths, f"nics[{i}].paths", TopologyError)
        if name in checked:
            raise TopologyError(f"nics[{i}].name = {name!r} is there twice")
        if len(paths) != num_gpus:
            raise TopologyError(f"nics[{i}].paths has {len(paths)} entries for {num_gpus} GPUs")
        for j, path in enumerate(paths):
            if path not in PATH_CLASSES:
                raise TopologyError(
                    f"nics[{i}].paths[{j}] = {_checks.shown(path)} is none of {', '.join(PATH_CLASSES)}"
                )
        checked[name] = Nic(name, paths)
    return tuple(checked.values())
