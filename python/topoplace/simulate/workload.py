"""Workloads: the jobs of a simulation, when they are submitted, and how long they take at full speed."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from topoplace.jobgraph import PATTERNS, JobGraph

MAPA_NETWORKS: Final = {
    # Shortest and longest run time in seconds of each network in a job file of MAPA's artifact, and whether the paper
    # calls it bandwidth sensitive (Fig. 5b).
    "alexnet": (338, 410, True),
    "vgg16": (341, 415, True),
    "resnet-50": (458, 549, True),
    "inception-v3": (490, 593, True),
    "caffenet": (337, 410, False),
    "googlenet": (272, 328, False),
}
_CSV_COLUMNS: Final = ("pattern", "gpus", "submit", "run_time", "bandwidth_sensitive", "profile")
_MAPA_COLUMNS: Final = ("gpus", "pattern", "submit", "run_time", "bandwidth_sensitive", "profile")


@dataclass(frozen=True, slots=True)
class SubmittedJob:
    """One job of a workload: `base_time` is its run time in seconds on the best GPUs it could have."""

    index: int
    job_id: str
    job: JobGraph
    submit_time: float
    base_time: float


@dataclass(frozen=True, eq=False)
class Workload:
    """Jobs as columns: `jobs` (m,), `submit_time` and `base_time` (m,) float64 seconds, `job_ids` (m,) unique.

    Raises ValueError naming the column, the row and the value for columns of different length, times that are not
    finite or negative, and a job id that occurs twice. Rows may be in any order of submission.
    """

    jobs: tuple[JobGraph, ...]
    submit_time: NDArray[np.float64]
    base_time: NDArray[np.float64]
    job_ids: tuple[str, ...]

    def __init__(
        self,
        jobs: Sequence[JobGraph],
        submit_time: ArrayLike,
        base_time: ArrayLike,
        job_ids: Sequence[str] | None = None,
    ) -> None:
        ids = tuple(map(str, range(len(jobs)))) if job_ids is None else tuple(job_ids)
        columns = {
            "jobs": tuple(jobs),
            "submit_time": _seconds(submit_time, "submit_time"),
            "base_time": _seconds(base_time, "base_time"),
            "job_ids": ids,
        }
        for name, column in columns.items():
            if len(column) != len(jobs):
                raise ValueError(f"{name}: {len(column)} rows, jobs has {len(jobs)}")
            object.__setattr__(self, name, column)
        first: dict[str, int] = {}
        for row, job_id in enumerate(ids):
            if first.setdefault(job_id, row) != row:
                raise ValueError(f"job_ids[{row}] = {job_id!r}, already in row {first[job_id]}")

    def __len__(self) -> int:
        return len(self.jobs)

    def __iter__(self) -> Iterator[SubmittedJob]:
        """The jobs in the order of the rows."""
        submit, base = self.submit_time.tolist(), self.base_time.tolist()
        for index, job in enumerate(self.jobs):
            yield SubmittedJob(index, self.job_ids[index], job, submit[index], base[index])

    @classmethod
    def mapa(cls, num_jobs: int = 300, seed: int = 0, *, pattern: str = "ring") -> Workload:
        """MAPA's job mix (section 4): networks and 1 to 5 GPUs uniform at random, all submitted at time 0.

        The paper's job file is not published; run times are drawn from the span its artifact's file has per network.
        """
        random = np.random.default_rng(seed)
        names = list(MAPA_NETWORKS)
        network = [names[int(i)] for i in random.integers(len(names), size=num_jobs)]
        gpus = random.integers(1, 6, size=num_jobs)
        times = [
            int(random.integers(low, high + 1)) for low, high, _ in (MAPA_NETWORKS[name] for name in network)
        ]
        jobs = [
            job_of(pattern, int(k), MAPA_NETWORKS[name][2], name)
            for k, name in zip(gpus, network, strict=True)
        ]
        return cls(jobs, np.zeros(num_jobs), times)

    @classmethod
    def poisson(
        cls,
        num_jobs: int,
        mean_gap: float,
        mean_time: float,
        sizes: Sequence[int],
        seed: int = 0,
        pattern: str = "ring",
    ) -> Workload:
        """Exponential gaps and run times (means in seconds), sizes uniform over `sizes`, half of the jobs sensitive."""
        random = np.random.default_rng(seed)
        submit = np.cumsum(random.exponential(mean_gap, num_jobs))
        times = random.exponential(mean_time, num_jobs)
        chosen = random.choice(np.asarray(sizes, dtype=np.int64), num_jobs)
        sensitive = random.random(num_jobs) < 0.5
        jobs = [job_of(pattern, int(k), bool(s), None) for k, s in zip(chosen, sensitive, strict=True)]
        return cls(jobs, submit, times)

    @classmethod
    def from_mapa(cls, text: str) -> Workload:
        """The artifact's job lines `numGpus,topology,arrival,service,bwSensitive,net`, seconds; no header."""
        return cls._from_rows(_MAPA_COLUMNS, csv.reader(io.StringIO(text)), first_line=1)

    @classmethod
    def from_csv(cls, text: str) -> Workload:
        """A CSV file with a header: pattern, gpus, submit, run_time (s); optionally bandwidth_sensitive, profile."""
        reader = csv.reader(io.StringIO(text))
        header = [name.strip() for name in next(reader, list[str]())]
        unknown = sorted(set(header) - set(_CSV_COLUMNS))
        missing = [name for name in _CSV_COLUMNS[:4] if name not in header]
        if unknown or missing or len(set(header)) != len(header):
            raise ValueError(
                f"line 1: columns {header}, needed are {list(_CSV_COLUMNS)} (the last two may be left out)"
            )
        return cls._from_rows(tuple(header), reader, first_line=2)

    @classmethod
    def _from_rows(cls, columns: Sequence[str], rows: Iterator[list[str]], first_line: int) -> Workload:
        jobs: list[JobGraph] = []
        times: list[tuple[float, float]] = []
        for line, fields in enumerate(rows, first_line):
            if not any(field.strip() for field in fields):
                continue
            if len(fields) != len(columns):
                raise ValueError(f"line {line}: {len(fields)} columns, {len(columns)} needed")
            row = dict(zip(columns, map(str.strip, fields), strict=True))
            sensitive = bool(
                _number(row.get("bandwidth_sensitive", "0"), int, line, "bandwidth_sensitive", high=1)
            )
            size = int(_number(row["gpus"], int, line, "gpus", low=1))
            try:
                jobs.append(job_of(row["pattern"], size, sensitive, row.get("profile") or None))
            except ValueError as error:
                raise ValueError(f"line {line}: {error}") from None
            times.append(
                (
                    _number(row["submit"], float, line, "submit"),
                    _number(row["run_time"], float, line, "run_time"),
                )
            )
        submit, base = zip(*times, strict=True) if times else ((), ())
        return cls(jobs, submit, base)


