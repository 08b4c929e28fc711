"""Adapters to schedulers, a package each. They translate and hold no placement logic: policies decide.

To change:

- What users may ask of a policy, in Slurm and Kubernetes: `request_fields.py`; the job made of it:
  `requested_job.py`.
- Metrics: what is counted `figures.py`, how it is shown `metrics.py`; fragmentation of free GPUs: `free_sockets.py`;
  logs: `log.py`.
- What the C interface asks of Python: `c_interface.py`.
"""
