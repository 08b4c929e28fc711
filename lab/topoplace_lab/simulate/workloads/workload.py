"""Workloads: lists of jobs to simulate, with their submission times and their run times at full speed."""

from __future__ import annotations

import math
import warnings
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from topoplace import _checks
from topoplace.jobs.job_graph import JobGraph
from topoplace.jobs.performance_profile import PerformanceProfile
from topoplace.jobs.requirements import REQUIREMENTS
from topoplace.snapshot.records import Snapshot
from topoplace.text_formats.csv_rows import MAX_NUMBER, Lines, lines_of
from topoplace_lab.simulate.performance.transfers import Transfers
from topoplace_lab.simulate.workloads import generators, manifests, pbs, philly, swf
from topoplace_lab.simulate.workloads import trace_rows as trace_csv
from topoplace_lab.simulate.workloads.batch_systems import sacct
from topoplace_lab.simulate.workloads.job_columns import Sensitive, Unsaid
from topoplace_lab.simulate.workloads.logged_jobs import LogColumns, estimated_transfers
from topoplace_lab.simulate.workloads.row_report import RowReport
from topoplace_lab.simulate.workloads.submitted_job import SubmittedJob
from topoplace_lab.simulate.workloads.waiting_jobs import waiting_jobs

_LEAST_REACHED: Final = 0.5
"""Reached share of a load below which a warning is given; slightly below 1 is normal, as the last jobs run out."""


