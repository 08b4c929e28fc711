"""The standard suite: what it consists of, what a cell measures, and how outcomes become scores."""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import topoplace as tp
from topoplace import policies
from topoplace.engine.plan import QueuedJob
from topoplace_lab import suite
from topoplace_lab.simulate import Discipline, FixedTime, Workload, simulate
from topoplace_lab.suite import cells, document, measures, page, scores, topologies, workloads
from topoplace_lab.suite.asking import as_asked
from topoplace_lab.sweeps import Cell, Outcome, Plan, Scenario


def test_the_suite_is_as_large_as_it_says() -> None:
    assert (len(topologies.NAMES), len(workloads.NAMES)) == (6, 6)
    assert topologies.ABOUT.keys() == set(topologies.NAMES)
    assert len(suite.plan(["fcfs", "fgd"]).cells) == 6 * 6 * suite.SEEDS * 2
    assert set(suite.POLICIES) <= set(policies.names())
    sizes = {name: topologies.built(name).num_gpus for name in topologies.NAMES}
    assert sizes == {
        "dgx1-v100": 8,
        "l40s-8": 8,
        "nvl72-x4": 288,
        "h100-rails-x32": 256,
        "h100-leaves-x32": 256,
        "lingjun-x179": 1432,
    }


def test_lingjun_has_the_leaves_of_a_part_of_the_dataset() -> None:
    fabric = topologies.built("lingjun-x179").fabric
    assert fabric is not None
    assert [len(set(level.domains)) for level in fabric.levels] == [29, 1]
    assert Counter(Counter(fabric.levels[0].domains).values()) == {8: 5, 7: 8, 6: 8, 5: 5, 4: 2, 2: 1}


def content() -> str:
    """A digest of all that is measured; numbers are rounded, as libraries of mathematics differ in the last bit."""
    found = hashlib.sha256()
    for name in topologies.NAMES:
        found.update(f"{name} {topologies.built(name).digest()}\n".encode())
    for name in workloads.NAMES:
        drawn = workloads.drawn(name, topologies.built("h100-rails-x32"), 1)
        for job in drawn:
            times = f"{job.submit_time:.4g} {job.base_time:.4g}"
            found.update(f"{name} {times} {job.job.num_tasks} {job.job.gpu_fraction} {job.job.name}".encode())
            asked = f"{job.job.single_machine} {job.job.prefer} {job.job.groups}"
            found.update(f"{asked} {len(job.job.collectives)}\n".encode())
    return found.hexdigest()[:12]


def test_what_is_measured_changes_only_with_the_version() -> None:
    """If this fails on purpose: raise VERSION, run the suite again, and put the new digest here."""
    assert (suite.VERSION, content()) == (3, "f8f2907eadfa")


@pytest.mark.parametrize("name", workloads.NAMES)
def test_workloads_depend_on_the_seed_and_ask_for_the_load(name: str) -> None:
    topology = topologies.built("h100-rails-x32")
    one, again, other = (workloads.drawn(name, topology, seed) for seed in (1, 1, 2))
    assert (one.jobs, one.base_time.tolist()) == (again.jobs, again.base_time.tolist())
    assert one.base_time.tolist() != other.base_time.tolist()
    assert max(job.num_tasks for job in one.jobs) <= topology.num_gpus // 4
    gpus = np.array([job.num_tasks * job.gpu_share for job in one.jobs])
    load = float((gpus * one.base_time).sum()) / float(np.ptp(one.submit_time)) / topology.num_gpus
    assert load == pytest.approx(1.1)


@pytest.mark.parametrize("name", topologies.NAMES)
def test_jobs_are_asked_for_as_pods(name: str) -> None:
    """One that fits a machine is one pod, or pods of replicas; a larger one is pods of whole machines."""
    topology = topologies.built(name)
    most = topology.num_gpus // topology.num_machines
    levels = {None, *(topology.fabric.level_names if topology.fabric else ())}
    for job in dict.fromkeys(
        job for kind in workloads.NAMES for job in workloads.drawn(kind, topology, 0).jobs
    ):
        assert job.within is None
        assert job.prefer in levels
        if job.num_tasks == 1:
            assert not job.groups
        elif job.single_machine:
            assert job.num_tasks <= most
            assert not job.groups
        else:
            assert {group.within for group in job.groups} == {"machine"}
            (size,) = {len(group.tasks) for group in job.groups}
            assert size * len(job.groups) == job.num_tasks
            assert size == most or size == min(4, job.num_tasks)


