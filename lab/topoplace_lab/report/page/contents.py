"""The content of the page, as plain values for JSON: rounded, without NaN, and bounded in size."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from topoplace import drawing
from topoplace_lab.report.columns import MEASURES, OF_PAGE, remarks
from topoplace_lab.report.comparison import Scenario, conclusion, row_of
from topoplace_lab.report.page.sections import Interval, Row, rounded, section
from topoplace_lab.simulate.samples import Sample

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from topoplace.topology.topology import Topology
    from topoplace_lab.simulate.metrics import Result

MAX_JOBS: Final = 20_000
"""Limit on the jobs of a run that are shown one by one; key figures include all jobs."""
MAX_DRAWN_GPUS: Final = 1024
"""Limit on the GPUs of a drawing with an element for each; for more, the page paints rectangles."""


def contents_of(results: Sequence[Result]) -> dict[str, Any]:
    """Return the values of the page: figures by topology, policy and options, and the first run of each in detail.

    Only runs with equal options are repetitions of each other, whatever their seeds. Each number of jobs is a group of
    its own.
    """
    studies: dict[tuple[Topology, int], list[Result]] = {}
    for result in results:
        studies.setdefault((result.topology, len(result.records)), []).append(result)
    return {"groups": [_group(_by_name(runs)) for runs in studies.values()]}


def _by_name(results: Sequence[Result]) -> dict[str, list[Result]]:
    """Return the repetitions of each policy; its name has the options behind it, if they are not those of all."""
    alike: dict[tuple[str, frozenset[tuple[str, str]] | None], list[Result]] = {}
    for result in results:
        options = None if result.options is None else frozenset(result.options.items())
        alike.setdefault((result.policy, options), []).append(result)
    chosen = {options for _, options in alike}
    common = (
        frozenset[tuple[str, str]]()
        .union(*filter(None, chosen))
        .intersection(*(options or () for options in chosen))
    )
    return {
        policy if len(chosen) == 1 else f"{policy} ({_in_words(options, common)})": runs
        for (policy, options), runs in alike.items()
    }


def _in_words(options: frozenset[tuple[str, str]] | None, common: frozenset[tuple[str, str]]) -> str:
    if options is None:
        return "options not recorded"
    shown = (name if value == "True" else f"{name} {value}" for name, value in sorted(options - common))
    return ", ".join(shown) or "without these options"


def _group(policies: dict[str, list[Result]]) -> dict[str, Any]:
    """Return the values of one topology and number of jobs. policies: the results by name, see `_by_name`."""
    first = next(iter(policies.values()))[0]
    topology = first.topology
    most = max(map(len, policies.values()))
    how = (
        f"Means of up to {most} runs, with 95 % intervals. What is below shows the first run of each policy."
    )
    compared = section(
        "Policies",
        {key: MEASURES[key] for key in OF_PAGE},
        [Row(policy, _figures(runs)) for policy, runs in policies.items()],
        notes=[
            how
            if most > 1
            else "One run of each policy; more seeds tell what is due to chance. Bold is best.",
            *remarks(OF_PAGE, [result for runs in policies.values() for result in runs]),
        ],
    )
    held = [{"repetitions": len(runs), **details(runs[0])} for runs in policies.values()]
    return {
        "name": topology.name,
        "gpus": topology.num_gpus,
        "num_jobs": len(first.records),
        "machines": machines_of(topology),
        "drawing": drawing.svg(topology) if topology.num_gpus <= MAX_DRAWN_GPUS else None,
        "conclusion": _conclusion(policies),
        **compared,
        "rows": [row | own for row, own in zip(compared["rows"], held, strict=True)],
    }


def _conclusion(policies: dict[str, list[Result]]) -> str:
    """Return how much sooner jobs finish under the best policy, by the seeds that all policies ran with."""
    by_seed = {policy: {run.seed: run for run in runs} for policy, runs in policies.items()}
    seeds = [seed for seed in next(iter(by_seed.values())) if all(seed in runs for runs in by_seed.values())]
    topology = next(iter(policies.values()))[0].topology
    scenario = Scenario(topology.name, "jobs", None)
    rows = [
        row_of(scenario, policy, [runs[seed].summary() for seed in seeds]) for policy, runs in by_seed.items()
    ]
    return conclusion(rows) if seeds else ""


def machines_of(topology: Topology) -> list[dict[str, Any]]:
    """Return the name, the GPUs and the domain, such as the rack, of each machine."""
    level = topology.fabric.levels[0] if topology.fabric is not None and topology.fabric.levels else None
    return [
        {
            "name": name,
            "gpus": [int(gpu) for gpu in topology.gpus_of[name]],
            "rack": (level.domains[number] or "") if level else "",
        }
        for number, name in enumerate(topology.machine_names)
    ]


def _figures(runs: Sequence[Result]) -> dict[str, Interval]:
    """Return mean, lower and upper end of the 95 % interval of each key figure."""
    summaries = [run.summary() for run in runs]
    samples = {
        key: Sample.of((summary[key] for summary in summaries), MEASURES[key].bounds) for key in OF_PAGE
    }
    return {key: (sample.mean, sample.low, sample.high) for key, sample in samples.items()}


def details(run: Result) -> dict[str, Any]:
    """Return the jobs of a run in columns, and each stay of a job on its GPUs."""
    jobs = run.jobs[:MAX_JOBS]
    row_of = {job: row for row, job in enumerate(jobs["job"].tolist())}
    shown = [job in row_of for job in run.stays["job"].tolist()]
    stays = run.stays[shown]
    scores = jobs["scores"]
    return {
        "left_out": len(run.jobs) - len(jobs),
        "jobs": {
            "id": [str(job) for job in jobs["job"]],
            **{
                name: _column(jobs[name])
                for name in ("submit", "start", "end", "wait", "run_time", "slowdown")
            },
            "num_gpus": jobs["num_gpus"].tolist(),
            "sensitive": jobs["bandwidth_sensitive"].astype(int).tolist(),
            "postponed": jobs["postponed"].tolist(),
            "rejected": [str(reason) for reason in jobs["rejected"]],
            "scores": {name: _column(scores[name]) for name in scores.dtype.names or ()},
        },
        "stays": {
            "job": [row_of[job] for job in stays["job"].tolist()],
            **{name: _column(stays[name]) for name in ("start", "end", "gpu_fraction")},
            "gpus": [list(map(int, gpus)) for gpus in stays["gpus"].tolist()],
        },
    }


def _column(values: NDArray[np.float64]) -> list[float | None]:
    return [rounded(value) for value in values.tolist()]
