"""Jobs: the graph of communicating tasks (`JobGraph`), and measured profiles that predict run times.

To change:

- A pattern: edges in `patterns.py`; its constructor and `PATTERNS` in `job_graph.py`.
- What a job may require: a field in `job_graph.py`, its check in `requirements.py`; whether jobs are interchangeable:
  `engine/request.py`; who may serve it: `engine/admission.py`; who refuses it: `engine/requirements.py`; its check
  and test cases: `testing/placements.py`, `testing/strategies.py`, `testing/default_cases.py`.
- Slowdowns of pairs of jobs: measured `performance_profile.py` (as text `profile_text.py`), predicted
  `interference_model.py`.
- A job's graph and collectives from NCCL's log: `nccl_log.py`.
- Kinds of collectives, and what each pair of tasks carries: `collectives.py`.
- How the jobs of several roles become one: `roles.py`.
- Ranks and groups of parallel training jobs: `parallel.py`; the bytes of each dimension and the operations of a
  step: `parallel_traffic.py`; published models: `models.py`.
"""
