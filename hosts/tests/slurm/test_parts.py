"""The parts of the placer that need no Slurm: texts of its commands, its rules, turns of users, metrics."""

from __future__ import annotations

import random
import sys
import threading
import urllib.request
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from topoplace import Cluster, Refusal, Topology, machines, policies
from topoplace.errors import SlurmError
from topoplace.jobs.groups import SizedGroups
from topoplace.topology.fabric import Fabric, Level
from topoplace_hosts.journal import Entry, Journal, Stage
from topoplace_hosts.journal.entry import named
from topoplace_hosts.slurm import metrics
from topoplace_hosts.slurm.client import commands
from topoplace_hosts.slurm.client.commands import SlurmCommands
from topoplace_hosts.slurm.client.devices import of_jobs
from topoplace_hosts.slurm.client.jobs import SlurmJob, listed, megabytes, node_names
from topoplace_hosts.slurm.client.nodes import SlurmNode, SlurmNodes, in_service
from topoplace_hosts.slurm.client.records import RecordFormat
from topoplace_hosts.slurm.metrics import Figures
from topoplace_hosts.slurm.placer import PlacerSettings, running
from topoplace_hosts.slurm.placer.deciding import Deciding
from topoplace_hosts.slurm.placer.decision import JobDecision, decide
from topoplace_hosts.slurm.placer.fairness import Turns
from topoplace_hosts.slurm.placer.machines import Where, gpus_at, where_of
from topoplace_hosts.slurm.placer.truth import truth_of
from topoplace_hosts.slurm.placer.waiting import admissible, needs_of, why_not_yet
from topoplace_hosts.slurm.request import SlurmRequest

TWO = Topology.cluster(machines.get("dgx1-v100"), 2, names=["n0", "n1"])


def job(job_id: str = "7", **changes: Any) -> SlurmJob:
    known = SlurmJob(
        job_id, int(job_id), "PD", "JobHeldUser", "1000", "all", "", "", "gres:gpu:2", "topoplace1;gpus=2", "",
        0.0, 0.0, 0.0, 1, 4, 0.0, 0, "", "",
    )  # fmt: skip
    return known._replace(**changes)


def nodes(**changes: Any) -> SlurmNodes:
    state: dict[str, Any] = {
        "usable": True,
        "idle_cpus": 8,
        "free_mb": 1000.0,
        "features": frozenset({"a"}),
        "gres": "",
    }
    listed = {
        n: SlurmNode(n, partitions=frozenset({"all"}), **(state | changes if n == "n0" else state))
        for n in ("n0", "n1")
    }
    return SlurmNodes(listed, {})


@pytest.mark.parametrize(
    ("state", "expected"),
    [
        ("idle", True),
        ("mixed+cloud", True),
        ("allocated+completing", True),
        ("idle+planned+reserved", True),
        ("idle+dynamic_norm", True),
        ("idle+cloud+powered_down", False),
        ("idle+cloud+not_responding+powering_up", False),
        ("mixed+drain", False),
        ("idle+maintenance+reserved", False),
        ("idle+not_responding", False),
        ("idle+frozen", False),
        ("", False),
    ],
)
def test_states_in_which_slurm_starts_jobs(state: str, expected: bool) -> None:
    assert in_service(state) == expected


# ---- commands ------------------------------------------------------------------------------------------------


def write_command(folder: Path, name: str, script: str) -> None:
    path = folder / name
    path.write_text(f"#!/bin/sh\n{script}\n", "utf-8")
    path.chmod(0o755)


def test_a_host_without_slurm_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(SlurmError, match=r"^squeue: there is no such command on this host$"):
        SlurmCommands().output("squeue", [])


def test_a_command_that_fails_or_hangs_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", f"{tmp_path}:/bin:/usr/bin")
    write_command(tmp_path, "squeue", "exec sleep 60")
    write_command(tmp_path, "sinfo", "echo first >&2; echo it is down >&2; exit 3")
    write_command(tmp_path, "scontrol", "echo Unable to contact slurm controller >&2")
    with monkeypatch.context() as soon:
        soon.setattr(commands, "_TIMEOUT_S", 0.1)
        with pytest.raises(SlurmError, match=r"^squeue: no answer after 0\.1 s$"):
            SlurmCommands().output("squeue", [])
    with pytest.raises(SlurmError, match=r"^sinfo: first\nit is down"):
        SlurmCommands().output("sinfo", [])
    with pytest.raises(SlurmError, match=r"^scontrol: Unable to contact slurm controller"):
        SlurmCommands().change(["hold 7"])
    SlurmCommands().change([])  # asks nobody


