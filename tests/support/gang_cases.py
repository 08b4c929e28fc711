"""Machines on a network as kernels take them, and jobs of collectives, for tests of gangs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import hypothesis.strategies as st
import numpy as np

from topoplace import kernels
from topoplace.kernels.job_traffic import KINDS


class Gang(NamedTuple):
    """The arguments of `map_gang`."""

    network: kernels.CollectiveNetwork
    job: kernels.JobCollectives
    tree: kernels.PortTree
    exchanges: kernels.Exchanges
    places: kernels.GangPlaces


def machines(sizes: Sequence[int], *, sharing: int = 1, adapter: float = 1.0) -> kernels.CollectiveNetwork:
    """Return machines of so many GPUs with NVSwitches, two in a rack; so many GPUs share an adapter."""
    machine = np.repeat(np.arange(len(sizes)), sizes)
    local = np.concatenate([np.arange(size) for size in sizes])
    n = len(machine)
    first = np.cumsum(sizes) - sizes
    own = n + first[machine] + local // sharing
    uplinks = 2 * n + machine // 2
    racks = (len(sizes) + 1) // 2
    everywhere, nowhere = np.zeros(n, int), np.full(n, -1)
    ports = kernels.PortNetwork(
        np.concatenate([np.full(n, 9.0), np.full(n, adapter), np.full(racks, 16 * adapter)]),
        [np.arange(n), own],
        [0, 1, 1],
        [machine, machine // 2, everywhere],
        [nowhere, uplinks, nowhere],
    )
    where = (machine, local, machine, own, local // sharing, local, machine)
    places = kernels.Places(*(one.astype(np.int32) for one in where))
    switched = kernels.SwitchRates(np.full(n, 8.0), np.zeros(n), np.zeros(n))
    return kernels.CollectiveNetwork(ports, places, switched, np.zeros(n), [None] * len(sizes))


class Collective(NamedTuple):
    """One of `JobCollectives`."""

    kind: str
    tasks: Sequence[int]
    gigabytes: float = 1.0


def job_of(phases: Sequence[Sequence[Collective]]) -> kernels.JobCollectives:
    """Return what these collectives exchange."""
    flat = [one for phase in phases for one in phase]
    return kernels.JobCollectives(
        np.cumsum([len(phase) for phase in phases], dtype=int),
        [KINDS.index(one.kind) for one in flat],
        np.cumsum([len(one.tasks) for one in flat], dtype=int),
        [task for one in flat for task in one.tasks],
        [one.gigabytes for one in flat],
    )


@st.composite
def phases_of(draw: st.DrawFn, num_tasks: int) -> list[list[Collective]]:
    """Return up to three phases of up to three collectives."""
    kind, order = st.sampled_from(KINDS), st.permutations(range(num_tasks))
    amount = st.sampled_from([0.0, 0.5, 2.0, 7.0])
    one = st.builds(
        lambda kind, order, size, amount: Collective(kind, order[:size], amount),
        kind,
        order,
        st.integers(2, max(2, num_tasks)),
        amount,
    )
    return draw(st.lists(st.lists(one, max_size=3 if num_tasks > 1 else 0), max_size=3))


def gang_on(
    network: kernels.CollectiveNetwork,
    sizes: Sequence[int],
    tasks: Sequence[Sequence[int]],
    phases: Sequence[Sequence[Collective]],
) -> Gang:
    """Return a gang of these items, on machines of these sizes, two in a rack; all GPUs are free."""
    racks, unit = (len(sizes) + 1) // 2, len(tasks[0]) if len(tasks) else 1
    parent = [-1, *[0] * racks, *(1 + number // 2 for number in range(len(sizes)))]
    tree = kernels.PortTree(
        parent,
        [size // unit for size in sizes],
        [0.0, *[2.0] * racks, *[0.0] * len(sizes)],
        [0, 0],
        [[1.0] * len(sizes)],
    )
    item_of = {task: item for item, row in enumerate(tasks) for task in row}
    edges: list[tuple[int, int, float]] = []
    ends: list[int] = []
    for phase in phases:
        for one in phase:
            pairs = zip(one.tasks, one.tasks[1:], strict=False)
            joined = [(item_of[a], item_of[b]) for a, b in pairs if item_of[a] != item_of[b]]
            edges += [(a, b, one.gigabytes) for a, b in joined]
        ends.append(len(edges))
    columns = np.array(edges).reshape(-1, 3).T
    return Gang(
        network,
        job_of(phases),
        tree,
        kernels.Exchanges(len(tasks), ends, columns[0], columns[1], columns[2]),
        kernels.GangPlaces(np.array(tasks).reshape(len(tasks), -1), np.cumsum(sizes), np.arange(sum(sizes))),
    )


@st.composite
def gangs(draw: st.DrawFn, most_machines: int = 5, most_tasks: int = 12) -> Gang:
    """Return gangs that may have too little room."""
    sizes = draw(st.lists(st.integers(1, 4), min_size=1, max_size=most_machines))
    network = machines(sizes, sharing=draw(st.integers(1, 2)), adapter=draw(st.sampled_from([0.5, 1.0, 3.0])))
    unit = draw(st.integers(1, 2))
    items = draw(st.integers(1, most_tasks // unit))
    order = draw(st.permutations(range(items * unit)))
    tasks = [order[item * unit : (item + 1) * unit] for item in range(items)]
    return gang_on(network, sizes, tasks, draw(phases_of(items * unit)))
