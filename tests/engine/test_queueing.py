"""How a queue is walked: who is asked, who blocks, when the walk ends."""

from __future__ import annotations

import math
import re
from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import topoplace as tp
from topoplace.engine.plan import Plan, QueuedJob
from topoplace.engine.queueing import (
    Ask,
    BatchWalk,
    Outcome,
    Outcomes,
    checked_queue,
    walk,
)
from topoplace.placement import Refusal

TOPOLOGY = tp.Topology.from_links(2, [])
STARTS = tp.Placement((0,), topology=TOPOLOGY)
DEFERRED = Refusal("busy", permanent=False)
NEVER = Refusal("too large", permanent=True)
OUTCOMES: dict[str, Outcome] = {"starts": STARTS, "deferred": DEFERRED, "never": NEVER, "waits": None}


def asked(queue: list[str], *, head_blocks: bool, full_after: int = 99) -> list[str]:
    """Return the jobs of the queue, named after their outcomes, about which the walk asks."""
    names: list[str] = []

    def decide(entry: QueuedJob) -> Outcome:
        names.append(entry.job_id)
        return OUTCOMES[entry.job_id.split()[0]]

    entries = [QueuedJob(name, tp.JobGraph.ring(1)) for name in queue]
    walk(entries, decide, head_blocks=head_blocks, exhausted=lambda: len(names) >= full_after)
    return names


@pytest.mark.parametrize("head", ["deferred", "waits"])
def test_a_head_that_waits_with_or_without_a_reason_blocks_the_younger(head: str) -> None:
    assert asked(["starts 1", head, "starts 2"], head_blocks=True) == ["starts 1", head]
    assert asked(["starts 1", head, "starts 2"], head_blocks=False) == ["starts 1", head, "starts 2"]


def test_a_head_that_can_never_run_blocks_nobody() -> None:
    assert asked(["never", "starts"], head_blocks=True) == ["never", "starts"]


@pytest.mark.parametrize("first", ["starts 1", "deferred", "waits"])
def test_nobody_is_asked_when_nothing_is_left(first: str) -> None:
    assert asked([first, "starts 2"], head_blocks=False, full_after=1) == [first]


def test_a_plan_names_each_outcome_in_order() -> None:
    entries = [QueuedJob(name, tp.JobGraph.ring(1)) for name in OUTCOMES]
    plan = walk(entries, lambda entry: OUTCOMES[entry.job_id], head_blocks=False)
    assert plan.start == (("starts", STARTS),)
    assert plan.defer == (("deferred", DEFERRED),)
    assert plan.reject == (("never", NEVER),)


class OneOfEachBatch:
    """Starts the oldest job of each batch on a GPU, and leaves the others for a later batch."""

    def __init__(self, num_free: int) -> None:
        self.num_free = num_free

    def ask(self, entry: QueuedJob) -> Ask:
        return Ask("all alike", gpus=1, needs=(0, 0, 0))

    def free(self) -> tuple[int, Sequence[int]]:
        return self.num_free, (0, 0, 0)

    def room(self, group: Hashable) -> int:
        return self.num_free

    def decide(self, batch: Sequence[QueuedJob]) -> tuple[list[tuple[QueuedJob, Outcome]], bool]:
        self.num_free -= 1
        return [(batch[0], STARTS), *((entry, None) for entry in batch[1:])], False


def test_a_job_without_an_outcome_is_tried_again_in_a_later_batch() -> None:
    entries = [QueuedJob(name, tp.JobGraph.ring(1)) for name in "abcd"]
    plan = BatchWalk(entries, OneOfEachBatch(num_free=3)).plan()
    assert [job_id for job_id, _ in plan.start] == ["a", "b", "c"]


class NewAskForEachJob(OneOfEachBatch):
    """Makes a new `Ask` for every job, equal within a group; jobs of group y find no room."""

    def ask(self, entry: QueuedJob) -> Ask:
        return Ask(entry.job.name, gpus=1, needs=(0, 0, 0))

    def room(self, group: Hashable) -> int:
        return self.num_free if group == "x" else 0


def test_a_rule_may_make_a_new_ask_for_each_job() -> None:
    jobs = {name: tp.JobGraph.ring(1).with_(name=name) for name in "xy"}
    entries = [QueuedJob(f"{name}{number}", jobs[name]) for number, name in enumerate("xxyxyyxy")]
    plan = BatchWalk(entries, NewAskForEachJob(num_free=9)).plan()
    assert [job_id for job_id, _ in plan.start] == ["x0", "x1", "x3", "x6"]


