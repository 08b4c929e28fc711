"""The standard suite: what it consists of, what a cell measures, and how outcomes become scores."""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import topoplace as tp
from topoplace import policies
from topoplace.experiments import suite
from topoplace.experiments.simulate import Discipline, FixedTime, Workload, simulate
from topoplace.experiments.suite import document, measures, page, scores, topologies, workloads
from topoplace.experiments.sweeps import Cell, Outcome, Plan, Scenario


def test_the_suite_is_as_large_as_it_says() -> None:
    assert (len(topologies.NAMES), len(workloads.NAMES)) == (6, 6)
    assert topologies.ABOUT.keys() == set(topologies.NAMES)
    assert len(suite.plan(["fcfs", "fgd"]).cells) == 6 * 6 * (suite.SEEDS + 1) * 2
    sizes = {name: topologies.built(name).num_gpus for name in topologies.NAMES}
    assert sizes == {
        "dgx1-v100": 8,
        "l40s-8": 8,
        "nvl72-x8": 576,
        "h100-x64": 512,
        "lingjun-x847": 6776,
        "h100-x1500": 12000,
    }


def test_lingjun_has_the_leaves_of_the_dataset() -> None:
    fabric = topologies.built("lingjun-x847").fabric
    assert fabric is not None
    assert [len(set(level.domains)) for level in fabric.levels] == [119, 3, 1]
    assert sorted(Counter(fabric.levels[1].domains).values()) == [179, 306, 362]


def content() -> str:
    """A digest of all that is measured; numbers are rounded, as libraries of mathematics differ in the last bit."""
    found = hashlib.sha256()
    for name in topologies.NAMES:
        found.update(f"{name} {topologies.built(name).digest()}\n".encode())
    for name in workloads.NAMES:
        drawn = workloads.drawn(name, topologies.built("h100-x64"), 1)
        for job in drawn:
            times = f"{job.submit_time:.4g} {job.base_time:.4g}"
            found.update(f"{name} {times} {job.job.num_tasks} {job.job.gpu_fraction} {job.job.name}".encode())
            found.update(f"{job.job.within} {job.job.groups} {len(job.job.collectives)}\n".encode())
    return found.hexdigest()[:12]


def test_what_is_measured_changes_only_with_the_version() -> None:
    """If this fails on purpose: raise VERSION, run the suite again, and put the new digest here."""
    assert (suite.VERSION, content()) == (2, "b28a74ab0c9f")


@pytest.mark.parametrize("name", workloads.NAMES)
def test_workloads_depend_on_the_seed_and_ask_for_the_load(name: str) -> None:
    topology = topologies.built("h100-x64")
    one, again, other = (workloads.drawn(name, topology, seed) for seed in (1, 1, 2))
    assert (one.jobs, one.base_time.tolist()) == (again.jobs, again.base_time.tolist())
    assert one.base_time.tolist() != other.base_time.tolist()
    assert max(job.num_tasks for job in one.jobs) <= topology.num_gpus // 4
    gpus = np.array([job.num_tasks * job.gpu_share for job in one.jobs])
    load = float((gpus * one.base_time).sum()) / float(np.ptp(one.submit_time)) / topology.num_gpus
    assert load == pytest.approx(1.1)


@pytest.mark.parametrize("name", topologies.NAMES)
def test_jobs_ask_for_levels_that_the_machines_have(name: str) -> None:
    topology = topologies.built(name)
    levels = {"machine", *(topology.fabric.level_names if topology.fabric else ())}
    asked = {
        group.within
        for kind in workloads.NAMES
        for job in workloads.drawn(kind, topology, 0).jobs
        for group in (*job.groups, tp.Group((0,), within=job.within or "machine"))
    }
    assert asked <= levels
    assert ("nvlink_domain" in asked) == (name == "nvl72-x8")


