"""The commands of the lab, a module each, like those of `topoplace.cli.commands`, and their common parts.

To change:

- Simulations: `study.py`, several side by side `comparing.py`; of jobs that wait now: `live_cluster.py`.
- Sweeps: `sweeping.py`, `sweep_plan.py`, `sweep_cells.py`.
- Files of jobs: `job_files.py`; recorded traffic: `recording.py`; example files: `example_files.py`.
"""
