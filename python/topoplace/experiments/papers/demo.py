"""The tables and pictures of `topoplace demo`: all policies on three machines, and main results of two papers.

It ends with what the figures of this run say.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from topoplace import machines, policies
from topoplace.cluster.cluster import Cluster
from topoplace.experiments.papers import mapa
from topoplace.experiments.papers.sc17.measured import authors_profile
from topoplace.experiments.papers.sc17.scenarios import five_jobs
from topoplace.experiments.report import measures, plots, tables
from topoplace.experiments.report.page import write_page
from topoplace.experiments.simulate import MapaSlowdown, ProfiledTime, Result, Workload, simulate
from topoplace.experiments.simulate.processes import Runner
from topoplace.jobs.job_graph import JobGraph
from topoplace.objectives import scores_of

_MACHINES: Final = ("dgx1-v100", "torus2d-16", "cubemesh-16")
_BUSY: Final = {8: (0, 5), 16: (0, 5, 6, 11)}
_PICTURES: Final = ("gantt.png", "six-jobs.png", "comparison.png", "dgx1-v100.png")
_HEADLINES: Final = (
    "3.2",
    "3.6",
    "3.3",
    "3.12",
    "3.12 75th percentile",
    "3.14a",
    "3.14b",
    "3.14b threshold",
    "3.15b",
)


def run(output: Path) -> None:
    """Print the demonstration's four tables and write its four pictures into `output`, an existing directory."""
    job = JobGraph.ring(4).with_(bandwidth_sensitive=True)
    placements = [row for name in _MACHINES for row in _placements(name, job)]
    tables.show(
        ("machine", "policy", "GPUs by task", "aggregated GB/s", "effective GB/s", "preserved GB/s"),
        placements,
        "1. A bandwidth-sensitive ring of 4 on machines with some GPUs busy",
    )
    workload = Workload.mapa(120)
    runner = Runner(progress=sys.stderr is not None and sys.stderr.isatty())
    cases = [(name, policy, workload) for name in _MACHINES for policy in policies.names(sharing=False)]
    results = runner.results(_simulated, cases)
    print()
    _show_queues(results)
    print()
    six = _six_jobs()
    print()
    claims = {claim.id: claim for claim in mapa.reproduce(quick=True, runner=runner)}
    tables.show(
        ("quantity", "paper", "ours", "verdict"),
        [
            (claim.quantity, claim.paper, claim.ours, claim.verdict)
            for claim in map(claims.__getitem__, _HEADLINES)
        ],
        "4. Headline numbers of MAPA (SC'21); all rows: topoplace papers mapa",
    )
    results[3].gantt(output / "gantt.png")
    six[-1].gantt(output / "six-jobs.png")
    plots.comparison(results, output / "comparison.png")
    plots.topology(
        machines.get("dgx1-v100"), output / "dgx1-v100.png", busy=_BUSY[8], chosen=_preserved(job), job=job
    )
    write_page(results, output / "report.html", title="The demonstration's queue under each policy")
    print(f"\nPictures: {', '.join(str(output / name) for name in _PICTURES)}")
    print(f"All of the queue, job by job, in a browser: {output / 'report.html'}")
    print("\nWhat to take home:")
    for sentence in _conclusions(placements, results, six):
        print(f"- {sentence}")


def _simulated(machine: str, policy: str, workload: Workload) -> Result:
    return simulate(machines.get(machine), workload, policies.get(policy), performance=MapaSlowdown())


def _show_queues(results: Sequence[Result]) -> None:
    """Print a row for each simulation of the queue of jobs."""
    keys = (
        "sensitive_effective_bandwidth_p25",
        "sensitive_effective_bandwidth_p50",
        "sensitive_run_time_p75",
        "makespan",
    )
    summaries = [(result, result.summary()) for result in results]
    tables.show(
        ("machine", "policy", *(measures.MEASURES[key].heading for key in keys)),
        [
            (result.topology.name, result.policy, *(measures.shown(key, summary) for key in keys))
            for result, summary in summaries
        ],
        f"2. A queue of {len(results[0].jobs)} jobs: the bandwidth-sensitive ones",
    )


def _conclusions(
    placements: Sequence[tuple[object, ...]], queues: Sequence[Result], six: Sequence[Result]
) -> Iterator[str]:
    """Yield what the tables say about one placement, about a queue of jobs, and about jobs next to each other."""
    machine = _MACHINES[0]
    gb_per_s = {row[1]: row[3] for row in placements if row[0] == machine}
    yield (
        f"The choice of GPUs decides how fast a job communicates: on {machine}, the lowest free ids give a ring of "
        f"four {gb_per_s['baseline']:.0f} GB/s, and mapa-preserve finds {gb_per_s['mapa-preserve']:.0f} GB/s."
    )
    makespan = {(run.topology.name, run.policy): run.summary()["makespan"] for run in queues}
    saved = [
        f"{1 - makespan[name, 'mapa-preserve'] / makespan[name, 'baseline']:.0%} on {name}"
        for name in _MACHINES
    ]
    yield (
        f"That adds up: mapa-preserve finishes the queue of {len(queues[0].jobs)} jobs sooner than the lowest free ids "
        f"do, by {', '.join(saved)}."
    )
    first, last = six[0].summary(), six[-1].summary()
    yield (
        f"Jobs on one machine slow each other down: {first['slo_violations']:.0f} of {len(six[0].jobs)} jobs get less "
        f"than they ask for under {six[0].policy}, {last['slo_violations']:.0f} under {six[-1].policy}, which lets "
        f"jobs wait for good GPUs; all are done after {last['makespan']:.0f} s instead of {first['makespan']:.0f} s."
    )


def _six_jobs() -> list[Result]:
    """Simulate the six jobs of the SC'17 paper's section 5.2 under its four policies, and print a table.

    Returns one result per policy. The paper's text speaks of five jobs.
    """
    profile = authors_profile()
    results = [
        simulate(
            machines.get("minsky"),
            five_jobs(),
            policies.get(name, profile=profile),
            performance=ProfiledTime(profile),
        )
        for name in ("fcfs", "best-fit", "topo-aware", "topo-aware-p")
    ]
    keys = ("makespan", "mean_wait", "mean_slowdown", "mean_utility", "slo_violations", "nvlink_use")
    tables.show(
        ("policy", *(measures.MEASURES[key].heading for key in keys)),
        [(result.policy, *(measures.shown(key, result.summary()) for key in keys)) for result in results],
        "3. SC'17's prototype: six jobs on two sockets of two GPUs; all rows: topoplace papers sc17",
    )
    return results


def _cluster(name: str) -> Cluster:
    cluster = Cluster(machines.get(name))
    cluster.allocate("other", _BUSY[cluster.topology.num_gpus])
    return cluster


def _placements(machine: str, job: JobGraph) -> list[tuple[object, ...]]:
    cluster = _cluster(machine)
    rows: list[tuple[object, ...]] = []
    for name in policies.names(sharing=False):
        placement = policies.get(name).place(job, cluster)
        if placement:
            scores = scores_of(job, placement.gpus, cluster.topology, cluster.free_gpus())
            shown = [scores[f"{score}_bandwidth"] for score in ("aggregated", "effective", "preserved")]
            rows.append((machine, name, " ".join(map(str, placement.gpus)), *shown))
    return rows


def _preserved(job: JobGraph) -> tuple[int, ...]:
    placement = policies.get("mapa-preserve").place(job, _cluster("dgx1-v100"))
    return placement.gpus if placement else ()
