"""Slurm's commands and what they print: jobs, nodes, reservations, devices; text in, records out.

To change:

- Safe separators: `records.py`; how commands run: `commands.py`.
"""
