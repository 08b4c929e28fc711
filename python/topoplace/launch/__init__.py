"""How a placed job starts: the location of each rank, the environment of its processes, and the files of a launcher."""

from __future__ import annotations
