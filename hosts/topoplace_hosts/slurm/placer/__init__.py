"""The placer next to slurmctld: it reads Slurm's state, lets a policy decide, and gives Slurm its orders.

One cycle of `Placer` runs these parts in order:

    client.jobs, client.nodes   what Slurm says
    truth                       the devices that jobs hold, or on which they are ordered to start
    topoplace_hosts.journal     the cluster and the journal follow; differences are counted
    waiting                     the jobs that Slurm itself would start, and on which nodes
    deciding, fairness          whose turn it is, and who is given back to Slurm
    decision                    a policy decides; its answer as nodes and exact devices, or why Slurm cannot express it
    orders                      the orders for scontrol

To change:

- One cycle: `placer.py`; the service: `running.py`; times: `settings.py`; counts: `slurm/metrics.py`; requests, read
  once: `requests.py`.
"""

from __future__ import annotations

from topoplace_hosts.slurm.placer.placer import Placer
from topoplace_hosts.slurm.placer.settings import PlacerSettings

__all__ = ["Placer", "PlacerSettings"]
