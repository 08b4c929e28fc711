"""The placer next to a real slurmctld: jobs get the GPUs that were decided, under all that may happen to a job."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from slurm_jobs import SEES, given, mismatch, seen, states, told, wait_for
from topoplace import Cluster, JobGraph, Placement, Refusal, Topology, machines, policies
from topoplace.engine.plan import Plan, QueuedJob
from topoplace.errors import SlurmError
from topoplace.policies import Baseline
from topoplace_hosts.journal import Journal, Stage
from topoplace_hosts.slurm.client.commands import SlurmCommands
from topoplace_hosts.slurm.fallback import release_waiting
from topoplace_hosts.slurm.placer import Placer, PlacerSettings
from topoplace_hosts.slurm.testing import SlurmCluster

SETTINGS = PlacerSettings(interval=0.05, patience=1.0, grace=2.0)


class Placing:
    """A placer for the toy cluster, its journal and its log."""

    def __init__(self, slurm: SlurmCluster, path: Path, policy: Any = None, **settings: float) -> None:
        self.slurm = slurm
        self.path = path
        self.policy = policy or policies.get("topo-aware")
        self.settings = replace(SETTINGS, **settings)
        self.log: list[dict[str, Any]] = []
        self.set_back_s = 0.0
        self.when: dict[str, Callable[[], object]] = {}
        self.commands = SlurmCommands(slurm.environment)
        self.start()

    def start(self) -> None:
        self.journal = Journal(self.path)
        self.placer = Placer(
            self.slurm.topology,
            self.policy,
            self.journal,
            commands=self.commands,
            settings=self.settings,
            write_log=self.note,
            clock=lambda: time.time() - self.set_back_s,
        )

    def note(self, event: str, **fields: Any) -> None:
        """Keep an event, and do what `when` says of it at that moment."""
        self.log.append({"event": event, **fields})
        self.when.get(event, lambda: None)()

    def restart(self) -> None:
        """Forget all that is not on the disk."""
        self.journal.close()
        self.start()

    def until(self, what: Any, timeout_s: float = 60.0) -> None:
        wait_for(what, self.placer.cycle, timeout_s, lambda: (states(self.slurm), self.log[-5:]))

    def until_gone(self) -> None:
        self.until(lambda: not states(self.slurm))

    def until_runs(self, *jobs: str) -> None:
        self.until(lambda: all(states(self.slurm).get(job, "").startswith("R") for job in jobs))

    def events(self, event: str) -> list[dict[str, Any]]:
        return [one for one in self.log if one["event"] == event]


@pytest.fixture
def placing(slurm: SlurmCluster, tmp_path: Path) -> Iterator[Placing]:
    placing = Placing(slurm, tmp_path / "journal")
    yield placing
    placing.journal.close()
    empty(slurm)


def empty(slurm: SlurmCluster) -> None:
    """End all jobs; those that run by a signal, which is quicker than a cancellation."""
    slurm.run("scancel", "--state=PENDING", "--user=root")
    slurm.run("scancel", "--full", "--signal=KILL", "--user=root")
    slurm.wait_until_empty()


# ---- what is decided is what jobs get ----------------------------------------------------------------------


@pytest.mark.parametrize("policy", ["topo-aware", "mapa-preserve", "fcfs", "fgd", "drmaestro", "baseline"])
def test_jobs_get_what_was_decided(placing: Placing, policy: str) -> None:
    placing.policy = policies.get(policy)
    placing.restart()
    slurm = placing.slurm
    jobs = [slurm.submit(f"--gres=gpu:{count}", script=SEES + "sleep 0.3") for count in (1, 2, 4, 8, 3, 5)]
    placing.until_gone()
    assert [mismatch(slurm, placing.journal, job) for job in jobs] == [None] * 6
    assert all(len(seen(slurm, job)) == 1 for job in jobs)
    assert placing.placer.figures.confirmed == placing.placer.figures.decided == 6
    assert not placing.placer.figures.differences


def test_requirements_reach_the_policy(placing: Placing) -> None:
    """Of four tasks in a ring, the links of MAPA's choice for a sensitive job are faster than those of GPUs 0 to 3."""
    comment = json.dumps({"pattern": "ring", "sensitive": True})
    job = placing.slurm.submit("--gres=gpu:V100:4", f"--comment={comment}", script=SEES)
    placing.until_gone()
    assert mismatch(placing.slurm, placing.journal, job) is None
    event = placing.events("decided")[0]
    wanted = JobGraph.ring(4).with_(bandwidth_sensitive=True, gpu_model="V100", single_machine=True)
    assert event["gpus"] == placing.policy.place(wanted, Cluster(placing.slurm.topology)).gpus
    assert (event["job"], event["user"], event["policy"]) == (job, "0", "topo-aware")


