"""Rings through NVSwitches: of GPUs on the switches of one machine, or of one NVLink domain of several machines.

Switches serve every pair at the full rate of a GPU's port. All rings among these GPUs therefore carry the same: the
rate that a collective library plans for two GPUs with the slowest of these ports. It does not matter whether GPUs share
a tray.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from topoplace.collective.machine_graph import UNITS_PER_GB, Vertex, Wire
from topoplace.collective.prepared import Prepared, are_on_one_machine, one_machine, prepared
from topoplace.topology import level_ports
from topoplace.topology.devices import Gpu
from topoplace.topology.fabric import Level
from topoplace.topology.level_ports import Ports
from topoplace.topology.links.link_kinds import NONE, Link, LinkKind
from topoplace.topology.links.nccl_rates import Rates, rates_of
from topoplace.topology.topology import Topology

_BLACKWELL: Final = 100
_MOST_OF_RING: Final = 7 / 6


@dataclass(frozen=True, slots=True)
class Switched:
    """The common data of GPUs on the same NVSwitches."""

    ring_gb_per_s: float
    """GB/s of the rings that are planned among any two or more of these GPUs."""
    capability: int
    """Their lowest CUDA compute capability, times ten; 0 if unknown."""


def reducing(ring_gb_per_s: float, capability: int, rates: Rates) -> tuple[float, float]:
    """Return GB/s per GPU at which NVSwitches reduce (0 without NVLS), and the limit of an all-reduce in bus GB/s.

    The module `nvls` states the sources of the numbers.

    Args:
        ring_gb_per_s: GB/s of rings among such GPUs, the planned rate of a GPU's port.
        capability: The least CUDA compute capability of these GPUs, times ten.
    """
    most = _MOST_OF_RING * ring_gb_per_s if capability >= _BLACKWELL else math.inf
    return rates.nvls(capability) * ring_gb_per_s, most


def domain_ring_rate(topology: Topology, gpus: Sequence[int], rates: Rates | str) -> float:
    """Return GB/s of rings among GPUs of one NVLink domain of machines: the same for any two or more of them.

    The rate is that planned for two GPUs on one NVSwitch with the slowest port of `gpus`. Return 0 if no such domain
    has all `gpus`, or if one has no port into it. `gpus` must be GPUs of the topology.
    """
    level = domain_level(topology, gpus)
    return _of_level(topology, level, gpus, rates_of(rates)).ring_gb_per_s if level else 0.0


def domain_level(topology: Topology, gpus: Sequence[int]) -> Level | None:
    """Return the innermost level of NVSwitches with one domain that has all `gpus`; None if there is none."""
    levels = [level for level in topology.levels if level.kind is LinkKind.NVSWITCH]
    machines = {int(topology.machine_of[gpu]) for gpu in gpus} if levels else set[int]()
    for level in levels:
        domains = {int(level.codes[machine]) for machine in machines}
        if len(domains) == 1 and domains != {-1}:
            return level
    return None


def switched(topology: Topology, gpus: Sequence[int], rates: Rates) -> Switched | None:
    """Return the common data of GPUs on the NVSwitches of one machine or domain; None if they are not all on them."""
    level = domain_level(topology, gpus)
    if level is not None:
        found = _of_level(topology, level, gpus, rates)
        return found if found.ring_gb_per_s else None
    return _of_machine(topology, gpus, rates) if are_on_one_machine(topology, gpus) else None


def _of_level(topology: Topology, level: Level, gpus: Sequence[int], rates: Rates) -> Switched:
    ports = topology.derived(_ports_into)[level.name]
    kinds = {(topology.template_of[int(topology.machine_of[gpu])], topology.local_index[gpu]) for gpu in gpus}
    ends = [(ports[template][local], template, local) for template, local in sorted(kinds)]
    capability = min(
        prepared(topology.templates[template], rates).capabilities[local] for _, template, local in ends
    )
    slowest, template, local = min(ends, key=lambda end: end[0].gb_per_s)
    link = level_ports.link_between(level, slowest, slowest, topology.network)
    if link == NONE:
        return Switched(0.0, capability)
    return Switched(
        _planned(link, topology.templates[template].gpus[local].model, capability, rates), capability
    )


def _ports_into(topology: Topology) -> Mapping[str, Ports]:
    """Return the ports into each level of NVSwitches, by its name."""
    return {
        level.name: level_ports.ports_into(level, topology.templates, topology.template_of)
        for level in topology.levels
        if level.kind is LinkKind.NVSWITCH
    }


@lru_cache(maxsize=1024)
def _planned(link: Link, model: str | None, capability: int, rates: Rates) -> float:
    """Return GB/s of the rings between two GPUs on one NVSwitch, each with NVLinks of all lanes of `link`."""
    both = tuple(Gpu(i, f"GPU{i}", model, capability=capability or None) for i in range(2))
    return prepared(Topology(both, ((0, 1, link),)), rates).ring_bandwidth((0, 1))


def _of_machine(topology: Topology, gpus: Sequence[int], rates: Rates) -> Switched | None:
    local, chosen = one_machine(topology, gpus)
    machine = prepared(local, rates)
    if not set(chosen) <= set(_on_switches(machine)):
        return None
    return Switched(machine.ring_bandwidth(tuple(chosen)), machine.least_capability(chosen))


def _on_switches(machine: Prepared) -> Iterator[int]:
    graph = machine.graph
    for one in graph.connections:
        if one.wire is Wire.NVLINK and graph.vertices[one.b] is Vertex.NVSWITCH and one.rate >= UNITS_PER_GB:
            yield one.a
