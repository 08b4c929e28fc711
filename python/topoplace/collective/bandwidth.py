"""Bandwidth of collective operations in GB/s: rings among GPUs of one machine, and all-reduces in NVSwitches.

In NVSwitches (NVLink SHARP, NVLS), the switches add, so that each GPU sends its data once. For b bytes, each GPU sends
b to the switches, which add the parts of all GPUs. It then gets 1 / n of the sums and sends them back to the switches,
which send them to all: b (1 + 1 / n) pass its port in each direction. An all-reduce by rings takes 2 b (n - 1) / n. At
equal port rates, NVLS therefore has 2 (n - 1) / (n + 1) times the bus bandwidth of rings. It reaches a share of that
(`Rates.nvls_efficiency`): 0.85 on Hopper and 0.74 on Blackwell, in the tuning model of NCCL.

Published measurements, bus bandwidth in GB/s: 8 H100 476 and 480 (NVIDIA/nccl-tests issues 290 and 309), 8 H200 475
(issue 272), 8 H800 215 (NVIDIA/nccl issue 1374), 8 B200 830 (issue 1807), 8 B300 845 (issue 2140), 8 GB200 on two trays
811, 72 GB200 839 to 847 (coreweave/nccl-tests pull request 43). The formula gives 476, 476, 212, 829 for the first
four. It grows with n to 2 x 0.74 of the port's rate, but 72 GB200 reach no more than 8 do. From Blackwell on, the limit
is therefore 7 / 6 of the ring's rate: 840 GB/s.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from fractions import Fraction
from typing import Final, Literal

from topoplace import _checks, kernels
from topoplace.collective import several_machines
from topoplace.collective.machine_graph import UNITS_PER_GB
from topoplace.collective.nvlink_domains import domain_level, domain_ring_rate, reducing, switched
from topoplace.collective.prepared import are_on_one_machine, checked_gpus, one_machine, prepared
from topoplace.collective.several_machines import bandwidth_over
from topoplace.kernels.job_traffic import reduced_bandwidth
from topoplace.topology.links.nccl_rates import PathType, Rates, rates_of
from topoplace.topology.makers import LIBRARY_OF, are_mixed, gpus_by_maker, maker_of
from topoplace.topology.topology import Topology

DEFAULT_RATES = "nccl-2.30"
Relay = Literal["chosen", "all"]
_ONLY_INTEGERS = frozenset({int})


@dataclass(frozen=True, slots=True)
class Ring:
    """Equal rings through all chosen GPUs."""

    gpus: tuple[int, ...]
    """The GPUs in the order of the ring, from the smallest number on; an order for CUDA_VISIBLE_DEVICES."""
    channels: int
    """The number of these rings."""
    gb_per_s: float
    """GB/s of one ring."""


@dataclass(frozen=True, slots=True)
class RingPlan:
    """The rings that a collective library would use among GPUs."""

    rings: tuple[Ring, ...]
    gb_per_s: float
    """GB/s of all rings together: the bus bandwidth of a ring collective."""
    path_type: str | None
    """The worst type of path that rings may use, as NCCL calls it, such as "NVL" or "SYS"; None without rings."""
    assumed: bool
    """True if the topology does not state its PCIe switches and CPUs, which are then assumed."""
    complete: bool
    """False if the search reached its limit (NCCL's has one too), so that more rings of this rate and path type may
    exist.
    """


def ring_bandwidth(topology: Topology, gpus: Collection[int], *, rates: Rates | str = DEFAULT_RATES) -> float:
    """Return GB/s that the rings through `gpus` carry together: the bus bandwidth of a ring collective.

    The search for rings is NCCL's: at the rates of its table, over NVLinks alone if they connect all GPUs, otherwise
    also over PCIe and CPUs. The result is NCCL's plan and not the optimum (see `optimal_bandwidth`). On machines with
    uneven links, it depends on the numbers of the GPUs, and a faster link can lower it.

    Only the chosen GPUs forward data. If no rate of the table fits, such as over PCIe among GPUs of compute capability
    10.0 and more, slower rates are tried. The result is 0 if no ring connects the GPUs, or if they are of several
    makers, whose libraries cannot communicate. In an NVLink domain of machines, any GPUs have the same rings
    (`nvlink_domains`). Over several machines, rings run in channels, one over each adapter, and visit machines in the
    order in which `gpus` names them. An all-reduce may be faster: see `all_reduce_bandwidth`.

    Raises:
        ValueError: Names a wrong argument.
    """
    if topology.num_machines == 1 and topology.tiling is None and not topology.derived(gpus_by_maker):
        machine = prepared(topology, rates)
        chosen = _checks.sequence(gpus, "gpus", ValueError)
        if _ONLY_INTEGERS.issuperset(map(type, chosen)):  # True and False would pass for GPUs 1 and 0
            try:
                return machine.ring_bandwidth(chosen)
            except (IndexError, ValueError):
                pass  # the checks below say what is wrong
    numbers = checked_gpus(topology, gpus)
    if are_mixed(topology, numbers):
        return 0.0
    if in_domain := domain_ring_rate(topology, numbers, rates):
        return in_domain
    if not are_on_one_machine(topology, numbers):
        return several_machines.bandwidth_over(topology, numbers, rates, "ring")
    local, own = one_machine(topology, numbers)
    return prepared(local, rates).ring_bandwidth(tuple(own))


def rings(topology: Topology, gpus: Collection[int], *, rates: Rates | str = DEFAULT_RATES) -> RingPlan:
    """Return the rings behind `ring_bandwidth`, for GPUs of one machine; arguments and errors are the same."""
    local, chosen = one_machine(topology, gpus)
    machine = prepared(local, rates)
    if are_mixed(local, chosen):
        return RingPlan((), 0.0, None, machine.graph.assumed, complete=True)
    found, gb_per_s = machine.channels(chosen)
    number = dict(zip(chosen, (int(gpu) for gpu in gpus), strict=True))
    return RingPlan(
        tuple(Ring(tuple(number[gpu] for gpu in order), count, gb_per_s) for order, count in found.rings),
        found.num_rings * gb_per_s,
        PathType(found.level).name if found.num_rings else None,
        machine.graph.assumed,
        found.complete,
    )


def why_no_rings(topology: Topology, gpus: Collection[int], *, rates: Rates | str = DEFAULT_RATES) -> str:
    """Return in words why `ring_bandwidth` is 0; "" if it is not. Arguments and errors are the same."""
    numbers = checked_gpus(topology, gpus)
    if ring_bandwidth(topology, numbers, rates=rates):
        return ""
    if are_mixed(topology, numbers):
        return f"the GPUs {_checks.shown(tuple(numbers))} are of several makers, whose libraries do not meet"
    for part in several_machines.parts_of(topology, numbers):
        if len(part.gpus) < 2 or ring_bandwidth(topology, part.gpus, rates=rates):
            continue
        if not broadcast_bandwidth(topology, part.gpus, rates=rates):
            return f"there is no path between all of the GPUs {_checks.shown(part.gpus)}"
        return f"no ring passes the links among the GPUs {_checks.shown(part.gpus)}"
    return f"there is no path between the machines of the GPUs {_checks.shown(tuple(numbers))}"


def optimal_bandwidth(
    topology: Topology,
    gpus: Collection[int],
    *,
    relay: Relay = "chosen",
    rates: Rates | str = DEFAULT_RATES,
) -> Fraction:
    """Return the exact GB/s of the best all-gather among `gpus`: all data divided by the least time.

    No schedule is faster, and schedules of trees reach this bandwidth (Zhao et al., ForestColl, arXiv 2402.06787). The
    bus bandwidth is (n - 1) / n of it.

    Several machines must be joined by a fabric. Other arguments and errors are those of `ring_bandwidth`.

    Args:
        relay: "chosen" lets only `gpus`, switches and CPUs forward data; "all" also lets the other GPUs of their
            machines.
    """
    relay_others = _checks.one_of(relay, "relay", ("chosen", "all"), ValueError) == "all"
    numbers = checked_gpus(topology, gpus)
    if topology.tiling and not are_on_one_machine(topology, numbers):
        graph = several_machines.graph_over(topology, numbers, rates, others=relay_others)
        over = kernels.throughput_bound(graph.terminals(), range(len(numbers)))
        return over.throughput(len(numbers)) * graph.unit / UNITS_PER_GB
    local, chosen = one_machine(topology, numbers)
    machine = prepared(local, rates)
    bound = kernels.throughput_bound(machine.terminals, chosen, relay_others=relay_others)
    return bound.throughput(len(chosen)) / UNITS_PER_GB


def broadcast_bandwidth(
    topology: Topology,
    gpus: Collection[int],
    *,
    relay: Relay = "chosen",
    rates: Rates | str = DEFAULT_RATES,
) -> Fraction:
    """Return the exact GB/s of a broadcast from the worst of `gpus`: the smallest maximum flow between two of them.

    No set of rings carries more. Arguments and errors are those of `optimal_bandwidth`.
    """
    relay_others = _checks.one_of(relay, "relay", ("chosen", "all"), ValueError) == "all"
    local, chosen = one_machine(topology, gpus)
    machine = prepared(local, rates)
    least = kernels.least_max_flow(machine.terminals, chosen, relay_others=relay_others)
    return Fraction(least.value, UNITS_PER_GB)


def library_of(topology: Topology) -> str:
    """Return the collective library of these GPUs, such as "NCCL" or "RCCL".

    GPUs of Neuron and of unknown makers have "another library". Bandwidths are those of NCCL's plan, even if another
    library runs.
    """
    return LIBRARY_OF.get(maker_of(topology, 0), "another library")


def host_is_assumed(topology: Topology, *, rates: Rates | str = DEFAULT_RATES) -> bool:
    """Return True if a one-machine topology does not state its PCIe switches and CPUs, so that bandwidths assume usual
    ones.
    """
    return prepared(topology, rates).graph.assumed


_FEWEST_GPUS: Final = 3
"""Least number of GPUs for NVLS: two GPUs would have 2 / 3 of the rate of rings."""


def nvls_rate(num_gpus: int, ring_gb_per_s: float, capability: int, rates: Rates) -> float:
    """Return GB/s, as bus bandwidth, of an all-reduce by NVLS among GPUs on common NVSwitches; 0 without NVLS.

    Arguments are those of `nvlink_domains.reducing`.
    """
    found = reducing(ring_gb_per_s, capability, rates)
    return reduced_bandwidth(num_gpus, *found) if num_gpus >= _FEWEST_GPUS else 0.0


def nvls_bandwidth(topology: Topology, gpus: Collection[int], *, rates: Rates | str = DEFAULT_RATES) -> float:
    """Return GB/s, as bus bandwidth, of an all-reduce in the NVSwitches of one machine or NVLink domain.

    Return 0 without NVLS: for fewer than three GPUs, for GPUs not all on the same NVSwitches, below compute capability
    9.0, and with rates without NVLS, such as "nccl-2.30-rings".

    Raises:
        ValueError: Names a wrong argument.
    """
    numbers, table = checked_gpus(topology, gpus), rates_of(rates)
    if len(numbers) < _FEWEST_GPUS or not table.nvls_efficiency:
        return 0.0
    found = switched(topology, numbers, table)
    return nvls_rate(len(numbers), found.ring_gb_per_s, found.capability, table) if found else 0.0


def all_reduce_bandwidth(
    topology: Topology, gpus: Collection[int], *, rates: Rates | str = DEFAULT_RATES
) -> float:
    """Return GB/s, as bus bandwidth, of an all-reduce among `gpus`: by rings, or by NVLS if that is faster.

    Over several machines that do not share NVSwitches, the all-reduce runs in channels, and by NVLS inside machines.
    Errors are those of `ring_bandwidth`.
    """
    numbers = checked_gpus(topology, gpus)
    if are_mixed(topology, numbers):
        return 0.0
    if domain_level(topology, numbers) is None and not are_on_one_machine(topology, numbers):
        return bandwidth_over(topology, numbers, rates, "reduce")
    return max(ring_bandwidth(topology, gpus, rates=rates), nvls_bandwidth(topology, gpus, rates=rates))
