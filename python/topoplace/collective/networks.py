"""A topology as a network on which collectives run: its ports, and the rings planned in machines and NVLink domains."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from topoplace import kernels
from topoplace.collective.machine_graph import MAX_GPUS
from topoplace.collective.nvlink_domains import domain_level, reducing, switched
from topoplace.collective.prepared import prepared
from topoplace.collective.rated_sets import only_through_switches, ring_rates
from topoplace.topology.links.nccl_rates import Rates, rates_of
from topoplace.topology.ports import Ports, switched_levels
from topoplace.topology.topology import Topology

Ints = NDArray[np.int64]
_NO_LIMIT = 1e9


def collective_network(topology: Topology, rates: Rates | str) -> kernels.CollectiveNetwork:
    """Return the network of a topology, built once for each table of rates; ValueError for unknown rates."""
    table = rates_of(rates)
    kept = topology.derived(_nothing_yet)
    if table not in kept:
        kept[table] = _made(topology, table)
    return kept[table]


def _nothing_yet(_: Topology) -> dict[Rates, kernels.CollectiveNetwork]:
    return {}


def _made(topology: Topology, rates: Rates) -> kernels.CollectiveNetwork:
    ports = topology.derived(Ports)
    domains, switches = topology.derived(_domains)
    places = kernels.Places(
        *(
            one.astype(np.int32)
            for one in (
                topology.machine_of,
                np.array(topology.local_index),
                domains,
                ports.adapters,
                _rails_of_adapters(ports),
                ports.near_order,
                switches,
            )
        )
    )
    return kernels.CollectiveNetwork(
        ports.network,
        places,
        _switched(topology, switches, rates),
        ports.has_links,
        [_rated(topology.template(machine), rates) for machine in range(topology.num_machines)],
    )


def domains_of(topology: Topology) -> Ints:
    """Return (n,) the domain of each GPU in which the library plans rings: its machine, or its NVLink domain."""
    return topology.derived(_domains)[0]


def _domains(topology: Topology) -> tuple[Ints, Ints]:
    """Return (n,) the domain of each GPU, and (n,) the number of the NVSwitches that it shares; -1 for none."""
    domains = topology.machine_of.astype(np.int64)
    switches = topology.derived(Ports).switches.astype(np.int64)
    for level in switched_levels(topology):
        codes = level.codes[topology.machine_of].astype(np.int64)
        domains = np.where(codes >= 0, topology.num_machines + codes, domains)
        switches = np.where(codes >= 0, topology.num_gpus + codes, switches)
    return domains, switches


def _rails_of_adapters(ports: Ports) -> Ints:
    """Return (n,) the lowest rail of the GPUs that have the adapter of each GPU."""
    lowest = np.full(int(ports.adapters.max(initial=0)) + 1, np.iinfo(np.int32).max)
    with_one = ports.adapters >= 0
    np.minimum.at(lowest, ports.adapters[with_one], ports.rails[with_one])
    return np.where(with_one, lowest[ports.adapters], 0)


def _rated(machine: Topology, rates: Rates) -> kernels.RingRates | None:
    """Return what rings on a machine carry; None for one GPU, and for more than can be rated."""
    return ring_rates(machine, rates) if 1 < machine.num_gpus <= MAX_GPUS else None


def _switched(topology: Topology, switches: Ints, rates: Rates) -> kernels.SwitchRates:
    """Return what goes through the NVSwitches of each GPU, of its NVLink domain or its machine."""
    firsts = np.unique(_alike(topology), return_index=True, return_inverse=True)[1:]
    rows = np.array([_through_switches(topology, gpu, rates) for gpu in firsts[0].tolist()])
    found = np.where(switches[:, None] >= 0, rows[firsts[1].reshape(-1)], 0.0)
    return kernels.SwitchRates(*found.T)


def _alike(topology: Topology) -> Ints:
    """Return (n,) equal numbers for the GPUs that have the same place on equal machines, in a domain or not."""
    template = np.array(topology.template_of, np.int64)
    template = template[topology.machine_of] if topology.tiling else np.zeros(topology.num_gpus, np.int64)
    number: Ints = template * topology.num_gpus + np.array(topology.local_index, np.int64)
    for level in switched_levels(topology):
        number = 2 * number + (level.codes[topology.machine_of] >= 0)
    return number


def _through_switches(topology: Topology, gpu: int, rates: Rates) -> tuple[float, float, float]:
    """Return the three GB/s of `SwitchRates` of a GPU; 0 if not all GPUs of its machine are alike on NVSwitches."""
    found = None
    machine = topology.template(int(topology.machine_of[gpu]))
    if domain_level(topology, [gpu]) is not None:
        found = switched(topology, [gpu], rates)
    elif 1 < machine.num_gpus <= MAX_GPUS and only_through_switches(prepared(machine, rates)):
        found = switched(machine, [0, 1], rates)
    if found is None:
        return 0.0, 0.0, 0.0
    gb_per_s, most = reducing(found.ring_gb_per_s, found.capability, rates)
    return found.ring_gb_per_s, gb_per_s, min(most, _NO_LIMIT)
