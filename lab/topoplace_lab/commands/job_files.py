"""Read files of jobs on the command line, with options for facts that their rows do not state."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import replace
from typing import IO, TYPE_CHECKING, Any

from topoplace._progress import Progress
from topoplace.cli import flags, options, reading

if TYPE_CHECKING:
    from topoplace.cluster.hosts import GivenHosts
    from topoplace.jobs.performance_profile import PerformanceProfile
    from topoplace.topology.topology import Topology
    from topoplace_lab.simulate import Workload
    from topoplace_lab.simulate.workloads.batch_systems.sacct import Recorded

_MISSING_COLUMNS = "line 1: columns = "
"""The text, in an error, about columns that a CSV file lacks."""
_FLAGS = {
    "pattern": "--pattern",
    "bandwidth_sensitive": "--sensitive",
    "duration": "--duration",
    "columns": "--map",
    "without_gpus": "--with-cpu-jobs",
    "gpus_per_node": "--gpus-per-node",
}
"""The options for facts that rows do not state, by the library's names."""


def add_reading(parser: argparse.ArgumentParser) -> None:
    """Add the options for the rows of a file of jobs."""
    parser.add_argument("--pattern", help="communication pattern of jobs whose rows state none, such as ring")
    parser.add_argument(
        "--sensitive",
        metavar="MODELS",
        help="which jobs are bandwidth-sensitive if their rows do not say so: those of these "
        "models, separated by commas, or all, or none (default: jobs with several GPUs)",
    )
    parser.add_argument(
        "--duration", type=float, metavar="SECONDS", help="run time of jobs whose rows state none"
    )
    parser.add_argument(
        "--map",
        action="append",
        default=[],
        metavar="FIELD=COLUMN",
        help="column names of a CSV trace, separated by commas, such as num_gpus=gpus,job_id=id",
    )
    parser.add_argument(
        "--with-cpu-jobs", action="store_true", help="keep jobs without GPUs that need CPUs or memory"
    )
    options.add_gpus_per_node(parser)
    parser.add_argument(
        "--skip-bad-rows", action="store_true", help="skip rows that cannot be read, and count them"
    )


def refuse_gpus_per_node(arguments: argparse.Namespace, jobs: str) -> None:
    """Raise ValueError if --gpus-per-node is given, as it has no effect here.

    jobs: the name of the jobs in the message, such as "a PBS log".
    """
    if arguments.gpus_per_node is not None:
        raise ValueError(f"--gpus-per-node is for logs in the Standard Workload Format, not for {jobs}")


def refuse_without_file(arguments: argparse.Namespace) -> None:
    """Raise ValueError if an option for rows is given without a file of jobs."""
    for name in ("sensitive", "duration", "map", "with_cpu_jobs", "skip_bad_rows"):
        if getattr(arguments, name) not in (None, [], False):
            raise ValueError(f"--{name.replace('_', '-')} needs --jobs, whose rows it is about")
    refuse_gpus_per_node(arguments, "the usual jobs")


def jobs_of(
    source: str, arguments: argparse.Namespace, profile: PerformanceProfile | None = None
) -> Workload:
    """Read the file of jobs `source`, or standard input for `-`, with the options of `add_reading`.

    If rows are skipped or fields not used, standard error says which. ValueError if there is no job.
    """
    from topoplace_lab.simulate import read_workload

    with (
        reading.errors_of(source),
        _columns_explained(),
        flags.named(**_FLAGS),
        reading.seekable(source) as file,
        Progress(f"reading {source}", fraction=_share_read(file)),
    ):
        read = read_workload(
            file,
            pattern=arguments.pattern,
            bandwidth_sensitive=_sensitive(arguments.sensitive),
            duration=arguments.duration,
            profile=profile,
            columns=_columns(arguments.map),
            without_gpus=arguments.with_cpu_jobs,
            gpus_per_node=arguments.gpus_per_node,
            cpus_per_node=getattr(arguments, "cpus", None),
            seed=getattr(arguments, "seed", None),
            skip_bad_rows=arguments.skip_bad_rows,
        )
    if not len(read):
        raise ValueError(f"{source}: contains no job{_why_none(read)}")
    if read.report and (read.report.skipped or read.report.unused):
        print(f"{source}: {read.report}", file=sys.stderr)
    return read