class Script:
    """Decides as it is told for each job; a job that starts takes what it asks for, and others may be disturbed."""

    def __init__(
        self, free: Sequence[int], asks: Sequence[Ask | Refusal], rooms: Sequence[int], told: str
    ) -> None:
        """told: for each job, in the order of ids: starts, defers, never, again (once; then it starts) or lost."""
        self.left, self.asks, self.rooms = list(free), asks, rooms
        self.told = {str(number): letter for number, letter in enumerate(told)}
        self.batches: list[list[str]] = []

    def ask(self, entry: QueuedJob) -> Ask | Refusal:
        return self.asks[int(entry.job.name)]

    def free(self) -> tuple[int, Sequence[int]]:
        return self.left[0], self.left[1:]

    def room(self, group: Hashable) -> int:
        return self.rooms[group]  # type: ignore[call-overload]

    def decide(self, batch: Sequence[QueuedJob]) -> tuple[list[tuple[QueuedJob, Outcome]], bool]:
        self.batches.append([entry.job_id for entry in batch])
        results: list[tuple[QueuedJob, Outcome]] = []
        disturbed = len(batch) % 2 == 0 or len(batch) > 4
        for entry in reversed(batch):  # a rule may decide in any order
            letter = self.told[entry.job_id]
            if letter == "l" and (disturbed or len(batch) == 1):
                self.told[entry.job_id] = "s"
            if letter == "a":
                self.told[entry.job_id] = "s"
            if letter == "s":
                ask = self.ask(entry)
                assert isinstance(ask, Ask)
                self.left = [free - own for free, own in zip(self.left, (ask.gpus, *ask.needs), strict=True)]
            if letter != "l":
                results.append((entry, {"s": STARTS, "d": DEFERRED, "n": NEVER, "a": None}[letter]))
        return results, disturbed


def batches_job_by_job(entries: Sequence[QueuedJob], rule: Script, *, repeat: bool) -> Plan:
    """Return the plan of `BatchWalk`, made by looking at every waiting job for every batch."""
    outcomes, gone, alone = Outcomes(), set[Hashable](), list[QueuedJob]()
    waiting = [entry for entry in entries if not isinstance(rule.ask(entry), Refusal)]
    for entry in entries:
        if isinstance(refusal := rule.ask(entry), Refusal):
            outcomes.note(entry, refusal)

    def group_of(entry: QueuedJob) -> Hashable:
        ask = rule.ask(entry)
        assert isinstance(ask, Ask)
        return ask.group

    def fitting(jobs: Sequence[QueuedJob]) -> list[QueuedJob]:
        left, batch, rooms = list(rule.left), list[QueuedJob](), dict[Hashable, int]()
        for entry in jobs:
            ask = rule.ask(entry)
            assert isinstance(ask, Ask)
            needs = (ask.gpus, *ask.needs)
            if any(own > free for own, free in zip(needs, left, strict=True)):
                continue
            if rooms.setdefault(ask.group, rule.room(ask.group)) == sum(
                group_of(one) == ask.group for one in batch
            ):
                continue
            left = [free - own for own, free in zip(needs, left, strict=True)]
            batch.append(entry)
        gone.update(group for group, room in rooms.items() if room == 0)
        return batch

    while True:
        batch: list[QueuedJob] = []
        while alone and not batch:
            batch = fitting([alone.pop(0)])
        batch = batch or fitting([entry for entry in waiting if group_of(entry) not in gone])
        if not batch:
            return outcomes.plan()
        results, disturbed = rule.decide(batch)
        for entry, outcome in results:
            if outcome is not None:
                waiting.remove(entry)
                if outcomes.note(entry, outcome):
                    gone.add(group_of(entry))
        lost = {
            group_of(entry): entry for entry in reversed(batch) if entry not in [one for one, _ in results]
        }
        if disturbed and len(batch) > 1:
            alone = [entry for entry in batch if entry in lost.values()] + alone
        else:
            gone.update(lost)
        if not repeat:
            return outcomes.plan()


NEEDS = st.tuples(st.integers(0, 3), st.integers(0, 3), st.integers(0, 3), st.integers(0, 3))


