"""Traces of others, in the columns that their authors describe, become jobs; what no row says is stated or noted."""

from __future__ import annotations

import gzip
import json
import re
from pathlib import Path
from typing import Any, cast

import pytest

import topoplace as tp
from topoplace.jobs.job_graph import JobGraph
from topoplace_lab.simulate import Workload, read_workload
from traces import HELIOS, KALOS, MODELS, OPENB, PAI, PAI_HEADER, PHILLY, attempt


def test_pods_of_openb() -> None:
    found = Workload.from_trace(OPENB, without_gpus=True)
    first, second, third = found.jobs
    assert (first.gpu_fraction, first.gpu_model, first.cpus) == (0.46, ("V100M16", "V100M32"), 3.152)
    assert first.memory_gb == 1.048576
    assert (second.num_tasks, second.gpu_fraction, second.memory_gb) == (8, 1.0, None)
    assert all(job.single_machine for job in (first, second))
    assert third == JobGraph.without_gpus(cpus=4, memory_gb=2.097152)
    assert found.submit_time.tolist() == [100, 120, 130]
    assert found.base_time.tolist() == [250, 180, 250]  # a pod that was never scheduled: since its creation
    assert found.report is not None
    assert found.report.unused == ("pod_phase", "qos")
    assert len(Workload.from_trace(OPENB)) == 2


def test_pods_without_times_come_in_their_order() -> None:
    text = "name,cpu_milli,memory_mib,num_gpu,gpu_milli\na,1000,1,1,500\nb,1000,1,1,1000\n"
    with pytest.raises(ValueError, match="line 2: duration_s is unknown"):
        Workload.from_trace(text)
    found = Workload.from_trace(text, duration=5)
    assert found.submit_time.tolist() == [0, 1]
    assert found.report is not None
    assert found.report.assumed == ("one job submitted each second, in the order of the rows",)


@pytest.mark.parametrize("header", ["", PAI_HEADER], ids=["bare", "header"])
def test_tasks_of_pai(header: str) -> None:
    found = Workload.from_trace(header + PAI, pattern="star")
    shared, whole = found.jobs
    assert found.job_ids == ("j0/worker", "j1/tensorflow")
    assert (shared.num_tasks, shared.gpu_fraction, shared.processes, shared.cpus) == (2, 0.5, 2, 8)
    assert shared.memory_gb == pytest.approx(2 * 29.296875 * 2**30 / 1e9)
    assert (whole.num_tasks, whole.gpu_fraction, whole.processes, whole.cpus) == (6, 1.0, 3, 18)
    assert whole.edges == JobGraph.star(6).edges
    assert found.base_time.tolist() == [50, 5]
    assert found.report is not None
    assert dict(found.report.skipped) == {"without GPUs": 1, "that never ran": 1}
    assert "gpu_type" in found.report.unused  # assigned, not requested
    with pytest.raises(
        ValueError, match=r"line \d: plan_gpu = '150.0', neither whole GPUs nor a share of one"
    ):
        Workload.from_trace(header + PAI.replace(",200.0,", ",150.0,"))
    with pytest.raises(ValueError, match=r"line \d: inst_num = '1.5', not a whole number"):
        Workload.from_trace(header + PAI.replace("worker,2.0,", "worker,1.5,"))


def test_jobs_of_helios() -> None:
    found = Workload.from_trace(HELIOS)
    wide, small = found.jobs
    assert found.submit_time.tolist() == [0, 120]
    assert found.base_time.tolist() == [3600, 30]
    assert (wide.num_tasks, wide.cpus, wide.max_machines, wide.single_machine) == (16, 32, 2, False)
    assert (small.max_machines, small.single_machine) == (None, True)
    assert found.report is not None
    assert dict(found.report.skipped) == {"that never ran": 1}
    with pytest.raises(ValueError, match="line 2: submit_time = 'June', not a number"):
        Workload.from_trace(HELIOS.replace("2020-06-09 18:41:01", "June"))
    with pytest.raises(ValueError, match=r"line 2: submit_time = '2020-06-39.*', neither seconds nor a time"):
        Workload.from_trace(HELIOS.replace("2020-06-09 18:41:01", "2020-06-39 18:41:01"))
    with pytest.raises(ValueError, match="line 4: end_time = '2020-06-09 18:42:31', is before the start"):
        Workload.from_trace(HELIOS.replace("18:43:31", "18:42:31"))


