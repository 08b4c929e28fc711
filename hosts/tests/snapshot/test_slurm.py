"""Snapshots of Slurm: who holds which GPUs, who waits for what, and what contradicts itself is refused by name."""

from __future__ import annotations

import json
import math
import re
from pathlib import Path
from typing import Any

import pytest

import topoplace as tp
from scontrol_texts import node, running, waiting

TWO = node("n1", 4, "0,2-3") + node("n2", 4, "0-3", more="ActiveFeatures=ib,fast")
HELD = running("17", "n1", "0,2-3") + running("19", "n2", "0-3", limit="UNLIMITED")


def test_running_jobs_hold_their_gpus_and_end_by_their_limits() -> None:
    found = tp.snapshot.read(TWO + HELD)
    assert found.cluster.allocations == {"17": (0, 2, 3), "19": (4, 5, 6, 7)}
    assert {one.job_id: one.seconds_left for one in found.running.values()} == {"17": 5400.0, "19": math.inf}
    assert list(found.running) == ["17", "19"]


def test_what_follows_a_command_says_nothing_about_the_job() -> None:
    assert "17" in tp.snapshot.read(TWO + HELD).running  # its command has JobState=PENDING


@pytest.mark.parametrize("as_one_line", [False, True])
def test_texts_may_be_files_and_lines(tmp_path: Path, *, as_one_line: bool) -> None:
    jobs = "\n".join(" ".join(job.split()) for job in HELD.split("\n\n")) if as_one_line else HELD
    (tmp_path / "nodes.txt").write_text(TWO)
    assert tp.snapshot.read([tmp_path / "nodes.txt", jobs]).cluster.allocations == {
        "17": (0, 2, 3),
        "19": (4, 5, 6, 7),
    }


def test_waiting_jobs_are_in_the_order_of_the_queue() -> None:
    jobs = [waiting(str(i), "TresPerNode=gres/gpu:1", priority=p) for i, p in ((3, 5), (2, 9), (1, 5))]
    found = tp.snapshot.read("".join([TWO, *jobs]))
    assert [one.job_id for one in found.waiting] == ["2", "3", "1"]


@pytest.mark.parametrize(
    ("request_text", "more", "num_gpus"),
    [
        ("TresPerNode=gres/gpu:2", "", 2),
        ("TresPerNode=gres:gpu:a100:2", "NumNodes=2", 4),
        ("TresPerNode=gres:gpu:g0:1,gres:gpu:g3:1", "", 2),
        ("TresPerJob=gres/gpu:6", "", 6),
        ("TresPerTask=gres/gpu:2", "NumTasks=3", 6),
        ("", "ReqTRES=cpu=8,mem=1G,node=1,billing=8,gres/gpu=3,gres/gpu:a100=3", 3),
    ],
)
def test_requests(request_text: str, more: str, num_gpus: int) -> None:
    found = tp.snapshot.read(TWO + waiting("21", request_text, more=more))
    assert found.waiting[0].job.num_tasks == num_gpus


@pytest.mark.parametrize(
    "request_text",
    [
        "TresPerNode=gres/gpu:1000000000",
        "TresPerJob=gres/gpu:99999999999999",
        "TresPerNode=gres/gpu:9x TresPerTask=gres/gpu:70000",
    ],
)
def test_a_job_of_too_many_gpus_is_named_and_hides_no_other(request_text: str) -> None:
    found = tp.snapshot.read(TWO + waiting("20", request_text) + waiting("21", "TresPerNode=gres/gpu:1"))
    assert [one.job_id for one in found.waiting] == ["21"]
    with pytest.raises(
        tp.SnapshotError, match=r"job '20' does not wait: job 20 asks for [0-9]+ GPUs, more than"
    ):
        found.waiting_job("20")


def test_jobs_without_gpus_are_left_out_and_named() -> None:
    found = tp.snapshot.read(TWO + waiting("21", "ReqTRES=cpu=8,node=1"))
    assert found.waiting == ()
    assert found.notes[-1] == "Jobs without GPUs that wait, which are left out: 21."
    on_cpus = re.sub(r"(\S*)gpu\S*", r"\1", running("17", "n1", "0")).replace("JOB_GRES=", "JOB_GRES=(null)")
    assert "gpu" not in on_cpus
    found = tp.snapshot.read(TWO + on_cpus)
    assert not found.running
    assert found.notes[-1] == (
        "Jobs without GPUs that run on nodes with GPUs: 17 on n1. The CPUs and memory that they hold there are not "
        "counted."
    )
    elsewhere = on_cpus.replace("n1", "login")
    assert not any("without GPUs" in note for note in tp.snapshot.read(TWO + elsewhere).notes)


