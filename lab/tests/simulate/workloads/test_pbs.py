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
from batch_logs import PBS as LOG
from topoplace.cli import main
from topoplace_lab.simulate import Workload
from topoplace_lab.simulate.workloads import logged_jobs, pbs

GIB = 2**30 / 1e9


def record(job_id: str = "1", **values: str) -> str:
    """An E record of a job with a GPU, with some values changed; "" takes one out."""
    job = {"ctime": "100", "start": "200", "end": "300", "Resource_List.nodes": "1:gpus=1"}
    job |= {key.replace("__", "."): value for key, value in values.items()}
    told = " ".join(f"{key}={value}" for key, value in job.items() if value)
    return f"01/02/2013 10:00:00;E;{job_id};{told}\n"


def test_a_log_record_by_record() -> None:
    workload = Workload.from_pbs(LOG)
    assert workload.job_ids == ("9.batch", "12.batch", "15.batch")
    assert workload.submit_time.tolist() == [0, 10, 112]
    assert workload.base_time.tolist() == [1600, 26 * 60 + 39, 50]
    assert workload.requested_time[1] == 86400
    assert math.isnan(workload.requested_time[0])
    torque, select, totals = workload.jobs
    assert select == tp.JobGraph.independent(6).with_(processes=2, cpus=16, memory_gb=2 * (22 * 2**30 / 1e9))
    assert torque == tp.JobGraph.independent(6).with_(
        processes=3, cpus=24
    )  # the largest of its kinds of nodes
    assert totals == tp.JobGraph.independent(4).with_(processes=2, cpus=6, memory_gb=8 * GIB)


def test_a_record_ends_where_its_line_feed_is() -> None:
    text = record(jobname="a\x0cb\x85c\u2028d").replace("\n", "\r\n")
    assert Workload.from_pbs(text + record("2")).job_ids == ("1", "2")


def test_jobs_without_gpus_and_of_some_queues() -> None:
    workload = Workload.from_pbs(LOG, without_gpus=True, queues=["S"], seed=1)
    assert workload.jobs == (tp.JobGraph.without_gpus(cpus=5, memory_gb=0.524288),)
    (sent,) = workload.transfers
    assert sent is not None
    assert sent.gpu_gb == pytest.approx(0.524288)
    assert len(Workload.from_pbs(LOG, without_gpus=True)) == 4
    two = record(Resource_List__nodes="2:ppn=4")
    assert len(Workload.from_pbs(two, without_gpus=True)) == 0


def test_of_a_job_that_was_restarted_the_last_run_counts() -> None:
    text = record(end="250") + record(end="280") + record(start="")
    workload = Workload.from_pbs(text)
    assert (workload.job_ids, workload.base_time.tolist()) == (("1",), [80])


@pytest.mark.parametrize(
    ("text", "gb"),
    [
        ("22gb", 22 * GIB),
        ("1024KB", 2**20 / 1e9),
        ("3mb", 3 * 2**20 / 1e9),
        ("1tb", 1024 * GIB),
        ("500b", 5e-7),
        ("500", 5e-7),
        ("10w", 8e-8),
        ("1mw", 8 * 2**20 / 1e9),
        ("2g", 2 * GIB),
    ],
)
def test_units_of_memory(text: str, gb: float) -> None:
    assert pbs.memory_gb(text, 1, "mem") == pytest.approx(gb)


