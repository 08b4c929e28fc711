"""`topoplace simulate` runs a queue of jobs under one policy; `topoplace compare` under several, side by side."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from topoplace.cli import options, reading, writing

if TYPE_CHECKING:
    from topoplace.policies.base import Policy
    from topoplace.simulate import Result, Workload
    from topoplace.topology import Topology

# Heading -> key of a row of `Result.compare`.
_COMPARED = {
    "policy": "policy",
    "makespan s": "makespan",
    "utilization": "utilization",
    "mean wait s": "mean_wait",
    "sensitive p75 s": "sensitive_run_time_p75",
    "median EffBW": "sensitive_effective_bandwidth_p50",
    "throughput x": "speedup",
    "p75 x": "sensitive_p75_speedup",
}


def add(commands: Any) -> None:
    """Both commands."""
    simulate = options.command(commands, "simulate", "run a queue of jobs under one policy", _simulate)
    options.add_topology(simulate)
    options.add_policy(simulate)
    _add_workload(simulate)
    compare = options.command(
        commands, "compare", "run the same jobs under several policies, side by side", _compare
    )
    options.add_topology(compare)
    compare.add_argument("--policies", help="comma-separated names (default: all)")
    _add_workload(compare)


def _add_workload(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--jobs", metavar="FILE", help="CSV with a header, or MAPA's job lines; default: MAPA's job mix"
    )
    parser.add_argument(
        "--num-jobs",
        type=options.count,
        default=300,
        metavar="N",
        help="of the default mix (default: 300)",
    )
    options.add_seed(parser, "the mix and the run times")
    parser.add_argument(
        "--performance", choices=("mapa", "fixed"), default="mapa", help="run times (default: mapa)"
    )
    options.add_json(parser)
    options.add_output(parser)


def _simulate(arguments: argparse.Namespace) -> None:
    from topoplace import policies
    from topoplace.report import tables

    topology = reading.topology(arguments)
    picture = reading.output(arguments.output, "gantt.png")
    result = _result(topology, _workload(arguments), policies.get(arguments.policy), arguments)
    summary = result.summary()
    if arguments.json:
        writing.as_json({"topology": topology.name, "policy": result.policy, **summary})
    else:
        title = f"{len(result.jobs)} jobs on {topology.name}, {result.policy}"
        tables.show(("measure", "value"), summary.items(), title)
    if picture:
        result.gantt(picture)
        writing.wrote(picture, beside_json=arguments.json)


def _compare(arguments: argparse.Namespace) -> None:
    from topoplace import policies
    from topoplace.report import plots

    topology = reading.topology(arguments)
    picture = reading.output(arguments.output, "comparison.png")
    names = arguments.policies.split(",") if arguments.policies else policies.names()
    chosen = [policies.get(name.strip()) for name in names]
    workload = _workload(arguments)
    results = [_result(topology, workload, policy, arguments) for policy in chosen]
    rows = results[0].compare(results[1:])
    if arguments.json:
        writing.as_json(rows)
    else:
        _print_comparison(rows, f"{len(workload)} jobs on {topology.name}")
    if picture:
        plots.comparison(results, picture)
        writing.wrote(picture, beside_json=arguments.json)


def _result(topology: Topology, workload: Workload, policy: Policy, arguments: argparse.Namespace) -> Result:
    from topoplace.simulate import FixedTime, MapaSlowdown, simulate

    model = MapaSlowdown() if arguments.performance == "mapa" else FixedTime()
    return simulate(
        topology, workload, policy, performance=model, seed=arguments.seed, progress=not arguments.json
    )


def _workload(arguments: argparse.Namespace) -> Workload:
    from topoplace.simulate import Workload

    if not arguments.jobs:
        return Workload.mapa(arguments.num_jobs, arguments.seed)
    text = reading.text(arguments.jobs)
    try:
        return Workload.from_mapa(text) if text.lstrip()[:1].isdigit() else Workload.from_csv(text)
    except ValueError as error:
        raise ValueError(f"{arguments.jobs}: {error}") from None


def _print_comparison(rows: Sequence[dict[str, Any]], title: str) -> None:
    from topoplace.report import tables

    tables.show(tuple(_COMPARED), [[row[key] for key in _COMPARED.values()] for row in rows], title)