@pytest.mark.parametrize(
    ("more", "nodes"),
    [
        ("Features=ib", {"n2"}),
        ("Features=ib&slow", set[str]()),
        ("Features=slow|fast", {"n2"}),
        ("ExcNodeList=n[2-9]", {"n1"}),
        ("ReqNodeList=n2", {"n2"}),
    ],
)
def test_which_nodes_a_job_may_use(more: str, nodes: set[str]) -> None:
    found = tp.snapshot.read(TWO + waiting("21", "TresPerNode=gres/gpu:1", more=more))
    assert found.waiting[0].machines == frozenset(nodes)


def test_types_and_partitions_limit_the_nodes() -> None:
    nodes = TWO + node("n3", 2, kind="h100")
    found = tp.snapshot.read(nodes + waiting("21", "TresPerNode=gres/gpu:h100:1"))
    assert found.waiting[0].machines == frozenset({"n3"})
    other = nodes.replace("Partitions=batch", "Partitions=long", 1)
    found = tp.snapshot.read(other + waiting("21", "TresPerNode=gres/gpu:1"))
    assert found.waiting[0].machines == frozenset({"n2", "n3"})


def test_tasks_of_an_array_wait_one_by_one() -> None:
    job = waiting("30", "TresPerNode=gres/gpu:1", more="ArrayJobId=30 ArrayTaskId=1-5:2,8%2")
    found = tp.snapshot.read(TWO + job)
    assert [one.job_id for one in found.waiting] == ["30_1", "30_3", "30_5", "30_8"]
    assert any("at most 2" in note for note in found.notes)
    assert found.waiting_job("30").job_id == "30_1"


def test_a_task_of_an_array_is_found_by_its_id_and_by_its_number() -> None:
    rest = waiting("102", "TresPerNode=gres/gpu:1", more="ArrayJobId=102 ArrayTaskId=2-5")
    split = waiting("103", "TresPerNode=gres/gpu:2", more="ArrayJobId=102 ArrayTaskId=3")
    ran = running("104", "n1", "0").replace("JobName", "ArrayJobId=102 ArrayTaskId=7 JobName")
    for text in (rest + split, split + rest):
        found = tp.snapshot.read(node("n1", 4, "0") + ran + text)
        assert sorted(one.job_id for one in found.waiting) == ["102_2", "102_3", "102_4", "102_5"]
        for name in ("103", "102_3"):
            assert (found.waiting_job(name).job_id, found.waiting_job(name).job.num_tasks) == ("102_3", 2)
        assert found.waiting_job("102").job_id in ("102_2", "102_3")
        for name in ("104", "102_7"):
            with pytest.raises(tp.SnapshotError, match="job '102_7' runs already"):
                found.waiting_job(name)


TWO_KINDS = (
    "NodeName=n1 Gres=gpu:a100:2,gpu:h100:2 GresUsed=gpu:a100:0(IDX:N/A),gpu:h100:0(IDX:N/A) State=IDLE"
)


def test_a_request_of_one_kind_gets_gpus_of_that_kind() -> None:
    other = node("n2", 4, kind="h100")
    jobs = waiting("21", "TresPerNode=gres/gpu:h100:2") + waiting("22", "TresPerNode=gres/gpu:2")
    found = tp.snapshot.read(f"{TWO_KINDS} Partitions=batch\n\n{other}{jobs}")
    assert found.waiting_job("21").job.gpu_model == "h100"
    assert found.waiting_job("22").job.gpu_model is None
    assert tp.snapshot.when(found, "21", policy="baseline").gpus == (2, 3)


@pytest.mark.parametrize(
    ("request_text", "topology"),
    [
        ("TresPerNode=gres/gpu:h100:1,gres/gpu:a100:1", None),
        ("TresPerNode=gres/gpu:h100:1", tp.Topology.from_links(4, [])),
    ],
)
def test_a_kind_that_cannot_be_told_is_refused_by_name(
    request_text: str, topology: tp.Topology | None
) -> None:
    found = tp.snapshot.read(f"{TWO_KINDS}\n\n{waiting('21', request_text)}", topology)
    with pytest.raises(
        tp.SnapshotError, match=r"job '21' does not wait: job 21 asks for '.*', which is not read"
    ):
        found.waiting_job("21")


