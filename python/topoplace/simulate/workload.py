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

from topoplace import _checks
from topoplace.jobgraph import MAX_TASKS, PATTERNS, JobGraph

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
_MAX_JOBS: Final = 1 << 24
_MAX_NUMBER: Final = 1e15
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
        rows = _checks.sequence(jobs, "jobs", ValueError)
        for row, job in enumerate(rows):
            _checks.instance(job, JobGraph, f"jobs[{row}]", ValueError)
        given = map(str, range(len(rows))) if job_ids is None else job_ids
        ids = _checks.sequence(given, "job_ids", ValueError)
        columns = {
            "jobs": rows,
            "submit_time": _seconds(submit_time, "submit_time"),
            "base_time": _seconds(base_time, "base_time"),
            "job_ids": ids,
        }
        for name, column in columns.items():
            if len(column) != len(rows):
                raise ValueError(f"{name}: {len(column)} rows, jobs has {len(rows)}")
            object.__setattr__(self, name, column)
        first: dict[str, int] = {}
        for row, job_id in enumerate(ids):
            if first.setdefault(_checks.text(job_id, f"job_ids[{row}]", ValueError), row) != row:
                raise ValueError(f"job_ids[{row}] = {_checks.shown(job_id)}, already in row {first[job_id]}")

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
        num_jobs = _num_jobs(num_jobs)
        random = seeded(seed)
        names = list(MAPA_NETWORKS)
        network = [names[int(i)] for i in random.integers(len(names), size=num_jobs)]
        gpus = random.integers(1, 6, size=num_jobs)
        times = [
            int(random.integers(low, high + 1)) for low, high, _ in (MAPA_NETWORKS[name] for name in network)
        ]
        _checks.text(pattern, "pattern", ValueError)
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
        num_jobs = _num_jobs(num_jobs)
        random = seeded(seed)
        submit = np.cumsum(random.exponential(_checks.real(mean_gap, "mean_gap", ValueError), num_jobs))
        times = random.exponential(_checks.real(mean_time, "mean_time", ValueError), num_jobs)
        choice = [
            _checks.integer(size, f"sizes[{i}]", ValueError, low=1, high=MAX_TASKS)
            for i, size in enumerate(_checks.sequence(sizes, "sizes", ValueError))
        ]
        if not choice:
            raise ValueError("sizes is empty")
        chosen = random.choice(np.array(choice, dtype=np.int64), num_jobs)
        sensitive = random.random(num_jobs) < 0.5
        _checks.text(pattern, "pattern", ValueError)
        jobs = [job_of(pattern, int(k), bool(s), None) for k, s in zip(chosen, sensitive, strict=True)]
        return cls(jobs, submit, times)

    @classmethod
    def from_mapa(cls, text: str) -> Workload:
        """The artifact's job lines `numGpus,topology,arrival,service,bwSensitive,net`, seconds; no header."""
        return cls._from_rows(_MAPA_COLUMNS, _lines(text), first_line=1)

    @classmethod
    def from_csv(cls, text: str) -> Workload:
        """A CSV file with a header: pattern, gpus, submit, run_time (s); optionally bandwidth_sensitive, profile."""
        reader = _lines(text)
        header = [name.strip() for name in next(reader, list[str]())]
        unknown = sorted(set(header) - set(_CSV_COLUMNS))
        missing = [name for name in _CSV_COLUMNS[:4] if name not in header]
        if unknown or missing or len(set(header)) != len(header):
            raise ValueError(
                f"line 1: columns {_checks.shown(header)}, needed are {', '.join(_CSV_COLUMNS)} (the last two may "
                "be left out)"
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


def seeded(seed: int) -> np.random.Generator:
    """The generator of a seed from 0; ValueError for any other."""
    return np.random.default_rng(_checks.integer(seed, "seed", ValueError, low=0, high=1 << 128))


def _num_jobs(value: int) -> int:
    return _checks.integer(value, "num_jobs", ValueError, low=0, high=_MAX_JOBS)


@lru_cache(maxsize=4096)
def job_of(pattern: str, size: int, sensitive: bool, profile: str | None) -> JobGraph:
    """The job graph of a row; equal rows share one object, so what a policy caches for it is found again."""
    build = PATTERNS.get("clique" if pattern == "all" else pattern)  # "all": the artifact's other word
    if build is None:
        raise ValueError(f"pattern = {_checks.shown(pattern)}, not one of {', '.join(PATTERNS)}")
    return build(size).with_(bandwidth_sensitive=sensitive, profile=profile)


def _lines(text: str) -> Iterator[list[str]]:
    """The fields of each line; what the csv module refuses becomes a ValueError that names the line."""
    _checks.instance(text, str, "text", ValueError)
    reader = csv.reader(io.StringIO(text))
    try:
        yield from reader
    except csv.Error as error:
        raise ValueError(f"line {reader.line_num}: {error}") from None


def _number(
    text: str,
    kind: type[int] | type[float],
    line: int,
    column: str,
    low: float = 0,
    high: float = _MAX_NUMBER,
) -> float:
    try:
        value = kind(text)
    except ValueError:
        value = float("nan")
    if not low <= value <= high:
        limits = f"{low:g}..{high:g}" if high < _MAX_NUMBER else f"from {low:g}"
        raise ValueError(f"line {line}: {column} = {text!r}, not a number {limits}")
    return value


def _seconds(values: ArrayLike, name: str) -> NDArray[np.float64]:
    column = _checks.numbers_of(values, name, ValueError)
    if column.ndim != 1:
        raise ValueError(f"{name}: shape {column.shape}, one value per job needed")
    bad = np.flatnonzero(~((column >= 0) & (column <= _MAX_NUMBER)))
    if len(bad):
        raise ValueError(f"{name}[{bad[0]}] = {column[bad[0]]}, not a time of 0..{_MAX_NUMBER:g} s")
    column.flags.writeable = False
    return column