def test_kinds_of_jobs_are_where_they_are_said_to_be() -> None:
    topology = topologies.built("h100-x64")
    drawn = {name: workloads.drawn(name, topology, 0).jobs for name in workloads.NAMES}
    alone = {name: np.mean([job.num_tasks == 1 for job in jobs]) for name, jobs in drawn.items()}
    assert alone["philly"] > 0.9 < alone["openb"]
    assert {job.gpu_fraction for job in drawn["openb"]} > {1.0, 0.81, 0.47}
    assert any(job.tflop and job.groups for job in drawn["acme"])
    assert any(job.within for job in drawn["parallel"])
    assert {name for name, jobs in drawn.items() if any(job.groups for job in jobs)} == {
        "acme",
        "parallel",
        "serving",
    }


# ---- what a cell measures --------------------------------------------------------------------------------------


def test_measures_of_a_queue_by_hand() -> None:
    """Four GPUs: b waits for a, though two GPUs are idle, as b needs both of one machine; c needs all four."""
    topology = tp.Topology.cluster(
        tp.Topology.from_links(2, [(0, 1, 450.0, tp.LinkKind.NVSWITCH)]), 2, network=50
    )
    one = tp.JobGraph.independent(1)
    jobs = [one, one, tp.JobGraph.ring(2).with_(single_machine=True), tp.JobGraph.independent(4)]
    workload = Workload(jobs, np.array([0.0, 0.0, 1.0, 2.0]), np.array([10.0, 20.0, 5.0, 5.0]))
    spread = policies.get("vector-worst-fit")
    result = simulate(
        topology, workload, spread, performance=FixedTime(), discipline=Discipline("submitted", "easy")
    )
    assert [record.start for record in result.records] == [0, 0, 10, 20]
    found = measures.figures(result)
    assert found["turnaround"] == pytest.approx((10 + 20 + 14 + 23) / 4)
    assert found["wait_one"] == 0
    assert found["wait_few"] == pytest.approx(100 * (9 + 18) / 2 / 10)
    assert math.isnan(found["wait_many"])
    assert found["idle"] == pytest.approx(100 * 2 * 1 / (4 * 2))  # two GPUs from 1 to 2, the last submission
    assert (found["lost"], found["refused"]) == (0, 0)
    assert math.isnan(found["failed_groups"])


def test_a_refused_job_counts_as_one_that_starts_last() -> None:
    topology = tp.machines.get("dgx-h100")
    jobs = [tp.JobGraph.ring(4).grouped(2, within="machine"), tp.JobGraph.ring(2)]
    workload = Workload(jobs, np.array([0.0, 0.0]), np.array([7.0, 10.0]))
    result = simulate(topology, workload, policies.get("r-queue"), discipline=Discipline("submitted", "easy"))
    assert result.records[0].rejected
    found = measures.figures(result)
    assert found["turnaround"] == pytest.approx((10 + 7 + 10) / 2, rel=0.2)
    assert (found["refused"], found["failed_groups"]) == (50, 100)


@given(
    st.lists(
        st.tuples(st.integers(0, 9), st.integers(1, 9), st.sampled_from([1, 2, 4, 6, 8])),
        min_size=2,
        max_size=12,
    )
)
def test_idle_gpus_are_those_of_a_walk_through_all_seconds(rows: list[tuple[int, int, int]]) -> None:
    """All times are whole seconds, so that a walk second by second is exact."""
    topology = tp.Topology.cluster(tp.machines.get("l40s-8"), 2, network=12.5)
    jobs = [tp.JobGraph.independent(size).with_(single_machine=True) for _, _, size in rows]
    workload = Workload(
        jobs, np.array([row[0] for row in rows], float), np.array([row[1] for row in rows], float)
    )
    result = simulate(
        topology,
        workload,
        policies.get("two-choices"),
        performance=FixedTime(),
        discipline=Discipline("submitted", "easy"),
    )
    records, first = result.records, min(row[0] for row in rows)
    until, lost = max(row[0] for row in rows), 0
    for now in range(first, until):
        free = 16 - sum(one.job.num_tasks for one in records if one.start <= now < one.end)
        waiting = [one for one in records if one.submitted.submit_time <= now < one.start]
        head = min(waiting, key=lambda one: one.submitted.submit_time, default=None)
        lost += free if head is not None and head.job.num_tasks <= free else 0
    found = measures.figures(result)["idle"]
    assert (
        math.isnan(found) if until == first else found == pytest.approx(100 * lost / (16 * (until - first)))
    )


