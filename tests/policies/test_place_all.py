"""Several jobs at once: against every way to give them GPUs, on small clusters."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import topoplace as tp
from topoplace import JobGraph

Counts = tuple[int, ...]


def cluster_of(sizes: Sequence[int], racks: str, used: Sequence[int]) -> tp.Cluster:
    """Machines of these sizes in racks; `used` of the GPUs of each are taken."""
    machines = [tp.Topology.from_links(size, [], 12.0, name=f"m{i}") for i, size in enumerate(sizes)]
    names = tuple(f"m{i}" for i in range(len(sizes)))
    fabric = tp.Fabric(names, (tp.Level("rack", tuple(racks)),))
    cluster = tp.Cluster(tp.Topology.cluster(machines, fabric=fabric))
    taken = [
        gpus[local]
        for gpus, count in zip(cluster.topology.gpus_of.values(), used, strict=True)
        for local in range(count)
    ]
    if taken:
        cluster.allocate("others", taken)
    return cluster


def small_job(size: int, kind: int) -> JobGraph:
    """A job without, with all its tasks, or with each pair of tasks on one machine, or in one rack."""
    job = JobGraph.ring(size)
    if kind == 1:
        return job.with_(single_machine=True)
    if kind == 2:
        return job.with_(within="rack")
    return JobGraph.ring(2 * size).grouped(2, within="machine") if kind == 3 else job


@st.composite
def cases(draw: st.DrawFn) -> tuple[tp.Cluster, list[JobGraph], str | None, str | None]:
    sizes = draw(st.lists(st.integers(1, 4), min_size=2, max_size=5))
    racks = draw(st.text("abc", min_size=len(sizes), max_size=len(sizes)))
    used = [draw(st.integers(0, size - 1)) for size in sizes]
    jobs = draw(st.lists(st.builds(small_job, st.integers(1, 4), st.integers(0, 3)), min_size=1, max_size=4))
    together, spread = draw(
        st.sampled_from(
            [(None, None), ("rack", None), (None, "rack"), (None, "machine"), ("rack", "machine")]
        )
    )
    return cluster_of(sizes, racks, used), jobs, together, spread


def shares(job: JobGraph, free: Counts, racks: Sequence[str | None]) -> Iterator[Counts]:
    """Yield every number of tasks on each machine with which the job has what it requires."""

    def extend(left: int, so_far: Counts) -> Iterator[Counts]:
        if len(so_far) == len(free):
            if not left:
                yield so_far
            return
        for count in range(0, min(left, free[len(so_far)]) + 1, 2 if job.groups else 1):
            yield from extend(left - count, (*so_far, count))

    for counts in extend(job.num_tasks, ()):
        used = [machine for machine, count in enumerate(counts) if count]
        if job.single_machine and len(used) > 1:
            continue
        if job.within and len({racks[machine] for machine in used}) > 1:
            continue
        yield counts


def most_jobs(jobs: Sequence[JobGraph], cluster: tp.Cluster, together: str | None, spread: str | None) -> int:
    """Return how many jobs fit at the same time, by trying everything."""
    topology = cluster.topology
    racks = topology.levels[0].domains
    domain = {
        "rack": racks,
        "machine": tuple(range(topology.num_machines)),
        None: (0,) * topology.num_machines,
    }

    @cache
    def most(place: int, free: Counts, taken: frozenset[object], home: object) -> int:
        if place == len(jobs):
            return 0
        best = most(place + 1, free, taken, home)
        for counts in shares(jobs[place], free, racks):
            used = [machine for machine, count in enumerate(counts) if count]
            homes = {domain[together][machine] for machine in used} | ({home} - {None})
            touched = frozenset(domain[spread][machine] for machine in used)
            if (together and len(homes) > 1) or (spread and touched & taken):
                continue
            left = tuple(a - b for a, b in zip(free, counts, strict=True))
            best = max(
                best, 1 + most(place + 1, left, taken | touched, min(homes, key=str) if together else None)
            )
        return best

    free = np.bincount(topology.machine_of[list(cluster.free_gpus())], minlength=topology.num_machines)
    return most(0, tuple(free.tolist()), frozenset(), None)


def check(
    placements: Sequence[tp.Placement | None],
    jobs: Sequence[JobGraph],
    cluster: tp.Cluster,
    together: str | None,
    spread: str | None,
) -> None:
    """The placements can be allocated one after the other, and are in one domain, or in different ones."""
    machine_of, racks = cluster.topology.machine_of, cluster.topology.levels[0].domains
    machines = [
        {int(machine_of[gpu]) for gpu in placement.gpus} for placement in placements if placement is not None
    ]
    if together:
        assert len({racks[one] for own in machines for one in own}) <= 1
    if spread:
        domains = [{racks[one] for one in own} if spread == "rack" else own for own in machines]
        assert sum(map(len, domains)) == len(set().union(*domains))
    with cluster.what_if() as state:
        for i, (job, placement) in enumerate(zip(jobs, placements, strict=True)):
            if placement is not None:
                assert placement.job == job
                own = [int(machine_of[gpu]) for gpu in placement.gpus]
                assert not job.single_machine or len(set(own)) == 1
                assert not job.within or len({racks[one] for one in own}) == 1
                assert not job.groups or own[::2] == own[1::2]
                state.allocate(f"job {i}", placement)


@pytest.mark.parametrize("policy", ["topo-aware", "best-fit"])
@given(case=cases())
def test_all_or_as_many_as_fit_are_placed(
    policy: str, case: tuple[tp.Cluster, list[JobGraph], str | None, str | None]
) -> None:
    cluster, jobs, together, spread = case
    before = cluster.snapshot()
    most = most_jobs(jobs, cluster, together, spread)
    whole = tp.place_all(jobs, cluster, policy=policy, together=together, spread=spread)
    part = tp.place_all(jobs, cluster, policy=policy, together=together, spread=spread, partial=True)
    assert cluster.snapshot() == before
    assert sum(one is not None for one in whole) == (len(jobs) if most == len(jobs) else 0)
    assert sum(one is not None for one in part) == most
    check(whole, jobs, cluster, together, spread)
    check(part, jobs, cluster, together, spread)


def racks_of_dgx1(count: int = 4) -> tp.Cluster:
    """Machines of 8 GPUs, two in each rack."""
    names = tuple(f"m{i}" for i in range(count))
    fabric = tp.Fabric(names, (tp.Level("rack", tuple(f"r{i // 2}" for i in range(count))),))
    topology = tp.Topology.cluster(tp.machines.get("dgx1-v100"), count=count, fabric=fabric)
    return tp.Cluster(topology, tp.HostResources(cpus=64, memory_gb=512.0, drives=4))


@pytest.mark.parametrize("policy", tp.policies.names())
def test_every_policy_spreads_and_keeps_together(policy: str) -> None:
    cluster = racks_of_dgx1()
    replicas = [JobGraph.ring(4)] * 2
    apart = [
        one.gpus for one in tp.place_all(replicas, cluster, policy=policy, spread="rack") if one is not None
    ]
    assert len({gpu // 16 for gpus in apart for gpu in gpus}) == 2
    assert all(len({gpu // 16 for gpu in gpus}) == 1 for gpus in apart)
    near = [
        one.gpus for one in tp.place_all(replicas, cluster, policy=policy, together="rack") if one is not None
    ]
    assert len(near) == 2
    assert len({gpu // 16 for gpus in near for gpu in gpus}) == 1


def test_a_domain_is_left_to_the_job_that_needs_it() -> None:
    """The first jobs would take the only large machine; 66 jobs are too many for a search of sets of domains."""
    cluster = cluster_of([4] + [2] * 65, "a" * 66, [0] * 66)
    jobs = [JobGraph.ring(2)] * 65 + [JobGraph.ring(4).with_(single_machine=True)]
    placements = tp.place_all(jobs, cluster, policy="fcfs", spread="machine")
    assert all(placement is not None for placement in placements)
    check(placements, jobs, cluster, None, "machine")
    assert placements[-1] is not None
    assert sorted(placements[-1].gpus) == [0, 1, 2, 3]


def test_the_domain_with_the_fewest_free_gpus_that_does_is_taken() -> None:
    cluster = racks_of_dgx1(6)
    cluster.allocate("other", range(16, 24))
    cluster.allocate("another", range(32, 44))
    placements = tp.place_all([JobGraph.ring(4)] * 2, cluster, together="rack")
    assert [one is not None and {gpu // 16 for gpu in one.gpus} for one in placements] == [{1}, {1}]


def test_the_first_jobs_are_placed_if_not_all_fit() -> None:
    jobs = [JobGraph.ring(8)] * 6
    assert tp.place_all(jobs, racks_of_dgx1()) == (None,) * 6
    found = tp.place_all(jobs, racks_of_dgx1(), partial=True)
    assert [one is not None for one in found] == [True] * 4 + [False] * 2
    assert tp.place_all([], racks_of_dgx1()) == ()


def test_a_job_named_like_those_of_the_trial_may_run() -> None:
    cluster = racks_of_dgx1()
    cluster.allocate("place_all 0", [0, 1])
    assert all(one is not None for one in tp.place_all([JobGraph.ring(4)] * 2, cluster, spread="rack"))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"jobs": 3}, "jobs = 3"),
        ({"jobs": [JobGraph.ring(2), "ring"]}, r"jobs\[1\] = 'ring'"),
        ({"cluster": None}, "cluster = None"),
        (
            {"together": "pod"},
            "together = 'pod': the levels whose domains are machines are 'machine', 'rack'",
        ),
        ({"spread": "socket"}, "spread = 'socket'"),
        ({"spread": 3}, "spread = 3"),
        ({"partial": "yes"}, "partial = 'yes'"),
        ({"policy": "best"}, "no such policy"),
        ({"policy": 3}, "policy = 3"),
        ({"jobs": [JobGraph.ring(2).with_(within="pod")]}, "within = 'pod' cannot be honoured"),
    ],
)
def test_wrong_arguments_are_refused_by_name(arguments: dict[str, object], message: str) -> None:
    given: dict[str, object] = {"jobs": [JobGraph.ring(2)], "cluster": racks_of_dgx1(), **arguments}
    with pytest.raises(ValueError, match=message):
        tp.place_all(given.pop("jobs"), given.pop("cluster"), **given)  # type: ignore[arg-type]


def test_what_is_held_stays_held() -> None:
    cluster = racks_of_dgx1()
    names = cluster.topology.machine_names
    held = [*cluster.topology.gpus_of[names[0]], *cluster.topology.gpus_of[names[1]][:5]]
    cluster.hold([names[0], *held])
    cluster.unhold([held[0]])  # the machine stays held, with one GPU that is not
    before = cluster.held_gpus()
    free = set(cluster.free_gpus())
    jobs = [JobGraph.ring(1)] * len(free)
    found = tp.place_all(jobs, cluster)
    assert {gpu for placement in found if placement for gpu in placement.gpus} == free
    apart = tp.place_all([JobGraph.ring(3)] * len(names), cluster, spread="machine", partial=True)
    assert {gpu for placement in apart if placement for gpu in placement.gpus} <= free
    assert cluster.held_gpus() == before
