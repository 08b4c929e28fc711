"""Requirements on the machines that share a job, against a look at every set of machines."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import topoplace as tp
from distributions import whole
from thoroughness import for_each_policy
from topoplace.engine.gangs import rules
from topoplace.engine.gangs.offers import Offers, offers_of
from topoplace.engine.machine_state import ClusterView
from topoplace.engine.request import JobRequest
from topoplace.policies import FirstComeFirstServed, TopoAware
from topoplace.testing.placements import check_placement
from topoplace.topology.fabric import Fabric, Level, numbered

GPUS = 3
POLICIES = ("fcfs", "best-fit", "topo-aware", "topo-aware-p", "baseline", "mapa-greedy", "mapa-preserve")
RACKS = tp.Fabric.regular(4, {"rack": 2})


@st.composite
def clusters(draw: st.DrawFn) -> tp.Cluster:
    """Generate up to six machines of three GPUs in racks and rows, some of them in none.

    Some GPUs are drained, held or unhealthy, and machines have a few CPUs.
    """
    count = draw(st.integers(2, 6))
    levels = [
        Level(
            name,
            tuple(draw(st.lists(st.sampled_from([None, "a", "b", "c"]), min_size=count, max_size=count))),
        )
        for name in ("rack", "row")
    ]
    machine = tp.Topology.from_links(GPUS, [], 12.0)
    fabric = Fabric(numbered("machine", count), tuple(levels))
    gpus = st.sets(st.integers(0, GPUS * count - 1))
    topology = tp.Topology.cluster(machine, fabric=fabric, network=12.5).with_unhealthy(sorted(draw(gpus)))
    cpus = draw(st.lists(st.integers(1, 9), min_size=count, max_size=count))
    cluster = tp.Cluster(topology, [tp.HostResources(number, 16.0) for number in cpus])
    for gpu in draw(gpus):
        cluster.drain(gpu)
    cluster.hold(sorted(draw(gpus)))
    return cluster


@st.composite
def jobs(draw: st.DrawFn) -> tp.JobGraph:
    values: dict[str, st.SearchStrategy[Any]] = {
        "within": st.sampled_from(["rack", "row"]),
        "prefer": st.sampled_from(["rack", "row"]),
        "spread": st.sampled_from(["rack", "row"]),
        "max_machines": st.integers(1, 4),
        "same_gpus": st.just(True),
        "anti_affinity": st.just(True),
    }
    names = draw(st.sets(st.sampled_from(sorted(values)), max_size=3))
    size = draw(st.integers(1, 9))
    job = draw(st.sampled_from([tp.JobGraph.independent, tp.JobGraph.ring]))(size)
    job = job.with_(cpus=size * draw(st.integers(0, 3)))
    return job.with_(**{name: draw(values[name]) for name in sorted(names)})


def ranked_sets(job: tp.JobGraph, cluster: tp.Cluster) -> Iterator[tuple[int, ...]]:
    """Yield every set of machines that can share the job, or run it alone; each task has the same CPUs."""
    fabric, topology = cluster.topology.fabric, cluster.topology
    assert fabric is not None
    domains = {level.name: level.domains for level in fabric.levels}
    free = [
        {topology.local_index[gpu] for gpu in gpus if gpu in cluster.free_gpus()}
        for gpus in topology.gpus_of.values()
    ]
    apart = job.anti_affinity and job.num_tasks > 1
    cpus = (job.cpus or 0) // job.num_tasks
    hosted = [int(one.cpus) // cpus if cpus else GPUS for one in cluster.hosts.resources]
    most = [min(len(gpus), 1 if apart else GPUS, tasks) for gpus, tasks in zip(free, hosted, strict=True)]
    for count in range(1, topology.num_machines + 1):
        for chosen in combinations(range(topology.num_machines), count):
            room = sum(most[machine] for machine in chosen)
            if room < job.num_tasks or not all(most[machine] for machine in chosen) or count > job.num_tasks:
                continue
            inside = [domains[job.within][machine] for machine in chosen] if job.within else [""]
            spread = [domains[job.spread][machine] for machine in chosen] if job.spread else []
            each = job.num_tasks / count
            if count == 1 or (
                None not in (*inside, *spread)
                and len(set(inside)) == 1
                and len(set(spread)) == len(spread)
                and count <= (job.max_machines or count)
                and (
                    not job.same_gpus
                    or (
                        len(set.intersection(*(free[m] for m in chosen))) >= each == int(each)
                        and min(most[m] for m in chosen) >= each
                    )
                )
            ):
                yield chosen


@pytest.mark.parametrize("name", POLICIES)
@for_each_policy()
@given(job=jobs(), cluster=clusters())
def test_a_gang_gets_machines_that_meet_its_requirements(
    name: str, job: tp.JobGraph, cluster: tp.Cluster
) -> None:
    if job.same_gpus and (name.startswith("mapa") or name == "baseline"):
        job = job.with_(same_gpus=False)
    possible = list(ranked_sets(job, cluster))
    policy = tp.policies.get(name)
    placement = policy.place(job, cluster)
    assert (placement is not None) == bool(possible)
    explained = policy.explain(job, cluster)
    if placement is None:
        assert explained.refusal is not None
        idle = tp.Cluster(cluster.topology, cluster.hosts.resources)
        idle.native.set_unhealthy(range(cluster.topology.num_gpus), unhealthy=False)
        assert explained.refusal.permanent == (not list(ranked_sets(job, idle)))
        return
    check_placement(placement, job, cluster)
    assert explained.candidates[0].gpus == placement.gpus
    used = tuple(sorted({int(cluster.topology.machine_of[gpu]) for gpu in placement.gpus}))
    if job.prefer and len(used) > 1:
        level = next(one for one in cluster.topology.fabric.levels if one.name == job.prefer)  # type: ignore[union-attr]
        preferred = [
            machines for machines in possible if len({level.domains[m] for m in machines} | {None}) == 2
        ]
        preferred = [machines for machines in preferred if None not in {level.domains[m] for m in machines}]
        assert not preferred or len({level.domains[machine] for machine in used}) == 1


@pytest.mark.parametrize("name", POLICIES)
def test_tasks_on_machines_of_their_own_prefer_a_domain_too(name: str) -> None:
    racks = Level("rack", (None, "a", "a", None))
    fabric = Fabric(numbered("machine", 4), (racks,))
    machine = tp.Topology.from_links(GPUS, [], 12.0)
    cluster = tp.Cluster(tp.Topology.cluster(machine, fabric=fabric, network=12.5))
    job = tp.JobGraph.independent(2).with_(anti_affinity=True, prefer="rack")
    placement = tp.policies.get(name).place(job, cluster)
    assert placement is not None
    assert {int(cluster.topology.machine_of[gpu]) for gpu in placement.gpus} == {1, 2}


@pytest.mark.parametrize("name", ["fcfs", "mapa-greedy"])
def test_an_unknown_level_is_refused_with_the_list(name: str) -> None:
    machine = tp.machines.get("minsky")
    racks = tp.Cluster(tp.Topology.cluster(machine, fabric=RACKS))
    job = tp.JobGraph.ring(2).with_(within="pod")
    with pytest.raises(
        ValueError, match=r"^within = 'pod' cannot be honoured: the levels of the fabric are 'rack'$"
    ):
        tp.policies.get(name).place(job, racks)
    with pytest.raises(ValueError, match="the fabric has no levels"):
        tp.policies.get(name).place(job, tp.Cluster(machine))


def test_the_reason_names_the_domain_with_the_most_free_gpus() -> None:
    racks = tp.Cluster(tp.Topology.cluster(tp.machines.get("minsky"), fabric=RACKS))
    racks.allocate("a", [0, 1, 2])
    racks.allocate("b", [8])
    job = tp.JobGraph.ring(8).with_(within="rack")
    for name in ("topo-aware", "mapa-greedy"):
        refusal = tp.policies.get(name).explain(job, racks).refusal
        assert refusal is not None
        assert not refusal.permanent
        assert (
            "no machines have 8 GPUs free within one rack; the most are in rack 'rack1': 2 of its 2 machines have 7 "
            "GPUs for it; 4 of all 4 machines have 12 GPUs for it" in refusal.reason
        )


def plain_splits(request: JobRequest, offers: Offers, view: ClusterView, splits_of: Any) -> Iterator[Any]:
    """The splits of `allowed_splits`, each domain looked into, and then sorted."""
    job, fabric = request.job, view.cluster.topology.fabric
    seen: list[set[int]] = []
    assert fabric is not None
    for names in ([job.within, job.prefer], [job.within]) if job.prefer else ([job.within],):
        levels = [next(level for level in fabric.levels if level.name == name) for name in names if name]
        groups: dict[tuple[str | None, ...], list[int]] = {}
        for i, offer in enumerate(offers):
            groups.setdefault(tuple(level.domains[offer.machine] for level in levels), []).append(i)
        ranked = []
        for domains, places in groups.items():
            inside = offers.at(np.array(places))
            room = len(inside) if request.anti_affine else int(inside.sizes.sum())
            if None not in domains and (room >= request.size or not levels):
                split = next(rules._splits_inside(request, inside, view, splits_of), None)
                if split is not None:
                    ranked.append((len(split), int(inside.sizes.sum()), split[0][0], split))
        for *_, split in sorted(ranked):
            if {machine for machine, _ in split} not in seen:
                seen.append({machine for machine, _ in split})
                yield split


@given(clusters(), jobs())
def test_domains_are_looked_into_only_as_needed(cluster: tp.Cluster, job: tp.JobGraph) -> None:
    view = cluster.view(ClusterView)
    request = view.request(job)
    assume(request.limits_machines or job.prefer)
    offers = offers_of(lambda request, _: request.size, request, view)
    for policy in (FirstComeFirstServed(), TopoAware()):

        def splits_of(some: Offers, policy: Any = policy) -> Any:
            return policy.splits(request, some, view)

        found = list(rules.allowed_splits(request, offers, view, splits_of))
        assert found == list(plain_splits(request, offers, view, splits_of))


def test_machines_of_too_many_gpus_are_no_error() -> None:
    cluster = tp.Cluster(tp.Topology.cluster(tp.machines.get("dgx-a100"), 600))
    job = tp.JobGraph.independent(600).with_(anti_affinity=True)
    assert tp.policies.get("mapa-greedy").place(job, cluster) is None
    refusal = tp.policies.get("mapa-greedy").explain(job, cluster).refusal
    assert refusal is not None
    assert "its machines have 4800 GPUs, and this policy searches at most 4096 at once" in refusal.reason


def test_as_many_gpus_as_may_be_searched_are_not_too_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("topoplace.engine.cluster_search.MAX_SEARCHED_GPUS", 4)
    pair = tp.Topology.from_links(2, [], 12.0)
    cluster = tp.Cluster(tp.Topology.cluster([pair] * 2, network=0.0))
    refusal = tp.policies.get("mapa-greedy").explain(tp.JobGraph.ring(4), cluster).refusal
    assert refusal is not None
    assert "searches at most" not in refusal.reason


def test_partitions_add_up_though_the_largest_ones_first_leave_a_rest() -> None:
    parted = replace(tp.Topology.from_links(3, [], 12.0), partitions=((0, 1), (2,)))
    fabric = Fabric(numbered("machine", 2), (Level("rack", ("a", "a")),))
    cluster = tp.Cluster(tp.Topology.cluster([parted] * 2, fabric=fabric))
    cluster.drain(5)
    placement = tp.policies.get("fcfs").place(tp.JobGraph.ring(3).with_(within="rack"), cluster)
    assert placement is not None
    assert sorted(placement.gpus) == [2, 3, 4]


@pytest.mark.parametrize("partitions", [(), ((0,), (1,), (0, 1))])
def test_cpus_that_no_machines_within_the_limits_have_are_never_enough(partitions: Any) -> None:
    machine = replace(tp.Topology.from_links(2, [], 12.0), partitions=partitions)
    topology = tp.Topology.cluster([machine] * 3, fabric=tp.Fabric.regular(3, {"rack": 3}))
    cluster = tp.Cluster(topology, tp.HostResources(2, 16.0))
    job = tp.JobGraph.ring(4).with_(cpus=8)
    for limited in (job.with_(max_machines=2), job.with_(within="rack"), job.with_(same_gpus=True)):
        refusal = tp.policies.get("fcfs").explain(limited, cluster).refusal
        assert refusal is not None
        assert refusal.permanent


def test_the_same_gpus_may_be_a_partition_of_each_machine() -> None:
    parted = replace(tp.Topology.from_links(4, [], 12.0), partitions=((0, 1), (2, 3)))
    cluster = tp.Cluster(tp.Topology.cluster([parted] * 2, network=12.5))
    cluster.drain(0)
    placement = tp.policies.get("fcfs").place(tp.JobGraph.ring(4).with_(same_gpus=True), cluster)
    assert placement is not None
    assert sorted(placement.gpus) == [2, 3, 6, 7]


@pytest.mark.parametrize("name", ["fcfs", "mapa-greedy"])
def test_a_gang_whose_cpus_no_machine_has_is_refused_for_ever(name: str) -> None:
    small, large = tp.HostResources(8, 64.0), tp.HostResources(128, 1024.0)
    racks = tp.Topology.cluster(tp.machines.get("dgx-a100"), fabric=RACKS)
    cluster = tp.Cluster(racks, [small, small, large, large])
    refusal = (
        tp.policies.get(name).explain(tp.JobGraph.ring(16).with_(spread="rack", cpus=128), cluster).refusal
    )
    assert refusal is not None
    assert refusal.permanent
    assert "128 CPUs" in refusal.reason


def test_partitions_are_no_reason_to_refuse_a_gang_for_ever() -> None:
    plain = tp.Topology.from_links(2, [], 12.0)
    parted = replace(tp.Topology.from_links(4, [], 12.0), partitions=((0, 1), (2, 3), (0, 1, 2, 3)))
    cluster = tp.Cluster(tp.Topology.cluster([plain, parted], fabric=tp.Fabric.regular(2, {"rack": 2})))
    job = tp.JobGraph.ring(3)
    assert tp.policies.get("topo-aware").place(job, cluster) is not None
    refusal = tp.policies.get("topo-aware").explain(job.with_(max_machines=2), cluster).refusal
    assert refusal is None or not refusal.permanent


def test_a_level_of_rails_is_refused_as_such() -> None:
    rails = Fabric(numbered("machine", 2), (Level("rails", ("a", "a"), 50.0, rail=True),))
    cluster = tp.Cluster(tp.Topology.cluster(tp.machines.get("minsky"), fabric=rails))
    with pytest.raises(ValueError, match="within = 'rails' cannot be honoured: it is a level of rails"):
        tp.policies.get("fcfs").place(tp.JobGraph.ring(2).with_(within="rails"), cluster)


@pytest.mark.filterwarnings("error")
def test_machines_whose_partitions_are_too_large_offer_nothing() -> None:
    box = replace(tp.Topology.from_links(4, [(0, 1, 50.0), (2, 3, 50.0)]), partitions=((0, 1, 2, 3),))
    single = tp.Topology.from_links(1, [])
    fabric = tp.Fabric(("a", "b", "c"), (tp.Level("rack", ("r", "r", "r")),))
    cluster = tp.Cluster(tp.Topology.cluster([box, single, single], fabric=fabric))
    placement = tp.policies.get("fcfs").place(tp.JobGraph.ring(2).with_(within="rack"), cluster)
    assert placement is not None
    assert sorted(placement.gpus) == [4, 5]


@whole
@pytest.mark.parametrize("name", ["fcfs", "topo-aware", "fgd"])
def test_the_same_gpus_are_those_of_machines_that_also_have_the_cpus(name: str) -> None:
    """The first machine has a CPU for one task, and one GPU of the second is taken."""
    machine = tp.Topology.from_links(2, [(0, 1, 25.0)], 12.0)
    hosts = [tp.HostResources(cpus, 16.0) for cpus in (1, 8, 8, 8)]
    cluster = tp.Cluster(tp.Topology.cluster(machine, count=4, network=12.5), hosts)
    cluster.allocate("running", [3])
    policy, job = tp.policies.get(name), tp.JobGraph.ring(4).with_(same_gpus=True, cpus=4)
    placement = policy.place(job, cluster)
    assert placement is not None
    assert sorted(placement.gpus) == [4, 5, 6, 7]
    cluster.allocate("another", [5])
    single = policy.place(job, cluster)  # GPU 0 of each machine
    assert single is not None
    assert sorted(single.gpus) == [0, 2, 4, 6]
    assert policy.place(job.with_(max_machines=2), cluster) is None


def test_a_preferred_level_that_does_not_nest_in_the_required_one_joins_no_other_machines() -> None:
    """Each machine shares its rack with one and its row with another one; none shares both."""
    machine = tp.Topology.from_links(2, [(0, 1, 25.0)], 12.0)
    levels = (tp.Level("rack", ("a", "a", "b", "b")), tp.Level("row", ("x", "y", "x", "y")))
    fabric = tp.Fabric(tuple("stuv"), levels)
    cluster = tp.Cluster(tp.Topology.cluster(machine, fabric=fabric, network=12.5))
    job = tp.JobGraph.ring(4).with_(within="row", prefer="rack")
    for gpus in ([0, 1, 4, 5], [2, 3, 6, 7]):
        placement = tp.policies.get("topo-aware").place(job, cluster)
        assert placement is not None
        assert sorted(placement.gpus) == gpus
        cluster.allocate(f"job-{gpus[0]}", placement)


def test_the_domain_with_the_fewest_machines_comes_before_one_with_less_room() -> None:
    fabric = tp.Fabric.regular(6, {"rack": 3})
    cluster = tp.Cluster(tp.Topology.cluster(tp.Topology.from_links(4, [], 12.0), fabric=fabric))
    for gpu in (0, 1, 4, 5, 8, 9, 20, 21, 22, 23, 12):  # 2, 2, 2 are left in one rack, 3 and 4 in the other
        cluster.drain(gpu)
    placement = FirstComeFirstServed().place(tp.JobGraph.ring(6).with_(within="rack"), cluster)
    assert placement is not None
    assert {cluster.topology.machine_of[gpu] for gpu in placement.gpus} == {3, 4}
