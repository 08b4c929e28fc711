"""`topoplace simulate` with several policies or seeds: the same jobs under each, with the best policy marked."""

from __future__ import annotations

import argparse
import contextlib
import io
import sys
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from topoplace import DEFAULT_POLICY
from topoplace.cli import snapshots, writing
from topoplace_lab.commands import study

if TYPE_CHECKING:
    from pathlib import Path

    from topoplace_lab.report.comparison import ComparisonRow
    from topoplace_lab.simulate import Result

_AS_RECORDED: Final = "Slurm, as recorded"


def compare(runs: study.Study, names: Sequence[str]) -> int:
    """Simulate the jobs under the policies called `names`, with every seed; print and write the comparison.

    Return the exit code.
    """
    from topoplace_lab.report import comparison, trace_blocks

    arguments = runs.arguments
    picture = writing.picture(arguments.output, "comparison.png")
    if runs.live:
        snapshots.print_notes(runs.live.notes)
    found = _Simulated(runs, names)
    is_one = runs.queue == "one"
    with_one_queue = () if is_one or arguments.make_room is not None else _with_one_queue(found)
    over_blocks = None if runs.seed_counts else trace_blocks.of_best(found.rows, found.results)
    sentence = comparison.conclusion(
        found.rows, have_one_queue=is_one, with_one_queue=with_one_queue, over_blocks=over_blocks
    )
    if arguments.json:
        writing.as_json(found.as_dicts())
    else:
        _print(found, sentence)
    for name, reason in found.set_aside.items():
        print(f"{name} is set aside: {reason}", file=sys.stderr)
    if picture:
        _draw(found, picture, arguments, sentence)
    return runs.exit_code(found.results_of_all_seeds)


def _with_one_queue(found: _Simulated) -> Sequence[ComparisonRow]:
    """Return the first and the best policy as they are with one queue; () if one of them cannot run so."""
    from topoplace_lab.report import comparison

    arguments, best = found.runs.arguments, sorted(comparison.best_of(found.rows))
    some = list(dict.fromkeys((found.names[0], *(found.names[i] for i in best[:1]))))
    try:
        again = _Simulated(study.Study(arguments, queue="one", live=found.runs.live), some)
    except ValueError:  # none of them can
        return ()
    return again.rows if again.names == some else ()


class _Simulated:
    """The jobs under several policies, with every seed."""

    def __init__(self, runs: study.Study, names: Sequence[str]) -> None:
        from topoplace_lab.report import comparison

        arguments, self.runs = runs.arguments, runs
        self.names, self.set_aside = list(names), dict[str, str]()
        """The policies that can run the jobs with every seed, and why others cannot."""
        by_seed: list[dict[str, Result]] = []
        for seed in range(arguments.seed, arguments.seed + arguments.seeds):
            if by_seed:
                others = argparse.Namespace(**vars(arguments) | {"seed": seed})
                with contextlib.redirect_stderr(io.StringIO()):  # the notes about the jobs are the same
                    runs = study.Study(others, queue=runs.queue, progress=False, live=runs.live)
            results, aside = runs.run_all(self.names)
            self.set_aside.update(aside)
            self.names = [name for name in self.names if name not in aside]
            by_seed.append(dict(zip(self.names, results, strict=True)))
        self.results = [by_seed[0][name] for name in self.names]
        """Those of the first seed."""
        self.results_of_all_seeds = [results[name] for results in by_seed for name in self.names]
        rows = [_compared([results[name] for name in self.names]) for results in by_seed]
        scenario = comparison.Scenario(self.runs.topology.name, "jobs", arguments.load)
        self.rows = [
            comparison.row_of(
                scenario, result.policy, [of_seed[i] for of_seed in rows], num_jobs=len(result.records)
            )
            for i, result in enumerate(self.results)
        ]
        self.keys = list(rows[0][0])

    def figures(self) -> list[dict[str, Any]]:
        """Return each policy with the mean of each figure, NaN for none."""
        return [{"policy": row.policy, **{key: row.mean(key) for key in self.keys}} for row in self.rows]

    def rejections(self) -> list[Counter[str]]:
        """Return for each policy how many jobs it rejects with all seeds together, by reason."""
        runs, count = self.results_of_all_seeds, len(self.names)
        return [
            sum((Counter(result.rejections()) for result in runs[i::count]), Counter[str]())
            for i in range(count)
        ]

    def figures_of_fewer_seeds(self) -> list[str]:
        """Return the figures of the table that some policy has with some seeds only."""
        seeds = self.runs.arguments.seeds
        return [
            key
            for key in _columns(self)
            if any(not row.equal_seeds and 0 < row.num_seeds_with(key) < seeds for row in self.rows)
        ]

    def as_dicts(self) -> list[dict[str, Any]]:
        """Return the figures and the rejections as JSON; with several seeds also the intervals."""
        found: list[dict[str, Any]] = []
        columns = (self.rows, self.figures(), self.results, self.rejections())
        for row, figures, result, rejections in zip(*columns, strict=True):
            intervals = {name: [sample.low, sample.high] for name, sample in row.samples.items()}
            seeds = self.runs.arguments.seeds
            several = {"seeds": seeds, "intervals": intervals} if seeds > 1 else {}
            live = {"rejected_jobs": _rejected(result)} if self.runs.live else {}
            found.append({**figures, **several, "rejections": dict(rejections), **live})
        if recorded := self.runs.recorded:
            silent = dict.fromkeys(self.keys) | {
                "makespan": recorded.makespan,
                "mean_wait": recorded.mean_wait,
            }
            found.append({"policy": _AS_RECORDED, **silent, "rejections": {}})
        return found