@dataclass(frozen=True, eq=False)
class Workload:
    """A list of jobs to simulate, as columns with one entry per job, in any order; times are in seconds.

    Three columns are optional. `transfers` is the data that each job sends, None if unknown. `requested_time` is the
    run time limit that the user requested, NaN if unknown. `excluded` has the names of the machines that each job must
    not get; a simulation of such jobs needs a `Discipline`.

    Args:
        jobs: What each job needs.
        base_time: Run time at full speed.
        job_ids: Unique; row numbers by default.

    Raises:
        ValueError: If columns differ in length, a time is negative or not finite, or a job id occurs twice. The message
            names column, row and value.
    """

    jobs: tuple[JobGraph, ...]
    submit_time: NDArray[np.float64]
    base_time: NDArray[np.float64]
    job_ids: tuple[str, ...]
    transfers: tuple[Transfers | None, ...]
    requested_time: NDArray[np.float64]
    excluded: tuple[frozenset[str], ...]
    report: RowReport | None
    """The rows of the text that the workload was read from; None for one that was not read."""

    def __init__(
        self,
        jobs: Sequence[JobGraph],
        submit_time: ArrayLike,
        base_time: ArrayLike,
        job_ids: Sequence[str] | None = None,
        *,
        transfers: Sequence[Transfers | None] | None = None,
        requested_time: ArrayLike | None = None,
        excluded: Sequence[Iterable[str]] | None = None,
        report: RowReport | None = None,
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
            "excluded": _excluded(excluded, len(rows)),
        }
        for name, column in columns.items():
            if len(column) != len(rows):
                raise ValueError(f"{name}: {len(column)} rows, jobs has {len(rows)}")
            object.__setattr__(self, name, column)
        object.__setattr__(self, "report", report)
        first: dict[str, int] = {}
        for row, job_id in enumerate(ids):
            if first.setdefault(_checks.text(job_id, f"job_ids[{row}]", ValueError), row) != row:
                raise ValueError(f"job_ids[{row}] = {_checks.shown(job_id)}, already in row {first[job_id]}")

    def __len__(self) -> int:
        return len(self.jobs)

    def __iter__(self) -> Iterator[SubmittedJob]:
        """Yield the jobs in the order of the rows."""
        times = (self.submit_time.tolist(), self.base_time.tolist(), self.transfers)
        columns = zip(
            self.job_ids, self.jobs, *times, self.requested_time.tolist(), self.excluded, strict=True
        )
        for index, row in enumerate(columns):
            yield SubmittedJob(index, *row)

    @classmethod
    def mapa(cls, num_jobs: int = 300, seed: int = 0, *, pattern: str = "ring") -> Workload:
        """Generate the MAPA paper's job mix (section 4): neural networks and 1 to 5 GPUs, drawn uniformly.

        All jobs are submitted at time 0.

        The paper's job file is not published; run times are drawn from each network's range in a file of the published
        code.

        Args:
            pattern: Communication pattern of every job.
        """
        return cls(*generators.mapa(num_jobs, seed, pattern))

    def without(self, *requirements: str) -> Workload:
        """Return the same jobs without some of their requirements, given by name, such as "cpus" or "min_utility".

        Raises:
            ValueError: Names an argument that is not a requirement (`jobs.requirements`).
        """
        for name in requirements:
            if name not in REQUIREMENTS:
                raise ValueError(f"{name!r} is not a requirement; known: {', '.join(REQUIREMENTS)}")
        nothing = {name: getattr(JobGraph, name) for name in requirements}
        kept: dict[JobGraph, JobGraph] = {}
        for job in self.jobs:
            if job not in kept:
                kept[job] = job.with_(**nothing)
        return self._changed([kept[job] for job in self.jobs], self.submit_time)

    def with_load(self, load: float, num_gpus: int, seed: int = 0) -> Workload:
        """Return the same jobs, submitted over the time in which they ask for `load` of all GPU time.

        A warning is given if not even half of the load can be reached, because jobs last long after the last
        submission.

        Args:
            load: The GPU seconds of all jobs at full speed, divided by those of `num_gpus` GPUs between the first and
                the last submission. Gaps between submissions keep their proportions. Jobs that are all submitted at
                once get the gaps of a Poisson process, drawn with `seed`, in the order of the rows.

        Raises:
            ValueError: If `load` is not positive, `num_gpus` not at least 1, or there are no two jobs with a run time.
        """
        _checks.positive(load, "load", ValueError)
        _checks.integer(num_gpus, "num_gpus", ValueError, low=1, high=1 << 30)
        gpus = np.array([job.num_tasks * job.gpu_share for job in self.jobs])
        seconds = float((gpus * self.base_time).sum()) / (load * num_gpus)
        if len(self) < 2 or not seconds:
            raise ValueError(f"load = {load:g}: there must be two jobs or more, and one that runs on a GPU")
        times = self.submit_time - self.submit_time.min()
        if not times.any():
            times = np.cumsum(generators.seeded(seed).exponential(size=len(self)))
            times -= times[0]
        times *= seconds / times.max()
        most = load * seconds / float((times + self.base_time).max())
        if is_missed(load, most):
            warnings.warn(
                f"load = {load:g}: cannot be reached: jobs last long after the last submission, so that they use "
                f"{100 * most:.2g} % of all GPU time or less",
                stacklevel=2,
            )
        return self._changed(self.jobs, times)

    def _changed(self, jobs: Sequence[JobGraph], submit_time: NDArray[np.float64]) -> Workload:
        return Workload(
            jobs,
            submit_time,
            self.base_time,
            self.job_ids,
            transfers=self.transfers,
            requested_time=self.requested_time,
            excluded=self.excluded,
            report=self.report,
        )

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
        """Generate jobs that arrive as a Poisson process, with exponentially distributed run times.

        Numbers of tasks are drawn uniformly from `sizes`. Each job is bandwidth sensitive with probability 1/2.

        Args:
            mean_gap: Mean seconds between arrivals.
            mean_time: Mean run time in seconds.
        """
        return cls(*generators.poisson(num_jobs, mean_gap, mean_time, sizes, seed, pattern))

    @classmethod
    def from_mapa(cls, text: Lines) -> Workload:
        """Read a job file of MAPA's published code: CSV lines without a header.

        Columns are `numGpus,topology,arrival,service,bwSensitive,net`, with times in seconds.
        """
        return cls._from_columns(trace_csv.read_mapa(text))

    @classmethod
    def from_csv(cls, text: Lines) -> Workload:
        """Read CSV with a header: pattern, gpus, submit, run_time (s); optionally bandwidth_sensitive, profile."""
        return cls._from_columns(trace_csv.read_csv(text))

    @classmethod
    def from_trace(
        cls,
        text: Lines,
        *,
        pattern: str | None = None,
        bandwidth_sensitive: Sensitive = None,
        profile: PerformanceProfile | None = None,
        duration: float | None = None,
        columns: Mapping[str, str] = MappingProxyType({}),
        without_gpus: bool = False,
        skip_bad_rows: bool = False,
    ) -> Workload:
        """Read a CSV trace: with the columns below, or of Alibaba (openb's pods, PAI's tasks), Helios or Acme.

        text: the text, or its lines, such as an open file. The columns needed are job_id, submit_s and num_gpus. Others
        are read if they are not empty:
        - duration_s: run time in seconds at full speed; else end_s - start_s, else that of `profile`, else `duration`.
          A row with none of them is bad.
        - gpu_milli: fraction of each GPU, in thousandths. mig: profile of a MIG slice of each GPU, such as 1g.10gb.
        - gpu_type: the GPU model, or several joined by |.
        - cpus, mem_mib, min_utility. nodes: the most machines that may share the job.
        - gpus_each, instances, instead of num_gpus: the GPUs of each of equal processes, and how many there are.
          Columns such as num_gpus_per_worker and worker_num are taken as these, and `report` says so.
        - model, batch: together the name `model/batch` of the job's profile.
        - pattern, bandwidth_sensitive (0 or 1).
        - groups: consecutive tasks that must be in one domain of a level, such as 48@nvlink_domain;8@machine. balanced:
          the level whose domains get equal numbers of tasks. `from_manifests` reads groups of any kind.
        - min_gpus: the fewest GPUs of an elastic job; with num_gpus, the most, it takes duration_s.

        Times are seconds, or dates such as 2020-06-09 18:41:01; dates are counted from the first submission. columns:
        other names of columns, such as {"num_gpus": "gpus"}. pattern, bandwidth_sensitive: for jobs whose rows do not
        state them. The latter is True, False, or a list of models. None makes jobs of several GPUs sensitive, as
        cliques, and `report` says so. without_gpus: keep jobs without GPUs that need CPUs or memory. skip_bad_rows:
        skip rows that cannot be read, instead of raising ValueError. `report` counts what was skipped.

        A row of PAI is a task of a job, submitted when it was launched; its instances are processes of one job.
        """
        unsaid = Unsaid(pattern, bandwidth_sensitive, duration, profile)
        return cls._from_columns(
            trace_csv.read_trace(
                text, unsaid, columns, without_gpus=without_gpus, skip_bad_rows=skip_bad_rows
            )
        )

    @classmethod
    def from_philly(
        cls,
        text: Lines,
        *,
        pattern: str | None = None,
        bandwidth_sensitive: Sensitive = None,
        duration: float | None = None,
        skip_bad_rows: bool = False,
    ) -> Workload:
        """Read the JSON of Microsoft's Philly trace (`cluster_job_log`), a text or pieces of it.

        A job has the GPUs of its last attempt, and the run time of all attempts together. If the last one has no end,
        the run time is `duration`; without it, the job is left out. Times count from the first submission.

        Args:
            pattern: See `from_trace`.
            bandwidth_sensitive: See `from_trace`.
            skip_bad_rows: See `from_trace`.
        """
        unsaid = Unsaid(pattern, bandwidth_sensitive, duration)
        return cls._from_columns(philly.read_philly(lines_of(text), unsaid, skip_bad_rows=skip_bad_rows))

    @classmethod
    def from_manifests(
        cls,
        text: str | bytes,
        profile: PerformanceProfile | None = None,
        *,
        weights: Mapping[str, float] = MappingProxyType({}),
        skip_bad_rows: bool = False,
    ) -> Workload:
        """Read job manifests, the format of SC'17's prototype: a JSON list of jobs, or a JSON object by job id.

        Rows are sorted by arrival, then by `color`, as the prototype queues jobs. Jobs are cliques on one machine.
        Fields are id (or else the key), gpus, mem (GB of host memory), tasks (CPU cores), minimal_utility and arrival
        (s). type and size together are the profile `type/size`. The field `job` is a job graph, which `to_manifests`
        adds if the other fields cannot express it. Further fields are ignored.

        Args:
            profile: Measured run times; None uses the field `time` (s).
            weights: Weight of a job graph's edges by the field size (the batch size), 1 if missing. The prototype uses
                1 for all jobs. In the paper (section 5.1) the weight falls with the batch size; pass `SC17_WEIGHTS` for
                this.
            skip_bad_rows: See `from_trace`.
        """
        _check_profile(profile)
        columns = manifests.read_manifests(
            text, profile, generators.checked_weights(weights), skip_bad_rows=skip_bad_rows
        )
        return cls._from_columns(columns)

    def to_manifests(self) -> str:
        """Return the jobs as JSON text that `from_manifests` and SC'17's prototype can read."""
        return manifests.write_manifests(iter(self))

    @classmethod
    def from_swf(
        cls,
        text: Lines,
        *,
        gpus_per_node: int = 1,
        cpus_per_node: int | None = None,
        statuses: Collection[int] = swf.STATUSES,
        queues: Collection[int] | None = None,
        pattern: str | None = None,
        bandwidth_sensitive: Sensitive = None,
        seed: int | None = None,
        skip_bad_rows: bool = False,
    ) -> Workload:
        """Read a log in the Standard Workload Format (version 2.2): 18 fields per line, comments begin with `;`.

        A job has the processors it requested, or was allocated if the request is unknown. They are spread evenly over
        as few nodes as possible. Memory is the requested memory; 1 KB is 1024 bytes.

        Jobs that never ran are skipped: their run time is unknown, or they were cancelled at run time 0. `report`
        counts what was skipped.

        Args:
            gpus_per_node: GPUs of a job on each node, as the format has no GPUs. 0: keep only jobs on one node, as jobs
                without GPUs.
            cpus_per_node: Processors of a node; by default the header's MaxProcs / MaxNodes, or else 1.
            statuses: Jobs of other statuses are skipped; lines of status 2 to 4 describe parts of a job that also has
                its own line.
            queues: Jobs of other queue numbers are skipped; None keeps all.
            seed: Draw `transfers` at random, because no log contains them; None leaves them unknown. They are as in
                TSUBAME's Table 1: as much data as memory, in 100 to 100,000 transfers.
            pattern: See `from_trace`; without it tasks do not communicate.
            bandwidth_sensitive: See `from_trace`, but without them tasks do not communicate.
            skip_bad_rows: See `from_trace`.
        """
        columns = swf.read_swf(
            text,
            gpus_per_node,
            cpus_per_node,
            statuses,
            queues,
            Unsaid(pattern, bandwidth_sensitive),
            skip_bad_rows=skip_bad_rows,
        )
        return cls._from_log(columns, seed)

    @classmethod
    def from_pbs(
        cls,
        text: Lines,
        *,
        queues: Collection[str] | None = None,
        without_gpus: bool = False,
        pattern: str | None = None,
        bandwidth_sensitive: Sensitive = None,
        seed: int | None = None,
        skip_bad_rows: bool = False,
    ) -> Workload:
        """Read an accounting log of PBS or Torque; a job is read from its E record, which is written when it ends.

        Submission is `ctime`, or else `qtime`, in seconds since the first job's submission. The run time is
        `resources_used.walltime`, or else `end` - `start`. Each node of `Resource_List.select` or `nodes` becomes a
        process of the job graph, see `simulate.workloads.pbs`. A restarted job has several E records; the last run
        counts, as earlier work is lost.

        Jobs that never started are skipped; `report` counts what was skipped.

        Args:
            queues: Jobs of other queues are skipped; None keeps all.
            without_gpus: Also keep jobs without GPUs if they have one node.
            pattern: See `from_swf`.
            bandwidth_sensitive: See `from_swf`.
            seed: See `from_swf`.
            skip_bad_rows: See `from_trace`.
        """
        unsaid = Unsaid(pattern, bandwidth_sensitive)
        columns = pbs.read_pbs(text, queues, unsaid, without_gpus=without_gpus, skip_bad_rows=skip_bad_rows)
        return cls._from_log(columns, seed)

    @classmethod
    def from_snapshot(cls, snapshot: Snapshot, duration: float | None = None) -> Workload:
        """Return the waiting jobs of a snapshot that are not held, in the order of the queue, submitted at time 0.

        A job's run time on the best GPUs is its time limit.

        Args:
            duration: Run time in seconds of jobs without a limit.

        Raises:
            SnapshotError: Names a job without a limit if there is no `duration`.
        """
        return cls(**waiting_jobs(snapshot, duration))

    @classmethod
    def from_sacct(
        cls,
        text: Lines,
        *,
        partitions: Collection[str] | None = None,
        without_gpus: bool = False,
        pattern: str | None = None,
        bandwidth_sensitive: Sensitive = None,
        seed: int | None = None,
        skip_bad_rows: bool = False,
    ) -> Workload:
        """Read the output of Slurm's `sacct -a -X --parsable2`; for its fields, see `workloads.batch_systems.sacct`.

        Times of submission are seconds since the first one. Run times are those on Slurm's own choice of GPUs. Each
        node becomes a process of the job graph. The last run of a requeued job counts.

        The other arguments are as for `from_pbs`. Steps, jobs that never started and jobs that still run are skipped;
        `report` counts them.

        Args:
            partitions: Jobs of other partitions are skipped; None keeps all.
        """
        unsaid = Unsaid(pattern, bandwidth_sensitive)
        columns = sacct.read_sacct(
            text, partitions, unsaid, without_gpus=without_gpus, skip_bad_rows=skip_bad_rows
        )
        return cls._from_log(columns, seed)

    @classmethod
    def _from_columns(cls, columns: trace_csv.TraceColumns) -> Workload:
        report = columns.report()
        return cls(columns.jobs, columns.submit, columns.base, columns.ids, report=report)

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
            report=columns.report(),
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
        """Generate SC'17's random jobs, as its published code draws them or as its paper describes them (`paper`).

        - Code: gaps between jobs are whole seconds ~ Poisson(`mean_gap`), 10 s by default. Batch sizes 1, 4, 128, 64
          have probabilities Binomial(3, 0.1) in this order. 80 % of the jobs are AlexNet, 20 % GoogLeNet.
        - Paper (section 5.3): submissions are a Poisson process with mean gap 6 s by default (10 per minute). Batch
          sizes 1, 4, 64, 128 and networks AlexNet, CaffeRef, GoogLeNet are binomially distributed. The paper omits the
          parameters; we use 1/2. Run times of CaffeRef are unpublished; we use AlexNet's.
        - Both: 1 + Binomial(2, 0.39) GPUs, and a minimum utility uniform in 0.30..0.52.

        Args:
            profile: Measured run times; ValueError if it lacks a kind of job that was drawn.
            weights: See `from_manifests`.
        """
        return cls(*generators.sc17(num_jobs, seed, mean_gap, profile, paper=paper, weights=weights))


def is_missed(load: float, used: float) -> bool:
    """Return True if jobs that ask for a share `load` of all GPU time use a far smaller share `used`."""
    return used < _LEAST_REACHED * min(load, 1.0)


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


def _excluded(given: Sequence[Iterable[str]] | None, num_jobs: int) -> tuple[frozenset[str], ...]:
    if given is None:
        return (frozenset[str](),) * num_jobs
    return tuple(
        frozenset(
            _checks.text(name, f"excluded[{row}]", ValueError)
            for name in _checks.sequence(names, f"excluded[{row}]", ValueError)
        )
        for row, names in enumerate(_checks.sequence(given, "excluded", ValueError))
    )


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
