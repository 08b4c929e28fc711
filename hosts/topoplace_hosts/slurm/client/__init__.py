"""Call Slurm's commands and read what they print: jobs, nodes, reservations, devices.

To change:

- Safe separators: `records.py`; how commands run: `commands.py`.
"""
