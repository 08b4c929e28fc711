"""Readers of tool output and configuration: from text to a Topology, without touching processes or networks.

One module per format, each with `recognised` and `parse`; `read` chooses the format by content, and opens the file if
it gets a path. Only `live` queries the machine it runs on.

To change:

- A format: its module, and its line in `registry.py`; texts that no reader reads: `unread_tools.toml`.
- GPUs that a text shows in use: the format's `in_use`, and `in_use.py`.
- Encodings, size limits, XML, YAML, archives, lists of hosts: `text/`.
"""

from __future__ import annotations

from topoplace.discovery.registry import Format, busy_gpus, format_of, formats, read

__all__ = ["Format", "busy_gpus", "format_of", "formats", "read"]
