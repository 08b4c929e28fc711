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
from topoplace.objectives.job_bandwidth import job_bandwidth
from topoplace.placement import Placement

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
    """Print what the demonstration concludes and its four tables, and write its four pictures.

    output: an existing directory.
    """
    job = JobGraph.ring(4).with_(bandwidth_sensitive=True)
    placed = [one for name in _MACHINES for one in _placements(name, job)]
    workload = Workload.mapa(120)
    runner = Runner(progress=sys.stderr is not None and sys.stderr.isatty())
    cases = [(name, policy, workload) for name in _MACHINES for policy in policies.names(sharing=False)]
    results = runner.results(_simulated, cases)
    six = _six_jobs()
    claims = {claim.id: claim for claim in mapa.reproduce(quick=True, runner=runner)}
    for sentence in _conclusions(placed, results, six):
        print(f"- {sentence}")
    print()
    tables.show(
        ("machine", "GPUs by task", "ring GB/s", "time", "policies"),
        _choices(placed),
        "1. A bandwidth-sensitive ring of 4 on machines with some GPUs busy",
    )
    print()
    _show_queues(results)
    print()
    _show_six_jobs(six)
    print()
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
        ("machine", "policy", *measures.heads(keys, has_units=True)),
        [
            (
                result.topology.name,
                result.policy,
                *(measures.MEASURES[key].text(summary[key]) for key in keys),
            )
            for result, summary in summaries
        ],
        f"2. A queue of {len(results[0].jobs)} jobs: the bandwidth-sensitive ones",
    )


def _conclusions(
    placed: Sequence[tuple[str, Placement]], queues: Sequence[Result], six: Sequence[Result]
) -> Iterator[str]:
    """Yield what the tables say about one placement, about a queue of jobs, and about jobs next to each other."""
    machine = _MACHINES[0]
    carried = {policy: _carried(one) for policy, one in placed if one.topology.name == machine}
    lowest, best = carried["baseline"], carried["least-time"]
    yield (
        f"The choice of GPUs decides how fast a job communicates: on {machine}, NCCL's rings carry "
        f"{tables.number(lowest)} GB/s on the lowest free ids, and {tables.number(best)} GB/s on those of least-time, "
        f"{tables.number(best / lowest)} times as much."
    )
    makespan = {(run.topology.name, run.policy): run.summary()["makespan"] for run in queues}
    saved = [
        f"{100 * (1 - makespan[name, 'mapa-preserve'] / makespan[name, 'baseline']):.0f} % on {name}"
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
        f"jobs wait for good GPUs; all are done after {tables.duration(last['makespan'])} instead of "
        f"{tables.duration(first['makespan'])}."
    )


def _six_jobs() -> list[Result]:
    """Simulate the six jobs of the SC'17 paper's section 5.2 under its four policies; its text speaks of five."""
    profile = authors_profile()
    return [
        simulate(
            machines.get("minsky"),
            five_jobs(),
            policies.get(name, profile=profile),
            performance=ProfiledTime(profile),
        )
        for name in ("fcfs", "best-fit", "topo-aware", "topo-aware-p")
    ]


def _show_six_jobs(results: Sequence[Result]) -> None:
    """Print a row for each policy."""
    keys = ("makespan", "mean_wait", "mean_slowdown", "mean_utility", "slo_violations", "nvlink_use")
    tables.show(
        ("policy", *measures.heads(keys, has_units=True)),
        [
            (result.policy, *(measures.MEASURES[key].text(result.summary()[key]) for key in keys))
            for result in results
        ],
        "3. SC'17's prototype: six jobs on two sockets of two GPUs; all rows: topoplace papers sc17",
    )


def _cluster(name: str) -> Cluster:
    cluster = Cluster(machines.get(name))
    cluster.allocate("other", _BUSY[cluster.topology.num_gpus])
    return cluster


def _placements(machine: str, job: JobGraph) -> Iterator[tuple[str, Placement]]:
    """Yield the placement of each policy that places the job, with the policy's name."""
    cluster = _cluster(machine)
    for name in policies.names(sharing=False):
        if placement := policies.get(name).place(job, cluster):
            yield name, placement


def _choices(placed: Sequence[tuple[str, Placement]]) -> Iterator[tuple[object, ...]]:
    """Yield a row for each choice of GPUs on each machine, with the policies that choose them; the fastest first."""
    policies_of: dict[tuple[str, tuple[int, ...]], list[str]] = {}
    first: dict[tuple[str, tuple[int, ...]], Placement] = {}
    for policy, placement in placed:
        choice = (placement.topology.name, placement.gpus)
        policies_of.setdefault(choice, []).append(policy)
        first.setdefault(choice, placement)
    for name in _MACHINES:
        for choice in sorted((one for one in first if one[0] == name), key=lambda one: first[one].time):
            time = tables.duration(first[choice].time)
            by_task = " ".join(map(str, choice[1]))
            yield name, by_task, _carried(first[choice]), time, ", ".join(policies_of[choice])


def _carried(placement: Placement) -> float:
    assert placement.job is not None
    return job_bandwidth(placement.job, placement.gpus, placement.topology).gb_per_s


def _preserved(job: JobGraph) -> tuple[int, ...]:
    placement = policies.get("mapa-preserve").place(job, _cluster("dgx1-v100"))
    return placement.gpus if placement else ()
