"""The bandwidths of sets of a machine's GPUs in collective operations, for `topoplace show --collective`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from topoplace._progress import Progress
from topoplace.cli import flags, gpu_list, writing

if TYPE_CHECKING:
    from topoplace.collective.surveys import RatedSet, Survey
    from topoplace.topology.links.nccl_rates import Rates
    from topoplace.topology.topology import Topology


def show(topology: Topology, size: int, rates: Rates, *, as_json: bool) -> None:
    """Print the best, the median and the worst set of `size` GPUs; ValueError for a cluster, and for a wrong size."""
    from topoplace import collective

    if topology.num_machines > 1:
        raise ValueError(f"{topology.name} has {topology.num_machines} machines: --one names the one to rate")
    with flags.named(size="--collective"), Progress("rating sets of GPUs"):
        found = collective.survey(topology, size, rates=rates)
    rows = [_row(topology, name, one, rates) for name, one in _named(found)]
    library = collective.library_of(topology)
    if as_json:
        facts = {
            "rates": rates.name,
            "library": library,
            "sets": found.num_sets,
            "all_sets": found.all_sets,
            "assumed": found.assumed,
            "choice_matters": found.choice_matters,
            "mean_gb_per_s": found.mean_gb_per_s,
        }
        writing.as_json(facts | {row.pop("set"): row for row in rows})
        return
    _show(topology, found, rows, rates)
    if library != "NCCL":
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
    from topoplace.drawing import tables

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
        print("note: The topology does not state its host; CPUs usual with its PCIe are assumed.")
