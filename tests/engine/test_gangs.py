"""The order in which splits of a job over several machines are tried."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import combinations
from random import Random

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import topoplace as tp
from topoplace.engine.gangs.assignments import communication_range, connected_assignment
from topoplace.engine.gangs.offers import MachineOffer, Offers, idle_offers, offers_of
from topoplace.engine.gangs.splits import nearest
from topoplace.engine.machine_state import ClusterView
from topoplace.engine.machines.machine_class import MachineClasses
from topoplace.engine.machines.machine_conditions import MachineState
from topoplace.engine.request import JobRequest
from topoplace.errors import SearchTimeoutError
from topoplace.kernels import WorkBudget
from topoplace.policies import FirstComeFirstServed, TopoAware
from topoplace.testing.strategies import cluster_topologies
from topoplace.topology.fabric import Fabric, Level, numbered


def offers(sizes: list[int]) -> list[MachineOffer]:
    """Return an offer for each machine, of `sizes` GPUs."""
    return [MachineOffer(machine, (1 << size) - 1, (), size) for machine, size in enumerate(sizes)]


@pytest.mark.parametrize(
    ("sizes", "racks", "machines"),
    [
        ([4, 4, 3, 3], "aabb", [2, 3]),  # the rack with the fewest free GPUs
        ([3, 3, 4, 4], "aabb", [0, 1]),
        ([3, 3, 3, 3], "aabb", [0, 1]),  # the lowest machine number
        ([3, 3, 3, 3], "baba", [0, 2]),
        ([3, 3, 3, 3], "abab", [0, 2]),
        ([2, 2, 2, 6], "aaab", [0, 3]),  # the fewest machines before the nearest
        ([4, 3, 2, 1], "aaaa", [0, 2]),  # the rest on the smallest machine that suffices
    ],
)
def test_the_fewest_machines_then_the_nearest_then_the_fullest(
    sizes: list[int], racks: str, machines: list[int]
) -> None:
    fabric = Fabric(numbered("m", len(sizes)), (Level("rack", tuple(racks), 25.0),))
    size = 7 if 6 in sizes else 6
    split = next(iter(nearest(offers(sizes), size, fabric)))
    assert sorted(machine for machine, _ in split) == machines


def test_single_machine_takes_no_partition_of_two_machines() -> None:
    machines = ["a", "a", "b", "b"]
    plain = tp.Topology.from_links(4, [], 12.0, machines=machines)
    topology = replace(plain, partitions=((0, 2), (2, 3)))
    pair = tp.JobGraph.ring(2)
    for policy in ("baseline", "mapa-greedy", "mapa-preserve"):
        free = tp.policies.get(policy).place(pair.with_(single_machine=True), tp.Cluster(topology))
        assert free is not None
        assert free.gpus == (2, 3)


def test_a_machine_out_of_reach_does_not_make_a_split_infinitely_dear() -> None:
    pair = tp.Topology.from_links(2, [(0, 1, 50.0)], 12.0)
    fabric = Fabric(numbered("m", 4), (Level("rack", ("a", "a", None, "a"), 25.0),))
    topology = tp.Topology.cluster([pair] * 4, fabric=fabric, network=0.0)
    assert topology.distance(0, 4) == math.inf
    ring, view = tp.JobGraph.ring(3), ClusterView(tp.Cluster(topology))
    least, most = communication_range(TopoAware(), view.request(ring), view)
    assert least == topology.distance(0, 1) + 2 * topology.distance(0, 2)
    assert most == 3 * topology.distance(0, 2)


def test_a_first_split_out_of_reach_does_not_make_the_least_cost_infinite() -> None:
    """The largest machines, which are tried first, have no path between them."""
    large, small = (tp.Topology.from_links(n, [], 12.0) for n in (3, 2))
    fabric = Fabric(numbered("m", 4), (Level("rack", (None, None, "a", "a"), 25.0),))
    topology = tp.Topology.cluster([large, large, small, small], fabric=fabric, network=0.0)
    ring, view = tp.JobGraph.ring(4), ClusterView(tp.Cluster(topology))
    for policy in (FirstComeFirstServed(), TopoAware()):
        least, most = communication_range(policy, view.request(ring), view)
        assert math.isfinite(least)
        assert least <= most < math.inf
    placement = TopoAware(utility="authors").place(ring, view.cluster)
    assert placement is not None
    assert sorted(placement.gpus) == [6, 7, 8, 9]


def test_a_job_that_fits_no_machine_has_no_costs_on_one() -> None:
    view = ClusterView(tp.Cluster(tp.Topology.cluster(tp.machines.get("minsky"), count=2)))
    assert view.request(tp.JobGraph.ring(5)).communication_range == (0.0, 0.0)


@given(
    st.lists(st.integers(0, 5), min_size=1, max_size=12),
    st.lists(st.sampled_from([None, "a", "b", "c"]), min_size=12, max_size=12),
    st.integers(1, 30),
    st.booleans(),
)
def test_offers_in_columns_are_split_as_offers_one_by_one(
    sizes: list[int], racks: list[str | None], size: int, is_limited: bool
) -> None:
    """Machines with the same number of GPUs are of one kind; CPUs may limit every second one to 2 tasks."""
    kinds = [MachineOffer(-1, (1 << count) - 1, (), count) for count in range(6)]
    machines = np.flatnonzero(sizes)
    kind_of = np.array(sizes)[machines]
    hosted = np.where(machines % 2, size, 2) if is_limited else None
    columns = Offers(machines, kind_of, kinds, hosted)
    assert [offer.size for offer in columns] == columns.sizes.tolist()
    fabric = Fabric(
        tuple(f"m{i}" for i in range(len(sizes))),
        (
            Level("rack", tuple(racks[: len(sizes)])),
            Level("row", tuple("x" if r else None for r in racks)[: len(sizes)]),
        ),
    )
    for one in (None, fabric):
        assert list(nearest(columns, size, one)) == list(nearest(list(columns), size, one))
    by_size = sorted(columns, key=lambda offer: (offer.size, offer.machine))
    assert list(columns.smallest_first()) == by_size
    assert list(columns[1:]) == list(columns)[1:]


@given(cluster_topologies(max_machines=5), st.data())
def test_distances_between_machines_are_those_of_the_topology(
    topology: tp.Topology, data: st.DataObject
) -> None:
    gpus = data.draw(st.lists(st.sampled_from(range(topology.num_gpus)), unique=True, min_size=1))
    classes = MachineClasses(topology)
    first: dict[int, int] = {}
    for gpu in gpus:
        first.setdefault(classes.machine_of[gpu], gpu)
    for (u, v), distance in np.ndenumerate(classes.distances(gpus, topology)):
        ends = [classes.machine_of[gpus[i]] for i in (u, v)]
        same = ends[0] == ends[1]
        expected = topology.distance(*((gpus[u], gpus[v]) if same else (first[one] for one in ends)))
        assert distance == expected


@pytest.mark.parametrize("sees_jobs", [True, False])
def test_offers_that_are_kept_are_those_made_anew(sees_jobs: bool) -> None:
    random = Random(1)
    fabric = tp.Fabric.regular(12, {"rack": 4})
    machines = [tp.machines.get(random.choice(("minsky", "dgx1-v100"))) for _ in range(12)]
    cluster = tp.Cluster(tp.Topology.cluster(machines, fabric=fabric))
    view = cluster.view(ClusterView)
    request = view.request(tp.JobGraph.ring(30))

    def max_tasks(request: JobRequest, state: MachineState) -> int:
        return request.size if sees_jobs and state.neighbours else 3

    for step in range(60):
        gpus = random.sample(cluster.free_gpus(), min(3, cluster.num_free))
        if random.random() < 0.4 and cluster.allocations:
            cluster.release(random.choice(list(cluster.allocations)))
        elif gpus:
            cluster.allocate(f"job-{step}", tuple(gpus))
        kept = offers_of(max_tasks, request, view, sees_jobs=sees_jobs)
        anew = offers_of(lambda *given: max_tasks(*given), request, view, sees_jobs=sees_jobs)
        assert list(kept) == list(anew)
        assert kept.sizes.tolist() == anew.sizes.tolist() == [offer.size for offer in kept]


def test_idle_offers_ask_about_machines_that_no_job_uses() -> None:
    cluster = tp.Cluster(tp.Topology.cluster(tp.machines.get("minsky"), count=2))
    cluster.allocate("job", [0, 1, 4])
    view, states = cluster.view(ClusterView), list[MachineState]()

    def all_tasks(request: JobRequest, state: MachineState) -> int:
        states.append(state)
        return request.size

    found = idle_offers(all_tasks, view.request(tp.JobGraph.ring(8)), view)
    assert [offer.size for offer in found] == [4, 4]
    assert [(state.free, state.is_used) for state in states] == [(0b1111, False)]
    assert view.state(0).free == 0b1100


def test_a_search_for_connected_gpus_leaves_nodes_for_nine_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """The pairs of GPUs of each machine are partitions, so that a search looks at each pair."""
    searched: list[int] = []

    def search(*_: object, max_nodes: int, budget: WorkBudget, **__: object) -> None:
        searched.append(max_nodes)
        budget.charge(max_nodes)
        raise SearchTimeoutError("late", None)

    monkeypatch.setattr("topoplace.kernels.best_subgraph", search)
    parted = replace(tp.Topology.from_links(4, [], 12.0), partitions=tuple(combinations(range(4), 2)))
    view = tp.Cluster(tp.Topology.cluster(parted, count=2)).view(ClusterView)
    request = view.request(tp.JobGraph.ring(2))
    assert connected_assignment(request, view, offers_of(lambda *_: 2, request, view)) is None
    assert len(searched) == 10


PARTED = st.lists(
    st.sets(st.integers(1, 6), min_size=1, max_size=3) | st.integers(1, 6), min_size=1, max_size=6
)


@example([{2, 4}, {3, 5}, 5], 8)  # the smallest machine that is large enough has no partition for the rest
@given(PARTED, st.integers(1, 12))
def test_the_machines_of_a_split_have_a_gpu_for_each_task(machines: list[set[int] | int], size: int) -> None:
    """A machine has partitions of these sizes, all from its first GPU on, or as many GPUs as it says."""
    offers = [
        MachineOffer(number, 0b111111, tuple((1 << one) - 1 for one in sorted(has)), 6)
        if isinstance(has, set)
        else MachineOffer(number, (1 << has) - 1, (), has)
        for number, has in enumerate(machines)
    ]
    for split in nearest(offers, size, None):
        assert sum(mask.bit_count() for _, mask in split) >= size
        assert len({machine for machine, _ in split}) == len(split)
        for machine, mask in split:
            offer = offers[machine]
            assert mask in (offer.partitions or (offer.usable,)) or mask & offer.usable == mask
