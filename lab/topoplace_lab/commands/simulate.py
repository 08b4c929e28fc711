"""`topoplace simulate` simulates a queue of jobs: one policy in detail, or several side by side."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from topoplace.cli import flags, options, snapshots, writing
from topoplace_lab.commands import comparing, job_files, live_cluster, study
from topoplace_lab.policies import USUAL, USUAL_FOR_SHARES

if TYPE_CHECKING:
    from pathlib import Path

    from topoplace_lab.simulate import Result

_SCHEDULE, _FRAGMENTS = "gantt.png", "fragmentation.png"
_MOST_SEEDS = 1000
_ALL = "all"
_OF_OTHER_JOBS = (
    *("jobs", "num_jobs", "load", "pattern", "sensitive", "map", "with_cpu_jobs", "gpus_per_node"),
    *("skip_bad_rows", "cpus", "memory_gb", "profile"),
)
"""Options about jobs and machines that do not apply to a snapshot."""
_OF_TOPOLOGY = ("gpu_model", "assume", "assume_no_nvlink")


def add(commands: Any) -> None:
    """Add `topoplace simulate` and its arguments to the command line."""
    parser = options.command(
        commands,
        "simulate",
        "run a queue of jobs: one policy in detail, or several side by side",
        _run,
        examples=[
            "topoplace simulate torus2d-16 -o pictures",
            "topoplace simulate dgx1-v100 --jobs trace.csv --policies baseline,mapa-preserve --json",
            "topoplace simulate cluster.json --policy topo-aware --save result.csv",
            "topoplace simulate --from-live scontrol.txt --policies baseline,least-time",
        ],
        negative="no job ran under any policy, as all were rejected",
    )
    options.add_topology(parser, without="with --from-live, by default what FILE says of nodes")
    parser.add_argument(
        "--from-live",
        metavar="FILE",
        nargs="+",
        help="simulate what comes next on a cluster: its waiting jobs, beside its running ones. FILE is "
        f"{snapshots.FILES_HELP}",
    )
    parser.add_argument(
        "--policies",
        "--policy",
        metavar="POLICIES",
        action=options.Once,
        help=f"one policy, several separated by commas, or {_ALL} (default: the lowest free ids, least-time, and three "
        "of schedulers in use; for shares of GPUs, two more)",
    )
    study.add_workload(parser)
    options.add_count(
        parser, "--seeds", 1, "number of seeds, from --seed on: means over them, with intervals", _MOST_SEEDS
    )
    parser.add_argument(
        "--save",
        metavar="FILE",
        type=options.path,
        help="write the whole result of one policy to FILE.parquet or FILE.csv; Result.load reads it",
    )


def _run(arguments: argparse.Namespace) -> int:
    named = _named(arguments.policies)
    is_one = len(named) == 1 and arguments.seeds == 1 and arguments.from_live is None
    if arguments.save:
        _check_save(arguments, is_one=is_one)
    runs = study.Study(arguments, live=_live(arguments))
    if arguments.seeds > 1 and not runs.seed_counts:
        from topoplace_lab.report import trace_blocks

        raise ValueError(
            f"--seeds {arguments.seeds}: seeds change nothing, as the jobs are all in the file; of "
            f"{trace_blocks.FEWEST_JOBS} jobs and more, the interval over blocks of them is printed"
        )
    if is_one:
        return _run_one(runs, named[0])
    return comparing.compare(
        runs, named or _usual(is_all=arguments.policies == _ALL, may_share=runs.may_share)
    )


def _check_save(arguments: argparse.Namespace, *, is_one: bool) -> None:
    """Raise ValueError if the result cannot be written where --save says."""
    from topoplace_lab.simulate.storage import tables

    if not is_one:
        raise ValueError(
            f"--save {arguments.save}: holds what one policy does with one seed: name one with --policy, without "
            "--seeds and --from-live"
        )
    with flags.named(path="--save"):
        tables.form_of(writing.file(arguments.save, "--save", _inputs(arguments)))


def _named(given: str | None) -> list[str]:
    """Return the names in --policies after checking them; an empty list if none are given, and for "all"."""
    from topoplace import policies

    if given in (None, _ALL):
        return []
    flag = "--policies" if "," in given else "--policy"
    names = job_files.listed(given, flag)
    if _ALL in names:
        raise ValueError(f"{flag} {given!r}: {_ALL} stands alone")
    for name in names:
        if names.count(name) > 1:
            raise ValueError(f"{flag} {given!r}: {name} is given twice")
        with flags.named(name=flag):
            policies.get(name)  # report an unknown name before the first run
    return names


def _usual(*, is_all: bool, may_share: bool) -> Sequence[str]:
    """Return the policies to compare if none is named."""
    from topoplace import policies

    if is_all:
        return policies.names(sharing=None if may_share else False)
    return (*USUAL, *USUAL_FOR_SHARES) if may_share else USUAL


def _live(arguments: argparse.Namespace) -> live_cluster.LiveCluster | None:
    """Return the cluster of --from-live; None without it, and ValueError if TOPO is missing then."""
    if arguments.from_live is None:
        if arguments.topology is None:
            raise ValueError(
                "TOPO is missing: name a topology, or give the files of a cluster with --from-live"
            )
        return None
    if flag := _given(_OF_OTHER_JOBS, arguments):
        raise ValueError(f"{flag}: with --from-live, the files say which jobs and machines there are")
    if arguments.topology is None and (flag := _given(_OF_TOPOLOGY, arguments)):
        raise ValueError(f"{flag} is about TOPO, which is not given")
    if arguments.make_room is not None:
        raise ValueError("--make-room: with --from-live, running jobs keep their GPUs")
    if arguments.failures is not None:
        raise ValueError("--failures: with --from-live, running jobs have no known work that could be lost")
    if arguments.order == "priority":
        raise ValueError("--order priority: with --from-live, jobs are in the scheduler's order already")
    return live_cluster.live_cluster(arguments.from_live, arguments)


def _given(names: Sequence[str], arguments: argparse.Namespace) -> str:
    """Return the first of these options that is given, "" for none."""
    given = (name for name in names if getattr(arguments, name) not in (None, [], False))
    return next((f"--{name.replace('_', '-')}" for name in given), "")


def _run_one(runs: study.Study, policy: str) -> int:
    """Simulate the jobs under one policy; print and write the result, and return the exit code."""
    arguments = runs.arguments
    picture = writing.picture(arguments.output, _SCHEDULE)
    result = runs.run(policy)
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
        runs.about_jobs()
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
    from topoplace_lab.report import plots
    from topoplace_lab.simulate import fragmentation_series

    result.gantt(picture)
    yield picture
    if picture != runs.arguments.output:
        fragments = picture.with_name(_FRAGMENTS)
        series = fragmentation_series(result, runs.typical, hosts=runs.hosts)
        plots.fragmentation(series, fragments, of=f"{result.policy} on {result.topology.name}")
        yield fragments


def _print(result: Result, load: float | None) -> None:
    from topoplace.drawing import tables
    from topoplace_lab.report import columns

    summary = result.summary()
    keys = columns.shown(summary)
    rows = [
        (measure.label, measure.text(summary[key]), "" if measure.is_time else measure.unit)
        for key in keys
        for measure in (columns.MEASURES[key],)
    ]
    title = f"{len(result.jobs)} jobs on {result.topology.name}, {result.policy}"
    tables.show(("measure", "value", "unit"), rows, title)
    used = {result.policy: summary["utilization"]}
    for line in (
        *columns.reasons_for_dashes(keys, [summary]),
        *columns.remarks(summary, [result]),
        *columns.load_remark(load, used),
    ):
        print(line)
    for reason, count in result.rejections().items():
        print(tables.plain(f"rejected {count}: {reason}"))
