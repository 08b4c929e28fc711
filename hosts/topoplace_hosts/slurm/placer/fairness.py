"""The order in which waiting jobs are decided: users in turn, so that no user's jobs delay another's."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain, zip_longest

from topoplace_hosts.slurm.client.jobs import SlurmJob

_KEPT = 0.9
"""The share of a user's CPU time that still counts one cycle later."""


class Turns:
    """Users in turn: the one who has used the least CPU time for decisions comes first."""

    def __init__(self) -> None:
        self._used_s: dict[str, float] = {}
        self._last: dict[str, int] = {}

    def charge(self, job: SlurmJob, seconds: float) -> None:
        """Add the CPU seconds of a decision to the job's user, whose turn continues after this job."""
        self._used_s[job.user] = self._used_s.get(job.user, 0.0) + seconds
        self._last[job.user] = job.number

    def next_cycle(self) -> None:
        """Reduce what users have used."""
        kept = {user: used * _KEPT for user, used in self._used_s.items()}
        self._used_s = {user: used for user, used in kept.items() if used > 1e-6}

    def start_over(self) -> None:
        """Begin again with each user's oldest job."""
        self._last.clear()

    def order(self, jobs: Iterable[SlurmJob]) -> Iterator[SlurmJob]:
        """Yield one job of each user in turn; a user's jobs after the last decided one come first, oldest first."""
        by_user: dict[str, list[SlurmJob]] = {}
        for job in sorted(jobs, key=lambda job: job.number):
            by_user.setdefault(job.user, []).append(job)
        queues: list[list[SlurmJob]] = []
        for user in sorted(by_user, key=lambda user: self._used_s.get(user, 0.0)):
            own, last = by_user[user], self._last.get(user, -1)
            queues.append(
                [job for job in own if job.number > last] + [job for job in own if job.number <= last]
            )
        return (job for job in chain.from_iterable(zip_longest(*queues)) if job is not None)