@pytest.mark.parametrize(
    ("reason", "held"),
    [("Dependency", True), ("QOSMaxGRESPerUser", True), ("Priority", False), ("Resources", False)],
)
def test_a_job_that_is_held_says_so(reason: str, *, held: bool) -> None:
    job = waiting("21", "TresPerNode=gres/gpu:1").replace("Reason=Resources", f"Reason={reason}")
    assert tp.snapshot.read(TWO + job).waiting[0].held == (reason if held else "")


def test_reserved_nodes_are_for_jobs_of_the_reservation() -> None:
    nodes = TWO + node("n3", 4, state="IDLE+RESERVED", more="ReservationName=course")
    jobs = [
        waiting(str(i), "TresPerNode=gres/gpu:1", more=m) for i, m in ((1, ""), (2, "Reservation=course"))
    ]
    found = tp.snapshot.read("".join([nodes, *jobs]))
    assert found.waiting_job("1").machines == frozenset({"n1", "n2"})
    assert found.waiting_job("2").machines == frozenset({"n3"})


def test_which_gpus_is_assumed_and_noted_without_details() -> None:
    found = tp.snapshot.read(
        node("n1", 4, "1-2")
        + running("17", "n1", "1-2").replace("     Nodes=n1 CPU_IDs", "     X=n1 CPU_IDs")
    )
    assert found.cluster.gpus_of("17") == (0, 1)
    assert any(note.endswith("taken to be the lowest: job 17.") for note in found.notes)


def test_gpus_in_use_by_no_job_are_held_and_noted() -> None:
    found = tp.snapshot.read(TWO + running("19", "n2", "0-3"))
    assert list(found.cluster.held_gpus()) == [0, 2, 3]
    assert any("by no job of the text" in note for note in found.notes)


def test_closed_nodes_and_strangers_of_a_topology_get_no_job() -> None:
    machine = tp.machines.get("dgx1-v100")
    cluster = tp.Topology.cluster(machine, names=["n1", "n2", "n3"])
    found = tp.snapshot.read(node("n1", 8) + node("n2", 8, state="IDLE+DRAIN"), cluster)
    assert found.cluster.topology is cluster
    assert found.cluster.free_gpus() == tuple(range(8))
    template = tp.snapshot.read(node("n1", 8), machine)
    assert template.cluster.topology.bandwidth(0, 3) == machine.bandwidth(0, 3)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (TWO + running("17", "n1", "7"), "job 17 fits nowhere: it has GPU 7 of 'n1', which has 4 GPUs"),
        (
            TWO + running("17", "n9", "0"),
            "job 17 fits nowhere: it has GPU 0 of 'n9', which is not in the topology",
        ),
        (TWO + HELD + running("20", "n1", "0"), "job 20: "),
        (TWO + HELD + HELD, "job 17 appears twice"),
        (HELD, "there are jobs and no nodes"),
        ("hello", "'hello' is no text of a scheduler"),
        ('{"a": 1}', "'{\"a\": 1}' is no text of a scheduler"),
        (TWO + running("17", "n1", "0", limit="soon"), "job '17': 'soon' is not a time"),
        ("JobId= JobState=RUNNING", "a job has no number"),
        ([], "there is neither a node nor a job"),
    ],
)
def test_one_error_names_the_job(text: Any, message: str) -> None:
    with pytest.raises(tp.SnapshotError) as caught:
        tp.snapshot.read(text)
    assert str(caught.value).startswith(message)


