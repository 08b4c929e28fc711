"""`topoplace collective` prints what the sets of some GPUs carry in collective operations."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from topoplace._progress import Progress
from topoplace.cli import flags, gpu_list, options, reading, writing

if TYPE_CHECKING:
    from topoplace.collective.rates import Rates
    from topoplace.collective.survey import RatedSet, Survey
    from topoplace.topology.topology import Topology


def add(commands: Any) -> None:
    """Add `topoplace collective` and its arguments to the command line."""
    parser = options.command(
        commands,
        "collective",
        "print which GPUs of a machine carry the most in collective operations such as all-reduce",
        _run,
        examples=[
            "topoplace collective dgx1-v100 --gpus 4",
            "topoplace collective measure -o measured.json",
        ],
    )
    options.add_topology(parser)
    parser.add_argument("--one", metavar="MACHINE", help="only this machine of the topology")
    parser.add_argument("--gpus", type=int, default=4, metavar="N", help="number of GPUs (default: 4)")
    options.add_rates(parser)
    options.add_json(parser)


def _run(arguments: argparse.Namespace) -> None:
    from topoplace import collective

    topology = reading.topology(arguments)
    if arguments.one is not None:
        with flags.named(name="--one"):
            topology = topology.machine(arguments.one)
    elif topology.num_machines > 1:
        raise ValueError(f"{topology.name} has {topology.num_machines} machines: --one names the one to rate")
    rates = reading.rates(arguments.rates)
    with flags.named(size="--gpus"), Progress("rating sets of GPUs"):
        found = collective.survey(topology, arguments.gpus, rates=rates)
    rows = [_row(topology, name, one, rates) for name, one in _named(found)]
    if arguments.json:
        facts = {
            "rates": rates.name,
            "library": collective.library_of(topology),
            "sets": found.num_sets,
            "all_sets": found.all_sets,
            "assumed": found.assumed,
            "choice_matters": found.choice_matters,
            "mean_gb_per_s": found.mean_gb_per_s,
        }
        writing.as_json(facts | {row.pop("set"): row for row in rows})
        return
    _show(topology, found, rows, rates)
    if (library := collective.library_of(topology)) != "NCCL":
        print(
            f"note: These GPUs run {library}; the figures are what NCCL would plan, as {library}'s rules are not known."
        )


def _named(found: Survey) -> tuple[tuple[str, RatedSet], ...]:
    return ("best", found.best), ("median", found.median), ("worst", found.worst)


def _row(topology: Topology, name: str, one: RatedSet, rates: Rates) -> dict[str, Any]:
    from topoplace import collective

    plan = collective.rings(topology, one.gpus, rates=rates)
    optimum = collective.optimal_bandwidth(topology, one.gpus, rates=rates)
    return {
        "set": name,
        "gpus": list(one.gpus),
        "ring_gb_per_s": plan.gb_per_s,
        "all_reduce_gb_per_s": collective.all_reduce_bandwidth(topology, one.gpus, rates=rates),
        "optimal_gb_per_s": float(optimum * (len(one.gpus) - 1) / len(one.gpus)),
        "path_type": plan.path_type,
        "order": list(plan.rings[0].gpus) if plan.rings else [],
        "channels": sum(ring.channels for ring in plan.rings),
    }


def _sets(found: Survey) -> str:
    return f"{'all' if found.all_sets else 'random'} {found.num_sets} sets"


def _show(topology: Topology, found: Survey, rows: list[dict[str, Any]], rates: Rates) -> None:
    from topoplace.experiments.report import tables

    number_of = gpu_list.numbers(topology)
    cells = [
        (
            row["set"],
            gpu_list.text(map(number_of.__getitem__, row["gpus"])),
            row["ring_gb_per_s"],
            row["optimal_gb_per_s"],
            row["path_type"] or "-",
            row["channels"],
            gpu_list.text(map(number_of.__getitem__, row["order"])) or "-",
        )
        for row in rows
    ]
    columns = ("", "GPUs", "rings GB/s", "optimum GB/s", "paths", "channels", "order of a ring")
    title = f"{topology.name}: {_sets(found)} of {len(found.best.gpus)} GPUs, {rates.name}"
    tables.show(columns, cells, title)
    print(f"mean of the rings: {tables.number(found.mean_gb_per_s)} GB/s")
    best = rows[0]
    if best["all_reduce_gb_per_s"] > best["ring_gb_per_s"]:
        faster = tables.number(best["all_reduce_gb_per_s"])
        print(f"note: An all-reduce in the NVSwitches (NVLS) is faster than rings: {faster} GB/s.")
    if rates.achieved:
        print("note: The measured factors correct the rings, not the optimum.")
    if found.assumed:
        print("note: The topology does not tell its host; CPUs usual with its PCIe are assumed.")
