"""A cluster as it is now, from the output of its scheduler, and the start times of its waiting jobs.

`read` returns the cluster with its running jobs, and the waiting jobs. `when` returns when a waiting job starts, after
which jobs, or why never, and the moves that would help most. `start_times` returns the same for all waiting jobs,
without moves.

To change:

- Contents of a snapshot: `records.py`; the choice of a text's reader, which topoplace-hosts adds:
  `reading.py`.
- When a job starts: `start_times.py`; a log next to another scheduler: `log_only.py`.
"""

from __future__ import annotations

from topoplace.snapshot.reading import read
from topoplace.snapshot.records import RunningJob, Snapshot, WaitingJob
from topoplace.snapshot.start_times import StartTime, start_times, when

__all__ = ["RunningJob", "Snapshot", "StartTime", "WaitingJob", "read", "start_times", "when"]
