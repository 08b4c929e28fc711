"""The order in which waiting jobs are looked at: users in turn, so that nobody's jobs delay another's."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain, zip_longest

from topoplace.integrations.slurm.client.jobs import SlurmJob

_KEPT = 0.9
"""The share of what a user has used that still counts a cycle later."""


class Turns:
    """Users in turn: who has used less time for decisions comes first."""

    def __init__(self) -> None:
        self._used_s: dict[str, float] = {}
        self._last: dict[str, int] = {}

    def charge(self, job: SlurmJob, seconds: float) -> None:
        """Note the CPU time of one decision, and that the jobs before this one have had their turn."""
        self._used_s[job.user] = self._used_s.get(job.user, 0.0) + seconds
        self._last[job.user] = job.number

    def next_cycle(self) -> None:
        """Let what users have used count less."""
        kept = {user: used * _KEPT for user, used in self._used_s.items()}
        self._used_s = {user: used for user, used in kept.items() if used > 1e-6}

    def start_over(self) -> None:
        """Begin with each user's oldest job again."""
        self._last.clear()

    def order(self, jobs: Iterable[SlurmJob]) -> Iterator[SlurmJob]:
        """Yield the jobs, one of each user in turn; a user's oldest first, after those that had their turn."""
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
