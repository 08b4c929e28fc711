"""Workloads: the jobs of a simulation, when they are submitted, and how long they take at full speed."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np
from numpy.typing import ArrayLike, NDArray

from topoplace import _checks
from topoplace.jobs.job_graph import JobGraph
from topoplace.jobs.performance_profile import PerformanceProfile
from topoplace.simulate.performance.transfers import Transfers
from topoplace.simulate.workloads import generators, manifests, pbs, swf, trace_csv
from topoplace.simulate.workloads.logged_jobs import LogColumns, estimated_transfers
from topoplace.simulate.workloads.submitted_job import SubmittedJob
from topoplace.text_formats.csv_rows import MAX_NUMBER


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
        return cls(*generators.mapa(num_jobs, seed, pattern))

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
        return cls(*generators.poisson(num_jobs, mean_gap, mean_time, sizes, seed, pattern))

    @classmethod
    def from_mapa(cls, text: str) -> Workload:
        """The artifact's job lines `numGpus,topology,arrival,service,bwSensitive,net`, seconds; no header."""
        return cls._from_columns(trace_csv.read_mapa(text))

    @classmethod
    def from_csv(cls, text: str) -> Workload:
        """A CSV file with a header: pattern, gpus, submit, run_time (s); optionally bandwidth_sensitive, profile."""
        return cls._from_columns(trace_csv.read_csv(text))

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
        columns = trace_csv.read_trace(text, pattern, bandwidth_sensitive, profile, duration)
        return cls._from_columns(columns)

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
        columns = manifests.read_manifests(text, profile, generators.checked_weights(weights))
        return cls._from_columns(columns)

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
    def _from_columns(cls, columns: trace_csv.Columns) -> Workload:
        return cls(columns.jobs, columns.submit, columns.base, columns.ids)

    @classmethod
    def _from_log(cls, columns: LogColumns, seed: int | None) -> Workload:
        transfers = None if seed is None else estimated_transfers(columns.jobs, generators.seeded(seed))
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
        return cls(*generators.sc17(num_jobs, seed, mean_gap, profile, paper=paper, weights=weights))


def _check_profile(profile: PerformanceProfile | None) -> None:
    if profile is not None:
        _checks.instance(profile, PerformanceProfile, "profile", ValueError)


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
