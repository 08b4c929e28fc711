"""Workloads: the jobs of a simulation, when they are submitted, and how long they take at full speed."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from topoplace import _checks
from topoplace._csv_rows import MAX_NUMBER, lines, number, records
from topoplace.jobgraph import MAX_TASKS, JobGraph
from topoplace.profiles import PerformanceProfile
from topoplace.simulate import manifests, pbs, swf, traces
from topoplace.simulate.job_rows import job_of
from topoplace.simulate.logged_jobs import LogColumns, estimated_transfers
from topoplace.simulate.transfers import Transfers

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
SC17_WEIGHTS: Final[Mapping[str, float]] = MappingProxyType({"1": 4.0, "4": 3.0, "64": 2.0, "128": 1.0})
"""The weight of a job's edges by its batch size: 4 for the smallest to 1 for the largest (SC'17, section 5.1)."""
_SC17_OF_CODE: Final = (("1", "4", "128", "64"), ("bvlc_alexnet", "bvlc_googlenet"))
_SC17_OF_PAPER: Final = (("1", "4", "64", "128"), ("bvlc_alexnet", "bvlc_alexnet", "bvlc_googlenet"))
"""Batch sizes and networks in the order of the numbers drawn for them."""
_MAX_JOBS: Final = 1 << 24
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
    transfers: Transfers | None = None
    """What each of its nodes sends; None where nobody told."""
    requested_time: float = field(default=math.nan, compare=False)
    """The run time in seconds that its user asked for; NaN, which equals nothing, where nobody told."""


@dataclass(frozen=True, eq=False)
class Workload:
    """Jobs as columns: `jobs` (m,), `submit_time` and `base_time` (m,) float64 seconds, `job_ids` (m,) unique.

    Besides, where they are known: `transfers` (m,), None for a job of which nobody told, and `requested_time` (m,)
    float64 seconds, NaN for such a job; both are all so where they are not given.

    Raises ValueError naming the column, the row and the value for columns of different length, times that are not
    finite or negative, and a job id that occurs twice. Rows may be in any order of submission.
    """

    jobs: tuple[JobGraph, ...]
    submit_time: NDArray[np.float64]
    base_time: NDArray[np.float64]
    job_ids: tuple[str, ...]
    transfers: tuple[Transfers | None, ...]
    requested_time: NDArray[np.float64]

    def __init__(
        self,
        jobs: Sequence[JobGraph],
        submit_time: ArrayLike,
        base_time: ArrayLike,
        job_ids: Sequence[str] | None = None,
        *,
        transfers: Sequence[Transfers | None] | None = None,
        requested_time: ArrayLike | None = None,
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
            "transfers": _transfers(transfers, len(rows)),
            "requested_time": _requested(requested_time, len(rows)),
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
        times = (self.submit_time.tolist(), self.base_time.tolist(), self.transfers)
        columns = zip(self.job_ids, self.jobs, *times, self.requested_time.tolist(), strict=True)
        for index, row in enumerate(columns):
            yield SubmittedJob(index, *row)

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
        submit = np.cumsum(random.exponential(_mean(mean_gap, "mean_gap"), num_jobs))
        times = random.exponential(_mean(mean_time, "mean_time"), num_jobs)
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
        return cls._from_rows(_mapa_rows(text))

    @classmethod
    def from_csv(cls, text: str) -> Workload:
        """A CSV file with a header: pattern, gpus, submit, run_time (s); optionally bandwidth_sensitive, profile."""
        return cls._from_rows(records(text, _CSV_COLUMNS[:4], _CSV_COLUMNS[4:]))

    @classmethod
    def from_trace(
        cls,
        text: str,
        *,
        pattern: str = "clique",
        bandwidth_sensitive: bool = False,
        profile: PerformanceProfile | None = None,
        duration: float | None = None,
    ) -> Workload:
        """A CSV trace with a header: job_id, submit_s, num_gpus, and what else it knows.

        duration_s is the run time at full speed; where it is empty, `profile` tells it, or else it is `duration`. Used
        besides, where they are there and not empty: gpu_milli (thousandths of each GPU), gpu_type (one model; several,
        joined by |, are no requirement that a job graph has), cpus, mem_mib, nodes (1: all on one machine), model and
        batch (the profile `model/batch`), min_utility. Other columns are left out, and so are jobs without GPUs.
        pattern, bandwidth_sensitive: of every job, as no trace tells.
        """
        _check_profile(profile)
        columns = traces.read_trace(text, pattern, bandwidth_sensitive, profile, duration)
        return cls(columns.jobs, columns.submit, columns.base, columns.ids)

    @classmethod
    def from_manifests(
        cls,
        text: str | bytes,
        profile: PerformanceProfile | None = None,
        *,
        weights: Mapping[str, float] = MappingProxyType({}),
    ) -> Workload:
        """Job manifests of SC'17's prototype: a JSON list of them, or an object by id; rows in order of arrival,
        and of equal arrivals in that of `color`, which is how the prototype queues them.

        Fields id (or else the key), type and size (the profile `type/size`), gpus, mem (GB of host memory), tasks (CPU
        cores), minimal_utility, arrival (s); others are ignored, but for `job`, which `to_manifests` adds where it
        must. Jobs are cliques on one machine. profile: tells their run times, as the field `time` (s) does otherwise.
        weights: of a job's edges by its size, 1 where it is not in it. The prototype gives all jobs 1; the paper
        (section 5.1) has the weight fall with the batch size, which is `SC17_WEIGHTS`.
        """
        _check_profile(profile)
        columns = manifests.read_manifests(text, profile, _weights(weights))
        return cls(columns.jobs, columns.submit, columns.base, columns.ids)

    def to_manifests(self) -> str:
        """The jobs as JSON that `from_manifests` reads back, and the prototype too."""
        return manifests.write_manifests(iter(self))

    @classmethod
    def from_swf(
        cls,
        text: str,
        *,
        gpus_per_node: int = 1,
        cpus_per_node: int | None = None,
        statuses: Collection[int] = swf.STATUSES,
        queues: Collection[int] | None = None,
        seed: int | None = None,
    ) -> Workload:
        """A log in the Standard Workload Format (version 2.2): 18 fields a line, comments begin with `;`.

        A job has as many processors as it requested (allocated, where that is not known), on as few nodes of
        `cpus_per_node` processors each as hold them, spread evenly; without the argument, the header's MaxProcs over
        MaxNodes, and else one processor a node. The format knows no GPUs: the job has `gpus_per_node` on each node; for
        0, those on one node are kept as jobs without GPUs. Memory is what was requested, 1024 bytes a KB.

        Left out are jobs that never ran (run time unknown, or cancelled after none), those of a status not in
        `statuses` (2 to 4 are parts of a job whose sum has a line of its own) and, where `queues` is given, those of
        other queue numbers. seed: draw `transfers`, of which no log tells (TSUBAME, Table 1: as much data as memory,
        100 to 100,000 connections); without it there are none.
        """
        return cls._from_log(swf.read_swf(text, gpus_per_node, cpus_per_node, statuses, queues), seed)

    @classmethod
    def from_pbs(
        cls,
        text: str,
        *,
        queues: Collection[str] | None = None,
        without_gpus: bool = False,
        seed: int | None = None,
    ) -> Workload:
        """An accounting log of PBS or Torque: of each job the E record, which is written when it has ended.

        Submission is `ctime`, or else `qtime`, in seconds since the first job's; the run time is
        `resources_used.walltime`, or else from `start` to `end`. Each process of the job graph is one node (chunk) of
        `Resource_List.select` or `nodes`, see `simulate.pbs`. A job that was restarted has several E records: the last
        of those that ran counts, as what was done before is lost, and no request of the user.

        Left out are jobs that never started and, where `queues` is given, those of other queues; jobs without GPUs,
        too, unless `without_gpus` keeps those on one node. seed: as for `from_swf`.
        """
        return cls._from_log(pbs.read_pbs(text, queues, without_gpus=without_gpus), seed)

    @classmethod
    def _from_log(cls, columns: LogColumns, seed: int | None) -> Workload:
        transfers = None if seed is None else estimated_transfers(columns.jobs, seeded(seed))
        return cls(
            columns.jobs,
            columns.submit,
            columns.base,
            columns.ids,
            transfers=transfers,
            requested_time=columns.requested,
        )

    @classmethod
    def sc17(
        cls,
        num_jobs: int,
        seed: int = 0,
        mean_gap: float | None = None,
        *,
        profile: PerformanceProfile,
        paper: bool = False,
        weights: Mapping[str, float] = MappingProxyType({}),
    ) -> Workload:
        """SC'17's generated jobs, with their ideal times from `profile`: as its code draws them, or its paper.

        Code: gaps of whole seconds ~ Poisson(`mean_gap`, 10 s unless given), batch size 1, 4, 128 or 64 ~ Binomial(3,
        0.1) in this order, 80 % AlexNet and 20 % GoogLeNet. Paper (section 5.3): submissions are a Poisson process
        (6 s between two unless given: 10 a minute), batch size 1, 4, 64 or 128 and AlexNet, CaffeRef or GoogLeNet by
        binomial distributions whose parameters it does not tell, taken as 1/2; CaffeRef, of which nobody published
        times, has those of AlexNet. Both: 1 + Binomial(2, 0.39) GPUs, a least utility uniform in 0.30..0.52.
        weights: as for `from_manifests`.
        """
        num_jobs = _num_jobs(num_jobs)
        _checks.instance(profile, PerformanceProfile, "profile", ValueError)
        weights = _weights(weights)
        random = seeded(seed)
        gap = _mean((6.0 if paper else 10.0) if mean_gap is None else mean_gap, "mean_gap")
        gaps = random.exponential(gap, num_jobs) if paper else random.poisson(gap, num_jobs)
        sizes, models = _SC17_OF_PAPER if paper else _SC17_OF_CODE
        size = [sizes[int(i)] for i in random.binomial(3, 0.5 if paper else 0.1, num_jobs)]
        chance = 0.5 if paper else 0.2
        model = [models[int(i)] for i in random.binomial(len(models) - 1, chance, num_jobs)]
        gpus = 1 + random.binomial(2, 0.39, num_jobs)
        least = random.uniform(0.30, 0.52, num_jobs)
        jobs = [
            job_of("clique", int(k), True, f"{name}/{batch}", weights.get(batch, 1.0)).with_(
                min_utility=float(u), single_machine=True
            )
            for k, name, batch, u in zip(gpus, model, size, least, strict=True)
        ]
        return cls(jobs, np.cumsum(gaps), [_ideal(profile, job) for job in jobs])

    @classmethod
    def _from_rows(cls, rows: Iterator[tuple[int, dict[str, str]]]) -> Workload:
        columns = traces.Columns()
        for line, given in rows:
            row = {key: value.strip() for key, value in given.items()}
            sensitive = bool(
                number(row.get("bandwidth_sensitive", "0"), int, line, "bandwidth_sensitive", high=1)
            )
            size = int(number(row["gpus"], int, line, "gpus", low=1))
            try:
                job = job_of(row["pattern"], size, sensitive, row.get("profile") or None)
            except ValueError as error:
                raise ValueError(f"line {line}: {error}") from None
            submit = number(row["submit"], float, line, "submit")
            columns.add(job, submit, number(row["run_time"], float, line, "run_time"), str(len(columns.jobs)))
        return cls(columns.jobs, columns.submit, columns.base, columns.ids)


def _mapa_rows(text: str) -> Iterator[tuple[int, dict[str, str]]]:
    for line, fields in lines(text):
        if len(fields) != len(_MAPA_COLUMNS):
            raise ValueError(f"line {line}: {len(fields)} columns, {len(_MAPA_COLUMNS)} needed")
        yield line, dict(zip(_MAPA_COLUMNS, fields, strict=True))


def _ideal(profile: PerformanceProfile, job: JobGraph) -> float:
    ideal = profile.ideal_time(job.profile or "", job.num_tasks)
    if ideal is None:
        raise ValueError(f"profile: no time of {job.profile} on {job.num_tasks} GPUs")
    return ideal


def _check_profile(profile: PerformanceProfile | None) -> None:
    if profile is not None:
        _checks.instance(profile, PerformanceProfile, "profile", ValueError)


def _weights(weights: Mapping[str, float]) -> dict[str, float]:
    _checks.instance(weights, Mapping, "weights", ValueError)
    return {
        size: _checks.positive(weight, f"weights[{_checks.shown(size)}]", ValueError)
        for size, weight in weights.items()
    }


def _mean(value: float, name: str) -> float:
    return _checks.real(value, name, ValueError, high=MAX_NUMBER)


def seeded(seed: int) -> np.random.Generator:
    """The generator of a seed from 0; ValueError for any other."""
    return np.random.default_rng(_checks.integer(seed, "seed", ValueError, low=0, high=1 << 128))


def _num_jobs(value: int) -> int:
    return _checks.integer(value, "num_jobs", ValueError, low=0, high=_MAX_JOBS)


def _transfers(given: Sequence[Transfers | None] | None, num_jobs: int) -> tuple[Transfers | None, ...]:
    column = _checks.sequence((None,) * num_jobs if given is None else given, "transfers", ValueError)
    for row, entry in enumerate(column):
        if entry is not None:
            _checks.instance(entry, Transfers, f"transfers[{row}]", ValueError)
    return column


def _requested(given: ArrayLike | None, num_jobs: int) -> NDArray[np.float64]:
    return _seconds(np.full(num_jobs, math.nan) if given is None else given, "requested_time", or_nan=True)


def _seconds(values: ArrayLike, name: str, *, or_nan: bool = False) -> NDArray[np.float64]:
    column = _checks.numbers_of(values, name, ValueError)
    if column.ndim != 1:
        raise ValueError(f"{name}: shape {column.shape}, one value per job needed")
    good = (column >= 0) & (column <= MAX_NUMBER)
    bad = np.flatnonzero(~(good | np.isnan(column)) if or_nan else ~good)
    if len(bad):
        raise ValueError(f"{name}[{bad[0]}] = {column[bad[0]]}, not a time of 0..{MAX_NUMBER:g} s")
    column.flags.writeable = False
    return column
