"""Faults in the code of a user's own policy: named with method, file and line, not shown as a traceback."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import topoplace as tp
from command_line import Call
from distributions import whole
from topoplace.policies import installed
from topoplace.testing import check_policy

MODULE = """
import topoplace as tp
from topoplace.policies import SearchPolicy


class Lowest(SearchPolicy):
    name = "lowest"

    def best(self, job, cluster, free, required=frozenset()):
        gpus = tuple(sorted((*required, *sorted(free - required)[: job.num_tasks - len(required)])))
        scores = tp.objectives.scores_of(job, gpus, cluster.topology, cluster.free_gpus())
        return tp.Placement(gpus=gpus, scores=scores, topology=cluster.topology, job=job)


class Raises(Lowest):
    def best(self, job, cluster, free, required=frozenset()):
        return {}["x"]


class RaisesBelow(Lowest):
    def best(self, job, cluster, free, required=frozenset()):
        return tp.Placement(gpus="abc", topology=cluster.topology)


class Exits(Lowest):
    def best(self, job, cluster, free, required=frozenset()):
        raise SystemExit(0)


class ReturnsText(Lowest):
    def best(self, job, cluster, free, required=frozenset()):
        return "gpu0"


class ReturnsList(Lowest):
    def best(self, job, cluster, free, required=frozenset()):
        return [0, 1]


class WaitsForText(Lowest):
    def reason_to_wait(self, job, placement):
        return "later"


class OrdersByText(Lowest):
    def order(self, job, placement):
        return "high"


class OrdersMachinesByNumber(Lowest):
    def machine_order(self, job, placement, machine):
        return 5


class TakesNothing(Lowest):
    def best(self, job, cluster, free, required=frozenset()):
        return None


class TakesBusy(Lowest):
    def best(self, job, cluster, free, required=frozenset()):
        return super().best(job, cluster, frozenset(range(cluster.topology.num_gpus)))


class Plain:
    name = "plain"
    answers = None, None, None

    def place(self, job, cluster):
        return self.answers[0]

    def explain(self, job, cluster, top=5):
        return self.answers[1]

    def plan(self, queue, cluster, now):
        return self.answers[2]


class SaysNothing(Plain):
    answers = None, tp.policies.Explanation("plain", ()), tp.policies.Plan(start=(("0", 3),))


class TakesNoTime(Plain):
    def plan(self, queue, cluster):
        return tp.policies.Plan()


class Strange(Plain):
    answers = "a", tp.policies.Explanation("plain", ("a",)), tp.policies.Plan(start=5)
