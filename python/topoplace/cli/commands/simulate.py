"""`topoplace simulate` simulates a queue of jobs under one policy."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from topoplace.cli import flags, job_files, options, study, writing

if TYPE_CHECKING:
    from pathlib import Path

    from topoplace.experiments.simulate import Result

_SCHEDULE, _FRAGMENTS = "gantt.png", "fragmentation.png"


def add(commands: Any) -> None:
    """Add `topoplace simulate` and its arguments to the command line."""
    parser = options.command(
        commands,
        "simulate",
        "run a queue of jobs under one policy",
        _run,
        examples=[
            "topoplace simulate torus2d-16 --policy topo-aware -o pictures",
            "topoplace simulate cluster.json --jobs trace.csv --backfill easy --save result.csv",
        ],
        negative="no job ran, as all were rejected",
    )
    options.add_topology(parser)
    options.add_policy(parser)
    study.add_workload(parser)
    parser.add_argument(
        "--save",
        metavar="FILE",
        type=options.path,
        help="write the whole result to FILE.parquet or FILE.csv; Result.load reads it",
    )


def _run(arguments: argparse.Namespace) -> int:
    from topoplace import policies
    from topoplace.experiments.simulate.storage import tables

    with flags.named(name="--policy"):
        policies.get(arguments.policy)
    runs = study.Study(arguments)
    picture = writing.picture(arguments.output, _SCHEDULE)
    if arguments.save:
        with flags.named(path="--save"):
            tables.form_of(writing.file(arguments.save, "--save", _inputs(arguments)))
    result = runs.run(arguments.policy)
    if arguments.json:
        rows = runs.workload.report
        writing.as_json(
            {
                "topology": result.topology.name,
                "policy": result.policy,
                **result.summary(),
                "rejections": result.rejections(),
                **({} if rows is None else {"rows": rows.to_dict()}),
            }
        )
    else:
        _print(result, arguments.load)
        job_files.print_assumed(runs.workload)
    if arguments.save:
        try:
            result.save(arguments.save)
        except OSError as error:  # which may name the file that is written first
            raise ValueError(f"--save {arguments.save}: {error.strerror or error}") from None
        writing.wrote(arguments.save, beside_json=arguments.json)
    if picture:
        for drawn in _draw(result, runs, picture):
            writing.wrote(drawn, beside_json=arguments.json)
    return runs.exit_code([result])


def _inputs(arguments: argparse.Namespace) -> list[tuple[str, str | None]]:
    """Return the arguments that may name files to read, and their values."""
    flags_of = {"topology": "TOPO", "jobs": "--jobs", "typical": "--typical", "profile": "--profile"}
    return [(flag, getattr(arguments, name)) for name, flag in flags_of.items()]


def _draw(result: Result, runs: study.Study, picture: Path) -> Iterator[Path]:
    """Draw which job held which GPU when, and how fragmented the GPUs were that were left; yield each picture's path.

    If -o names one picture, draw only the first.
    """
    from topoplace.experiments.report import plots
    from topoplace.experiments.simulate import fragmentation_series

    result.gantt(picture)
    yield picture
    if picture != runs.arguments.output:
        fragments = picture.with_name(_FRAGMENTS)
        series = fragmentation_series(result, runs.typical, hosts=runs.hosts)
        plots.fragmentation(series, fragments, of=f"{result.policy} on {result.topology.name}")
        yield fragments


def _print(result: Result, load: float | None) -> None:
    from topoplace.experiments.report import measures, tables

    summary = result.summary()
    rows = [
        (measure.label, measure.text(summary[key]), "" if measure.is_time else measure.unit)
        for key, measure in measures.MEASURES.items()
        if key in summary
    ]
    title = f"{len(result.jobs)} jobs on {result.topology.name}, {result.policy}"
    tables.show(("measure", "value", "unit"), rows, title)
    used = {result.policy: summary["utilization"]}
    for line in (
        *measures.reasons_for_dashes(summary, [summary]),
        *measures.remarks(summary, [result]),
        *measures.load_remark(load, used),
    ):
        print(line)
    for reason, count in result.rejections().items():
        print(tables.plain(f"rejected {count}: {reason}"))
