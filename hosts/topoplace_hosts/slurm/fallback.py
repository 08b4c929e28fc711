"""Give waiting jobs back to Slurm when no placer is alive; a timer runs this, so that no job waits for ever."""

from __future__ import annotations

from pathlib import Path

from topoplace_hosts.log import Log
from topoplace_hosts.request_fields import RequestError
from topoplace_hosts.slurm import gres
from topoplace_hosts.slurm.client import jobs
from topoplace_hosts.slurm.client.commands import SlurmCommands
from topoplace_hosts.slurm.client.jobs import SlurmJob
from topoplace_hosts.slurm.placer import orders
from topoplace_hosts.slurm.request import parsed


def release_waiting(
    commands: SlurmCommands, alive: Path, *, patience_s: float, now: float, write_log: Log
) -> int:
    """Let Slurm choose for the jobs that have waited for topoplace longer than `patience_s`; return their number.

    Nothing is done while a placer is alive: `alive` is the file that a placer touches at least every `patience_s`
    seconds. Jobs that already have their orders are released with them.
    """
    last = alive.stat().st_mtime if alive.exists() else 0.0
    if 0 <= now - last <= patience_s:  # a touch in the future was before the clock was set back
        return 0
    waiting = [job for job in jobs.listed(commands) if job.waits_for_us and now - job.submitted > patience_s]
    ready = _with_requests(commands, waiting)
    commands.change([orders.release(job.job_id) for job in ready])
    for job in ready:
        reason = f"no placer for {now - last:.0f} s"
        write_log("given_back", job=job.job_id, user=job.user, kind="no placer", reason=reason)
    return len(ready)


def _with_requests(commands: SlurmCommands, waiting: list[SlurmJob]) -> list[SlurmJob]:
    """Return those of the jobs that ask for GPUs, after those that do not were made to.

    A placer that died between two lines of an order leaves a job without any request.
    """
    lacking = {job.job_id: job for job in waiting if not _asks(job)}
    if lacking:
        commands.change(
            [line for job in lacking.values() for line in orders.anywhere(job.job_id, _gpus(job))]
        )
        lacking = {
            job.job_id: job for job in jobs.listed(commands) if job.job_id in lacking and not _asks(job)
        }
    return [job for job in waiting if job.job_id not in lacking]


def _asks(job: SlurmJob) -> bool:
    return job.devices is not None or gres.count_in(job.tres) is not None


def _gpus(job: SlurmJob) -> int:
    """Return the GPUs of each node that Slurm's hook has noted."""
    try:
        return parsed(job.mark, "", job.num_nodes).gpus
    except RequestError:
        return 1
