"""Pack rings through chosen terminals into the links of a network: as many as possible of one rate, or those of the
best rate.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from topoplace import _checks, _core
from topoplace.kernels.arguments import node_limit, seconds, vertices

MAX_TERMINALS = 64
MAX_LEVEL = 15
_MAX_CAPACITY = 1 << 40
_MAX_RINGS = 1 << 10


class Route(NamedTuple):
    """The path of a ring from one terminal to the next."""

    start: int
    end: int
    level: int
    """Level, 0..15; the nearest connections have the lowest."""
    uses: Sequence[tuple[int, int]]
    """(link, thousandths of a ring's rate that the route uses of the link, at least 1000), in order."""
    relay: int = -1
    """A third terminal that the route passes and that must also be chosen; -1 for none."""


class RingNetwork(_core.RingNetwork):
    """Links of one direction with capacities, and the routes over them between terminals; immutable."""

    num_terminals: int

    def __init__(
        self,
        num_terminals: int,
        capacities: Iterable[int],
        routes: Iterable[Route],
        cuts: Iterable[tuple[Iterable[int], Sequence[int]]] = (),
    ) -> None:
        """Build the network; ValueError names an argument that is out of range.

        Args:
            capacities: The capacity of each link, integers in 0..2**40.
            routes: Routes between terminals; of several for a pair, the first one whose relay is chosen counts.
            cuts: (terminals, links) such that every route from one of these terminals to any other uses one of the
                links; they only make searches faster.
        """
        self.num_terminals = _checks.integer(
            num_terminals, "num_terminals", ValueError, low=0, high=MAX_TERMINALS
        )
        rows = [(route.start, route.end, route.relay, route.level, list(route.uses)) for route in routes]
        near = [(sum(1 << terminal for terminal in set(cut)), list(links)) for cut, links in cuts]
        limits = [
            _checks.integer(value, f"capacities[{i}]", ValueError, low=0, high=_MAX_CAPACITY)
            for i, value in enumerate(capacities)
        ]
        super().__init__(self.num_terminals, limits, rows, near)


Rings = list[tuple[list[int], int]]
"""(terminals in the order of the ring, number of such rings)."""


class RingPacking(NamedTuple):
    """The result of `pack_rings`."""

    rings: Rings
    num_rings: int
    """Number of rings, copies included."""
    bound: int
    """Upper bound on the number of rings."""
    optimal: bool
    """True if proven: `num_rings` equals `bound`."""
    complete: bool
    """False if a limit ended the search early."""
    nodes: int
    """Number of beginnings of rings that were tried."""


class Channels(NamedTuple):
    """The result of `best_channels`."""

    rings: Rings
    num_rings: int
    """Number of rings, copies included; 0 if not even the slowest one fits."""
    rate: int
    """Rate of each ring."""
    level: int
    """The highest level of routes that the rings may use."""
    complete: bool
    """False if a limit ended a search early."""
    nodes: int


class ChannelRules(_core.ChannelRules):
    """The rules by which `best_channels` looks for rings, prepared once for many calls."""

    def __init__(
        self,
        rates: Iterable[int],
        *,
        max_channels: int = 16,
        slowest: float = 0.49,
        split_rate: int = 1 << 60,
        whole_rate: int = 0,
        whole_count: int = 0,
        equal_level: int = MAX_LEVEL + 1,
        group_level: int = -1,
        max_nodes: int = 1 << 14,
    ) -> None:
        """Store the rules; ValueError names an argument that is out of range.

        Args:
            rates: The rates that a ring may have, descending.
            slowest: Slower rates are tried as long as they are more than this share of the best one so far.
            split_rate: Rings of at least this rate are doubled in number at half the rate, unless there are more than
                `whole_count` of them at less than `whole_rate`.
            equal_level: Rings that use routes of this level or above must all be equal.
            group_level: If routes up to this level divide the terminals into exactly two groups of several, there are
                at least two rings. A terminal joins the group of the last earlier terminal from which it has such a
                route.
            max_nodes: Limit on the nodes of each search for rings of one rate.
        """
        super().__init__(
            [
                _checks.integer(rate, f"rates[{i}]", ValueError, low=1, high=_MAX_CAPACITY)
                for i, rate in enumerate(rates)
            ],
            _checks.integer(max_channels, "max_channels", ValueError, low=1, high=_MAX_RINGS),
            round(1000 * _checks.real(slowest, "slowest", ValueError, high=1.0)),
            _checks.integer(split_rate, "split_rate", ValueError, low=1, high=1 << 60),
            _checks.integer(whole_rate, "whole_rate", ValueError, low=0, high=_MAX_CAPACITY),
            _checks.integer(whole_count, "whole_count", ValueError, low=0, high=_MAX_RINGS),
            _checks.integer(equal_level, "equal_level", ValueError, low=0, high=MAX_LEVEL + 1),
            _checks.integer(group_level, "group_level", ValueError, low=-1, high=MAX_LEVEL),
            node_limit(max_nodes) or 1,
        )


def pack_rings(
    network: RingNetwork,
    chosen: Iterable[int],
    *,
    rate: int,
    level: int = MAX_LEVEL,
    max_rings: int = 16,
    equal: bool = False,
    timeout: float | None = None,
    max_nodes: int | None = None,
) -> RingPacking:
    """Return the largest number of rings of one rate through all `chosen` terminals that fit the links together.

    Without a limit, the search ends with a proof, which takes long for many terminals. At `timeout` seconds or after
    `max_nodes` steps, the best packing so far is returned with a valid `bound`.

    Args:
        level: Routes above this level are not used.
        equal: True if all rings must be equal.

    Raises:
        ValueError: An argument is invalid.
    """
    found = _core.pack_rings(
        network,
        vertices(chosen, "chosen", network.num_terminals),
        _checks.integer(rate, "rate", ValueError, low=1, high=_MAX_CAPACITY),
        _checks.integer(level, "level", ValueError, low=0, high=MAX_LEVEL),
        _checks.integer(max_rings, "max_rings", ValueError, low=1, high=_MAX_RINGS),
        equal,
        seconds(timeout),
        node_limit(max_nodes),
    )
    return RingPacking(*found)


def best_channels(network: RingNetwork, chosen: Iterable[int], rules: ChannelRules) -> Channels:
    """Return the rings of the rate and level that carry the most together, by the search that `rules` define.

    The search goes from the fastest rate down, and for each rate from the nearest level up to the first with a result.

    Raises:
        ValueError: An argument is invalid.
    """
    members = vertices(chosen, "chosen", network.num_terminals)
    return Channels(*_core.best_channels(network, members, rules))


def channel_rate(network: RingNetwork, chosen: Sequence[int], rules: ChannelRules) -> int:
    """Return the total rate of `best_channels`; for speed, only C++ checks the arguments."""
    return _core.channel_rate(network, chosen, rules)


def verify_rings(
    network: RingNetwork,
    chosen: Iterable[int],
    rings: Rings,
    *,
    rate: int,
    level: int = MAX_LEVEL,
    max_rings: int = 16,
    equal: bool = False,
) -> bool:
    """Return True if `rings` visit all `chosen` terminals over routes up to `level`, and fit the links together.

    The check uses only the definition. It does not check that no more rings fit.
    """
    members = vertices(chosen, "chosen", network.num_terminals)
    return _core.verify_rings(network, members, rate, level, max_rings, equal, rings) is None
