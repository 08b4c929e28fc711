"""Run a benchmark among sets of GPUs, in the order of their rings."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import replace

from topoplace.collective.bandwidth import DEFAULT_RATES, rings
from topoplace.discovery.live.programs import NotHereError
from topoplace.topology.links.nccl_rates import Rates, rates_of
from topoplace.topology.topology import Topology
from topoplace_lab.measuring.measurements import MeasuredSet
from topoplace_lab.measuring.nccl_tests import AllReducePerf


def planning_rates(rates: Rates | str) -> Rates:
    """Return `rates` without achieved shares, because measurements are compared with the plan itself."""
    return replace(rates_of(rates), achieved={})


def measured_sets(
    topology: Topology,
    sets: Iterable[Collection[int]],
    *,
    benchmark: AllReducePerf | None = None,
    rates: Rates | str = DEFAULT_RATES,
) -> Iterator[MeasuredSet]:
    """Yield each of the `sets` of GPUs after it was measured on this host, which `topology` describes.

    A run that fails is yielded with its failure. ValueError for a set that `rings` refuses, or that has no rings.
    """
    run = benchmark or AllReducePerf()
    plain = planning_rates(rates)
    plans = [(gpus, rings(topology, gpus, rates=plain)) for gpus in sets]
    for gpus, plan in plans:
        if plan.path_type is None:
            raise ValueError(f"gpus = {tuple(gpus)}: there are no rings among them")
    for _, plan in plans:
        order, gb_per_s, failure = plan.rings[0].gpus, None, ""
        try:
            gb_per_s = run.bus_bandwidth(order)
        except NotHereError as error:
            failure = str(error)
        yield MeasuredSet(order, str(plan.path_type), plan.gb_per_s, gb_per_s, failure)
