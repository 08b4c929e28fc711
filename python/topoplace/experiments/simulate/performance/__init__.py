"""Models of a job's run time: the effects of its GPUs' links, of other jobs on its machines, and of the network.

To change:

- Run times, and how jobs slow each other down: by default `step_time.py`; others `models.py`; remote GPUs:
  `remote_copies.py`; containers and virtual machines: `environments.py`; models of others: `given_models.py`.
- What models around another model share: `around.py`; amounts of data: `transfers.py`; what a model sees of a job:
  `experiments/simulate/workloads/submitted_job.py`.
"""