def test_jobs_of_acme() -> None:
    found = Workload.from_trace(KALOS)
    assert found.base_time.tolist() == [8, 600]  # the column duration has the wait, too
    assert found.submit_time.tolist() == [0, 0]
    assert [job.memory_gb for job in found.jobs] == [8000.0, None]


def test_jobs_of_philly() -> None:
    text = json.dumps(PHILLY)
    ended = Workload.from_philly(text, skip_bad_rows=True)
    assert ended.job_ids == ("a",)
    assert ended.report is not None
    assert ended.report.skipped["whose end is unknown"] == 1
    found = Workload.from_philly(text, duration=7, skip_bad_rows=True)
    assert found.job_ids == ("a", "c")
    assert [job.num_tasks for job in found.jobs] == [8, 1]
    assert found.submit_time.tolist() == [30, 0]
    assert found.base_time.tolist() == [660, 7]
    assert found.report is not None
    assert found.report.bad == ("jobs[3]: submitted_time = 'soon', not a time like 2017-10-07 01:12:09",)
    assert found.report.skipped["that never ran"] == 1
    assert found.report.unused == ("status", "user", "vc")
    again = Workload.from_philly(json.dumps([PHILLY[0], PHILLY[0]]), skip_bad_rows=True)
    assert len(again) == 1


@pytest.mark.parametrize(
    ("record", "message"),
    [
        (5, "the job = 5 is not an object"),
        ({"jobid": 5}, "jobid = 5"),
        ({"jobid": "x"}, "attempts = None is not a list"),
        ({"jobid": "x", "attempts": [5]}, "an attempt = 5 is not an object"),
        ({"jobid": "x", "attempts": [{"detail": 5}]}, "detail = 5 is not a list"),
        ({"jobid": "x", "attempts": [attempt(None, None, 1)]}, "submitted_time is unknown"),
        (PHILLY[0] | {"submitted_time": 5}, "submitted_time = 5, not a time"),
    ],
    ids=map(str, range(7)),
)
def test_damaged_jobs_of_philly_are_refused(record: object, message: str) -> None:
    with pytest.raises(ValueError, match=rf"^jobs\[0\]: {message}"):
        Workload.from_philly(json.dumps([record]))


def test_columns_may_have_other_names() -> None:
    text = "id,when,gpus,seconds,ram\na,5,2,60,1000\n"
    names = {"job_id": "id", "submit_s": "when", "num_gpus": "gpus", "duration_s": "seconds"}
    found = Workload.from_trace(text, columns=names)
    assert found.base_time.tolist() == [60]
    assert found.report is not None
    assert found.report.unused == ("ram",)
    assert Workload.from_trace(text, columns=names | {"mem_mib": "ram"}).jobs[0].memory_gb == 1.048576
    with pytest.raises(ValueError, match="columns = 'rum': the columns are id, when, gpus"):
        Workload.from_trace(text, columns=names | {"mem_mib": "rum"})
    with pytest.raises(ValueError, match="columns = 'size': not one of job_id"):
        Workload.from_trace(text, columns={"size": "gpus"})
    with pytest.raises(ValueError, match="line 2: gpus = 'two'"):
        Workload.from_trace(text.replace(",2,", ",two,"), columns=names)
    with pytest.raises(ValueError, match=r"^columns = 5"):
        Workload.from_trace(text, columns=cast("Any", 5))


@pytest.mark.parametrize(
    ("given", "sensitive"),
    [
        (None, "ace"),
        (True, "abce"),
        (False, "e"),
        (("vgg",), "ae"),
        (["alexnet", "lstm/1"], "bce"),
    ],
    ids=str,
)
def test_which_jobs_are_sensitive_is_stated(given: Any, sensitive: str) -> None:
    found = Workload.from_trace(MODELS, bandwidth_sensitive=given)
    marked = [i for i, job in zip(found.job_ids, found.jobs, strict=True) if job.bandwidth_sensitive]
    assert "".join(marked) == sensitive
    assert found.jobs[2].edges == JobGraph.ring(3).edges
    assert found.report is not None
    assumed = "jobs of several GPUs are bandwidth sensitive, others are not" in found.report.assumed
    assert assumed == (given is None)


@pytest.mark.parametrize("name", ["resnet", "vgg/5"])
def test_a_model_of_no_job_is_refused(name: str) -> None:
    with pytest.raises(
        ValueError,
        match=f"bandwidth_sensitive = '{name}': no job is of this model; the models of the jobs are alexnet, lstm",
    ):
        Workload.from_trace(MODELS, bandwidth_sensitive=["vgg", name])
    with pytest.raises(
        ValueError, match="bandwidth_sensitive = 'vgg': no job is of this model; the rows name no models"
    ):
        Workload.from_philly(json.dumps(PHILLY[:1]), bandwidth_sensitive=["vgg"])


