"""Claims of pods in the scheduler: which devices they get by its policy, and how that is written.

To change:

- A pod's node and devices: `placing.py`; what nodes offer: `offers.py`; the best of the sets that constraints allow:
  `alternatives.py`; events: `claim_intake.py`.
"""
