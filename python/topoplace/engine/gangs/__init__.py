"""Jobs on several machines: what machines offer, which of them share a job, and which task goes where.

To change:

- What machines offer: `offers.py`; which of them share a job: `splits.py`; levels, `max_machines`, `same_gpus`:
  `rules.py`; why a job waits: `machine_counts.py`.
- Which task goes where: `assignments.py`; machine by machine: `blocks.py`, `inner_orders.py`.
"""
