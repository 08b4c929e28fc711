"""Job graphs for the rows of a job list, and the assumptions about facts that no row states.

Equal rows get the same object, for which policies can cache results.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from functools import lru_cache
from typing import Final

from topoplace import _checks
from topoplace._similar_names import not_one_of
from topoplace.jobs.job_graph import PATTERNS, JobGraph
from topoplace.jobs.performance_profile import PerformanceProfile
from topoplace.text_formats.csv_rows import MAX_NUMBER

PATTERN: Final = "clique"
"""The communication pattern of jobs whose rows state none."""

_SHOWN: Final = 8

Sensitive = bool | Collection[str] | None
"""Which jobs are bandwidth sensitive: all, none, those of some models; None means jobs with several GPUs."""


class Unsaid:
    """Facts about jobs that the rows of a list do not state, and a record of the assumptions made."""

    def __init__(
        self,
        pattern: str | None = None,
        bandwidth_sensitive: Sensitive = None,
        duration: float | None = None,
        profile: PerformanceProfile | None = None,
    ) -> None:
        """Take the facts that a caller states; ValueError names a wrong value.

        pattern: communication pattern, None for a clique. bandwidth_sensitive: see `Sensitive`; a model is named as in
        the column `model`, or with the batch size as in `JobGraph.profile`. duration: run time in seconds. profile:
        measured run times, which precede `duration`.
        """
        self.pattern = PATTERN if pattern is None else _known_pattern(pattern)
        self.duration = duration
        if duration is not None:
            self.duration = _checks.real(duration, "duration", ValueError, high=MAX_NUMBER)
        if profile is not None:
            _checks.instance(profile, PerformanceProfile, "profile", ValueError)
        self._profile = profile
        self._models: dict[str, bool] | None = None
        """True for each model of sensitive jobs that was seen; None if models are not named."""
        self._others: set[str] = set()
        """Some models of other jobs, for messages."""
        self._sensitive = bandwidth_sensitive if isinstance(bandwidth_sensitive, bool) else None
        if bandwidth_sensitive is not None and not isinstance(bandwidth_sensitive, bool):
            names = _checks.sequence(bandwidth_sensitive, "bandwidth_sensitive", ValueError)
            self._models = {
                _checks.text(name, f"bandwidth_sensitive[{i}]", ValueError): False
                for i, name in enumerate(names)
            }
        self._pattern_is_stated = pattern is not None
        self._assumed: dict[str, None] = {}

    def job(
        self, size: int, profile: str | None, pattern: str | None = None, sensitive: bool | None = None
    ) -> JobGraph:
        """Return the job graph of a row; pattern and sensitive: the values in the row, None if it has none."""
        if pattern is None and not self._pattern_is_stated and size > 1:
            self.assume(f"pattern {self.pattern}")
        if sensitive is None:
            sensitive = self._is_sensitive(size, profile)
        return job_of(pattern or self.pattern, size, sensitive, profile)

    def logged_job(self, job: JobGraph) -> JobGraph:
        """Return a log's job with the stated pattern and sensitivity; without these, its tasks do not communicate."""
        if job.num_tasks < 2 or not (self._pattern_is_stated or self._sensitive or self._models):
            if job.num_tasks > 1:
                self.assume("tasks do not communicate")
            return job
        pattern = self.pattern if self._pattern_is_stated else "independent"
        return _communicating(job, pattern, self._is_sensitive(job.num_tasks, None))

    def base_time(self, job: JobGraph, stated: float | None, column: str) -> float:
        """Return the run time of a job in seconds: as stated, else as measured, else `duration`.

        ValueError names `column` if the run time is unknown.
        """
        if stated is None and self._profile:
            stated = self._profile.ideal_time(job.profile or "", job.num_tasks)
        if stated is None:
            stated = self.duration
        if stated is None:
            raise ValueError(f"{column} is unknown: add it, or give a profile or a duration")
        return stated

    def assume(self, what: str) -> None:
        """Note an assumption about jobs that neither their rows nor the caller state."""
        self._assumed[what] = None

    def assumed(self) -> Iterator[str]:
        """Yield the assumptions; ValueError if no row has a model that is named as sensitive."""
        missing = [name for name, is_seen in (self._models or {}).items() if not is_seen]
        if missing:
            known = ", ".join(sorted(self._others)[:_SHOWN])
            which = f"the models of the jobs are {known}" if known else "the rows name no models"
            raise ValueError(
                f"bandwidth_sensitive = {_checks.shown(missing[0])}: no job is of this model; {which}"
            )
        yield from self._assumed

    def _is_sensitive(self, size: int, profile: str | None) -> bool:
        if self._models is not None:
            own = {name for name in (profile, (profile or "").rpartition("/")[0]) if name}
            names = own & self._models.keys()
            if not names and len(self._others) < _SHOWN:
                self._others |= own
            self._models.update(dict.fromkeys(names, True))
            return bool(names)
        if self._sensitive is None and size > 1:
            self.assume("jobs of several GPUs are bandwidth sensitive, others are not")
        return size > 1 if self._sensitive is None else self._sensitive


def _known_pattern(pattern: object) -> str:
    name = _checks.text(pattern, "pattern", ValueError)
    if name != "all" and name not in PATTERNS:
        raise ValueError(f"pattern = {_checks.shown(name)}, {not_one_of(name, PATTERNS)}")
    return name


@lru_cache(maxsize=4096)
def _communicating(job: JobGraph, pattern: str, sensitive: bool) -> JobGraph:
    edges = job_of(pattern, job.num_tasks, sensitive, None)
    return edges.with_(processes=job.processes, cpus=job.cpus, memory_gb=job.memory_gb)


@lru_cache(maxsize=4096)
def job_of(pattern: str, size: int, sensitive: bool, profile: str | None, weight: float = 1.0) -> JobGraph:
    """Return the job graph for one row of a job list, cached.

    pattern: name of the communication pattern, such as ring. size: number of tasks. sensitive: True if bandwidth
    sensitive. profile: name of the job's measured profile. weight: weight of every edge. ValueError for an unknown
    pattern or an impossible size.
    """
    build = PATTERNS[
        "clique" if _known_pattern(pattern) == "all" else pattern
    ]  # MAPA's artifact writes "all"
    job = build(size)
    if weight != 1.0:
        job = JobGraph.from_edges(size, [(a, b, weight) for a, b, _ in job.edges], name=job.name)
    return job.with_(bandwidth_sensitive=sensitive, profile=profile)
