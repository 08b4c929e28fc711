"""Jobs on several machines: the GPUs that machines offer, the machines that share a job, and the GPU of each task.

To change:

- What machines offer: `offers.py`; which of them share a job: `splits.py`; levels, `max_machines`, `same_gpus`:
  `rules.py`; why a job waits: `machine_counts.py`.
- Groups of tasks: which machine gets which tasks, and why not, `division.py`; the levels as a tree, and which groups
  are in which domains, `packing.py`, `engine/level_chain.py`; the search: `cpp/src/decide/task_division.cpp`.
- Which task goes where: `assignments.py`; machine by machine: `task_orders.py`.
"""
