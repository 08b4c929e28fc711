"""Models of a job's run time: the effects of its GPUs' links, of other jobs on its machines, and of the network.

To change:

- Run times, and how jobs slow each other down: `models.py`; remote GPUs: `remote_copies.py`; bandwidth of
  collectives: `collective_time.py`; containers and virtual machines: `environments.py`.
- What models around another model share: `around.py`; amounts of data: `transfers.py`; what a model sees of a job:
  `experiments/simulate/workloads/submitted_job.py`.
"""
