"""What machines offer to a gang, in C++, beside the same in plain Python."""

from __future__ import annotations

from collections import defaultdict
from functools import cache

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given

import topoplace as tp
from topoplace import LinkKind, _core
from topoplace.collective.networks import domains_of
from topoplace.deciding.bounds import gang_machines
from topoplace.deciding.gang_topology import chain_of, rooms_of
from topoplace.engine.gangs.offers import Offers, offers_of
from topoplace.engine.machine_state import ClusterView
from topoplace.engine.machines.machine_class import members
from topoplace.engine.request import JobRequest
from topoplace.topology.ports import Ports


@cache
def topology(name: str, has_domains: bool) -> tp.Topology:
    """Twelve machines in pods of 6 and leaves of 3, whose names are not in order; NVLink domains have 3 machines."""
    kind = LinkKind.NVSWITCH if has_domains else LinkKind.NETWORK
    leaf = tp.Level("leaf", tuple(f"leaf{i * 5 % 4}" for i in range(12)), kind=kind)
    pod = tp.Level("pod", tuple(f"pod{i % 2}" for i in range(12)), 100.0, oversubscription=2.0)
    fabric = tp.Fabric(tuple(f"m{i}" for i in range(12)), (leaf, pod))
    return tp.Topology.cluster(tp.machines.get(name), fabric=fabric)


@st.composite
def offered(draw: st.DrawFn) -> tuple[JobRequest, ClusterView, Offers]:
    cluster = tp.Cluster(topology(draw(st.sampled_from(["dgx1-v100", "dgx-h100"])), draw(st.booleans())))
    gpus = st.integers(0, cluster.topology.num_gpus - 1)
    if busy := draw(st.lists(gpus, unique=True, max_size=90)):
        cluster.allocate("busy", busy)
    job = tp.JobGraph.ring(draw(st.integers(2, 40))).with_(anti_affinity=draw(st.booleans()))
    view = cluster.view(ClusterView)
    request = view.request(job)
    offers = offers_of(lambda _, state: state.free.bit_count(), request, view)
    chosen = draw(st.permutations(range(len(offers))))[: draw(st.integers(1, 12))]
    return request, view, offers.at(np.array(chosen, np.int64))


@given(offered())
def test_leaves_are_machines_in_the_order_of_their_domains(
    case: tuple[JobRequest, ClusterView, Offers],
) -> None:
    request, view, offers = case
    if not len(offers):
        return
    levels = chain_of(request, view)[:0:-1]
    by_machine = {one.machine: one for one in offers}
    order = sorted(by_machine, key=lambda machine: ([int(level.codes[machine]) for level in levels], machine))
    gpus = [
        view.classes.gpus_of[machine][gpu]
        for machine in order
        for gpu in members(by_machine[machine].gpus_for(by_machine[machine].max_tasks))
    ]
    machines = view.cluster.topology.derived(gang_machines)
    codes = [level.codes for level in levels]
    assert _core.gang_tree(machines, offers.native, codes)[-1].tolist() == gpus


@given(offered(), st.integers(2, 40))
def test_rooms_and_channels(case: tuple[JobRequest, ClusterView, Offers], size: int) -> None:
    request, view, offers = case
    if not len(offers):
        return
    most = 1 if request.anti_affine else request.size
    rooms = rooms_of(request, offers, view)
    ports, domains = view.cluster.topology.derived(Ports), domains_of(view.cluster.topology)
    room: dict[int, int] = defaultdict(int)
    adapters: dict[int, dict[int, float]] = defaultdict(dict)
    for one in offers:
        numbers = view.classes.gpus_of[one.machine]
        domain = int(domains[numbers[0]])
        room[domain] += min(one.size, most)
        for gpu in (numbers[local] for local in members(one.usable)):
            if (port := int(ports.adapters[gpu])) >= 0:
                adapters[domain][port] = max(adapters[domain].get(port, 0.0), float(ports.ways_out[gpu]))
    assert rooms.native.ring_tasks.tolist() == [room[domain] for domain in sorted(room)]
    assert rooms.native.fit_rings(size) == sum(one // size for one in room.values())
    speeds = {speed for own in adapters.values() for speed in own.values()}
    assert rooms.native.has_adapters == bool(speeds)
    best = 0.0
    for speed in speeds:
        counts = {domain: sum(one >= speed for one in adapters[domain].values()) for domain in room}
        for channels in range(1, size // 2 + 1):  # a task of each domain for every channel
            able = [room[domain] for domain in room if min(counts[domain], room[domain]) >= channels]
            if sum(sorted(able)[-(size // channels) :]) >= size:
                best = max(best, speed * channels)
    assert rooms.native.channels(size) == best
    tasks = {one.machine: min(one.size, most) for one in offers}
    assert rooms.native.most_tasks[0] == sum(tasks.values())
    for depth, level in enumerate(chain_of(request, view)[::-1], 1):
        sums: dict[int, int] = defaultdict(int)
        for machine, count in tasks.items():
            sums[int(level.codes[machine])] += count
        assert rooms.native.most_tasks[depth] == max(sums.values())
        assert rooms.native.fit(size)[depth] == sum(one // size for one in sums.values())


def test_what_is_out_of_range_is_refused() -> None:
    machines = gang_machines(topology("dgx1-v100", False))
    numbers = np.arange(2, dtype=np.int32)
    usable = np.full((1, 1), 255, np.uint8)
    with pytest.raises(ValueError, match=r"sizes\[1\] = 9: not a number of GPUs that its kind offers"):
        _core.gang_tree(machines, (numbers, numbers * 0, numbers + 8, usable), [])
    with pytest.raises(ValueError, match="codes has 3 entries, not 12"):
        _core.GangRoom(machines, (numbers, numbers * 0, numbers, usable), [np.arange(3)], 8)
    room = _core.GangRoom(machines, (numbers, numbers * 0, numbers, usable), [], 8)
    with pytest.raises(ValueError, match="size = 0: below 1"):
        room.fit(0)
