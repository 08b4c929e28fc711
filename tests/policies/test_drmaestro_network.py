"""The network load by which DRMaestro decides, and the scores about it, as they are defined."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import topoplace as tp
from drmaestro_cases import host_clusters, host_jobs, mixed_clusters
from thoroughness import thorough
from topoplace.engine.machine_state import ClusterView
from topoplace.policies import DRMaestro, QueuedJob
from topoplace.policies.drmaestro import free_resources
from topoplace.policies.drmaestro.costs import Costs
from topoplace.policies.drmaestro.free_resources import FreeColumns
from topoplace.policies.drmaestro.network import NetworkLoad
from topoplace_lab.policies.drmaestro import DRMaestroService, InferenceEngine
from topoplace_lab.telemetry import Reading

PROFILES = {"nw": tp.NetworkProfile(0.17, 0.49, 0.085), "bfs": tp.NetworkProfile(0.3, 0.5, 0.0)}
NOTHING = tp.NetworkProfile(0.0, 0.0)
NAMES = st.sampled_from([None, "nw", "nw", "bfs", "unknown"])


def sent_by(
    cluster: tp.Cluster, job_id: str, placement: tp.Placement | None = None
) -> list[tuple[int, float]]:
    """(machine, load) for each GPU of a job: at its process, and for a remote GPU also where it is."""
    job = cluster.jobs.get(job_id)
    profile = PROFILES.get((job.profile if job else None) or "", NOTHING)
    machine_of = cluster.topology.machine_of.tolist()
    held = cluster.hosts.held.get(job_id)
    shares, remote = (held.shares, held.remote) if held else ((), ())
    gpus, found = cluster.gpus_of(job_id), []
    for task, gpu in enumerate(gpus):
        host = shares[task * len(shares) // len(gpus)].machine if shares else machine_of[gpu]
        found.append((host, profile.alone if gpu in remote else profile.local))
        if gpu in remote:
            found.append((machine_of[gpu], profile.alone))
    return found


def expected(cluster: tp.Cluster) -> tuple[list[float], list[float]]:
    """The load of each machine's network, and the sum of the sensitivities of the traffic there."""
    load, sensitivity = ([0.0] * cluster.topology.num_machines for _ in "ab")
    for job_id in cluster.allocations:
        job = cluster.jobs.get(job_id)
        profile = PROFILES.get((job.profile if job else None) or "", NOTHING)
        held = cluster.hosts.held.get(job_id)
        for machine, own in sent_by(cluster, job_id):
            load[machine] += own
            sensitivity[machine] += profile.sensitivity(remote=bool(held and held.remote))
    return load, sensitivity


def close(values: list[float]) -> object:
    return pytest.approx(values, abs=1e-12)


@st.composite
def streams(draw: st.DrawFn) -> tuple[tp.Cluster, list[tp.JobGraph]]:
    jobs = draw(st.lists(st.tuples(host_jobs(), NAMES), min_size=1, max_size=8))
    return draw(host_clusters() | mixed_clusters()), [job.with_(profile=name) for job, name in jobs]


@given(streams(), st.data())
@settings(max_examples=thorough(1000, 12))
def test_the_load_of_running_jobs_follows_them(
    stream: tuple[tp.Cluster, list[tp.JobGraph]], data: st.DataObject
) -> None:
    cluster, jobs = stream
    policy = DRMaestro(network_aware=True, profiles=PROFILES, max_postponements=0)
    for number, job in enumerate(jobs):
        with cluster.what_if() as state:  # what is given back leaves no trace
            if placement := policy.place(job, state):
                state.allocate("trial", placement)
                policy.network(state.view(ClusterView))
        network = policy.network(cluster.view(ClusterView))
        load, sensitivity = expected(cluster)
        assert network.load.tolist() == close(load)
        assert network.sensitivity_sum.tolist() == close(sensitivity)
        used = {machine for job_id in cluster.allocations for machine, _ in sent_by(cluster, job_id)}
        idle = [machine for machine in range(len(load)) if machine not in used]
        assert network.load[idle].tolist() == [0.0] * len(idle)  # without roundings
        if placement := policy.place(job, cluster):
            cluster.allocate(str(number), placement)
        if cluster.allocations and data.draw(st.booleans()):
            cluster.release(data.draw(st.sampled_from(sorted(cluster.allocations))))
    network.load += 1.0  # a copy
    assert policy.network(cluster.view(ClusterView)).load.tolist() == close(expected(cluster)[0])
    assert DRMaestro(profiles=PROFILES).network(cluster.view(ClusterView)).load.tolist() == [0.0] * len(load)


