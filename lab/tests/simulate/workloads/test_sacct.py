"""Dumps of Slurm's accounting are read as jobs with their nodes, GPUs, CPUs, memory and times."""

from __future__ import annotations

import io
import math
from pathlib import Path

import pytest

import topoplace as tp
from batch_logs import SACCT
from topoplace_lab.simulate import Workload, read_workload
from topoplace_lab.simulate.workloads.batch_systems.sacct import recorded

HEADING = "JobID|Submit|Start|End|Elapsed|NNodes|ReqTRES\n"


def line(**values: str) -> str:
    job = {"JobID": "1", "Submit": "100", "Start": "200", "End": "300", "Elapsed": "", "NNodes": "1"}
    return "|".join((job | {"ReqTRES": "gres/gpu=1"} | values).values()) + "\n"


def test_a_dump_line_by_line() -> None:
    workload = Workload.from_sacct(SACCT)
    assert workload.job_ids == ("8", "12", "7")
    assert workload.submit_time.tolist() == [0, 0, 10]
    assert workload.base_time.tolist() == [20, 50, 600]
    assert workload.requested_time[1:].tolist() == [3600, 3600]
    assert math.isnan(workload.requested_time[0])
    gib = 2**30 / 1e9
    assert workload.jobs[0] == tp.JobGraph.independent(16).with_(processes=2, cpus=4, memory_gb=2 * gib)
    assert workload.jobs[2] == tp.JobGraph.independent(4).with_(cpus=8, memory_gb=16 * gib)
    assert workload.report is not None
    assert dict(workload.report.skipped) == {
        "of steps": 1,
        "that never ran, or still run": 2,
        "without GPUs": 1,
        "of earlier runs of a job": 1,
    }
    assert workload.report.unused == ("User",)


def test_jobs_without_gpus_and_of_some_partitions() -> None:
    workload = Workload.from_sacct(SACCT, without_gpus=True, partitions=["cpu"])
    assert workload.jobs == (tp.JobGraph.without_gpus(cpus=2, memory_gb=2**30 / 1e9),)


def test_other_fields_and_forms() -> None:
    text = HEADING + line(Elapsed="1-00:00:01", ReqTRES="cpu=2,gres/gpu:v100=3,gres/gpu:a100=1")
    workload = Workload.from_sacct(text, pattern="ring")
    assert workload.base_time.tolist() == [86401]
    assert workload.jobs[0].name == "ring"
    assert workload.jobs[0].num_tasks == 4


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a|b\n1|2\n", "line 1: 'a|b' is no heading of sacct"),
        (HEADING + "1|2\n", "line 2: 2 fields, and 7 in the heading"),
        (HEADING + line(Submit="soon"), "line 2: Submit = 'soon', not a time like 2026-01-31T12:00:00"),
        (HEADING + line(Submit="Unknown"), "line 2: Submit = 'Unknown' is not a time"),
        (HEADING + line(End="150"), "line 2: End is before Start"),
        (HEADING + line(Elapsed="x"), "line 2: Elapsed = 'x', not a duration"),
        (HEADING + line(NNodes="-1"), "line 2: NNodes"),
        (HEADING + line(JobID=""), "line 2: job id = '' is not a non-empty string"),
        (HEADING + line(ReqTRES="gres/gpu=999999999"), "line 2: gres/gpu = 999999999, more than"),
    ],
)
def test_malformed_lines_are_named(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message.replace("|", r"\|")):
        Workload.from_sacct(text)
    if "heading of" not in message:
        assert len(Workload.from_sacct(text, skip_bad_rows=True)) == 0


def test_what_slurm_did() -> None:
    """Jobs 7, 8 and 12 twice ran with GPUs; the first was submitted at 10:00:00, the last ended at 10:11:00."""
    found = recorded(SACCT)
    assert (found.jobs, found.makespan) == (4, 660.0)
    assert found.mean_wait == (50 + 30 + 10 + 100) / 4
    with pytest.raises(ValueError, match="no job with GPUs ran"):
        recorded(HEADING + line(ReqTRES="cpu=1"))


def test_files_are_recognised(tmp_path: Path) -> None:
    path = tmp_path / "dump"
    path.write_text(SACCT, "utf-8")
    assert read_workload(path).job_ids == ("8", "12", "7")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "JobID|User|State\n3|u|COMPLETED\n",
            "a dump of sacct without Submit, NNodes, AllocTRES; use sacct -a -X -P",
        ),
        ("3|train|COMPLETED|2026-10-04T17:05:17|billing=8,gres/gpu=8\n", "without its heading; leave out -n"),
        ("JobID      State  AllocTRES\n----- ---------- ----------\n4 FAILED cpu=1\n", "in aligned columns"),
    ],
)
def test_other_forms_of_sacct_are_refused_by_name(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        read_workload(io.BytesIO(text.encode()))


@pytest.mark.parametrize("kind", ["h100_1g.10gb", "nvidia_a100_3g.20gb", "1g.5gb"])
def test_slices_are_no_whole_gpus(kind: str) -> None:
    heading = "JobIDRaw|Submit|Start|End|NNodes|AllocTRES\n"
    row = "{}|2026-01-01T00:00:00|2026-01-01T00:00:00|2026-01-01T01:00:00|1|{}\n"
    text = (
        heading + row.format(1, f"gres/gpu:{kind}=2,gres/gpu=2") + row.format(2, "gres/gpu:h100=2,gres/gpu=2")
    )
    jobs = read_workload(io.BytesIO(text.encode()))
    assert [job.num_tasks for job in jobs.jobs] == [2]