def _compared(results: Sequence[Result]) -> list[dict[str, float]]:
    """Return the figures of each policy, as `Result.compare` has them."""
    rows = results[0].compare(results[1:])
    return [{key: value for key, value in row.items() if key != "policy"} for row in rows]


def _print(found: _Simulated, sentence: str) -> None:
    """Print what follows, a row for policies with the same figures, the best marked by *, and how to read it."""
    from topoplace.drawing import tables
    from topoplace_lab.report import columns as measures
    from topoplace_lab.report import comparison

    runs, rows = found.runs, found.rows
    columns = _columns(found)
    winners = comparison.best_of(rows)
    if sentence:
        print(tables.plain(sentence))
    _print_table(found, winners)
    if winners:
        first = "fewest jobs rejected, then " if "rejected" in columns else ""
        print(f"* best: {first}lowest mean turnaround")
    if runs.live:
        print(
            "figures are of the waiting jobs, and count from now; running jobs keep their GPUs until they end"
        )
    if "speedup" in columns:
        print(f"speed-up: over {rows[0].policy}")
    if runs.arguments.seeds > 1:
        print(f"means over {runs.arguments.seeds} seeds, with their 95 % intervals")
        if fewer := found.figures_of_fewer_seeds():
            print(f"fewer seeds have data on {', '.join(measures.MEASURES[key].label for key in fewer)}")
    used = {row.policy: row.mean("utilization") for row in rows}
    for remark in (
        *measures.reasons_for_dashes(columns, found.figures()),
        *measures.remarks(columns, found.results_of_all_seeds),
        *measures.load_remark(runs.arguments.load, used),
    ):
        print(remark)
    _print_rejections(found)
    if runs.recorded:
        waited, makespan = map(tables.duration, (runs.recorded.mean_wait, runs.recorded.makespan))
        print(f"{_AS_RECORDED}: {runs.recorded.jobs} jobs, mean wait {waited}, makespan {makespan}")
    runs.about_jobs()


def _print_table(found: _Simulated, winners: set[int]) -> None:
    """Print a row for all policies with the same figures, and which these are."""
    from topoplace.drawing import tables

    headings, cells = _table(found, has_units=True)
    alike: dict[tuple[bool, tuple[str, ...]], list[int]] = {}
    for i, row in enumerate(cells):
        alike.setdefault((i in winners, tuple(row[1:])), []).append(i)
    for same in alike.values():
        same.sort(key=lambda i: (i != 0, found.rows[i].policy != DEFAULT_POLICY))
    firsts = [same[0] for same in alike.values()]
    colours = ["green" if i in winners else "" for i in firsts]
    tables.show(headings, [cells[i] for i in firsts], _title(found.runs), colours)
    names = [tables.plain(row.policy) for row in found.rows]
    for first, *others in alike.values():
        if others:
            print(f"same as {names[first]}: {', '.join(names[i] for i in others)}")


