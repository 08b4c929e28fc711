"""`topoplace sweep suite` rates policies, and your own, on a fixed set of machines, clusters and workloads."""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from topoplace.cli import flags, options, reading, writing
from topoplace_lab.commands import job_files, sweeping

if TYPE_CHECKING:
    from topoplace_lab.suite import Score


def add(commands: Any) -> None:
    """Add `topoplace sweep suite` and its arguments to the command line."""
    parser = options.command(
        commands,
        "sweep suite",
        "judge policies, and yours, on a fixed set of machines and workloads",
        _run,
        examples=["topoplace sweep suite --policy my_policies:Mine --quick -o results"],
    )
    parser.add_argument(
        "--policy",
        metavar="PACKAGE.MODULE:CLASS",
        help="your own policy, in a module that Python can import; it is rated next to the others",
    )
    parser.add_argument(
        "--policies",
        help="comma-separated names of the others (default: those of each kind that differ); the reference is always "
        "one of them",
    )
    parser.add_argument(
        "--quick",
        action="store_true",
        help="run only a few cells with one seed, to check that a policy works: too few to judge by",
    )
    parser.add_argument(
        "--performance",
        metavar="PACKAGE.MODULE:OBJECT",
        default="",
        help="another model of run times than StepTime, such as topoplace_lab.simulate:MapaSlowdown",
    )
    parser.add_argument(
        "--traces",
        metavar="FILE",
        nargs="+",
        type=options.path,
        default=(),
        help="files of jobs, such as Philly's or openb's: slices of them are held out, and say whether the order of "
        "the policies holds for jobs that the table does not have",
    )
    sweeping.add_options(parser)
    parser.add_argument(
        "--write",
        metavar="FILE",
        type=options.path,
        help="also write the table between the marks of FILE, such as benchmarks/suite.txt",
    )


def _run(arguments: argparse.Namespace) -> None:
    from topoplace_lab import suite
    from topoplace_lab.report import written_tables
    from topoplace_lab.simulate.performance import given_models
    from topoplace_lab.suite import document, page

    names = _names(arguments)
    if arguments.performance:
        with reading.errors_of("--performance"):
            given_models.model_named(arguments.performance)
    for path in arguments.traces:
        with flags.of_file(path), path.open("rb") as file:
            file.read(1)
    plan = suite.plan(
        names, traces=arguments.traces, quick=arguments.quick, performance=arguments.performance
    )
    if arguments.write:
        if not os.access(arguments.write, os.W_OK) or not arguments.write.is_file():
            raise ValueError(f"--write {arguments.write}: not a file that can be written")
        with flags.of_file(arguments.write), reading.errors_of(str(arguments.write)):
            document.split(arguments.write)
    run = sweeping.SweepRun(arguments, plan, suite.simulate)
    scores = suite.scores_of(plan, run.outcomes)
    written = [run.write_table("suite"), run.folder / "suite.html"]
    page.write(plan, run.outcomes, scores, written[1])
    written += written_tables.write(document.heads(), document.lines(scores), run.folder, "scores")
    if arguments.write:
        document.write(arguments.write, plan, run.outcomes, scores)
        written.append(arguments.write)
    conclusions = document.conclusions(plan, run.outcomes, scores)
    if arguments.json:
        writing.as_json([_as_dict(score) for score in scores])
    else:
        _print(scores, conclusions)
    for path in written:
        writing.wrote(path, beside_json=arguments.json)
    if all(score.failed for score in scores):
        raise SystemExit(1)


def _names(arguments: argparse.Namespace) -> list[str]:
    """Return the names of all policies: the reference, those of --policies, and that of --policy."""
    from topoplace import policies
    from topoplace_lab import suite

    given = (
        suite.POLICIES if arguments.policies is None else job_files.listed(arguments.policies, "--policies")
    )
    for name, flag in ((arguments.policy, "--policy"), *((name, "--policies") for name in given)):
        if name is not None:
            with flags.named(name=flag):
                policies.get(name)
    own = () if arguments.policy is None else (arguments.policy,)
    return list(dict.fromkeys((suite.REFERENCE, *given, *own)))


def _as_dict(score: Score) -> dict[str, Any]:
    known = {name: score.interval(name) for name in score.cells}
    measures = {
        name: dict(zip(("mean", "low", "high"), found, strict=True)) for name, found in known.items() if found
    }
    failed = [{**scenario._asdict(), "why": why} for scenario, why in score.failed.items()]
    return {"policy": score.policy, "measures": measures, "failed": failed}


def _print(scores: Sequence[Score], conclusions: Sequence[str]) -> None:
    """Print the conclusions and the table, and why policies fail."""
    from topoplace.drawing import tables
    from topoplace_lab import suite
    from topoplace_lab.suite import document

    for sentence in conclusions:
        print(tables.plain(sentence))
    tables.show(document.heads(), document.lines(scores), f"suite version {suite.VERSION}")
    print(
        f"turnaround, rings and max-min are ratios to {suite.REFERENCE}, ± half of the 95 % interval over the seeds "
        "within scenarios"
    )
    for score in scores:
        for why in dict.fromkeys(score.failed.values()):
            print(tables.plain(f"{score.policy} fails: {why}"))
