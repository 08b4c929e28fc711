"""Jobs as batch systems log them: so many nodes, and what each of them is to have."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from typing import Final, NamedTuple

import numpy as np

from topoplace import _checks
from topoplace.jobs.job_graph import MAX_TASKS, JobGraph
from topoplace.simulate.performance.transfers import Transfers
from topoplace.simulate.workloads.trace_csv import Columns
from topoplace.text_formats.csv_rows import MAX_NUMBER

CONNECTIONS: Final = (100, 100_000)
"""Between these are the numbers of connections that no log tells, and that TSUBAME's simulation draws (Table 1)."""
LARGEST: Final = 1 << 30
"""A count above this is refused, as a mistake."""


class LoggedJob(NamedTuple):
    """One job of a log; times in seconds, `requested` NaN where the log does not tell."""

    line: int
    job_id: str
    submit: float
    run_time: float
    requested: float
    nodes: int
    gpus: int
    """Of each node, as `cpus` and `memory_gb`."""
    cpus: int = 0
    memory_gb: float = 0.0


class LogColumns(Columns):
    """The columns of a workload read from a log."""

    def __init__(self) -> None:
        super().__init__()
        self.requested: list[float] = []

    def add_logged(self, row: LoggedJob) -> None:
        """One row more."""
        try:
            job = job_from_nodes(row.nodes, row.gpus, row.cpus, row.memory_gb)
        except ValueError as error:
            raise ValueError(f"line {row.line}: {error}") from None
        self.add(job, row.submit, row.run_time, row.job_id)
        self.requested.append(row.requested)


def columns_of(rows: Iterable[LoggedJob], *, without_gpus: bool) -> LogColumns:
    """The jobs in order of submission, those of the same time as they were logged.

    without_gpus: keep jobs without GPUs that are on one node (a job graph without tasks is on one machine) and need
    CPUs or memory; else there are none of them.
    """
    columns = LogColumns()
    for row in sorted(rows, key=lambda row: row.submit):
        if row.gpus or (without_gpus and row.nodes == 1 and (row.cpus or row.memory_gb)):
            columns.add_logged(row)
    return columns


@lru_cache(maxsize=4096)
def job_from_nodes(nodes: int, gpus: int, cpus: int = 0, memory_gb: float = 0.0) -> JobGraph:
    """A job of a process on each of `nodes` nodes with so much of each for every process; tasks do not talk.

    ValueError for more than `MAX_TASKS` GPUs.
    """
    if nodes * gpus > MAX_TASKS:
        raise ValueError(f"{nodes} nodes with {gpus} GPUs each, more than {MAX_TASKS} GPUs")
    if not gpus:
        return JobGraph.without_gpus(cpus=nodes * cpus or None, memory_gb=nodes * memory_gb or None)
    return JobGraph(  # whose graph is built when somebody asks for it
        nodes * gpus,
        (),
        "independent",
        processes=nodes,
        cpus=nodes * cpus or None,
        memory_gb=nodes * memory_gb or None,
    )


def estimated_transfers(jobs: Sequence[JobGraph], random: np.random.Generator) -> list[Transfers]:
    """What each job sends per node, as Table 1 of the TSUBAME paper estimates it: as much data as memory is requested,
    between its nodes and again between its GPUs, in as many connections as a uniform draw of `CONNECTIONS` says."""
    low, high = CONNECTIONS
    drawn = random.integers(low, high + 1, size=(len(jobs), 2)).tolist()
    sizes = ((job.memory_gb or 0.0) / job.processes for job in jobs)
    return [Transfers(size, net, size, gpu) for size, (net, gpu) in zip(sizes, drawn, strict=True)]


def lines(text: str) -> Iterator[tuple[int, str]]:
    """The number and the text of each line that is not blank; what users wrote into a line may hold any character
    but its end, so that `str.splitlines` would cut some of them in two."""
    for line, content in enumerate(text.split("\n"), 1):
        if content.strip():
            yield line, content


def per_node(total: int, nodes: int) -> int:
    """The share of each node in a total, rounded up."""
    return -(-total // nodes)


def seconds(text: str, line: int, field: str) -> float:
    """A duration as `[[[days:]hours:]minutes:]seconds`; ValueError names the line, the field and the text."""
    total = 0.0
    parts = text.split(":")
    for part, unit in zip(reversed(parts), (1, 60, 3600, 86400), strict=False):
        total += _plain(part) * unit
    if len(parts) > 4 or not total <= MAX_NUMBER:
        raise ValueError(f"line {line}: {field} = {_checks.shown(text)}, not a duration like 24:00:00")
    return total


def _plain(text: str) -> float:
    """A number of digits and at most a point; NaN for any other text."""
    is_plain = text.isascii() and text.replace(".", "", 1).isdigit()
    return float(text) if is_plain else math.nan
