"""Reproduction of DRMaestro (Amaral's thesis, chapter 5): scheduling GPUs attached over the network.

`rodinia` lists our assumptions about jobs and machines, `policies.DRMaestro` our assumptions about the policy.
Experiment 2 of the thesis repeats experiment 1 in a simulator; we simulate both. Makespans include only jobs of the
Rodinia suite, not the long CPU jobs that start first. The thesis' table 9 has makespans shorter than a long job.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from topoplace_lab.papers.claims import PaperClaim
from topoplace_lab.papers.drmaestro import gpu_topology, readings, rows, scale, service, virtual_environments
from topoplace_lab.papers.drmaestro.study import DRMaestroStudy
from topoplace_lab.papers.seeds import QUICK_SEEDS, SEEDS
from topoplace_lab.simulate.processes import Runner

__all__ = ["reproduce"]


def reproduce(
    *, quick: bool = False, seed: int = 0, output: Path | None = None, runner: Runner | None = None
) -> list[PaperClaim]:
    """Compare the thesis' numbers with our simulations; return one row per quantity, in the order of the thesis.

    quick: three random job lists instead of ten; 256 jobs on 4 machines instead of 512; 256 on 16 instead of 4,096 on
    128. Decision times are measured on up to 1,000 machines. seed: seed of the first job list. output: an existing
    directory for plots. runner: how simulations run, by default one after another.
    """
    seeds = range(seed, seed + (QUICK_SEEDS if quick else SEEDS))
    small, first = DRMaestroStudy(64, 4, seeds), DRMaestroStudy(256 if quick else 512, 4, seeds)
    large = DRMaestroStudy(256, 16, seeds) if quick else DRMaestroStudy(4096, 128, seeds)
    runner = runner or Runner()
    for study in (small, first, large):
        study.run_all(runner)
    read_otherwise = readings.measure(runner, small)
    served = service.measure(runner, first)
    linked = gpu_topology.measure(runner, seeds)
    environments = list(virtual_environments.rows(runner, seeds))
    scaled = scale.measure(scale.MACHINES[:2] if quick else scale.MACHINES, seed)
    if output:
        _draw(output, scaled)
    return [
        *environments,
        *rows.shares(),
        *rows.experiment_1(first),
        *service.rows(first, served),
        *rows.overhead("5.4", large, slower=False),
        *rows.table("5.5", small, rows.TABLE_9),
        *rows.slowdowns("5.5", small),
        *readings.compare(small, read_otherwise),
        *rows.table("5.6", large, rows.TABLE_10),
        *rows.slowdowns("5.6", large),
        *gpu_topology.rows(linked),
        *scale.rows(scaled),
    ]


def _draw(output: Path, costs: Sequence[scale.ScaleCost]) -> None:
    from topoplace_lab.report import plots

    path = output / "drmaestro-scale.png"
    plots.overhead(scale.series(costs), path, along="machines", logarithmic=True)
