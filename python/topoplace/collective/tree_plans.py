"""The schedule of trees that reaches `optimal_bandwidth`: the hops between GPUs, and the path of each hop."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import groupby

from topoplace import _checks, kernels
from topoplace.collective.bandwidth import DEFAULT_RATES, Relay, host_is_assumed
from topoplace.collective.machine_graph import UNITS_PER_GB
from topoplace.collective.prepared import are_on_one_machine, checked_gpus, one_machine, prepared
from topoplace.collective.several_machines import graph_over, parts_of
from topoplace.topology.links.nccl_rates import Rates
from topoplace.topology.topology import Topology


@dataclass(frozen=True, slots=True)
class Way:
    """The path of some trees over a hop."""

    through: tuple[str, ...]
    """The vertices on the path, in order, such as "switch 9" or "gpu 3", with numbers of `MachineGraph.vertices`; ()
    for a direct link.

    Over several machines, GPUs have their numbers in the cluster. Other names begin with the machine or the level of
    the network, such as "machine1 switch 9", "machine1 port mlx5_0" or "leaf 2".
    """
    trees: int


@dataclass(frozen=True, slots=True)
class Hop:
    """One hop of a tree, from a GPU that has the data to one that gets it."""

    start: int
    end: int
    ways: tuple[Way, ...]


@dataclass(frozen=True, slots=True)
class SpanningTree:
    """Equal trees from one GPU to all others."""

    root: int
    trees: int
    """The number of equal trees, each of the rate `TreePlan.gb_per_s_of_tree`."""
    hops: tuple[Hop, ...]
    """The hops; each begins at the root, or at the end of an earlier one."""

    @property
    def depth(self) -> int:
        """Return the largest number of hops from the root to a GPU."""
        depth = {self.root: 0}
        for hop in self.hops:
            depth[hop.end] = depth[hop.start] + 1
        return max(depth.values())


@dataclass(frozen=True, slots=True)
class TreePlan:
    """Trees with which an all-gather reaches its optimum."""

    trees: tuple[SpanningTree, ...]
    trees_per_gpu: int
    """The number of trees with each GPU as the root, equal to the number of parts into which it divides its data."""
    gb_per_s_of_tree: Fraction
    assumed: bool
    """True if the topology does not state its PCIe switches and CPUs, which are then assumed."""

    @property
    def gb_per_s(self) -> Fraction:
        """Return the `optimal_bandwidth`, GB/s: the data of all GPUs divided by the time that the trees take."""
        return sum((tree.trees for tree in self.trees), 0) * self.gb_per_s_of_tree


def trees(
    topology: Topology,
    gpus: Collection[int],
    *,
    relay: Relay = "chosen",
    rates: Rates | str = DEFAULT_RATES,
) -> TreePlan:
    """Return trees that together carry the `optimal_bandwidth` of an all-gather; arguments and errors are the same.

    A reduce-scatter uses the trees in the other direction, and an all-reduce does both, one after the other. There are
    no trees if the GPUs are not connected. Over several machines, raise ValueError for more than 512 vertices: GPUs,
    network ports, and the parts of hosts and network that forward.
    """
    relay_others = _checks.one_of(relay, "relay", ("chosen", "all"), ValueError) == "all"
    numbers = checked_gpus(topology, gpus)
    if topology.tiling and not are_on_one_machine(topology, numbers):
        return _over_machines(topology, numbers, rates, relay_others=relay_others)
    local, chosen = one_machine(topology, numbers)
    machine = prepared(local, rates)
    found = kernels.pack_trees(machine.terminals, chosen, relay_others=relay_others)
    names = [f"{kind.value} {vertex}" for vertex, kind in enumerate(machine.graph.vertices)]
    packed = _spanning_trees(found.trees, dict(zip(chosen, numbers, strict=True)), names)
    return TreePlan(packed, found.per_root, found.rate / UNITS_PER_GB, machine.graph.assumed)


def _over_machines(
    topology: Topology, gpus: list[int], rates: Rates | str, *, relay_others: bool
) -> TreePlan:
    graph, parts = graph_over(topology, gpus, rates, others=relay_others), parts_of(topology, gpus)
    try:
        found = kernels.pack_trees(graph.terminals(), range(len(gpus)))
    except ValueError as error:  # too many vertices
        raise ValueError(f"gpus are on {len(parts)} machines, and with their network {error}") from None
    packed = _spanning_trees(found.trees, dict(enumerate(gpus)), graph.names())
    assumed = any(host_is_assumed(part.topology, rates=rates) for part in parts)
    return TreePlan(packed, found.per_root, found.rate * graph.unit / UNITS_PER_GB, assumed)


def _spanning_trees(
    packed: Sequence[kernels.PackedTree], gpu_of: Mapping[int, int], names: Sequence[str]
) -> tuple[SpanningTree, ...]:
    """Return trees with the numbers of GPUs, and the names of the vertices that they pass."""
    return tuple(
        SpanningTree(
            gpu_of[root],
            count,
            tuple(
                Hop(
                    gpu_of[start],
                    gpu_of[end],
                    tuple(Way(_passed(vertices, names), some) for vertices, some in ways),
                )
                for start, end, ways in hops
            ),
        )
        for root, count, hops in packed
    )


def _passed(vertices: Sequence[int], names: Sequence[str]) -> tuple[str, ...]:
    """Return the names of the vertices between both ends; both sides of a network port have one name, given once.

    A walk that comes back to a vertex goes on from there: without the detour, links have no more to carry.
    """
    path: list[int] = []
    for vertex in vertices:
        if vertex in path:
            del path[path.index(vertex) :]
        path.append(vertex)
    return tuple([name for name, _ in groupby(names[vertex] for vertex in path[1:-1])])
