"""Readers of the output of AMD's tools, and of the driver's directory tree.

To change:

- Tables: `smi_tables.py`; what they say of a pair of GPUs: `smi_links.py`; models, weights, bandwidths: `models.py`.
"""
