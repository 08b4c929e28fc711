"""Jobs that are decided in few calls, beside the engine's way, which asks the same rule condition by condition."""

from __future__ import annotations

import gc
import random
import threading
import time
import weakref
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from typing import Any

import hypothesis.strategies as st
import pytest
from hypothesis import given

import topoplace as tp
from small_clusters import FAMILIES, linked_cluster, small_cluster, small_job
from topoplace import _core
from topoplace.deciding.least_time import LeastTime
from topoplace.deciding.plain_jobs import PlainJobs
from topoplace.engine.machine_state import ClusterView
from topoplace.errors import DeadlineError
from topoplace.kernels.limits import deadline
from topoplace.placement import Placement
from topoplace.topology.links.nccl_rates import rates_of


class ByTheEngine(LeastTime):
    """The same rule; no job of a subclass is plain."""


def outcome(placement: Placement | None) -> Any:
    if placement is None:
        return None
    return placement.gpus, dict(placement.scores), placement.optimal, placement.bound, placement.hosts


def same(found: Placement | None, other: Placement | None) -> bool:
    """Return True if outcomes are equal, but that more may be proven of a job with a `min_utility`."""
    if found is None or other is None:
        return found is other
    if found.job is None or not found.job.min_utility:
        return bool(outcome(found) == outcome(other))
    return outcome(found)[:2] == outcome(other)[:2] and found.optimal >= other.optimal


OPTIONS: tuple[dict[str, Any], ...] = (
    {},
    {},
    {"slack": 0.1},
    {"others": False},
    {"split": None},
    {"compact": 0.0},
    {"timeout": 60.0},
)


REQUIRED: tuple[Callable[[tp.JobGraph], tp.JobGraph], ...] = (
    lambda job: job,
    lambda job: job,
    lambda job: job.with_(single_machine=True),
    lambda job: job.with_(max_machines=2),
    lambda job: job.with_(anti_affinity=True),
    lambda job: job.grouped(2, within="machine"),
    lambda job: job.grouped(job.num_tasks, prefer="machine"),
    lambda job: job.with_(balanced="machine"),
    lambda job: job.with_(min_utility=0.6),
)


@given(st.sampled_from(["links between machines", *FAMILIES]), st.integers(0, 2**32 - 1))
def test_plain_jobs_get_what_the_engine_gives(family: str, seed: int) -> None:
    draws = random.Random(seed)
    cluster = small_cluster(family, draws) if family in FAMILIES else linked_cluster(draws)
    options = draws.choice(OPTIONS)
    policy, engine = LeastTime(**options), ByTheEngine(**options)
    for number in range(4):
        job = small_job(draws.randint(2, 8), draws)
        job = draws.choice(REQUIRED)(job)
        found = policy.place(job, cluster)
        assert same(found, engine.place(job, cluster))
        assert found == policy.place(job, cluster)
        if found is not None and draws.random() < 0.5:
            cluster.allocate(f"job-{number}", found, job)


@pytest.mark.parametrize("name", ["dgx-h100", "dgx1-v100"])
def test_what_needs_no_sockets_and_no_parts_is_plain(name: str) -> None:
    cluster = tp.Cluster(tp.Topology.cluster(tp.machines.get(name), count=3))
    plain = LeastTime()._plain_jobs(cluster.view(ClusterView))
    some = (
        tp.JobGraph.ring(4),
        tp.JobGraph.ring(12),
        tp.JobGraph.independent(3),
        tp.JobGraph.independent(12),
        tp.JobGraph.ring(2).with_(min_utility=0.5),
        tp.JobGraph.ring(12).grouped(4, within="machine"),
        tp.JobGraph.ring(12).with_(balanced="machine"),
        tp.JobGraph.ring(2).with_(anti_affinity=True),
        tp.JobGraph.ring(12).with_(max_machines=2),
    )
    others = (
        tp.JobGraph.ring(4).grouped(2, within="socket"),
        tp.JobGraph.independent(1).with_(mig="1g.10gb"),
        tp.JobGraph.ring(12).with_(same_gpus=True),
    )
    assert all(placement is not None and is_final for placement, is_final in map(plain.place, some))
    assert [plain.place(job) for job in others] == [(None, False)] * 3


