"""What is connected to what: immutable, with no job and no state in it. `Topology` is in `topology.py`."""