def test_logs_get_a_pattern_too() -> None:
    line = "1 0 0 10 4 -1 -1 4 -1 -1 1 1 1 1 1 1 -1 -1\n"
    (plain,) = Workload.from_swf(line).jobs
    assert (plain.edges, plain.bandwidth_sensitive, plain.processes) == ((), False, 4)
    found = Workload.from_swf(line, pattern="ring")
    assert found.jobs[0].edges == JobGraph.ring(4).edges
    assert found.jobs[0].with_(bandwidth_sensitive=False).processes == 4
    assert found.jobs[0].bandwidth_sensitive
    assert Workload.from_swf(line, bandwidth_sensitive=True).jobs[0].bandwidth_sensitive


@pytest.mark.parametrize(
    ("text", "jobs"),
    [
        (OPENB, 2),
        (PAI, 2),
        (HELIOS, 2),
        (MODELS, 5),
        (json.dumps(PHILLY[:1]), 1),
        ("1 0 0 10 1 -1 -1 1 -1 -1 1 1 1 1 1 1 -1 -1\n", 1),
        ("2,ring,0,30,0,a\n", 1),
        ("pattern,gpus,submit,run_time\nring,2,0,5\n", 1),
        ('{"x": {"gpus": 2, "arrival": 0, "time": 3}}', 1),
    ],
    ids=["openb", "pai", "helios", "own", "philly", "swf", "mapa", "short", "manifests"],
)
def test_a_file_is_recognised(text: str, jobs: int, tmp_path: Path) -> None:
    path = tmp_path / "jobs"
    for data in (text.encode(), gzip.compress(text.encode())):
        path.write_bytes(data)
        assert len(read_workload(path)) == jobs
        with path.open("rb") as file:
            assert len(read_workload(file)) == jobs


def test_options_that_a_format_does_not_need_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "jobs"
    path.write_text(OPENB)
    with pytest.raises(ValueError, match="gpus_per_node = 2: not for a CSV trace"):
        read_workload(path, gpus_per_node=2)
    path.write_text("pattern,gpus,submit,run_time\nring,2,0,5\n")
    with pytest.raises(ValueError, match="duration = 2: not for CSV of pattern"):
        read_workload(path, duration=2)
    path.write_text(" \n")
    with pytest.raises(ValueError, match=r"^empty$"):
        read_workload(path)


@pytest.mark.parametrize("read", [Workload.from_trace, Workload.from_csv, Workload.from_philly])
@pytest.mark.parametrize("name", ["jobs.csv", Path("jobs.csv")])
def test_the_name_of_a_file_is_no_text(read: Any, name: object) -> None:
    with pytest.raises(ValueError, match=r"^text = 'jobs\.csv' is the name of a file; give the text in it"):
        read(name)


def test_an_open_file_is_read_line_by_line(tmp_path: Path) -> None:
    path = tmp_path / "trace.csv"
    path.write_text(OPENB)
    with path.open() as file:
        assert len(Workload.from_trace(file)) == 2
    for wrong in (b"x", 5, {"a": 1}, [5]):
        with pytest.raises(ValueError, match=r"^text"):
            Workload.from_trace(cast("Any", wrong))


@pytest.mark.parametrize(
    ("name", "rows", "gpus", "spec"),
    [("openb-default-half", 4004, 3485, 0), ("openb-gpuspec33-half", 4004, 3485, 1181)],
)
def test_openb_as_it_is_published(name: str, rows: int, gpus: int, spec: int, shared: Path) -> None:
    path = shared / f"data/traces/{name}.csv.gz"
    if not path.exists():
        pytest.skip(f"the trace {name} is not on this machine")
    found = read_workload(path, without_gpus=True)
    assert len(found) == rows
    assert sum(job.num_tasks > 0 for job in found.jobs) == gpus
    assert sum(job.gpu_model is not None for job in found.jobs) == spec
    assert isinstance(tp.JobGraph.from_json(found.jobs[1].to_json()), JobGraph)


