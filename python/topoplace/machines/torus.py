"""Tori: grids of chips whose rows close to rings, as TPUs are wired."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence

import numpy as np

from topoplace import _checks
from topoplace.errors import TopologyError
from topoplace.topology.links.link import LinkKind
from topoplace.topology.topology import Topology

_MAX_CHIPS = 1 << 14


def torus(
    shape: Sequence[int],
    *,
    model: str = "TPU v4",
    gb_per_s: float = 50.0,
    memory_gb: float | None = 32.0,
    wrap: bool = True,
    host: Sequence[int] = (2, 2, 1),
    name: str | None = None,
) -> Topology:
    """Build a grid of chips in one, two or three dimensions, as TPUs are wired.

    Chips are numbered with the last dimension fastest.

    Args:
        shape: Chips along each dimension.
        gb_per_s: Bandwidth of one link in one direction; TPU v4 has 50 (Jouppi et al., ISCA'23).
        wrap: If True, each dimension of three or more chips closes to a ring.
        host: The number of chips of one machine along each dimension; 2 x 2 x 1 for TPU v4.

    Raises:
        TopologyError: Names a wrong argument.
    """
    sizes = _sizes(shape, "shape")
    count = math.prod(sizes)
    if not 1 <= len(sizes) <= 3 or count > _MAX_CHIPS:
        raise TopologyError(
            f"shape = {_checks.shown(sizes)}: must have 1 to 3 dimensions and at most {_MAX_CHIPS} chips"
        )
    block = (*_sizes(host, "host"), 1, 1)[: len(sizes)]
    _checks.flag(wrap, "wrap", TopologyError)
    number = np.arange(count).reshape(sizes)
    pairs: list[tuple[int, int]] = []
    for axis, size in enumerate(sizes):
        ring = np.moveaxis(number, axis, 0)
        pairs += zip(ring[:-1].ravel().tolist(), ring[1:].ravel().tolist(), strict=True)
        if wrap and size > 2:
            pairs += zip(ring[-1].ravel().tolist(), ring[0].ravel().tolist(), strict=True)
    hosts = np.zeros(sizes, int)
    for axis, (size, step) in enumerate(zip(sizes, block, strict=True)):
        along = np.arange(size) // step
        hosts = hosts * (int(along[-1]) + 1) + np.expand_dims(
            along, tuple(a for a in range(len(sizes)) if a != axis)
        )
    machine_of: list[int] = hosts.ravel().tolist()
    so_far: Counter[int] = Counter()
    local: list[int] = []
    for machine in machine_of:
        local.append(so_far[machine])
        so_far[machine] += 1
    return Topology.from_links(
        count,
        [(u, v, gb_per_s, LinkKind.ICI) for u, v in pairs],
        name=name or f"{model} torus {'x'.join(map(str, sizes))}",
        model=model,
        memory_gb=memory_gb,
        machines=[f"host{machine}" for machine in machine_of],
        names=[f"chip{i}" for i in local],
    )


def _sizes(value: object, what: str) -> list[int]:
    found = _checks.sequence(value, what, TopologyError)
    return [
        _checks.integer(size, f"{what}[{i}]", TopologyError, low=1, high=_MAX_CHIPS)
        for i, size in enumerate(found)
    ]
