"""The state of a cluster: the GPUs, CPUs, memory and drives that each job holds.

To change:

- Allocation, draining, holding, rollback: `cluster.py`, `cpp/src/cluster/cluster_state.cpp`.
- CPUs and memory of machines and of each process: `hosts.py`, `cpp/src/cluster/host_state.cpp`.
- Data on running jobs, and their classes for interference: `job_data.py`.
- Idle machines that are held for failures: `spares.py`.
- Machines that are added or removed: `new_topology.py`.
- Snapshots: `snapshots.py` (topology, jobs), `hosts.py`, `cpp/src/cluster/cluster_snapshot.cpp` (GPUs).
"""
