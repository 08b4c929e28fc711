"""Jobs as batch systems log them: a number of nodes (machines), and the resources requested on each node."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from typing import Final, NamedTuple

import numpy as np

from topoplace import _checks
from topoplace.jobs.job_graph import JobGraph
from topoplace.jobs.requirements import MAX_TASKS
from topoplace.text_formats.csv_rows import MAX_NUMBER, Lines, lines_of
from topoplace_lab.simulate.performance.transfers import Transfers
from topoplace_lab.simulate.workloads.job_columns import Unsaid
from topoplace_lab.simulate.workloads.trace_rows import TraceColumns

CONNECTIONS: Final = (100, 100_000)
"""Range of a job's number of data transfers, which no log contains; TSUBAME's simulation draws it (Table 1)."""
LARGEST: Final = 1 << 30
"""Largest count accepted in a log; larger ones are refused as mistakes."""


class LoggedJob(NamedTuple):
    """One job of a log. Times are in seconds.

    line: its line number. requested: run time limit that the user requested; NaN if the log does not contain it. nodes:
    number of machines.
    """

    line: int
    job_id: str
    submit: float
    run_time: float
    requested: float
    nodes: int
    gpus: int
    """GPUs per node; `cpus` and `memory_gb` are also per node."""
    cpus: int = 0
    memory_gb: float = 0.0


class LogColumns(TraceColumns):
    """The columns of a workload read from a log, including the run time limits that users requested (seconds)."""

    def __init__(self, unsaid: Unsaid, *, skip_bad_rows: bool = False) -> None:
        super().__init__(skip_bad_rows=skip_bad_rows)
        self.unsaid = unsaid
        self.requested: list[float] = []

    def add_logged(self, row: LoggedJob) -> None:
        """Append a job of the log; raise ValueError that names its line if its job graph would be invalid."""
        try:
            job = self.unsaid.logged_job(job_from_nodes(row.nodes, row.gpus, row.cpus, row.memory_gb))
        except ValueError as error:
            raise ValueError(f"line {row.line}: {error}") from None
        self.add(job, row.submit, row.run_time, row.job_id)
        self.requested.append(row.requested)


def add_jobs(columns: LogColumns, rows: Iterable[LoggedJob], *, without_gpus: bool) -> LogColumns:
    """Add the jobs of a log to columns, sorted by submission; jobs submitted at the same time keep their order.

    Jobs without GPUs are left out. without_gpus: keep those on one node that need CPUs or memory; a job graph without
    tasks can only be on one machine.
    """
    counter = columns.counter
    for row in sorted(rows, key=lambda row: row.submit):
        if row.gpus or (without_gpus and row.nodes == 1 and (row.cpus or row.memory_gb)):
            with counter.guarded():
                columns.add_logged(row)
        else:
            counter.skip("without GPUs")
    return columns


@lru_cache(maxsize=4096)
def job_from_nodes(nodes: int, gpus: int, cpus: int = 0, memory_gb: float = 0.0) -> JobGraph:
    """Return the job graph of a job with one process on each of `nodes` nodes; its tasks do not communicate.

    gpus, cpus, memory_gb: resources of each process. If `gpus` is 0, one process has the CPUs and memory of all nodes.
    Raises ValueError for more than `MAX_TASKS` GPUs in total, or if the job needs nothing.
    """
    if nodes * gpus > MAX_TASKS:
        raise ValueError(f"{nodes} nodes with {gpus} GPUs each, more than {MAX_TASKS} GPUs")
    if not gpus:
        return JobGraph.without_gpus(cpus=nodes * cpus or None, memory_gb=nodes * memory_gb or None)
    return JobGraph(  # the kernel's graph is built on first use
        nodes * gpus,
        (),
        "independent",
        processes=nodes,
        cpus=nodes * cpus or None,
        memory_gb=nodes * memory_gb or None,
    )


def estimated_transfers(jobs: Sequence[JobGraph], random: np.random.Generator) -> list[Transfers]:
    """Return an estimate of the data that each job sends per node (machine), as in Table 1 of the TSUBAME paper.

    The data between nodes and the data between GPUs each equal the requested memory. The numbers of transfers are
    drawn uniformly from the range `CONNECTIONS`.
    """
    low, high = CONNECTIONS
    drawn = random.integers(low, high + 1, size=(len(jobs), 2)).tolist()
    sizes = ((job.memory_gb or 0.0) / job.processes for job in jobs)
    return [Transfers(size, net, size, gpu) for size, (net, gpu) in zip(sizes, drawn, strict=True)]


def lines(text: Lines) -> Iterator[tuple[int, str]]:
    """Yield (line number from 1, text) of each line that is not blank.

    Lines end only at a newline: `str.splitlines` would also split at other characters that users write into logs.
    """
    for line, content in enumerate(text.split("\n") if isinstance(text, str) else lines_of(text), 1):
        if content.strip():
            yield line, content.removesuffix("\n")


def per_node(total: int, nodes: int) -> int:
    """Return the amount per node if `total` is divided among `nodes` nodes, rounded up."""
    return -(-total // nodes)


def seconds(text: str, line: int, field: str) -> float:
    """Return the number of seconds in a duration written as `[[[days:]hours:]minutes:]seconds`.

    Raises ValueError that names line, field and text for anything else.
    """
    total = 0.0
    parts = text.split(":")
    for part, unit in zip(reversed(parts), (1, 60, 3600, 86400), strict=False):
        total += _plain(part) * unit
    if len(parts) > 4 or not total <= MAX_NUMBER:
        raise ValueError(f"line {line}: {field} = {_checks.shown(text)}, not a duration like 24:00:00")
    return total


def _plain(text: str) -> float:
    """Return the number in a text of digits and at most one decimal point; NaN for any other text."""
    is_plain = text.isascii() and text.replace(".", "", 1).isdigit()
    return float(text) if is_plain else math.nan