@pytest.mark.parametrize("text", ["{", "[]", "{}", '{"jobs": [{}]}', '{"jobs": 3}'])
def test_devices_in_an_unknown_form(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setenv("PATH", f"{tmp_path}:/bin:/usr/bin")
    write_command(tmp_path, "squeue", f"echo '{text}'")
    with pytest.raises(SlurmError, match=r"^squeue --json has an unknown form: "):
        of_jobs(SlurmCommands(), {7})


# ---- texts ---------------------------------------------------------------------------------------------------


def test_records_with_any_characters_in_their_fields() -> None:
    form = RecordFormat(("JobID", "comment"))
    mark = form.option.split(":")[1].split(",")[0]
    text = "".join(
        f"{number}{mark}{comment}{mark}\n"
        for number, comment in (("1", "a\n2|b\n"), ("2", "(null)"), ("3", ""))
    )
    assert list(form.records(text)) == [["1", "a\n2|b\n"], ["2", ""], ["3", ""]]
    assert RecordFormat(("JobID",)).option != RecordFormat(("JobID",)).option
    assert list(form.records("")) == []
    with pytest.raises(SlurmError, match="a list of 1 fields is not one of records of 2"):
        list(form.records(f"1{mark}"))


@pytest.mark.parametrize(
    ("text", "amount"), [("4G", 4096.0), ("62.50G", 64000.0), ("100M", 100.0), ("0", 0.0), ("x", 0.0)]
)
def test_memory(text: str, amount: float) -> None:
    assert megabytes(text) == amount


@pytest.mark.parametrize(
    ("text", "names"), [("n[1-2,4]", ("n1", "n2", "n4")), ("n1", ("n1",)), ("", ()), ("n[2", ())]
)
def test_node_lists(text: str, names: tuple[str, ...]) -> None:
    assert node_names(text) == names


# ---- rules ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "on_n0"),
    [
        ({}, True),
        ({"usable": False}, False),
        ({"idle_cpus": 3}, False),
        ({"free_mb": 10.0}, False),
        ({"features": frozenset({"b"})}, False),
    ],
)
def test_nodes_where_slurm_would_start_a_job(changes: dict[str, Any], on_n0: bool) -> None:
    needs = needs_of(job(memory_mb=500.0, features="a"), "", "")
    assert admissible(needs, nodes(**changes), {}) == ({"n0", "n1"} if on_n0 else {"n1"})


def test_cpus_of_jobs_that_are_about_to_start_count() -> None:
    assert admissible(needs_of(job(), "", ""), nodes(), {"n0": 5}) == {"n1"}


def test_reservations_requested_and_excluded_nodes() -> None:
    reserved = SlurmNodes(nodes().nodes, {"r": frozenset({"n0"})})
    assert admissible(needs_of(job(), "", ""), reserved, {}) == {"n1"}
    assert admissible(needs_of(job(reservation="r"), "", ""), reserved, {}) == {"n0"}
    assert admissible(needs_of(job(reservation="s"), "", ""), reserved, {}) == frozenset()
    assert admissible(needs_of(job(), "n1", ""), nodes(), {}) == {"n1"}
    assert admissible(needs_of(job(), "", "n1"), nodes(), {}) == {"n0"}
    assert admissible(needs_of(job(partition="other"), "", ""), nodes(), {}) == frozenset()


def test_rules_that_are_not_understood_are_left_to_slurm() -> None:
    assert admissible(needs_of(job(features="[a|b]"), "", ""), nodes(), {}) is None
    assert admissible(needs_of(job(num_nodes=3), "n0,n1", ""), nodes(), {}) is None


def test_dependencies_and_begin_times() -> None:
    assert why_not_yet(job(dependency="afterok:3(unfulfilled)"), {"3"}, 0.0) == "dependency"
    assert why_not_yet(job(dependency="singleton(unfulfilled)"), {"3"}, 0.0) == "dependency"
    assert why_not_yet(job(dependency="afterok:3_*(unfulfilled)"), {"4"}, 0.0) is None
    assert why_not_yet(job(eligible=9.0), (), 8.0) == "begin time"
    assert why_not_yet(job(eligible=9.0), (), 9.0) is None


