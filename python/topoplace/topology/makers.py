"""Who makes an accelerator: by its model, or where that is unknown, by its links."""

from __future__ import annotations

import enum
import re
from typing import TYPE_CHECKING, Final

from topoplace.topology.links.link import LinkKind

if TYPE_CHECKING:
    from topoplace.topology.topology import Topology


class Maker(enum.Enum):
    """A maker of accelerators; it decides how processes see devices, and which library joins these."""

    NVIDIA = "NVIDIA"
    AMD = "AMD"
    GOOGLE = "Google"


_OF_KIND: Final = {LinkKind.XGMI: Maker.AMD, LinkKind.XGMI_RELAYED: Maker.AMD, LinkKind.ICI: Maker.GOOGLE}
_OF_MODEL: Final = (
    (re.compile(r"(AMD|Instinct|Radeon|MI\s?\d)", re.IGNORECASE), Maker.AMD),
    (re.compile(r"(Google|TPU|v\d+[ep]\b)", re.IGNORECASE), Maker.GOOGLE),
)


def maker_of(topology: Topology, gpu: int) -> Maker:
    """Return the maker of a GPU: by its model, else by its links on its machine; NVIDIA where neither tells another."""
    if (model := topology.gpus[gpu].model) is not None:
        return next((maker for form, maker in _OF_MODEL if form.match(model)), Maker.NVIDIA)
    beside = topology.gpus_of[topology.gpus[gpu].machine]
    kinds = (topology.link(gpu, other).kind for other in beside if other != gpu)
    return next((_OF_KIND[kind] for kind in kinds if kind in _OF_KIND), Maker.NVIDIA)
