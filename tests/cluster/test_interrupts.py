"""An interrupt at any line of a change leaves the state before or after it, and views that say the same."""

from __future__ import annotations

import contextlib
import random
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from types import FrameType
from typing import Any

import pytest

import topoplace as tp

TOPOLOGY = tp.Topology.cluster(tp.machines.get("minsky"), count=2)
HOST = tp.HostResources(cpus=16, memory_gb=64.0, drives=1)
RING = tp.JobGraph.ring(2).with_(cpus=4, memory_gb=8.0)
POLICIES = ("topo-aware", "drmaestro", "r-queue")


class Interrupted(BaseException):
    """Stands for KeyboardInterrupt, which pytest takes for its own."""


def running() -> tp.Cluster:
    """Return a cluster with one job, whose views exist."""
    cluster = tp.Cluster(TOPOLOGY, hosts=HOST)
    cluster.allocate("first", _placed(cluster, RING))
    cluster.drain(7)
    _decisions(cluster)
    return cluster


def _placed(cluster: tp.Cluster, job: tp.JobGraph) -> tp.Placement:
    placement = tp.policies.get("r-queue").place(job, cluster)
    assert placement is not None
    return placement


NEW = tp.Placement((4, 5), topology=TOPOLOGY, job=RING, hosts=(tp.HostShare(1, 4, 8.0),), drives=(0,))


def _decisions(cluster: tp.Cluster) -> list[object]:
    """Return what policies decide by their views of the cluster."""
    found = [tp.policies.get(name).place(RING.with_(cpus=9), cluster) for name in POLICIES]
    return [placement and (placement.gpus, placement.hosts, placement.scores) for placement in found]


def allocate(cluster: tp.Cluster) -> None:
    cluster.allocate("new", NEW)


def release(cluster: tp.Cluster) -> None:
    cluster.release("first")


def drain_machine(cluster: tp.Cluster) -> None:
    cluster.drain(TOPOLOGY.machine_names[0])


def undrain(cluster: tp.Cluster) -> None:
    cluster.undrain(7)


def transaction(cluster: tp.Cluster) -> None:
    with cluster.transaction():
        cluster.allocate("new", NEW)
        cluster.release("first")


def failed_transaction(cluster: tp.Cluster) -> None:
    with contextlib.suppress(LookupError), cluster.transaction():
        cluster.release("first")
        with cluster.transaction():
            cluster.allocate("new", NEW)
        raise LookupError


def what_if(cluster: tp.Cluster) -> None:
    with cluster.what_if():
        cluster.allocate("new", NEW)
        cluster.drain(0)


OPERATIONS: Sequence[Callable[[tp.Cluster], None]] = (
    *(allocate, release, drain_machine, undrain, transaction, failed_transaction, what_if),
)


def _check(cluster: tp.Cluster, states: set[bytes]) -> None:
    """Check that the state is one of `states`, restores, and is what the views say; and that no change is open."""
    snapshot = cluster.snapshot()
    assert snapshot in states
    restored = tp.Cluster.restore(snapshot)
    assert restored.snapshot() == snapshot
    assert _decisions(cluster) == _decisions(restored)
    cluster.allocate("more", [6])  # changes go on, and stand
    assert cluster.snapshot() != snapshot
    assert _decisions(cluster) == _decisions(cluster.copy())


@contextlib.contextmanager
def interrupted_at(line: int, within: str = "topoplace") -> Iterator[list[int]]:
    """Raise `Interrupted` at the `line`-th line of the library that is run; yield the number of lines so far.

    within: counts lines only of files whose path contains this.
    """
    count = [0]

    def trace(frame: FrameType, event: str, _argument: object) -> Any:
        if within not in frame.f_code.co_filename or "tests" in frame.f_code.co_filename:
            return None
        if event == "line":
            count[0] += 1
            if count[0] == line:
                raise Interrupted
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        yield count
    finally:
        sys.settrace(before)


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda operation: operation.__name__)
def test_an_interrupt_at_any_line_leaves_the_state_before_or_after(
    operation: Callable[[tp.Cluster], None],
) -> None:
    before, after = running(), running()
    operation(after)
    states = {before.snapshot(), after.snapshot()}
    line, done = 1, False
    while not done:
        cluster = running()
        try:
            with interrupted_at(line):
                operation(cluster)
            done = True
        except Interrupted:
            pass
        _check(cluster, states)
        line += 1
    assert line > 4


@pytest.mark.parametrize("is_first", [True, False])
@pytest.mark.parametrize("name", ["topo-aware", "fcfs", "drmaestro", "r-queue"])
def test_an_interrupted_decision_leaves_views_that_follow_later_changes(name: str, is_first: bool) -> None:
    """Whether it is the first decision on the cluster, which makes the views, or a later one."""
    line, done = 1, False
    while not done:
        cluster, policy = tp.Cluster(TOPOLOGY, hosts=HOST), tp.policies.get(name)
        if not is_first:
            policy.place(RING, cluster)
            cluster.allocate("held", [0])
        try:
            with interrupted_at(line, within="engine"):
                policy.place(RING, cluster)
            done = True
        except Interrupted:
            pass
        _check_decision(policy, cluster)
        cluster.allocate("first", [1, 2, 3])
        _check_decision(policy, cluster)
        cluster.release("first")
        _check_decision(policy, cluster)
        line += 1
    assert line > 20


def _check_decision(policy: tp.Policy, cluster: tp.Cluster) -> None:
    assert policy.place(RING, cluster) == tp.policies.get(policy.name).place(RING, cluster.copy())


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="this system has no interval timers")
def test_a_timer_that_interrupts_leaves_the_state_before_or_after() -> None:
    """As above, between any two instructions of Python, with allocations and releases in turn."""
    clock, fired = random.Random(0), [False]

    def ring(_signal: int, _frame: FrameType | None) -> None:
        fired[0] = True
        raise Interrupted

    cluster = running()
    with_new = running()
    with_new.allocate("new", NEW)
    states = {cluster.snapshot(), with_new.snapshot()}
    handler = signal.signal(signal.SIGALRM, ring)
    try:
        for _ in range(3_000):
            fired[0] = False
            try:
                signal.setitimer(signal.ITIMER_REAL, clock.uniform(2e-6, 80e-6))
                (cluster.release if "new" in cluster.allocations else _allocate_new(cluster))("new")
                _wait(fired)
            except Interrupted:
                pass
            assert cluster.snapshot() in states
    finally:
        signal.signal(signal.SIGALRM, handler)
    assert _decisions(cluster) == _decisions(cluster.copy())


def _wait(fired: list[bool]) -> None:
    """Wait for the timer: here, as a loop's jump back may lie outside of what the caller's `try` covers."""
    while not fired[0]:
        pass


def _allocate_new(cluster: tp.Cluster) -> Callable[[str], None]:
    return lambda job_id: cluster.allocate(job_id, NEW)
