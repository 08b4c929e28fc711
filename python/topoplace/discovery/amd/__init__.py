"""Readers of the output of AMD's tools, and of the driver's directory tree.

To change:

- Tables: `smi_tables.py`; their statements on pairs of GPUs: `smi_links.py`; models, weights, bandwidths: `models.py`.
"""