# ---- scores ----------------------------------------------------------------------------------------------------


def made_up(cell: Cell) -> Outcome:
    """Policy "fast" takes half of the reference's time on a, a third on b; "fails" fails on c, "picky" refuses jobs."""
    if cell.policy == "fails" and cell.scenario.topology == "c" and cell.seed:
        return "it cannot"
    factor = {"fast": {"a": 0.5, "b": 1 / 3}.get(cell.scenario.topology, 1.0), "picky": 0.1}.get(
        cell.policy, 1.0
    )
    return {
        "turnaround": 100.0 * factor * (1 + cell.seed),
        "lost": 30.0 * factor,
        "ring_bandwidth": math.nan if cell.scenario.topology == "a" else 10.0 / factor,
        "wait_many": math.nan,
        "refused": 10.0 * (cell.policy == "picky"),
    }


NAMES = ("fails", "picky", "random-fit", "fast")
MADE_UP = Plan(
    tuple(
        Cell(policy, Scenario(topology, "jobs", None), seed)
        for topology in "abc"
        for seed in (0, 1, suite.HELD_OUT)
        for policy in NAMES
    )
)
OUTCOMES = [made_up(cell) for cell in MADE_UP.cells]


def test_scores_are_means_over_all_scenarios() -> None:
    fast, reference, picky, fails = suite.scores_of(MADE_UP, OUTCOMES)
    assert [one.policy for one in (fast, reference, picky, fails)] == ["fast", "random-fit", "picky", "fails"]
    found = fast.interval("turnaround")
    assert found is not None
    assert found[0] == pytest.approx((1 / 6) ** (1 / 3))
    assert found[1] < found[0] < found[2]
    logs = [
        math.log(1 / 2),
        math.log(1 / 2),
        math.log(1 / 3),
        math.log(1 / 3),
        0,
        0,
    ]  # two seeds on a, b and c
    assert fast.cells["turnaround"] == pytest.approx(logs)
    rings = fast.interval("ring_bandwidth")
    assert rings is not None
    assert rings[0] == pytest.approx(math.sqrt(3))  # of b and c
    lost = fast.interval("lost")
    assert lost is not None
    assert lost[0] == pytest.approx(30 * (0.5 + 1 / 3 + 1) / 3)
    assert fast.interval("wait_many") is None  # nothing has it
    assert reference.interval("turnaround") == (1.0, 1.0, 1.0)
    assert fails.failed == {Scenario("c", "jobs", None): "it cannot"}
    assert fails.cells == {}


def test_a_policy_that_refuses_jobs_is_not_the_best() -> None:
    found = suite.scores_of(MADE_UP, OUTCOMES)
    assert scores.best_by(found, "turnaround") == ["fast"]
    assert scores.best_by(found, "lost") == ["fast"]
    assert scores.best_by(found, "wait_many") == []


def test_a_held_out_seed_says_whether_the_order_holds() -> None:
    kept = scores.held_out(MADE_UP, OUTCOMES)
    assert kept is not None
    assert kept.best == "fast"
    assert kept.agreement == pytest.approx(1.0)
    turned = [
        {**one, "turnaround": 1e12}
        if cell.seed == suite.HELD_OUT and cell.policy == "fast" and not isinstance(one, str)
        else one
        for cell, one in zip(MADE_UP.cells, OUTCOMES, strict=True)
    ]
    kept = scores.held_out(MADE_UP, turned)
    assert kept is not None
    assert kept.best == "random-fit"
    assert kept.agreement == pytest.approx(-1.0)
    shown = suite.scores_of(MADE_UP, turned)
    assert shown == suite.scores_of(MADE_UP, OUTCOMES)  # no figure of it is seen
    sentences = document.conclusions(MADE_UP, turned, shown)
    assert sentences[0] == "By the shortest turnaround: fast, and no other."
    assert (
        "random-fit has the shortest turnaround; the rank correlation of the policies is -1.00"
        in sentences[-1]
    )


