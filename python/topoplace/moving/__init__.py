"""Which running jobs to move or to pre-empt so that others fit: `make_room` for a job, `defragment` for later ones."""

from __future__ import annotations

from topoplace.moving.defragmentation import Defragmentation, defragment
from topoplace.moving.making_room import MakingRoom
from topoplace.moving.move_costs import MoveCosts
from topoplace.moving.rearrangement import Rearrangement
from topoplace.moving.room import make_room

__all__ = ["Defragmentation", "MakingRoom", "MoveCosts", "Rearrangement", "defragment", "make_room"]
