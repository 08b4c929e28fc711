"""Reproduction of MAPA (Ranganath et al., SC'21): the logs of its published code, and the numbers of its text.

The paper contradicts itself or its published code (the artifact) in some points. Our choices:
- Links and PCIe speed: examples are as in the paper (12 GB/s, machines as drawn). Simulations are as in the artifact
  (10 GB/s, a torus without one edge, other weights in the cube mesh).
- Queue: strictly first in, first out, as the text says; the artifact ignores arrival times and skips waiting jobs.
  `run_artifact(rules="published")` does so too.
- The policy Preserve never refuses free GPUs, as in Algorithm 1. In the artifact, Preserve defers a job if its
predicted bandwidth is not above 12.335 GB/s. Rows marked "threshold" do the same: the paper's claim about the minimum
  on 16 GPUs holds only with this rule.
- The policy Topo-aware: first fit inside a socket, as in the artifact, not recursive bipartitioning.
- Table 3 disagrees with the seconds quoted in section 4.1; we use the table.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final, Literal

from topoplace_lab.papers.claims import ClaimedQuantity, PaperClaim
from topoplace_lab.papers.mapa import bandwidths, collective_model, rows
from topoplace_lab.papers.mapa.artifact import (
    MACHINES,
    POLICIES,
    machine_named,
    parse_topology,
    run_artifact,
    topology_of,
)
from topoplace_lab.papers.mapa.study import FOUR, MapaStudy
from topoplace_lab.papers.rules import Equal
from topoplace_lab.papers.seeds import QUICK_SEEDS, SEEDS
from topoplace_lab.simulate.processes import Runner

__all__ = [
    "MACHINES",
    "POLICIES",
    "machine_named",
    "parse_topology",
    "reproduce",
    "reproduce_by_rings",
    "run_artifact",
    "topology_of",
]

_LOG_NAME: Final = re.compile(
    r"(?P<kind>results|published)-(?P<machine>.+)-(?P<policy>[A-Za-z]+)-(?P<jobs>[^-]+-[^-]+)\.txt"
)


def reproduce_by_rings(
    *,
    quick: bool = False,
    seed: int = 0,
    step: tuple[float, float] = collective_model.DEFAULT_STEP,
    output: Path | None = None,
    runner: Runner | None = None,
) -> list[PaperClaim]:
    """Return the speedups of section 4 with run times by the rings of a collective library, next to those by eq. 2.

    step: seconds of computing, and GB of an all-reduce, of a training step of every sensitive job; ValueError names a
    wrong one. Other arguments are those of `reproduce`; nothing is drawn.
    """
    seeds = range(seed, seed + (QUICK_SEEDS if quick else SEEDS))
    return list(collective_model.rows(seeds, step, runner or Runner()))


def reproduce(
    *,
    quick: bool = False,
    seed: int = 0,
    artifact: Path | None = None,
    output: Path | None = None,
    runner: Runner | None = None,
) -> list[PaperClaim]:
    """Compare the published code's logs, if given, and the MAPA paper's numbers with our results, a row per quantity.

    quick: three job lists instead of ten. seed: seed of the first list. artifact: directory of the published logs;
    raises ValueError if it contains no log. output: an existing directory for plots. runner: how simulations run, by
    default one after another.
    """
    seeds = range(seed, seed + (QUICK_SEEDS if quick else SEEDS))
    real = MapaStudy("dgx-v", seeds, slowdown=True)
    novel = [
        MapaStudy(machine, seeds, like_artifact=like_artifact)
        for like_artifact in (True, False)
        for machine in ("torus-2d", "cubeMesh-16")
    ]
    claims = list(match_artifact(artifact)) if artifact else []
    runner = runner or Runner()
    for study in (real, *novel):
        study.run_all(runner)
    claims += rows.wiring()
    claims += rows.model()
    claims += bandwidths.rows()
    claims += rows.fragmentation(seeds)
    claims += rows.real_machine(real)
    claims += rows.novel_machines(novel)
    claims.append(rows.as_published(seeds, runner))
    timed, series = rows.overhead()
    claims += timed
    if output:
        _draw(output, series, seed)
    return claims


def match_artifact(directory: Path) -> Iterator[PaperClaim]:
    """Compare each log `results-MACHINE-POLICY-JOBS.txt` in `directory` with our results, line by line.

    Our log is the output of `run_artifact` for `jobs-JOBS.txt`, and for `topology-MACHINE.txt` if that file exists.
    Logs called `published-...` are of the program as published, others of one with the paper's queue.
    Yields one row per log, with the number of equal lines. Raises ValueError if there is no log.
    """
    logs = [
        (path, found) for path in sorted(directory.glob("*.txt")) if (found := _LOG_NAME.fullmatch(path.name))
    ]
    if not logs:
        raise ValueError(f"{directory}: has no results-MACHINE-POLICY-JOBS.txt")
    for path, found in logs:
        theirs = path.read_text(encoding="utf-8").splitlines()
        jobs = (directory / f"jobs-{found['jobs']}.txt").read_text(encoding="utf-8")
        edges = directory / f"topology-{found['machine']}.txt"
        topology = edges.read_text(encoding="utf-8") if edges.exists() else found["machine"]
        published = found["kind"] == "published"
        rules: Literal["paper", "published"] = "published" if published else "paper"
        ours = run_artifact(jobs, topology, found["policy"], rules=rules).splitlines()
        same = sum(a == b for a, b in zip(ours, theirs, strict=False))
        yield ClaimedQuantity(
            f"artifact {'as published ' * published}{found['machine']} {found['policy']} {found['jobs']}",
            "lines of the log equal in every column (header included)",
            str(len(theirs)),
        ).judged(
            str(same),
            Equal((len(theirs), len(theirs)), "reproduced if every line is equal"),
            *(same, len(ours)),
            note="times, GPUs in order, AggBW, predicted bandwidth, scores, counts",
        )


def _draw(output: Path, series: list[tuple[str, list[int], list[float]]], seed: int) -> None:
    from topoplace_lab.report import plots

    plots.overhead(series, output / "mapa-overhead.png")
    studies = [
        MapaStudy("dgx-v", [seed], slowdown=True),
        MapaStudy("torus-2d", [seed]),
        MapaStudy("cubeMesh-16", [seed]),
    ]
    compared = [study.results(policy)[0] for study in studies for policy in FOUR]
    plots.comparison(compared, output / "mapa-policies.png")
    compared[3].gantt(output / "mapa-gantt.png")
