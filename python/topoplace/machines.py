"""Built-in machines: their wiring as published, under names a user can type."""

from __future__ import annotations

import difflib
import functools
from collections.abc import Callable, Sequence
from types import MappingProxyType

from topoplace import _checks
from topoplace.errors import TopologyError
from topoplace.links import LinkKind, direct
from topoplace.topology import Topology

Pair = tuple[int, int, int]

# (u, v, lanes) of every NVLink pair; all other pairs go through the host at PCIe 3.0 x16 speed.
# DGX-1 with V100 (MAPA, fig. 1); with P100 the same pairs have one lane each.
_DGX1 = (
    *((0, 1, 1), (0, 2, 1), (0, 3, 2), (0, 4, 2), (1, 2, 2), (1, 3, 1), (1, 5, 2), (2, 3, 2)),
    *((2, 6, 1), (3, 7, 1), (4, 5, 1), (4, 6, 1), (4, 7, 2), (5, 6, 2), (5, 7, 1), (6, 7, 2)),
)
# MAPA, fig. 17: a 4 x 4 torus. The published code of the paper lacks the pair (0, 4), which such a torus has.
_TORUS2D = (
    *((0, 1, 2), (0, 3, 1), (0, 4, 1), (0, 12, 2), (1, 2, 2), (1, 5, 1), (1, 13, 1), (2, 3, 2)),
    *((2, 6, 1), (2, 14, 1), (3, 7, 1), (3, 15, 2), (4, 5, 2), (4, 7, 1), (4, 8, 1), (5, 6, 2)),
    *((5, 9, 1), (6, 7, 2), (6, 10, 1), (7, 11, 1), (8, 9, 2), (8, 11, 1), (8, 12, 1), (9, 10, 2)),
    *((9, 13, 1), (10, 11, 2), (10, 14, 1), (11, 15, 1), (12, 13, 2), (12, 15, 1), (13, 14, 2), (14, 15, 2)),
)
# MAPA, fig. 17: four cubes of four. (0, 11), (1, 5), (3, 8) and (9, 13) are double, as labelled; the paper's
# published code gives them the speed of one lane.
_CUBEMESH = (
    *((0, 1, 1), (0, 2, 1), (0, 3, 2), (0, 11, 2), (1, 2, 2), (1, 3, 1), (1, 5, 2), (2, 6, 1)),
    *((2, 9, 1), (3, 8, 2), (4, 5, 2), (4, 6, 1), (4, 7, 1), (4, 15, 2), (5, 6, 1), (5, 7, 1)),
    *((6, 7, 2), (6, 13, 1), (7, 12, 2), (8, 9, 1), (8, 10, 2), (8, 11, 1), (9, 10, 2), (9, 11, 1)),
    *((9, 13, 2), (10, 14, 1), (12, 13, 2), (12, 14, 1), (12, 15, 2), (13, 14, 1), (13, 15, 1), (14, 15, 2)),
)
_MINSKY = ((0, 1, 2), (2, 3, 2))
_SUMMIT = ((0, 1, 2), (0, 2, 2), (1, 2, 2), (3, 4, 2), (3, 5, 2), (4, 5, 2))


def _machine(name: str, model: str, kind: LinkKind, sockets: str, pairs: Sequence[Pair]) -> Topology:
    """One machine; `sockets` has a digit per GPU: its socket, or its PCIe root where only roots are known."""
    return Topology.from_links(
        len(sockets),
        [direct(u, v, kind, lanes) for u, v, lanes in pairs],
        name=name,
        model=model,
        memory_gb=16.0,
        sockets=[int(digit) for digit in sockets],
    )


_p100 = functools.partial(_machine, model="P100", kind=LinkKind.NVLINK1)
_v100 = functools.partial(_machine, model="V100", kind=LinkKind.NVLINK2)
_FOUR_ROOTS = "0000111122223333"

_CATALOGUE: MappingProxyType[str, Callable[[str], Topology]] = MappingProxyType(
    {
        "minsky": functools.partial(_p100, sockets="0011", pairs=_MINSKY),
        "summit": functools.partial(_v100, sockets="000111", pairs=_SUMMIT),
        "dgx1-p100": functools.partial(
            _p100, sockets="00001111", pairs=tuple((u, v, 1) for u, v, _ in _DGX1)
        ),
        "dgx1-v100": functools.partial(_v100, sockets="00001111", pairs=_DGX1),
        "torus2d-16": functools.partial(_v100, sockets=_FOUR_ROOTS, pairs=_TORUS2D),
        "cubemesh-16": functools.partial(_v100, sockets=_FOUR_ROOTS, pairs=_CUBEMESH),
    }
)


def names() -> tuple[str, ...]:
    """The names `get` takes."""
    return tuple(_CATALOGUE)


def get(name: str) -> Topology:
    """The machine called `name`; TopologyError with the closest names for any other."""
    return _built(_checks.text(name, "name", TopologyError))


@functools.cache
def _built(name: str) -> Topology:
    build = _CATALOGUE.get(name)
    if build is None:
        close = difflib.get_close_matches(name, _CATALOGUE, n=3, cutoff=0.4)
        hint = f"did you mean {' or '.join(close)}?" if close else f"known: {', '.join(_CATALOGUE)}"
        raise TopologyError(f"name = {_checks.shown(name)} is not a machine; {hint}")
    return build(name)