def test_kinds_of_jobs_are_where_they_are_said_to_be() -> None:
    topology = topologies.built("h100-rails-x32")
    drawn = {name: workloads.drawn(name, topology, 0).jobs for name in workloads.NAMES}
    alone = {name: np.mean([job.num_tasks == 1 for job in jobs]) for name, jobs in drawn.items()}
    assert alone["philly"] > 0.9 < alone["openb"]
    assert {job.gpu_fraction for job in drawn["openb"]} > {1.0, 0.81, 0.47}
    assert any(job.tflop and job.groups for job in drawn["acme"])


def trace(folder: Path, sizes: Sequence[int], gap: float = 60.0) -> Path:
    """Write a trace of jobs of these sizes, each of a minute for each GPU."""
    path = folder / "trace.csv"
    rows = [f"j{at},{at * gap},{60 * size},{size}" for at, size in enumerate(sizes)]
    path.write_text("\n".join(("job_id,submit_s,duration_s,num_gpus", *rows)), encoding="utf-8")
    return path


def test_a_trace_gives_a_fixed_slice_from_its_middle(tmp_path: Path) -> None:
    topology = topologies.built("h100-leaves-x32")
    found = workloads.of_trace(trace(tmp_path, [1, 512] * 150 + [2, 12, 512] * 100), topology)
    sizes = [job.num_tasks for job in found.jobs]
    assert sizes == ([12, 2] * 100)[:175]  # after the 175th job of those that are not too large
    assert found.base_time.tolist() == [60.0 * size for size in sizes]
    pods = {job.num_tasks: job for job in found.jobs}
    assert pods[2].single_machine
    assert {len(group.tasks) for group in pods[12].groups} == {6}
    gaps = np.diff(found.submit_time)
    assert gaps.min() > 0
    assert len(set(np.round(gaps / gaps.min(), 6))) == 2  # those without and with a job that is too large


def test_a_trace_without_enough_jobs_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"trace\.csv: has 40 jobs that fit after its middle; at least 100"):
        suite.plan(["fcfs"], traces=[trace(tmp_path, [1] * 80)])


def test_cells_of_a_trace_are_held_out_and_known_by_its_contents(tmp_path: Path) -> None:
    path = trace(tmp_path, [1] * 300)
    plan = suite.plan(["fcfs"], traces=[path], quick=True)
    held = [cell for cell in plan.cells if cells.is_held_out(cell)]
    assert [cell.scenario for cell in held] == [
        Scenario("dgx1-v100", "trace.csv", None),
        Scenario("h100-leaves-x32", "trace.csv", None),
    ]
    found = suite.simulate(held[0])
    assert not isinstance(found, str)
    assert found["refused"] == 0
    trace(tmp_path, [1] * 301)
    assert suite.plan(["fcfs"], traces=[path], quick=True).digest != plan.digest


def test_nobody_is_refused_for_a_word_that_a_policy_does_not_know() -> None:
    """Each policy is asked in its own words, for the same GPUs."""
    for kind in ("parallel", "serving"):
        topology = topologies.built("h100-leaves-x32")
        workload = workloads.drawn(kind, topology, 0)
        for name in suite.POLICIES:
            policy = policies.get(name)
            asked = as_asked(workload, policy, topology)
            assert [job.num_tasks for job in asked.jobs] == [job.num_tasks for job in workload.jobs]
            for job in dict.fromkeys(asked.jobs):
                assert not policy.plan([QueuedJob("job", job)], tp.Cluster(topology), 0.0).reject, name


