"""The rules of schedulers in use, to compare with: the machines that Kueue, Slurm, Volcano and Kubernetes take.

To change:

- What a job may ask of them, and how a machine's tasks get GPUs: `scheduler_policy.py`.
- The domains of all levels in numbers: `levels.py`.
- Kueue: `kueue.py`, `balanced.py`; Slurm: `slurm.py`; one pod after the other, Volcano and Kubernetes: `pods.py`.
"""
