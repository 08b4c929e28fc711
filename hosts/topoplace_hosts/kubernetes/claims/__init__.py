"""Dynamic Resource Allocation: devices that drivers publish, claims of pods, and the choice of devices for claims.

To change:

- Devices of nodes: `pools.py`; which of them selectors accept, under limits: `selecting.py`; the process that
  evaluates: `evaluating.py`, as the scheduler sees it `evaluator.py`.
- Selectors: `expressions.py`, what they see `expression_device.py`, their functions `expression_functions.py`; which
  device is which GPU: `matching.py`; which device serves which request: `assignment.py`.
"""
