"""Readers of what machines say about themselves: text in, Topology out; no process, file or network is touched."""

from __future__ import annotations