def test_json_says_the_same_as_text() -> None:
    def number(value: int) -> dict[str, Any]:
        return {"set": True, "infinite": False, "number": value}

    nodes = [
        {"name": "n1", "gres": "gpu:a100:4", "gres_used": "gpu:a100:3(IDX:0,2-3)", "state": ["MIXED"]},
        {"name": "n2", "gres": "gpu:a100:4", "gres_used": "gpu:a100:4(IDX:0-3)", "state": ["ALLOCATED"]},
    ]
    jobs = [
        {
            "job_id": 17, "job_state": ["RUNNING"], "nodes": "n1", "gres_detail": ["gpu:a100:3(IDX:0,2-3)"],
            "time_limit": number(120), "start_time": number(1000), "end_time": number(8200),
        },
        {
            "job_id": 19, "job_state": ["RUNNING"], "nodes": "n2", "gres_detail": ["gpu:a100:4(IDX:0-3)"],
            "time_limit": {"set": False, "infinite": True, "number": 0}, "end_time": number(0),
        },
        {
            "job_id": 21, "job_state": ["PENDING"], "state_reason": "Priority", "priority": number(8),
            "tres_per_node": "gres/gpu:2", "node_count": number(1), "time_limit": number(60),
            "array_job_id": number(0), "submit_time": number(900), "partition": "batch",
        },
    ]  # fmt: skip
    document = {"jobs": jobs, "last_update": number(2800)}
    text = json.dumps({"nodes": nodes}) + "\n" + json.dumps(document)
    found = tp.snapshot.read(text)
    other = tp.snapshot.read(TWO + HELD + waiting("21", "TresPerNode=gres/gpu:2", priority=8))
    assert found.cluster.allocations == other.cluster.allocations
    assert found.running == other.running
    assert found.waiting[0].job == other.waiting[0].job
    assert (found.waiting[0].seconds, found.waiting[0].priority) == (3600.0, 8)


@pytest.mark.parametrize("told", ["gpu:a100:3", "gpu:a100:3(IDX:N/A)"])
def test_a_job_without_readable_places_gets_the_lowest_free_gpus(told: str) -> None:
    jobs = running("17", "n1", "0,2-3").replace("GRES=gpu:a100:3(IDX:0,2-3)", f"GRES={told}")
    found = tp.snapshot.read(node("n1", 4) + jobs)
    assert found.cluster.allocations == {"17": (0, 1, 2)}
    assert any("17" in note for note in found.notes)


def test_what_is_left_out_is_noted() -> None:
    unnamed = (
        running("17", "n1", "0").replace("NodeList=n1", "NodeList=").replace("     Nodes=n1", "     Node=n1")
    )
    state = running("18", "n1", "0").replace("RUNNING", "RUNING")
    odd = waiting("20", "TresPerNode=gres/gpu:4x4") + waiting("21", "TresPerSocket=gres/gpu:1")
    found = tp.snapshot.read(node("n1", 4) + unnamed + state + odd)
    assert not found.running
    assert not found.waiting
    for part in (
        "job 17 runs on nodes that the text does not name",
        "Jobs in a state that is not known, which are left out: 18",
        "job 20 asks for 'gres/gpu:4x4', which is not read",
        "job 21 asks for 'gres/gpu:1', which is not read",
    ):
        assert any(part in note for note in found.notes), part
    for job, part in (("20", "asks for 'gres/gpu:4x4'"), ("18", "state that is not known")):
        with pytest.raises(tp.SnapshotError, match=f"job '{job}' does not wait: .*{part}"):
            found.waiting_job(job)
    with pytest.raises(tp.SnapshotError, match="job '2' does not wait; these do: none"):
        found.waiting_job("2")


def test_a_node_of_two_texts_is_refused() -> None:
    with pytest.raises(tp.SnapshotError, match="node 'n1' appears twice"):
        tp.snapshot.read([node("n1", 4), node("n1", 4, state="DOWN")])


@pytest.mark.parametrize(
    ("jobs", "message"),
    [
        (running("17", "n1", "7"), "jobs: job 17 fits nowhere: "),
        (running("17", "n1", "0", limit="soon"), "jobs: job '17': 'soon' is not a time"),
        (running("17", "n9", "0"), "jobs: job 17 fits nowhere: "),
        ("\n" + node("n3", 4, kind="a100:x"), "jobs: line 2: node 'n3': Gres = "),
        (HELD + "\n" + node("n3", 4, kind="a100:x"), "jobs: line 28: node 'n3': Gres = "),
        (node("n1", 4), "jobs: node 'n1' appears twice"),
        (2 * waiting("21", "TresPerNode=gres/gpu:1"), "jobs: job 21 appears twice"),
        ("hello", "jobs: 'hello' is no text"),
    ],
)
def test_of_several_sources_that_at_fault_is_named(jobs: str, message: str) -> None:
    with pytest.raises((tp.SnapshotError, tp.TopologyError)) as caught:
        tp.snapshot.read({"nodes": TWO, "jobs": jobs})
    assert str(caught.value).startswith(message)
    with pytest.raises((tp.SnapshotError, tp.TopologyError)) as listed:
        tp.snapshot.read([TWO, jobs])
    assert str(listed.value) == str(caught.value).replace("jobs: ", "source[1]: ", 1)
