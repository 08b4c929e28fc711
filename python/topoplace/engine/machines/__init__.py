"""Machines that a policy cannot distinguish: classes of hardware, conditions, and the options of a job on them.

To change:

- Which machines share an answer, and what a rule says of a condition: `machine_conditions.py`,
  `cpp/src/cluster/machine_conditions.cpp`.
- The order of machines by their best option: `machine_options.py`, `cpp/src/cluster/machine_ranking.cpp`.
- Links among the free GPUs of machines: `free_links.py`; what interchangeable machines share: `machine_class.py`.
"""
