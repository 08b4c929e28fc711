"""A toy Slurm cluster: real daemons on this host, with links to /dev/null as GPUs, for tests of integrations.

    with SlurmCluster(Topology.cluster(machines.get("dgx1-v100"), 4)) as slurm:
        slurm.submit("--gres=gpu:2", script="sleep 1")

It needs `slurmctld`, `slurmd` and the client commands, on Debian by
`apt-get install --no-install-recommends slurmctld slurmd slurm-client slurm-wlm-basic-plugins`.
"""

from __future__ import annotations

from topoplace_hosts.slurm.testing.cluster import SlurmCluster, missing_programs

__all__ = ["SlurmCluster", "missing_programs"]