def test_gangs_have_the_same_gpus_on_each_node(placing: Placing) -> None:
    slurm = placing.slurm
    single = slurm.submit("--gres=gpu:5", script=SEES + "sleep 30")
    placing.until_runs(single)
    gang = slurm.submit("-N2", "--gres=gpu:8", script=SEES)
    placing.until(lambda: gang not in states(slurm))
    assert mismatch(slurm, placing.journal, gang) is None
    nodes, numbers = given(slurm, gang)
    assert (len(nodes), len(numbers)) == (2, 8)
    assert nodes.isdisjoint(given(slurm, single)[0])


def test_gangs_on_parts_of_nodes_have_the_same_gpus_on_each(placing: Placing) -> None:
    """The policy would rather use one node; the job has asked Slurm for two."""
    slurm = placing.slurm
    job = slurm.submit("-N2", "--gres=gpu:2", script=SEES)
    placing.until_gone()
    assert mismatch(slurm, placing.journal, job) is None
    assert [len(part) for part in given(slurm, job)] == [2, 2]


def test_what_slurm_cannot_express_is_left_to_it_by_name(placing: Placing) -> None:
    slurm = placing.slurm

    class Unequal(Baseline):
        def plan(self, queue: Sequence[QueuedJob], cluster: Cluster, now: float) -> Plan:
            placement = Placement((0, 9), topology=cluster.topology, job=queue[0].job)
            return Plan(start=((queue[0].job_id, placement),))

    placing.policy = Unequal()
    placing.restart()
    job = slurm.submit("-N2", "--gres=gpu:1", script="true")
    placing.until_gone()
    (event,) = placing.events("given_back")
    assert (event["job"], event["kind"]) == (job, "cannot be placed")
    assert event["reason"] == "Slurm gives the same GPUs of each node: [0] is not [1] of n1"
    assert len(given(slurm, job)[0]) == 2


@pytest.mark.parametrize(
    ("comment", "reason"),
    [
        ('{"pattern": "x\x1b"}', "is not a JSON object"),
        ('{"min_utility": 7}', "min_utility = 7 is not in 0..1"),
        ('{"within": "rack"}', "within = 'rack' cannot be honoured"),
        ('{"model": "H100"}', "H100"),
    ],
)
def test_strange_requests_are_left_to_slurm_by_name(placing: Placing, comment: str, reason: str) -> None:
    job = placing.slurm.submit("--gres=gpu:2", f"--comment={comment}", script=SEES)
    placing.until_gone()
    (event,) = placing.events("given_back")
    assert event["job"] == job
    assert reason in event["reason"]
    assert len(given(placing.slurm, job)[1]) == 2


def test_jobs_of_slurm_and_ours_share_nodes(placing: Placing) -> None:
    slurm = placing.slurm
    own = slurm.submit("--gpus=3", "-N1", script="sleep 30")
    wait_for(lambda: states(slurm)[own].startswith("R"), lambda: None)
    job = slurm.submit("--gres=gpu:8", script=SEES)
    placing.until(lambda: job not in states(slurm))
    assert mismatch(slurm, placing.journal, job) is None
    assert given(slurm, job)[0].isdisjoint(given(slurm, own)[0])
    assert len(placing.placer.cluster.gpus_of(own)) == 3


# ---- what Slurm would not start is not decided -------------------------------------------------------------


