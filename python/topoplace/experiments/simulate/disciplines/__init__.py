"""Queue disciplines of the simulator: who is next, who may overtake, and how many GPUs a group may hold.

To change:

- Options: `discipline.py`; who starts: `discipline_queue.py`; who is expected when: `reservations.py`,
  `busy_times.py`.
- Jobs that wait for few machines: `patience.py`.
- Fair order and quotas of groups: `group_shares.py`.
"""
