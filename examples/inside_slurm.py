"""A real Slurm on this host, in which topoplace chooses the GPUs of three jobs; it needs Slurm's daemons."""

from __future__ import annotations

import time

from topoplace import Topology, machines, policies
from topoplace_hosts.journal import Journal
from topoplace_hosts.slurm.client.commands import SlurmCommands
from topoplace_hosts.slurm.placer import Placer
from topoplace_hosts.slurm.testing import SlurmCluster, missing_programs


def main() -> None:
    """Submit three jobs, decide, and print what Slurm gave them."""
    if lacking := missing_programs():
        print(f"this host has no {', '.join(lacking)}: nothing to show")
        return
    nodes = Topology.cluster(machines.get("dgx1-v100"), 2, names=["n0", "n1"])
    with SlurmCluster(nodes) as slurm, Journal(slurm.folder / "journal") as journal:
        jobs = [slurm.submit(f"--gres=gpu:{count}", script="sleep 1") for count in (2, 4, 8)]
        placer = Placer(nodes, policies.get("topo-aware"), journal, commands=SlurmCommands(slurm.environment))
        while slurm.run("squeue", "-h"):
            placer.cycle()
            time.sleep(0.1)
        for job in jobs:
            decided = next(entry for entry in journal.history(job))
            shown = slurm.run("scontrol", "-d", "show", "job", job)
            given = next(word for word in shown.split() if word.startswith("JOB_GRES="))
            print(
                f"job {job}: decided {[gpu for _, gpu in decided.gpus]} of {decided.gpus[0][0]}; Slurm: {given}"
            )


if __name__ == "__main__":
    main()
