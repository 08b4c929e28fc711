"""The time of collective operations: bandwidth for large messages, latency per hop for small ones."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Literal

from topoplace import _checks
from topoplace.collective.bandwidth import (
    DEFAULT_RATES,
    nvls_bandwidth,
    optimal_bandwidth,
    ring_bandwidth,
    rings,
)
from topoplace.collective.prepared import checked_gpus
from topoplace.collective.several_machines import parts_of
from topoplace.collective.tree_plans import trees
from topoplace.topology.links.nccl_rates import PathType, Rates
from topoplace.topology.topology import Topology

Algorithm = Literal["ring", "trees", "nvls"]
Operation = Literal["all-reduce", "all-gather", "reduce-scatter"]
_OVER_NVLINKS = (PathType.NVL.name, PathType.NVB.name, PathType.C2C.name)


@dataclass(frozen=True, slots=True)
class Latencies:
    """Latencies of a small message in microseconds, by default those of NCCL's tuning model for its protocol LL in
    rings.
    """

    start: float = 6.6
    """Microseconds before the first hop."""
    nvlink: float = 0.6
    """Microseconds of a hop over NVLinks."""
    host: float = 1.0
    """Microseconds of a hop over PCIe."""
    network: float = 2.7
    """Microseconds of a hop to another machine."""

    def __post_init__(self) -> None:
        for name in ("start", "nvlink", "host", "network"):
            _checks.real(getattr(self, name), name, ValueError)


NCCL_LATENCIES = Latencies()


def collective_time(
    topology: Topology,
    gpus: Collection[int],
    num_bytes: float,
    algorithm: Algorithm = "ring",
    *,
    operation: Operation = "all-reduce",
    rates: Rates | str = DEFAULT_RATES,
    latencies: Latencies = NCCL_LATENCIES,
) -> float:
    """Return the seconds of one collective operation over `num_bytes`, the data of all GPUs after an all-gather.

    Args:
        algorithm: "ring" takes n - 1 steps of 1 / n of the data over the rings of `ring_bandwidth`; an all-reduce takes
            twice as many. "trees", on one machine only, sends along the trees that reach `optimal_bandwidth`; an
            all-reduce goes up and down. "nvls" is an all-reduce in the NVSwitches, at `nvls_bandwidth`: one hop to them
            and one back. Each step or tree level adds the latency of its slowest kind of hop. The time is infinite if
            the bandwidth is 0.

    Raises:
        ValueError: Names a wrong argument, such as "nvls" for another operation than an all-reduce.
    """
    _checks.one_of(algorithm, "algorithm", ("ring", "trees", "nvls"), ValueError)
    _checks.one_of(operation, "operation", ("all-reduce", "all-gather", "reduce-scatter"), ValueError)
    _checks.instance(latencies, Latencies, "latencies", ValueError)
    amount = _checks.real(num_bytes, "num_bytes", ValueError) / 1e9
    numbers = checked_gpus(topology, gpus)
    rounds = 2 if operation == "all-reduce" else 1
    if algorithm == "nvls" and rounds == 1:
        raise ValueError(f"operation = {operation!r} by NVLS is not modelled; only an all-reduce is")
    gb_per_s, share, hops_us = _carried(topology, numbers, algorithm, rates, latencies)
    if not gb_per_s:
        return float("inf")
    return (latencies.start + rounds * hops_us) / 1e6 + rounds * share * amount / gb_per_s


def _carried(
    topology: Topology,
    gpus: Sequence[int],
    algorithm: Algorithm,
    rates: Rates | str,
    latencies: Latencies,
) -> tuple[float, float, float]:
    """Return GB/s, the share of the data that passes at this rate in a round, and the microseconds of all its hops."""
    bus_share = (len(gpus) - 1) / len(gpus)
    if algorithm == "ring":
        gb_per_s = ring_bandwidth(topology, gpus, rates=rates)
        return gb_per_s, bus_share, _ring_us(topology, gpus, rates, latencies)
    if algorithm == "nvls":
        return nvls_bandwidth(topology, gpus, rates=rates), bus_share, latencies.nvlink
    plan = trees(topology, gpus, rates=rates)
    depth = max((tree.depth for tree in plan.trees), default=0)
    hops_us = depth * _hop_us(topology, gpus, rates, latencies)
    return float(optimal_bandwidth(topology, gpus, rates=rates)), 1.0, hops_us


def _ring_us(topology: Topology, gpus: Sequence[int], rates: Rates | str, latencies: Latencies) -> float:
    """Return the microseconds of one round along a ring: the machines are passed once, all else is inside them."""
    parts = parts_of(topology, gpus)
    inside = [_hop_us(topology, part.gpus, rates, latencies) for part in parts if len(part.gpus) > 1]
    between = len(parts) - 1
    return between * latencies.network + (len(gpus) - 1 - between) * max(inside, default=0.0)


def _hop_us(topology: Topology, gpus: Sequence[int], rates: Rates | str, latencies: Latencies) -> float:
    """Return the microseconds of the slowest hop among GPUs of one machine."""
    path_type = rings(topology, gpus, rates=rates).path_type
    return latencies.nvlink if path_type in _OVER_NVLINKS else latencies.host