BOUND: tuple[Callable[[tp.JobGraph], tp.JobGraph], ...] = (
    lambda job: job.grouped(4, within="machine"),
    lambda job: job.grouped(8, within="leaf").grouped(4, prefer="machine"),
    lambda job: job.grouped(3, prefer="leaf"),
    lambda job: job.with_(within="spine", prefer="leaf"),
    lambda job: job.with_(balanced="leaf"),
)


@given(st.sampled_from(["dgx-h100", "dgx1-v100"]), st.sampled_from(BOUND), st.integers(0, 2**32 - 1))
def test_gangs_with_groups_get_what_the_engine_gives(
    name: str, bound: Callable[[tp.JobGraph], tp.JobGraph], seed: int
) -> None:
    draws = random.Random(seed)
    fabric = tp.Fabric.regular(12, {"leaf": 3, "spine": 6}).with_level("leaf", gb_per_s=100.0)
    cluster = tp.Cluster(tp.Topology.cluster(tp.machines.get(name), fabric=fabric))
    cluster.allocate("busy", draws.sample(range(96), draws.randint(1, 60)))
    jobs = tp.JobGraph.parallel(tensor=4, data=draws.choice([2, 4])), tp.JobGraph.ring(draws.randint(9, 24))
    running = tp.place(tp.JobGraph.ring(12), cluster)
    if running is not None:
        cluster.allocate("running", running, tp.JobGraph.ring(12))
    for job in map(bound, jobs):
        assert outcome(LeastTime().place(job, cluster)) == outcome(ByTheEngine().place(job, cluster))


WITH_HOSTS: tuple[Callable[[tp.JobGraph], tp.JobGraph], ...] = (
    lambda job: job.with_(cpus=4 * job.num_tasks),
    lambda job: job.with_(cpus=3 * job.num_tasks + 1, memory_gb=10.0 * job.num_tasks),
    lambda job: job.with_(cpus=2.5, memory_gb=33.3 * job.num_tasks, processes=2),
    lambda job: job.with_(memory_gb=50.0 * job.num_tasks, anti_affinity=True),
    lambda job: job.with_(cpus=job.num_tasks, max_machines=3),
    lambda job: job.with_(cpus=5 * job.num_tasks, within="leaf"),
)


@given(st.sampled_from(["dgx-h100", "minsky"]), st.sampled_from(WITH_HOSTS), st.integers(0, 2**32 - 1))
def test_jobs_with_cpus_get_what_the_engine_gives(
    name: str, needing: Callable[[tp.JobGraph], tp.JobGraph], seed: int
) -> None:
    draws, machine = random.Random(seed), tp.machines.get(name)
    hosts = [tp.HostResources(draws.choice([8, 17, 32.5]), draws.choice([100.0, 400.5])) for _ in range(12)]
    fabric = tp.Fabric.regular(12, {"leaf": 3})
    cluster = tp.Cluster(tp.Topology.cluster(machine, fabric=fabric), hosts)
    for gpu in draws.sample(range(12 * machine.num_gpus), 3 * machine.num_gpus):
        cluster.drain(gpu)
    for number in range(4):
        job = needing(tp.JobGraph.ring(draws.choice([2, 4, 6, 10])))
        found = LeastTime().place(job, cluster)
        assert outcome(found) == outcome(ByTheEngine().place(job, cluster))
        if found is not None:
            cluster.allocate(f"job-{number}", found, job)