@pytest.mark.parametrize(
    ("header", "row", "columns", "gpus", "share", "said"),
    [
        ("num_gpus_per_worker,worker_num", "2,4", {}, 8, 1.0, "num_gpus_per_worker x worker_num"),
        ("gpuPerInstance,instances", "2,4", {}, 8, 1.0, "gpuPerInstance x instances"),
        ("gpu_each,workers", "2,4", {"num_gpus": "gpu_each"}, 8, 1.0, "gpu_each x workers"),
        ("plan_gpu,inst_num", "50,4", {"num_gpus": "plan_gpu"}, 4, 0.5, "plan_gpu x inst_num"),
        ("plan_gpu,node", "200,4", {"num_gpus": "plan_gpu"}, 2, 1.0, "plan_gpu GPUs, as one process"),
        ("gpus_per_node,num_nodes", "8,2", {}, 16, 1.0, "gpus_per_node x num_nodes"),
        ("num_gpus,worker_num", "8,2", {}, 8, 1.0, "num_gpus is of the whole job, not of each of worker_num"),
        ("gpu_request,replicas", "8,2", {"num_gpus": "gpu_request"}, 8, 1.0, "gpu_request is of the whole"),
        ("gpus_each,instances", "8,2", {}, 16, 1.0, "1 jobs"),
        ("g,w", "3,2", {"gpus_each": "g", "instances": "w"}, 6, 1.0, "1 jobs"),
    ],
)
def test_gpus_of_each_process_are_multiplied_or_noted(
    header: str, row: str, columns: dict[str, str], gpus: int, share: float, said: str
) -> None:
    found = Workload.from_trace(f"job_id,submit_s,duration_s,{header}\na,0,9,{row}\n", columns=columns)
    assert (found.jobs[0].num_tasks, found.jobs[0].gpu_fraction) == (gpus, share)
    assert said in str(found.report)


GROUPED = """job_id,submit_s,num_gpus,duration_s,groups,balanced
even,0,96,60,48@rack; 8@machine,
uneven,1,20,60,8+8+4@machine,
shared,2,16,60,,rack
plain,3,4,60,,
"""


def test_groups_of_rows_are_required_and_survive_manifests_and_results(tmp_path: Path) -> None:
    found = Workload.from_trace(GROUPED, pattern="ring", bandwidth_sensitive=True)
    even, uneven, shared, plain = found.jobs
    assert even.groups == JobGraph.ring(96).grouped(48, within="rack").grouped(8, within="machine").groups
    assert uneven.groups == JobGraph.ring(20).grouped([8, 8, 4], within="machine").groups
    assert (shared.groups, shared.balanced, plain.groups, plain.balanced) == ((), "rack", (), None)
    assert found.report is not None
    assert found.report.unused == ()
    assert Workload.from_manifests(found.to_manifests()).jobs == found.jobs
    racks = tp.Topology.cluster(tp.machines.get("dgx-h100"), 12, racks=6)
    run = tp.simulate(racks, found, tp.policies.get("baseline"))
    machines = racks.machine_of[list(run.jobs["gpus"][0])].reshape(12, 8)
    assert (machines == machines[:, :1]).all()
    assert [set(half // 6) for half in machines[:, 0].reshape(2, 6)] in ([{0}, {1}], [{1}, {0}])
    run.save(tmp_path / "run.csv")
    again = type(run).load(tmp_path / "run.csv")
    assert sorted((record.job for record in again.records), key=found.jobs.index) == list(found.jobs)


@pytest.mark.parametrize(
    ("cell", "why"),
    [
        ("8", "'8' is not SIZE@LEVEL, such as 8@machine"),
        ("8@", "'8@' is not SIZE@LEVEL"),
        ("tensor@machine", "groups = 'tensor' is no dimension of the job"),
        ("0@machine", "'0@machine' has a group without tasks"),
        ("9@machine", "groups = 9 is not in 1..8"),
        ("4@rack;3@machine", "groups: the group of tasks 3, 4, 5 within 'machine' crosses "),
    ],
)
def test_wrong_groups_of_a_row_are_named(cell: str, why: str) -> None:
    text = f"job_id,submit_s,num_gpus,duration_s,groups\na,0,8,60,{cell}\n"
    with pytest.raises(ValueError, match=re.escape(f"line 2: groups = '{cell}': {why}")):
        Workload.from_trace(text)


def test_groups_of_a_job_without_gpus_are_refused() -> None:
    text = "job_id,submit_s,num_gpus,duration_s,cpus,groups\na,0,0,60,4,8@machine\n"
    with pytest.raises(ValueError, match="line 2: groups = '8@machine': groups = 8 is not in"):
        Workload.from_trace(text, without_gpus=True)