def test_a_policy_that_knows_every_word_hears_them_all() -> None:
    topology = topologies.built("h100-leaves-x32")
    workload = workloads.drawn("parallel", topology, 0)
    assert as_asked(workload, policies.get("kueue-best-fit"), topology).jobs == workload.jobs
    slurm = as_asked(workload, policies.get("slurm-block"), topology)
    assert {job.prefer for job in slurm.jobs} == {None}
    assert [job.groups for job in slurm.jobs] == [job.groups for job in workload.jobs]


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


def test_a_refused_job_counts_as_one_that_starts_last() -> None:
    topology = tp.machines.get("dgx-h100")
    jobs = [tp.JobGraph.ring(4).grouped(2, within="machine"), tp.JobGraph.ring(2)]
    workload = Workload(jobs, np.array([0.0, 0.0]), np.array([7.0, 10.0]))
    result = simulate(topology, workload, policies.get("r-queue"), discipline=Discipline("submitted", "easy"))
    assert result.records[0].rejected
    found = measures.figures(result)
    assert found["turnaround"] == pytest.approx((10 + 7 + 10) / 2, rel=0.2)
    assert found["refused"] == 50


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
    (
        *(
            Cell(policy, Scenario(topology, "jobs", None), seed)
            for topology in "abc"
            for seed in (0, 1)
            for policy in NAMES
        ),
        *(
            Cell(policy, Scenario(topology, "trace.csv", None), 0, {"trace": "trace.csv"})
            for topology in "ab"
            for policy in NAMES
        ),
    )
)
OUTCOMES = [made_up(cell) for cell in MADE_UP.cells]


def test_scores_are_means_over_all_scenarios() -> None:
    fast, reference, picky, fails = suite.scores_of(MADE_UP, OUTCOMES)
    assert [one.policy for one in (fast, reference, picky, fails)] == ["fast", "random-fit", "picky", "fails"]
    found = fast.interval("turnaround")
    assert found is not None
    assert found[0] == pytest.approx((1 / 6) ** (1 / 3))
    assert found[1] == pytest.approx(found[0])  # no seed differs from another
    assert {one.topology: seeds for one, seeds in fast.cells["turnaround"].items()} == {
        topology: (pytest.approx(log), pytest.approx(log))
        for topology, log in {"a": math.log(1 / 2), "b": math.log(1 / 3), "c": 0.0}.items()
    }
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


def estimated(values: Sequence[Sequence[float]]) -> scores.Estimate:
    found = scores.Estimate.of({Scenario(str(at), "jobs", None): tuple(one) for at, one in enumerate(values)})
    assert found is not None
    return found


def test_scenarios_are_fixed_and_seeds_are_drawn() -> None:
    """What differs from scenario to scenario widens no interval; what differs from seed to seed does."""
    assert estimated([[1.0, 1.0], [5.0, 5.0]]) == scores.Estimate(3.0, 0.0, 1)
    found = estimated([[0.0, 2.0], [5.0, 5.0]])
    assert found.mean == 3.0
    assert found.error == pytest.approx(
        math.sqrt(2 / 2) / 2
    )  # variance 2 over two seeds, of one of two scenarios
    assert found.degrees == 1
    assert found.margin(0.05) == pytest.approx(12.706 * found.error, rel=1e-4)
    assert estimated([[0.0, 2.0], [4.0, 6.0]]).degrees == 2
    assert estimated([[7.0], [math.nan, 9.0]]) == scores.Estimate(8.0, 0.0, 1)


def test_nineteen_of_twenty_intervals_hold_the_mean_over_all_seeds() -> None:
    random = np.random.default_rng(1)
    means, spreads = np.array([0.0, 3.0, -1.0, 8.0]), np.array([0.1, 1.0, 2.0, 0.0])
    drawn = means[:, None] + spreads[:, None] * random.normal(size=(2000, 4, 4))
    estimates = [estimated(one.tolist()) for one in drawn]
    held = [abs(one.mean - means.mean()) <= one.margin(0.05) for one in estimates]
    assert np.mean(held) == pytest.approx(0.95, abs=0.02)


