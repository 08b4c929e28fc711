"""Give waiting jobs back to Slurm when no placer is alive; a timer runs this, so that nothing waits for ever."""

from __future__ import annotations

from pathlib import Path

from topoplace.integrations.slurm import gres
from topoplace.integrations.slurm.client import jobs
from topoplace.integrations.slurm.client.commands import SlurmCommands
from topoplace.integrations.slurm.client.jobs import SlurmJob
from topoplace.integrations.slurm.placer import orders
from topoplace.integrations.slurm.placer.log import Log
from topoplace.integrations.slurm.request import RequestError, parsed


def release_waiting(
    commands: SlurmCommands, alive: Path, *, patience_s: float, now: float, write_log: Log
) -> int:
    """Let Slurm choose for every job that waits for topoplace; return how many these are.

    Nothing is done while a placer is alive: `alive` is the file that it touches, at least every `patience_s` seconds.
    Jobs that were told where to start already are released there.
    """
    last = alive.stat().st_mtime if alive.exists() else 0.0
    if now - last <= patience_s:
        return 0
    waiting = [job for job in jobs.listed(commands) if job.waits_for_us and now - job.submitted > patience_s]
    changed = [job for job in waiting if job.devices is None and gres.count_in(job.tres) is None]
    commands.change([line for job in changed for line in orders.anywhere(job.job_id, _gpus(job))])
    refused = {job.job_id for job in changed} if changed else set[str]()
    if changed:
        listed = jobs.by_id(jobs.listed(commands))
        refused = {job_id for job_id in refused if job_id in listed and gres.count_in(listed[job_id].tres) is None}
    ready = [job for job in waiting if job.job_id not in refused]
    commands.change([orders.release(job.job_id) for job in ready])
    for job in ready:
        write_log("given_back", job=job.job_id, user=job.user, kind="no placer", reason=f"silent for {now - last:.0f} s")
    return len(ready)


def _gpus(job: SlurmJob) -> int:
    """Return the GPUs of each node that Slurm's hook has noted."""
    try:
        return parsed(job.mark, "", job.num_nodes).gpus
    except RequestError:
        return 1