@pytest.mark.parametrize(
    ("text", "seconds"), [("50", 50), ("1:30", 90), ("02:00:00", 7200), ("1:00:00:01.5", 86401.5)]
)
def test_durations(text: str, seconds: float) -> None:
    assert logged_jobs.seconds(text, 1, "walltime") == seconds


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("job 12 ended", "line 1: 'job 12 ended', not MM/DD/YYYY HH:MM:SS;type;job;message"),
        ("01/02/2013 10:00:00;E;12", "line 1: .* not MM/DD/YYYY"),
        ("01/02/2013 10:00:00;E; ;x=1", "line 1: job id = ''"),
        ("\n" + record(ctime=""), "line 2: has neither ctime nor qtime"),
        (record(ctime="noon"), "line 1: ctime = 'noon'"),
        (record(end="150"), "line 1: end = 150, before start = 200"),
        (record(resources_used__walltime="1:2:3:4:5"), "line 1: resources_used.walltime = '1:2:3:4:5'"),
        (record(resources_used__walltime="-5"), "line 1: resources_used.walltime = '-5', not a duration"),
        (record(resources_used__walltime="nan"), "line 1: resources_used.walltime = 'nan'"),
        (record(Resource_List__walltime="9" * 400), "line 1: Resource_List.walltime = '999"),
        (record(Resource_List__nodes="0:gpus=1"), "line 1: Resource_List.nodes = '0', not a number 1"),
        (record(Resource_List__nodes="1:gpus=x"), "line 1: Resource_List.nodes: gpus = 'x'"),
        (record(Resource_List__nodes="+".join(["999999"] * 3)), "line 1: .* more than 1048576 nodes"),
        (record(Resource_List__nodes="999999:gpus=999999"), "line 1: 999999 nodes with 999999 GPUs each"),
        (record(Resource_List__select="1:mem=2xb"), "line 1: Resource_List.select: mem = '2xb'"),
        (record(Resource_List__select="1:mem=99999999pb"), "line 1: .* not a size like 22gb"),
        (record(Resource_List__mem="-1gb"), "line 1: Resource_List.mem = '-1gb', not a size like 22gb"),
        (record(jobname="x ctime=7"), "line 1: ctime = '7', and '100' before"),
    ],
)
def test_bad_records_are_refused(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Workload.from_pbs(text)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: Workload.from_pbs(cast("Any", b"")), "^text = b''"),
        (lambda: Workload.from_pbs(LOG, queues="G"), "^queues = 'G'"),
        (lambda: Workload.from_pbs(LOG, queues=cast("Any", [[]])), r"^queues\[0\] = \[\]"),
        (lambda: Workload.from_pbs(LOG, without_gpus=cast("Any", 1)), "^without_gpus = 1"),
        (lambda: Workload.from_pbs(LOG, seed=cast("Any", "x")), "^seed = 'x'"),
    ],
    ids=map(str, range(5)),
)
def test_a_bad_argument_is_named(call: Callable[[], Workload], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call()


requests = st.tuples(st.integers(1, 99), st.integers(1, 9), st.integers(0, 99), st.integers(0, 999))


@given(requests, st.sampled_from(["select", "nodes", "totals"]), st.integers(0, 10**6), st.integers(0, 10**6))
def test_what_was_asked_is_read_whatever_the_words(
    asked: tuple[int, int, int, int], how: str, submit: int, run_time: int
) -> None:
    nodes, gpus, cpus, gb = asked
    words = {
        "select": f"Resource_List.select={nodes}:ncpus={cpus}:ngpus={gpus}:mem={gb}gb",
        "nodes": f"Resource_List.nodes={nodes}:ppn={cpus}:gpus={gpus} Resource_List.mem={nodes * gb}gb",
        "totals": f"Resource_List.nodect={nodes} Resource_List.ncpus={nodes * cpus} "
        f"Resource_List.ngpus={nodes * gpus} Resource_List.mem={nodes * gb}gb",
    }[how]
    times = f"ctime={100 + submit} start={200 + submit} end={200 + submit + run_time}"
    text = record("first") + f"01/02/2013 10:00:00;E;7;{times} {words}\n"
    workload = Workload.from_pbs(text)
    row = workload.job_ids.index("7")
    job = workload.jobs[row]
    assert (job.num_tasks, job.processes, job.cpus or 0) == (nodes * gpus, nodes, nodes * cpus)
    assert (job.memory_gb or 0) == pytest.approx(nodes * gb * GIB)
    assert (workload.submit_time[row], workload.base_time[row]) == (submit, run_time)


def test_the_command_knows_the_format(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = tmp_path / "year.log"
    log.write_text(LOG)
    options = ["--policy", "mapa-greedy", "--cpus", "160", "--memory-gb", "512.5"]
    assert main(["simulate", "dgx1-v100", "--jobs", str(log), *options]) == 0
    assert "3 jobs on dgx1-v100" in capsys.readouterr().out


def test_queues_side_by_side(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log, cluster = tmp_path / "year.log", tmp_path / "cluster.json"
    asked = "1:ncpus=3:ngpus=1:mem=1gb"
    log.write_text("".join(record(str(i), Resource_List__select=asked) for i in range(4)))
    machine = tp.Topology.from_links(3, [], 8.0)
    cluster.write_text(tp.Topology.cluster(machine, count=2).to_json())
    command = ["simulate", str(cluster), "--jobs", str(log), "--policies", "g-queue,r-queue", "--json"]
    for cpus, makespan in (("8", 100.0), ("5", 200.0)):  # room for two jobs on a node, and for one
        assert main([*command, "--cpus", cpus, "--performance", "fixed"]) == 0
        g, r = json.loads(capsys.readouterr().out)
        assert (g["makespan"], r["makespan"]) == (200.0, makespan)
    assert main([*command[:-1], "--cpus", "8", "--memory-gb", "1"]) == 1  # no job ran: 1gb are more than 1 GB
    printed = capsys.readouterr()
    assert "rejected" in printed.out
    assert "sensitive" not in printed.out
    assert printed.err.startswith("topoplace: no job ran: all 4 jobs were rejected; the first: ")


def test_resources_that_say_nothing_of_gpus_are_left_out() -> None:
    select = "2:ncpus=4:mpiprocs=4:ngpus=1:scratch=ssd:fast"
    (job,) = Workload.from_pbs(record(Resource_List__nodes="", Resource_List__select=select)).jobs
    assert job == tp.JobGraph.independent(2).with_(processes=2, cpus=8)


def test_a_log_without_jobs_is_empty() -> None:
    assert len(Workload.from_pbs("01/02/2013 10:00:00;S;1;queue=a\n")) == 0