def not_decided(placing: Placing, job: str, reason: str) -> None:
    before = placing.placer.figures.deferred[reason]
    for _ in range(3):
        placing.placer.cycle()
    assert placing.placer.figures.deferred[reason] >= before + 3
    assert not told(placing.journal, job)


def test_dependencies(placing: Placing) -> None:
    slurm = placing.slurm
    first = slurm.submit("--gres=gpu:1", script="sleep 1")
    second = slurm.submit("--gres=gpu:1", f"--dependency=afterok:{first}", script=SEES)
    not_decided(placing, second, "dependency")
    placing.until_gone()
    assert mismatch(slurm, placing.journal, second) is None


def test_jobs_after_a_failure_are_left_to_slurm(placing: Placing) -> None:
    slurm = placing.slurm
    first = slurm.submit("--gres=gpu:1", script="exit 1")
    second = slurm.submit("--gres=gpu:1", f"--dependency=afterok:{first}", script="true")
    placing.until(lambda: states(slurm).get(second) == "PD DependencyNeverSatisfied")
    placing.placer.cycle()
    assert not placing.placer.cluster.allocations


def test_begin_times(placing: Placing) -> None:
    job = placing.slurm.submit("--gres=gpu:1", "--begin=now+2", script=SEES)
    not_decided(placing, job, "begin time")
    placing.until_gone()
    assert mismatch(placing.slurm, placing.journal, job) is None


def test_reservations(placing: Placing) -> None:
    slurm = placing.slurm
    nodes = ("StartTime=now", "Duration=10", "Nodes=n[0-2]", "Users=root")
    slurm.run("scontrol", "create", "reservation", "ReservationName=r", *nodes)
    try:
        inside = slurm.submit("--gres=gpu:2", "--reservation=r", script=SEES)
        outside = slurm.submit("--gres=gpu:2", script=SEES)
        placing.until_gone()
    finally:
        slurm.run("scontrol", "delete", "ReservationName=r")
    assert [mismatch(slurm, placing.journal, job) for job in (inside, outside)] == [None, None]
    assert given(slurm, outside)[0] == {"n3"}
    assert given(slurm, inside)[0] <= {"n0", "n1", "n2"}


def test_partitions_that_are_down(placing: Placing) -> None:
    slurm = placing.slurm
    slurm.run("scontrol", "update", "PartitionName=all", "State=DOWN")
    job = slurm.submit("--gres=gpu:1", script=SEES)
    not_decided(placing, job, "no room")
    slurm.run("scontrol", "update", "PartitionName=all", "State=UP")
    placing.until_gone()
    assert mismatch(slurm, placing.journal, job) is None


@pytest.mark.parametrize(
    ("options", "nodes"),
    [(["--nodelist=n2"], {"n2"}), (["--exclude=n[0-1,3]"], {"n2"}), (["-c", "32"], {"n3"})],
)
def test_nodes_that_the_user_wants(placing: Placing, options: list[str], nodes: set[str]) -> None:
    slurm = placing.slurm
    busy = [slurm.submit("-c2", f"--nodelist={node}", script="sleep 30") for node in ("n0", "n1", "n2")]
    wait_for(lambda: all(states(slurm)[job].startswith("R") for job in busy), lambda: None)
    job = slurm.submit("--gres=gpu:2", *options, script=SEES)
    placing.until(lambda: job not in states(slurm))
    assert mismatch(slurm, placing.journal, job) is None
    assert given(slurm, job)[0] == nodes


def test_holds_of_operators_are_respected(placing: Placing) -> None:
    slurm = placing.slurm
    job = slurm.submit("--gres=gpu:1", script=SEES)
    slurm.run("scontrol", "hold", job)
    for _ in range(3):
        placing.placer.cycle()
    assert states(slurm)[job] == "PD JobHeldAdmin"
    assert not told(placing.journal, job)


# ---- what happens to jobs and nodes ------------------------------------------------------------------------


