"""Reproduction of the simulation of TSUBAME 2.5's GPU queue without remote GPUs (G queue) and with them (R queue).

The paper's job log of 2013 is not public: `generator` makes a similar one, and you can use your own log instead.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from topoplace_lab.papers.claims import PaperClaim
from topoplace_lab.papers.seeds import QUICK_SEEDS, SEEDS
from topoplace_lab.papers.tsubame import congestion, rows, schedules
from topoplace_lab.papers.tsubame.study import (
    G_QUEUE,
    NODES,
    R_QUEUE,
    Floats,
    GeneratedLog,
    GivenLog,
    StudyOutcome,
    TsubameStudy,
    run,
)
from topoplace_lab.simulate import Workload
from topoplace_lab.simulate.processes import Runner

__all__ = ["reproduce"]

_DAYS = 365
_QUICK_DAYS = 10
_QUICK_JOBS = 400


def reproduce(
    *,
    quick: bool = False,
    seed: int = 0,
    log: Workload | None = None,
    nodes: int = NODES,
    output: Path | None = None,
    runner: Runner | None = None,
) -> list[PaperClaim]:
    """Compare the paper's numbers with our simulations; return one row per quantity, in the order of the paper.

    quick: three logs of ten days instead of ten logs of a year. For the congested queue, three lists of 400 jobs
    instead of ten of 1,000.
    seed: seed of the first generated log, and of the first job list.
    log: jobs that replace the generated logs, for example from `Workload.from_pbs`; None generates them. Rows that do
    not depend on a log are left out. ValueError if it is empty, or if no job of it fits on the nodes.
    nodes: number of nodes of the cluster; the smaller clusters of Table 3 shrink in proportion.
    output: an existing directory for plots. runner: how simulations run, by default one after another.
    """
    runner = runner or Runner()
    seeds = range(seed, seed + (QUICK_SEEDS if quick else SEEDS))
    days = _QUICK_DAYS if quick else _DAYS
    study = TsubameStudy(
        [GivenLog(log)] if log is not None else [GeneratedLog(each, days) for each in seeds], nodes
    )
    study.run_all(runner)
    claims = [
        *rows.copies(),
        *rows.inputs(study),
        rows.means(study),
        *rows.changes(study),
        *rows.table_3(study),
    ]
    if log is None:
        claims += _of_full_queues(seeds, _QUICK_JOBS if quick else congestion.JOBS, runner)
    if output:
        _draw(output, rows.histograms(study))
        for queue in (G_QUEUE, R_QUEUE) if log is None else ():
            schedules.schedule(queue, seed).gantt(output / f"tsubame-{queue}.png")
    return claims


def _of_full_queues(seeds: Sequence[int], num_jobs: int, runner: Runner) -> list[PaperClaim]:
    """Return the rows about queues in which all jobs wait from the beginning."""
    ends = runner.results(_congested, [(each, num_jobs) for each in seeds])
    flows = runner.results(schedules.by_flows, [(each, num_jobs) for each in seeds])
    return [
        rows.congested(ends, num_jobs, congestion.NODES),
        schedules.possible([(before.makespan, after.makespan) for before, after in ends], flows),
        *schedules.rows(runner.results(schedules.compared, [(each,) for each in seeds])),
    ]


def _congested(seed: int, num_jobs: int) -> tuple[StudyOutcome, StudyOutcome]:
    jobs = congestion.workload(seed, num_jobs)
    return run(jobs, G_QUEUE, congestion.NODES), run(jobs, R_QUEUE, congestion.NODES)


def _draw(output: Path, panels: Sequence[tuple[str, Floats]]) -> None:
    from topoplace_lab.report import plots

    plots.histograms(panels, output / "tsubame-differences.png", of="jobs")
