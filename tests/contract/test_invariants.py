"""`check_policy` finds the fault of every mutant, and none in a policy that keeps the contract."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

import topoplace as tp
from policy_mutants import MUTANTS, Correct, LeavesTheDomain, on
from thoroughness import share, thorough
from topoplace import _checks
from topoplace.testing import Report, check_policy
from topoplace.testing.default_cases import default_topologies

NEEDS_MANY_STATES = {LeavesTheDomain}
SHOWN_ON = {
    "CountsCpusOfIdleMachines": 3,
    "ExplainsByHash": 0,
    "HashesNames": 0,
    "IgnoresPartitions": 7,
    "LeavesTheDomain": 5,
    "NeverPlaces": 0,
    "NeverStarts": 0,
    "TakesHeldGpus": 3,
    "TakesOtherGpusOnEachMachine": 4,
}
"""Faults that are found late, and a topology on which each is found: its place among the default ones."""


@pytest.mark.parametrize("policy", MUTANTS, ids=lambda policy: policy.__name__)
def test_a_broken_policy_is_caught(policy: type[tp.Policy]) -> None:
    states = 6 if policy in NEEDS_MANY_STATES else thorough(6, 2)
    with pytest.raises(AssertionError, match=MUTANTS[policy]):
        check_policy(policy, topologies=topologies_with(policy), states=states)


def topologies_with(policy: type[tp.Policy]) -> Sequence[tp.Topology]:
    every = default_topologies()
    return share(every, SHOWN_ON[policy.__name__], of=len(every)) if policy.__name__ in SHOWN_ON else every


class TakesTheFirst(Correct):
    """Breaks anti_affinity on an idle cluster, which is tried first, and later takes GPUs that are not free."""

    def change(self, placement: tp.Placement, job: tp.JobGraph, cluster: tp.Cluster) -> tp.Placement:
        return on(placement, range(job.num_tasks))


def test_gpus_that_cannot_be_had_are_told_before_a_requirement_that_is_not_met() -> None:
    jobs = tp.JobGraph.ring(2).with_(anti_affinity=True), tp.JobGraph.ring(1)
    for states, fault in ((0, "anti_affinity, but on"), (6, r"GPUs \[[01, ]+\] are (not free|drained)$")):
        with pytest.raises(AssertionError, match=fault):
            check_policy(TakesTheFirst, topologies=default_topologies()[:1], jobs=jobs, states=states)


@pytest.mark.parametrize("name", tp.policies.names())
def test_a_built_in_policy_passes(name: str) -> None:
    states, topologies = thorough(6, 1), share(default_topologies(), tp.policies.names().index(name), of=5)
    report = check_policy(lambda: tp.policies.get(name), topologies=topologies, states=states)
    assert report.unchecked == ()
    assert report.decisions == 48 * len(topologies) * (states + 1)
    assert report.placed > 3 * len(topologies) * (states + 1)


@pytest.mark.parametrize(
    "policy", [Correct, Correct(), lambda: Correct()], ids=["class", "object", "function"]
)
def test_a_correct_policy_passes_however_it_is_given(policy: Correct | Callable[[], Correct]) -> None:
    topologies = share(default_topologies(), 0, of=3)
    report = check_policy(policy, topologies=topologies, states=2)
    assert report == Report("baseline", 144 * len(topologies), report.placed)
    assert 0 < report.placed < report.decisions


def test_what_is_no_policy_is_told_what_it_lacks() -> None:
    with pytest.raises(AssertionError, match="lacks plan"):
        check_policy(lambda: type("Half", (), {"name": "half", "place": 1, "explain": 1})())  # type: ignore[arg-type]


@pytest.mark.parametrize("policy", ["best-fit", None, [Correct]])
def test_what_makes_no_policy_is_refused(policy: object) -> None:
    with pytest.raises(
        ValueError, match=re.escape(f"policy = {_checks.shown(policy)} is neither a policy nor")
    ):
        check_policy(policy)  # type: ignore[arg-type]


def test_own_topologies_and_jobs() -> None:
    report = check_policy(
        Correct, topologies=[tp.machines.get("minsky")], jobs=[tp.JobGraph.ring(2)], states=1
    )
    assert (report.decisions, report.placed) == (2, 1)


def test_a_policy_may_place_nothing_where_nothing_fits() -> None:
    report = check_policy(Correct, topologies=[tp.machines.get("minsky")], jobs=[tp.JobGraph.ring(9)])
    assert (report.decisions, report.placed) == (7, 0)


class TestSecondProcess:
    def test_a_policy_that_cannot_be_pickled_is_named_in_the_report(self) -> None:
        class Local(Correct):
            pass

        report = check_policy(lambda: Local(), states=0)
        (unchecked,) = report.unchecked
        assert unchecked.startswith("equal answers under another hash seed: the policy cannot be pickled: ")

    def test_a_program_that_fails_there_is_named_in_the_report(self, tmp_path: Path) -> None:
        guard = "if __name__ != '__main__':\n    raise RuntimeError('no second time')\n"
        printed = _run(f"{guard}{_PROGRAM}", tmp_path).stdout
        assert "the second process ended with RuntimeError: no second time" in printed

    @pytest.mark.parametrize("guard", ["", "if __name__ == '__main__':\n    "], ids=["plain", "guarded"])
    def test_a_policy_of_the_main_program_is_checked(self, guard: str, tmp_path: Path) -> None:
        program = _PROGRAM.replace("print", f"{guard}print")
        result = _run(program, tmp_path)
        assert "policy='mine'" in result.stdout
        assert "unchecked=()" in result.stdout
        result = _run(program.replace("'mine'", "f'mine-{hash(str())}-{hash(str(1))}'"), tmp_path)
        assert "depends on the hash seed" in result.stderr


_PROGRAM = """
from topoplace import machines
from topoplace.policies import Baseline
from topoplace.testing import check_policy

class Mine(Baseline):
    name = 'mine'

print(check_policy(Mine, topologies=[machines.get("summit")], states=0))
"""


def _run(program: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run a program as its own script, and return what it printed."""
    path = folder / "program.py"
    path.write_text(program, "utf-8")
    command = [sys.executable, str(path)]
    return subprocess.run(command, capture_output=True, encoding="utf-8", check=False)