def test_the_best_policy_is_seldom_left_out() -> None:
    """Of ten equal policies, each is the best, and so is one that the draw makes look worse."""
    random = np.random.default_rng(2)
    scenarios = [Scenario(name, "jobs", None) for name in "abcd"]

    def table() -> list[scores.Score]:
        made: list[scores.Score] = []
        for number in range(10):
            cells = {one: tuple(random.normal(size=4).tolist()) for one in scenarios}
            refused = dict.fromkeys(scenarios, (0.0,) * 4)
            made.append(scores.Score(f"p{number}", {"turnaround": cells, "refused": refused}, {}))
        return made

    left_out = ["p3" not in scores.best_by(table(), "turnaround") for _ in range(300)]
    assert np.mean(left_out) <= 0.05


def test_traces_that_are_held_out_say_whether_the_order_holds() -> None:
    kept = scores.held_out(MADE_UP, OUTCOMES)
    assert kept is not None
    assert kept.best == "fast"
    assert kept.agreement == pytest.approx(1.0)
    turned = [
        {**one, "turnaround": 1e12}
        if cells.is_held_out(cell) and cell.policy == "fast" and not isinstance(one, str)
        else one
        for cell, one in zip(MADE_UP.cells, OUTCOMES, strict=True)
    ]
    kept = scores.held_out(MADE_UP, turned)
    assert kept is not None
    assert kept.best == "random-fit"
    assert kept.agreement < 1
    shown = suite.scores_of(MADE_UP, turned)
    assert shown == suite.scores_of(MADE_UP, OUTCOMES)  # no figure of them is seen
    sentences = document.conclusions(MADE_UP, turned, shown)
    assert sentences[0] == "By the shortest turnaround: fast, and no other."
    assert "On a slice of trace.csv, which" in sentences[-1]


def test_the_reference_must_be_there() -> None:
    alone = Plan((Cell("fcfs", Scenario("a", "jobs", None), 0),))
    with pytest.raises(ValueError, match="the plan has no cells of random-fit"):
        suite.scores_of(alone, ["it cannot"])


def test_unknown_policies_are_refused_before_the_first_cell() -> None:
    with pytest.raises(ValueError, match="name = 'best': no such policy"):
        suite.plan(["fcfs", "best"])


def test_a_broken_model_is_named() -> None:
    cells = {cell.scenario.workload: cell for cell in suite.plan(["r-queue"], quick=True).cells}
    found = suite.simulate(cells["serving"])
    assert not isinstance(found, str)
    assert found["refused"] == 0
    broken = Cell("fcfs", cells["serving"].scenario, 0, {"performance": f"{__name__}:BROKEN"})
    assert "not a number" in str(suite.simulate(broken)) or "nan" in str(suite.simulate(broken))


class Broken:
    """A model whose run times are no numbers."""

    def run_time(self, *_: object) -> float:
        return math.nan


BROKEN = Broken()


def test_the_page_begins_with_the_scores_and_hides_traces(tmp_path: Path) -> None:
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
    assert "jobs on a" in text
    assert "trace.csv on a" not in text


def test_a_document_keeps_what_is_outside_the_marks(tmp_path: Path) -> None:
    path = tmp_path / "text.md"
    marks = "<!-- begin: topoplace sweep suite --write -->\nold\n<!-- end -->"
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
    text = (repository / "benchmarks/suite.txt").read_text("utf-8")
    expected = f"Suite version {suite.VERSION}, 6 machines and clusters, 6 workloads, {suite.SEEDS} seeds."
    assert expected in text
    rows = re.findall(r"^\| ([\w-]+) \| \d\.\d{3} ", text, re.MULTILINE)
    assert set(suite.POLICIES) == set(rows)
    for name in (*topologies.NAMES, *workloads.NAMES):
        assert f"| {name} | " in text


def test_a_trace_may_be_called_like_a_workload_but_not_like_another(tmp_path: Path) -> None:
    path = trace(tmp_path, [1] * 300).rename(tmp_path / "philly")
    held = [cell for cell in suite.plan(["fcfs"], traces=[path], quick=True).cells if cells.is_held_out(cell)]
    assert cells._workload(held[0]).base_time.tolist() == [60.0] * 100  # pyright: ignore[reportPrivateUsage]
    with pytest.raises(ValueError, match="two files are called philly"):
        suite.plan(["fcfs"], traces=[path, path], quick=True)
