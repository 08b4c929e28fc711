"""A cluster as it is now, from what its scheduler prints, and when its waiting jobs can start.

`read` returns the cluster with its running jobs, and the jobs that wait; `when` says when one of these starts, after
which jobs, or why never, and what would help most; `start_times` says it of all, without what would help.

To change:

- What a snapshot contains: `records.py`; which texts there are: `reading.py`.
- Slurm: its jobs as `scontrol` prints them, in text or JSON: `slurm_jobs.py`; its nodes' partitions and features, and
  which of them a job may use: `slurm_nodes.py`; both joined: `slurm.py`.
- Kubernetes: `kubernetes.py`; which pods are one job, also of Kueue and Volcano: `pod_groups.py`.
- The nodes of a text on the topology that the caller gives: `idle_cluster.py`.
- That nodes of Slurm get a part of a job each: `own_nodes.py`; when a job starts: `start_times.py`; a log beside
  another scheduler: `log_only.py`.
"""

from __future__ import annotations

from topoplace.snapshot.reading import read
from topoplace.snapshot.records import RunningJob, Snapshot, WaitingJob
from topoplace.snapshot.start_times import StartTime, start_times, when

__all__ = ["RunningJob", "Snapshot", "StartTime", "WaitingJob", "read", "start_times", "when"]
