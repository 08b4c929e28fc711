"""The page has what the results have, loads nothing, and draws itself in a browser whatever jobs are called."""

from __future__ import annotations

import html
import json
import math
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import topoplace as tp
from browser import CHROMIUM, dumped
from topoplace_lab.report.page import contents, page, write_page
from topoplace_lab.simulate import MapaSlowdown, Result, Workload
from topoplace_lab.simulate.interruptions import History, Stay
from topoplace_lab.simulate.samples import Sample

HOSTILE = "</script><img src=x onerror=document.title='taken'>"


def run(policy: str, seed: int = 0, machine: str = "dgx1-v100", jobs: int = 30) -> Result:
    workload = Workload.mapa(num_jobs=jobs, seed=seed)
    topology = tp.machines.get(machine)
    return tp.simulate(topology, workload, tp.policies.get(policy), performance=MapaSlowdown(), seed=seed)


@pytest.fixture(scope="module")
def results() -> list[Result]:
    runs = [run(policy, seed) for seed in (0, 1) for policy in ("baseline", "topo-aware")]
    return [*runs, run("baseline", machine="summit")]


def data_of(text: str) -> Any:
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', text, re.DOTALL)
    assert found
    return json.loads(found[1])


def test_repetitions_of_a_policy_become_means_with_intervals(results: list[Result]) -> None:
    groups = contents.contents_of(results)["groups"]
    assert [group["name"] for group in groups] == ["dgx1-v100", "summit"]
    runs = groups[0]["rows"]
    assert [(one["policy"], one["repetitions"]) for one in runs] == [("baseline", 2), ("topo-aware", 2)]
    makespans = [result.summary()["makespan"] for result in (results[0], results[2])]
    expected = Sample.of(makespans, (0.0, math.inf))
    assert runs[0]["figures"]["makespan"] == pytest.approx(
        [expected.mean, expected.low, expected.high], abs=1e-3
    )
    share = 100 * Sample.of(result.summary()["utilization"] for result in (results[0], results[2])).mean
    assert runs[0]["figures"]["utilization"][0] == pytest.approx(share, abs=1e-3)


def test_only_runs_of_equal_options_are_repetitions(results: list[Result]) -> None:
    first, second = results[0], results[2]
    names = [
        {"load": "0.9"},
        {"load": "0.9", "backfill": "easy"},
        {"load": "0.5", "reslice": "True"},
        {},
        None,
    ]
    runs = [replace(first, options=options) for options in names]
    shown = contents.contents_of([*runs, replace(second, options={"load": "0.9"})])["groups"][0]["rows"]
    assert [(one["policy"], one["repetitions"]) for one in shown] == [
        ("baseline (load 0.9)", 2),
        ("baseline (backfill easy, load 0.9)", 1),
        ("baseline (load 0.5, reslice)", 1),
        ("baseline (without these options)", 1),
        ("baseline (options not recorded)", 1),
    ]
    shown = contents.contents_of([runs[0], runs[1]])["groups"][0]["rows"]  # what both have is not said
    assert [one["policy"] for one in shown] == [
        "baseline (without these options)",
        "baseline (backfill easy)",
    ]


def test_a_prediction_outside_the_range_of_its_fit_is_marked() -> None:
    workload = Workload([tp.JobGraph.clique(5).with_(bandwidth_sensitive=True)] * 2, [0.0, 0.0], [10.0, 10.0])
    result = tp.simulate(tp.machines.get("dgx1-v100"), workload, tp.policies.get("mapa-greedy"))
    assert min(result.jobs["scores"]["effective_bandwidth"]) < 0
    _, remark = contents.contents_of([result])["groups"][0]["notes"]
    assert remark.startswith(
        "effective bandwidth (EffBW) is extrapolated for all 2 bandwidth-sensitive jobs: eq. 2 of MAPA was fitted on"
    )


def test_jobs_and_stays_are_those_of_the_first_run(results: list[Result]) -> None:
    shown = contents.contents_of(results)["groups"][0]["rows"][1]
    jobs, stays = results[1].jobs, results[1].stays
    assert shown["left_out"] == 0
    assert shown["jobs"]["id"] == [str(job) for job in jobs["job"]]
    assert shown["jobs"]["wait"] == pytest.approx(jobs["wait"].tolist(), abs=1e-3)
    assert shown["stays"]["gpus"] == [list(gpus) for gpus in stays["gpus"]]
    assert [shown["jobs"]["id"][row] for row in shown["stays"]["job"]] == [str(job) for job in stays["job"]]


