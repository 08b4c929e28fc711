"""`topoplace trace` describes the jobs in a file before they run: sizes, gaps, run times, load."""

from __future__ import annotations

import argparse
from typing import Any

from topoplace.cli import options, writing
from topoplace_lab.commands import job_files


def add(commands: Any) -> None:
    """Add `topoplace trace` and its arguments to the command line."""
    parser = options.command(
        commands,
        "trace",
        "describe the jobs in a file: sizes, load, gaps",
        _run,
        examples=["topoplace trace trace.csv", "topoplace trace cluster.swf --gpus-per-node 4 --json"],
    )
    parser.add_argument(
        "file",
        metavar="FILE",
        help="jobs in any format of `topoplace simulate --jobs`, or - for standard input",
    )
    job_files.add_reading(parser)
    options.add_json(parser)
    options.add_output(parser)


def _run(arguments: argparse.Namespace) -> None:
    from topoplace_lab.report import trace_figures

    picture = writing.picture(arguments.output, "trace.png")
    workload = job_files.jobs_of(arguments.file, arguments)
    figures = trace_figures.described(workload)
    if arguments.json:
        report = workload.report
        writing.as_json(figures | ({} if report is None else {"rows": report.to_dict()}))
    else:
        _print(figures, arguments.file)
        job_files.print_assumed(workload)
    if picture:
        from topoplace_lab.report import plots

        plots.trace(workload, picture)
        writing.wrote(picture, beside_json=arguments.json)


def _print(figures: dict[str, Any], source: str) -> None:
    from topoplace.drawing import tables

    jobs, hours = figures["jobs"], figures["gpu_hours"]
    counted = {
        "without_gpus": "without GPUs",
        "shared": "with shares of GPUs",
        "sensitive": "bandwidth sensitive",
        "single_machine": "on one machine",
    }
    rows: list[tuple[str, object, str]] = [
        ("jobs", jobs, ""),
        *((f"jobs {label}", figures[key], "") for key, label in counted.items() if figures[key]),
        *((f"jobs that need {model}", count, "") for model, count in list(figures["models"].items())[:8]),
        ("submitted over", figures["span"] / 3600, "h"),
        ("GPU hours", hours, ""),
        ("mean GPUs if no job waited", figures["mean_gpus"], ""),
        ("most GPUs if no job waited", figures["peak_gpus"], ""),
        ("variation of gaps", figures["gaps"]["variation"], ""),
    ]
    tables.show(("figure", "value", "unit"), rows, source)
    print()
    spreads = [(name, *figures[key].values()) for key, name in (("gaps", "gap"), ("run_time", "run time"))]
    tables.show(("s", "mean", "min", "p50", "p90", "p99", "max"), [row[:7] for row in spreads])
    print()
    sizes = [
        (size, int(one["jobs"]), 100 * one["jobs"] / jobs, 100 * one["gpu_hours"] / hours if hours else 0.0)
        for size, one in figures["sizes"].items()
    ]
    tables.show(("GPUs", "jobs", "% of jobs", "% of GPU hours"), sizes)