@given(streams(), st.sampled_from([Costs(), Costs(goal=1.2, importance=5.0)]), st.integers(0, 2))
@settings(max_examples=thorough(1000, 12))
def test_placements_tell_the_load_that_those_before_them_leave(
    stream: tuple[tp.Cluster, list[tp.JobGraph]], costs: Costs, postponed: int
) -> None:
    """A job that would take longer than its goal is postponed, as long as it was not often enough."""
    cluster, jobs = stream
    policy = DRMaestro(network_aware=True, profiles=PROFILES, costs=costs, max_postponements=1)
    entries = [QueuedJob(str(i), job, 0.0, postponed) for i, job in enumerate(jobs)]
    plan = policy.plan(entries, cluster, 1.0)
    for job_id, placement in plan.start:
        load, _ = expected(cluster)
        cluster.allocate(job_id, placement)
        most = max((load[machine] for machine, _ in sent_by(cluster, job_id)), default=0.0)
        profile = PROFILES.get(jobs[int(job_id)].profile or "", NOTHING)
        slowdown = 1 + min(most, 1.0) * profile.sensitivity(remote=bool(placement.remote))
        utility = 1 - slowdown / costs.goal
        scores = placement.scores
        assert scores["network_load"] == pytest.approx(most, abs=1e-12)
        assert scores["network_slowdown"] == pytest.approx(slowdown)
        assert scores["goal_utility"] == pytest.approx(
            utility if utility >= 0 else utility * (10 - costs.importance) / 9
        )
        assert postponed or slowdown <= costs.goal + 1e-9
    for _, why in plan.defer:
        assert not postponed
        slowdown = float(why.reason.partition("would take ")[2].split()[0])
        assert slowdown >= costs.goal - 0.001
        assert why.reason.endswith(f"its goal is {costs.goal:g}")


@given(
    st.lists(st.tuples(st.floats(0, 3), st.floats(0, 2)), min_size=1, max_size=5),
    st.sampled_from([*PROFILES.values(), NOTHING]),
    st.booleans(),
)
def test_what_a_job_suffers_and_causes_adds_up(
    machines: list[tuple[float, float]], profile: tp.NetworkProfile, remote: bool
) -> None:
    network = NetworkLoad(*(np.array(column) for column in zip(*machines, strict=True)))
    own, sent = profile.sensitivity(remote=remote), profile.traffic(remote=remote)
    slowdown = [1 + min(load, 1.0) * own + sent * others for load, others in machines]
    assert network.slowdown(profile, remote=remote).tolist() == pytest.approx(slowdown)
    assert network.slowdown(profile, [0], remote=remote).tolist() == pytest.approx(slowdown[:1])
    fullest = max(load for load, _ in machines)
    relative = [1 + own * (load / fullest if fullest else 0.0) for load, _ in machines]
    assert network.relative_slowdown(profile, remote=remote).tolist() == pytest.approx(relative)
    copy = network.copy()
    copy.send([(0, 0.5), (0, 0.25)], 2.0)
    assert copy.load[0] == pytest.approx(machines[0][0] + 0.75)
    assert copy.sensitivity_sum[0] == pytest.approx(machines[0][1] + 4.0)
    copy.send([(0, 0.5), (0, 0.25)], 2.0, -1)
    assert copy.load.tolist() == pytest.approx(network.load.tolist(), abs=1e-9)
    assert network.load.tolist() == [load for load, _ in machines]


