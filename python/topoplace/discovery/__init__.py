"""Readers of what machines say about themselves: text in, Topology out; no process, file or network is touched.

One module per format, each with `recognised` and `parse`; `read` tells the format by the content. Only `live` asks the
machine that it runs on.
"""

from __future__ import annotations

from topoplace.discovery.registry import FORMATS, Format, format_of, read

__all__ = ["FORMATS", "Format", "format_of", "read"]
