"""`PolicyMachine` finds policies that answer from an old state, and no fault in the built-in ones."""

from __future__ import annotations

import pytest
from hypothesis import Phase, settings
from hypothesis.stateful import run_state_machine_as_test

import topoplace as tp
from thoroughness import thorough
from topoplace.testing.policy_machine import PolicyMachine

STEPS = settings(max_examples=thorough(250, 3), stateful_step_count=12, deadline=None)


@pytest.mark.parametrize("name", tp.policies.names())
def test_a_built_in_policy_lives_with_a_cluster(name: str) -> None:
    class Machine(PolicyMachine):
        def new_policy(self) -> tp.Policy:
            return tp.policies.get(name)

    run_state_machine_as_test(Machine, settings=STEPS)  # type: ignore[no-untyped-call]


class Remembers(tp.policies.Baseline):
    """It does not look again at a cluster that it knows, so that it misses changes."""

    def __init__(self) -> None:
        super().__init__()
        self.known: dict[int, tp.Cluster] = {}

    def place(self, job: tp.JobGraph, cluster: tp.Cluster) -> tp.Placement | None:
        return super().place(job, self.known.setdefault(id(cluster), cluster.copy()))


class RemembersMachine(PolicyMachine):
    def new_policy(self) -> tp.Policy:
        return Remembers()


def test_a_policy_that_misses_changes_is_found() -> None:
    unshrunk = settings(STEPS, max_examples=200, derandomize=True, phases=[Phase.generate])
    with pytest.raises(AssertionError):
        run_state_machine_as_test(RemembersMachine, settings=unshrunk)  # type: ignore[no-untyped-call]


def test_a_machine_needs_a_policy() -> None:
    with pytest.raises(NotImplementedError, match="write new_policy"):
        PolicyMachine().new_policy()  # type: ignore[no-untyped-call]
