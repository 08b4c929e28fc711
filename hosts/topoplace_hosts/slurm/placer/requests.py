"""The requests of waiting jobs, each parsed once."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from topoplace_hosts.request_fields import RequestError
from topoplace_hosts.slurm import request
from topoplace_hosts.slurm.client import jobs
from topoplace_hosts.slurm.client.commands import SlurmCommands
from topoplace_hosts.slurm.client.jobs import SlurmJob
from topoplace_hosts.slurm.request import SlurmRequest


class SlurmRequests:
    """The requests of waiting jobs by job id: a `SlurmRequest`, or the error that says what is wrong."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[tuple[str, int], SlurmRequest | RequestError]] = {}

    def read(self, commands: SlurmCommands, waiting: Sequence[SlurmJob]) -> None:
        """Read the requests of jobs that are new or have changed their request."""
        new = [job for job in waiting if self._known.get(job.job_id, (None,))[0] != _asked(job)]
        comments = jobs.comments(commands, [job.job_id for job in new if request.has_json(job.mark)])
        for job in new:
            if job.job_id in comments or not request.has_json(job.mark):
                self._known[job.job_id] = _asked(job), _parsed(job, comments.get(job.job_id, ""))

    def forget_all_but(self, job_ids: Collection[str]) -> None:
        """Forget the jobs that are not in `job_ids`."""
        for job_id in self._known.keys() - job_ids:
            del self._known[job_id]

    def get(self, job_id: str) -> SlurmRequest | RequestError | None:
        """Return the request of a job; None if it is not known yet."""
        return self._known.get(job_id, (None, None))[1]


def _asked(job: SlurmJob) -> tuple[str, int]:
    """Return what shows that a job asks for something else: Slurm's hook, and an operator, may change it."""
    return job.mark, job.segment


def _parsed(job: SlurmJob, comment: str) -> SlurmRequest | RequestError:
    try:
        return request.parsed(job.mark, comment, job.num_nodes, job.segment)
    except RequestError as error:
        return error.with_traceback(None)
