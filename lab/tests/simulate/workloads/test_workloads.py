from __future__ import annotations

import gzip
import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import topoplace as tp
from topoplace.jobs.performance_profile import PerformanceProfile
from topoplace.testing.strategies import job_graphs
from topoplace_lab.papers.sc17.measured import NAMES, authors_profile
from topoplace_lab.papers.sc17.scenarios import five_jobs
from topoplace_lab.simulate import SC17_WEIGHTS, Workload

TRACE = "job_id,submit_s,duration_s,num_gpus,gpu_milli,gpu_type,cpus,mem_mib,nodes,group,model,batch,min_utility,x\n"


def same(ours: Workload, theirs: Workload) -> bool:
    return (ours.jobs, ours.job_ids, ours.submit_time.tolist(), ours.base_time.tolist()) == (
        theirs.jobs,
        theirs.job_ids,
        theirs.submit_time.tolist(),
        theirs.base_time.tolist(),
    )


@st.composite
def workloads(draw: st.DrawFn) -> Workload:
    """In order of submission, as manifests are; graphs and needs that the prototype knows, and others."""
    jobs = [
        job.with_(
            profile=draw(st.none() | st.sampled_from([*NAMES, "alone", "/", "a/b/c", "/x"])),
            min_utility=draw(st.sampled_from([0.0, 0.5])),
            cpus=draw(st.sampled_from([None, 0, 2])),
            memory_gb=draw(st.sampled_from([None, 1.5])),
            single_machine=draw(st.booleans()),
        )
        for job in draw(st.lists(job_graphs(max_tasks=3), max_size=8))
    ]
    times = sorted(draw(st.lists(st.floats(0, 1e6), min_size=len(jobs), max_size=len(jobs))))
    ids = draw(
        st.lists(
            st.integers(0, 99).map(str) | st.sampled_from(["a", "007", "²"]),
            min_size=len(jobs),
            max_size=len(jobs),
            unique=True,
        )
    )
    return Workload(jobs, times, draw(st.permutations(times)), ids)


@given(workloads())
def test_manifests_keep_every_job(workload: Workload) -> None:
    assert same(Workload.from_manifests(workload.to_manifests()), workload)
    listed = json.dumps(list(json.loads(workload.to_manifests()).values()))
    assert same(Workload.from_manifests(listed), workload)


def test_manifests_have_the_fields_of_the_prototype() -> None:
    manifest = {
        "7": {"id": 7, "type": "bvlc_alexnet", "size": "4", "gpus": 3, "mem": 2, "tasks": 1, "arrival": 3.5}
    }
    manifest["7"] |= {"minimal_utility": 0.4, "color": "#00ff00", "time": 0.25}
    workload = Workload.from_manifests(json.dumps(manifest), authors_profile(), weights=SC17_WEIGHTS)
    job = workload.jobs[0]
    assert (job.profile, job.num_tasks, job.memory_gb, job.cpus, job.min_utility) == (
        "bvlc_alexnet/4", 3, 2.0, 1, 0.4,
    )  # fmt: skip
    assert {weight for *_, weight in job.edges} == {3.0}
    assert job.single_machine
    assert workload.base_time.tolist() == [201.4]
    unprofiled = Workload.from_manifests(json.dumps(manifest))
    assert unprofiled.base_time.tolist() == [0.25]
    assert {weight for *_, weight in unprofiled.jobs[0].edges} == {1.0}
    again = json.loads(unprofiled.to_manifests())["7"]
    assert again == manifest["7"] | {"color": "#000000"}