def test_only_decisions_in_flight_hold_their_gpus() -> None:
    told = job(tres="gres:gpu:g6:1,gres:gpu:g3:1", required_nodes="n1")
    gpus = (14, 11)
    entry = Entry("7", Stage.INTENT, named(TWO, gpus))
    assert truth_of([told], TWO, {}, {"7": entry}).starting == {"7": gpus}
    assert truth_of([told], TWO, {}, {}).starting == {}
    assert truth_of([told], TWO, {}, {}).stranded == ()  # it is held: it will be decided again
    released = told._replace(priority=1)
    assert truth_of([released], TWO, {}, {}).stranded == (released,)
    other = job("8", state="R", nodes="n1", tres="gres:gpu:g3:1")
    both = truth_of([released, other], TWO, {}, {"7": entry})
    assert (both.running, both.starting, both.stranded) == ({"8": (11,)}, {}, (released,))


# ---- decisions -----------------------------------------------------------------------------------------------


def test_decisions_keep_to_the_nodes_of_slurm() -> None:
    found = decide(policies.get("topo-aware"), Cluster(TWO), SlurmRequest(2), {"n1"})
    assert isinstance(found, JobDecision)
    assert found.where.nodes == ("n1",)
    refused = decide(policies.get("topo-aware"), Cluster(TWO), SlurmRequest(2), set())
    assert isinstance(refused, Refusal)
    assert not refused.permanent


def test_devices_that_an_old_slurm_still_asks_for() -> None:
    cluster = Cluster(TWO)
    cluster.allocate("other", [0, 8])
    policy = policies.get("topo-aware")
    refused = decide(policy, cluster, SlurmRequest(2), {"n0", "n1"}, kept=(0,))
    assert isinstance(refused, Refusal)
    assert "of an earlier order" in refused.reason
    cluster.release("other")
    cluster.allocate("other", [0])
    found = decide(policy, cluster, SlurmRequest(2), {"n0", "n1"}, kept=(0,))
    assert isinstance(found, JobDecision)
    assert found.where.nodes == ("n1",)


def test_a_least_bandwidth() -> None:
    policy, cluster = policies.get("mapa-preserve"), Cluster(TWO)
    assert isinstance(
        decide(policy, cluster, SlurmRequest(2, sensitive=True, min_bandwidth=50.0), {"n0"}), JobDecision
    )
    refused = decide(policy, cluster, SlurmRequest(2, sensitive=True, min_bandwidth=51.0), {"n0"})
    assert refused == Refusal("its slowest link would have 50 GB/s, less than 51")


def test_places_in_slurms_words() -> None:
    assert where_of(TWO, (6, 3)) == Where(("n0",), (6, 3))
    assert where_of(TWO, (6, 3, 11, 14)) == Where(("n0", "n1"), (6, 3))
    assert (
        where_of(TWO, (6, 3, 11, 15)) == "Slurm gives the same GPUs of each node: [3, 6] is not [3, 7] of n1"
    )
    assert gpus_at(TWO, ["n0", "n1"], [6, 3]) == (6, 3, 14, 11)
    assert gpus_at(TWO, ["n0", "n9"], [6]) is None
    assert gpus_at(TWO, ["n0"], [8]) is None


# ---- segments ------------------------------------------------------------------------------------------------

SQUEUE = """#!{python}
import sys
option = sys.argv[sys.argv.index("-O") + 1]
values = {{"JobArrayID": "7", "JobID": "7", "NumNodes": "4", "SegmentSize": "{segment}"}}
fields = [field.split(":", 1) for field in option.split(",")]
print("".join(values.get(name, "N/A") + separator for name, separator in fields))
"""


@pytest.mark.parametrize(
    ("version", "segment", "expected"),
    [("25.05.3", "2", 2), ("26.05.0", "N/A", 0), ("24.11.5", "2", 0), ("22.05.8", "2", 0)],
)
def test_segments_as_squeue_shows_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: str, segment: str, expected: int
) -> None:
    monkeypatch.setenv("PATH", f"{tmp_path}:/bin:/usr/bin")
    write_command(tmp_path, "scontrol", f"echo slurm-wlm {version}")
    (tmp_path / "squeue").write_text(SQUEUE.format(python=sys.executable, segment=segment), "utf-8")
    (tmp_path / "squeue").chmod(0o755)
    (found,) = listed(SlurmCommands())
    assert (found.job_id, found.num_nodes, found.segment) == ("7", 4, expected)


def in_blocks(sizes: Sequence[int], larger: int = 0) -> Topology:
    """Return machines in blocks of these sizes; larger: how many blocks a larger block has."""
    blocks = [block for block, size in enumerate(sizes) for _ in range(size)]
    names = tuple(f"n{i}" for i in range(len(blocks)))
    levels = [Level("block", tuple(f"b{block}" for block in blocks))]
    if larger:
        levels.append(Level(f"blocks_{larger}", tuple(f"B{block // larger}" for block in blocks)))
    return Topology.cluster(machines.get("dgx1-v100"), fabric=Fabric(names, tuple(levels)))


