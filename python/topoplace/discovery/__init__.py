"""Readers of tool output and configuration: from text to a Topology, without touching processes or networks.

One module per format, each with `recognised` and `parse`; `read` chooses the format by content, and opens the file if
it gets a path. Only `live` queries the machine it runs on.
"""

from __future__ import annotations

from topoplace.discovery.registry import FORMATS, Format, busy_gpus, format_of, read

__all__ = ["FORMATS", "Format", "busy_gpus", "format_of", "read"]