def test_equal_arrivals_are_in_the_order_of_their_colours() -> None:
    colours = {"0": "#0000b0", "1": "#0000a0", "2": "#0000c0"}
    records = [
        {"id": key, "gpus": 1, "arrival": 1 + (key == "2"), "time": 1, "color": color}
        for key, color in colours.items()
    ]
    assert Workload.from_manifests(json.dumps(records[::-1])).job_ids == ("1", "0", "2")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "not JSON"),
        ("3", "the text = 3"),
        ("[3]", r"jobs\[0\] = 3 is not a dict"),
        ('{"0": {"id": 0, "gpus": 1}}', "job '0': no 'arrival'"),
        ('[{"id": 0, "gpus": 0, "arrival": 0}]', r"jobs\[0\]: gpus = 0"),
        ('[{"id": 0, "gpus": 1, "arrival": "soon"}]', r"jobs\[0\]: arrival = 'soon'"),
        ('[{"id": 0, "gpus": 1, "arrival": 0, "minimal_utility": 2}]', r"jobs\[0\]: min_utility = 2"),
        ('[{"id": 0, "gpus": 1, "arrival": 0, "job": {}}]', r"jobs\[0\]: format and version"),
        ('[{"id": 0, "gpus": 1, "arrival": 0, "time": -1}]', r"jobs\[0\]: time = -1"),
        (
            '[{"id": 0, "gpus": 1, "arrival": 0, "time": 1}, {"id": "0", "gpus": 1, "arrival": 1, "time": 1}]',
            r"job_ids\[1\] = '0'",
        ),
        (
            '[{"id": "a7", "gpus": 1, "arrival": 0}]',
            r"jobs\[0\]: job 'a7' has no 'time': add it, or give a profile",
        ),
        ('[{"gpus": 1, "arrival": 0, "time": 1}]', r"jobs\[0\]: no 'id'"),
        ('[{"id": null, "gpus": 1, "arrival": 0, "time": 1}]', r"jobs\[0\]: id = None is not a string"),
        ('{"x": {"gpus": 1, "arrival": 0, "time": 1, "type": null}}', "job 'x': type = None is not a string"),
        (
            '{"x": {"gpus": 1, "arrival": 0, "time": 1, "size": [1]}}',
            r"job 'x': size = \[1\] is not a string",
        ),
        ("[" * 100_000 + "]" * 100_000, "nested too deeply"),
        ('[{"id": 0, "job": ' + "[" * 100_000 + "]" * 100_000 + "}]", "nested too deeply"),
    ],
)
def test_bad_manifests_are_refused(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Workload.from_manifests(text)


def test_a_manifest_in_an_object_by_id_need_not_repeat_the_id() -> None:
    workload = Workload.from_manifests(
        '{"x": {"gpus": 2, "arrival": 0, "time": 3, "type": "net", "size": 4}}'
    )
    assert (workload.job_ids, workload.jobs[0].profile) == (("x",), "net/4")


def test_a_manifest_of_an_unknown_kind_is_refused_with_a_profile() -> None:
    text = '[{"id": 0, "type": "vgg", "size": 1, "gpus": 2, "arrival": 0, "time": 1}]'
    assert Workload.from_manifests(text).jobs[0].profile == "vgg/1"
    with pytest.raises(ValueError, match=r"jobs\[0\]: 'vgg/1' on 2 GPUs is not in the profile"):
        Workload.from_manifests(text, authors_profile())


def test_a_trace_row_by_row() -> None:
    text = TRACE + (
        "a,1.5,60,2,1000,V100,7.5,1000,1,g,alexnet,4,0.4,y\n"
        "b,2,,1,500,V100|P100,,,,,bvlc_alexnet,1,,\n"
        "c,3,60,0,0,,4,,,,,,,\n"
        "d,0,1,3,1000,,0,0,2,,resnet,,,\n"
    )
    workload = Workload.from_trace(text, pattern="ring", profile=authors_profile(), bandwidth_sensitive=True)
    a, b, d = workload.jobs
    assert workload.job_ids == ("a", "b", "d")
    assert workload.submit_time.tolist() == [1.5, 2.0, 0.0]
    assert workload.base_time.tolist() == [60.0, 69.165, 1.0]
    needs: dict[str, Any] = {"gpu_model": "V100", "cpus": 7.5, "memory_gb": 1.048576, "single_machine": True}
    assert a == tp.JobGraph.ring(2).with_(
        bandwidth_sensitive=True, profile="alexnet/4", min_utility=0.4, **needs
    )
    assert (b.gpu_fraction, b.gpu_model, b.profile, b.single_machine) == (
        0.5,
        ("V100", "P100"),
        "bvlc_alexnet/1",
        False,
    )
    assert (d.profile, d.cpus, d.memory_gb, d.single_machine, d.edges) == (
        "resnet", None, None, False, tp.JobGraph.ring(3).edges,
    )  # fmt: skip
    assert Workload.from_trace(text.replace(",0.4,", ",,"), duration=5.0).base_time.tolist() == [60, 5, 1]


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ("a,1,60\n", "line 2: 3 columns, 14 needed"),
        ("a,soon,60,1,,,,,,,,,,\n", "line 2: submit_s = 'soon'"),
        (
            "a,6/9/2020 18:41,60,1,,,,,,,,,,\n",
            "line 2: submit_s = .*, neither seconds nor a time like 2020-06-09",
        ),
        ("a,1,-60,1,,,,,,,,,,\n", "line 2: duration_s = '-60'"),
        ("a,1,,1,,,,,,,,,,\n", "line 2: duration_s is unknown: add it, or give a profile"),
        ("\na,1,60,1.5,,,,,,,,,,\n", "line 3: num_gpus = '1.5'"),
        ("a,1,60,1,,,,,,,,,7,\n", "line 2: min_utility = 7"),
        ("a,1,60,1,0,,,,,,,,,\n", r"line 2: gpu_milli = '0', not a number 1\.\.1000"),
        ("a,1,60,1,1001,,,,,,,,,\n", r"line 2: gpu_milli = '1001', not a number 1\.\.1000"),
        ("a,1,60,1,,,,,0,,,,,\n", "line 2: nodes = '0', not a number from 1"),
        ("a,1,60,1,,,,,1.5,,,,,\n", "line 2: nodes = '1.5', not a whole number"),
        ("a,1,60,1,,,,,one,,,,,\n", "line 2: nodes = 'one'"),
        (",1,60,1,,,,,,,,,,\n", "line 2: job_id = '' is not a non-empty string"),
        ("a,1,60,1,,,,,,,,,,\n\n" * 2, "line 4: job_id = 'a', already in line 2"),
    ],
)
def test_bad_traces_are_refused_by_line(rows: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Workload.from_trace(TRACE + rows)
    with pytest.raises(
        ValueError, match=r"line 1: columns = .*must contain each of job_id, submit_s, num_gpus"
    ):
        Workload.from_trace("job_id,num_gpus\n")
    for separator in ";\t":
        with pytest.raises(ValueError, match=r"once; commas separate columns$"):
            Workload.from_trace(separator.join(("job_id", "submit_s", "num_gpus")))


@pytest.mark.parametrize(("nodes", "single"), [("1", True), ("1.0", True), ("2.0", False), ("", False)])
def test_jobs_of_a_trace_on_one_machine(nodes: str, single: bool) -> None:
    workload = Workload.from_trace(TRACE + f"a,1,60,2,,,,,{nodes},,,,,\n")
    assert workload.jobs[0].single_machine == single


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: Workload.from_trace(TRACE, duration=math.nan), "^duration = nan"),
        (lambda: Workload.from_trace(TRACE, duration=-1), "^duration = -1"),
        (lambda: Workload.from_trace(TRACE, profile=cast("Any", 5)), "^profile = 5"),
        (lambda: Workload.from_manifests("[]", cast("Any", 5)), "^profile = 5"),
        (lambda: Workload.from_manifests("[]", weights=cast("Any", 5)), "^weights = 5"),
        (lambda: Workload.from_manifests("[]", weights={"4": 0.0}), r"^weights\['4'\] = 0"),
        (lambda: Workload.sc17(1, profile=cast("Any", None)), "^profile = None"),
        (lambda: Workload.sc17(1, profile=authors_profile(), weights=cast("Any", 5)), "^weights = 5"),
        (lambda: Workload.sc17(1, mean_gap=1e30, profile=authors_profile()), r"^mean_gap = 1e\+30"),
        (lambda: Workload.poisson(1, 1e30, 1, [1]), r"^mean_gap = 1e\+30"),
        (lambda: Workload.poisson(1, 1, 1e30, [1]), r"^mean_time = 1e\+30"),
    ],
    ids=map(str, range(11)),
)
def test_a_bad_argument_is_named(call: Callable[[], Workload], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call()


@given(st.integers(0, 5), st.booleans())
def test_generated_jobs_of_sc17(seed: int, paper: bool) -> None:
    profile = authors_profile()
    workload = Workload.sc17(4000, seed, profile=profile, paper=paper)
    gaps = np.diff(workload.submit_time, prepend=0.0)
    assert gaps.mean() == pytest.approx(6.0 if paper else 10.0, rel=0.08)
    assert bool((gaps == np.round(gaps)).all()) != paper
    sizes = [job.num_tasks for job in workload.jobs]
    assert np.mean(sizes) == pytest.approx(1.78, rel=0.03)
    share = np.mean([job.profile is not None and "googlenet" in job.profile for job in workload.jobs])
    assert share == pytest.approx(0.25 if paper else 0.2, abs=0.03)
    small = np.mean([job.profile is not None and job.profile.endswith("/1") for job in workload.jobs])
    assert small == pytest.approx(0.125 if paper else 0.729, abs=0.03)
    assert all(0.30 <= job.min_utility < 0.52 for job in workload.jobs)
    ideal = [profile.ideal_time(job.profile or "", job.num_tasks) for job in workload.jobs]
    assert workload.base_time.tolist() == ideal
    assert same(workload, Workload.sc17(4000, seed, profile=profile, paper=paper))


def test_generated_jobs_need_a_profile_that_knows_them() -> None:
    with pytest.raises(ValueError, match=r"profile has no time of bvlc_\w+/\d+ on [123] GPUs"):
        Workload.sc17(3, profile=PerformanceProfile({}))
    weighted = Workload.sc17(200, profile=authors_profile(), weights=SC17_WEIGHTS)
    assert {weight for job in weighted.jobs for *_, weight in job.edges} <= {1.0, 2.0, 3.0, 4.0}
    assert {weight for job in weighted.jobs for *_, weight in job.edges} >= {3.0, 4.0}
    assert len(Workload.sc17(0, profile=authors_profile())) == 0


@pytest.mark.parametrize(
    ("name", "jobs"),
    [("philly", 47250), ("openb-default-half", 3485), ("chronus-slo", 13915), ("nasa-ipsc-processors", 9119)],
)
def test_published_traces_load(shared: Path, name: str, jobs: int) -> None:
    text = gzip.decompress((shared / "data" / "traces" / f"{name}.csv.gz").read_bytes()).decode()
    assert len(Workload.from_trace(text, pattern="independent")) == jobs


def test_the_published_five_jobs(shared: Path) -> None:
    text = gzip.decompress((shared / "data" / "traces" / "sc17-workload-5.csv.gz").read_bytes()).decode()
    read, ours = Workload.from_trace(text, bandwidth_sensitive=True), five_jobs()
    assert read.submit_time == pytest.approx(ours.submit_time, abs=1e-8)
    assert read.base_time == pytest.approx(ours.base_time)
    for theirs, job in zip(read.jobs, ours.jobs, strict=True):
        assert theirs.with_(cpus=None, memory_gb=None) == job


def test_mapas_times_reach_both_ends_of_their_published_range() -> None:
    workload = Workload.mapa(6000)
    times: dict[str, list[float]] = {}
    for job, time in zip(workload.jobs, workload.base_time.tolist(), strict=True):
        times.setdefault(job.profile or job.name, []).append(time)
    ranges = {(int(min(of_network)), int(max(of_network))) for of_network in times.values()}
    assert ranges == {(338, 410), (341, 415), (458, 549), (490, 593), (337, 410), (272, 328)}


@pytest.mark.parametrize("number", [-1, 2**24 + 1])
def test_a_number_of_jobs_that_cannot_be_generated_is_refused(number: int) -> None:
    with pytest.raises(ValueError, match=f"num_jobs = {number}"):
        Workload.mapa(number)
    with pytest.raises(ValueError, match=f"num_jobs = {number}"):
        Workload.poisson(number, 1.0, 1.0, [1])
