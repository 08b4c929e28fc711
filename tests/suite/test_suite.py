"""The standard suite: what it consists of, and how outcomes become scores."""

from __future__ import annotations

import hashlib
import math
import re
from pathlib import Path

import numpy as np
import pytest

from topoplace import policies
from topoplace.experiments import suite
from topoplace.experiments.suite import document, page, topologies, workloads
from topoplace.experiments.sweeps import Cell, Outcome, Plan, Scenario


def test_the_suite_is_as_large_as_it_says() -> None:
    assert len(topologies.NAMES) == 12 + topologies.NUM_CLUSTERS
    assert min(topologies.built(name).num_gpus for name in topologies.NAMES) >= 16
    assert all(
        topologies.built(name).num_machines > 1 for name in topologies.NAMES[-topologies.NUM_CLUSTERS :]
    )
    assert len(workloads.NAMES) == 8
    assert len(suite.plan(["fcfs", "fgd"]).cells) == 16 * 8 * 10 * 2


def content() -> str:
    """A digest of all that is measured; numbers are rounded, as libraries of mathematics differ in the last bit."""
    found = hashlib.sha256()
    for name in topologies.NAMES:
        found.update(f"{name} {topologies.built(name).digest()}\n".encode())
    for name in workloads.NAMES:
        drawn = workloads.drawn(name, 16, 3)
        for job in drawn:
            times = f"{job.submit_time:.4g} {job.base_time:.4g}"
            found.update(f"{name} {times} {job.job.to_json()}\n".encode())
    return found.hexdigest()[:12]


def test_what_is_measured_changes_only_with_the_version() -> None:
    """If this fails on purpose: raise VERSION, run the suite again, and put the new digest here."""
    assert (suite.VERSION, content()) == (1, "90b7a6664048")


@pytest.mark.parametrize("name", workloads.NAMES)
def test_workloads_depend_on_the_seed_and_ask_for_the_load(name: str) -> None:
    one, again, other = (workloads.drawn(name, 64, seed) for seed in (1, 1, 2))
    assert (one.jobs, one.base_time.tolist()) == (again.jobs, again.base_time.tolist())
    assert one.base_time.tolist() != other.base_time.tolist()
    assert len(one) == 192
    assert max(job.num_tasks for job in one.jobs) <= 16
    span = float(np.ptp(one.submit_time))
    gpus = np.array([job.num_tasks * job.gpu_fraction for job in one.jobs])
    load = float((gpus * one.base_time).sum()) / span / 64 if span else None
    assert load == (None if name == "batch" else pytest.approx(0.9))


def test_sensitive_jobs_and_shares_are_where_they_are_said_to_be() -> None:
    drawn = {name: workloads.drawn(name, 64, 0).jobs for name in workloads.NAMES}
    several = {name: [job for job in jobs if job.num_tasks > 1] for name, jobs in drawn.items()}
    assert not any(job.bandwidth_sensitive for job in drawn["insensitive"])
    for name in ("large", "pipelines", "odd"):
        assert all(job.bandwidth_sensitive for job in drawn[name])
    for name in ("mapa", "batch", "small", "shared"):
        share = np.mean([job.bandwidth_sensitive for job in several[name]])
        assert 0 < share < 1
    assert {job.gpu_fraction for job in drawn["shared"]} == {0.25, 0.5, 1.0}
    assert {job.gpu_fraction for name in drawn if name != "shared" for job in drawn[name]} == {1.0}


def made_up(cell: Cell) -> Outcome:
    """Policy "fast" takes half of the reference's time on a, a third on b, and refuses c."""
    factor = {"random-fit": 1.0, "fast": 0.5, "refuses": 1.0}[cell.policy]
    if cell.policy == "fast" and cell.scenario.topology == "b":
        factor = 1 / 3
    if cell.policy == "refuses" or (cell.policy == "fast" and cell.scenario.topology == "c" and cell.seed):
        return "it cannot"
    bandwidth = math.nan if cell.scenario.topology == "a" else 10.0 / factor
    return {
        "mean_turnaround": 100.0 * factor * (1 + cell.seed),
        "makespan": 7.0,
        "sensitive_slowdown": math.nan,
        "sensitive_effective_bandwidth": bandwidth,
    }


MADE_UP = Plan(
    tuple(
        Cell(policy, Scenario(topology, "jobs", None), seed)
        for topology in "abc"
        for seed in (0, 1)
        for policy in ("refuses", "random-fit", "fast")
    )
)
OUTCOMES = [made_up(cell) for cell in MADE_UP.cells]


