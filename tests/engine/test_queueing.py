"""How a queue is walked: who is asked, who blocks, when the walk ends."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import pytest

import topoplace as tp
from topoplace.engine.plan import QueuedJob
from topoplace.engine.queueing import Ask, BatchWalk, Outcome, walk
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


@pytest.mark.parametrize("postponed", [-1, 2**62 + 1])
def test_a_number_of_postponements_that_cannot_be_is_refused(postponed: int) -> None:
    with pytest.raises(ValueError, match=f"postponed = {postponed}"):
        QueuedJob("a", tp.JobGraph.ring(1), postponed=postponed)
