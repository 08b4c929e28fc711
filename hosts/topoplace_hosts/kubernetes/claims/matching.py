"""Match devices to the GPUs of a node's machine: by UUID, PCI address or number."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from topoplace.topology.devices import Gpu
from topoplace_hosts.kubernetes.claims.device import Device, DeviceId

_PCI_ADDRESS: Final = "resource.kubernetes.io/pciBusID"


def gpu_numbers(devices: Iterable[Device], gpus: Iterable[Gpu]) -> dict[DeviceId, int]:
    """Return the number on the node of each device that is one of its GPUs; others are left out.

    A UUID known on both sides decides; else a PCI address known on both; else the driver's attribute `index`. Two
    devices that match the same GPU are both left out.
    """
    by_uuid: dict[str, int] = {}
    by_address: dict[str, int] = {}
    count = 0
    for number, gpu in enumerate(gpus):
        count += 1
        if gpu.uuid:
            by_uuid[gpu.uuid] = number
        if gpu.bus_id:
            by_address[_address(gpu.bus_id)] = number
    found: dict[DeviceId, int] = {}
    for device in devices:
        which = _number(device, by_uuid, by_address, count)
        if which is not None:
            found[device.id] = which
    return _unambiguous(found)


def _number(
    device: Device, by_uuid: Mapping[str, int], by_address: Mapping[str, int], count: int
) -> int | None:
    uuid, index = device.own("uuid"), device.own("index")
    if isinstance(uuid, str) and by_uuid:
        return by_uuid.get(uuid)
    address = device.attribute(_PCI_ADDRESS)
    if address is not None and by_address:
        return by_address.get(_address(str(address.values[0])))
    return index if type(index) is int and 0 <= index < count else None


def _address(given: str) -> str:
    """Return a PCI address in one form: the domain has four digits, or eight in texts of NVIDIA."""
    domain, _, rest = given.lower().partition(":")
    return f"{domain.lstrip('0'):0>4}:{rest}"


def _unambiguous(found: dict[DeviceId, int]) -> dict[DeviceId, int]:
    """Leave out devices of one pool that would be the same GPU."""
    seen: dict[tuple[str, str, int], int] = {}
    for device, gpu in found.items():
        key = (device.driver, device.pool, gpu)
        seen[key] = seen.get(key, 0) + 1
    return {
        device: number for device, number in found.items() if seen[device.driver, device.pool, number] == 1
    }


def is_of_gpu_driver(device: DeviceId) -> bool:
    """Return True if the name of a device's driver, such as gpu.nvidia.com, says that it is a GPU."""
    return "gpu" in device.driver.split(".")
