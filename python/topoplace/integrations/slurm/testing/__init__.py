"""A toy Slurm cluster of the real daemons on this host, with GPUs that are links to /dev/null; for tests of embedders.

    with SlurmCluster(Topology.cluster(machines.get("dgx1-v100"), 4)) as slurm:
        slurm.submit("--gres=gpu:2", script="sleep 1")

It needs `slurmctld`, `slurmd` and the client commands, on Debian by
`apt-get install --no-install-recommends slurmctld slurmd slurm-client slurm-wlm-basic-plugins`.
"""

from __future__ import annotations

from topoplace.integrations.slurm.testing.cluster import SlurmCluster, missing_programs

__all__ = ["SlurmCluster", "missing_programs"]
