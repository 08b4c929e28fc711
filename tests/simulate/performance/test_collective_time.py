"""Run times from the bandwidth of collective operations."""

from __future__ import annotations

import numpy as np
import pytest

import topoplace as tp
from topoplace.experiments.simulate import CollectiveTime, SubmittedJob, Workload

DGX1 = tp.machines.get("dgx1-v100")
RANDOM = np.random.default_rng(0)


def run_time(model, gpus, topology=DGX1, profile="vgg16"):
    job = tp.JobGraph.ring(len(gpus)).with_(profile=profile)
    submitted = SubmittedJob(0, "a", job, 0.0, 100.0)
    return model.run_time(submitted, tp.Placement(gpus=tuple(gpus), topology=topology), RANDOM)


def test_the_best_gpus_take_the_base_time():
    model = CollectiveTime({"vgg16": (0.1, 0.5)})
    for gpus in ([0, 3], [0, 1, 2, 3], range(8)):
        assert run_time(model, gpus) == pytest.approx(100)


def test_slow_links_stretch_the_exchange():
    model = CollectiveTime({"vgg16": (0.1, 0.6)})
    # Two GPUs send 0.6 GB each step: at 40 GB/s 0.015 s, at 6 GB/s 0.1 s.
    assert run_time(model, [0, 7]) == pytest.approx(100 * 0.2 / 0.115)
    assert run_time(model, [7, 0]) == run_time(model, [0, 7])
    # Four send 0.9 GB: at 80 GB/s 0.01125 s, at 20 GB/s 0.045 s.
    assert run_time(model, [0, 1, 2, 6]) == pytest.approx(100 * 0.145 / 0.11125)


def test_other_jobs_take_the_base_time():
    model = CollectiveTime({"vgg16": (0.1, 0.6)})
    assert run_time(model, [0, 7], profile="alexnet") == 100
    assert run_time(model, [0]) == 100
    assert run_time(CollectiveTime({}, default_step=(0.0, 1.0)), [0, 7]) == pytest.approx(100 * 40 / 6)


def test_over_several_machines_the_network_counts():
    cluster = tp.Topology.cluster(DGX1, count=2)
    model = CollectiveTime({}, default_step=(0.0, 1.0))
    assert run_time(model, [0, 8], cluster) == pytest.approx(100 * 40 / 12.5)
    assert run_time(model, [8, 11], cluster) == pytest.approx(100)


def test_gpus_without_a_path_are_refused():
    apart = tp.Topology.from_links(3, [(0, 1, 20.0)], 0.0)
    with pytest.raises(ValueError, match=r"job 'a': there is no path between all of the GPUs \(0, 2\)"):
        run_time(CollectiveTime({}, default_step=(1, 1)), [0, 2], apart)


def test_links_slower_than_every_channel():
    slow = tp.Topology.from_links(2, [(0, 1, 2.0)], 0.0)
    model = CollectiveTime({}, default_step=(0, 1))
    assert run_time(model, [0, 1], slow) == pytest.approx(100)
    none = tp.Topology.from_links(2, [(0, 1, 1e-6)], 0.0)
    with pytest.raises(ValueError, match=r"job 'a': no ring passes the links among the GPUs \(0, 1\)"):
        run_time(model, [0, 1], none)


def test_a_simulation():
    jobs = [tp.JobGraph.ring(4).with_(profile="vgg16", bandwidth_sensitive=True)] * 2
    workload = Workload(jobs, [0.0, 0.0], [100.0, 100.0])
    model = CollectiveTime({"vgg16": (0.0, 1.0)})
    result = tp.simulate(DGX1, workload, tp.policies.get("baseline"), performance=model)
    assert (result.jobs["end"] - result.jobs["start"]).tolist() == pytest.approx([100, 100])


@pytest.mark.parametrize(
    ("steps", "message"),
    [
        ({"a": (1.0,)}, r"steps\['a'\] = \(1\.0,\) is not \(compute_s, gigabytes\)"),
        ({"a": (-1.0, 1.0)}, r"steps\['a'\]\[0\] = -1\.0 is not at least 0"),
        ({"a": (1.0, "x")}, r"steps\['a'\]\[1\] = 'x' is not a number"),
        ({"a": (0, 0)}, r"steps\['a'\] = \(0, 0\): a step takes time"),
    ],
)
def test_wrong_steps_are_named(steps, message):
    with pytest.raises(ValueError, match=message):
        CollectiveTime(steps)
