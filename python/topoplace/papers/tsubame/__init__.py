"""Reproduction of the simulation of TSUBAME 2.5's GPU queue without remote GPUs (G queue) and with them (R queue).

The paper's job log of 2013 is not public: `generator` makes a similar one, and you can use your own log instead.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from topoplace.papers.claims import Claim
from topoplace.papers.tsubame import congestion, generator, rows
from topoplace.papers.tsubame.study import NODES, Floats, Study
from topoplace.simulate import Workload

__all__ = ["reproduce"]

_DAYS = 365
_QUICK_DAYS = 30
_LISTS = 5


def reproduce(
    *,
    quick: bool = False,
    seed: int = 0,
    log: Workload | None = None,
    nodes: int = NODES,
    output: Path | None = None,
) -> list[Claim]:
    """Compare the paper's numbers with our simulations; return one row per quantity, in the order of the paper.

    quick: a log of a month instead of a year, and one job list instead of five for the congested queue.
    seed: seed of the generated log, and of the first job list.
    log: jobs that replace the generated log; `Workload.from_pbs` reads a log, for example. ValueError if it is empty,
    or if no job of it fits on the nodes.
    nodes: number of nodes of the cluster; the smaller clusters of Table 3 shrink in proportion.
    output: an existing directory for plots.
    """
    workload = generator.workload(seed, _QUICK_DAYS if quick else _DAYS) if log is None else log
    study = Study(workload, nodes)
    lists = [congestion.workload(seed + i) for i in range(1 if quick else _LISTS)]
    claims = [
        *rows.copies(),
        *rows.inputs(study),
        rows.means(study),
        *rows.changes(study),
        *rows.table_3(study),
        rows.congested(lists, congestion.NODES),
    ]
    if output:
        _draw(output, rows.histograms(study))
    return claims


def _draw(output: Path, panels: Sequence[tuple[str, Floats]]) -> None:
    from topoplace.report import plots

    plots.histograms(panels, output / "tsubame-differences.png", of="jobs")
