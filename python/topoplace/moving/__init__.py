"""Moves of running jobs: so that others fit (`make_room`, `defragment`), and when they fail, stop or change.

To change:

- Arguments and results: `room.py`, `rearrangement.py`, `defragmentation.py` (a default that the command line shows,
  also in `cli/running_jobs.py`); a policy that moves jobs: `making_room.py`.
- New GPUs for tasks that lost theirs: `repairs.py`; the search: `repair_search.py`, `fewer_moves.py`,
  `deciding/divisions.py`; which GPUs there are, and which requirements are honoured: `repair_room.py`,
  `cpp/src/groups/repack.cpp`; what helps if they do not suffice: `broken_jobs.py`; plans: `reassignment.py`; the job
  before: `leaving.py`, `held_shares.py`.
- `place` for a job that ran before: `staying.py`; more or fewer tasks: `resizing.py`.
- Jobs that may leave, and the room they give: `movers.py`; missing room on each machine: `shortages.py`; costs:
  `move_costs.py`.
- Attempts to place the job and the moved ones: `attempts.py`; with a minimum bandwidth: `least_bandwidth.py`.
- The order of choices, and proofs: `exact_search.py`, `cheapest_levels.py`; on large clusters
  `many_machines.py`.
"""

from __future__ import annotations

from topoplace.moving.defragmentation import Defragmentation, defragment
from topoplace.moving.making_room import MakingRoom
from topoplace.moving.move_costs import MoveCosts
from topoplace.moving.rearrangement import Rearrangement
from topoplace.moving.reassignment import Moved, Reassignment
from topoplace.moving.repairs import RepairFront, repair
from topoplace.moving.resizing import resize
from topoplace.moving.room import make_room

__all__ = [
    "Defragmentation",
    "MakingRoom",
    "MoveCosts",
    "Moved",
    "Rearrangement",
    "Reassignment",
    "RepairFront",
    "defragment",
    "make_room",
    "repair",
    "resize",
]
