"""DRMaestro's options, fixed partitions, and the load at which a network is as slow as it gets."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import topoplace as tp
from topoplace.engine.machine_state import ClusterView
from topoplace.engine.plan import QueuedJob
from topoplace.jobs.network_profile import NetworkProfile
from topoplace.policies.drmaestro.decision import Decision
from topoplace.policies.drmaestro.network import NetworkLoad, RunningTraffic
from topoplace.policies.drmaestro.phases import room
from topoplace.policies.drmaestro.policy import DRMaestro, free_columns


@pytest.mark.parametrize(
    "options",
    [
        {"disaggregate": 1},
        {"network_aware": None},
        {"profiles": []},
        {"profiles": {"net": 0.5}},
        {"costs": 1.0},
        {"max_postponements": -1},
        {"window": 0},
    ],
    ids=str,
)
def test_options_that_cannot_be_are_refused_by_name(options: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=next(iter(options))):
        tp.policies.get("drmaestro", **options)


def test_the_least_options_can_be_used() -> None:
    policy = tp.policies.get("drmaestro", max_postponements=0, window=1)
    assert policy.place(tp.JobGraph.ring(2), tp.Cluster(tp.machines.get("minsky")))


@pytest.mark.parametrize("disaggregate", [True, False])
@pytest.mark.parametrize("processes", [1, 2])
def test_a_job_gets_a_partition_of_its_size(disaggregate: bool, processes: int) -> None:
    topology = replace(tp.machines.get("minsky"), partitions=((0,), (0, 1), (2, 3), (1, 2, 3)))
    policy = tp.policies.get("drmaestro", disaggregate=disaggregate)
    cluster = tp.Cluster(topology)
    for gpus in ((0, 1), (2, 3)):
        placement = policy.place(tp.JobGraph.ring(2).with_(processes=processes), cluster)
        assert isinstance(placement, tp.Placement)
        assert sorted(placement.gpus) == list(gpus)
        cluster.allocate(str(gpus), placement)
    cluster.release("(2, 3)")
    assert policy.place(tp.JobGraph.ring(1), cluster) is None  # GPU 0, a partition alone, is taken


def test_a_network_beyond_its_capacity_slows_no_further() -> None:
    load = NetworkLoad(np.array([0.5, 1.0, 3.0]), np.array([0.0, 0.0, 0.2]))
    profile = NetworkProfile(0.1, 0.4)
    half, full, over = load.slowdown(profile, remote=True).tolist()
    sensitivity = profile.sensitivity(remote=True)
    assert half == pytest.approx(1 + sensitivity / 2)
    assert full == pytest.approx(1 + sensitivity)
    assert over == pytest.approx(full + 0.2 * profile.traffic(remote=True))


def test_a_job_with_too_few_local_gpus_leaves_them_to_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """Phase 1 is replaced by one that puts every process on the only machine, however many GPUs are left there."""
    monkeypatch.setattr(Decision, "_hosts", lambda self, jobs, left: [[0] for _ in jobs])
    machine = tp.Topology.from_links(3, [], 12.0, model="K80", memory_gb=12.0)
    cluster = tp.Cluster(tp.Topology.cluster(machine, count=1), tp.HostResources(160, 512.0))
    jobs = [tp.JobGraph.independent(size).with_(cpus=2) for size in (2, 2, 1)]
    entries = [QueuedJob(str(i), job, 0.0) for i, job in enumerate(jobs)]
    plan = DRMaestro(disaggregate=False).plan(entries, cluster, 0.0)
    assert [(job_id, placement.gpus) for job_id, placement in plan.start] == [("0", (0, 1)), ("2", (2,))]


def of_two_sizes(loads: tuple[float, float]) -> tp.Placement:
    """The placement of a job on one of two machines with GPUs of 12 and 24 GB, whose networks have these loads."""
    machines = [tp.Topology.from_links(1, [], 12.0, model="K80", memory_gb=gb) for gb in (24.0, 12.0)]
    cluster = tp.Cluster(tp.Topology.cluster(machines), tp.HostResources(160, 512.0))
    profiles = {
        "asks": NetworkProfile(0.5, 0.75, 0.5)
    }  # a full network doubles its time, wherever its GPUs are
    job = tp.JobGraph.independent(1).with_(cpus=1, gpu_memory_gb=8.0, profile="asks")
    policy = DRMaestro(network_aware=True, profiles=profiles)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(RunningTraffic, "network", lambda self: NetworkLoad(np.array(loads), np.zeros(2)))
        placement = policy.place(job, cluster)
    assert placement is not None
    return placement


def test_memory_decides_between_gpus_that_are_equally_near() -> None:
    assert of_two_sizes((0.0, 0.0)).gpus == (1,)
    assert of_two_sizes((0.0, 0.0009)).gpus == (1,)  # a step of memory is worth a slowdown of 0.1 %
    assert of_two_sizes((0.0, 0.0012)).gpus == (0,)


def cluster_with_cpus(*cpus: int) -> tp.Cluster:
    """Machines of four GPUs, with as many logical CPUs free as given."""
    machine = tp.Topology.from_links(4, [], 12.0, model="K80", memory_gb=12.0)
    return tp.Cluster(
        tp.Topology.cluster(machine, count=len(cpus)), [tp.HostResources(each, 512.0) for each in cpus]
    )


def test_jobs_without_a_place_are_asked_about_once_for_all(monkeypatch: pytest.MonkeyPatch) -> None:
    batches: list[int] = []
    run = Decision.run

    def counted(self: Decision, batch: Any) -> Any:
        batches.append(len(batch))
        return run(self, batch)

    monkeypatch.setattr(Decision, "run", counted)
    kinds = [tp.JobGraph.independent(1).with_(cpus=cpus) for cpus in (9, 10, 12)]
    queue = [QueuedJob(str(i), kinds[i % 3], float(i)) for i in range(300)]
    policy = DRMaestro(disaggregate=False)
    assert policy.plan(queue, cluster_with_cpus(8, 8), 1000.0).start == ()
    assert batches == []  # eight GPUs are free, but no machine has nine CPUs
    started = [name for name, _ in policy.plan(queue, cluster_with_cpus(24, 10), 1000.0).start]
    assert started == ["0", "1", "2"]
    assert sum(batches) < 20


@pytest.mark.parametrize("disaggregate", [True, False])
@pytest.mark.parametrize("size", [1, 2, 3])
def test_as_many_jobs_start_as_there_is_room(disaggregate: bool, size: int) -> None:
    """For jobs of one process with local GPUs, the bound on a batch is exact; with remote ones it is a bound."""
    cluster = cluster_with_cpus(24, 9, 40, 5)
    policy = DRMaestro(disaggregate=disaggregate)
    job = tp.JobGraph.independent(size).with_(cpus=8, processes=1)
    view = cluster.view(ClusterView)
    most = room(free_columns(view).free(), policy.bundles(view.request(job), view))
    queue = [QueuedJob(str(i), job, float(i)) for i in range(20)]
    assert len(policy.plan(queue, cluster, 100.0).start) == most
    assert most == ({1: 9, 2: 8, 3: 5} if disaggregate else {1: 8, 2: 5, 3: 3})[size]


def test_jobs_that_disturbed_each_other_are_retried_oldest_first() -> None:
    """Two jobs fit on the machine with CPUs; the flow does not see that jobs of different sizes share its CPUs."""
    cluster = cluster_with_cpus(20)
    kinds = [tp.JobGraph.independent(1).with_(cpus=cpus) for cpus in (10, 9, 8, 7)]
    queue = [QueuedJob(str(i), kinds[i], float(i)) for i in range(4)]
    plan = DRMaestro(disaggregate=False).plan(queue, cluster, 1.0)
    assert [name for name, _ in plan.start] == ["0", "1"]
