"""Reader of the library's own JSON, as `Topology.to_json` writes it."""

from __future__ import annotations

from topoplace.discovery.text import decode
from topoplace.topology.topology import Topology


def recognised(text: str) -> bool:
    """Return True if `text` begins as a JSON object; this format is tried last, and its parser refuses unknown JSON."""
    return text.lstrip().startswith("{")


def parse(data: str | bytes) -> Topology:
    """Read the topology that `data` describes; TopologyError names the fault."""
    return Topology.from_json(decode.decoded(data))