def test_arrays(placing: Placing) -> None:
    slurm = placing.slurm
    array = slurm.submit("--gres=gpu:4", "--array=1-6%3", script=SEES + "sleep 0.2")
    placing.until_gone()
    assert [mismatch(slurm, placing.journal, f"{array}_{task}") for task in range(1, 7)] == [None] * 6


def test_cancelled_before_and_after_the_start(placing: Placing) -> None:
    slurm = placing.slurm
    jobs = [slurm.submit("--gres=gpu:8", script="sleep 60") for _ in range(5)]
    placing.until_runs(*jobs[:4])
    placing.until(lambda: placing.journal.latest()[jobs[0]].stage is Stage.CONFIRMED)
    slurm.run("scancel", jobs[4], jobs[0])
    another = slurm.submit("--gres=gpu:8", script=SEES)
    placing.until(lambda: another not in states(slurm))
    assert mismatch(slurm, placing.journal, another) is None
    assert jobs[4] not in placing.journal.latest()
    assert placing.journal.latest()[jobs[0]].stage is Stage.ENDED


def test_cancelled_between_decision_and_start(placing: Placing) -> None:
    slurm = placing.slurm
    job = slurm.submit("--gres=gpu:8", script="true")
    placing.when["decided"] = lambda: slurm.run("scancel", job)
    placing.until_gone()
    placing.placer.cycle()
    assert placing.journal.latest()[job].stage is Stage.WITHDRAWN
    assert not placing.placer.cluster.allocations
    assert not placing.placer.figures.differences


def test_requeued_jobs_are_decided_again(placing: Placing) -> None:
    slurm = placing.slurm
    job = slurm.submit("--gres=gpu:4", "--requeue", script=SEES + 'test "$SLURM_RESTART_COUNT" || sleep 60')
    placing.until_runs(job)
    wait_for(lambda: seen(slurm, job), lambda: None)
    slurm.run("scontrol", "requeue", job)
    placing.until(lambda: states(slurm)[job] == "PD JobHeldUser")
    slurm.run("scontrol", "update", f"JobId={job}", "StartTime=now")  # Slurm lets it wait two minutes
    placing.until_gone()
    assert len(seen(slurm, job)) == 2
    assert mismatch(slurm, placing.journal, job) is None


def test_drained_nodes_get_no_jobs(placing: Placing) -> None:
    slurm = placing.slurm
    for node in ("n0", "n1", "n3"):
        slurm.run("scontrol", "update", f"NodeName={node}", "State=DRAIN", "Reason=test")
    jobs = [slurm.submit("--gres=gpu:8", script=SEES + "sleep 0.3") for _ in range(3)]
    placing.until_runs(jobs[0])
    assert [given(slurm, job)[0] for job in jobs[:1]] == [{"n2"}]
    for node in ("n0", "n1", "n3"):
        slurm.run("scontrol", "update", f"NodeName={node}", "State=RESUME")
    placing.until_gone()
    assert [mismatch(slurm, placing.journal, job) for job in jobs] == [None] * 3


def test_a_clock_that_is_set_back_delays_nothing(placing: Placing) -> None:
    """Nodes are read again, and a job that does not start where it was ordered to is decided again, within seconds."""
    slurm = placing.slurm
    placing.placer.cycle()
    placing.set_back_s = 3600.0
    slurm.run("scontrol", "update", "NodeName=n0", "State=DRAIN", "Reason=test")
    try:
        placing.until(lambda: placing.events("node_unusable"), timeout_s=5.0)
        job = slurm.submit("--gres=gpu:8", script=SEES)
        placing.when["decided"] = lambda: slurm.run(
            "scontrol", "update", "PartitionName=all", "State=INACTIVE"
        )
        placing.until(lambda: placing.events("recalled"), timeout_s=20.0)
    finally:
        placing.when.clear()
        slurm.run("scontrol", "update", "PartitionName=all", "State=UP")
        slurm.run("scontrol", "update", "NodeName=n0", "State=RESUME")
    placing.until_gone()
    assert mismatch(slurm, placing.journal, job) is None


