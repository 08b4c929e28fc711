"""topoplace inside Slurm: it decides which GPUs jobs get, and Slurm gives them exactly these.

To change:

- What jobs may ask for, and limits on it: `request.py`; what Slurm's hook passes on: `files/job_submit.lua`.
- Where each task of a job is, noted and read again: `task_places.py`, `running_job.py`.
- `gres.conf`, and requests for exact devices: `gres.py`; without a placer: `fallback.py`; names of shipped files:
  `shipped.py`.
"""