def test_what_is_not_finite_is_missing(results: list[Result]) -> None:
    figures = contents.contents_of(results)["groups"][0]["rows"][0]["figures"]
    assert figures["mean_utility"] == [None, None, None]  # baseline has no score of utility


def test_jobs_beyond_the_limit_are_counted(monkeypatch: pytest.MonkeyPatch, results: list[Result]) -> None:
    monkeypatch.setattr(contents, "MAX_JOBS", 12)
    shown = contents.contents_of(results)["groups"][0]["rows"][0]
    assert (len(shown["jobs"]["id"]), shown["left_out"]) == (12, 18)
    assert max(shown["stays"]["job"]) < 12
    assert shown["figures"] == contents.contents_of(results)["groups"][0]["rows"][0]["figures"]


def test_machines_are_named_with_their_racks() -> None:
    fabric = tp.Fabric(("a", "b"), (tp.Level("rack", ("r0", "r1")),))
    topology = tp.Topology.cluster(tp.machines.get("dgx1-v100"), fabric=fabric)
    result = tp.simulate(topology, Workload.mapa(num_jobs=5, seed=0), tp.policies.get("baseline"))
    machines = contents.contents_of([result])["groups"][0]["machines"]
    assert [(one["name"], one["rack"], one["gpus"][0]) for one in machines] == [
        ("a", "r0", 0),
        ("b", "r1", 8),
    ]


def test_topologies_of_one_name_are_told_apart(results: list[Result]) -> None:
    first = results[0]
    other = replace(tp.machines.get("dgx1-p100"), name=first.topology.name)
    groups = contents.contents_of([first, replace(first, topology=other), first])["groups"]
    assert [group["rows"][0]["repetitions"] for group in groups] == [2, 1]


def test_runs_of_other_numbers_of_jobs_are_no_repetitions(results: list[Result]) -> None:
    groups = contents.contents_of([results[0], run("baseline", jobs=5)])["groups"]
    assert [(group["num_jobs"], group["rows"][0]["repetitions"]) for group in groups] == [(30, 1), (5, 1)]


def test_it_begins_with_what_follows(results: list[Result]) -> None:
    """Only seeds that all policies ran with are compared."""
    other = replace(results[1], seed=7)
    (group,) = contents.contents_of([*results[:4], other])["groups"]
    assert re.fullmatch(
        r"topo-aware: jobs finish \d+\.\d % sooner than under baseline \(95 % interval .*, 2 seeds.*\)",
        group["conclusion"],
    )
    assert f'<div id="conclusions"><p>{group["conclusion"]}.</p></div>' in page(results[:4])
    assert '<div id="conclusions"><p>Given.</p></div>' in page(results[:4], conclusion="Given")
    assert contents.contents_of([results[0], other])["groups"][0]["conclusion"] == ""


def test_only_what_has_few_gpus_is_drawn_gpu_by_gpu(results: list[Result]) -> None:
    (group,) = contents.contents_of(results[:1])["groups"]
    assert group["drawing"].count("data-gpu=") == 8
    large = tp.Topology.cluster(tp.machines.get("dgx1-v100"), 129)
    (group,) = contents.contents_of([replace(results[0], topology=large)])["groups"]
    assert group["drawing"] is None


def test_no_result_is_refused() -> None:
    with pytest.raises(ValueError, match="results is empty"):
        write_page([], "page.html")


def hostile(results: list[Result]) -> list[Result]:
    """Return a result whose first job, policy and topology have a hostile name."""
    first = results[0]
    record = first.records[0]
    named = replace(record, submitted=replace(record.submitted, job_id=HOSTILE))
    topology = replace(first.topology, name=HOSTILE)
    return [replace(first, policy=HOSTILE, topology=topology, records=(named, *first.records[1:]))]


def test_names_cannot_leave_the_data(results: list[Result]) -> None:
    text = page(hostile(results), title=HOSTILE)
    assert HOSTILE not in text
    assert data_of(text)["groups"][0]["rows"][0]["jobs"]["id"][0] == HOSTILE
    assert f"<title>{html.escape(HOSTILE)}</title>" in text