def test_scores_are_geometric_means_over_what_both_run() -> None:
    fast, reference, refuses = suite.scores_of(MADE_UP, OUTCOMES)
    assert (fast.policy, reference.policy, refuses.policy) == ("fast", "random-fit", "refuses")
    assert (fast.scenarios, reference.scenarios, refuses.scenarios) == (2, 3, 0)
    assert fast.ratios["mean_turnaround"].values == (pytest.approx(math.sqrt(1 / 6)),) * 2
    assert fast.ratios["sensitive_effective_bandwidth"].mean == pytest.approx(3.0)  # of b alone
    assert "sensitive_slowdown" not in fast.ratios  # nothing has it
    assert reference.ratios["mean_turnaround"].values == (1.0, 1.0)
    assert fast.refused == {Scenario("c", "jobs", None): "it cannot"}
    assert document.refusals(refuses) == "jobs 3"
    assert refuses.ratios == {}


def test_the_reference_must_be_there() -> None:
    alone = Plan((Cell("fcfs", Scenario("a", "jobs", None), 0),))
    with pytest.raises(ValueError, match="the plan has no cells of random-fit"):
        suite.scores_of(alone, ["it cannot"])


def test_unknown_policies_are_refused_before_the_first_cell() -> None:
    with pytest.raises(ValueError, match="name = 'best': no such policy"):
        suite.plan(["fcfs", "best"])


def test_a_policy_that_rejects_a_job_refuses() -> None:
    cells = {cell.scenario.workload: cell for cell in suite.plan(["r-queue"], quick=True).cells}
    refused = suite.simulate(cells["shared"])
    assert isinstance(refused, str)
    assert refused.endswith("cannot be honoured: r-queue gives whole GPUs only")
    figures = suite.simulate(cells["mapa"])
    assert not isinstance(figures, str)
    assert figures["mean_turnaround"] > figures["mean_wait"] > 0
    assert figures["sensitive_slowdown"] >= 1
    assert figures["rejected"] == 0


def test_the_page_begins_with_the_scores(tmp_path: Path) -> None:
    quick = suite.plan(["random-fit", "fcfs", "r-queue"], quick=True)
    outcomes = [suite.simulate(cell) for cell in quick.cells]
    page.write(quick, outcomes, suite.scores_of(quick, outcomes), tmp_path / "suite.html")
    text = (tmp_path / "suite.html").read_text("utf-8")
    assert text.index("<td>fcfs</td>") < text.index("<h2>mapa on cubemesh-16</h2>")
    assert "<td>shared 2</td>" in text


def test_a_document_keeps_what_is_outside_the_marks(tmp_path: Path) -> None:
    path = tmp_path / "text.md"
    marks = "<!-- begin: topoplace suite --write -->\nold\n<!-- end -->"
    path.write_text(f"# Title\n{marks}\nlast\n", encoding="utf-8")
    quick = suite.plan(["random-fit"], quick=True)
    scores = suite.scores_of(quick, ["no"] * len(quick.cells))
    document.write(path, quick, scores)
    text = path.read_text("utf-8")
    assert text.startswith("# Title\n<!-- begin")
    assert text.endswith("<!-- end -->\nlast\n")
    assert "old" not in text
    assert "| random-fit | - | - | - | - | 0 | mapa 2, shared 2 |" in text
    path.write_text("no marks\n", encoding="utf-8")
    with pytest.raises(ValueError, match=r"text\.md: has no line <!-- begin"):
        document.split(path)


def test_the_documented_table_is_of_this_version_and_has_all_policies(repository: Path) -> None:
    text = (repository / "docs/suite.md").read_text("utf-8")
    whole = suite.plan(policies.names())
    seeds = {cell.seed for cell in whole.cells}
    assert (
        f"Suite version {suite.VERSION}, 16 machines and clusters, 8 workloads, {len(seeds)} seeds." in text
    )
    rows = re.findall(r"^\| ([\w-]+) \| .* \| (\d+) \| (?:-|[a-z]+ \d+.*) \|$", text, re.MULTILINE)
    assert {name for name, _ in rows} == set(policies.names())
    assert dict(rows)[suite.REFERENCE] == "128"
    for name in (*topologies.NAMES, *workloads.NAMES):
        assert f"| {name} | " in text
