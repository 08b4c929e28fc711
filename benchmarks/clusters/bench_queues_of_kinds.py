"""What an event costs while many jobs of few kinds wait: submissions and ends on a full cluster of 1,000 machines.

`python benchmarks/clusters/bench_queues_of_kinds.py` prints, per policy and length of the queue, the CPU time of a
submission, and of the end of a job after which another one starts.
"""

from __future__ import annotations

MACHINES = 1_000
KINDS = 20
LENGTHS = (100, 1_000, 10_000, 100_000)
EVENTS = 100
POLICIES = ("fcfs", "best-fit", "topo-aware", "topo-aware-p", "mapa-greedy")
