"""GPU as a service (Filippini et al., "Hierarchical Scheduling in on-demand GPU-as-a-Service Systems").

Jobs are those of `capacity.generate_jobs`, or drawn from a given file of the times that the authors published with a
later scheduler. Decisions are made when jobs arrive and finish, but not every hour: the paper counts its solver's work
the same way (section V-B). First-principle methods are as their authors published them later, with all nodes in one
pool. Compared costs are those that the simulation paid: for nodes while they were rented, and for tardiness.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from topoplace import _checks
from topoplace.papers.claims import Claim
from topoplace.papers.gpuaas import rows
from topoplace.papers.gpuaas.published import tables_of
from topoplace.papers.gpuaas.study import Study

__all__ = ["reproduce"]

_SEEDS = 3
"""Section V-A."""


def reproduce(
    *,
    quick: bool = False,
    seed: int = 0,
    nodes: Sequence[int] | None = None,
    times: str | None = None,
    output: Path | None = None,
) -> list[Claim]:
    """Return all rows.

    nodes: cluster sizes, multiples of 5; by default 5, 10 and 20. quick: by default 5 and 10 nodes, and half a second
    per decision instead of ten. seed: seed of the first of three lists of jobs per size. times: text of a table of
    measured times to draw jobs from. output: an existing directory for plots.
    """
    sizes = tuple(nodes or ((5, 10) if quick else (5, 10, 20)))
    for i, size in enumerate(sizes):
        _checks.integer(size, f"nodes[{i}]", ValueError, low=5, high=1000)
        if size % 5:
            raise ValueError(f"nodes[{i}] = {size} is not a multiple of 5, the nodes of a controller")
    tables = None if times is None else tables_of(times)
    study = Study(sizes, range(seed, seed + _SEEDS), tables, timeout=0.5 if quick else 10.0)
    if output:
        _draw(output, study)
    return [
        *rows.savings(study),
        rows.hierarchy(study),
        *rows.controllers(study),
        *rows.server(study),
        rows.heuristic(study),
        rows.shares(study),
        *rows.dispatch(study),
    ]


def _draw(output: Path, study: Study) -> None:
    from topoplace.report import plots

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