@given(st.sampled_from(["dgx-h100", "dgx1-v100", "minsky"]), st.integers(0, 2**32 - 1))
def test_jobs_on_gpus_of_several_sizes_get_what_the_engine_gives(name: str, seed: int) -> None:
    draws = random.Random(seed)
    some = [tp.machines.get(one) for one in ("dgx1-v100", name, "dgx-a100")]
    fabric = tp.Fabric.regular(8, {"leaf": 4})
    topology = tp.Topology.cluster([draws.choice(some) for _ in range(8)], fabric=fabric)
    cluster = tp.Cluster(topology)
    share = draws.choice([0.2, 0.6])
    cluster.allocate("busy", draws.sample(range(topology.num_gpus), int(share * topology.num_gpus)))
    for number in range(4):
        kind = draws.choice([tp.JobGraph.ring, tp.JobGraph.chain, tp.JobGraph.independent])
        job = kind(draws.choice([2, 3, 6, 8, 12])).with_(gpu_memory_gb=10.0)
        job = job.with_(min_utility=draws.choice([0.0, 0.0, 0.3, 0.9]))
        found = LeastTime().place(job, cluster)
        assert same(found, ByTheEngine().place(job, cluster))
        if found is not None:
            cluster.allocate(f"job-{number}", found, job)


@given(st.sampled_from(["dgx-h100", "dgx1-v100", "minsky", "l40s-8"]), st.integers(0, 2**32 - 1))
def test_shares_of_gpus_get_what_the_engine_gives(name: str, seed: int) -> None:
    draws = random.Random(seed)
    topology = tp.Topology.cluster(tp.machines.get(name), fabric=tp.Fabric.regular(4, {"leaf": 2}))
    cluster = tp.Cluster(topology, [tp.HostResources(16, 100.0)] * 4)
    for number in range(16):
        job = draws.choice([tp.JobGraph.ring, tp.JobGraph.independent])(draws.choice([1, 1, 2, 3]))
        job = job.with_(gpu_fraction=draws.choice([0.1, 0.25, 0.5, 0.7, 1.0]), cpus=draws.choice([None, 2]))
        if job.takes_parts and draws.random() < 0.3:
            job = job.with_(spread="gpu")
        found = LeastTime().place(job, cluster)
        assert outcome(found) == outcome(ByTheEngine().place(job, cluster))
        if found is not None:
            cluster.allocate(f"job-{number}", found, job)
            again = LeastTime().place(job, cluster), LeastTime().place(job, cluster)
            assert outcome(again[0]) == outcome(again[1]) == outcome(ByTheEngine().place(job, cluster))


def test_scores_are_computed_when_they_are_read() -> None:
    cluster = tp.Cluster(tp.machines.get("dgx1-v100"))
    placement = tp.place(tp.JobGraph.ring(3), cluster)
    assert placement is not None
    again = tp.place(tp.JobGraph.ring(3), cluster)
    assert placement == again
    assert placement.scores is placement.scores
    assert placement.scores["communication_time"] == placement.time


def test_options_that_are_set_later_count() -> None:
    fabric = tp.Fabric.regular(6, {"leaf": 2, "spine": 6}).with_level("leaf", gb_per_s=50.0)
    topology = tp.Topology.cluster(tp.machines.get("dgx1-v100"), fabric=fabric)
    cluster, policy, job = tp.Cluster(topology), LeastTime(), tp.JobGraph.ring(12)
    running = tp.place(job, cluster)
    assert running is not None
    cluster.allocate("running", running, job)
    for options in ({"others": False}, {"compact": 0.5}, {"others": True, "compact": 0.0}, {"split": None}):
        for name, value in options.items():
            setattr(policy, name, value)
        fresh = LeastTime(others=policy.others, compact=policy.compact, split=policy.split)
        assert outcome(policy.place(job, cluster)) == outcome(fresh.place(job, cluster))


