"""Every reader of jobs says how many rows it read, which it skipped and why, and which fields it did not use."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from topoplace_lab.simulate import Workload

TRACE = """job_id,submit_s,num_gpus,duration_s,gpu_type,gpu_milli,user
a,0,1,10,V100|A100,500,me
b,1,0,10,,,me
c,2,2,ten,,,me
d,3,2,10,T4,,me
"""
SWF = """; MaxProcs: 4
1 0 0 10 1 -1 -1 1 -1 -1 1 1 1 1 1 1 -1 -1
2 0 0 10 1 -1 -1 1 -1 -1 3 1 1 1 1 1 -1 -1
3 0 0 -1 1 -1 -1 1 -1 -1 1 1 1 1 1 1 -1 -1
4 0 0 10 1 -1 -1 1 -1 -1 1 1 1 1 2 1 -1 -1
1 0 0 10 1 -1 -1 1 -1 -1 1 1 1 1 1 1 -1 -1
"""
PBS = "01/01/2020 00:00:00;{kind};{job};queue={queue} ctime=1 start=2 end=5 Resource_List.ngpus=1 Exit_status=0\n"


def test_a_trace_reports_rows_skipped_and_columns_not_used() -> None:
    with pytest.raises(ValueError, match="line 4: duration_s = 'ten'"):
        Workload.from_trace(TRACE)
    found = Workload.from_trace(TRACE, skip_bad_rows=True)
    assert found.job_ids == ("a", "d")
    assert [job.gpu_model for job in found.jobs] == [("V100", "A100"), "T4"]
    report = found.report
    assert report is not None
    assert (report.rows, report.jobs, report.unused) == (4, 2, ("user",))
    assert dict(report.skipped) == {
        "without GPUs": 1,
        "bad (duration_s = 'ten', not a number from 0)": 1,
    }
    assert str(report) == (
        "4 rows, 2 jobs; skipped: 1 bad (duration_s = 'ten', not a number from 0), 1 without GPUs; "
        "bad: line 4; fields not used: user; "
        "assumed: pattern clique, jobs of several GPUs are bandwidth sensitive, others are not"
    )
    assert report.bad == ("line 4: duration_s = 'ten', not a number from 0",)
    assert json.loads(json.dumps(report.to_dict()))["rows"] == 4
    assert found.without("gpu_fraction").report == report


def test_a_row_of_a_wrong_length_is_bad_too() -> None:
    text = TRACE.replace("c,2,2,ten,,,me", "c,2,2")
    with pytest.raises(ValueError, match="line 4: 3 columns, 7 needed"):
        Workload.from_trace(text)
    report = Workload.from_trace(text, skip_bad_rows=True).report
    assert report is not None
    assert report.skipped["bad (3 columns, 7 needed)"] == 1
    assert report.rows == 4


def test_a_log_in_the_standard_format_reports() -> None:
    with pytest.raises(ValueError, match="line 6: job number = 1, already in line 2"):
        Workload.from_swf(SWF, queues=[1])
    report = Workload.from_swf(SWF, queues=[1], skip_bad_rows=True).report
    assert report is not None
    assert (report.rows, report.jobs) == (5, 1)
    assert dict(report.skipped) == {
        "of status 3": 1,
        "that never ran": 1,
        "of other queues": 1,
        "bad (job number = 1, already in line 2)": 1,
    }
    assert "wait time" in report.unused
    assert "run time" not in report.unused


def test_a_log_of_pbs_reports() -> None:
    rows = [("E", "1", "a"), ("E", "1", "a"), ("S", "2", "a"), ("E", "3", "b")]
    text = "".join(PBS.format(kind=kind, job=job, queue=queue) for kind, job, queue in rows)
    with pytest.raises(ValueError, match="line 5"):
        Workload.from_pbs(text + "?\n")
    report = Workload.from_pbs(text + "?\n", queues=["a"], skip_bad_rows=True).report
    assert report is not None
    assert (report.rows, report.jobs, report.unused) == (5, 1, ("Exit_status",))
    assert sum(report.skipped.values()) == 4
    assert report.skipped["of earlier runs of a job"] == 1
    assert report.skipped["records of type S"] == 1


def test_manifests_report() -> None:
    good = {"id": 1, "gpus": 2, "arrival": 0, "time": 5, "owner": "me"}
    text = json.dumps([good, {**good, "id": 2, "gpus": 0}])
    with pytest.raises(ValueError, match="gpus = 0"):
        Workload.from_manifests(text)
    report = Workload.from_manifests(text, skip_bad_rows=True).report
    assert report is not None
    assert (report.rows, report.jobs, report.unused) == (2, 1, ("owner",))


def test_short_formats_count_their_rows() -> None:
    report = Workload.from_csv("pattern,gpus,submit,run_time\nring,2,0,5\n").report
    assert report is not None
    assert str(report) == "1 rows, 1 jobs"
    assert Workload.mapa(3).report is None


@pytest.mark.parametrize(("name", "rows"), [("openb-default-half", 4004), ("dlrm2025", 9165)])
def test_every_row_of_a_public_trace_is_accounted_for(name: str, rows: int, shared: Path) -> None:
    path = shared / f"data/traces/{name}.csv.gz"
    if not path.exists():
        pytest.skip(f"the trace {name} is not on this machine")
    report = Workload.from_trace(gzip.decompress(path.read_bytes()).decode(), duration=1.0).report
    assert report is not None
    assert report.rows == rows
    assert report.jobs + sum(report.skipped.values()) == rows
