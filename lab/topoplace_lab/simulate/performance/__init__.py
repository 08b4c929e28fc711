"""Models of a job's run time: the effects of its GPUs' links, of other jobs on its machines, and of the network.

To change:

- Run times, and how jobs slow each other down: by default `step_time.py`; others `models.py`; remote GPUs:
  `remote_copies.py`; containers and virtual machines: `environments.py`; users' own models: `given_models.py`.
- The base of models that wrap another model: `around.py`; amounts of data: `transfers.py`; a job as models see it:
  `simulate/workloads/submitted_job.py`.
"""