def test_a_node_that_drains_before_the_start(placing: Placing) -> None:
    slurm = placing.slurm
    nodes: list[str] = []

    def drain() -> None:
        if not nodes:
            (node,) = placing.log[-1]["nodes"]
            nodes.append(node)
            slurm.run("scontrol", "update", f"NodeName={node}", "State=DRAIN", "Reason=test")

    placing.when["decided"] = drain
    job = slurm.submit("--gres=gpu:8", script=SEES)
    try:
        placing.until_gone()
    finally:
        placing.when.clear()
        for node in nodes:
            slurm.run("scontrol", "update", f"NodeName={node}", "State=RESUME")
    (node,) = nodes
    assert mismatch(slurm, placing.journal, job) is None
    assert node not in given(slurm, job)[0]
    assert placing.placer.figures.recalled == 1


def test_a_node_that_fails(slurm: SlurmCluster, tmp_path: Path) -> None:
    """Slurm notices, and requeues the job; it is decided again, elsewhere."""
    with SlurmCluster(slurm.topology, settings={"SlurmdTimeout": "4"}) as fresh:
        placing = Placing(fresh, tmp_path / "journal")
        job = fresh.submit(
            "--gres=gpu:8", "--requeue", script=SEES + 'test "$SLURM_RESTART_COUNT" || sleep 60'
        )
        placing.until(lambda: seen(fresh, job))
        failed = seen(fresh, job)[0][0]
        fresh.kill_node(failed)
        placing.until(lambda: states(fresh)[job] == "PD JobHeldUser", timeout_s=90)
        fresh.run("scontrol", "update", f"JobId={job}", "StartTime=now")
        placing.until_gone()
        placing.journal.close()
        with Journal(tmp_path / "journal") as journal:
            assert mismatch(fresh, journal, job) is None
        assert seen(fresh, job)[1][0] != failed


# ---- waiting -----------------------------------------------------------------------------------------------


class Never(Baseline):
    """A policy that prefers to wait."""

    name = "never"

    def reason_to_wait(self, job: JobGraph, placement: Placement) -> Refusal | None:
        return Refusal("better times will come")


def test_patience_ends_in_slurms_own_choice(slurm: SlurmCluster, tmp_path: Path) -> None:
    placing = Placing(slurm, tmp_path / "journal", Never(), patience=0.5)
    job = slurm.submit("--gres=gpu:2", script=SEES)
    placing.until_gone()
    placing.journal.close()
    (event,) = placing.events("given_back")
    assert (event["job"], event["kind"]) == (job, "patience")
    assert len(given(slurm, job)[1]) == 2


def test_a_full_cluster_does_not_tire_patience(placing: Placing) -> None:
    slurm = placing.slurm
    jobs = [slurm.submit("--gres=gpu:8", script=SEES + "sleep 2.5") for _ in range(5)]
    placing.until_gone()
    assert not placing.events("given_back")
    assert [mismatch(slurm, placing.journal, job) for job in jobs] == [None] * 5


def test_a_least_bandwidth_is_waited_for(placing: Placing) -> None:
    """A pair at 50 GB/s is found; one at 60 GB/s does not exist on a DGX-1V."""
    slurm = placing.slurm
    fast, never = (
        slurm.submit("--gres=gpu:2", script="sleep 0.2", env={"TOPOPLACE_MIN_BANDWIDTH": least})
        for least in ("50", "60")
    )
    placing.until_gone()
    assert [event["job"] for event in placing.events("decided")] == [fast]
    (event,) = placing.events("given_back")
    assert (event["job"], event["kind"]) == (never, "patience")
    assert "less than 60" in event["reason"]


def test_without_a_placer_slurm_chooses(slurm: SlurmCluster, tmp_path: Path) -> None:
    commands, alive = SlurmCommands(slurm.environment), tmp_path / "alive"
    events: list[str] = []

    def write(event: str, **fields: Any) -> None:
        events.append(event)

    job = slurm.submit("--gres=gpu:2", script="true")
    alive.touch()
    now = time.time()
    assert release_waiting(commands, alive, patience_s=60, now=now, write_log=write) == 0
    assert release_waiting(commands, alive, patience_s=60, now=now + 61, write_log=write) == 1
    slurm.wait_until_empty()
    assert len(given(slurm, job)[1]) == 2
    assert events == ["given_back"]


