from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

import topoplace as tp
from batch_logs import SWF as LOG
from topoplace.cli import main
from topoplace_lab.simulate import Transfers, Workload
from topoplace_lab.simulate.workloads import swf


def line(**fields: object) -> str:
    """One line: a job of 8 processors and 100 s, with some fields changed."""
    job = dict.fromkeys(swf.FIELDS, -1) | {"job number": 1, "submit time": 0, "run time": 100}
    job |= {"requested processors": 8, "status": 1}
    return " ".join(
        str(value) for value in (job | {k.replace("_", " "): v for k, v in fields.items()}).values()
    )


def test_a_log_line_by_line() -> None:
    workload = Workload.from_swf(LOG, gpus_per_node=3)
    assert workload.job_ids == ("1", "5", "2", "6", "7")
    assert workload.submit_time.tolist() == [0, 9, 10, 20, 21]
    assert workload.base_time.tolist() == [100, 30, 50, 60, 0.4]
    assert workload.requested_time.tolist()[:2] == [200, 200]
    assert math.isnan(workload.requested_time[2])
    assert workload.transfers == (None,) * 5
    one, _, two, four, _ = workload.jobs
    assert one == tp.JobGraph.independent(3).with_(cpus=8, memory_gb=8 * 2**30 / 1e9)
    assert two == tp.JobGraph.independent(6).with_(processes=2, cpus=12)  # 6 processors on each of two nodes
    assert four.cpus == 4


def test_a_line_ends_where_its_line_feed_is() -> None:
    text = f"; of\x0c \x85 and \u2028 all\r\n{line()}\r\n"
    assert Workload.from_swf(text).job_ids == ("1",)
    with pytest.raises(ValueError, match="line 3: 1 fields"):
        Workload.from_swf(text + "x")


def test_only_some_queues_and_statuses() -> None:
    assert Workload.from_swf(LOG, queues=[2]).job_ids == ("2",)
    assert Workload.from_swf(LOG, statuses=[0, -1]).job_ids == ("2", "7")
    assert len(Workload.from_swf("; Version: 2.2\n")) == 0


@pytest.mark.parametrize(
    ("header", "cpus", "nodes"),
    [
        ("", None, 12),
        ("; MaxNodes: 8\n; MaxProcs: 32\n", None, 3),
        ("; MaxNodes: 8\n; MaxProcs: 32\n", 8, 2),
        ("; MaxNodes: 8\n", None, 12),
        ("; MaxNodes: 8\n; MaxProcs: -1\n", None, 12),
        ("; MaxNodes: 32\n; MaxProcs: 8\n", None, 12),
    ],
)
def test_how_many_nodes_hold_the_processors(header: str, cpus: int | None, nodes: int) -> None:
    (job,) = Workload.from_swf(header + line(requested_processors=12), cpus_per_node=cpus).jobs
    assert (job.processes, job.num_tasks, job.cpus) == (nodes, nodes, 12)


def test_without_gpus_jobs_are_on_one_node() -> None:
    text = f"{line()}\n{line(job_number=2, requested_processors=9)}\n"
    workload = Workload.from_swf(text, gpus_per_node=0, cpus_per_node=8)
    assert workload.jobs == (tp.JobGraph.without_gpus(cpus=8),)


