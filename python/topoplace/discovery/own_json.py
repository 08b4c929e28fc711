"""Reader of the library's own JSON, as `Topology.to_json` writes it."""

from __future__ import annotations

import re

from topoplace.discovery.text import decode
from topoplace.topology.topology import Topology

_OWN = re.compile(r'"format"|"topoplace\.topology"|"(?:gpus|template_of)"\s*:')


def recognised(text: str) -> bool:
    """Return True if `text` begins as a JSON object and has the key `format` or the keys of a topology."""
    return text.lstrip().startswith("{") and _OWN.search(text) is not None


def parse(data: str | bytes) -> Topology:
    """Read the topology that `data` describes; TopologyError names the fault."""
    return Topology.from_json(decode.decoded(data))
