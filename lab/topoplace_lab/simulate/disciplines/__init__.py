"""Queue disciplines of the simulator: which job is next, which may overtake, and the GPU quotas of groups.

To change:

- Options, and which jobs start: `discipline.py`; by the policies' own rules `live_queue.py`;
  expected start times: `engine/reservations.py`.
- Jobs that wait for few machines: `patience.py`.
- Fair order and quotas of groups: `group_shares.py`.
"""
