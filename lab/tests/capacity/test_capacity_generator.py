"""Generated jobs are those of the paper's section V-A where it tells, and do not depend on the machine."""

from __future__ import annotations

import numpy as np
import pytest

from topoplace_lab.capacity import TABLE_II, Catalogue, VMType, generate_jobs
from topoplace_lab.capacity.problem.generate import GPU_SPEEDS, NETWORKS, GpuSpeed, relative_times


@pytest.fixture(scope="module")
def jobs():
    return generate_jobs(1000, 20, seed=4)


def test_the_same_seed_gives_the_same_jobs(jobs):
    again, other = generate_jobs(1000, 20, seed=4), generate_jobs(1000, 20, seed=5)
    assert all((a.hours == b.hours).all() and a.due == b.due for a, b in zip(jobs, again, strict=True))
    assert [a.due for a in jobs] != [b.due for b in other]
    first = generate_jobs(3, 20, seed=4)
    assert [job.job_id for job in first] == [job.job_id for job in jobs[:3]], "a longer list begins alike"


def test_due_dates_weights_and_arrivals_are_the_papers(jobs):
    for job in jobs:
        finite = job.hours[np.isfinite(job.hours)]
        assert finite.min() <= job.due - job.submit <= 2 * finite.max()
        assert 0.36 <= job.weight <= 1.08
    gaps = np.diff([job.submit for job in jobs]) * 3600
    assert jobs[0].submit == 0.0
    assert gaps.mean() == pytest.approx(45_000 / 20, rel=0.02)
    assert gaps.std() == pytest.approx((45_000 / 20) ** 0.5, rel=0.1), "Poisson: the variance is the mean"


def test_jobs_take_hours_or_days_and_longer_than_to_the_next_arrival(jobs):
    fastest = [job.hours.min() for job in jobs]
    assert min(fastest) > 45_000 / 3600
    assert max(fastest) < 10 * 24


def test_more_gpus_help_by_less_than_there_are_more():
    for network in NETWORKS:
        table = relative_times(network, TABLE_II)
        for row, vm_type in enumerate(TABLE_II):
            times = table[row, : vm_type.num_gpus]
            assert np.isinf(table[row, vm_type.num_gpus :]).all()
            gpus = np.arange(1, len(times) + 1)
            assert (np.diff(times) < 0).all()
            assert (np.diff(times * gpus) > 0).all()


def test_networks_depend_on_what_the_paper_says():
    for network in NETWORKS:
        assert network.compute + network.memory + network.disk == pytest.approx(1.0)
        assert network.relative_time(GPU_SPEEDS["GTX 1080Ti"], 1) == pytest.approx(1.0)
    by_name = {network.name: network for network in NETWORKS}
    fast_chip, fast_memory = GpuSpeed(22.68, 484.0), GpuSpeed(11.34, 968.0)
    gains = {
        name: n.relative_time(fast_memory, 1) / n.relative_time(fast_chip, 1) for name, n in by_name.items()
    }
    assert gains["vgg"] > 1.0 == gains["resnet"] > max(gains["alexnet"], gains["deepspeech"])


def test_a_gpu_without_speed_is_refused():
    with pytest.raises(ValueError, match="tflops = 0 is not above 0"):
        GpuSpeed(0, 900.0)


def test_other_catalogues_need_the_speed_of_their_gpus():
    catalogue = Catalogue([VMType("own", "V100", 4, 3.0)])
    with pytest.raises(ValueError, match="VM type 'own': gpu_speeds has no V100"):
        generate_jobs(1, 1, 0, catalogue)
    speeds = {"V100": GpuSpeed(15.7, 900.0)}
    (job,) = generate_jobs(1, 1, 0, catalogue, gpu_speeds=speeds)
    assert job.hours.shape == (1, 4)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"num_jobs": -1}, "num_jobs = -1 is not in"),
        ({"num_nodes": 0}, "num_nodes = 0 is not in"),
        ({"seed": 1.5}, "seed = 1.5 is not an integer"),
        ({"tables": []}, "tables is empty"),
        ({"tables": 3}, "tables = 3 is not a sequence"),
        ({"tables": [[[1.0]], [[np.inf]]]}, r"tables\[1\]: it can run on no type"),
        ({"tables": [np.zeros((1, 1))]}, r"tables\[0\]\[0, 0\] = 0 is not a time above 0"),
        ({"mean_arrival_seconds": 0.0}, "mean_arrival_seconds = 0.0 is not above 0"),
        ({"catalogue": [VMType("own", "K80", 1, 1.0)]}, r"catalogue = .* is not a Catalogue"),
        ({"gpu_speeds": dict.fromkeys(GPU_SPEEDS, 5.0)}, r"gpu_speeds\['K80'\] = 5.0 is not a GpuSpeed"),
    ],
)
def test_arguments_out_of_range_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        generate_jobs(**{"num_jobs": 1, "num_nodes": 1} | arguments)