def test_groups_without_a_place_are_not_searched_for_again(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = tp.Cluster(tp.Topology.cluster(tp.machines.get("dgx1-v100"), count=3))
    cluster.allocate("busy", [gpu for gpu in range(24) if gpu % 8 > 2])
    job = tp.JobGraph.ring(8).grouped(4, within="machine")
    assert ByTheEngine().place(job, cluster) is None
    monkeypatch.setattr(LeastTime, "choose", None)
    assert LeastTime().place(job, cluster) is None
    cluster.release("busy")
    assert LeastTime().place(job, cluster) is not None


def test_a_job_without_a_place_is_searched_for_once(monkeypatch: pytest.MonkeyPatch) -> None:
    searches: list[tp.JobGraph] = []
    own = PlainJobs._placed_by

    def noted(self: PlainJobs, decisions: Any, job: tp.JobGraph, most_seconds: float) -> Any:
        searches.append(job)
        return own(self, decisions, job, most_seconds)

    monkeypatch.setattr(PlainJobs, "_placed_by", noted)
    cluster = tp.Cluster(tp.Topology.cluster(tp.machines.get("dgx-h100"), count=2, network=0.0))
    policy, job = LeastTime(), tp.JobGraph.ring(12)
    assert policy.place(job, cluster) is None
    assert len(searches) == 1
    cluster.drain(0)
    assert policy.place(job, cluster) is None
    assert len(searches) == 2
    assert policy.place(tp.JobGraph.ring(17), cluster) is None
    assert len(searches) == 2


def test_room_that_comes_while_a_job_is_decided_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = tp.Cluster(tp.Topology.cluster(tp.machines.get("dgx1-v100"), count=3))
    cluster.allocate("busy", [gpu for gpu in range(24) if gpu % 8 > 2])
    own = _core.LeastTime.on_several

    def interleaved(*arguments: Any) -> Any:
        found = own(*arguments)
        cluster.release("busy")  # by another thread, as the kernel lets go of the GIL
        return found

    monkeypatch.setattr(_core.LeastTime, "on_several", interleaved)
    assert LeastTime().place(tp.JobGraph.ring(8).grouped(4, within="machine"), cluster) is not None


@pytest.mark.parametrize("seed", range(3))
def test_a_deadline_ends_the_division_of_a_gang(seed: int) -> None:
    """Groups as large as all leaves together, which do not quite fit; some take half a minute."""
    draws = random.Random(seed)
    leaves, room = draws.choice([6, 10, 14]), 8 * draws.choice([4, 8, 16])
    fabric = tp.Fabric.regular(leaves * room // 8, {"leaf": room // 8})
    machine = tp.Topology.from_links(8, [], 12.0)
    cluster = tp.Cluster(tp.Topology.cluster(machine, fabric=fabric))
    sizes: list[int] = []
    for _ in range(leaves):
        two = [draws.randint(room // 4 + 1, room // 2 - 1) for _ in range(2)]
        sizes += [*two, room - sum(two)]
    more, fewer = draws.sample(range(len(sizes)), 2)
    sizes[more] += 1
    sizes[fewer] -= 1
    ends = [sum(sizes[: i + 1]) for i in range(len(sizes))]
    groups = [
        tp.Group(range(end - size, end), within="leaf") for size, end in zip(sizes, ends, strict=True) if size
    ]
    job, begin = tp.JobGraph.ring(ends[-1]).with_(groups=groups), time.process_time()
    with suppress(DeadlineError), deadline(0.1):
        LeastTime().place(job, cluster)
    assert time.process_time() - begin < 10


def test_a_large_gpu_is_enough_where_a_split_over_small_ones_is_too_slow() -> None:
    machines = [tp.machines.get(name) for name in ("minsky", "minsky", "dgx-h100")]
    cluster = tp.Cluster(tp.Topology.cluster(machines, network=1600.0))
    free = [1, 3, 5, 7, 9, 10, 11, 12, 13, 15]
    cluster.allocate("busy", [gpu for gpu in range(cluster.topology.num_gpus) if gpu not in free])
    job = tp.JobGraph.ring(2).with_(gpu_memory_gb=12.0, min_utility=0.8)
    found = LeastTime().place(job, cluster)
    assert found is not None
    assert found.gpus == (9, 10)
    assert same(found, ByTheEngine().place(job, cluster))
    assert LeastTime().explain(job, cluster).candidates[0].gpus == found.gpus


@pytest.mark.parametrize("size", [5, 6, 8])
def test_a_time_that_is_cut_short_is_not_told(size: int) -> None:
    cluster, policy = tp.Cluster(tp.machines.get("dgx-h100")), LeastTime()
    policy.place(tp.JobGraph.chain(size), cluster)  # so that sets are ranked, and only the time is unknown
    for timeout in (1e-9, 1e-5, 1e-4):
        policy.timeout = timeout
        placement = policy.place(tp.JobGraph.ring(size), cluster)
        assert placement is not None
        assert placement.scores["communication_time"] == placement.time
        assert placement.bound is None or placement.bound <= placement.time


def test_policies_of_other_rates_share_a_topology() -> None:
    topology = tp.Topology.cluster(tp.machines.get("dgx-h100"), fabric=tp.Fabric.regular(4, {"leaf": 2}))
    cluster, job = tp.Cluster(topology), tp.JobGraph.ring(12)
    for rates in ("nccl-2.30", replace(rates_of("nccl-2.30")), "nccl-2.30"):
        placement = LeastTime(rates=rates).place(job, cluster)
        assert placement is not None
        assert same(placement, ByTheEngine(rates=rates).place(job, cluster))


def test_a_job_that_takes_too_long_is_asked_for_once(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = tp.Cluster(tp.Topology.cluster(tp.machines.get("torus2d-16"), count=30))
    for gpu in random.Random(1).sample(range(480), 150):
        cluster.drain(gpu)
    searches: list[tp.JobGraph] = []
    own = PlainJobs._placed_by

    def noted(self: PlainJobs, decisions: Any, job: tp.JobGraph, most_seconds: float) -> Any:
        searches.append(job)
        return own(self, decisions, job, most_seconds)

    monkeypatch.setattr(PlainJobs, "_placed_by", noted)
    job = tp.JobGraph.parallel(tensor=2, data=4)
    assert LeastTime(timeout=1e-6).place(job, cluster) is not None
    assert len(searches) == 1


def test_a_decision_that_was_never_made_is_a_type_error() -> None:
    with pytest.raises(TypeError, match="has not been run"):
        _core.LeastTime.__new__(_core.LeastTime).on_one_machine(
            tp.JobGraph.ring(4).traffic_arrays.native, None
        )


def test_a_placement_does_not_hold_its_cluster() -> None:
    cluster = tp.Cluster(tp.Topology.cluster(tp.machines.get("dgx1-v100"), count=2))
    placements = [tp.place(tp.JobGraph.ring(size), cluster) for size in (3, 12)]
    held = weakref.ref(cluster.view(ClusterView))
    del cluster
    gc.collect()
    assert held() is None
    assert all(one is not None and one.scores["communication_time"] == one.time for one in placements)


def test_a_deadline_ends_a_plain_decision() -> None:
    cluster = tp.Cluster(tp.Topology.cluster(tp.machines.get("dgx1-v100"), count=40))
    for machine in range(40):
        for gpu in range(8):
            if machine >> gpu & 1:
                cluster.drain(8 * machine + gpu)
    job = tp.JobGraph.from_edges(4, [(0, 1, 3.0), (1, 2, 1.0), (0, 3, 2.0)])
    with pytest.raises(DeadlineError), deadline(1e-9):
        tp.place(job, cluster)
    assert outcome(tp.place(job, cluster)) == outcome(ByTheEngine().place(job, cluster))


def test_threads_decide_about_one_cluster() -> None:
    """Jobs come and go in one thread while another decides."""
    cluster = tp.Cluster(tp.Topology.cluster(tp.machines.get("dgx1-v100"), count=30))
    stop = threading.Event()
    failed: list[BaseException] = []

    def decide() -> None:
        try:
            for weight in range(200):
                tp.place(tp.JobGraph.from_edges(4, [(0, 1, 1.0 + weight), (1, 2, 2.0), (2, 3, 1.0)]), cluster)
                tp.place(tp.JobGraph.ring(40), cluster)
        except BaseException as error:  # reported by the test
            failed.append(error)
        stop.set()

    thread = threading.Thread(target=decide)
    thread.start()
    draws = random.Random(1)
    while not stop.is_set():
        machine = draws.randrange(30)
        cluster.allocate("other", [8 * machine + gpu for gpu in draws.sample(range(8), 3)])
        cluster.release("other")
    thread.join()
    assert not failed