def _table(found: _Simulated, *, has_units: bool) -> tuple[list[str], list[list[str]]]:
    """Return the heads and the rows of the table, the best policies marked; `has_units` as for `cells_of`."""
    from topoplace_lab.report import columns as measures
    from topoplace_lab.report import comparison
    from topoplace_lab.sweeps import page

    columns, winners = _columns(found), comparison.best_of(found.rows)
    cells = [
        [f"{row.policy} *" if i in winners else row.policy, *page.cells_of(row, columns, has_units=has_units)]
        for i, row in enumerate(found.rows)
    ]
    return ["policy", *measures.heads(columns, has_units=has_units)], cells


def _columns(found: _Simulated) -> Sequence[str]:
    from topoplace_lab.simulate import MapaSlowdown

    runs = found.runs
    from topoplace_lab.report.columns import OF_COMMAND, OF_FAILURES, OF_LOG, OF_MAPA, OF_SERVICE

    columns: Sequence[str] = OF_SERVICE if runs.profile else OF_LOG if runs.is_log else OF_COMMAND
    if isinstance(runs.model, MapaSlowdown):
        columns = OF_MAPA
    if runs.failures:
        columns = (*columns, *OF_FAILURES)
    return (*columns, "rejected") if any(row.mean("rejected") for row in found.rows) else columns


def _draw(found: _Simulated, picture: Path, arguments: argparse.Namespace, sentence: str) -> None:
    """Draw the results of the first seed, and write a page and tables unless -o names one picture.

    sentence: what follows from the results.
    """
    from topoplace_lab.report import plots, written_tables
    from topoplace_lab.report.page import write_page

    plots.comparison(found.results, picture)
    if arguments.seeds > 1 and not arguments.json:
        print(f"{picture.name} shows seed {arguments.seed}")
    writing.wrote(picture, beside_json=arguments.json)
    if picture != arguments.output:
        about = picture.with_name("report.html")
        title = f"Policies on {found.runs.topology.name}"
        write_page(found.results_of_all_seeds, about, title=title, conclusion=sentence)
        for path in (
            about,
            *written_tables.write(*_table(found, has_units=False), picture.parent, "comparison"),
        ):
            writing.wrote(path, beside_json=arguments.json)


def _title(runs: study.Study) -> str:
    count = len(runs.workload)
    if runs.live is None:
        return f"{count} job{'s' * (count != 1)} on {runs.topology.name}"
    running = len(runs.live.cluster.allocations)
    return f"{count} waiting job{'s' * (count != 1)} on {runs.topology.name}, from now on, beside {running} running"


def _rejected(result: Result) -> dict[str, str]:
    """Return why each of the rejected jobs was rejected, by id."""
    return {record.job_id: record.rejected for record in result.records if record.rejected}


def _print_rejections(found: _Simulated) -> None:
    """Print why jobs were rejected: a line for each reason and the same jobs, with the policies for which it holds.

    Of a live cluster, they say which jobs, instead of how many.
    """
    from topoplace.drawing import tables

    policies: dict[tuple[str, str], list[str]] = {}
    for result, rejections in zip(found.results, found.rejections(), strict=True):
        for reason, count in rejections.items():
            ids = [job_id for job_id, why in _rejected(result).items() if why == reason]
            which = f"job{'s' * (count > 1)} {writing.first_of(ids)}" if found.runs.live else str(count)
            policies.setdefault((reason, which), []).append(result.policy)
    seeds = found.runs.arguments.seeds
    over = f" with {seeds} seeds together" if seeds > 1 else ""
    for (reason, which), names in policies.items():
        where = "all policies" if len(names) == len(found.results) else ", ".join(names)
        print(tables.plain(f"rejected {which}{over} under {where}: {reason}"))
