"""Graphs of connected devices: immutable, without jobs or state. `Topology` is in `topology.py`.

To change:

- What a topology answers: `topology.py`; how machines become a cluster: `assemble.py`; how one is stored: `tiling.py`.
- The link of a pair of GPUs: `machine_links.py`, and in a cluster `cluster_links.py`.
- Speeds of links and PCIe paths: `links/link_kinds.py`; other speeds for a topology: `speed_overrides.py`;
  other links of some GPUs: `changed_links.py`; speeds between GPUs of two machines: `level_ports.py`.
- The best path through switches and sockets: `routing.py`; levels of a network: `fabric.py`.
- GPUs, network adapters, other components: `devices.py`; which adapters are nearest: `nearest_adapters.py`; GPU
  numbers: `device_numbers.py`; makers: `makers.py`; how fast models compute: `accelerators.py`.
- What `show --since` counts and `check` as suspicious: `compare.py`; checks of lists of links: `validate.py`.
"""