@pytest.mark.parametrize("name", ["@TITLE@", "@LEAD@", "@STYLE@", "@BODY@", "@DATA@", "@SCRIPT@"])
def test_a_name_of_a_part_is_only_a_name(results: list[Result], name: str) -> None:
    record = results[0].records[0]
    named = replace(record, submitted=replace(record.submitted, job_id=name))
    text = page([replace(results[0], records=(named, *results[0].records[1:]))], title=name)
    assert f"<title>{name}</title>" in text
    assert data_of(text)["groups"][0]["rows"][0]["jobs"]["id"][0] == name
    assert text.count("const DATA = ") == text.count("color-scheme: light dark") == 1


def test_nothing_is_loaded(results: list[Result]) -> None:
    text = page(results)
    assert set(re.findall(r"https?://[^\\\"']+", text)) == {"http://www.w3.org/2000/svg"}
    assert "default-src 'none'" in text
    assert "@" not in re.sub(r"@media\b", "", text)  # no part is left to be filled in


@pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium")
@pytest.mark.parametrize("width", [360, 1600])
def test_it_draws_itself_in_a_browser(results: list[Result], tmp_path: Path, width: int) -> None:
    shown = drawn(tmp_path, [*results, *hostile(results)], width)
    assert 'data-ready-ms="' in shown
    figures = re.search(r'<table class="figures">(.*?)</table>', shown, re.DOTALL)
    assert figures
    assert re.findall(r"<tr><td class=\"text\">([^<]*)", figures[1]) == ["baseline", "topo-aware"]
    assert shown.count("<svg") >= 6
    assert "1 to 30 of 30 jobs under baseline" in shown


@pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium")
def test_a_hostile_name_is_only_shown(results: list[Result], tmp_path: Path) -> None:
    shown = drawn(tmp_path, hostile(results), 800)
    assert "<title>Policies compared</title>" in shown
    assert "<img" not in shown
    assert html.escape(HOSTILE, quote=False) in shown


@pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium")
def test_fewer_than_no_jobs_never_wait(results: list[Result], tmp_path: Path) -> None:
    first = results[0]
    record = next(one for one in first.records if one.placement and one.start == 0)
    assert record.placement
    stays = [Stay(record.placement, begin, begin + 40.0) for begin in (0.0, 60.0)]
    history = History(stays=stays, num_preemptions=2, since=60.0)
    stopped = replace(record, history=history, rejected="no more")  # twice pre-empted, and then rejected
    assert len(stopped.stays) == 2
    others = (one for one in first.records if one is not record)
    shown = drawn(tmp_path, [replace(first, records=(stopped, *others))], 800)
    chart = re.search(r'aria-label="jobs waiting over time".*?</svg>', shown, re.DOTALL)
    assert chart
    assert max(map(float, re.findall(r"V([0-9.]+)", chart[0]))) <= 128  # where the axis is


@pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium")
@pytest.mark.parametrize(("clicks", "ascending"), [(1, True), (2, False)])
def test_choosing_a_head_sorts_the_table(tmp_path: Path, clicks: int, ascending: bool) -> None:
    runs = [run(policy) for policy in ("baseline", "topo-aware", "fcfs", "mapa-greedy")]
    head = '[...document.querySelectorAll(".figures th")].find((one) => one.textContent === "makespan")'
    chosen = f"{head}.click();" * clicks
    shown = drawn(tmp_path, runs, 1600, f"<script>{chosen}</script>")
    figures = re.search(r'<table class="figures">(.*?)</table>', shown, re.DOTALL)
    assert figures
    order = re.findall(r"<tr><td class=\"text\">([^<]*)", figures[1])
    spans = {one.policy: one.summary()["makespan"] for one in runs}
    assert order == sorted(order, key=lambda policy: spans[policy] if ascending else -spans[policy])
    assert len({round(span) for span in spans.values()}) > 2
    assert figures[1].count("aria-sort") == 1


def drawn(folder: Path, results: list[Result], width: int, then: str = "") -> str:
    """Return the elements of the page after its script, and the elements `then`, have run in Chromium."""
    write_page(results, folder / "page.html")
    with (folder / "page.html").open("a", encoding="utf-8") as file:
        file.write(then)
    return dumped((folder / "page.html").as_uri(), folder, width)
