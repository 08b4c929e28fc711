"""Parts that fail: how often, what is then out of service, and how the jobs on them go on."""

from __future__ import annotations

import csv
import json
import math
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import topoplace as tp
from topoplace.engine.plan import Explanation, Plan, QueuedJob
from topoplace_lab.simulate import (
    Discipline,
    FailingPart,
    Failures,
    FixedTime,
    Recovery,
    Result,
    Workload,
    simulate,
)
from topoplace_lab.simulate.failures import Outages, Strike
from topoplace_lab.simulate.recovery import WAYS

DAY = 86_400.0
ONE = tp.JobGraph.independent(1)
QUAD = tp.Topology.from_links(4, [(0, 1, 50.0), (2, 3, 50.0)], 12.0)
RACKS = tp.Topology.cluster(QUAD, 6, racks=2, network=10.0)
DUOS = tp.Topology.cluster(tp.Topology.from_links(2, [(0, 1, 50.0)]), 6, racks=2, network=10.0)
GANG = tp.JobGraph.ring(8).grouped(4, within="machine")


def often(
    out: str = "machine", *, per_day: float = 40.0, repair_s: float = 3000.0, **changed: Any
) -> FailingPart:
    """Return a part that fails so often among 24 GPUs, or what `changed` says."""
    part = FailingPart(out, per_day, 24, 1.0, out=out, repair_s=repair_s)
    return replace(part, **changed)


def run(
    jobs: Workload,
    parts: Sequence[FailingPart],
    *,
    policy: Any = None,
    seed: int = 0,
    where: tp.Topology = RACKS,
    **options: Any,
) -> Result:
    policy = policy or tp.policies.get("best-fit")
    return simulate(
        where, jobs, policy, performance=FixedTime(), failures=Failures(tuple(parts)), seed=seed, **options
    )


# ---- how often -----------------------------------------------------------------------------------------------


def test_llama3_has_the_published_counts() -> None:
    parts = Failures.llama3(network="rack").parts
    assert sum(part.count for part in parts) == 419
    assert sum(part.count for part in parts if part.out == "nothing") == 63
    assert [part.count for part in parts if part.out == "rack"] == [35]
    assert sum(part.rate for part in parts) == pytest.approx(419 / 16_384 / (54 * DAY))


def strikes(part: FailingPart, until: float, seed: int = 0) -> list[Strike]:
    outages = Outages(Failures((part,)), tp.Cluster(RACKS), seed)
    found: list[Strike] = []
    while (now := outages.next_time()) < until:
        found.extend(outages.due(now))
    return found