@given(
    queue=st.lists(st.tuples(st.integers(0, 4), st.sampled_from("sssdnal")), max_size=12),
    needs=st.lists(NEEDS, min_size=4, max_size=4),
    rooms=st.lists(st.integers(0, 4), min_size=3, max_size=3),
    free=st.tuples(*[st.integers(0, 12)] * 4),
    repeat=st.booleans(),
)
def test_a_batch_has_the_oldest_jobs_that_fit_together(
    queue: list[tuple[int, str]],
    needs: list[tuple[int, int, int, int]],
    rooms: list[int],
    free: tuple[int, ...],
    repeat: bool,
) -> None:
    """Jobs of kinds 0 and 3 are of one group, those of kind 4 can never run."""
    needs[3] = needs[0]
    asks = [Ask(kind % 3, gpus, tuple(others)) for kind, (gpus, *others) in enumerate(needs)]
    entries = [
        QueuedJob(str(number), tp.JobGraph.ring(1).with_(name=str(kind)))
        for number, (kind, _) in enumerate(queue)
    ]
    rules = [Script(free, (*asks, NEVER), rooms, "".join(letter for _, letter in queue)) for _ in range(2)]
    plan = BatchWalk(entries, rules[0], repeat=repeat).plan()
    assert plan == batches_job_by_job(entries, rules[1], repeat=repeat)
    assert rules[0].batches == rules[1].batches


@pytest.mark.parametrize(
    ("field", "value"),
    [
        *(("postponed", value) for value in (-1, 2**62 + 1)),
        *(("job_id", value) for value in (7, "", None)),
        *(("submit_time", value) for value in ("0", None, True, math.nan, math.inf, -math.inf)),
        *(("requested_time", value) for value in ("60", None, True, -1.0, math.inf)),
    ],
)
def test_a_value_that_no_queued_job_has_is_refused(field: str, value: object) -> None:
    given: dict[str, Any] = {"job_id": "a", field: value}
    with pytest.raises(ValueError, match=f"^{field} = {re.escape(repr(value))} is not "):
        QueuedJob(job=tp.JobGraph.ring(1), **given)


@pytest.mark.parametrize("kind", [float, np.float64, np.float32, np.float16])
def test_a_queued_job_may_come_before_time_0_and_state_no_limit(kind: type[float]) -> None:
    entry = QueuedJob("a", tp.JobGraph.ring(1), submit_time=-5, requested_time=kind("nan"))
    assert entry == QueuedJob("a", entry.job, -5.0)


@pytest.mark.parametrize("now", [math.nan, math.inf, "1", None, True], ids=repr)
@pytest.mark.parametrize("policy", ["least-time", "fcfs", "drmaestro"])
def test_a_plan_is_for_a_time(policy: str, now: Any) -> None:
    cluster = tp.Cluster(tp.machines.get("dgx1-v100"))
    with pytest.raises(ValueError, match=f"^now = {re.escape(repr(now))} is not a (finite )?number$"):
        tp.policies.get(policy).plan([], cluster, now)


def test_what_is_no_queue_is_refused_by_its_place() -> None:
    cluster = tp.Cluster(TOPOLOGY)
    one = QueuedJob("a", tp.JobGraph.ring(1))
    assert checked_queue([one], cluster) == (one,)
    with pytest.raises(ValueError, match=r"queue\[1\]"):
        checked_queue([one, "b"], cluster)


@pytest.mark.parametrize("policy", tp.policies.names())
def test_an_id_is_in_the_queue_once_and_does_not_run(policy: str) -> None:
    cluster = tp.Cluster(tp.machines.get("dgx1-v100"), [tp.HostResources(cpus=8, memory_gb=8)])
    cluster.allocate("runs", [0])
    process = tp.place(tp.JobGraph.without_gpus(cpus=1), cluster)
    assert process is not None
    cluster.allocate("process", process)
    before = cluster.snapshot()

    def planned(*names: str) -> Plan:
        entries = [QueuedJob(name, tp.JobGraph.ring(1)) for name in names]
        return tp.policies.get(policy).plan(entries, cluster, 0.0)

    planned("a", "b")
    with pytest.raises(ValueError, match=r"^queue\[2\]\.job_id = 'a' is in the queue twice$"):
        planned("a", "b", "a")
    for name, waiting in (("runs", ["a"]), ("process", ["a"]), ("runs", ["a", "b", "c"])):
        with pytest.raises(ValueError, match=rf"^queue\[1\]\.job_id = '{name}' is a running job$"):
            planned(waiting[0], name, *waiting[1:])
    assert cluster.snapshot() == before
