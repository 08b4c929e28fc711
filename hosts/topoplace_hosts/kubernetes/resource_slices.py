"""ResourceSlices (resource.k8s.io/v1) of a machine's devices for Dynamic Resource Allocation."""

from __future__ import annotations

import re
from typing import Any, Final

from topoplace import _checks
from topoplace.topology.devices import ComponentKind, Gpu
from topoplace.topology.links.link_kinds import NVLINKS, LinkKind
from topoplace.topology.topology import Topology

API: Final = "resource.k8s.io/v1"
_MOST_DEVICES = 128
"""Limit on the devices of one slice; a pool may have several slices."""
_MOST_TEXT = 64
_MOST_GENERATION = (1 << 63) - 1
_DOMAIN = re.compile(r"(?=.{1,63}$)[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_NODE = re.compile(r"(?=.{1,180}$)[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_LABEL = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?")
_NVLINKS = NVLINKS | {LinkKind.NVSWITCH}


def resource_slices(
    node: str, topology: Topology, driver: str, *, generation: int = 1, clique: str = ""
) -> list[dict[str, Any]]:
    """Return the ResourceSlices of a node's pool: a device for each healthy GPU of its machine.

    driver: the name of the DRA driver that prepares these devices on the node. generation: must grow whenever the
    devices change. clique: the value of the node's label nvidia.com/gpu.clique, for an NVLink domain of several nodes.

    Attributes without a domain belong to the driver: `index` (the number on the node), `model`, `uuid`, `socket`,
    `numaNode`, `pcieSwitch` (the nearest one), `parent` (of a MIG slice), `clique`. GPUs with equal `nvlinkDomain`
    reach each other by NVLink. The PCI address has the name that Kubernetes defines. Unknown attributes are left out.
    ValueError names a wrong argument.
    """
    if not _NODE.fullmatch(node):
        raise ValueError(f"node = {_checks.shown(node)} is not the name of a node of up to 180 characters")
    if not _DOMAIN.fullmatch(driver):
        raise ValueError(f"driver = {_checks.shown(driver)} is not a domain name of up to 63 characters")
    if topology.num_machines != 1 or topology.fabric is not None:
        raise ValueError(f"topology = {_checks.shown(topology.name)} has {topology.num_machines} machines")
    if clique and not _LABEL.fullmatch(clique):
        raise ValueError(
            f"clique = {_checks.shown(clique)} is not the value of a label, of up to 63 characters"
        )
    generation = _checks.integer(generation, "generation", ValueError, low=1, high=_MOST_GENERATION)
    domains, switches = _nvlink_domains(topology), _pcie_switches(topology)
    devices = [
        _device(gpu, domains.get(gpu.index), switches.get(gpu.index), clique)
        for gpu in topology.gpus
        if gpu.healthy
    ]
    parts = [devices[i : i + _MOST_DEVICES] for i in range(0, len(devices), _MOST_DEVICES)] or [[]]
    pool = {"name": node, "generation": generation, "resourceSliceCount": len(parts)}
    return [
        {
            "apiVersion": API,
            "kind": "ResourceSlice",
            "metadata": {"name": f"{node}-{driver}-{i}"},
            "spec": {"driver": driver, "nodeName": node, "pool": pool, "devices": part},
        }
        for i, part in enumerate(parts)
    ]


def _device(gpu: Gpu, nvlink_domain: int | None, pcie_switch: str | None, clique: str) -> dict[str, Any]:
    numbers = {
        "index": gpu.index,
        "socket": gpu.socket,
        "numaNode": gpu.numa_node,
        "nvlinkDomain": nvlink_domain,
    }
    texts = {
        "model": gpu.model,
        "uuid": gpu.uuid,
        "pcieSwitch": pcie_switch,
        "parent": gpu.parent,
        "clique": clique,
        "resource.kubernetes.io/pciBusID": gpu.bus_id,
    }
    for name, text in texts.items():
        if text and len(text) > _MOST_TEXT:
            raise ValueError(
                f"topology = GPU {gpu.index}: {name} {_checks.shown(text)} has more than {_MOST_TEXT} characters"
            )
    attributes: dict[str, Any] = {
        **{name: {"int": number} for name, number in numbers.items() if number is not None},
        **{name: {"string": text} for name, text in texts.items() if text},
    }
    device: dict[str, Any] = {"name": f"gpu-{gpu.index}", "attributes": attributes}
    if gpu.memory_gb is not None:
        device["capacity"] = {"memory": {"value": str(round(gpu.memory_gb * 1e9))}}
    return device


def _nvlink_domains(topology: Topology) -> dict[int, int]:
    """Return for each GPU with NVLinks the least number of the GPUs that it reaches by them."""
    found: dict[int, int] = {}
    for first in range(topology.num_gpus):
        if first in found:
            continue
        reached, edge = {first}, [first]
        while edge:
            u = edge.pop()
            for v in range(topology.num_gpus):
                if v not in reached and topology.link(u, v).kind in _NVLINKS:
                    reached.add(v)
                    edge.append(v)
        if len(reached) > 1:
            found.update(dict.fromkeys(reached, first))
    return found


def _pcie_switches(topology: Topology) -> dict[int, str]:
    """Return the name of the PCIe switch to which each GPU is attached, where that is known."""
    n = topology.num_gpus
    found: dict[int, str] = {}
    for one, other, _ in topology.component_links:
        gpu, part = min(one, other), max(one, other) - n
        if gpu < n and part >= 0 and topology.components[part].kind is ComponentKind.PCIE_SWITCH:
            found[gpu] = topology.components[part].name
    return found
