"""Reproduction of Filippini et al., "Hierarchical Scheduling in on-demand GPU-as-a-Service Systems".

The paper's schedulers rent VMs (nodes) and give their GPUs to jobs with due dates. Jobs come from
`capacity.generate_jobs`, with run times of our own or from a file that the authors published with a later scheduler.
A scheduler decides whenever a job arrives or finishes; only some rows add hourly decisions, and say so. The methods to
beat (first in first out, earliest due date, priorities) are as the authors published them later. They have one
controller for all nodes. Costs are those paid in the simulation: rent of nodes, and penalties for finishing late.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from topoplace import _checks
from topoplace.errors import require_package
from topoplace_lab.papers.claims import PaperClaim
from topoplace_lab.papers.gpuaas import re_solving, rows
from topoplace_lab.papers.gpuaas.published import tables_of
from topoplace_lab.papers.gpuaas.study import GpuaasStudy
from topoplace_lab.papers.seeds import QUICK_SEEDS, SEEDS
from topoplace_lab.simulate.processes import Runner

__all__ = ["reproduce"]


def reproduce(
    *,
    quick: bool = False,
    seed: int = 0,
    nodes: Sequence[int] | None = None,
    times: str | None = None,
    output: Path | None = None,
    runner: Runner | None = None,
) -> list[PaperClaim]:
    """Compare the paper's numbers with our simulations; return one row per quantity.

    nodes: cluster sizes, multiples of 5; by default 5, 10 and 20, or 5 and 10 if `quick`. quick: also limit a decision
    to half a second instead of ten, and the job lists to three per size instead of ten. Two rows without a verdict,
    which need (P2) solved by one controller for all nodes, are left out. seed: seed of the first list.
    times: CSV text of measured run times to draw jobs from. output: an existing directory for plots. runner: how
    simulations run, by default one after another. Raises ValueError for a size that is not a multiple of 5 up to 1000,
    or a bad line of `times`.
    """
    sizes = tuple(nodes or ((5, 10) if quick else (5, 10, 20)))
    for i, size in enumerate(sizes):
        _checks.integer(size, f"nodes[{i}]", ValueError, low=5, high=1000)
        if size % 5:
            raise ValueError(f"nodes[{i}] = {size} is not a multiple of 5, the nodes of a controller")
    require_package("highspy", "planning by a model")
    tables = None if times is None else tables_of(times)
    seeds = range(seed, seed + (QUICK_SEEDS if quick else SEEDS))
    study = GpuaasStudy(sizes, seeds, tables, timeout=0.5 if quick else 10.0, same_model=not quick)
    runner = runner or Runner()
    study.run_all(runner)
    solved_again = re_solving.measure(runner, study)
    if output:
        _draw(output, study)
    return [
        *rows.savings(study),
        rows.hierarchy(study),
        *(() if quick else [rows.same_model(study)]),
        *rows.variants(study),
        *rows.controllers(study),
        *rows.server(study),
        rows.heuristic(study),
        rows.shares(study),
        *rows.dispatch(study),
        *(() if quick else [rows.controllers_by_load(study)]),
        *re_solving.rows(solved_again),
    ]


def _draw(output: Path, study: GpuaasStudy) -> None:
    from topoplace_lab.report import plots

    plots.lines(
        rows.seconds_by_size(study),
        output / "gpuaas-time.png",
        along="nodes",
        what="CPU time of one decision (s)",
        logarithmic=(False, True),
    )
    plots.lines(
        rows.costs_by_size(study),
        output / "gpuaas-cost.png",
        along="nodes",
        what="cost over that of the best first-principle method",
    )
