"""How a placed job starts: where each rank is, the environment of its processes, and the files of a launcher."""

from __future__ import annotations
