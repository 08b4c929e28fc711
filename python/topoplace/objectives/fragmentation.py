"""Fragmentation of the GPUs that stay free: SC'17's eq. 5."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from topoplace.topology.topology import Topology


def fragmentation(gpus: Iterable[int], topology: Topology, free: Iterable[int]) -> float:
    """Return eq. 5 over the machines of `gpus`, for the `free` GPUs that remain without them."""
    taken = set(gpus)
    machines = {topology.gpus[gpu].machine for gpu in taken}
    left = set(free) - taken
    sockets: dict[tuple[str, int | None], list[bool]] = {}
    for machine in sorted(machines):
        for gpu in topology.gpus_of[machine]:
            sockets.setdefault((machine, topology.gpus[gpu].socket), []).append(gpu in left)
    return fragmentation_from([(sum(socket), len(socket)) for socket in sockets.values()])


def fragmentation_from(sockets: Sequence[tuple[int, int]]) -> float:
    """Return the mean share of free GPUs over sockets, each given as (free GPUs, GPUs).

    A socket without busy GPUs is not fragmented and counts as 0.
    """
    return sum(free / size for free, size in sockets if free != size) / len(sockets)