@pytest.mark.parametrize(("per", "among", "num_units"), [("gpu", 24, 24), ("machine", 12, 6), ("rack", 3, 3)])
def test_parts_fail_as_often_as_the_counts_say_and_all_alike(per: str, among: int, num_units: int) -> None:
    part = FailingPart("part", 100, among, 10.0, per=per, out=per, repair_s=0.0)
    found = strikes(part, 100 * DAY)
    expected = 100 / among / 10 * num_units * 100
    assert len(found) == pytest.approx(expected, abs=5 * math.sqrt(expected))
    counts = np.bincount([strike.gpus[0] for strike in found])
    counts = counts[counts > 0]
    assert len(counts) == num_units
    assert counts == pytest.approx(expected / num_units, abs=5 * math.sqrt(expected / num_units))
    assert {len(strike.gpus) for strike in found} == {24 // num_units}
    assert found == strikes(part, 100 * DAY)
    assert found != strikes(part, 100 * DAY, seed=1)


def test_a_part_that_is_out_of_service_does_not_fail() -> None:
    found = strikes(often("rack", per_day=2400, repair_s=1000), DAY)
    for before, after in pairwise(sorted((strike.gpus, strike.failure.time) for strike in found)):
        assert before[0] != after[0] or after[1] >= before[1] + 1000


def test_repairs_end_no_drain_no_hold_and_no_fault_of_the_topology() -> None:
    cluster = tp.Cluster(RACKS.with_unhealthy([3]))
    cluster.drain(0)
    cluster.hold([1])
    part = often("rack", per_day=2400, repair_s=600)
    outages = Outages(Failures((part,)), cluster, 0)
    closed = set[tuple[int, ...]]()
    while not closed or cluster.out_of_service() != (0, 1, 3):
        list(outages.due(outages.next_time()))
        closed.add(cluster.out_of_service())
    assert any(set(range(8)) <= set(one) for one in closed)
    assert (cluster.drained_gpus(), tuple(cluster.held_gpus())) == ((0,), (1,))


# ---- how jobs go on ------------------------------------------------------------------------------------------


@given(st.integers(0, 1000), st.sampled_from([0.0, 500.0, 7000.0]), st.sampled_from([0.0, 120.0]))
def test_software_restarts_on_the_same_gpus_from_the_last_checkpoint(
    seed: int, checkpoint_every: float, restart_s: float
) -> None:
    jobs = Workload([ONE], [0.0], [20_000.0])
    parts = [often("nothing", per_day=24 * 20)]
    recovery = Recovery(checkpoint_every=checkpoint_every, restart_s=restart_s)
    (record,) = run(jobs, parts, seed=seed, recovery=recovery).records
    failures = record.history.failures if record.history else []
    start = left = pause = lost = 0.0
    left = 20_000.0
    for failure in failures:
        done = max(0.0, failure.time - start - pause)
        lost += done % checkpoint_every if checkpoint_every else 0.0
        left -= done - (done % checkpoint_every if checkpoint_every else 0.0)
        start, pause = failure.time, restart_s
    assert record.end == pytest.approx(start + pause + left)
    assert (record.history.lost if record.history else 0.0) == pytest.approx(lost)
    assert {stay.placement.gpus for stay in record.stays} == {(0,)}


def some_jobs(seed: int) -> Workload:
    draws = np.random.default_rng(seed)
    kinds = [GANG, tp.JobGraph.ring(2), ONE, tp.JobGraph.independent(2).with_(gpu_fraction=0.5)]
    graphs = [GANG, *(kinds[draws.integers(len(kinds))] for _ in range(6))]
    return Workload(graphs, draws.uniform(0, 2000, 7), draws.uniform(500, 5000, 7))


@settings(max_examples=8)
@given(
    st.integers(0, 1000),
    st.sampled_from(WAYS),
    st.sampled_from([None, Discipline(), Discipline(backfill="conservative")]),
    st.sampled_from(["best-fit", "fcfs", "least-time"]),
)
def test_all_work_is_done_outside_outages(
    seed: int, way: Any, discipline: Discipline | None, policy: str
) -> None:
    parts = [often(), often("rack"), often("gpu", per_day=80), often("nothing", per_day=80)]
    down: list[tuple[float, float, frozenset[int]]] = []

    class Watched(Outages):
        def due(self, now: float) -> Any:
            for strike in super().due(now):
                if strike.is_out:
                    down.append((now, now + 3000.0, frozenset(strike.gpus)))
                yield strike

    jobs = some_jobs(seed)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("topoplace_lab.simulate.event_loop.Outages", Watched)
        result = run(
            jobs,
            parts,
            policy=tp.policies.get(policy),
            seed=seed,
            discipline=discipline,
            recovery=Recovery(way, checkpoint_every=700, restart_s=60),
        )
    useful = held = 0.0
    for record in result.records:
        assert not record.rejected
        history, size = record.history, record.job.num_tasks * record.job.gpu_share
        wasted = history.lost + history.paused if history else 0.0
        assert record.run_time - wasted == pytest.approx(record.submitted.base_time)
        useful, held = useful + size * record.submitted.base_time, held + size * record.run_time
        for stay in record.stays:
            for begin, end, gpus in down:
                assert end <= stay.start or stay.end <= begin or gpus.isdisjoint(stay.placement.gpus)
    figures = result.summary()
    assert figures["goodput"] == pytest.approx(useful / held)
    assert figures["failures"] == result.jobs["failures"].sum() > 0


def test_equal_seeds_give_equal_results() -> None:
    first, again, other = (run(some_jobs(0), [often(per_day=60)], seed=seed) for seed in (5, 5, 6))
    assert first == again
    assert first != other


def test_a_repair_moves_the_tasks_of_the_failed_machine_alone() -> None:
    jobs = Workload([GANG], [0.0], [40_000.0])
    found = {
        way: run(jobs, [often()], recovery=Recovery(way), seed=1).jobs[0]  # type: ignore[arg-type]
        for way in WAYS
    }
    assert found["repair"]["failures"] > 2
    assert found["repair"]["tasks_moved"] == 4 * found["repair"]["failures"]
    assert found["place-again"]["tasks_moved"] > found["repair"]["tasks_moved"]


def test_moves_take_their_time() -> None:
    jobs, costs = Workload([GANG], [0.0], [40_000.0]), tp.MoveCosts(move=10.0, move_per_gpu=100.0)

    def end(seed: int, costs: tp.MoveCosts | None) -> float:
        result = run(jobs, [often(per_day=1.0)], recovery=Recovery(costs=costs), seed=seed)
        return float(result.jobs[0]["end"]) if result.jobs[0]["failures"] == 1 else math.nan

    seed = next(seed for seed in range(50) if not math.isnan(end(seed, None)))
    assert end(seed, costs) - end(seed, None) == pytest.approx(10.0 + 4 * 100.0)


def test_a_repair_may_weigh_moves_against_the_steps_that_are_left() -> None:
    """A task moves alone, or the whole ring, which then communicates over faster links."""
    duo = tp.Topology.from_links(4, [(0, 1, 50.0), (2, 3, 50.0)], 1.0)
    jobs = Workload([tp.JobGraph.ring(2)], [0.0], [50_000.0])
    moved = []
    for step_s in (None, 0.01):
        result = simulate(
            tp.Topology.cluster(duo, 1),
            jobs,
            tp.policies.get("least-time"),
            performance=FixedTime(),
            failures=Failures((often("gpu", per_day=100, repair_s=500),)),
            recovery=Recovery(step_s=step_s),
        )
        first = next(iter(pairwise(result.records[0].stays)))
        moved.append(
            sum(a != b for a, b in zip(first[0].placement.gpus, first[1].placement.gpus, strict=True))
        )
    assert moved == [1, 2]


def test_a_gang_whose_groups_find_no_machine_waits_for_the_repair() -> None:
    """All six machines are in use; a repair needs a whole machine."""
    jobs = Workload([tp.JobGraph.ring(24).grouped(4, within="machine")], [0.0], [40_000.0])
    result = run(jobs, [often()], recovery=Recovery(restart_s=0.0, checkpoint_every=0.0))
    row, record = result.jobs[0], result.records[0]
    assert record.history is not None
    assert row["failures"] > 3
    assert row["wait"] >= 3000 * row["failures"]
    assert row["run_time"] == pytest.approx(40_000.0)
    assert all(after.start >= before.end + 3000 for before, after in pairwise(record.stays))


def test_the_share_repaired_in_the_rack_counts_failures_that_move_tasks() -> None:
    jobs = Workload([tp.JobGraph.ring(4).with_(single_machine=True)], [0.0], [40_000.0])
    result = run(jobs, [often(), often("nothing")], seed=2)
    record = result.records[0]
    assert record.history is not None
    racks = [{gpu // 8 for gpu in stay.placement.gpus} for stay in record.stays]
    places = [stay.placement.gpus for stay in record.stays]
    moves = [
        a == b for (a, b), (old, new) in zip(pairwise(racks), pairwise(places), strict=True) if old != new
    ]
    assert 0 < len(moves) < len(record.history.failures)
    assert result.repaired_in_rack() == pytest.approx(sum(moves) / len(moves))
    without = simulate(QUAD, jobs, tp.policies.get("best-fit"), performance=FixedTime())
    assert math.isnan(without.repaired_in_rack())
    assert without.summary()["goodput"] == 1.0


def test_spares_keep_repairs_in_the_rack_and_come_back_after_each() -> None:
    jobs = Workload([tp.JobGraph.ring(6).grouped(2, within="machine")], [0.0], [200_000.0])
    spared, without, queued = (
        run(jobs, [often(per_day=8.0, repair_s=600)], recovery=recovery, seed=2, where=DUOS)
        for recovery in (Recovery(spares={"rack": 1}), Recovery(), Recovery("queue", spares={"rack": 1}))
    )
    assert spared.records[0].stays[0].placement.gpus == (0, 1, 4, 5, 8, 9)
    assert spared.jobs[0]["failures"] > 3  # as many as there are spares
    assert (spared.jobs[0]["wait"], spared.repaired_in_rack()) == (0.0, 1.0)
    assert without.repaired_in_rack() < 1
    assert queued.jobs[0]["wait"] >= 600 * queued.jobs[0]["failures"] > 0
    assert not queued.rejections()


def test_a_spare_that_fails_is_replaced() -> None:
    """The machine of a rack that is idle when its spare fails is its spare from then on."""
    held = list[tuple[str, ...]]()

    class Watched(Recovery):
        def hold_spares(self, cluster: tp.Cluster) -> None:
            super().hold_spares(cluster)
            held.append(tuple(dict.fromkeys(RACKS.gpus[gpu].machine or "" for gpu in cluster.held_gpus())))

    jobs = Workload([ONE], [0.0], [100_000.0])
    run(jobs, [often(per_day=3.0)], recovery=Watched(spares={"rack": 1}), seed=1)
    assert held[0] == ("machine1", "machine3", "machine5")
    assert any(len(one) == 4 for one in held)


def low_jobs(seed: int) -> Workload:
    """Return a gang on all machines but the spares, and jobs of a low and a usual priority."""
    draws = np.random.default_rng(seed)
    kinds = [tp.JobGraph.ring(2), tp.JobGraph.ring(3), ONE]
    graphs = [kinds[draws.integers(3)].with_(priority=int(draws.integers(-2, 1))) for _ in range(8)]
    times = np.concatenate(([0.0], draws.uniform(0, 9000, 8)))
    gang = tp.JobGraph.ring(6).grouped(2, within="machine")
    return Workload([gang, *graphs], times, [30_000.0, *draws.uniform(500, 9000, 8)])


@settings(max_examples=5)
@given(st.integers(0, 1000), st.sampled_from(WAYS), st.sampled_from([None, Discipline()]))
def test_jobs_on_lent_spares_make_way_and_lose_what_no_checkpoint_has(
    seed: int, way: Any, discipline: Discipline | None
) -> None:
    recovery = Recovery(way, checkpoint_every=700, restart_s=60, spares={"rack": 1}, lent=True)
    how: Any = {"recovery": recovery, "seed": seed, "where": DUOS, "discipline": discipline}
    parts = [often(per_day=60.0), often("nothing", per_day=30.0)]
    result = run(low_jobs(seed), parts, **how)
    assert result == run(low_jobs(seed), parts, **how)
    held: list[tuple[int, float, float]] = []
    for record in result.records:
        history = record.history
        assert not record.rejected
        wasted = history.lost + history.paused if history else 0.0
        assert record.run_time - wasted == pytest.approx(record.submitted.base_time)
        assert record.job.is_preemptible or not history or not history.num_preemptions
        held += [(gpu, stay.start, stay.end) for stay in record.stays for gpu in stay.placement.gpus]
    for (gpu, _, end), (other, start, _) in pairwise(sorted(held)):
        assert gpu != other or end <= start


def test_lending_spares_starts_jobs_sooner_that_repairs_push_away() -> None:
    gang, low = tp.JobGraph.ring(6).grouped(2, within="machine"), tp.JobGraph.ring(2).with_(priority=-1)
    jobs = Workload([gang, low, low, low], [0.0, 1.0, 1.0, 1.0], [50_000.0] + 3 * [40_000.0])
    idle, lent = (
        run(jobs, [often(per_day=40.0)], where=DUOS, recovery=Recovery(spares={"rack": 1}, lent=lent))
        for lent in (False, True)
    )
    assert min(idle.jobs["start"][1:]) > 50_000
    assert max(lent.jobs["start"][1:]) == 1.0
    pushed = lent.jobs["preemptions"]
    assert pushed[0] == idle.jobs["preemptions"].sum() == 0 < pushed.sum()
    assert lent.jobs["wait"][0] == 0.0
    for row in lent.jobs[1:]:
        assert 0 < row["lost"] <= 3600 * (row["preemptions"] + row["failures"])


@settings(max_examples=3)
@given(st.integers(0, 1000), st.sampled_from(["best-fit", "fcfs"]))
def test_lent_spares_are_the_same_in_plans(seed: int, name: str) -> None:
    how: Any = {"where": DUOS, "seed": seed, "recovery": Recovery(spares={"rack": 1}, lent=True)}
    live = run(low_jobs(seed), [often(per_day=60.0)], policy=tp.policies.get(name), **how)
    planned = run(low_jobs(seed), [often(per_day=60.0)], policy=Planned(name), **how)
    assert live.records == planned.records


def test_a_job_that_needs_the_spares_is_rejected() -> None:
    jobs = Workload([tp.JobGraph.ring(16)], [0.0], [1000.0])
    for where in (RACKS, tp.Cluster(RACKS)):
        result = simulate(
            *(where, jobs, tp.policies.get("best-fit")),
            performance=FixedTime(),
            failures=Failures((often(per_day=0.0),)),
            recovery=Recovery(spares={"rack": 1}),
        )
        (reason,) = result.rejections()
        assert "3 machines are held (spare)" in reason


class Planned:
    """A policy whose plans the simulation follows, with the decisions of one of the engine."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._own = tp.policies.get(name)

    def place(self, job: tp.JobGraph, cluster: tp.Cluster) -> tp.Placement | None:
        return self._own.place(job, cluster)

    def explain(self, job: tp.JobGraph, cluster: tp.Cluster, top: int = 5) -> Explanation:
        return self._own.explain(job, cluster, top)

    def plan(self, queue: Sequence[QueuedJob], cluster: tp.Cluster, now: float) -> Plan:
        return self._own.plan(queue, cluster, now)


@settings(max_examples=8)
@given(st.integers(0, 1000), st.sampled_from(["best-fit", "fcfs"]))
def test_a_job_goes_back_to_its_place_in_the_queue(seed: int, name: str) -> None:
    parts = [often(per_day=200)]
    queue = Recovery("queue")
    live = run(some_jobs(seed), parts, policy=tp.policies.get(name), seed=seed, recovery=queue)
    planned = run(some_jobs(seed), parts, policy=Planned(name), seed=seed, recovery=queue)
    assert live.records == planned.records


def test_an_empty_cluster_with_a_drained_machine_may_have_failures() -> None:
    cluster = tp.Cluster(RACKS)
    cluster.drain("machine0")
    jobs = Workload([GANG] * 4, [0.0] * 4, [9000.0] * 4)
    result = simulate(
        cluster, jobs, tp.policies.get("best-fit"), performance=FixedTime(), failures=Failures((often(),))
    )
    assert not result.rejections()
    assert result.jobs["failures"].sum() > 0
    assert not {0, 1, 2, 3} & {gpu for row in result.stays for gpu in row["gpus"]}
    assert cluster.out_of_service() == (0, 1, 2, 3)


# ---- results in files, and what is refused -------------------------------------------------------------------


def test_results_in_files_have_the_failures(tmp_path: Path) -> None:
    result = run(some_jobs(3), [often()], seed=3)
    path = tmp_path / "run.csv"
    result.save(path)
    again = Result.load(path)
    assert again == result
    assert again.jobs["lost"].tolist() == result.jobs["lost"].tolist()
    about, *rows = path.read_text("utf-8").splitlines()
    without = csv.DictReader(rows)
    names = [name for name in without.fieldnames or () if name not in ("failures", "tasks_moved", "lost")]
    with (tmp_path / "old.csv").open("w", encoding="utf-8", newline="") as file:
        file.write(f"{about}\n")
        writer = csv.DictWriter(file, names, extrasaction="ignore")
        writer.writeheader()
        for row in without:
            known = json.loads(row["history"] or "{}")
            older = {key: known[key] for key in known if key not in ("failures", "pause", "paused", "lost")}
            writer.writerow(row | {"history": json.dumps(older) if older else ""})
    old = Result.load(tmp_path / "old.csv")
    assert [record.stays for record in old.records] == [record.stays for record in result.records]
    assert not old.jobs["failures"].any()


BAD = (
    (lambda: FailingPart("x", -1, 1, 1.0), "count = -1 is not in 0"),
    (lambda: FailingPart("x", 1, 0, 1.0), "among = 0 is not in 1"),
    (lambda: FailingPart("x", 1, 1, 0.0), "days = 0.0 is not above 0"),
    (lambda: FailingPart("x", 1, 1, 1.0, per="nothing"), "per = 'nothing'"),
    (lambda: FailingPart("", 1, 1, 1.0), "name = '' is not a non-empty string"),
    (lambda: FailingPart("x", 1, 1, 1.0, repair_s=math.inf), "repair_s = inf"),
    (lambda: Failures((often(), often())), r"parts\[1\].name = 'machine' is there twice"),
    (lambda: Failures((1,)), r"parts\[0\] = 1"),  # type: ignore[arg-type]
    (lambda: Recovery("pray"), "way = 'pray'"),  # type: ignore[arg-type]
    (lambda: Recovery(checkpoint_every=-1.0), "checkpoint_every = -1.0 is not in 0"),
    (lambda: Recovery("queue", step_s=1.0), "step_s: .* way = 'queue'"),
    (lambda: Recovery(costs=1), "costs = 1"),  # type: ignore[arg-type]
    (lambda: Recovery(spares=1), "spares = 1"),  # type: ignore[arg-type]
    (lambda: Recovery(lent=True), "lent: there are no spares"),
    (lambda: Recovery(spares={"rack": 1}, lent=1), "lent = 1 is"),  # type: ignore[arg-type]
    (lambda: Recovery(spares={"rack": 0}), r"spares\['rack'\] = 0 is not in 1"),
    (lambda: run(some_jobs(0), [often()], recovery=Recovery(spares={"pod": 1})), "spares: level = 'pod'"),
    (lambda: run(some_jobs(0), [often("pod")]), r"failures.parts\[0\].out = 'pod'"),
    (lambda: run(some_jobs(0), [often(per="pod")]), r"failures.parts\[0\].per = 'pod'"),
    (lambda: simulate(QUAD, some_jobs(0), tp.policies.get("fcfs"), recovery=Recovery()), "recovery: without"),
    (lambda: simulate(QUAD, some_jobs(0), tp.policies.get("fcfs"), failures=1), "failures = 1"),  # type: ignore[arg-type]
)


@pytest.mark.parametrize(("build", "message"), BAD, ids=[message for _, message in BAD])
def test_bad_input_is_refused_by_name(build: Any, message: str) -> None:
    with pytest.raises(ValueError, match=f"^{message}"):
        build()


def test_what_cannot_be_simulated_is_refused_by_name() -> None:
    with pytest.raises(ValueError, match="'job-0' has no GPUs, and only GPUs fail"):
        run(Workload([tp.JobGraph.without_gpus(cpus=1)], [0.0], [1.0], job_ids=["job-0"]), [often()])
    cluster = tp.Cluster(QUAD)
    cluster.allocate("before", [0])
    with pytest.raises(ValueError, match="jobs that run before have no known work"):
        simulate(cluster, some_jobs(0), tp.policies.get("fcfs"), failures=Failures((often(),)))
    long = Workload([ONE], [0.0], [DAY])
    with pytest.raises(ValueError, match=r"10000 by .* since a job has ended, too many for these jobs"):
        run(long, [often("nothing", per_day=24 * 200)], recovery=Recovery(checkpoint_every=DAY))