def _share_read(file: IO[Any]) -> Callable[[], float] | None:
    """Return what returns how much of `file` is read, 0 to 1; None for one that is kept in memory."""
    try:
        number = file.fileno()
        size = os.fstat(number).st_size
    except OSError:
        return None
    return lambda: min(1.0, os.lseek(number, 0, os.SEEK_CUR) / max(size, 1))


def recorded(source: str | None) -> Recorded | None:
    """Return Slurm's own results for the jobs of a dump of sacct; None for other files, and for standard input."""
    from topoplace_lab.simulate.workloads import packed
    from topoplace_lab.simulate.workloads.batch_systems import sacct

    if source in (None, "-"):
        return None
    with reading.errors_of(source), reading.seekable(source) as file, packed.opened(file) as text:
        return sacct.recorded(text.lines()) if sacct.recognised(text.head) else None


def print_assumed(jobs: Workload) -> None:
    """Print the assumptions about a file of jobs, unless standard error has them."""
    report = jobs.report
    if report and report.assumed and not (report.skipped or report.unused):
        print(options.one_line(f"assumed of the jobs: {', '.join(report.assumed)}"))


@contextmanager
def _columns_explained() -> Generator[None]:
    """Add to an error about missing columns how --map names others."""
    try:
        yield
    except ValueError as error:
        if _MISSING_COLUMNS not in str(error):
            raise
        raise ValueError(f"{error}; --map num_gpus=COLUMN names a column of another name") from None


def _why_none(read: Workload) -> str:
    return f" ({read.report})" if read.report and read.report.skipped else ""


def _sensitive(names: str | None) -> bool | list[str] | None:
    if names in ("all", "none"):
        return names == "all"
    return None if names is None else listed(names, "--sensitive")


def _columns(pairs: list[str]) -> dict[str, str]:
    found: dict[str, str] = {}
    for pair in (one for text in pairs for one in text.split(",")):
        field, _, column = (part.strip() for part in pair.partition("="))
        if not field or not column:
            raise ValueError(f"--map {pair!r}: must be FIELD=COLUMN, such as num_gpus=gpus")
        if found.setdefault(field, column) != column:
            raise ValueError(f"--map {pair!r}: {field} is also {found[field]}")
    return found


def listed(names: str | None, flag: str) -> list[str]:
    """Return the names in a list separated by commas, () for None; ValueError names the flag of an empty name."""
    found = [] if names is None else [name.strip() for name in names.split(",")]
    if not all(found):
        raise ValueError(f"{flag} {names!r}: a name is empty")
    return found


def machines(arguments: argparse.Namespace) -> tuple[Topology, GivenHosts]:
    """Return the topology that TOPO names, and the CPUs and memory of its machines.

    CPUs and memory are those of --cpus and --memory-gb, else those in the file (nodes of a trace), else unlimited.
    """
    from topoplace import discovery
    from topoplace_lab.research import trace_nodes

    source, given = arguments.topology, reading.hosts(arguments)
    if reading.is_built_in(source) or (source != "-" and not os.path.exists(source)):
        return reading.topology(arguments), given
    data = reading.topology_data(source)
    found = reading.with_gpus(reading.parsed(source, arguments, data=data), source)
    with reading.errors_of(source):
        is_list = discovery.format_of(data).module == trace_nodes.__name__
        own = trace_nodes.read_nodes(data).hosts if is_list else ()
    stated = {
        name: getattr(given, name) for name in ("cpus", "memory_gb") if getattr(arguments, name) is not None
    }
    return found, [replace(one, **stated) for one in own] or given


def log(text: str, arguments: argparse.Namespace) -> Workload | None:
    """Return the jobs in `text` if it is the log of a batch system (SWF or PBS), else None.

    ValueError if the log cannot be read, or contains no job that ran and had GPUs.
    """
    from topoplace_lab.simulate import Workload
    from topoplace_lab.simulate.workloads import pbs, swf

    skip = getattr(arguments, "skip_bad_rows", False)
    if swf.recognised(text):
        jobs = Workload.from_swf(
            text,
            gpus_per_node=arguments.gpus_per_node or options.GPUS_PER_NODE,
            cpus_per_node=getattr(arguments, "cpus", None),
            seed=arguments.seed,
            skip_bad_rows=skip,
        )
    elif pbs.recognised(text):
        refuse_gpus_per_node(arguments, "a PBS log, which has the GPUs of its jobs")
        jobs = Workload.from_pbs(text, seed=arguments.seed, skip_bad_rows=skip)
    else:
        return None
    if not len(jobs):
        raise ValueError("the log has no job that ran and had GPUs")
    return jobs
