"""`least-time` leaves narrow uplinks to others if that makes a step of a gang hardly longer."""

from __future__ import annotations

import hypothesis.strategies as st
import pytest
from hypothesis import given

import topoplace as tp
from topoplace.policies import LeastTime

TRAINING = tp.JobGraph.parallel(
    tensor=8, pipeline=2, data=4, traffic=tp.Traffic.of("llama3-70b", micro_batches=4)
)


def leaves(oversubscription: float, machines: int = 32, each: int = 4) -> tp.Topology:
    """Return machines of eight H100 under leaves of `each`."""
    fabric = tp.Fabric.regular(machines, {"leaf": each, "spine": machines}).with_level("leaf", gb_per_s=50.0)
    fabric = fabric.with_level("spine", gb_per_s=50.0, oversubscription=oversubscription)
    return tp.Topology.cluster(tp.machines.get("dgx-h100"), fabric=fabric)


def num_leaves(placement: tp.Placement | None, each: int = 4) -> int:
    assert placement is not None
    machines = placement.topology.machine_of[list(placement.gpus)]
    return len({int(machine) // each for machine in machines})


def step(placement: tp.Placement | None, job: tp.JobGraph) -> float:
    """Return the seconds of a step at the usual share of an H100's peak, 989.5 TFLOP/s."""
    assert placement is not None
    assert placement.time is not None
    return placement.time + (job.tflop or 0.0) / (0.4 * 989.5)


def test_a_gang_is_in_few_leaves_if_its_step_is_hardly_longer() -> None:
    """One machine in each leaf has an uplink to itself, until others come."""
    cluster = tp.Cluster(leaves(4.0))
    fastest = LeastTime(compact=0.0).place(TRAINING, cluster)
    compact = LeastTime().place(TRAINING, cluster)
    assert num_leaves(compact) == 2 < num_leaves(fastest)
    assert step(compact, TRAINING) <= 1.02 * step(fastest, TRAINING)
    assert compact is not None
    assert fastest is not None
    assert compact.bound == fastest.bound <= fastest.time <= compact.time


def test_nothing_is_given_up_where_uplinks_carry_all() -> None:
    cluster = tp.Cluster(leaves(1.0))
    assert LeastTime().place(TRAINING, cluster) == LeastTime(compact=0.0).place(TRAINING, cluster)


@given(
    st.lists(st.integers(0, 31), unique=True, max_size=16),
    st.sampled_from([16, 24, 32, 64]),
    st.sampled_from([2.0, 4.0]),
    st.sampled_from([0.0, 0.02, 0.3]),
)
def test_a_gang_takes_no_longer_than_it_may(
    busy: list[int], size: int, oversubscription: float, compact: float
) -> None:
    topology = leaves(oversubscription)
    cluster = tp.Cluster(topology)
    for machine in busy:
        cluster.allocate(f"job{machine}", tuple(range(8 * machine, 8 * machine + 4)))
    job = tp.JobGraph.allreduce(size)
    one, other = (LeastTime(compact=share).place(job, cluster) for share in (0.0, compact))
    assert one is not None
    assert other is not None
    assert num_leaves(other) <= num_leaves(one)
    assert other.time <= one.time * (1 + compact) * (1 + 1e-9)
    assert one.bound == other.bound


@pytest.mark.parametrize("value", [-0.1, 1.5, float("nan"), "much"])
def test_a_share_is_refused_that_is_none(value: object) -> None:
    with pytest.raises(ValueError, match="compact"):
        LeastTime(compact=value)  # type: ignore[arg-type]


def busy_leaves(jobs_on: dict[int, int]) -> tp.Cluster:
    """Return twelve machines under leaves of four and 2 : 1, of which jobs hold so many GPUs of each."""
    cluster = tp.Cluster(leaves(2.0, machines=12))
    for machine, count in jobs_on.items():
        cluster.allocate(f"on {machine}", tuple(range(8 * machine, 8 * machine + count)))
    return cluster


BUSY = {machine: 4 if machine < 4 else 8 for machine in range(12) if machine not in (4, 8)}


@pytest.mark.parametrize(
    "job",
    [
        tp.JobGraph.parallel(tensor=8, data=2).grouped(8, prefer="machine"),
        tp.JobGraph.allreduce(16).with_(tflop=1e3).grouped(8, prefer="machine"),
        tp.JobGraph.allreduce(16).with_(tflop=1e4, max_machines=2),
    ],
    ids=["preferred groups", "with arithmetic", "fewest machines"],
)
def test_what_a_job_prefers_or_limits_comes_first(job: tp.JobGraph) -> None:
    """Leaf 0 has room for all, in halves of four machines; two whole machines are in two leaves."""
    cluster = busy_leaves(BUSY)
    one, other = (LeastTime(compact=share).place(job, cluster) for share in (0.02, 0.0))
    assert one is not None
    assert other is not None
    assert {gpu // 8 for gpu in one.gpus} == {4, 8}
    assert (one.time, one.bound, one.optimal) == (other.time, other.bound, other.optimal)
