"""The input for bandwidths of a machine, prepared once for each topology and table of rates."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from topoplace import _checks
from topoplace.collective.machine_graph import UNITS_PER_GB, MachineGraph, machine_graph
from topoplace.collective.routes import AMD_CPU, ring_network
from topoplace.kernels import (
    MAX_LEVEL,
    ChannelRules,
    Channels,
    RingNetwork,
    TerminalGraph,
    best_channels,
    channel_rate,
)
from topoplace.topology.links.link_kinds import LinkKind, capability_of
from topoplace.topology.links.nccl_rates import PRESETS, SLOW_CHANNELS, PathType, Rates, rates_of
from topoplace.topology.topology import Topology

_MAX_CHANNELS = 16
_MAX_KEPT = 1 << 16
_SPLIT_GB_PER_S, _WHOLE_GB_PER_S = 25, 50
_WHOLE_CHANNELS = 4
_AMPERE = 80
_CAPABILITY_OF_NVLINK = {
    LinkKind.NVLINK1: 60,
    LinkKind.NVLINK2: 70,
    LinkKind.NVLINK3: 80,
    LinkKind.NVLINK4: 90,
    LinkKind.NVLINK5: 100,
}


@dataclass(frozen=True, slots=True)
class Prepared:
    """A machine as input of the kernels."""

    graph: MachineGraph
    network: RingNetwork
    terminals: TerminalGraph
    capabilities: tuple[int, ...]
    """The CUDA compute capability of each GPU, times ten; 0 if unknown."""
    rules_of: dict[int, ChannelRules]
    """The rules of the search for channels, by the lowest compute capability of the GPUs."""
    slow_rules_of: dict[int, ChannelRules]
    """The rules of the search for channels slower than those of the table, used if no other is found."""
    same_rules: ChannelRules | None
    """The rules, if all GPUs have one compute capability; else None."""
    achieved: Mapping[int, float]
    """Measured over planned speed of channels, by the level of their routes; empty if both are equal."""
    kept: dict[tuple[int, ...], float] = field(default_factory=dict[tuple[int, ...], float])
    """Cached ring bandwidths, in GB/s."""

    def rules(self, gpus: Iterable[int]) -> ChannelRules:
        """Return the rules of the search for channels among `gpus`."""
        return self.same_rules or self.rules_of[self.least_capability(gpus)]

    def least_capability(self, gpus: Iterable[int]) -> int:
        """Return the lowest compute capability among `gpus`, times ten, by which channels are chosen."""
        return min(self.capabilities[gpu] for gpu in gpus)

    def ring_bandwidth(self, gpus: tuple[int, ...]) -> float:
        """Return GB/s of the channels among `gpus`, cached."""
        found = self.kept.get(gpus)
        if found is None:
            found = self._rated(gpus)
            if len(self.kept) >= _MAX_KEPT:
                self.kept.clear()
            self.kept[gpus] = found
        return found

    def channels(self, gpus: Sequence[int]) -> tuple[Channels, float]:
        """Return the channels among `gpus`, and the GB/s of one channel."""
        found = best_channels(self.network, gpus, self.rules(gpus))
        if not found.num_rings:
            found = best_channels(self.network, gpus, self._slow_rules(gpus))
        return found, found.rate / UNITS_PER_GB * self.achieved.get(found.level, 1.0)

    def _slow_rules(self, gpus: Iterable[int]) -> ChannelRules:
        return self.slow_rules_of[self.least_capability(gpus)]

    def _rated(self, gpus: tuple[int, ...]) -> float:
        if not self.achieved:
            rate = channel_rate(self.network, gpus, self.rules(gpus))
            return (rate or channel_rate(self.network, gpus, self._slow_rules(gpus))) / UNITS_PER_GB
        found, gb_per_s = self.channels(gpus)
        return found.num_rings * gb_per_s


def prepared(topology: Topology, rates: Rates | str) -> Prepared:
    """Return the prepared input of a one-machine topology; ValueError for unknown rates, TopologyError for other
    topologies.
    """
    table = PRESETS.get(rates) if isinstance(rates, str) else rates
    kept = topology.derived(_nothing_yet)
    found = kept.get(table) if table else None
    if found is None:
        table = rates_of(rates)
        machine = alone(topology)
        found = _prepare(topology, table) if machine is topology else prepared(machine, table)
        kept[table] = found
    return found


def alone(topology: Topology) -> Topology:
    """Return the machine of a cluster of one machine, as its own topology; else the topology itself.

    A cluster has no components of its own, so its host, and the ports into its NVSwitches, would be assumed.
    """
    return topology.template(0) if topology.tiling and topology.num_machines == 1 else topology


def _nothing_yet(_: Topology) -> dict[Rates, Prepared]:
    return {}


def gpu_numbers(topology: Topology, gpus: Collection[int], what: str) -> list[int]:
    """Return the numbers of GPUs; ValueError for one that is not a GPU's or appears twice. what: the argument's name in
    errors.
    """
    numbers: dict[int, None] = {}
    for i, value in enumerate(_checks.sequence(gpus, what, ValueError)):
        gpu = _checks.integer(value, f"{what}[{i}]", ValueError, low=0, high=topology.num_gpus - 1)
        if gpu in numbers:
            raise ValueError(f"{what}[{i}] = {gpu} appears twice")
        numbers[gpu] = None
    return list(numbers)


def checked_gpus(topology: Topology, gpus: Collection[int]) -> list[int]:
    """Return the numbers of GPUs as `gpu_numbers` does; ValueError also for fewer than two."""
    numbers = gpu_numbers(topology, gpus, "gpus")
    if len(numbers) < 2:
        raise ValueError(f"gpus has {len(numbers)} entries; a collective operation needs at least 2")
    return numbers


def are_on_one_machine(topology: Topology, gpus: Sequence[int]) -> bool:
    """Return True if all GPUs are on one machine."""
    return topology.num_machines == 1 or len({int(topology.machine_of[gpu]) for gpu in gpus}) == 1


def one_machine(topology: Topology, gpus: Collection[int]) -> tuple[Topology, Sequence[int]]:
    """Return the machine of `gpus` as its own topology, and their numbers on it.

    ValueError as for `checked_gpus`, and for GPUs of several machines.
    """
    numbers = checked_gpus(topology, gpus)
    if topology.num_machines == 1:
        return topology, numbers
    machines = sorted({int(topology.machine_of[gpu]) for gpu in numbers})
    if len(machines) > 1:
        names = ", ".join(topology.machine_names[machine] for machine in machines[:2])
        raise ValueError(
            f"gpus are on several machines ({names}, ...); only those of one machine can be rated"
        )
    return topology.template(machines[0]), [topology.local_index[gpu] for gpu in numbers]


def _prepare(topology: Topology, rates: Rates) -> Prepared:
    graph = machine_graph(topology, rates)
    capabilities = tuple(_capabilities(topology))
    rules_of = {least: _rules(graph, rates.channels(least), least) for least in set(capabilities)}
    slow = {least: [rate for rate in SLOW_CHANNELS if rate < rates.channels(least)[-1]] for least in rules_of}
    arcs = [arc for one in graph.connections for arc in ((one.a, one.b, one.rate), (one.b, one.a, one.rate))]
    return Prepared(
        graph,
        ring_network(graph, rates),
        TerminalGraph(len(graph.vertices), graph.num_gpus, arcs),
        capabilities,
        rules_of,
        {least: _rules(graph, steps, least) for least, steps in slow.items()},
        next(iter(rules_of.values())) if len(rules_of) == 1 else None,
        {int(PathType[name]): share for name, share in rates.achieved.items()},
    )


def _capabilities(topology: Topology) -> Iterable[int]:
    """Yield the compute capability of each GPU, as its model or its NVLinks tell it; 0 if it is unknown."""
    of_links: dict[int, int] = {}
    for u, v, link in (*topology.links, *topology.component_links):
        if link.kind in _CAPABILITY_OF_NVLINK:
            of_links.update(dict.fromkeys((u, v), _CAPABILITY_OF_NVLINK[link.kind]))
    for gpu in topology.gpus:
        of_model = capability_of(gpu.model) if gpu.model else None
        yield gpu.capability or of_model or of_links.get(gpu.index, 0)


def _rules(graph: MachineGraph, steps: Sequence[float], capability: int) -> ChannelRules:
    """Return how NCCL looks for ring channels of these GB/s among GPUs of this compute capability.

    Channels of 25 GB/s and more are split, but above compute capability 8.0 not if there are more than four of less
    than 50 GB/s. Across the sockets of AMD's CPUs all channels are the same ring. GPUs that NVLinks join in exactly two
    groups get at least two channels, which trees then need.
    """
    first_cpu = next(iter(graph.cpus.values()), None)
    keeps_whole = capability > _AMPERE
    return ChannelRules(
        [round(rate * UNITS_PER_GB) for rate in steps],
        max_channels=_MAX_CHANNELS,
        split_rate=_SPLIT_GB_PER_S * UNITS_PER_GB,
        whole_rate=_WHOLE_GB_PER_S * UNITS_PER_GB if keeps_whole else 0,
        whole_count=_WHOLE_CHANNELS if keeps_whole else 0,
        group_level=PathType.NVL,
        equal_level=PathType.SYS if first_cpu == AMD_CPU else MAX_LEVEL + 1,
    )
