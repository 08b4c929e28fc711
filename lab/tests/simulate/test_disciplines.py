"""Queue disciplines against plain programs that count GPUs, and what each discipline promises."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import topoplace as tp
from topoplace_lab.simulate import Discipline, Result, Workload, simulate

NUM_GPUS = 5
EQUAL = tp.Topology.from_links(NUM_GPUS, [], 12.0)
ONE = tp.JobGraph.independent(1)
Row = tuple[float, float, float, int]
"""Submission, run time, expected run time, number of GPUs."""


def workload_of(rows: list[Row], **fields: list[Any]) -> Workload:
    graphs = [tp.JobGraph.independent(size) for *_, size in rows]
    for name, values in fields.items():
        graphs = [graph.with_(**{name: value}) for graph, value in zip(graphs, values, strict=True)]
    submit, base, asked = ([row[i] for row in rows] for i in range(3))
    return Workload(graphs, submit, base, requested_time=asked)


def starts(rows: list[Row], backfill: str, **options: Any) -> list[float]:
    result = run(workload_of(rows), backfill=backfill, **options)
    return [float(start) for start in result.jobs["start"]]


def run(workload: Workload, **options: Any) -> Result:
    return simulate(EQUAL, workload, tp.policies.get("fcfs"), discipline=Discipline(**options))


@st.composite
def job_rows(draw: st.DrawFn) -> list[Row]:
    rows: list[Row] = []
    for _ in range(draw(st.integers(1, 9))):
        base = float(draw(st.integers(1, 9)))
        asked = base * draw(st.sampled_from([1.0, 1.0, 2.0, 0.5]))
        rows.append((float(draw(st.integers(0, 12))), base, asked, draw(st.integers(1, NUM_GPUS))))
    return rows


class Reference:
    """The queue, one event after the other, with GPUs as numbers; a subclass says which jobs start."""

    def __init__(self, rows: list[Row]) -> None:
        self.rows = rows
        self.start = [math.nan] * len(rows)
        self.gpus: dict[int, set[int]] = {}

    def run(self) -> list[float]:
        now = -1.0
        while True:
            times = [row[0] for row in self.rows if row[0] > now]
            times += [
                self.start[i] + self.rows[i][1] for i in self.gpus if self.start[i] + self.rows[i][1] > now
            ]
            if not times:
                return self.start
            now = min(times)
            self.gpus = {i: gpus for i, gpus in self.gpus.items() if self.start[i] + self.rows[i][1] > now}
            waiting = [i for i, row in enumerate(self.rows) if row[0] <= now and math.isnan(self.start[i])]
            self.decide(sorted(waiting, key=lambda i: (self.rows[i][0], i)), now)

    def free(self) -> list[int]:
        return sorted(set(range(NUM_GPUS)).difference(*self.gpus.values()))

    def begin(self, i: int, now: float, gpus: list[int]) -> None:
        self.start[i], self.gpus[i] = now, set(gpus)

    def ends(self, now: float) -> list[tuple[float, int]]:
        """Return (expected end, GPUs) of the running jobs, in that order."""
        later = math.nextafter(now, math.inf)
        return sorted(
            (max(self.start[i] + self.rows[i][2], later), len(gpus)) for i, gpus in self.gpus.items()
        )

    def decide(self, waiting: list[int], now: float) -> None:
        raise NotImplementedError


class NoBackfill(Reference):
    def decide(self, waiting: list[int], now: float) -> None:
        for i in waiting:
            if len(self.free()) < self.rows[i][3]:
                return
            self.begin(i, now, self.free()[: self.rows[i][3]])


class Easy(Reference):
    """The textbook rule: a job may overtake if it ends in time, or takes only GPUs that the first job leaves over."""

    def decide(self, waiting: list[int], now: float) -> None:
        while waiting and len(self.free()) >= self.rows[waiting[0]][3]:
            i = waiting.pop(0)
            self.begin(i, now, self.free()[: self.rows[i][3]])
        if not waiting:
            return
        first = waiting.pop(0)
        for i in waiting:
            size = self.rows[i][3]
            shadow, extra = self.shadow(self.rows[first][3], now)
            in_time = now + self.rows[i][2] <= shadow
            if len(self.free()) >= size and (in_time or size <= extra):
                self.begin(i, now, self.free()[:size])

    def shadow(self, size: int, now: float) -> tuple[float, int]:
        """Return when the first job starts, and how many GPUs are then left over."""
        free = len(self.free())
        ends = self.ends(now)
        for number, (end, gpus) in enumerate(ends):
            free += gpus
            if free >= size and (number + 1 == len(ends) or ends[number + 1][0] > end):
                return end, free - size
        raise AssertionError


class Conservative(Reference):
    def decide(self, waiting: list[int], now: float) -> None:
        later = math.nextafter(now, math.inf)
        reserved = [
            (self.start[i], max(self.start[i] + self.rows[i][2], later), gpus)
            for i, gpus in self.gpus.items()
        ]
        for i in waiting:
            _, _, asked, size = self.rows[i]
            for moment in sorted({now, *(end for _, end, _ in reserved if end > now)}):
                until = moment + asked
                used = [gpus for start, end, gpus in reserved if start < until and end > moment]
                free = sorted(set(range(NUM_GPUS)).difference(*used))
                if len(free) >= size:
                    reserved.append((moment, until, set(free[:size])))
                    if moment == now:
                        self.begin(i, now, free[:size])
                    break


@given(rows=job_rows())
def test_jobs_start_when_the_textbook_says(rows: list[Row]) -> None:
    assert starts(rows, "none") == NoBackfill(rows).run()
    assert starts(rows, "easy") == Easy(rows).run()
    assert starts(rows, "conservative") == Conservative(rows).run()


@given(rows=job_rows())
def test_nobody_starts_later_by_conservative_backfill_if_times_are_as_expected(rows: list[Row]) -> None:
    exact = [(submit, base, base, size) for submit, base, _, size in rows]
    plain, filled = starts(exact, "none"), starts(exact, "conservative")
    assert all(later >= earlier for later, earlier in zip(plain, filled, strict=True))


def test_a_small_job_overtakes_only_if_the_first_one_does_not_wait_longer() -> None:
    rows: list[Row] = [(0, 10, 10, 4), (1, 10, 10, 5), (2, 8, 8, 1), (3, 9, 9, 1)]
    assert starts(rows, "none") == [0, 10, 20, 20]
    assert starts(rows, "easy") == [0, 10, 2, 20]
    rows.insert(2, (1.5, 5, 5, 5))
    assert starts(rows, "easy", depth=2) == [0, 10, 20, 2, 25]
    assert starts(rows, "easy", depth=1) == [0, 10, 20, 25, 25]


def test_the_highest_priority_comes_first_and_then_the_oldest() -> None:
    rows: list[Row] = [(0, 10, 10, 5), (1, 10, 10, 5), (2, 10, 10, 5), (3, 10, 10, 5)]
    workload = workload_of(rows, priority=[0, 1, 7, 1])
    assert run(workload, order="priority").jobs["start"].tolist() == [0, 20, 10, 30]
    assert run(workload).jobs["start"].tolist() == [0, 10, 20, 30]


def test_groups_get_gpus_by_weight() -> None:
    rows: list[Row] = [(0, 100 + i, 100 + i, 1) for i in range(12)]
    workload = workload_of(rows, group=["a"] * 6 + ["b"] * 6)
    first = run(workload, order="fair", weights={"b": 1.5}).jobs["start"] == 0
    assert (first[:6].sum(), first[6:].sum()) == (2, 3)
    first = run(workload, order="fair", weights={"a": 4}).jobs["start"] == 0
    assert (first[:6].sum(), first[6:].sum()) == (4, 1)
    assert run(workload).jobs["start"][:6].tolist().count(0) == 5


def test_the_dominant_share_counts_cpus_too() -> None:
    """Ghodsi et al., section 4.1: of 9 CPUs and 18 GPUs, three jobs of 1 CPU and 4 GPUs and two of 3 CPUs and 1 GPU."""
    topology = tp.Topology.from_links(18, [], 12.0)
    gpu_job = tp.JobGraph.independent(4).with_(cpus=1, group="a")
    cpu_job = ONE.with_(cpus=3, group="b")
    workload = Workload([gpu_job, cpu_job] * 6, [0.0] * 12, [10.0] * 12)
    result = simulate(
        topology,
        workload,
        tp.policies.get("fcfs"),
        hosts=tp.HostResources(cpus=9, memory_gb=100),
        discipline=Discipline(order="fair", backfill="none"),
    )
    first = result.jobs["start"] == 0
    assert (first[::2].sum(), first[1::2].sum()) == (3, 2)


@given(rows=job_rows(), quota=st.integers(1, 4), order=st.sampled_from(["submitted", "priority", "fair"]))
def test_no_group_holds_more_than_its_quota(rows: list[Row], quota: int, order: Any) -> None:
    groups = ["a" if i % 2 else None for i in range(len(rows))]
    result = run(workload_of(rows, group=groups), order=order, quotas={"a": quota})
    jobs = result.jobs
    for row, group in zip(jobs, groups, strict=True):
        above = group == "a" and row["num_gpus"] > quota
        assert math.isnan(row["start"]) == above
        if above:
            assert row["rejected"] == f"needs {row['num_gpus']} GPUs, the quota of 'a' is {quota}"
            continue
        together = [
            other["num_gpus"]
            for other, its in zip(jobs, groups, strict=True)
            if its == "a" and other["start"] <= row["start"] < other["end"]
        ]
        assert sum(together) <= quota


def test_shared_gpus_and_machines_count_in_reservations() -> None:
    topology = tp.Topology.cluster(tp.Topology.from_links(2, [], 12.0), 2)
    half = ONE.with_(gpu_fraction=0.5)
    whole = tp.JobGraph.independent(2).with_(single_machine=True)
    workload = Workload(
        [half, half, whole, whole, half], [0.0, 0.0, 1.0, 2.0, 3.0], [10.0, 20.0, 5.0, 5.0, 4.0]
    )
    for backfill in ("easy", "conservative"):
        result = simulate(
            topology,
            workload,
            tp.policies.get("gpu-packing"),
            discipline=Discipline(backfill=backfill),  # type: ignore[arg-type]
        )
        assert result.jobs["start"].tolist()[:4] == [0, 0, 1, 6]
        assert not np.isnan(result.jobs["start"]).any()


def cpu_jobs(rows: list[tuple[float, float, int, str]], **options: Any) -> list[float]:
    """Return when jobs without GPUs start on 4 CPUs; a row: submission, run time, CPUs, group."""
    graphs = [tp.JobGraph.without_gpus(cpus=cpus).with_(group=group) for *_, cpus, group in rows]
    result = simulate(
        tp.Topology.from_links(1, [], 12.0),
        Workload(graphs, [row[0] for row in rows], [row[1] for row in rows]),
        tp.policies.get("gpu-packing"),
        hosts=tp.HostResources(cpus=4, memory_gb=100),
        discipline=Discipline(**options),
    )
    starts: list[float] = result.jobs["start"].tolist()
    return starts


@pytest.mark.parametrize("backfill", ["easy", "conservative"])
def test_running_jobs_without_gpus_count_in_reservations(backfill: str) -> None:
    rows = [(0.0, 10.0, 3, "a"), (1.0, 5.0, 4, "a"), (2.0, 20.0, 1, "a")]
    assert cpu_jobs(rows, backfill=backfill) == [0, 10, 15]


def test_running_jobs_without_gpus_count_in_the_share_of_their_group() -> None:
    rows = [(0.0, 100.0, 3, "a"), (1.0, 9.0, 1, "c"), (2.0, 5.0, 1, "a"), (3.0, 5.0, 1, "b")]
    assert cpu_jobs(rows, order="fair") == [0, 1, 15, 10]


def test_jobs_that_never_fit_are_rejected_and_hold_up_nobody() -> None:
    rows: list[Row] = [(0, 5, 5, 2), (0, 5, 5, NUM_GPUS + 1), (0, 5, 5, 3)]
    for backfill in ("none", "easy", "conservative"):
        result = run(workload_of(rows), backfill=backfill)
        assert result.jobs["start"].tolist()[::2] == [0, 0]
        assert result.jobs["rejected"][1].startswith("never fits")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"order": "age"}, "order = 'age'"),
        ({"backfill": "all"}, "backfill = 'all'"),
        ({"depth": 0}, "depth = 0"),
        ({"weights": {"a": 1}}, 'weights are for order = "fair"'),
        ({"order": "fair", "weights": {"a": 0}}, r"weights\['a'\] = 0"),
        ({"quotas": {"a": -1}}, r"quotas\['a'\] = -1"),
        ({"quotas": {3: 1}}, "a group in quotas"),
        ({"quotas": 3}, "quotas = 3"),
    ],
    ids=str,
)
def test_wrong_options_are_named(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Discipline(**arguments)


def test_a_discipline_is_a_discipline() -> None:
    with pytest.raises(ValueError, match="discipline = 3"):
        simulate(EQUAL, workload_of([(0, 1, 1, 1)]), tp.policies.get("fcfs"), discipline=3)  # type: ignore[arg-type]


@pytest.mark.parametrize("field", ["priority", "group"])
def test_priority_and_group_are_kept_with_a_job(field: str) -> None:
    job = ONE.with_(**{field: 3 if field == "priority" else "team"})
    assert tp.JobGraph.from_json(job.to_json()) == job
    for wrong in (1.5, "", [1]):
        with pytest.raises(tp.JobGraphError, match=field):
            ONE.with_(**{field: wrong})
