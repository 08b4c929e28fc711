"""The parts that all policies share: requests, admission, machine classes and queues, without any paper's rules.

To change:

- What every policy shares, and how a decision flows: `driver.py`; the protocol, and policies of one search:
  `policy.py`, on several machines `cluster_search.py`; policies of machines: `machine_policy.py`.
- The contents of a plan or explanation: `plan.py`; of a placement as JSON: `placement_json.py`; the walk along a queue:
  `queueing.py`.
- When waiting jobs start: `reservations.py`; when GPUs are busy: `busy_times.py`.
- Which GPUs may serve a job, why it is refused: `admission.py`; requirements that a policy does not honour:
  `requirements.py`.
- Whether two jobs are interchangeable: `request.py`; what is derived from a cluster: `machine_state.py`; sizes of
  caches: `memo.py`.
- Jobs that may use only some machines: `confined.py`.
- The work that `explain` may take: `effort.py`; MIG slices of a placement: `slices.py`.
"""
