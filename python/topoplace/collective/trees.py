"""The schedule of trees that reaches `optimal_bandwidth`: what is sent from which GPU to which, and over what."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from fractions import Fraction

from topoplace import _checks, kernels
from topoplace.collective.bandwidth import DEFAULT_RATES, Relay
from topoplace.collective.machine_graph import UNITS_PER_GB
from topoplace.collective.prepared import Prepared, one_machine, prepared
from topoplace.collective.rates import Rates
from topoplace.topology.topology import Topology


@dataclass(frozen=True, slots=True)
class Way:
    """What some trees of a hop pass."""

    through: tuple[str, ...]
    """In order, such as "switch 9" or "gpu 3"; () for a direct link. Numbers are those of `MachineGraph.vertices`."""
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
    """How many there are, each of the rate `TreePlan.gb_per_s_of_tree`."""
    hops: tuple[Hop, ...]
    """Each begins at the root, or where an earlier one ended."""

    @property
    def depth(self) -> int:
        """Return the most hops from the root to a GPU."""
        depth = {self.root: 0}
        for hop in self.hops:
            depth[hop.end] = depth[hop.start] + 1
        return max(depth.values())


@dataclass(frozen=True, slots=True)
class TreePlan:
    """Trees over which an all-gather reaches its optimum."""

    trees: tuple[SpanningTree, ...]
    trees_per_gpu: int
    """The number of trees with a GPU as the root, and of the equal parts into which it divides its data."""
    gb_per_s_of_tree: Fraction
    assumed: bool
    """True if the topology does not tell its host, which is then assumed."""

    @property
    def gb_per_s(self) -> Fraction:
        """Return the `optimal_bandwidth`: the data of all GPUs divided by the time that the trees take."""
        return sum((tree.trees for tree in self.trees), 0) * self.gb_per_s_of_tree


def trees(
    topology: Topology,
    gpus: Collection[int],
    *,
    relay: Relay = "chosen",
    rates: Rates | str = DEFAULT_RATES,
) -> TreePlan:
    """Return trees that carry the `optimal_bandwidth` of an all-gather together; arguments and errors are the same.

    A reduce-scatter goes the other way along them, and an all-reduce is both, one after the other. There are no trees
    if the GPUs are not connected.
    """
    relay_others = _checks.one_of(relay, "relay", ("chosen", "all"), ValueError) == "all"
    local, chosen = one_machine(topology, gpus)
    machine = prepared(local, rates)
    found = kernels.pack_trees(machine.terminals, chosen, relay_others=relay_others)
    names = dict(zip(chosen, (int(gpu) for gpu in gpus), strict=True))
    packed = tuple(_spanning_tree(machine, names, tree) for tree in found.trees)
    return TreePlan(packed, found.per_root, found.rate / UNITS_PER_GB, machine.graph.assumed)


def _spanning_tree(machine: Prepared, names: dict[int, int], tree: kernels.PackedTree) -> SpanningTree:
    root, count, hops = tree
    return SpanningTree(
        names[root],
        count,
        tuple(
            Hop(
                names[start],
                names[end],
                tuple(Way(_passed(machine, vertices[1:-1]), some) for vertices, some in ways),
            )
            for start, end, ways in hops
        ),
    )


def _passed(machine: Prepared, vertices: list[int]) -> tuple[str, ...]:
    return tuple([f"{machine.graph.vertices[vertex].value} {vertex}" for vertex in vertices])
