"""topoplace inside Slurm: topoplace decides which GPUs jobs get, and Slurm gives them exactly these.

To change:

- Its texts of nodes and switches: `texts/`; of waiting and running jobs: `snapshot/`; that nodes get a part of a job
  each: `own_nodes.py`. The placer: `placer/`; the command: `command.py`.
- What jobs may ask for, and limits on it: `request.py`; what Slurm's hook passes on: `files/job_submit.lua`.
- Where each task of a job is, noted and read again: `task_places.py`, `running_job.py`.
- `gres.conf`, and requests for exact devices: `gres.py`; without a placer: `fallback.py`; names of shipped files:
  `shipped.py`.
"""
