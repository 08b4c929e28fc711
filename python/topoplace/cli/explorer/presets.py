"""GPUs in use on a machine that the page shows first; on an idle one, most policies choose the same."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from typing import Final

from topoplace.cli.explorer.copies import ranges
from topoplace.cli.explorer.subject import FieldError
from topoplace.topology.topology import Topology

_LEFT: Final = 6
"""Least number of GPUs that stay free where a machine opens, so that the page's first job, of 4 tasks, has a choice."""
_SEED: Final = 10
"""Seed of random numbers with which policies choose differently on machines whose links differ."""
_OPENING: Final = "some in use, scattered"
_HALF: Final = "half in use, scattered"
_SOCKETS: Final = "one GPU of each socket in use"
_DRAINED: Final = "one machine drained, half in use"

Fields = dict[str, str]
"""The texts of "busy" and "unhealthy"."""


def offered(topology: Topology) -> list[str]:
    """Return the names of the presets that differ on a topology."""
    has_sockets = any(gpu.socket for template in topology.templates for gpu in template.gpus)
    fits = {
        _OPENING: _opening(topology) != _half_of(topology),
        _SOCKETS: has_sockets,
        _DRAINED: topology.num_machines > 1,
    }
    return [name for name in PRESETS if fits.get(name, True)]


def fields(topology: Topology, name: str) -> Fields:
    """Return the texts of the page's fields for a preset; FieldError for an unknown name."""
    if name not in PRESETS:
        raise FieldError("preset", f"{name[:60]!r} is not one of {', '.join(PRESETS)}")
    busy, unhealthy = PRESETS[name](topology)
    return {"busy": ranges(busy), "unhealthy": ranges(unhealthy)}


def _opening(topology: Topology) -> tuple[list[int], list[int]]:
    return _drawn(range(topology.num_gpus), _LEFT), []


def _half_of(topology: Topology) -> tuple[list[int], list[int]]:
    return _drawn(range(topology.num_gpus)), []


def _drawn(gpus: range, left: int = 0) -> list[int]:
    """Return half of the GPUs, always the same; fewer if at least `left` are to stay free."""
    count = max(0, min(len(gpus) // 2, len(gpus) - left))
    return sorted(random.Random(_SEED).sample(gpus, count))


def _first_of_sockets(topology: Topology) -> list[int]:
    firsts: dict[tuple[str | None, int | None], int] = {}
    for gpu in topology.gpus:
        firsts.setdefault((gpu.machine, gpu.socket), gpu.index)
    return sorted(firsts.values())


def _drained(topology: Topology) -> tuple[list[int], list[int]]:
    first = next(iter(topology.gpus_of.values()))
    return _drawn(range(first[-1] + 1, topology.num_gpus)), list(first)


PRESETS: Final[Mapping[str, Callable[[Topology], tuple[list[int], list[int]]]]] = {
    "idle": lambda _: ([], []),
    _OPENING: _opening,
    _HALF: _half_of,
    _SOCKETS: lambda topology: (_first_of_sockets(topology), []),
    _DRAINED: _drained,
}
"""The GPUs in use and those out of service, by the name of the preset."""
