"""Readers of machines in formats of published research code."""

from __future__ import annotations

from typing import Final

from topoplace.discovery import Format

FORMATS: Final = (
    Format("machines of SC'17", "topoplace_lab.research.hiest"),
    Format("nodes of a trace", "topoplace_lab.research.trace_nodes", rank=2),
)
