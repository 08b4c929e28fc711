"""The state of a cluster: the GPUs, CPUs, memory and drives that each job holds.

To change:

- Allocation, draining, holding, rollback: `cluster.py`, `cpp/src/cluster/cluster_state.cpp`.
- CPUs and memory of each process: `host_shares.py`; of machines: `hosts.py`, `cpp/src/cluster/host_state.cpp`.
- Data on running jobs: `job_notes.py`; job classes for interference: `job_kinds.py`.
- Machines that are added or removed: `new_topology.py`.
- Snapshots: `snapshots.py` (topology, jobs), `hosts.py`, `cpp/src/cluster/cluster_snapshot.cpp` (GPUs).
"""