@given(streams(), st.data())
@settings(max_examples=thorough(1000, 12))
def test_the_service_takes_measured_loads_for_those_of_running_jobs(
    stream: tuple[tp.Cluster, list[tp.JobGraph]], data: st.DataObject
) -> None:
    """A job that the last reading did not see counts by what the engine expects of it."""
    cluster, jobs = stream
    service = DRMaestroService(InferenceEngine(PROFILES), max_postponements=0)
    for number, job in enumerate(jobs):
        if placement := service.place(job, cluster):
            cluster.allocate(str(number), placement)
    machines = st.integers(0, cluster.topology.num_machines - 1)
    reading = data.draw(
        st.dictionaries(
            st.sampled_from(["0", "1", "2", "gone"]), st.dictionaries(machines, st.floats(0, 1), max_size=2)
        )
    )
    if data.draw(st.booleans()):
        service.measured(Reading(0.0, reading))
    else:
        reading = {}
    load = [0.0] * cluster.topology.num_machines
    for job_id in cluster.jobs:
        for machine, own in (
            reading.get(job_id, {}).items() if job_id in reading else sent_by(cluster, job_id)
        ):
            load[machine] += own
    network = service.network(cluster.view(ClusterView))
    assert network.load.tolist() == close(load)
    assert [s > 0 for s in network.sensitivity_sum] >= [s > 0 for s in expected(cluster)[1]]


# ---- free resources ----------------------------------------------------------------------------------------------


@given(host_clusters() | mixed_clusters(), st.data())
@settings(max_examples=thorough(1000, 10))
def test_columns_count_what_is_free(cluster: tp.Cluster, data: st.DataObject) -> None:
    topology, columns = cluster.topology, FreeColumns(cluster)
    for turn in range(3):
        free, idle = columns.free(), list(cluster.free_gpus())
        makes = free.columns.makes
        assert set(makes) == {(gpu.model, gpu.memory_gb) for gpu in topology.gpus}
        assert free.num_free == len(idle)
        assert np.flatnonzero(free.free_mask).tolist() == idle
        pool_of = cluster.hosts.pool_of().tolist()
        for machine in range(topology.num_machines):
            near = [other for other, pool in enumerate(pool_of) if pool == pool_of[machine]]
            assert free.pool(machine) == [machine, *(other for other in near if other != machine)]
            for number, make in enumerate(makes):
                there, local = (
                    [
                        gpu
                        for gpu in idle
                        if topology.machine_of[gpu] in machines
                        and (topology.gpus[gpu].model, topology.gpus[gpu].memory_gb) == make
                    ]
                    for machines in ([machine], near)
                )
                assert free.gpus[machine, number] == len(there)
                assert free.local_gpus()[machine, number] == len(local)
                assert free.lowest(machine * len(makes) + number, 2) == there[:2]
            left = cluster.hosts.free[machine].tolist()
            drained = machine in cluster.hosts.drained
            assert free.hosts[machine].tolist() == ([-1] * len(left) if drained else left)
        gpu = data.draw(st.integers(0, topology.num_gpus - 1))
        taken = free.copy()
        for _ in range(2):
            taken.set_free(gpu, free=False)
        assert taken.num_free == free.num_free - (gpu in idle)
        assert int(taken.gpus.sum()) == taken.num_free == int(taken.free_mask.sum())
        taken.set_free(gpu, free=True)
        assert int(taken.gpus.sum()) == taken.num_free == free.num_free + (gpu not in idle)
        assert free.num_free == len(idle)
        if gpu in idle:
            cluster.allocate(f"turn-{turn}", [gpu])
        elif cluster.allocations:
            cluster.release(sorted(cluster.allocations)[0])


def test_an_interrupt_while_columns_are_read_loses_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = tp.Cluster(tp.Topology.cluster(tp.machines.get("minsky"), count=2))
    columns, flagged = FreeColumns(cluster), free_resources._flagged
    columns.free()
    cluster.allocate("job", [0, 1, 5])

    def interrupted(*arguments: Any) -> None:
        flagged(*arguments)
        raise KeyboardInterrupt

    for _ in range(2):
        with monkeypatch.context() as patch:
            patch.setattr(free_resources, "_flagged", interrupted)
            with pytest.raises(KeyboardInterrupt):
                columns.free()
    kept, fresh = columns.free(), FreeColumns(cluster).free()
    assert kept.gpus.tolist() == fresh.gpus.tolist() == [[2], [3]]
    assert kept.num_free == fresh.num_free == 5
    assert kept.is_free == fresh.is_free
