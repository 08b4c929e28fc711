"""In a queue, `least-time` lets a job wait for the fewest machines, as long as that costs less than starting now."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest

import topoplace as tp
from thoroughness import share, thorough
from topoplace import _core
from topoplace.engine.driver import QueueWalk
from topoplace.engine.plan import FOR_EVER, Plan, QueuedJob
from topoplace.policies import LeastTime
from topoplace.testing import check_policy
from topoplace.testing.default_cases import default_topologies

H100S = tp.Topology.cluster(tp.machines.get("dgx-h100"), 3, network=50.0)
TRAYS = tp.Topology.cluster(tp.machines.get("gb200-nvl72"), 2, network=50.0)
EIGHT = tp.JobGraph.allreduce(8).with_(bandwidth_sensitive=True)
REASON = re.compile(
    r"waits for 8 GPUs of one machine: split over 2 machines it would take \d\.\d times as long"
)


def half_busy(topology: tp.Topology = H100S, each: int = 4) -> tp.Cluster:
    """Return a cluster with `each` free GPUs on each machine."""
    cluster = tp.Cluster(topology)
    for name, gpus in topology.gpus_of.items():
        cluster.allocate(f"on {name}", gpus[each:])
    return cluster


def planned(job: tp.JobGraph, cluster: tp.Cluster, now: float = 0.0, **fields: Any) -> Plan:
    policy = fields.pop("policy", None) or LeastTime()
    return policy.plan([QueuedJob("job", job, 0.0, **fields)], cluster, now)


def noted_searches(monkeypatch: pytest.MonkeyPatch) -> list[tp.JobGraph]:
    """Return a list to which the jobs are added that the policy searches for from now on."""
    found: list[tp.JobGraph] = []
    own = LeastTime.found

    def noted(self: LeastTime, job: tp.JobGraph, *rest: Any) -> tp.Placement | None:
        found.append(job)
        return own(self, job, *rest)

    monkeypatch.setattr(LeastTime, "found", noted)
    return found


def test_a_job_that_fits_a_machine_waits_for_one_and_says_so() -> None:
    plan = planned(EIGHT, half_busy())
    assert not plan.start
    ((job_id, refusal),) = plan.defer
    assert job_id == "job"
    assert REASON.fullmatch(refusal.reason)
    assert not refusal.permanent


@pytest.mark.parametrize(
    "job",
    [tp.JobGraph.allreduce(16), tp.JobGraph.parallel(tensor=8, data=2)],
    ids=["ring", "tensor groups"],
)
def test_a_larger_job_waits_for_the_fewest_machines(job: tp.JobGraph) -> None:
    topology = tp.Topology.cluster(tp.machines.get("dgx-h100"), 4, network=50.0)
    cluster, job = half_busy(topology), job.with_(bandwidth_sensitive=True)
    ((_, refusal),) = planned(job, cluster).defer
    assert f"waits for {job.num_tasks} GPUs of 2 machines: split over " in refusal.reason
    cluster.release("on machine0")
    cluster.release("on machine2")
    ((_, placement),) = planned(job, cluster).start
    assert {topology.gpus[gpu].machine for gpu in placement.gpus} == {"machine0", "machine2"}
    assert placement.job is job
    assert placement.time == pytest.approx(tp.place(job, cluster).time)  # type: ignore[union-attr]
    ((_, later),) = planned(job, half_busy(topology), 1e9).start
    assert len({topology.gpus[gpu].machine for gpu in later.gpus}) > 2


def test_a_job_of_the_future_waits_no_longer_than_others() -> None:
    """Clocks differ by seconds: what a job may have is known then, too."""
    topology = tp.Topology.cluster(tp.machines.get("dgx-h100"), 8, network=50.0)
    job = tp.JobGraph.allreduce(32).with_(bandwidth_sensitive=True)
    plan = LeastTime().plan([QueuedJob("job", job, submit_time=5.0)], half_busy(topology), 0.0)
    for _, refusal in plan.defer:
        assert "of 4 machines: split over 8 machines" in refusal.reason


def test_a_job_that_is_faster_on_two_machines_waits_for_no_single_one() -> None:
    """A ring of four on Minsky, whose halves meet over SYS, is faster on two machines."""
    topology = tp.Topology.cluster(tp.machines.get("minsky"), 3, network=50.0)
    ring = tp.JobGraph.ring(4).with_(bandwidth_sensitive=True)
    alone = tp.place(ring, tp.Cluster(topology))
    assert alone is not None
    ((_, placement),) = planned(ring, tp.Cluster(topology)).start
    assert placement.time == alone.time
    assert len({topology.gpus[gpu].machine for gpu in placement.gpus}) == 2


def test_place_answers_now() -> None:
    cluster = half_busy()
    placement = tp.place(EIGHT, cluster)
    assert placement is not None
    assert len(placement.gpus) == 8
    assert LeastTime().has_room(EIGHT, cluster)
    assert LeastTime().explain(EIGHT, cluster).refusal is None


def test_without_waiting_a_plan_is_what_place_answers() -> None:
    cluster = half_busy()
    ((_, placement),) = planned(EIGHT, cluster, policy=LeastTime(waits=0.0)).start
    assert placement == tp.place(EIGHT, cluster)


def test_on_a_machine_with_room_it_starts_as_it_is() -> None:
    cluster = half_busy()
    cluster.release(f"on {H100S.machine_names[1]}")
    ((_, placement),) = planned(EIGHT, cluster).start
    assert placement == tp.place(EIGHT, cluster)
    assert placement.job is EIGHT


@pytest.mark.parametrize("seconds", [64.0, 3600.0, 1e6])
def test_it_waits_no_longer_than_the_split_costs(seconds: float) -> None:
    cluster = half_busy()
    policy = LeastTime(waits=1.0)
    until = policy.patience(EIGHT, cluster, 2.0 ** (len(f"{int(seconds):b}") - 1))
    assert 0 < until < 4 * seconds
    assert not planned(EIGHT, cluster, until * 0.999, policy=policy, requested_time=seconds).start
    ((_, placement),) = planned(EIGHT, cluster, until, policy=policy, requested_time=seconds).start
    assert len({H100S.gpus[gpu].machine for gpu in placement.gpus}) > 1
    assert placement.job is EIGHT


def test_a_run_time_that_is_not_known_counts_as_an_hour() -> None:
    cluster, policy = half_busy(), LeastTime()
    assert policy.patience(EIGHT, cluster, float("nan")) == policy.patience(EIGHT, cluster, 3600.0)
    assert policy.patience(EIGHT, cluster, 7200.0) == 2 * policy.patience(EIGHT, cluster, 3600.0)
    assert LeastTime(waits=30.0).patience(EIGHT, cluster, 1.0) == pytest.approx(
        3 * policy.patience(EIGHT, cluster, 1.0)
    )


@pytest.mark.parametrize(
    "job",
    [
        tp.JobGraph.independent(8),
        tp.JobGraph.allreduce(8),
        tp.JobGraph.allreduce(9).with_(bandwidth_sensitive=True),
        EIGHT.with_(max_machines=3),
        EIGHT.with_(same_gpus=True),
    ],
    ids=["silent", "insensitive", "part of a machine", "few machines", "same GPUs"],
)
def test_others_start_at_once(job: tp.JobGraph) -> None:
    assert planned(job, half_busy()).start


def test_a_job_with_a_utility_waits_for_that_alone() -> None:
    cluster = half_busy()
    assert planned(EIGHT.with_(min_utility=0.001), cluster).start
    ((_, refusal),) = planned(EIGHT.with_(min_utility=0.9), cluster).defer
    assert refusal.reason.startswith("postponed")


def test_a_job_waits_for_no_machine_that_is_out_of_service() -> None:
    cluster = half_busy(each=5)
    for machine in range(3):
        cluster.drain(8 * machine + 7)
    assert planned(EIGHT, cluster).start
    cluster.undrain(7)
    assert not planned(EIGHT, cluster).start


def test_on_trays_it_waits_for_an_nvlink_domain() -> None:
    cluster = tp.Cluster(TRAYS)
    for gpu in range(144):
        if gpu % 24:  # three GPUs are free on trays of their own in each domain
            cluster.allocate(f"on {gpu}", (gpu,))
    four = tp.JobGraph.allreduce(4).with_(bandwidth_sensitive=True)
    ((_, refusal),) = planned(four, cluster).defer
    assert "waits for 4 GPUs of one nvlink domain: split over 2 nvlink domains" in refusal.reason
    cluster.release("on 71")
    ((_, placement),) = planned(four, cluster).start
    assert max(placement.gpus) < 72
    assert len({TRAYS.gpus[gpu].machine for gpu in placement.gpus}) > 1


def test_a_job_that_waits_is_searched_for_on_machines_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    searches = 0

    def counted(*arguments: Any, **named: Any) -> Any:
        nonlocal searches
        searches += 1
        return on_several(*arguments, **named)

    on_several: Callable[..., Any] = _core.LeastTime.on_several
    monkeypatch.setattr(_core.LeastTime, "on_several", counted)
    cluster, policy = half_busy(), LeastTime()
    for now in range(5):
        assert policy.plan([QueuedJob(f"job {i}", EIGHT) for i in range(20)], cluster, float(now)).defer
    assert searches == 0
    assert policy.plan([QueuedJob("job", EIGHT)], cluster, 1e6).start
    assert searches == 1


def test_a_job_that_waits_is_not_searched_for_again_until_something_changes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    found = noted_searches(monkeypatch)
    cluster = half_busy()
    walk = QueueWalk(LeastTime(), cluster)
    for now in range(10):
        walk.begin(float(now))
        assert not isinstance(walk.decide(QueuedJob("job", EIGHT)), tp.Placement)
    assert len(found) == 1
    assert walk.wakes == LeastTime().patience(EIGHT, cluster, float("nan"))
    cluster.release(f"on {H100S.machine_names[2]}")
    walk.begin(10.0)
    assert isinstance(walk.decide(QueuedJob("job", EIGHT)), tp.Placement)
    assert len(found) == 2


def test_the_split_that_a_job_could_have_decides_and_is_found_once(monkeypatch: pytest.MonkeyPatch) -> None:
    fabric = tp.Fabric.regular(4, {"leaf": 2, "spine": 4}).with_level("leaf", gb_per_s=50.0)
    fabric = fabric.with_level("spine", gb_per_s=50.0, oversubscription=64.0)
    topology = tp.Topology.cluster(tp.machines.get("dgx-h100"), fabric=fabric)
    cluster, policy = tp.Cluster(topology), LeastTime()
    for machine, busy in enumerate((4, 8, 4, 8)):  # the free ones are below different leaves
        cluster.allocate(f"on {machine}", range(8 * machine, 8 * machine + busy))
    across = policy.place(EIGHT, cluster)
    assert across is not None
    best, real = (policy.patience(EIGHT, cluster, float("nan"), other) for other in (None, across))
    assert real > 1.5 * best
    found = noted_searches(monkeypatch)
    walk = QueueWalk(policy, cluster)
    for now in (best, (best + real) / 2, real):
        walk.begin(now)
        outcome = walk.decide(QueuedJob("job", EIGHT))
        assert isinstance(outcome, tp.Placement) == (now == real)
    assert found.count(EIGHT) == 1


def test_a_job_that_was_deferred_too_often_takes_what_there_is() -> None:
    assert planned(EIGHT, half_busy(), postponed=FOR_EVER).start


def test_younger_jobs_that_fit_overtake() -> None:
    policy, cluster = LeastTime(), half_busy()
    small = tp.JobGraph.allreduce(4).with_(bandwidth_sensitive=True)
    plan = policy.plan([QueuedJob("large", EIGHT), QueuedJob("small", small)], cluster, 0.0)
    assert [job_id for job_id, _ in plan.start] == ["small"]
    assert [job_id for job_id, _ in plan.defer] == ["large"]


@pytest.mark.parametrize(("turn", "waits"), [*enumerate([0.0, 2.0, 1e9])], ids=str)
def test_the_contract_holds(turn: int, waits: float) -> None:
    topologies = share(default_topologies(), turn, of=3)
    check_policy(lambda: LeastTime(waits=waits), topologies=topologies, states=thorough(6, 1))


@pytest.mark.parametrize("waits", [-1.0, float("inf"), float("nan"), True, "2"])
def test_a_wrong_number_is_refused(waits: Any) -> None:
    with pytest.raises(ValueError, match="waits"):
        LeastTime(waits=waits)
