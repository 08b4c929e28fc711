"""The library's own JSON, as `Topology.to_json` writes it."""

from __future__ import annotations

from topoplace.discovery.text import decode
from topoplace.topology.topology import Topology


def recognised(text: str) -> bool:
    """Whether `text` begins as a JSON object: what no other format knows is taken for ours, and refused as ours."""
    return text.lstrip().startswith("{")


def parse(data: str | bytes) -> Topology:
    """The topology that `data` describes; TopologyError names what is wrong with it."""
    return Topology.from_json(decode.decoded(data))