def segment_fits(free: Mapping[str, int], nodes: int, segment: int) -> bool:
    """Say independently whether so many nodes fit as segments into blocks with so many free nodes each."""
    return sum(count // segment for count in free.values()) * segment >= nodes


@pytest.mark.parametrize("seed", range(30))
def test_each_segment_is_in_one_block(seed: int) -> None:
    generator = random.Random(seed)
    topology = in_blocks([generator.randint(2, 5) for _ in range(4)])
    level = topology.fabric and topology.fabric.levels[0]
    assert level
    block_of = dict(zip(topology.machine_names, level.domains, strict=True))
    nodes = {name for name in block_of if generator.random() < 0.8}
    segment = generator.randint(1, 4)
    request = SlurmRequest(8, segment * generator.randint(2, 4), segment=segment)
    found = decide(policies.get("topo-aware"), Cluster(topology), request, nodes)
    free = Counter(str(block_of[name]) for name in nodes)
    assert isinstance(found, JobDecision) == segment_fits(free, request.nodes, segment)
    if isinstance(found, JobDecision):
        assert set(found.where.nodes) <= nodes
        assert len(set(found.where.nodes)) == request.nodes
        for first in range(0, request.nodes, segment):
            assert len({block_of[name] for name in found.where.nodes[first : first + segment]}) == 1


def test_a_segment_larger_than_a_block_is_in_one_larger_block() -> None:
    topology = in_blocks([2, 2, 2, 2], larger=2)
    found = decide(
        policies.get("topo-aware"),
        Cluster(topology),
        SlurmRequest(8, 6, segment=3),
        set(topology.machine_names) - {"n0"},
    )
    assert isinstance(found, JobDecision)
    places = [int(name[1:]) // 4 for name in found.where.nodes]
    assert sorted((places[:3], places[3:])) == [[0, 0, 0], [1, 1, 1]]


def test_segments_without_blocks_are_refused_by_name() -> None:
    refused = decide(policies.get("topo-aware"), Cluster(TWO), SlurmRequest(8, 2, segment=1), {"n0", "n1"})
    assert isinstance(refused, Refusal)
    assert refused.permanent
    assert refused.reason.startswith("segment = 1 cannot be honoured: the topology has no level of blocks")


def test_groups_of_a_comment_decide_the_nodes() -> None:
    topology = in_blocks([3, 3])
    request = SlurmRequest(8, 4, groups=(SizedGroups(16, "block"),))
    nodes = set(topology.machine_names) - {"n0"}
    found = decide(policies.get("topo-aware"), Cluster(topology), request, nodes)
    assert isinstance(found, JobDecision)
    assert sorted(int(name[1:]) // 3 for name in found.where.nodes) == [0, 0, 1, 1]
    refused = decide(policies.get("topo-aware"), Cluster(topology), request, nodes - {"n1"})
    assert isinstance(refused, Refusal)
    assert "1 of 2 groups of 16 fit within a block; 'b0' lacks 1 machine" in refused.reason


@pytest.mark.parametrize("policy", ["topo-aware", "mapa-preserve", "fcfs"])
@pytest.mark.parametrize("seed", range(10))
def test_segments_of_parts_of_nodes_get_equal_gpus_or_wait(policy: str, seed: int) -> None:
    """The job has all four nodes, so it fits now if enough numbers are free on each of them, and always when idle."""
    generator = random.Random(seed)
    topology = in_blocks([2, 2])
    cluster, request = Cluster(topology), SlurmRequest(generator.randint(1, 4), 4, segment=2)
    busy = {node: set(generator.sample(range(8), generator.randint(0, 4))) for node in topology.machine_names}
    for node, numbers in busy.items():
        if numbers:
            cluster.allocate(f"on {node}", [topology.gpus_of[node][number] for number in numbers])
    found = decide(policies.get(policy), cluster, request, set(topology.machine_names))
    common = set(range(8)).difference(*busy.values())
    assert isinstance(found, JobDecision) == (len(common) >= request.gpus)
    if isinstance(found, JobDecision):
        assert set(found.where.numbers) <= common
    else:
        assert not found.permanent


def test_gpus_that_are_never_equal_are_refused_for_good() -> None:
    idle = in_blocks([2])
    topology = idle.with_unhealthy([0, 9])
    request, nodes = SlurmRequest(7, 2, segment=2), set(topology.machine_names)
    refused = decide(policies.get("topo-aware"), Cluster(topology), request, nodes)
    assert isinstance(refused, Refusal)
    assert refused.permanent
    assert refused.reason.startswith("Slurm gives the same GPUs of each node")
    cluster = Cluster(idle)
    cluster.allocate("other", [0, 9])
    waits = decide(policies.get("topo-aware"), cluster, request, nodes)
    assert isinstance(waits, Refusal)
    assert not waits.permanent
    cluster.release("other")
    cluster.drain(0)
    cluster.drain(9)
    waits = decide(policies.get("topo-aware"), cluster, request, nodes)
    assert isinstance(waits, Refusal)
    assert not waits.permanent


# ---- turns ---------------------------------------------------------------------------------------------------


def test_users_take_turns() -> None:
    turns = Turns()
    jobs = [job(str(number), user="many") for number in range(1, 6)] + [job("9", user="one")]
    assert [one.number for one in turns.order(jobs)] == [1, 9, 2, 3, 4, 5]
    turns.charge(jobs[0], 0.1)
    assert [one.number for one in turns.order(jobs)] == [9, 2, 3, 4, 5, 1]
    turns.start_over()
    for _ in range(200):
        turns.next_cycle()
    assert [one.number for one in turns.order(jobs)] == [1, 9, 2, 3, 4, 5]


# ---- service -------------------------------------------------------------------------------------------------


def test_metrics_are_served_on_the_loopback_interface() -> None:
    figures = Figures(decided=3, fragmentation=0.25)
    figures.deferred["no room"] += 2
    for seconds in (0.05, 0.3, 1000.0):
        figures.note_latency(seconds)
    port = metrics.served(lambda: figures, 0)
    text = urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10).read().decode()
    for line in (
        "topoplace_decided_total 3.0",
        'topoplace_deferred_total{reason="no room"} 2.0',
        "topoplace_fragmentation 0.25",
        'topoplace_latency_seconds_bucket{le="0.1"} 1.0',
        'topoplace_latency_seconds_bucket{le="0.5"} 2.0',
        'topoplace_latency_seconds_bucket{le="+Inf"} 3.0',
        "topoplace_latency_seconds_sum 1000.35",
    ):
        assert line in text


def test_a_slurm_that_does_not_answer_is_tried_again(tmp_path: Path) -> None:
    stopped = threading.Event()
    events: list[str] = []
    cycles: list[int] = []

    class Failing:
        def cycle(self) -> bool:
            cycles.append(1)
            if len(cycles) == 1:
                raise SlurmError("no answer")
            stopped.set()
            return False

    def write_log(event: str, **fields: Any) -> None:
        events.append(event)

    alive = running.alive_file(tmp_path / "j")
    failing: Any = Failing()
    running.run(lambda: failing, interval_s=0.0, alive=alive, write_log=write_log, stopped=stopped)
    assert events == ["started", "slurm_failed", "ended"]
    assert alive.exists()


@pytest.mark.parametrize("name", ["interval", "patience", "grace", "decision_s"])
def test_wrong_settings_are_named(name: str) -> None:
    with pytest.raises(ValueError, match=f"{name} = -1"):
        PlacerSettings(**{name: -1})


@pytest.mark.parametrize(
    ("ran", "is_open", "expected"), [(True, True, "n1"), (True, False, "n0"), (False, True, "n0")]
)
def test_a_requeued_job_returns_to_its_nodes_if_they_are_open(
    tmp_path: Path, ran: bool, is_open: bool, expected: str
) -> None:
    """It ran on n1; n0, which comes first, is idle, too."""
    with Journal(tmp_path / "j") as journal:
        if ran:
            journal.append(Entry("7", Stage.CONFIRMED, named(TWO, (8, 9))))
            journal.append(Entry("7", Stage.ENDED))
        made = Deciding(
            policies.get("least-time"),
            Cluster(TWO),
            journal,
            PlacerSettings(),
            Figures(),
            lambda *_, **__: None,
            keeps_old=False,
            monotonic=lambda: 0.0,
        )
        made.requests.read(SlurmCommands(), [job()])
        there = nodes() if is_open else SlurmNodes({"n0": nodes().nodes["n0"]}, {})
        lines = made.orders_for([job()], [], {"7"}, there, 0.0)
        assert any(f"JobId=7 ReqNodeList={expected} " in line for line in lines)
