"""Weights from which the distance of two GPUs is computed, as in SC'17, and presets of such weights."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from topoplace import _checks
from topoplace.errors import TopologyError
from topoplace.topology.links.link_kinds import PATH_KINDS, Link, LinkKind


@dataclass(frozen=True, slots=True)
class DistanceWeights:
    """The weights that define the distance between two GPUs; larger means farther apart.

    Inside a machine the distance is the weight of the pair's link: `direct` (NVLink, NVSwitch, C2C, xGMI, ICI,
    unknown), `pcie`, `pcie_bridges`, `host`, `host_bridges` or `system`. Between machines it is the sum over all
    network levels up to the first that the two machines share. A level's weight is that of its name in `levels`, or
    `network`. Machines that share no level have the sum over all levels plus `network`. GPUs that meet at an NVSwitch
    level have only its weight: that in `levels`, or `direct`.

    The defaults are those of SC'17 (Amaral et al.) and its published code: 1 inside a socket, 20 across the sockets of
    a machine. SC'17 gives no number for the network; 400 continues the same ratio.

    Raises:
        TopologyError: A weight is negative or not finite.
    """

    direct: float = 1.0
    pcie: float = 1.0
    host: float = 1.0
    system: float = 20.0
    network: float = 400.0
    levels: Mapping[str, float] = field(default_factory=dict[str, float])
    pcie_bridges: float | None = None
    """Weight of PCIE_BRIDGES; None means that of `pcie`."""
    host_bridges: float | None = None
    """Weight of HOST_BRIDGES; None means that of `host`."""

    def __post_init__(self) -> None:
        for key in (*_ALWAYS, *_OPTIONAL):
            weight = getattr(self, key)
            if weight is not None or key in _ALWAYS:
                object.__setattr__(self, key, _checks.real(weight, f"distances.{key}", TopologyError))
        _checks.instance(self.levels, Mapping, "distances.levels", TopologyError)
        checked = {
            _checks.text(name, "a level of distances", TopologyError): _checks.real(
                weight, f"distances.levels[{name!r}]", TopologyError
            )
            for name, weight in self.levels.items()
        }
        object.__setattr__(self, "levels", MappingProxyType(checked))

    def __hash__(self) -> int:
        return hash(tuple(getattr(self, key) for key in (*_ALWAYS, *_OPTIONAL)))

    def __reduce__(self) -> tuple[type[DistanceWeights], tuple[object, ...]]:
        plain, optional = ([getattr(self, key) for key in keys] for keys in (_ALWAYS, _OPTIONAL))
        return type(self), (*plain, dict(self.levels), *optional)

    def of(self, link: Link) -> float:
        """Return the distance between the two ends of `link`: its weight, 0 for SELF, infinity if there is no path."""
        kind = link.kind
        if kind is LinkKind.SELF:
            return 0.0
        if kind is LinkKind.NONE:
            return math.inf
        if kind is LinkKind.PCIE_BRIDGES:
            return self.pcie if self.pcie_bridges is None else self.pcie_bridges
        if kind is LinkKind.HOST_BRIDGES:
            return self.host if self.host_bridges is None else self.host_bridges
        if kind in (*PATH_KINDS, LinkKind.NETWORK):
            weight: float = getattr(self, kind.value)
            return weight
        return self.direct


_ALWAYS = ("direct", "pcie", "host", "system", "network")
_OPTIONAL = ("pcie_bridges", "host_bridges")

DISTANCES: Mapping[str, DistanceWeights] = MappingProxyType(
    {
        "sc17": DistanceWeights(),
        # One more for each class of nvidia-smi's matrix; across sockets and machines as in SC'17.
        "classes": DistanceWeights(pcie=2.0, pcie_bridges=3.0, host=4.0, host_bridges=5.0),
    }
)
"""Presets of distance weights by name: that of SC'17, and one in which PIX, PXB, PHB and NODE also differ."""