"""


@pytest.fixture(autouse=True)
def _module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "faulty_policies.py").write_text(MODULE, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)


def at(text: str) -> str:
    return f"(faulty_policies.py, line {1 + MODULE[: MODULE.index(text)].count(chr(10))})"


FAULTS = [
    ("Raises", "best raised KeyError: 'x' " + at('{}["x"]')),
    ("RaisesBelow", "best raised AllocationError: gpus = 'abc' is not a sequence " + at('gpus="abc"')),
    ("Exits", "best raised SystemExit: 0 " + at("raise SystemExit")),
    ("ReturnsText", "best returned 'gpu0', not a Placement or None"),
    ("ReturnsList", "best returned [0, 1], not a Placement or None"),
    ("WaitsForText", "reason_to_wait returned 'later', not a Refusal or None"),
]


@whole
@pytest.mark.parametrize(("policy", "fault"), FAULTS, ids=[policy for policy, _ in FAULTS])
@pytest.mark.parametrize(
    "command", [("place", "--gpus", 2), ("simulate", "--num-jobs", 3)], ids=lambda one: one[0]
)
def test_a_fault_is_named(call: Call, command: tuple[object, ...], policy: str, fault: str) -> None:
    done = call(command[0], "summit", *command[1:], "--policy", f"faulty_policies:{policy}")
    assert (done.code, done.out) == (2, "")
    assert done.err == f"topoplace: --policy = 'faulty_policies:{policy}': {fault}\n"


@whole
@pytest.mark.parametrize(
    ("policy", "command", "fault"),
    [
        ("Plain", "place", "explain returned None, not an Explanation"),
        ("Plain", "simulate", "plan returned None, not a Plan"),
        ("SaysNothing", "place", "explain returned neither a candidate nor a refusal"),
        ("SaysNothing", "simulate", "plan returned 3, not a Placement"),
        ("Strange", "place", "explain returned 'a', not a Placement"),
        (
            "Strange",
            "simulate",
            "calling it or using its answer raised TypeError: 'int' object is not iterable (scheduling.py, line ",
        ),
        (
            "TakesNoTime",
            "simulate",
            "calling it or using its answer raised TypeError: TakesNoTime.plan() takes 3 positional arguments",
        ),
        ("TakesBusy", "place", "its placement (0, 1) is wrong: GPUs [1] are not free"),
        ("TakesBusy", "simulate", "gpus[0] = 0 is held by job '0'"),
    ],
)
def test_an_answer_that_cannot_be_used_is_named(call: Call, policy: str, command: str, fault: str) -> None:
    more = ("--gpus", 2, "--busy", 1) if command == "place" else ("--num-jobs", 3, "--queue", "own")
    done = call(command, "summit", *more, "--policy", f"faulty_policies:{policy}")
    assert (done.code, done.out, done.err.count("\n")) == (2, "", 1)
    assert done.err.startswith(f"topoplace: --policy = 'faulty_policies:{policy}': {fault}")


@whole
def test_programs_beside_slurm_and_kubernetes_end_with_the_fault(
    call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def decides(topology: tp.Topology, policy: tp.Policy, *_: object, **__: object) -> None:
        policy.place(tp.JobGraph.ring(2), tp.Cluster(topology))

    named = {
        "clusters": [{"name": "c", "cluster": {"server": "http://127.0.0.1:1"}}],
        "users": [{"name": "u", "user": {}}],
        "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
        "current-context": "x",
    }
    (tmp_path / "kubeconfig").write_text(json.dumps(named), "utf-8")
    for command in ("squeue", "sinfo", "scontrol"):
        (tmp_path / command).write_text("")
        (tmp_path / command).chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr("signal.signal", lambda *_: None)  # it would keep the programs' handlers
    monkeypatch.setattr("topoplace_hosts.slurm.placer.Placer", decides)
    monkeypatch.setattr("topoplace_hosts.kubernetes.scheduler.Scheduler", decides)
    for command in (
        ("slurm", "run", "summit", "--journal", tmp_path / "journal"),
        ("kubernetes", "scheduler", "summit", "--kubeconfig", tmp_path / "kubeconfig"),
    ):
        done = call(*command, "--policy", "faulty_policies:Raises")
        assert (done.code, done.out) == (2, "")
        assert done.err == f"topoplace: --policy = 'faulty_policies:Raises': {FAULTS[0][1]}\n"


def test_a_policy_that_takes_nothing_is_not_said_to_lack_links(call: Call) -> None:
    done = call("place", "summit", "--gpus", 1, "--policy", "faulty_policies:TakesNothing")
    assert (done.code, "the policy chooses none of the 6 free GPUs" in done.out + done.err) == (1, True)


@whole
def test_compare_sets_a_faulty_policy_aside(call: Call) -> None:
    faulty = "faulty_policies:Raises"
    done = call("simulate", "summit", "--num-jobs", 3, "--policies", f"baseline,{faulty}")
    assert done.code == 0
    assert f"{faulty} is set aside: best raised KeyError: 'x' (faulty_policies.py, line " in done.err
    alone = call("simulate", "summit", "--num-jobs", 3, "--policies", faulty)
    assert (alone.code, alone.out) == (2, "")
    told = f"topoplace: --policy = {faulty!r}: best raised KeyError: 'x' (faulty_policies.py, line "
    assert alone.err.startswith(told)


@whole
def test_the_suite_says_why_it_could_not_judge_a_policy(call: Call, tmp_path: Path) -> None:
    faulty = "faulty_policies:Raises"
    limits = ("--quick", "--policies", "random-fit", "--workers", 1)
    done = call("sweep", "suite", "-o", tmp_path / "out", "--policy", faulty, *limits)
    assert done.code == 0
    told = [line for line in done.out.splitlines() if line.startswith(f"{faulty} fails: ")]
    assert told == [f"{faulty} fails: {FAULTS[0][1]}"]


def test_commands_that_move_jobs_name_a_fault(call: Call, tmp_path: Path) -> None:
    running = tmp_path / "running.csv"
    running.write_text("job_id,gpus\na,0\nb,3\n")
    named = ("--running", running, "--policy", "faulty_policies:Raises")
    for command in (("make-room", "summit", "--gpus", 3), ("make-room", "summit", "--gpus", 3, "--moves", 8)):
        done = call(*command, *named)
        assert done.code == 2
        assert (
            "--policy = 'faulty_policies:Raises': best raised KeyError: 'x' (faulty_policies.py, line "
            in done.err
        )


@pytest.mark.parametrize(
    ("policy", "fault"),
    [
        ("ReturnsText", "best returned 'gpu0', not a Placement or None$"),
        ("ReturnsList", r"best returned \[0, 1\], not a Placement or None$"),
        ("WaitsForText", "reason_to_wait returned 'later', not a Refusal or None$"),
        ("OrdersByText", "'lowest': order returned 'high', not a tuple$"),
        ("OrdersMachinesByNumber", "'lowest': machine_order returned 5, not a tuple$"),
        ("Plain", "plain: .*explain returned None, not an Explanation$"),
        ("Strange", "plain: .*place returned 'a', not a Placement or None$"),
    ],
)
def test_check_policy_names_an_answer_that_cannot_be_used(policy: str, fault: str) -> None:
    made = tp.policies.get(f"faulty_policies:{policy}")
    with pytest.raises(AssertionError, match=fault):
        check_policy(made, states=0)


def test_faults_of_built_in_policies_and_errors_about_arguments_stay_what_they_are() -> None:
    with pytest.raises(KeyError), installed.faults_named(tp.policies.get("baseline"), "--policy: "):
        raise KeyError("a fault of ours")
    made = tp.policies.get("faulty_policies:Lowest")
    with pytest.raises(ValueError, match="seed = -1"), installed.faults_named(made, "--policy: "):
        raise ValueError("seed = -1")