def test_the_reference_must_be_there() -> None:
    alone = Plan((Cell("fcfs", Scenario("a", "jobs", None), 0),))
    with pytest.raises(ValueError, match="the plan has no cells of random-fit"):
        suite.scores_of(alone, ["it cannot"])


def test_unknown_policies_are_refused_before_the_first_cell() -> None:
    with pytest.raises(ValueError, match="name = 'best': no such policy"):
        suite.plan(["fcfs", "best"])


def test_refused_jobs_are_counted_and_a_broken_model_is_named() -> None:
    cells = {cell.scenario.workload: cell for cell in suite.plan(["r-queue"], quick=True).cells}
    found = suite.simulate(cells["serving"])
    assert not isinstance(found, str)
    assert found["refused"] > 0
    assert found["failed_groups"] == 100
    broken = Cell("fcfs", cells["serving"].scenario, 0, {"performance": f"{__name__}:BROKEN"})
    assert "not a number" in str(suite.simulate(broken)) or "nan" in str(suite.simulate(broken))


class Broken:
    """A model whose run times are no numbers."""

    def run_time(self, *_: object) -> float:
        return math.nan


BROKEN = Broken()


def test_the_page_begins_with_the_scores_and_hides_a_seed(tmp_path: Path) -> None:
    small = Plan(tuple(cell for cell in MADE_UP.cells if cell.policy != "fails"))
    outcomes = [made_up(cell) for cell in small.cells]
    page.write(small, outcomes, suite.scores_of(small, outcomes), tmp_path / "suite.html")
    text = (tmp_path / "suite.html").read_text("utf-8")
    found = re.search(r'id="data">(.*?)</script>', text)
    assert found
    sections = json.loads(found[1])["sections"]
    assert [section["title"] for section in sections[:3]] == [
        *("All machines and workloads", "Turnaround by topology", "Turnaround by workload")
    ]
    assert sections[0]["rows"][0]["policy"] == "fast"
    assert sections[3]["title"] == "jobs on a"
    assert "<p>By the shortest turnaround: fast" in text
    assert str(suite.HELD_OUT) not in text


def test_a_document_keeps_what_is_outside_the_marks(tmp_path: Path) -> None:
    path = tmp_path / "text.md"
    marks = "<!-- begin: topoplace suite --write -->\nold\n<!-- end -->"
    path.write_text(f"# Title\n{marks}\nlast\n", encoding="utf-8")
    quick = suite.plan(["random-fit"], quick=True)
    failed = ["no"] * len(quick.cells)
    document.write(path, quick, failed, suite.scores_of(quick, failed))
    text = path.read_text("utf-8")
    assert text.startswith("# Title\n<!-- begin")
    assert text.endswith("<!-- end -->\nlast\n")
    assert "old" not in text
    assert "| random-fit | fails | fails |" in text
    path.write_text("no marks\n", encoding="utf-8")
    with pytest.raises(ValueError, match=r"text\.md: has no line <!-- begin"):
        document.split(path)


def test_the_documented_table_is_of_this_version_and_has_all_policies(repository: Path) -> None:
    text = (repository / "docs/suite.md").read_text("utf-8")
    expected = f"Suite version {suite.VERSION}, 6 machines and clusters, 6 workloads, {suite.SEEDS} seeds."
    assert expected in text
    rows = re.findall(r"^\| ([\w-]+) \| [\d.]+ ", text, re.MULTILINE)
    assert set(policies.names()) <= set(rows)
    for name in (*topologies.NAMES, *workloads.NAMES):
        assert f"| {name} | " in text
    assert str(suite.HELD_OUT) not in text
