"""Decisions about jobs that share GPUs, by rules that look at all machines at once.

To change:

- What such policies have in common: `sharing_policy.py`; machines ranked for a job: `ranked_machines.py`;
  fragmentation of a cluster now: `fragments.py`.
- Free GPUs that typical jobs could not use (FGD): `expected_fragmentation.py`, `cpp/src/cluster/fragmentation.cpp`.
"""
