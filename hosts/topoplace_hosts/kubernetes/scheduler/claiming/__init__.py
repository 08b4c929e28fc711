"""Claims of pods in the scheduler: choose their devices by its policy, and write the result.

To change:

- A pod's node and devices: `placing.py`; what nodes offer: `offers.py`; the best of the sets that constraints allow:
  `alternatives.py`; events: `claim_intake.py`.
"""