@lru_cache(maxsize=4096)
def job_of(pattern: str, size: int, sensitive: bool, profile: str | None) -> JobGraph:
    """The job graph of a row; equal rows share one object, so what a policy caches for it is found again."""
    build = PATTERNS.get("clique" if pattern == "all" else pattern)  # "all": the artifact's other word
    if build is None:
        raise ValueError(f"pattern = {pattern!r}, not one of {', '.join(PATTERNS)}")
    return build(size).with_(bandwidth_sensitive=sensitive, profile=profile)


def _number(
    text: str, kind: type[int] | type[float], line: int, column: str, low: float = 0, high: float = 1e15
) -> float:
    try:
        value = kind(text)
    except ValueError:
        value = float("nan")
    if not low <= value <= high:
        limits = f"{low:g}..{high:g}" if high < 1e15 else f"from {low:g}"
        raise ValueError(f"line {line}: {column} = {text!r}, not a number {limits}")
    return value


def _seconds(values: ArrayLike, name: str) -> NDArray[np.float64]:
    column = np.array(values, dtype=np.float64)
    if column.ndim != 1:
        raise ValueError(f"{name}: shape {column.shape}, one value per job needed")
    bad = np.flatnonzero(~np.isfinite(column) | (column < 0))
    if len(bad):
        raise ValueError(f"{name}[{bad[0]}] = {column[bad[0]]}, not a finite time from 0")
    column.flags.writeable = False
    return column
