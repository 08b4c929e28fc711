"""`topoplace place` chooses GPUs for one job, and prints the best choices and the environment to start the job."""

from __future__ import annotations

import argparse
import math
from typing import TYPE_CHECKING, Any

from topoplace.cli import options, reading, writing

if TYPE_CHECKING:
    from topoplace.cluster.cluster import Cluster
    from topoplace.engine.plan import Explanation
    from topoplace.jobs.job_graph import JobGraph
    from topoplace.placement import Placement
    from topoplace.topology.topology import Topology

_NOT_PLACED = 1
_MAX_TASKS = 4096
_SCORES = ("aggregated", "effective", "bottleneck", "preserved")


def add(commands: Any) -> None:
    """Add `topoplace place` and its arguments to the command line."""
    parser = options.command(commands, "place", "choose GPUs for one job and say why", _run)
    options.add_topology(parser)
    parser.add_argument(
        "--pattern",
        default="ring",
        help="communication of the tasks (default: ring): "
        "ring, chain, star, tree, clique, allreduce, independent, mesh, torus",
    )
    parser.add_argument(
        "--gpus", default="4", metavar="N", help="number of GPUs, or 2x4 for a mesh or torus (default: 4)"
    )
    parser.add_argument("--sensitive", action="store_true", help="the job runs slower on slower links")
    options.add_policy(parser)
    parser.add_argument("--busy", default="", metavar="IDS", help="GPUs in use, such as 0,3")
    options.add_count(parser, "--top", 3, "number of candidates to show")
    options.add_json(parser)
    options.add_output(parser)


def _run(arguments: argparse.Namespace) -> int:
    from topoplace import policies

    cluster = _cluster_with_busy(reading.topology(arguments), arguments.busy)
    job = _job(arguments.pattern, arguments.gpus).with_(bandwidth_sensitive=arguments.sensitive)
    policy = policies.get(arguments.policy)
    picture = reading.output(arguments.output, "placement.png")
    explained = policy.explain(job, cluster, top=arguments.top)
    placed = None if explained.refusal else explained.candidates[0]
    if arguments.json:
        writing.as_json(_as_dict(cluster.topology, explained, placed))
    else:
        _print(job, cluster, explained, placed)
    if picture and placed:
        from topoplace.report import plots

        busy = set(range(cluster.topology.num_gpus)) - set(cluster.free_gpus())
        plots.topology(cluster.topology, picture, busy=busy, chosen=placed.gpus, job=job)
        writing.wrote(picture, beside_json=arguments.json)
    return 0 if placed else _NOT_PLACED


# ---- reading -----------------------------------------------------------------------------------------------------


def _job(pattern: str, gpus: str) -> JobGraph:
    from topoplace.jobs.job_graph import PATTERNS, JobGraph

    try:
        sizes = [int(size) for size in gpus.split("x")]
    except ValueError:
        raise ValueError(f"--gpus {gpus!r}: not a number such as 4, nor 2x4") from None
    if math.prod(sizes) > _MAX_TASKS:
        raise ValueError(f"--gpus {gpus!r}: more than {_MAX_TASKS}")
    if pattern in ("mesh", "torus"):
        return JobGraph.mesh(sizes) if pattern == "mesh" else JobGraph.torus(sizes)
    if pattern not in PATTERNS:
        raise ValueError(f"--pattern {pattern!r}: not one of {', '.join(PATTERNS)}, mesh, torus")
    if len(sizes) > 1:
        raise ValueError(f"--gpus {gpus!r}: a {pattern} takes one number")
    return PATTERNS[pattern](sizes[0])


def _cluster_with_busy(topology: Topology, busy: str) -> Cluster:
    from topoplace.cluster.cluster import Cluster

    cluster = Cluster(topology)
    try:
        taken = [int(gpu) for gpu in busy.split(",")] if busy.strip() else []
    except ValueError:
        raise ValueError(f"--busy {busy!r}: not GPU numbers such as 0,3") from None
    for i, gpu in enumerate(taken):
        if not 0 <= gpu < topology.num_gpus:
            raise ValueError(f"--busy {busy!r}: GPU {gpu}: the GPUs are 0..{topology.num_gpus - 1}")
        if gpu in taken[:i]:
            raise ValueError(f"--busy {busy!r}: GPU {gpu}: given twice")
    if taken:
        cluster.allocate("busy", taken)
    return cluster


# ---- writing -----------------------------------------------------------------------------------------------------


def _as_dict(topology: Topology, explained: Explanation, placed: Placement | None) -> dict[str, Any]:
    return {
        "topology": topology.name,
        "policy": explained.policy,
        "placement": _placement_as_dict(placed) if placed else None,
        "reason": explained.refusal.reason if explained.refusal else None,
        "candidates": [_placement_as_dict(candidate) for candidate in explained.candidates],
        "complete": explained.complete,
    }


def _placement_as_dict(placement: Placement) -> dict[str, Any]:
    return {
        "gpus": placement.gpus,
        "optimal": placement.optimal,
        "scores": dict(placement.scores),
        "env": placement.env(),
    }


def _print(job: JobGraph, cluster: Cluster, explained: Explanation, placed: Placement | None) -> None:
    from topoplace.report import tables

    candidates = explained.candidates
    if candidates:
        where = f"{cluster.topology.name}, {cluster.num_free} free, {explained.policy}"
        tables.show(
            ("GPUs by task", *_SCORES, "proven"),
            [(" ".join(map(str, candidate.gpus)), *_score_cells(candidate)) for candidate in candidates],
            f"{job.name} of {job.num_tasks} on {where} (GB/s)",
        )
    if any(candidate.scores.get("effective_bandwidth_extrapolated") for candidate in candidates):
        print("effective: eq. 2 was fitted on 2 to 5 GPUs; it is neither used nor shown for this job")
    if not explained.complete:
        print("the search for more candidates ended at its limit; there may be better ones after the first")
    if explained.refusal:
        print(f"not placed: {explained.refusal.reason}")
    if placed:
        _print_environment(placed)


def _print_environment(placed: Placement) -> None:
    variables: list[str] = []
    for name, value in placed.env().items():
        if isinstance(value, dict):
            print(f"{name}: {' '.join(f'{key}={text}' for key, text in value.items())}")
        else:
            variables.append(f"{name}={value}")
    if variables:
        print(" ".join(variables))


def _score_cells(placement: Placement) -> list[object]:
    cells: list[object] = [placement.scores.get(f"{name}_bandwidth", "-") for name in _SCORES]
    if placement.scores.get("effective_bandwidth_extrapolated"):
        cells[_SCORES.index("effective")] = "-"
    return [*cells, "yes" if placement.optimal else "-"]
