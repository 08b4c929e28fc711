"""Fragmentation of the free GPUs of a cluster over sockets, for metrics."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from topoplace.objectives.domains import fragmentation_from
from topoplace.topology.topology import Topology


class _Sockets(NamedTuple):
    """All GPUs, socket by socket."""

    gpus: NDArray[np.int64]
    starts: NDArray[np.int64]
    """Where each socket begins."""
    sizes: tuple[int, ...]


def fragmentation(topology: Topology, taken: Iterable[int]) -> float:
    """Return the fragmentation of the free GPUs over sockets (SC'17, eq. 5), 0..1; `taken` are the other GPUs."""
    sockets = topology.derived(_sockets)
    free = np.ones(topology.num_gpus, np.int64)
    free[list(taken)] = 0
    counts = np.add.reduceat(free[sockets.gpus], sockets.starts).tolist()
    return fragmentation_from(list(zip(counts, sockets.sizes, strict=True)))


def _sockets(topology: Topology) -> _Sockets:
    found: dict[tuple[str, int | None], list[int]] = {}
    for gpu in topology.gpus:
        found.setdefault((gpu.machine, gpu.socket), []).append(gpu.index)
    sizes = tuple(map(len, found.values()))
    starts = np.cumsum((0, *sizes[:-1]))
    return _Sockets(np.array([gpu for own in found.values() for gpu in own], np.int64), starts, sizes)
