"""Plans that move and pre-empt running jobs: work asked is work done, whatever happens to a job on its way."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import topoplace as tp
from topoplace.engine.plan import Explanation, Plan, QueuedJob
from topoplace.moving import MakingRoom
from topoplace_lab.simulate import FixedTime, MoveTimes, Result, Workload, simulate
from topoplace_lab.simulate.performance.models import Neighbours

ONE = tp.JobGraph.independent(1)
FOUR = tp.Topology.from_links(4, [(0, 1, 50.0), (2, 3, 50.0)], 12.0)
Decide = Callable[[Sequence[QueuedJob], tp.Cluster, float], Plan]


class Scripted:
    """A policy that plans as a function says."""

    name = "scripted"

    def __init__(self, decide: Decide) -> None:
        self.plan = decide

    def place(self, job: tp.JobGraph, cluster: tp.Cluster) -> tp.Placement | None:
        return None

    def explain(self, job: tp.JobGraph, cluster: tp.Cluster, top: int = 5) -> Explanation:
        return Explanation(self.name, (), tp.Refusal("scripted"))


class SlowGpus(FixedTime):
    """A job takes the base time on GPU 0, twice as long on GPU 1, and so on; next to another job half as long again."""

    def run_time(self, job: Any, placement: tp.Placement, random: np.random.Generator) -> float:
        return float(job.base_time * (1 + placement.gpus[0]))


class Crowded(SlowGpus):
    def slowdown(self, job: object, placement: tp.Placement, neighbours: Neighbours) -> float:
        return 1.5 if neighbours else 1.0


def at(gpu: int, job: tp.JobGraph = ONE) -> tp.Placement:
    return tp.Placement((gpu,), topology=FOUR, job=job)


def run(script: dict[float, Plan], workload: Workload, **options: Any) -> Result:
    """Simulate under the plans that `script` has for points in time; jobs without a plan wait."""
    return simulate(FOUR, workload, Scripted(lambda queue, cluster, now: script.get(now, Plan())), **options)


def jobs(*submit_and_base: tuple[float, float]) -> Workload:
    submit, base = zip(*submit_and_base, strict=True)
    return Workload([ONE] * len(submit), submit, base)


def times(result: Result) -> list[tuple[float, float, float, float]]:
    return [
        tuple(map(float, (row["start"], row["end"], row["wait"], row["run_time"]))) for row in result.jobs
    ]  # type: ignore[misc]


def test_a_moved_job_goes_on_at_the_speed_of_its_new_gpus() -> None:
    workload = jobs((0, 100), (40, 10))
    script = {
        0.0: Plan(start=((workload.job_ids[0], at(0)),)),
        40.0: Plan(move=((workload.job_ids[0], at(1)),), start=((workload.job_ids[1], at(0)),)),
    }
    result = run(script, workload, performance=SlowGpus())
    # 40 of 100 s are done; the other 60 % take 120 s on GPU 1
    assert times(result) == [(0, 160, 0, 160), (40, 50, 0, 10)]
    assert result.jobs["moves"].tolist() == [1, 0]
    assert result.jobs["gpus"].tolist() == [(1,), (0,)]
    result = run(script, workload, performance=SlowGpus(), move_times=MoveTimes(move_s=7))
    assert times(result)[0] == (0, 167, 0, 167)


def test_a_pre_empted_job_goes_back_to_its_place_and_keeps_its_work_or_not() -> None:
    workload = jobs((0, 100), (40, 10), (45, 1))
    first, second, third = workload.job_ids
    queues: list[list[str]] = []

    def decide(queue: Sequence[QueuedJob], cluster: tp.Cluster, now: float) -> Plan:
        queues.append([entry.job_id for entry in queue])
        if now == 40:
            return Plan(preempt=(first,), start=((second, at(0)),))
        free = [gpu for gpu in (0,) if gpu in cluster.free_gpus()]
        return Plan(start=tuple((entry.job_id, at(gpu)) for entry, gpu in zip(queue, free, strict=False)))

    for times_of, end in (
        (MoveTimes(), 110.0),
        (MoveTimes(restart_s=5), 115.0),
        (MoveTimes(keeps_work=False), 150.0),
    ):
        queues.clear()
        result = simulate(FOUR, workload, Scripted(decide), move_times=times_of)
        assert [first, third] in queues  # the pre-empted job is older
        assert times(result)[0] == (0, end, 10, 40 + end - 50)
        assert times(result)[1] == (40, 50, 0, 10)
        assert times(result)[2] == (end, end + 1, end - 45, 1)
        assert result.jobs["preemptions"].tolist() == [1, 0, 0]


def test_a_pre_empted_job_that_is_then_rejected_has_held_its_gpus_once() -> None:
    workload = jobs((0, 100), (40, 10))
    first, second = workload.job_ids
    script = {
        0.0: Plan(start=((first, at(0)),)),
        40.0: Plan(preempt=(first,), start=((second, at(2)),)),
        50.0: Plan(reject=((first, tp.Refusal("no more")),)),
    }
    result = run(script, workload)
    assert [(stay.start, stay.end) for stay in result.records[0].stays] == [(0, 40)]
    assert result.stays[["job", "start", "end"]].tolist() == [(first, 0, 40), (second, 40, 50)]
    figures = result.summary()
    assert figures["utilization"] == (40 + 10) / (50 * 4)
    assert (figures["rejected"], figures["throughput"]) == (1, 1 / 50 * 3600)
    assert figures["mean_slowdown"] == 1  # that of the job that finished


def test_a_pre_empted_job_is_before_younger_ones_that_wait() -> None:
    workload = jobs((0, 100), (10, 1), (20, 1), (30, 1))
    first, second, third, fourth = workload.job_ids
    queues: dict[float, list[str]] = {}

    def decide(queue: Sequence[QueuedJob], cluster: tp.Cluster, now: float) -> Plan:
        queues[now] = [entry.job_id for entry in queue]
        if now in (10, 20):
            return Plan()
        if now == 30:
            return Plan(preempt=(first,), start=((third, at(0)),))
        return Plan(start=((queue[0].job_id, at(0)),))

    simulate(FOUR, workload, Scripted(decide))
    assert queues[31] == [first, second, fourth]


def test_a_pause_that_is_cut_short_loses_no_work() -> None:
    workload = jobs((0, 100), (10, 1), (12, 1))
    first, second, third = workload.job_ids
    script = {
        0.0: Plan(start=((first, at(0)),)),
        10.0: Plan(move=((first, at(1)),), start=((second, at(0)),)),
        12.0: Plan(move=((first, at(2)),), start=((third, at(1)),)),
    }
    result = run(script, workload, move_times=MoveTimes(move_s=30))
    assert times(result)[0] == (0, 12 + 30 + 90, 0, 132)
    assert result.jobs["moves"][0] == 2


def test_neighbours_slow_a_moved_job_down_only_while_they_are_beside_it() -> None:
    topology = tp.Topology.cluster(tp.Topology.from_links(2, [], 12.0), 2)
    workload = jobs((0, 100), (0, 300), (50, 10))
    a, b, c = workload.job_ids

    def place(gpu: int) -> tp.Placement:
        return tp.Placement((gpu,), topology=topology, job=ONE)

    class Beside(FixedTime):
        def slowdown(self, job: object, placement: tp.Placement, neighbours: Neighbours) -> float:
            return 2.0 if neighbours else 1.0

    script = {
        0.0: Plan(start=((a, place(0)), (b, place(1)))),
        50.0: Plan(move=((a, place(2)),), start=((c, place(3)),)),
    }
    policy = Scripted(lambda queue, cluster, now: script.get(now, Plan()))
    result = simulate(topology, workload, policy, performance=Beside())
    # a: 25 s done by 50, next to c until 70 (10 s done), the other 65 s alone; b: 25 s done by 50, then alone
    assert times(result) == [(0, 135, 0, 135), (0, 325, 0, 325), (50, 70, 0, 20)]


@given(data=st.data(), num_jobs=st.integers(1, 6), crowded=st.booleans(), pause=st.sampled_from([0.0, 2.0]))
def test_work_asked_is_work_done(data: st.DataObject, num_jobs: int, crowded: bool, pause: float) -> None:
    numbers = st.sampled_from([0.0, 1.0, 2.5, 4.0])
    workload = jobs(*((data.draw(numbers), data.draw(numbers)) for _ in range(num_jobs)))
    draws = random.Random(data.draw(st.integers(0, 1 << 20)))

    def decide(queue: Sequence[QueuedJob], cluster: tp.Cluster, now: float) -> Plan:
        running = list(cluster.allocations)
        draws.shuffle(running)
        stop = running[: draws.randint(0, len(running))] if now < 20 else []
        moved = stop[: draws.randint(0, len(stop))]
        free = [*cluster.free_gpus(), *(cluster.gpus_of(job_id)[0] for job_id in stop)]
        draws.shuffle(free)
        moves = tuple((job_id, at(free.pop())) for job_id in moved)
        starts = tuple((entry.job_id, at(free.pop())) for entry in queue if free and draws.random() < 0.7)
        if not (moves or starts or len(stop) < len(running)):
            starts = tuple((entry.job_id, at(gpu)) for entry, gpu in zip(queue, free, strict=False))
        return Plan(start=starts, move=moves, preempt=tuple(stop[len(moved) :]))

    model = Crowded() if crowded else SlowGpus()
    result = simulate(
        FOUR,
        workload,
        Scripted(decide),
        performance=model,
        move_times=MoveTimes(move_s=pause, restart_s=pause),
    )
    for record, row in zip(result.records, result.jobs, strict=True):
        if math.isnan(row["start"]):
            assert row["rejected"]
            continue
        own = [stay for stay in result.stays if stay["job"] == row["job"]]
        own.sort(key=lambda stay: (stay["start"], stay["end"]))
        held = sum(stay["end"] - stay["start"] for stay in own)
        assert row["run_time"] == pytest.approx(held)
        assert row["wait"] + row["run_time"] == pytest.approx(row["end"] - row["submit"])
        assert len(own) == 1 + row["moves"] + row["preemptions"]
        if not crowded and not pause:
            done = sum((stay["end"] - stay["start"]) / (1 + stay["gpus"][0]) for stay in own)
            assert done == pytest.approx(record.submitted.base_time)
    busy = sorted((stay["gpus"][0], stay["start"], stay["end"]) for stay in result.stays)
    for (gpu, _, end), (other, start, _) in pairwise(busy):
        assert gpu != other or start >= end - 1e-9


def test_a_job_that_never_moves_has_the_same_rows_as_before() -> None:
    workload = Workload.mapa(40, 1)
    result = simulate(tp.machines.get("dgx1-v100"), workload, tp.policies.get("mapa-greedy"))
    assert result.stays.tolist() == result.jobs.tolist()
    assert result.jobs["moves"].sum() == result.jobs["preemptions"].sum() == 0


def test_moves_let_whole_machine_jobs_start_earlier(tmp_path: Path) -> None:
    topology = tp.Topology.cluster(tp.machines.get("minsky"), 3)
    small = [tp.JobGraph.ring(1)] * 9
    large = [tp.JobGraph.clique(4).with_(single_machine=True)] * 2
    # nine jobs fill two machines and one GPU of the third; six of them end soon
    workload = Workload([*small, *large], [0.0] * 9 + [5.0, 6.0], [*([3.0, 200.0, 200.0] * 3), 50.0, 50.0])
    plain = simulate(topology, workload, tp.policies.get("topo-aware-p"))
    moving = simulate(topology, workload, MakingRoom("topo-aware-p"), move_times=MoveTimes(move_s=2))
    assert moving.policy == "topo-aware-p with moves"
    assert plain.jobs["moves"].sum() == 0 < moving.jobs["moves"].sum()
    assert moving.jobs["wait"].sum() < plain.jobs["wait"].sum()
    late = simulate(topology, workload, MakingRoom(after=1e6))
    never = simulate(topology, workload, MakingRoom(most=0.0))
    assert times(late) == times(never) == times(plain)
    moving.gantt(tmp_path / "gantt.svg")


WRONG: list[tuple[Plan, str]] = [
    (Plan(move=(("x", at(1)),)), "'x' in its plan is not a running job"),
    (Plan(preempt=("x",)), "'x' in its plan is not a running job"),
    (Plan(preempt=("0",)), "'0' in its plan is not a running job"),
]


@pytest.mark.parametrize(("plan", "message"), WRONG, ids=("moved", "pre-empted", "waiting"))
def test_jobs_that_do_not_run_are_named(plan: Plan, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        run({0.0: plan}, jobs((0, 10)))


def test_a_move_to_another_number_of_gpus_is_refused() -> None:
    workload = jobs((0, 10), (1, 1))
    two = tp.Placement((1, 2), topology=FOUR)
    plans = {0.0: Plan(start=((workload.job_ids[0], at(0)),)), 1.0: Plan(move=((workload.job_ids[0], two),))}
    with pytest.raises(ValueError, match=r"2 GPUs for .* which has 1 tasks"):
        run(plans, workload)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"move_s": -1}, "move_s = -1"),
        ({"restart_s": math.nan}, "restart_s"),
        ({"keeps_work": 1}, "keeps_work"),
    ],
    ids=str,
)
def test_wrong_times_are_named(arguments: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        MoveTimes(**arguments)


@pytest.mark.parametrize(
    "arguments",
    [{"policy": "best"}, {"policy": 3}, {"cost": 3}, {"most": -1}, {"after": -1}, {"timeout": 0}],
    ids=str,
)
def test_wrong_options_of_making_room_are_named(arguments: dict[str, Any]) -> None:
    name, value = next(iter(arguments.items()))
    with pytest.raises(ValueError, match=f"'{value}'" if value == "best" else f"{name} = {value}"):
        MakingRoom(**arguments)


def test_move_times_must_be_move_times() -> None:
    with pytest.raises(ValueError, match="move_times = 3"):
        simulate(FOUR, jobs((0, 1)), tp.policies.get("fcfs"), move_times=3)  # type: ignore[arg-type]


def test_making_room_follows_a_policy_that_moves_jobs_itself() -> None:
    topology = tp.Topology.cluster(tp.machines.get("minsky"), 4)
    whole = tp.JobGraph.clique(4).with_(single_machine=True)
    sizes = [tp.JobGraph.ring(1)] * 16 + [whole] * 2
    workload = Workload(sizes, [0.0] * 16 + [5.0] * 2, [3.0, 3.0, 200.0, 200.0] * 4 + [50.0] * 2)
    one, two = (
        simulate(topology, workload, policy)
        for policy in (MakingRoom("fcfs"), MakingRoom(MakingRoom("fcfs")))
    )
    assert times(one) == times(two)
    assert one.jobs["moves"].any()


@pytest.mark.parametrize("interval", [1e-20, 1e-7, 0.0, -1.0, math.nan, math.inf])
def test_intervals_that_would_never_end_are_refused(interval: float) -> None:
    with pytest.raises(ValueError, match="decide_every = "):
        simulate(FOUR, jobs((0, 1)), tp.policies.get("fcfs"), decide_every=interval)
