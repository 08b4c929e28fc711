"""Run times from steps that compute and communicate, on ports that other jobs use too."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import topoplace as tp
from thoroughness import thorough
from topoplace.cluster.cluster import Cluster
from topoplace.engine.plan import Plan, QueuedJob
from topoplace.topology.devices import Gpu
from topoplace_lab.simulate import (
    MoveTimes,
    RunTimeHistograms,
    StepTime,
    SubmittedJob,
    Workload,
    simulate,
)

DGX1 = tp.machines.get("dgx1-v100")
RANDOM = np.random.default_rng(0)


def two_leaves(model: str | None = None) -> tp.Topology:
    """Return machines of one GPU with an adapter of 10 GB/s; the two of a leaf share an uplink of 10 GB/s."""
    return tp.Topology.cluster(
        tp.Topology.from_links(1, [], 12.0, model=model),
        fabric=tp.Fabric.regular(4, {"leaf": 2, "spine": 4}).with_level("spine", oversubscription=2.0),
        network=10.0,
    )


TWO_LEAVES = two_leaves()


def sender(gigabytes: float = 20.0) -> tp.JobGraph:
    """Return two tasks that send each other a half of so many GB: 1 s at 10 GB/s if there are 20."""
    return tp.JobGraph.from_edges(2, [(0, 1, gigabytes)]).with_(bandwidth_sensitive=True)


class OnGivenGpus:
    """A policy that starts each job at once, on GPUs that are given by its id."""

    name = "given"

    def __init__(self, gpus: Mapping[str, Sequence[int]]) -> None:
        self.gpus = gpus

    def plan(self, queue: Sequence[QueuedJob], cluster: Cluster, now: float = 0.0) -> Plan:
        start = [
            (one.job_id, tp.Placement(gpus=tuple(self.gpus[one.job_id]), topology=cluster.topology))
            for one in queue
        ]
        return Plan(start=tuple(start))

    def place(self, job, cluster):
        raise AssertionError

    def explain(self, job, cluster, **options):
        raise AssertionError


def ends(topology, jobs, gpus, submit, base, model, **options):
    workload = Workload(jobs, submit, base)
    given = dict(zip(workload.job_ids, gpus, strict=True))
    result = simulate(topology, workload, OnGivenGpus(given), performance=model, **options)
    return result.jobs["end"].tolist()


def run_time(model, gpus, topology=DGX1, job=None):
    job = tp.JobGraph.ring(len(gpus)).with_(bandwidth_sensitive=True) if job is None else job
    submitted = SubmittedJob(0, "a", job, 0.0, 100.0)
    return model.run_time(submitted, tp.Placement(gpus=tuple(gpus), topology=topology), RANDOM)


# ---- alone -----------------------------------------------------------------------------------------------------


def test_the_best_gpus_take_the_base_time():
    for gpus in ([0, 3], [0, 1, 2, 3], range(8)):
        assert run_time(StepTime(default_share=0.5), gpus) == 100


def test_a_share_grows_with_communication():
    # Rings of two GPUs: 40 GB/s over double NVLink, 6 GB/s over PCIe.
    assert run_time(StepTime(default_share=0.3), [0, 7]) == pytest.approx(70 + 30 * 40 / 6)
    job = tp.JobGraph.ring(2).with_(bandwidth_sensitive=True, profile="vgg16")
    assert run_time(StepTime(), [0, 7], job=job) == pytest.approx(50 + 50 * 40 / 6)
    assert run_time(StepTime(shares={"vgg16": 0.1}), [0, 7], job=job) == pytest.approx(90 + 10 * 40 / 6)


def test_a_measured_step_knows_its_computing_and_its_gigabytes():
    # 0.6 GB take 0.015 s at 40 GB/s, and 0.1 s at 6 GB/s.
    job = tp.JobGraph.ring(2).with_(profile="vgg16")
    assert run_time(StepTime({"vgg16": (0.1, 0.6)}), [0, 7], job=job) == pytest.approx(100 * 0.2 / 0.115)
    assert run_time(StepTime(default_step=(0.0, 1.0)), [0, 7], job=job) == pytest.approx(100 * 40 / 6)


def test_what_overlaps_counts_once():
    # On the best GPUs 0.1 s hide 0.015 s; over PCIe 0.1 s and 0.1 s.
    job = tp.JobGraph.ring(2)
    assert run_time(StepTime(default_step=(0.1, 0.6), overlap=1.0), [0, 7], job=job) == pytest.approx(100)
    half = StepTime(default_step=(0.1, 0.6), overlap=0.5)
    assert run_time(half, [0, 7], job=job) == pytest.approx(100 * 0.15 / (0.1 + 0.0075))


def test_jobs_without_edges_and_insensitive_ones_take_the_base_time():
    model = StepTime(default_share=0.5)
    assert run_time(model, [0, 7], job=tp.JobGraph.independent(2).with_(bandwidth_sensitive=True)) == 100
    assert run_time(model, [0, 7], job=tp.JobGraph.ring(2)) == 100
    stated = tp.JobGraph.from_collectives(2, [tp.Collective("all_reduce", (0, 1), 1.0)])
    assert run_time(model, [0, 7], job=stated) == pytest.approx(50 + 50 * 40 / 6)


def test_gpus_without_a_path_are_refused():
    apart = tp.Topology.from_links(3, [(0, 1, 20.0)], 0.0)
    with pytest.raises(ValueError, match="job 'a' has tasks that communicate, on GPUs without a path"):
        run_time(StepTime(), [0, 2], apart)
    assert run_time(StepTime(), [0, 2], apart, tp.JobGraph.ring(2)) == 100


def test_a_job_that_the_default_policy_refuses_takes_its_base_time_alone():
    over = tp.JobGraph.ring(3).with_(bandwidth_sensitive=True, gpu_model="B200")
    assert run_time(StepTime(), [0, 1, 2], job=over) == 100


# ---- computing ---------------------------------------------------------------------------------------------------


def test_operations_take_seconds_at_the_speed_of_the_gpus():
    # A V100 does 0.4 x 125e12 operations a second: 5e12 take 0.1 s. 1 GB takes 1 s / 40 over NVLink, and 1 s / 6.
    job = tp.JobGraph.ring(2).with_(tflop=5.0)
    assert run_time(StepTime(), [0, 3], job=job) == 100
    expected = 100 * (0.1 + 1 / 6) / (0.1 + 1 / 40)
    assert run_time(StepTime(), [0, 7], job=job) == pytest.approx(expected)
    assert run_time(StepTime(), [0, 7], job=job.with_(bandwidth_sensitive=True)) == pytest.approx(expected)
    twice = StepTime(efficiency=0.8)
    assert run_time(twice, [0, 7], job=job) == pytest.approx(100 * (0.05 + 1 / 6) / (0.05 + 1 / 40))
    hidden = StepTime(overlap=1.0)
    assert run_time(hidden, [0, 7], job=job) == pytest.approx(100 * (1 / 6) / 0.1)
    half = job.with_(gpu_fraction=0.5)
    assert run_time(StepTime(), [0, 7], job=half) == pytest.approx(100 * (0.2 + 1 / 6) / (0.2 + 1 / 40))


def test_a_measured_step_counts_before_operations_and_these_before_a_share():
    job = tp.JobGraph.ring(2).with_(tflop=5.0, profile="vgg16", bandwidth_sensitive=True)
    measured = run_time(StepTime({"vgg16": (0.1, 0.6)}), [0, 7], job=job)
    assert measured == run_time(StepTime({"vgg16": (0.1, 0.6)}), [0, 7], job=job.with_(tflop=None))
    assert run_time(StepTime(), [0, 7], job=job) == run_time(StepTime(default_share=0.0), [0, 7], job=job)


def test_the_share_counts_where_a_model_is_unknown():
    shared = tp.JobGraph.ring(2).with_(bandwidth_sensitive=True)
    for model in (None, "of tomorrow"):
        pair = tp.Topology.from_links(3, [(0, 1, 40.0)], 6.0, model=model)
        found = run_time(StepTime(default_share=0.3), [0, 2], pair, shared.with_(tflop=5.0))
        assert found == run_time(StepTime(default_share=0.3), [0, 2], pair, shared) > 100
        assert run_time(StepTime(), [0], pair, tp.JobGraph.independent(1).with_(tflop=5.0)) == 100


@given(
    gpus=st.permutations(range(8)),
    size=st.integers(1, 6),
    tflop=st.lists(st.floats(1e-3, 1e4), min_size=2, max_size=2).map(sorted),
    overlap=st.floats(0, 1),
)
@settings(max_examples=thorough(1000, 15))
def test_a_job_loses_at_most_what_its_communication_loses_and_less_the_more_it_computes(
    gpus, size, tflop, overlap
):
    job = tp.JobGraph.ring(size)
    sent = StepTime(default_step=(0.0, 1.0))
    most = run_time(sent, gpus[:size], job=job)
    less, more = (
        run_time(StepTime(overlap=overlap), gpus[:size], job=job.with_(tflop=amount)) for amount in tflop
    )
    assert 100 <= more <= less * (1 + 1e-9)
    assert less <= most * (1 + 1e-9)


MIXED = tp.Topology.cluster(
    [
        tp.Topology.from_links(2, [(0, 1, 100.0)], 10.0, model="A100"),
        tp.Topology.from_links(2, [], 10.0, model="H100"),
    ],
    network=5.0,
)
"""Two slower GPUs, 0 and 1, with a fast link, and two faster ones, 2 and 3, with a slow one."""


@given(tflop=st.floats(0.1, 1e4), overlap=st.floats(0, 1))
@settings(max_examples=thorough(1000, 15))
def test_the_base_time_is_that_of_the_shortest_step_on_any_gpus(tflop, overlap):
    job, seconds = tp.JobGraph.ring(2).with_(tflop=tflop), {}
    for pair in itertools.combinations(range(4), 2):
        compute = tflop / (0.4 * (989.4 if min(pair) >= 2 else 312.0))
        sent = tp.communication_time(job, pair, MIXED).seconds
        seconds[pair] = compute + sent - overlap * min(compute, sent)
    best = min(seconds.values())
    for pair, step in seconds.items():
        assert run_time(StepTime(overlap=overlap), pair, MIXED, job) == pytest.approx(100 * step / best)


def test_a_job_that_sends_nothing_is_slower_on_slower_gpus():
    one = tp.JobGraph.independent(1).with_(tflop=50.0)
    assert run_time(StepTime(), [3], MIXED, one) == 100
    assert run_time(StepTime(), [0], MIXED, one) == pytest.approx(100 * 989.4 / 312)
    assert run_time(StepTime(), [0], MIXED, one.with_(gpu_model="A100")) == 100
    assert run_time(StepTime(), [0], MIXED, one.with_(tflop=None)) == 100


def test_slices_compute_as_much_as_they_have_of_their_gpu():
    parts = [
        Gpu(i, f"GPU0/MIG{i}", "A100", memory_gb=5.0, parent="GPU0", fraction=of / 7)
        for i, of in enumerate((1, 2))
    ]
    sliced = replace(tp.Topology.from_links(2, [], 12.0), gpus=tuple(parts))
    one = tp.JobGraph.independent(1).with_(tflop=50.0)
    assert run_time(StepTime(), [0], sliced, one) == pytest.approx(200)
    assert run_time(StepTime(), [1], sliced, one) == 100


def test_training_takes_each_machines_own_time():
    traffic = tp.Traffic.of("llama3-8b", micro_batches=4)
    job = tp.JobGraph.parallel(tensor=4, data=2, traffic=traffic)
    workload = Workload([job], [0.0], [100.0])
    h100, mi300x = tp.machines.get("dgx-h100"), tp.machines.get("mi300x")
    step = {}
    for machine, peak in ((h100, 989.4), (mi300x, 1307.4)):
        run = simulate(machine, workload, tp.policies.get("least-time"), performance=StepTime())
        assert run.jobs["run_time"].tolist() == [100.0]  # each of its own base time
        gpus = run.records[0].placement.gpus
        sent = tp.communication_time(job, gpus, machine).seconds
        step[peak] = job.tflop / (0.4 * peak) + sent
    other = simulate(mi300x, workload, tp.policies.get("least-time"), performance=StepTime(measured_on=h100))
    assert other.jobs["run_time"].tolist() == pytest.approx([100 * step[1307.4] / step[989.4]])
    # The MI300X compute a quarter less long, but its links carry less.
    assert step[1307.4] < step[989.4] < step[1307.4] * 1307.4 / 989.4


def test_seconds_of_communication_beside_others_are_those_of_the_step():
    # As `sender` with a share of one half: 50e12 operations take 1 s on a V100.
    jobs = [tp.JobGraph.from_edges(2, [(0, 1, 20.0)]).with_(tflop=50.0)] * 2
    found = ends(two_leaves("V100"), jobs, [(0, 2), (1, 3)], [0.0, 0.0], [30.0, 60.0], StepTime())
    assert found == pytest.approx([45.0, 75.0])


# ---- alone, in general -------------------------------------------------------------------------------------------


@given(
    gpus=st.lists(st.permutations(range(16)), min_size=2, max_size=2),
    size=st.integers(2, 6),
    share=st.floats(0, 1),
    overlap=st.floats(0, 1),
)
@settings(max_examples=40)
def test_a_faster_placement_never_ends_later(gpus, size, share, overlap):
    topology = tp.Topology.cluster(DGX1, 2)
    job = tp.JobGraph.ring(size).with_(bandwidth_sensitive=True)
    model = StepTime(default_share=share, overlap=overlap)
    seconds = [tp.communication_time(job, one[:size], topology).seconds for one in gpus]
    times = [run_time(model, one[:size], topology, job) for one in gpus]
    assert min(times) >= 100
    faster, slower = np.argsort(seconds)
    assert times[faster] <= times[slower] * (1 + 1e-9)


# ---- beside others ---------------------------------------------------------------------------------------------


def test_two_jobs_share_an_uplink_until_one_ends():
    # Alone, each sends for 1 s in a step of 2 s; beside the other for 2 s in a step of 3 s.
    jobs, gpus = [sender(), sender()], [(0, 2), (1, 3)]
    found = ends(TWO_LEAVES, jobs, gpus, [0.0, 0.0], [30.0, 60.0], StepTime(default_share=0.5))
    # The first ends after 30 * 1.5 s; then the second has 30 s left.
    assert found == pytest.approx([45.0, 75.0])


def test_a_job_slows_those_that_run_when_it_starts():
    jobs, gpus = [sender(), sender()], [(0, 2), (1, 3)]
    found = ends(TWO_LEAVES, jobs, gpus, [0.0, 20.0], [30.0, 60.0], StepTime(default_share=0.5))
    # 10 s are left of the first at 20 s, which take 15 s; the second has done 10 s by then.
    assert found == pytest.approx([35.0, 85.0])


def test_a_small_flow_does_not_wait_for_the_rest_of_a_big_one():
    jobs, gpus = [sender(20.0), sender(5.0)], [(0, 2), (1, 3)]
    found = ends(TWO_LEAVES, jobs, gpus, [0.0, 0.0], [40.0, 400.0], StepTime(default_share=0.5))
    # The big job's 10 GB wait for 2.5 GB more: 1.25 s of 1 s. Of those, 2.5 GB count beside the small job: 2 of 1.
    big = 40 * (0.5 + 0.5 * 1.25)
    assert found == pytest.approx([big, big + (400 - big / 1.5)])


def test_jobs_that_share_no_port_do_not_meet():
    jobs, gpus = [sender(), sender()], [(0, 1), (2, 3)]
    found = ends(TWO_LEAVES, jobs, gpus, [0.0, 0.0], [30.0, 60.0], StepTime(default_share=0.5))
    assert found == [30.0, 60.0]


def test_traffic_of_insensitive_jobs_counts_for_others():
    jobs, gpus = [sender().with_(bandwidth_sensitive=False), sender()], [(0, 2), (1, 3)]
    found = ends(TWO_LEAVES, jobs, gpus, [0.0, 0.0], [30.0, 60.0], StepTime(default_share=0.5))
    assert found == pytest.approx([30.0, 70.0])  # 20 of 60 s are done after 30 s


TOPOLOGIES = {
    "PCIe": tp.Topology.cluster(tp.machines.get("l40s-8"), 2),
    "adapters that two GPUs share": tp.Topology.cluster(tp.machines.get("dgx-a100"), 2),
    "uplinks": tp.Topology.cluster(
        DGX1,
        fabric=tp.Fabric.regular(4, {"leaf": 2, "spine": 4}).with_level("spine", oversubscription=4.0),
    ),
}
GRAPHS = [
    tp.JobGraph.ring(3).with_(bandwidth_sensitive=True),
    tp.JobGraph.clique(4).with_(bandwidth_sensitive=True),
    tp.JobGraph.chain(2).with_(bandwidth_sensitive=True),
    tp.JobGraph.parallel(tensor=2, data=2),
    tp.JobGraph.ring(5),
    tp.JobGraph.independent(1),
]


def replayed(result, share):
    """Return the ends of a simulation, step by step: all speeds from `communication_time` after each start and end."""
    records = {record.job_id: record for record in result.records}
    left = {job_id: record.submitted.base_time for job_id, record in records.items()}
    starts = sorted((record.start, job_id) for job_id, record in records.items())
    cluster, now, found = Cluster(result.topology), 0.0, {}
    best = tp.policies.get("least-time", slack=0.0)

    def slowdown(job_id):
        job, gpus = records[job_id].submitted.job, records[job_id].placement.gpus
        if not job.edges or not (job.bandwidth_sensitive or job.stated_collectives):
            return 1.0
        beside = tp.communication_time(job, gpus, result.topology, cluster=cluster).seconds
        alone = tp.communication_time(job, gpus, result.topology).seconds
        least = min(alone, sum(best.place(job, Cluster(result.topology)).times.values()))
        return 1 - share + share * beside / least

    while starts or cluster.jobs:
        speeds = {job_id: slowdown(job_id) for job_id in cluster.jobs}
        next_end, ending = min(
            ((now + left[job_id] * speeds[job_id], job_id) for job_id in speeds), default=(np.inf, "")
        )
        then = min(next_end, starts[0][0] if starts else np.inf)
        for job_id, speed in speeds.items():
            left[job_id] -= (then - now) / speed
        now = then
        if starts and starts[0][0] <= next_end * (1 - 1e-12):
            _, job_id = starts.pop(0)
            record = records[job_id]
            cluster.allocate(job_id, record.placement, record.submitted.job)
        else:
            found[ending] = now
            cluster.release(ending)
    return [found[job_id] for job_id in records]


@pytest.mark.parametrize("name", TOPOLOGIES)
@given(seed=st.integers(0, 1 << 30))
@settings(max_examples=thorough(1000, 2))
def test_speeds_are_those_of_all_times_anew(name, seed):
    random = np.random.default_rng(seed)
    topology, num_jobs = TOPOLOGIES[name], 14
    jobs = [GRAPHS[i] for i in random.integers(len(GRAPHS), size=num_jobs)]
    workload = Workload(jobs, random.uniform(0, 40, num_jobs), random.uniform(20, 60, num_jobs))
    runs = [
        simulate(topology, workload, tp.policies.get("random-fit"), performance=StepTime(default_share=0.4))
        for _ in range(2)
    ]
    assert runs[0] == runs[1]
    assert runs[0].jobs["end"].tolist() == pytest.approx(replayed(runs[0], 0.4), rel=1e-9)


# ---- arguments -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"steps": {"a": (1.0,)}}, r"steps\['a'\] = \(1.0,\) is not \(compute_s, gigabytes\)"),
        ({"steps": {"a": (0, 0)}}, r"steps\['a'\] = \(0, 0\): a step takes time"),
        ({"default_step": (-1, 1)}, r"default_step\[0\] = -1"),
        ({"shares": {"a": 1.5}}, r"shares\['a'\] = 1.5"),
        ({"default_share": float("nan")}, "default_share = nan"),
        ({"overlap": 2}, "overlap = 2"),
        ({"efficiency": 0}, "efficiency = 0"),
        ({"efficiency": 40}, "efficiency = 40"),
        ({"steps": 3}, "steps"),
    ],
)
def test_wrong_arguments_are_named(options, message):
    with pytest.raises(ValueError, match=message):
        StepTime(**options)


def test_no_model_is_around_it():
    with pytest.raises(ValueError, match="base is a PortModel"):
        RunTimeHistograms({}, StepTime())


def test_moved_jobs_take_their_flows_along():
    from topoplace.moving import MakingRoom

    jobs = [sender(), sender(), sender()]
    workload = Workload(jobs, [0.0, 0.0, 1.0], [30.0, 60.0, 20.0])
    run = simulate(
        TWO_LEAVES,
        workload,
        MakingRoom("least-time"),
        performance=StepTime(default_share=0.5),
        move_times=MoveTimes(1.0),
    )
    assert run.jobs["end"].tolist() == pytest.approx([30.0, 60.0, 50.0])
