"""Simulations that begin on a cluster with running jobs: small schedules by hand, and what holds for any of them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import topoplace as tp
from topoplace.engine.plan import Plan
from topoplace_lab.simulate import Discipline, FixedTime, Result, StepTime, Workload
from topoplace_lab.simulate.processes import Runner

FOUR = tp.Topology.from_links(4, [])
TWO_MACHINES = tp.Topology.cluster(tp.machines.get("dgx1-v100"), names=["n1", "n2"])
TWO_LEAVES = tp.Topology.cluster(
    tp.Topology.from_links(1, [], 12.0),
    fabric=tp.Fabric.regular(4, {"leaf": 2, "spine": 4}).with_level("spine", oversubscription=2.0),
    network=10.0,
)
"""Machines of one GPU with an adapter of 10 GB/s; the two of a leaf share an uplink of 10 GB/s."""
DISCIPLINES = (None, *(Discipline(backfill=one) for one in ("none", "easy", "conservative")))


def cluster_with(topology: tp.Topology, held: Mapping[str, Sequence[int]]) -> tp.Cluster:
    cluster = tp.Cluster(topology)
    for job_id, gpus in held.items():
        cluster.record(job_id, gpus)
    return cluster


def queue(*jobs: tuple[int, float], **columns: Any) -> Workload:
    sizes, seconds = [size for size, _ in jobs], [one for _, one in jobs]
    return Workload([tp.JobGraph.independent(size) for size in sizes], [0.0] * len(jobs), seconds, **columns)


def spans(result: Result) -> list[tuple[float, float, tuple[int, ...]]]:
    return result.jobs[["start", "end", "gpus"]].tolist()  # type: ignore[no-any-return]


@pytest.mark.parametrize("discipline", DISCIPLINES)
def test_jobs_wait_for_those_that_run_before(discipline: Discipline | None) -> None:
    cluster = cluster_with(FOUR, {"a": (0, 1), "b": (2,)})
    found = tp.simulate(
        cluster,
        queue((3, 10.0), (4, 5.0)),
        tp.policies.get("baseline"),
        performance=FixedTime(),
        seconds_left={"a": 7.0, "b": 20.0},
        discipline=discipline,
    )
    # GPU 3 is free now, 0 and 1 at 7, 2 at 20: three GPUs from 7 to 17, all four from 20 on.
    assert spans(found) == [(7.0, 17.0, (0, 1, 3)), (20.0, 25.0, (0, 1, 2, 3))]
    assert cluster.allocations == {"a": (0, 1), "b": (2,)}


def test_a_short_job_passes_one_that_waits_for_a_running_job() -> None:
    cluster = cluster_with(FOUR, {"a": (0, 1)})
    found = tp.simulate(
        cluster,
        queue((4, 10.0), (2, 7.0), (1, 8.0)),
        tp.policies.get("baseline"),
        performance=FixedTime(),
        seconds_left={"a": 7.0},
        discipline=Discipline(),
    )
    # The second ends as the first can start, at 7; the third would delay it.
    assert spans(found) == [(7.0, 17.0, (0, 1, 2, 3)), (0.0, 7.0, (2, 3)), (17.0, 25.0, (0,))]


def test_figures_are_about_the_jobs_that_were_placed() -> None:
    cluster = cluster_with(FOUR, {"a": (0, 1, 2)})
    found = tp.simulate(
        cluster,
        queue((1, 10.0)),
        tp.policies.get("baseline"),
        seconds_left={"a": 100.0},
        performance=FixedTime(),
    ).summary()
    assert (found["makespan"], found["mean_turnaround"], found["mean_wait"]) == (10.0, 10.0, 0.0)
    assert found["utilization"] == 0.25


@pytest.mark.parametrize("discipline", DISCIPLINES)
@pytest.mark.parametrize("performance", [FixedTime(), StepTime()])
def test_a_job_that_never_fits_is_rejected_and_stops_no_other(
    discipline: Discipline | None, performance: FixedTime | StepTime
) -> None:
    cluster = cluster_with(FOUR, {"a": (0,), "b": (1,)})
    cluster.drain(3)
    found = tp.simulate(
        cluster,
        queue((3, 10.0), (2, 10.0), (1, 5.0)),
        tp.policies.get("baseline"),
        performance=performance,
        seconds_left={"b": 30.0},  # a never ends
        discipline=discipline,
    )
    assert math.isnan(found.records[0].start)
    assert "3 GPUs" in found.records[0].rejected
    second, third = found.records[1:]
    assert second.start == 30.0
    assert second.placement is not None
    assert second.placement.gpus == (1, 2)
    assert third.start == (0.0 if discipline and discipline.backfill != "none" else 40.0)


@pytest.mark.parametrize(("left", "end"), [(30.0, 70.0), (math.inf, 90.0)])
@pytest.mark.parametrize("discipline", DISCIPLINES)
def test_running_jobs_are_neighbours_on_ports_and_keep_their_ends(
    left: float, end: float, discipline: Discipline | None
) -> None:
    # On its uplink alone, the job sends for 1 s in a step of 2 s; beside the other for 2 s in a step of 3 s.
    sender = tp.JobGraph.from_edges(2, [(0, 1, 20.0)]).with_(bandwidth_sensitive=True)
    cluster = tp.Cluster(TWO_LEAVES)
    cluster.record("a", (0, 2), sender)
    found = tp.simulate(
        cluster,
        Workload([sender], [0.0], [60.0]),
        tp.policies.get("baseline"),
        performance=StepTime(default_share=0.5),
        seconds_left={"a": left},
        discipline=discipline,
    )
    # 20 of 60 s are done after 30 s.
    assert spans(found) == [(0.0, pytest.approx(end), (1, 3))]


def test_jobs_get_no_machine_that_is_excluded() -> None:
    jobs = queue((8, 10.0), (8, 10.0), (1, 10.0), excluded=[["n1"], ["n1"], ["n1", "n2"]])
    for discipline in DISCIPLINES[1:]:
        found = tp.simulate(
            TWO_MACHINES, jobs, tp.policies.get("baseline"), performance=FixedTime(), discipline=discipline
        )
        assert [one.start for one in found.records[:2]] == [0.0, 10.0]
        assert {gpu for one in found.records[:2] for gpu in (one.placement or one).gpus} == set(range(8, 16))  # type: ignore[union-attr]
        assert found.records[2].rejected == "it may use none of the 2 machines"
    with pytest.raises(ValueError, match=r"excluded\[0\] needs a discipline"):
        tp.simulate(TWO_MACHINES, jobs, tp.policies.get("baseline"))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"seconds_left": {"c": 1.0}}, "seconds_left['c']: no job of this id runs"),
        ({"seconds_left": {"a": 0.0}}, "seconds_left['a'] = 0.0 is not above 0"),
        ({"seconds_left": {"a": math.nan}}, "seconds_left['a'] = nan"),
        ({"seconds_left": {"a": "1"}}, "seconds_left['a'] = '1'"),
        ({"seconds_left": [("a", 1.0)]}, "seconds_left = "),
        ({"hosts": tp.HostResources(1, 1)}, "hosts: a cluster has its own"),
    ],
)
def test_wrong_arguments_are_named(arguments: dict[str, Any], message: str) -> None:
    cluster = cluster_with(FOUR, {"a": (0,)})
    with pytest.raises(ValueError) as caught:  # noqa: PT011
        tp.simulate(cluster, queue((1, 1.0)), tp.policies.get("baseline"), **arguments)
    assert str(caught.value).startswith(message)


def test_a_job_cannot_run_and_wait_and_no_job_runs_on_a_topology() -> None:
    cluster = cluster_with(FOUR, {"a": (0,)})
    with pytest.raises(ValueError, match=r"job_ids\[1\] = 'a' runs already"):
        tp.simulate(cluster, queue((1, 1.0), (1, 1.0), job_ids=["b", "a"]), tp.policies.get("baseline"))
    with pytest.raises(ValueError, match="on an idle topology no job runs"):
        tp.simulate(FOUR, queue((1, 1.0)), tp.policies.get("baseline"), seconds_left={})


def test_a_plan_that_moves_a_running_job_is_refused() -> None:
    class Mover(type(tp.policies.get("baseline"))):  # type: ignore[misc]
        def plan(self, queue: Any, cluster: tp.Cluster, now: float) -> Plan:
            moved = (("a", tp.Placement((1,), topology=cluster.topology)),)
            return Plan(move=moved if cluster.gpus_of("a") == (0,) else ())

    with pytest.raises(ValueError, match="'a' in its plan runs since before time 0, and stays"):
        tp.simulate(cluster_with(FOUR, {"a": (0,)}), queue((1, 1.0)), Mover())


JOBS = st.lists(st.tuples(st.integers(1, 4), st.integers(1, 50).map(float)), min_size=1, max_size=6)
POLICIES = st.sampled_from(["baseline", "best-fit", "least-time", "topo-aware"])


@given(JOBS, POLICIES, st.sampled_from(DISCIPLINES), st.booleans())
def test_an_idle_cluster_is_like_its_topology(
    jobs: list[tuple[int, float]], name: str, discipline: Discipline | None, sensitive: bool
) -> None:
    rings = [tp.JobGraph.ring(size).with_(bandwidth_sensitive=sensitive) for size, _ in jobs]
    workload = Workload(rings, [0.0] * len(jobs), [seconds for _, seconds in jobs])
    found, expected = (
        tp.simulate(where, workload, tp.policies.get(name), discipline=discipline)
        for where in (tp.Cluster(FOUR), FOUR)
    )
    assert found == expected


@given(
    st.lists(st.tuples(st.integers(1, 5), st.integers(1, 60).map(float) | st.just(math.inf)), max_size=5),
    st.lists(st.tuples(st.integers(1, 12), st.integers(1, 50).map(float)), min_size=1, max_size=6),
    st.sets(st.integers(0, 15), max_size=4),
    POLICIES,
    st.sampled_from(DISCIPLINES),
)
def test_no_gpu_is_held_twice_and_jobs_end_in_time(
    running: list[tuple[int, float]],
    jobs: list[tuple[int, float]],
    drained: set[int],
    name: str,
    discipline: Discipline | None,
) -> None:
    cluster = tp.Cluster(TWO_MACHINES)
    for i, (size, _) in enumerate(running):
        if size <= cluster.num_free:
            cluster.record(f"r{i}", cluster.free_gpus()[-size:])
    for gpu in drained:
        cluster.drain(gpu)
    ends = {f"r{i}": left for i, (_, left) in enumerate(running) if cluster.runs(f"r{i}")}
    rings = [tp.JobGraph.ring(size).with_(bandwidth_sensitive=True) for size, _ in jobs]
    workload = Workload(rings, [0.0] * len(jobs), [seconds for _, seconds in jobs])
    found = tp.simulate(cluster, workload, tp.policies.get(name), discipline=discipline, seconds_left=ends)
    held = [(0.0, ends[job_id], gpus) for job_id, gpus in cluster.allocations.items()]
    held += [span for span in spans(found) if span[2]]
    for i, (start, end, gpus) in enumerate(held):
        for other_start, other_end, others in held[:i]:
            assert end <= other_start or other_end <= start or set(gpus).isdisjoint(others)
    endless = sum(len(gpus) for job_id, gpus in cluster.allocations.items() if ends[job_id] == math.inf)
    for record, (size, _) in zip(found.records, jobs, strict=True):
        assert record.placement is None or drained.isdisjoint(record.placement.gpus)
        assert bool(record.placement) != bool(record.rejected)
        if record.rejected:
            assert size > 8 or size + endless + len(drained) > 8


def _simulated(cluster: tp.Cluster, workload: Workload, name: str) -> Result:
    return tp.simulate(
        cluster, workload, tp.policies.get(name), seconds_left={"a": 7.0}, discipline=Discipline()
    )


def test_other_processes_get_the_cluster() -> None:
    cluster = cluster_with(FOUR, {"a": (0, 1)})
    calls = [(cluster, queue((4, 10.0), (2, 7.0)), name) for name in ("baseline", "best-fit")]
    found = Runner(processes=2).results(_simulated, calls)
    assert found == [_simulated(*call) for call in calls]
    assert np.array_equal(found[0].jobs["start"], [7.0, 0.0])
