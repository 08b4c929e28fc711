"""The rules of schedulers in use, to compare with: which machines Kueue, Slurm, Volcano and Kubernetes would take.

To change:

- What a job may ask of them, and from the tasks of each machine to GPUs: `scheduler_policy.py`.
- The domains of all levels in numbers: `levels.py`.
- Kueue: `kueue.py`, `balanced.py`; Slurm: `slurm.py`; one pod after the other, Volcano and Kubernetes: `pods.py`.
"""
