"""What state machines of a `Cluster` have in common: releases, transactions, copies and snapshots."""

from __future__ import annotations

import contextlib
import copy
from typing import Any

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, precondition, rule

import topoplace as tp


class ClusterModel(RuleBasedStateMachine):
    """A cluster next to a model of plain dicts; open transactions keep copies of the model."""

    def begin_with(self, cluster: tp.Cluster) -> None:
        self.cluster = cluster
        self.held: dict[str, Any] = {}
        self.drained: set[int] = set()
        self.held_back: dict[int, str] = {}
        self.open: list[tuple[contextlib.ExitStack, dict[str, Any], set[int], dict[int, str]]] = []

    def disturb(self, old: tp.Cluster) -> None:
        """Change a cluster of which a copy was made; the change must not show in the copy."""

    @rule(job=st.sampled_from(["p", "q", "r", "s"]))
    def release(self, job: str) -> None:
        if self.held.pop(job, None):
            self.cluster.release(job)
        else:
            with pytest.raises(tp.AllocationError, match=f"job '{job}' holds no GPUs"):
                self.cluster.release(job)

    @precondition(lambda self: len(self.open) < 3)
    @rule()
    def begin(self) -> None:
        stack = contextlib.ExitStack()
        stack.enter_context(self.cluster.transaction())
        self.open.append((stack, dict(self.held), set(self.drained), dict(self.held_back)))

    @precondition(lambda self: self.open)
    @rule()
    def commit(self) -> None:
        self.open.pop()[0].close()

    @precondition(lambda self: self.open)
    @rule(error=st.sampled_from([ValueError, KeyboardInterrupt, GeneratorExit]))
    def roll_back(self, error: type[BaseException]) -> None:
        stack, self.held, self.drained, self.held_back = self.open.pop()
        with pytest.raises(error), stack:
            raise error

    @precondition(lambda self: not self.open)
    @rule(way=st.sampled_from([tp.Cluster.copy, copy.deepcopy, lambda c: tp.Cluster.restore(c.snapshot())]))
    def replace(self, way: Any) -> None:
        old, self.cluster = self.cluster, way(self.cluster)
        assert self.cluster.snapshot() == old.snapshot()
        self.disturb(old)
