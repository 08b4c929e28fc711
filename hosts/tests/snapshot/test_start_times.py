"""When a waiting job starts: against counting free GPUs, and small queues worked out by hand."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

import topoplace as tp
from scontrol_texts import node, running, waiting
from topoplace.snapshot import RunningJob, Snapshot, WaitingJob, start_times, when
from topoplace_hosts.gathered import Gathered

BUSY = node("n1", 4, "0,2-3") + node("n2", 4, "0-3")
HELD = running("17", "n1", "0,2-3") + running("19", "n2", "0-3", ran="00:10:00", limit="05:00:00")


def snapshot_of(*jobs: str, nodes: str = BUSY + HELD) -> Snapshot:
    return tp.snapshot.read("".join((nodes, *jobs)))


def test_now() -> None:
    found = when(snapshot_of(waiting("21", "TresPerNode=gres/gpu:1")), "21")
    assert (found.gpus, found.seconds, found.after, found.room) == ((1,), 0.0, (), None)
    assert found.is_now


def test_after_a_job_that_ends() -> None:
    found = when(snapshot_of(waiting("21", "TresPerNode=gres/gpu:2")), "21")
    assert (found.seconds, found.after, found.behind) == (5400.0, ("17",), ())
    assert not found.is_now


def test_after_a_job_whose_end_is_not_known() -> None:
    nodes = node("n1", 2, "0-1") + running("17", "n1", "0-1", limit="UNLIMITED")
    found = when(snapshot_of(waiting("21", "TresPerNode=gres/gpu:2"), nodes=nodes), "21")
    assert (found.gpus, found.seconds, found.after, found.reason) == ((0, 1), math.inf, ("17",), "")


def test_a_job_past_its_limit_still_has_its_gpus() -> None:
    nodes = node("n1", 2, "0-1") + running("17", "n1", "0-1", ran="03:00:00", limit="02:00:00")
    found = when(snapshot_of(waiting("21", "TresPerNode=gres/gpu:2"), nodes=nodes), "21")
    assert (found.seconds, found.after, found.is_now) == (1.0, ("17",), False)
    free = when(snapshot_of(waiting("21", "TresPerNode=gres/gpu:2"), nodes=nodes + node("n2", 2)), "21")
    assert (free.gpus, free.seconds) == ((2, 3), 0.0)


@pytest.mark.parametrize(
    "change",
    [
        "=Resources:=JobHoldMaxRequeue",
        "=Resources:=user_env_retrieval_failed_requeued_held",
        "Priority=5:Priority=0",
    ],
)
def test_a_job_that_is_held_does_not_start(change: str) -> None:
    job = waiting("21", "TresPerNode=gres/gpu:1").replace(*change.split(":"))
    found = when(snapshot_of(job), "21")
    assert not found.is_now
    assert found.held


def test_behind_a_job_of_higher_priority() -> None:
    first = waiting("20", "TresPerNode=gres/gpu:4", priority=9)
    found = when(snapshot_of(first, waiting("21", "TresPerNode=gres/gpu:4", priority=8)), "21")
    assert (found.seconds_if_first, found.behind) == (5400.0, ("20",))
    assert found.seconds == 5400.0 + 3600.0
    assert when(snapshot_of(first, waiting("21", "TresPerNode=gres/gpu:4", priority=8)), "20").behind == ()


def test_a_small_job_passes_those_that_it_does_not_delay() -> None:
    first = waiting("20", "TresPerNode=gres/gpu:4", priority=9)
    short = waiting("21", "TresPerNode=gres/gpu:1", limit="01:00:00")
    long = waiting("21", "TresPerNode=gres/gpu:1", limit="03:00:00")
    assert when(snapshot_of(first, short), "21").is_now
    delayed = when(snapshot_of(first, long), "21")
    assert (delayed.seconds, delayed.seconds_if_first, delayed.behind) == (5400.0 + 3600.0, 0.0, ("20",))


def test_a_job_that_is_held_is_passed_over_and_says_so() -> None:
    held = waiting("20", "TresPerNode=gres/gpu:4", priority=9).replace("=Resources", "=JobHeldAdmin")
    both = snapshot_of(held, waiting("21", "TresPerNode=gres/gpu:4"))
    assert when(both, "21").seconds == 5400.0
    assert when(both, "20").held == "JobHeldAdmin"
    assert not when(both, "20").is_now


@pytest.mark.parametrize(
    ("request_text", "more", "reason"),
    [
        ("TresPerNode=gres/gpu:5", "", "5 GPUs"),
        ("TresPerNode=gres/gpu:1", "Features=ib", "it may use none of the 2 machines"),
    ],
)
def test_never(request_text: str, more: str, reason: str) -> None:
    found = when(snapshot_of(waiting("21", request_text, more=more)), "21")
    assert reason in found.reason
    assert (found.gpus, found.seconds) == ((), math.inf)


def test_a_job_that_never_starts_delays_no_other() -> None:
    jobs = waiting("20", "TresPerNode=gres/gpu:9", priority=9), waiting("21", "TresPerNode=gres/gpu:1")
    assert when(snapshot_of(*jobs), "21").is_now


def test_the_moves_that_help_start_it_now() -> None:
    nodes = "".join(node(f"n{i}", 4, "0") + running(f"1{i}", f"n{i}", "0") for i in (1, 2))
    found = snapshot_of(waiting("21", "TresPerNode=gres/gpu:4"), nodes=nodes)
    room = when(found, "21").room
    assert room is not None
    assert (room.cost, [job_id for job_id, _ in room.move], room.preempt) == (1.0, ["11"], ())
    with found.cluster.what_if() as state:
        room.carry_out(state)
        assert state.runs("21")


def test_a_job_of_one_node_is_not_moved_to_two() -> None:
    nodes = node("n1", 8, "0-3") + node("n2", 8, "0-5") + node("n3", 8, "0-5")
    jobs = (running("1", "n1", "0-3"), running("2", "n2", "0-5"), running("3", "n3", "0-5"))
    found = when(snapshot_of(*jobs, waiting("21", "TresPerNode=gres/gpu:8"), nodes=nodes), "21")
    assert found.room is not None
    assert (found.room.start, found.room.move) == ((), ())
    assert when(
        snapshot_of(*jobs, waiting("21", "TresPerNode=gres/gpu:2", more="NumNodes=3"), nodes=nodes), "21"
    ).gpus == (4, 5, 14, 15, 22, 23)


def test_a_job_gets_no_machine_that_it_may_not_use() -> None:
    job = waiting("21", "TresPerNode=gres/gpu:1", more="ExcNodeList=n1")
    found = when(snapshot_of(job), "21")
    assert (found.seconds, found.after) == (17400.0, ("19",))


def test_the_snapshot_is_not_changed() -> None:
    found = snapshot_of(
        waiting("20", "TresPerNode=gres/gpu:4", priority=9), waiting("21", "TresPerNode=gres/gpu:4")
    )
    before = found.cluster.snapshot()
    when(found, "21")
    assert found.cluster.snapshot() == before


def test_unknown_jobs_are_refused_by_name() -> None:
    found = snapshot_of(waiting("21", "TresPerNode=gres/gpu:1"))
    with pytest.raises(tp.SnapshotError, match="job '17' runs already"):
        when(found, "17")
    with pytest.raises(tp.SnapshotError, match="job '4' does not wait; these do: 21"):
        when(found, "4")


Jobs = list[tuple[int, float]]
SOME = st.lists(st.tuples(st.integers(1, 4), st.integers(1, 50).map(float)), max_size=5)


def gathered(num_gpus: int, running_jobs: Jobs, waiting_jobs: Jobs) -> Snapshot:
    """A machine of equal GPUs; jobs that do not fit next to the earlier ones do not run."""
    found = Gathered(tp.Cluster(tp.Topology.from_links(num_gpus, [])))
    for i, (size, left) in enumerate(running_jobs):
        if size <= found.cluster.num_free:
            found.runs(RunningJob(f"r{i}", found.cluster.free_gpus()[:size], left), f"r{i}")
    for i, (size, limit) in enumerate(waiting_jobs):
        found.waits(WaitingJob(f"w{i}", tp.JobGraph.independent(size), i, seconds=limit), f"w{i}")
    return found.finished()


@given(st.integers(1, 6), SOME, SOME.filter(bool))
def test_the_first_of_the_queue_starts_when_enough_gpus_are_free(
    num_gpus: int, running_jobs: Jobs, waiting_jobs: Jobs
) -> None:
    found = gathered(num_gpus, running_jobs, waiting_jobs)
    size = waiting_jobs[-1][0]
    start = when(found, f"w{len(waiting_jobs) - 1}", policy="baseline")
    if size > num_gpus:
        assert start.reason
        return
    moments = sorted({0.0, *(one.seconds_left for one in found.running.values())})
    held = [(len(one.gpus), one.seconds_left) for one in found.running.values()]
    first = next(t for t in moments if num_gpus - sum(n for n, end in held if end > t) >= size)
    assert start.seconds_if_first == first
    assert start.seconds >= first
    assert bool(start.behind) == (start.seconds > first)
    assert set(start.after) == {
        one.job_id for one in found.running.values() if start.seconds > 0 and set(one.gpus) & set(start.gpus)
    }


@given(st.integers(1, 6), SOME, SOME)
def test_the_whole_queue_starts_as_each_job_does(
    num_gpus: int, running_jobs: Jobs, waiting_jobs: Jobs
) -> None:
    found = gathered(num_gpus, running_jobs, waiting_jobs)
    each = [when(found, one.job_id, policy="baseline") for one in found.waiting]
    assert start_times(found, policy="baseline") == tuple(replace(one, room=None) for one in each)


def test_a_held_job_delays_no_other_and_is_named_as_held() -> None:
    jobs = (
        waiting("20", "TresPerNode=gres/gpu:4", priority=9).replace("=Resources", "=Dependency"),
        waiting("21", "TresPerNode=gres/gpu:4", priority=8),
        waiting("22", "TresPerNode=gres/gpu:8", priority=7),
    )
    found = snapshot_of(*jobs)
    held, starts, never = start_times(found)
    assert (held.job_id, held.held, held.gpus) == ("20", "Dependency", ())
    assert starts == replace(when(found, "21"), room=None)
    assert "needs 8 GPUs on one machine" in never.reason
