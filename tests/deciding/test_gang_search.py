"""The GPUs of a gang, in C++, beside all assignments."""

from __future__ import annotations

import math
from functools import cache
from itertools import permutations
from random import Random

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given

import topoplace as tp
from topoplace import LinkKind
from topoplace.collective.bandwidth import DEFAULT_RATES
from topoplace.deciding import gangs, ranked_sets
from topoplace.engine.gangs.offers import Offers, offers_of
from topoplace.engine.machine_state import ClusterView
from topoplace.engine.request import JobRequest
from topoplace.objectives.communication import measured, running_gangs

_TIMING = ranked_sets.Timing(0.01, DEFAULT_RATES)


@cache
def topology(name: str, has_domains: bool) -> tp.Topology:
    """Six machines in leaves of 2, whose uplinks are narrow; NVLink domains are leaves."""
    kind = LinkKind.NVSWITCH if has_domains else LinkKind.NETWORK
    leaf = tp.Level("leaf", tuple(f"leaf{i // 2}" for i in range(6)), kind=kind)
    pod = tp.Level("pod", tuple(f"pod{i // 4}" for i in range(6)), 20.0, oversubscription=4.0)
    fabric = tp.Fabric(tuple(f"m{i}" for i in range(6)), (leaf, pod))
    return tp.Topology.cluster(tp.machines.get(name), fabric=fabric)


@st.composite
def asked(draw: st.DrawFn, most_free: int, most_tasks: int) -> tuple[JobRequest, ClusterView, Offers]:
    cluster = tp.Cluster(topology(draw(st.sampled_from(["dgx1-v100", "dgx-h100"])), draw(st.booleans())))
    gpus = range(cluster.topology.num_gpus)
    free = draw(st.lists(st.sampled_from(gpus), unique=True, min_size=3, max_size=most_free))
    rest = [gpu for gpu in gpus if gpu not in free]
    if draw(st.booleans()):
        cluster.allocate("other", rest[:2] + rest[-2:], tp.JobGraph.ring(4))
        rest = rest[2:-2]
    cluster.allocate("busy", rest)
    size = draw(st.integers(2, min(len(free), most_tasks)))
    pairs = st.tuples(st.integers(0, size - 1), st.integers(0, size - 1)).filter(lambda one: one[0] < one[1])
    edges = draw(st.dictionaries(pairs, st.integers(1, 5), min_size=1, max_size=2 * size))
    job = tp.JobGraph.from_edges(size, [(*ends, float(weight)) for ends, weight in edges.items()])
    view = cluster.view(ClusterView)
    request = view.request(draw(st.sampled_from([job, tp.JobGraph.ring(size)])))
    return request, view, offers_of(lambda _, state: state.free.bit_count(), request, view)


def found_for(case: tuple[JobRequest, ClusterView, Offers]) -> gangs.Mapped:
    request, view, offers = case
    others = view.cluster.view(running_gangs).now()
    found = gangs.mapped(request, view, offers, timing=_TIMING, others=others, timeout=None, compact=0.0)
    assert found is not None
    return found


@given(asked(6, 4))
def test_a_small_gang_is_as_fast_as_any_assignment(case: tuple[JobRequest, ClusterView, Offers]) -> None:
    request, view, _ = case
    others = view.cluster.view(running_gangs).now()

    def seconds(gpus: tuple[int, ...]) -> float:
        return measured(request.job, np.array(gpus), view.cluster.topology, others=others).seconds

    found = found_for(case)
    best = min(map(seconds, permutations(view.cluster.free_gpus(), request.size)))
    assert found.seconds == pytest.approx(seconds(tuple(found.gpus)))
    assert found.seconds <= best * (1 + _TIMING.slack) + 1e-12
    assert found.least_seconds <= best * (1 + 1e-9)


@given(asked(40, 40))
def test_tasks_have_free_gpus_of_their_own(case: tuple[JobRequest, ClusterView, Offers]) -> None:
    request, view, _ = case
    found = found_for(case)
    assert len(found.gpus) == len(set(found.gpus)) == request.size
    assert set(found.gpus) <= set(view.cluster.free_gpus())
    others = view.cluster.view(running_gangs).now()
    time = measured(request.job, np.array(found.gpus), view.cluster.topology, others=others)
    assert math.isclose(found.seconds, time.seconds, rel_tol=1e-6)
    assert found.least_seconds <= found.seconds * (1 + 1e-6)


@pytest.mark.parametrize("size", [8, 24, 64, 100])
def test_rings_take_the_machines_with_the_most_room_wherever_these_are(size: int) -> None:
    """On a busy cluster, few machines have GPUs for four channels, in no domain as many as the job needs."""
    leaf = tp.Level("leaf", tuple(f"leaf{i // 32}" for i in range(1500)))
    fabric = tp.Fabric(tuple(f"m{i}" for i in range(1500)), (leaf,))
    cluster = tp.Cluster(tp.Topology.cluster(tp.machines.get("dgx-h100"), fabric=fabric))
    gpus = range(cluster.topology.num_gpus)
    cluster.allocate("busy", Random(1).sample(gpus, int(0.85 * len(gpus))))
    placement = tp.place(tp.JobGraph.ring(size), cluster)
    assert placement is not None
    assert placement.optimal


@pytest.mark.parametrize("first", [0, 1, 2])
def test_a_machine_with_slower_links_hides_no_faster_one(first: int) -> None:
    """Racks have equal room, but a gang takes half of the time on two of them."""
    fast = tp.Topology.from_links(2, [(0, 1, 25.0, LinkKind.NVLINK2)])
    machines = [fast, fast]
    machines.insert(first, tp.Topology.from_links(2, [(0, 1, 12.0, LinkKind.PCIE)]))
    rack = tp.Level("rack", ("a", "b", "c"), 50.0)
    fabric = tp.Fabric(("m0", "m1", "m2"), (rack, tp.Level("spine", ("s",) * 3, 40.0)))
    topology = tp.Topology.cluster(dict(zip(fabric.machines, machines, strict=True)), fabric=fabric)
    placement = tp.place(tp.JobGraph.from_edges(2, [(0, 1, 1.0)]), tp.Cluster(topology))
    assert placement is not None
    assert placement.time == pytest.approx(0.01)
