"""Readers of topology files of NCCL and RCCL.

To change:

- The file: `system_xml.py`; PCI devices in it: `pci_tree.py`; NVLink, xGMI, C2C: `nccl_links.py`; the graph in a log:
  `system_graph.py`.
"""