def test_a_job_without_its_request_gets_it_back(slurm: SlurmCluster, tmp_path: Path) -> None:
    """The placer died between the two lines of an order: the job asks for no GPU, and must not start so."""
    job = slurm.submit("--gres=gpu:3", script="true")
    slurm.run("scontrol", "update", f"JobId={job}", "TresPerNode=")
    commands = SlurmCommands(slurm.environment)
    done = release_waiting(
        commands, tmp_path / "none", patience_s=0, now=time.time() + 9, write_log=lambda *_, **__: None
    )
    slurm.wait_until_empty()
    assert done == 1
    assert len(given(slurm, job)[1]) == 3


# ---- crashes -----------------------------------------------------------------------------------------------


class Dying(SlurmCommands):
    """Commands of a placer that dies after `lines` lines to scontrol."""

    def __init__(self, slurm: SlurmCluster, lines: int) -> None:
        super().__init__(slurm.environment)
        self.left = lines

    def change(self, lines: Any) -> None:
        super().change(lines[: self.left])
        self.left -= len(lines)
        if self.left < 0:
            raise KeyboardInterrupt


@pytest.mark.parametrize("lines", range(9))
def test_killed_after_any_line(placing: Placing, lines: int) -> None:
    """Three lines for each job: what it asked for goes, what it gets comes, and it is released."""
    slurm = placing.slurm
    jobs = [slurm.submit(f"--gres=gpu:{count}", script=SEES + "sleep 0.2") for count in (2, 8, 8)]
    placing.commands = Dying(slurm, lines)
    placing.restart()
    with pytest.raises(KeyboardInterrupt):
        placing.until_gone()
    placing.commands = SlurmCommands(slurm.environment)
    placing.restart()
    placing.until_gone()
    assert [mismatch(slurm, placing.journal, job) for job in jobs] == [None] * 3


def test_a_lost_journal_is_no_mismatch(placing: Placing, tmp_path: Path) -> None:
    slurm = placing.slurm
    jobs = [slurm.submit("--gres=gpu:4", script=SEES + "sleep 1") for _ in range(3)]
    placing.until(lambda: told(placing.journal, jobs[2]))
    placing.path = tmp_path / "another"
    placing.restart()
    placing.until_gone()
    assert [len(given(slurm, job)[1]) for job in jobs] == [4] * 3
    assert [seen(slurm, job)[0][1] == given(slurm, job)[1] for job in jobs] == [True] * 3


def test_slurmctld_that_is_killed(slurm: SlurmCluster, tmp_path: Path) -> None:
    """It comes back with what it last saved: the job, but not what it was told. So the job is decided again."""
    with SlurmCluster(slurm.topology) as fresh:
        job = fresh.submit("--gres=gpu:4", script=SEES)
        saved = fresh.folder / "state" / "job_state"
        wait_for(saved.exists, lambda: None)
        placing = Placing(fresh, tmp_path / "journal")
        placing.until(lambda: told(placing.journal, job))
        fresh.kill_controller()
        with pytest.raises(SlurmError):
            placing.placer.cycle()
        fresh.restart_controller()
        placing.until_gone()
        assert mismatch(fresh, placing.journal, job) is None
        placing.journal.close()


def test_nodes_without_types_are_refused(tmp_path: Path, slurm: SlurmCluster) -> None:
    others = Topology.cluster(machines.get("dgx1-v100"), 1, names=["elsewhere"])
    with (
        Journal(tmp_path / "j") as journal,
        pytest.raises(SlurmError, match="none of the machines elsewhere is a node"),
    ):
        Placer(others, Baseline(), journal, commands=SlurmCommands(slurm.environment))
    plain = SlurmCluster(others, types=False)
    with plain, Journal(tmp_path / "j") as journal, pytest.raises(SlurmError, match="not a type per device"):
        Placer(others, Baseline(), journal, commands=SlurmCommands(plain.environment))
