"""Graphs of connected devices: immutable, without jobs or state. `Topology` is in `topology.py`."""
