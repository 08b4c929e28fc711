"""What the phases of DRMaestro offer and count, against the same machine by machine, with Python's numbers."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from itertools import islice
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import topoplace as tp
from drmaestro_cases import host_clusters, host_jobs, mixed_clusters
from thoroughness import thorough
from topoplace.engine.machine_state import ClusterView
from topoplace.engine.plan import QueuedJob
from topoplace.policies.drmaestro import phases
from topoplace.policies.drmaestro.bundles import Bundle, JobBundles
from topoplace.policies.drmaestro.costs import Costs, Prices
from topoplace.policies.drmaestro.decision import Candidate
from topoplace.policies.drmaestro.free_resources import FreeResources
from topoplace.policies.drmaestro.network import NetworkLoad
from topoplace.policies.drmaestro.policy import DRMaestro, free_columns

NW = tp.NetworkProfile(0.17, 0.49, 0.085)
ONE = 2**20
"""A cost of 1."""
STEP = 2**10
"""The cost of each larger size of memory."""
COSTS = [Costs(), Costs(goal=1.5, importance=4.0), Costs(goal=2.0, load="fullest")]


class Case:
    """A cluster with a loaded network, and a job."""

    def __init__(self, draw: st.DrawFn) -> None:
        self.cluster: tp.Cluster = draw(mixed_clusters() | host_clusters())
        topology = self.cluster.topology
        busy = draw(st.sets(st.integers(0, topology.num_gpus - 1), max_size=4)).intersection(
            self.cluster.free_gpus()
        )
        if busy:
            self.cluster.allocate("busy", sorted(busy))
        machines = range(topology.num_machines)
        self.load, self.sensitivity = (
            [draw(st.sampled_from([0.0, 0.2, 0.6, 1.7])) for _ in machines] for _ in "ab"
        )
        self.costs = draw(st.sampled_from(COSTS))
        job: tp.JobGraph = draw(host_jobs())
        if job.num_tasks:
            job = job.with_(gpu_memory_gb=draw(st.sampled_from([None, 8, 14])))
        policy = DRMaestro(
            disaggregate=draw(st.booleans()), network_aware=True, profiles={"nw": NW}, max_postponements=0
        )
        self.policy, self.view = policy, (view := self.cluster.view(ClusterView))
        self.job = job
        self.needs: JobBundles = policy.bundles(view.request(job), view)
        self.free: FreeResources = free_columns(view).free()
        self.prices = Prices(self.costs, NetworkLoad(np.array(self.load), np.array(self.sensitivity)))
        self.machines = [machine for machine in machines if machine not in self.cluster.hosts.drained]

    def gpus_at(self, machine: int) -> Counter[tuple[str | None, float | None]]:
        """The free GPUs of a machine that suit the job, by model and memory."""
        described = self.cluster.topology.gpus
        here = [
            described[g] for g in self.cluster.free_gpus() if self.cluster.topology.machine_of[g] == machine
        ]
        return Counter(
            (gpu.model, gpu.memory_gb)
            for gpu in here
            if (not self.job.gpu_model or gpu.model == self.job.gpu_model)
            and (gpu.memory_gb or 0.0) >= (self.job.gpu_memory_gb or 0.0)
        )

    def pool(self, machine: int) -> list[int]:
        """The machines whose GPUs are local to a process on this one."""
        pool_of = self.cluster.hosts.pool_of()
        return [other for other in range(len(pool_of)) if pool_of[other] == pool_of[machine]]

    def local(self, machine: int) -> int:
        """How many free GPUs are local to a process of the job."""
        alone = self.job.single_machine or (self.job.anti_affinity and self.job.num_tasks > 1)
        near = [machine] if alone else self.pool(machine)
        return sum(self.gpus_at(other).total() for other in near)

    def larger(self, memory_gb: float | None) -> int:
        """How many sizes of memory of the cluster are smaller; 0 if memory does not matter to the job."""
        sizes = {gpu.memory_gb or 0.0 for gpu in self.cluster.topology.gpus}
        return sum(size < (memory_gb or 0.0) for size in sizes) if self.job.gpu_memory_gb else 0

    def slowdown(self, machine: int, *, remote: bool) -> float:
        """The expected run time over that on an idle network."""
        profile = NW if self.job.profile else tp.NetworkProfile(0.0, 0.0)
        own = profile.sensitivity(remote=remote)
        if self.costs.load == "fullest":
            return 1 + own * (self.load[machine] / max(self.load) if any(self.load) else 0.0)
        caused = profile.traffic(remote=remote) * self.sensitivity[machine]
        return 1 + own * min(self.load[machine], 1.0) + caused

    def cost(self, machine: int, *, remote: bool) -> int:
        """Equations 11 and 12."""
        utility = 1 - self.slowdown(machine, remote=remote) / self.costs.goal
        if utility < 0:
            utility *= (10 - self.costs.importance) / 9
        return round((1 - utility) * (2 if remote else 1) * ONE)

    def together(self, *, remote: bool) -> int:
        """What it costs more if two such jobs share a network, as both slow down."""
        if self.costs.load == "fullest" or not self.job.profile:
            return 0
        mutual = 2 * NW.traffic(remote=remote) * NW.sensitivity(remote=remote)
        return round(mutual / self.costs.goal * (2 if remote else 1) * ONE)

    def hosted(self, machine: int, needs: tuple[int, int]) -> int:
        """How many processes with these needs a machine has CPUs and memory for."""
        if machine not in self.machines:
            return 0
        left = self.free.hosts[machine].tolist()
        return min((left[i] // need for i, need in enumerate(needs) if need), default=2**30)

    def bundles_on(self, machine: int, bundle: Bundle, count: int) -> list[int]:
        """The cost of each further bundle on a machine, for at most `count` of them."""
        fits, local = self.hosted(machine, bundle.needs), self.local(machine)
        near = min(local // bundle.gpus if bundle.gpus else 2**30, fits)
        memory = sorted(self.larger(gb) for (_, gb), n in self.gpus_at(machine).items() for _ in range(n))
        most = max(self.larger(gpu.memory_gb) for gpu in self.cluster.topology.gpus)
        rank = (memory[bundle.gpus - 1] if bundle.gpus <= len(memory) else most) if bundle.gpus else 0
        here, there = self.cost(machine, remote=False) + STEP * rank, self.cost(machine, remote=True)
        costs = [here + min(i, 3) * self.together(remote=False) for i in range(min(near, count))]
        if bundle.gpus_local:
            return costs[: 1 if self.needs.anti_affine else None]
        far = fits - near
        if far and bundle.gpus and local % bundle.gpus:  # some of its GPUs would be local
            costs.append(round(there + (here - there) * (local % bundle.gpus / bundle.gpus)))
            far -= 1
        costs += [there + min(i, 3) * self.together(remote=True) for i in range(min(far, count))]
        return costs[:count]


cases = st.composite(lambda draw: Case(draw))


def by_place(offer: phases.Offer, count: int) -> dict[int, list[int]]:
    """The cost of each of the first `count` sub-tasks at each place."""
    found: dict[int, list[int]] = {}
    for place, capacity, cost in zip(
        *map(np.ndarray.tolist, (offer.place, offer.capacity, offer.cost)), strict=True
    ):
        assert capacity > 0
        found.setdefault(place, []).extend([cost] * min(capacity, count))
    return {place: sorted(costs)[:count] for place, costs in found.items()}


def cheapest(costs: dict[int, list[int]], count: int) -> dict[int, list[int]]:
    """The `count` places with the lowest first cost, ties to the lowest number."""
    order = sorted((own[0], place) for place, own in costs.items() if own)
    return {place: costs[place] for _, place in order[:count]}


@given(cases(), st.integers(1, 6), st.data())
@settings(max_examples=thorough(1000, 20))
def test_machines_are_offered_to_processes_by_what_they_cost(
    case: Case, count: int, data: st.DataObject
) -> None:
    for bundle in {*case.needs.bundles, case.needs.largest}:
        without = data.draw(st.sets(st.sampled_from(range(len(case.load))), max_size=1))
        offer = phases.offer_hosts(
            case.free, case.needs, bundle, sorted(without), count=count, prices=case.prices
        )
        costs = {m: case.bundles_on(m, bundle, count) for m in case.machines if m not in without}
        assert by_place(offer, count) == cheapest(costs, count)


def test_of_many_jobs_on_one_machine_the_first_four_cost_more_and_more() -> None:
    machine = tp.Topology.from_links(8, [], 12.0, model="K80", memory_gb=12.0)
    cluster = tp.Cluster(tp.Topology.cluster(machine, count=1), tp.HostResources(8, 8.0))
    policy = DRMaestro(network_aware=True, profiles={"nw": NW}, disaggregate=False)
    view = cluster.view(ClusterView)
    needs = policy.bundles(view.request(tp.JobGraph.independent(1).with_(cpus=1, profile="nw")), view)
    prices = Prices(policy.costs, policy.network(view))
    offer = phases.offer_hosts(free_columns(view).free(), needs, needs.largest, [], count=8, prices=prices)
    more = round(2 * NW.local * NW.sensitivity(remote=False) / 1.05 * ONE)
    first = round(1 / 1.05 * ONE)
    assert by_place(offer, 8) == {0: [first + min(i, 3) * more for i in range(8)]}
    assert len(offer.place) == 4


@pytest.mark.parametrize(("gpus", "halves"), [(1, [3]), (3, [2, 3]), (3, [2, 3, 4])])
def test_a_process_with_one_of_its_two_gpus_beside_it_costs_in_between(gpus: int, halves: list[int]) -> None:
    """Of three GPUs, one process has both of its own, the next has one, and the third has none; costs in halves."""
    machine = tp.Topology.from_links(gpus, [], 12.0, model="K80", memory_gb=12.0)
    cluster = tp.Cluster(tp.Topology.cluster(machine, count=2), tp.HostResources(len(halves), 8.0))
    policy = DRMaestro(costs=Costs(goal=1.0))
    view = cluster.view(ClusterView)
    needs = policy.bundles(view.request(tp.JobGraph.independent(2).with_(cpus=1)), view)
    prices = Prices(policy.costs, policy.network(view))
    offer = phases.offer_hosts(free_columns(view).free(), needs, needs.largest, [], count=6, prices=prices)
    costs = [half * ONE // 2 for half in halves]
    assert by_place(offer, 6) == {0: costs, 1: costs}


@given(cases(), st.integers(1, 6))
@settings(max_examples=thorough(1000, 20))
def test_gpus_and_drives_are_offered_by_what_they_cost(case: Case, count: int) -> None:
    makes = case.free.columns.makes
    offer = phases.offer_gpus(case.free, case.needs, count, case.prices)
    costs = {
        machine * len(makes) + number: [
            case.cost(machine, remote=True)
            + STEP * case.larger(make[1])
            + min(i, 3) * case.together(remote=True)
            for i in range(min(case.gpus_at(machine)[make], count))
        ]
        for machine in range(len(case.load))
        for number, make in enumerate(makes)
    }
    assert by_place(offer, count) == cheapest(costs, count)
    there = round(2 / case.costs.goal * ONE)
    drives = {m: [there] * min(int(case.free.hosts[m, 2]), count) for m in case.machines}
    assert by_place(phases.offer_drives(case.free, count, case.prices), count) == cheapest(drives, count)


@given(cases(), st.data())
@settings(max_examples=thorough(1000, 20))
def test_each_task_is_offered_the_gpus_local_to_its_process(case: Case, data: st.DataObject) -> None:
    hosts = data.draw(st.lists(st.sampled_from(range(len(case.load))), min_size=1, max_size=3))
    for host, (far, near) in zip(
        hosts, phases.local_gpus(case.free, case.needs, hosts, case.prices), strict=True
    ):
        slower = case.slowdown(host, remote=True) - 1
        assert far == pytest.approx(slower / case.costs.goal * 2 * ONE, abs=0.51)
        assert near[: len(case.gpus_at(host))] == near_at(case, host, [host])  # its own machine comes first
        assert sorted(near) == sorted(near_at(case, host, case.pool(host)))


def near_at(case: Case, host: int, machines: Sequence[int]) -> list[tuple[int, int]]:
    """The places with GPUs for a process on `host`, and their costs."""
    makes = case.free.columns.makes
    return [
        (machine * len(makes) + number, case.cost(host, remote=False) + STEP * case.larger(make[1]))
        for machine in machines
        for number, make in enumerate(makes)
        if case.gpus_at(machine)[make]
    ]


@given(cases(), st.integers(1, 9))
def test_eq_10_bounds_the_bundles_of_a_machine(case: Case, tasks: int) -> None:
    left = [[max(int(each), 0) for each in row[:2]] for row in case.free.hosts]
    largest = [max(column) for column in zip(*left, strict=True)]

    def size(amounts: Sequence[int]) -> float:
        return sum(amount / max(most, 1) for amount, most in zip(amounts, largest, strict=True))

    smallest = min(size(bundle.needs) for bundle in case.needs.bundles)
    slots = phases.slots(case.free, case.needs.bundles, tasks).tolist()
    for machine, row in enumerate(left):
        assert slots[machine] == min(int(size(row) / smallest + 1e-6) if smallest else tasks, tasks)
        assert slots[machine] >= min(tasks, *(case.hosted(machine, b.needs) for b in case.needs.bundles))


@given(cases())
def test_no_more_jobs_are_tried_at_once_than_have_room(case: Case) -> None:
    most = phases.room(case.free, case.needs)
    bounds = [2**30]
    if not case.needs.gpus_local and case.job.num_tasks:
        free = sum(case.gpus_at(machine).total() for machine in range(len(case.load)))
        bounds.append(free // case.job.num_tasks)
    for bundle, times in Counter(case.needs.bundles).items():
        fits = [case.hosted(machine, bundle.needs) for machine in range(len(case.load))]
        if bundle.gpus_local and bundle.gpus:
            fits = [min(n, case.local(machine) // bundle.gpus) for machine, n in enumerate(fits)]
        bounds.append(sum(fits) // times)
    assert most == min(bounds)


@given(
    st.lists(st.tuples(st.integers(-1, 9), st.integers(-1, 9)), min_size=1, max_size=4),
    st.tuples(st.integers(0, 4), st.integers(0, 4)),
)
def test_how_often_needs_fit(free: list[tuple[int, int]], needs: tuple[int, int]) -> None:
    times = phases.fitting(np.array(free), np.array(needs)).tolist()
    for row, found in zip(free, times, strict=True):
        if not any(needs):
            assert found == (2**30 if min(row) >= 0 else 0)
        else:
            enough = [
                k for k in range(1, 10) if all(k * n <= left for n, left in zip(needs, row, strict=True) if n)
            ]
            assert found == max(enough, default=0)


@given(st.lists(st.tuples(st.integers(0, 3), st.booleans()), min_size=1, max_size=9), st.integers(1, 9))
def test_the_cheapest_places_come_by_cost_and_then_by_number(
    places: list[tuple[int, bool]], count: int
) -> None:
    cost, usable = (np.array(column) for column in zip(*places, strict=True))
    order = sorted((own, place) for place, (own, usable) in enumerate(places) if usable)
    assert sorted(phases.cheapest(cost, usable, count).tolist()) == sorted(p for _, p in islice(order, count))


# ---- the bundles of a job ----------------------------------------------------------------------------------------


@given(cases())
def test_a_bundle_has_what_its_tasks_need(case: Case) -> None:
    """Each process drives the GPUs of the tasks that `JobGraph.processes` gives it; CPUs differ by at most a unit."""
    job, needs = case.job, case.needs
    apart = job.anti_affinity and job.num_tasks > 1
    processes = job.num_tasks if apart else job.processes
    assert (needs.processes, needs.anti_affine) == (processes, apart)
    bundles = 1 if job.single_machine else processes
    driven = Counter(task * bundles // job.num_tasks for task in range(job.num_tasks))
    assert [bundle.gpus for bundle in needs.bundles] == [driven[i] for i in range(bundles)]
    cpus = [bundle.needs[0] for bundle in needs.bundles]
    assert sum(cpus) == 1000 * (job.cpus or 0)
    assert max(cpus) - min(cpus) <= 1000
    assert max(cpus) == needs.largest.needs[0]
    assert max(bundle.gpus for bundle in needs.bundles) == needs.largest.gpus
    of_process = math.ceil(1000 * (job.memory_gb or 0.0) / processes - 1e-6)  # MB
    assert {bundle.needs[1] for bundle in needs.bundles} == {of_process * (processes // bundles)}
    shares = needs.host_shares(list(range(bundles)))
    assert [share.machine for share in shares] == ([0] * processes if bundles == 1 else list(range(bundles)))
    assert sum(share.cpus for share in shares) == (job.cpus or 0)
    assert max(share.cpus for share in shares) - min(share.cpus for share in shares) <= 1
    assert {share.memory_gb for share in shares} == {(job.memory_gb or 0.0) / processes}
    if bundles > 1:
        assert [1000 * share.cpus for share in shares] == cpus


def refusal(job: tp.JobGraph, **options: Any) -> str:
    """Why a job never runs on two machines: a pool, and one with the only drive."""
    plain = tp.Topology.from_links(2, [], 12.0, model="K80", memory_gb=12.0)
    hosts = [tp.HostResources(8, 16.0, pool="rack")] * 2 + [tp.HostResources(8, 16.0, drives=1)]
    cluster = tp.Cluster(tp.Topology.cluster(plain, count=3), hosts)
    found = DRMaestro(**options).explain(job, cluster).refusal
    return found.reason if found else ""


def test_jobs_that_never_run_are_told_why() -> None:
    one = tp.JobGraph.independent(1)
    assert refusal(one.with_(drives=1)) == ""
    assert refusal(one.with_(drives=2)) == "never fits: needs 2 drives, the machines have 1"
    four = tp.JobGraph.independent(4).with_(processes=1)
    assert refusal(four, disaggregate=False) == ""  # all are in one pool
    five = tp.JobGraph.independent(5).with_(processes=1)
    assert refusal(five) == ""
    least = "never fits: needs 5 GPUs on one machine, the largest has 4 of them"
    assert refusal(five, disaggregate=False) == least


# ---- the decision about one job ----------------------------------------------------------------------------------


@given(cases())
def test_a_job_of_one_process_costs_the_least(case: Case) -> None:
    """First the machine of the process, then its GPUs, then its drives, as the three phases follow each other."""
    network = NetworkLoad(np.array(case.load), np.array(case.sensitivity))
    candidate = Candidate(QueuedJob("job", case.job), case.needs, 0.0)
    decision = DRMaestro.decision(case.policy, case.view, case.free.copy(), network)
    decision.costs, decision.prices = case.costs, case.prices
    found = dict(decision.run([candidate])).get(candidate)
    if len(case.needs.bundles) > 1 or not isinstance(found, tp.Placement):
        return
    (bundle,), host = case.needs.bundles, found.hosts[0].machine
    first = {m: costs[0] for m in case.machines if (costs := case.bundles_on(m, bundle, 1))}
    assert first[host] == min(first.values())
    if not bundle.gpus_local:
        spent = sorted(cost for costs in gpu_costs(case, host).values() for cost in costs)
        assert gpus_cost(case, host, found.gpus) == sum(spent[: case.job.num_tasks])
    drives = [int(n) for n in case.free.hosts[:, 2]]
    assert sum(machine == host for machine in found.drives) == min(case.job.drives, max(drives[host], 0))
    assert all(found.drives.count(machine) <= drives[machine] for machine in found.drives)


def gpu_costs(case: Case, host: int) -> dict[tuple[int, tuple[str | None, float | None]], list[int]]:
    """The cost of each further GPU of each machine and make, for a process on `host`."""
    far = round((case.slowdown(host, remote=True) - 1) / case.costs.goal * 2 * ONE)
    found: dict[tuple[int, tuple[str | None, float | None]], list[int]] = {}
    for machine in range(len(case.load)):
        for make, count in case.gpus_at(machine).items():
            memory = STEP * case.larger(make[1])
            if machine in case.pool(host):
                found[machine, make] = [case.cost(host, remote=False) + memory] * count
            else:
                there = case.cost(machine, remote=True) + memory + far + 1
                more = case.together(remote=True)
                found[machine, make] = [there + min(i, 3) * more for i in range(count)]
    return found


def gpus_cost(case: Case, host: int, gpus: Sequence[int]) -> int:
    topology, costs = case.cluster.topology, gpu_costs(case, host)
    taken = Counter(
        (int(topology.machine_of[g]), (topology.gpus[g].model, topology.gpus[g].memory_gb)) for g in gpus
    )
    return sum(sum(costs[place][:count]) for place, count in taken.items())


@given(cases())
def test_tasks_get_the_nearest_of_the_chosen_gpus(case: Case) -> None:
    """In their order: the lowest of the process's machine, else of its pool; what is left goes to the others."""
    network = NetworkLoad(np.array(case.load), np.array(case.sensitivity))
    entry = QueuedJob("job", case.job)
    results = case.policy.decision(case.view, case.free.copy(), network).run(
        [Candidate(entry, case.needs, 0.0)]
    )
    if not results or case.needs.gpus_local:
        return
    placement = results[0][1]
    assert isinstance(placement, tp.Placement)
    machine_of, rest = case.cluster.topology.machine_of, sorted(placement.gpus)
    order: list[int | None] = []
    for task in range(case.job.num_tasks):
        host = placement.host_of(task)
        near = [gpu for gpu in rest if machine_of[gpu] == host]
        near += [gpu for gpu in rest if machine_of[gpu] in case.pool(host) and gpu not in near]
        order.append(near[0] if near else None)
        rest = [gpu for gpu in rest if gpu not in near[:1]]
    assert placement.gpus == tuple(rest.pop(0) if gpu is None else gpu for gpu in order)
