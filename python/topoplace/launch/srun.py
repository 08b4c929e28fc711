"""Start a placed job with Slurm's srun: each rank on its task's machine, a node of Slurm."""

from __future__ import annotations

from topoplace.binding import Launch
from topoplace.launch.ranks import Ranks, rank_script


def srun(ranks: Ranks, program: str) -> Launch:
    """Return a host file with a line for each rank, which srun's arbitrary distribution takes line by line.

    Run the command inside a job that has all GPUs of the placement; a rank selects its GPU by number.
    """
    script = rank_script("SLURM_PROCID", ranks.environments, ranks.cpus, "srun")
    options = f"--ntasks={len(ranks.bindings)} --gpu-bind=none{' --cpu-bind=none' if any(ranks.cpus) else ''}"
    if ranks.is_unnamed:
        return Launch({"rank.sh": script}, f"srun --nodes=1 {options} sh rank.sh {program}")
    files = {"hosts.txt": "".join(f"{host}\n" for host in ranks.hosts), "rank.sh": script}
    where = "SLURM_HOSTFILE=hosts.txt srun --distribution=arbitrary"
    return Launch(files, f"{where} {options} sh rank.sh {program}")