def test_estimated_transfers_are_those_of_table_1() -> None:
    text = "\n".join(line(job_number=i, requested_memory=2**20) for i in range(1, 2001))
    workload = Workload.from_swf(text, cpus_per_node=4, seed=3)
    assert workload.transfers == Workload.from_swf(text, cpus_per_node=4, seed=3).transfers
    assert workload.transfers != Workload.from_swf(text, cpus_per_node=4, seed=4).transfers
    sent = cast("list[Transfers]", list(workload.transfers))
    assert {(t.network_gb, t.gpu_gb) for t in sent} == {(4 * 2**30 / 1e9,) * 2}  # per node
    for counts in ([t.network_connections for t in sent], [t.gpu_connections for t in sent]):
        assert 100 <= min(counts) < 1000
        assert 99_000 < max(counts) <= 100_000
        assert sum(counts) / len(counts) == pytest.approx(50_050, rel=0.03)
    assert [t.gpu_connections for t in sent] != [t.network_connections for t in sent]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("1 2 3", "line 1: 3 fields, 18 needed"),
        (f"; x\n\n{line()} 1", "line 3: 19 fields, 18 needed"),
        (line(run_time="soon"), "line 1: run time = 'soon', not a number from -1"),
        (line(run_time="nan"), "line 1: run time = 'nan'"),
        (line(run_time="1e999"), "line 1: run time = '1e999'"),
        (line(run_time="-0.5"), "line 1: run time = '-0.5': must be -1 or at least 0"),
        (line(submit_time=-1), r"line 1: submit time = -1 \(unknown\)"),
        (line(job_number=-1), r"line 1: job number = -1 \(unknown\)"),
        (line(requested_processors=-1), "line 1: neither requested nor allocated processors are known"),
        (line(requested_processors="1.5"), "line 1: requested processors = '1.5'"),
        (line(requested_processors=2**21), "line 1: requested processors = '2097152', not a number -1"),
        (line(status=6), r"line 1: status = '6', not a number -1\.\.5"),
        (f"{line()}\n\n{line()}", "line 3: job number = 1, already in line 1"),
        (f"; MaxNodes: many\n{line()}", "line 1: MaxNodes = 'many'"),
        (line(requested_memory="-2"), "line 1: requested memory = '-2'"),
    ],
)
def test_bad_lines_are_refused(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Workload.from_swf(text)


def test_more_gpus_than_any_job_may_have() -> None:
    with pytest.raises(ValueError, match="line 1: 1048576 nodes with 3 GPUs each, more than 1048576 GPUs"):
        Workload.from_swf(line(requested_processors=2**20), gpus_per_node=3)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: Workload.from_swf(cast("Any", b"")), "^text = b''"),
        (lambda: Workload.from_swf(LOG, gpus_per_node=-1), "^gpus_per_node = -1"),
        (lambda: Workload.from_swf(LOG, cpus_per_node=0), "^cpus_per_node = 0"),
        (lambda: Workload.from_swf(LOG, statuses=[1, 6]), r"^statuses\[1\] = 6"),
        (lambda: Workload.from_swf(LOG, queues=cast("Any", 1)), "^queues = 1"),
        (lambda: Workload.from_swf(LOG, seed=-1), "^seed = -1"),
    ],
    ids=map(str, range(6)),
)
def test_a_bad_argument_is_named(call: Callable[[], Workload], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call()


@given(
    st.lists(st.tuples(*[st.integers(0, 10**6)] * 2, st.integers(1, 999), st.integers(0, 10**6)), max_size=9)
)
def test_what_was_written_is_read(rows: list[tuple[int, int, int, int]]) -> None:
    text = "\n".join(
        line(job_number=i, submit_time=a, run_time=b, requested_processors=c, requested_memory=kb)
        for i, (a, b, c, kb) in enumerate(rows)
    )
    workload = Workload.from_swf(text, gpus_per_node=2, cpus_per_node=8)
    assert sorted(map(int, workload.job_ids)) == list(range(len(rows)))
    assert workload.submit_time.tolist() == sorted(row[0] for row in rows)
    for job_id, job, base in zip(workload.job_ids, workload.jobs, workload.base_time.tolist(), strict=True):
        _, run_time, processors, kb = rows[int(job_id)]
        assert base == run_time
        assert job.num_tasks == 2 * job.processes == 2 * -(-processors // 8)
        assert job.processes - 1 < processors / 8 <= job.processes
        assert job.cpus is not None
        assert (
            processors <= job.cpus < processors + job.processes
        )  # all processors, and not one more on each node
        assert (job.memory_gb or 0) == pytest.approx(kb * job.cpus * 1024 / 1e9)


def test_the_command_knows_the_format_and_what_machines_have(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = tmp_path / "year.swf"
    for text in (LOG, LOG[LOG.index("   1") :]):  # with the header and without
        log.write_text(text)
        assert main(["simulate", "dgx1-v100", "--jobs", str(log), "--policy", "mapa-greedy"]) == 0
        assert "5 jobs on dgx1-v100" in capsys.readouterr().out
    log.write_text(LOG)
    few = ["--cpus", "4", "--memory-gb", "1", "--gpus-per-node", "2"]
    assert main(["simulate", "dgx1-v100", "--jobs", str(log), "--policy", "drmaestro", "--json", *few]) == 0
    assert json.loads(capsys.readouterr().out)["rejected"] > 0


def test_a_header_of_fewer_than_no_nodes_is_refused() -> None:
    with pytest.raises(ValueError, match="line 1: MaxNodes = '-2'"):
        Workload.from_swf("; MaxNodes: -2\n" + line())
