"""A queue of kinds: what is asked, in which order, what it costs, and how deferrals are counted."""

from __future__ import annotations

import math
from collections.abc import Hashable
from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

import topoplace as tp
from topoplace.engine.plan import QueuedJob
from topoplace.engine.queueing import Outcome, walk
from topoplace.placement import Refusal
from topoplace_lab.simulate.disciplines.live_queue import LiveQueue
from topoplace_lab.simulate.disciplines.waiting_kind import WaitingJob

TOPOLOGY = tp.Topology.from_links(2, [])
STARTS = tp.Placement((0,), topology=TOPOLOGY)
BUSY = Refusal("busy")
NEVER = Refusal("too large", permanent=True)
KINDS = ["a", "b", "c", "d"]
OUTCOMES: list[Outcome] = [STARTS, BUSY, NEVER, None]


@dataclass
class Entry:
    job_id: str
    job: tp.JobGraph
    postponed: int = 0
    submit_time: float = 0.0
    requested_time: float = math.nan


@dataclass
class Scripted:
    """A rule with an answer for each kind, which changes once a kind has started `starts` jobs in a walk."""

    answers: dict[str, Outcome]
    starts: int = 1
    head_blocks: bool = False
    asked: list[str] = field(default_factory=list)
    started: dict[str, int] = field(default_factory=dict)

    wakes: float = math.inf

    def kind_of(self, entry: QueuedJob | WaitingJob) -> Hashable:
        return entry.job.name

    def begin(self, now: float) -> None:
        self.started = {}

    def decide(self, entry: QueuedJob | WaitingJob) -> Outcome:
        kind = entry.job.name
        self.asked.append(entry.job_id)
        outcome = self.answers[kind]
        if outcome is STARTS and self.started.get(kind, 0) >= self.starts:
            return BUSY if self.can_defer(entry.job) else None
        if outcome is STARTS:
            self.started[kind] = self.started.get(kind, 0) + 1
        if outcome is BUSY and not self.can_defer(entry.job):
            return None
        return outcome

    def can_defer(self, job: tp.JobGraph) -> bool:
        """Kind b gets no reason after two starts, kind a after three."""
        return sum(self.started.values()) < {"a": 3, "b": 2}.get(job.name, 99)

    def exhausted(self) -> bool:
        return sum(self.started.values()) >= 4


def entry(number: int, kind: str) -> Entry:
    return Entry(str(number), tp.JobGraph.ring(1).with_(name=kind))


@given(
    events=st.lists(
        st.tuples(
            st.lists(st.sampled_from(KINDS), max_size=6),
            st.lists(st.sampled_from(OUTCOMES), min_size=4, max_size=4),
        ),
        max_size=8,
    ),
    starts=st.integers(1, 3),
    head_blocks=st.booleans(),
)
def test_it_decides_as_a_walk_along_the_whole_queue(
    events: list[tuple[list[str], list[Outcome]]], starts: int, head_blocks: bool
) -> None:
    live_rule, plain_rule = (Scripted({}, starts, head_blocks) for _ in range(2))
    queue: LiveQueue[Entry] = LiveQueue(live_rule)
    plain: dict[str, QueuedJob] = {}
    number = 0
    for submitted, answers in events:
        for kind in submitted:
            queue.submit(entry(number, kind))
            plain[str(number)] = QueuedJob(str(number), entry(number, kind).job)
            number += 1
        live_rule.answers = plain_rule.answers = dict(zip(KINDS, answers, strict=True))
        decided = queue.decide(0.0)
        queue.count_deferred()
        plain_rule.begin(0.0)
        plan = walk(
            plain.values(), plain_rule.decide, head_blocks=head_blocks, exhausted=plain_rule.exhausted
        )
        for mine, theirs in ((decided.start, plan.start), (decided.reject, plan.reject)):
            assert [job.job_id for job, _ in mine] == [job_id for job_id, _ in theirs]
            assert [job.postponed for job, _ in mine] == [plain.pop(job_id).postponed for job_id, _ in theirs]
        for job_id, _ in plan.defer:
            before = plain[job_id]
            plain[job_id] = QueuedJob(job_id, before.job, postponed=before.postponed + 1)
        assert queue.num_waiting == len(plain)
    assert set(live_rule.asked) <= set(plain_rule.asked)
    for job_id, left in plain.items():
        head = queue.take_head() if head_blocks else None
        assert head is None or (head.job_id, head.postponed) == (job_id, left.postponed)


@pytest.mark.parametrize("length", [40, 4_000])
def test_a_walk_asks_once_per_kind_that_waits(length: int) -> None:
    rule = Scripted({"a": BUSY, "b": None, "c": STARTS, "d": BUSY})
    queue: LiveQueue[Entry] = LiveQueue(rule)
    for number in range(length):
        queue.submit(entry(number, KINDS[number % 4]))
    assert [job.job_id for job, _ in queue.decide(0.0).start] == ["2"]
    assert rule.asked == ["0", "1", "2", "3", "6"]


def test_the_head_blocks_whatever_its_kind() -> None:
    rule = Scripted({"a": STARTS, "b": BUSY, "c": STARTS, "d": NEVER}, head_blocks=True)
    queue: LiveQueue[Entry] = LiveQueue(rule)
    for number, kind in enumerate("dabca"):
        queue.submit(entry(number, kind))
    decided = queue.decide(0.0)
    queue.count_deferred()
    assert [job.job_id for job, _ in decided.start] == ["1"]
    assert [job.job_id for job, _ in decided.reject] == ["0"]
    assert rule.asked == ["0", "1", "2"]
    head = queue.take_head()
    assert (head.job_id, head.postponed, queue.take_head().postponed) == ("2", 1, 0)
