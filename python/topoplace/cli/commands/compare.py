"""`topoplace compare` simulates the same jobs under several policies, and marks the best."""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from topoplace.cli import flags, job_files, options, study, writing

if TYPE_CHECKING:
    from topoplace.experiments.simulate import Result

# The columns: keys of a row of `Result.compare`.
_COMPARED = (
    *("policy", "makespan", "utilization", "mean_wait", "sensitive_run_time_p75"),
    *("sensitive_effective_bandwidth_p50", "speedup", "sensitive_p75_speedup"),
)
# For job logs, which do not contain how jobs communicate.
_LOGGED = ("policy", "makespan", "utilization", "mean_wait", "mean_slowdown", "mean_slowdown_with_wait")
# With a performance profile, which contains how jobs slow each other down (SC'17).
_SERVICE = (
    *("policy", "makespan", "utilization", "nvlink_use", "mean_wait", "mean_slowdown"),
    *("mean_slowdown_with_wait", "mean_utility", "slo_violations"),
)
_ABOUT_EQUAL = 0.01
"""Makespans whose difference is at most this fraction count as equal."""


def add(commands: Any) -> None:
    """Add `topoplace compare` and its arguments to the command line."""
    parser = options.command(
        commands,
        "compare",
        "run the same jobs under several policies, side by side",
        _run,
        examples=[
            "topoplace compare torus2d-16 -o pictures",
            "topoplace compare dgx1-v100 --jobs trace.csv --policies baseline,mapa-preserve --json",
        ],
        negative="no job ran under any policy, as all were rejected",
    )
    options.add_topology(parser)
    parser.add_argument(
        "--policies",
        help="comma-separated names of policies (default: all; for whole GPUs of one machine, those that know links)",
    )
    study.add_workload(parser)


def _run(arguments: argparse.Namespace) -> int:
    from topoplace import policies
    from topoplace.experiments.report import measures

    named = [] if arguments.policies is None else job_files.listed(arguments.policies, "--policies")
    for name in named:
        if named.count(name) > 1:
            raise ValueError(f"--policies {arguments.policies!r}: {name} is given twice")
        with flags.named(name="--policies"):
            policies.get(name)  # report an unknown name before the first run
    runs = study.Study(arguments)
    names = named or policies.names(sharing=None if runs.may_share else False)
    picture = writing.picture(arguments.output, "comparison.png")
    results, set_aside = runs.run_all(names)
    rows = results[0].compare(results[1:])
    if arguments.json:
        writing.as_json(
            [row | {"rejections": result.rejections()} for row, result in zip(rows, results, strict=True)]
        )
    else:
        columns = _SERVICE if runs.profile else _LOGGED if runs.is_log else _COMPARED
        _print(rows, columns, f"{len(runs.workload)} jobs on {runs.topology.name}")
        used = {row["policy"]: row["utilization"] for row in rows}
        for remark in (*measures.remarks(columns, results), *measures.load_remark(arguments.load, used)):
            print(remark)
        _print_rejections(results)
        job_files.print_assumed(runs.workload)
    for name, reason in set_aside.items():
        print(f"{name} is set aside: {reason}", file=sys.stderr)
    if picture:
        from topoplace.experiments.report import plots
        from topoplace.experiments.report.page import write_page

        plots.comparison(results, picture)
        writing.wrote(picture, beside_json=arguments.json)
        if picture != arguments.output:
            about = picture.with_name("report.html")
            write_page(results, about, title=f"Policies on {runs.topology.name}")
            writing.wrote(about, beside_json=arguments.json)
    return study.exit_code(results)


def _print(rows: Sequence[dict[str, Any]], columns: Sequence[str], title: str) -> None:
    """Print a row per policy with the best marked by *, and how to read the columns."""
    from topoplace.experiments.report import measures, tables

    if any(row["rejected"] for row in rows):
        columns = (*columns, "rejected")
    winners = _best(rows)
    cells = [
        [f"{row['policy']} *" if i in winners else row["policy"]]
        + [measures.shown(key, row) for key in columns[1:]]
        for i, row in enumerate(rows)
    ]
    headings = ["policy", *(measures.MEASURES[key].heading for key in columns[1:])]
    colours = ["green" if i in winners else "" for i in range(len(rows))]
    tables.show(headings, cells, title, colours)
    if winners:
        first = "fewest jobs rejected, then " if "rejected" in columns else ""
        print(f"* best: {first}lowest makespan; of those within 1 %, lowest mean wait")
    if "speedup" in columns:
        print(f"speed-up: over {rows[0]['policy']}")
    for reason in measures.reasons_for_dashes(columns, rows):
        print(reason)


def _best(rows: Sequence[dict[str, Any]]) -> set[int]:
    """Return the indices of the best rows by the rule that `_print` explains; none without two, or if no job ran."""
    fewest = min(row["rejected"] for row in rows)
    left = [i for i, row in enumerate(rows) if row["rejected"] == fewest and not math.isnan(row["makespan"])]
    if len(rows) < 2 or not left:
        return set()
    shortest = min(rows[i]["makespan"] for i in left)
    left = [i for i in left if rows[i]["makespan"] <= shortest * (1 + _ABOUT_EQUAL)]
    least_wait = min(rows[i]["mean_wait"] for i in left)
    return {i for i in left if rows[i]["mean_wait"] == least_wait}


def _print_rejections(results: Sequence[Result]) -> None:
    """Print why jobs were rejected: a line for each reason and number of jobs, with the policies for which it holds."""
    from topoplace.experiments.report import tables

    policies: dict[tuple[str, int], list[str]] = {}
    for result in results:
        for reason, count in result.rejections().items():
            policies.setdefault((reason, count), []).append(result.policy)
    for (reason, count), names in policies.items():
        where = "all policies" if len(names) == len(results) else ", ".join(names)
        print(tables.plain(f"rejected {count} under {where}: {reason}"))
