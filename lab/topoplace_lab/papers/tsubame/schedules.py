"""Schedules like those of figures 7 and 8: the same emulated jobs under both queues, slot by slot.

The paper does not list its jobs. Ours are a few of the congested queue's. A slot is the time between two changes of the
schedule. In the figures, a node's part of a job is blue if the G queue's rule placed it. It is red if it uses GPUs of
other nodes, and green if it is GPUs lent to a red part.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Final

from topoplace import policies
from topoplace.policies import DRMaestro
from topoplace_lab.papers.claims import ClaimedQuantity, PaperClaim
from topoplace_lab.papers.rules import between, ordered
from topoplace_lab.papers.tsubame import congestion
from topoplace_lab.papers.tsubame.machine import MODEL, NODE, machines
from topoplace_lab.papers.tsubame.study import G_QUEUE, R_QUEUE
from topoplace_lab.simulate import Result, simulate
from topoplace_lab.simulate.samples import Sample

if TYPE_CHECKING:
    from topoplace.placement import Placement

JOBS: Final = 40
NODES: Final = 8
_WINDOW: Final = 256
"""Waiting jobs that each decision by flows considers."""
BLUE, RED, GREEN = "blue", "red", "green"


@dataclass(frozen=True, slots=True)
class Slot:
    """A time in which nothing changes: its begin and end in seconds, and the colour of each job's part of each node."""

    begin: float
    end: float
    nodes: dict[int, dict[str, str]]

    @property
    def seconds(self) -> float:
        """Return the length of the slot."""
        return self.end - self.begin

    @property
    def jobs(self) -> int:
        """Return the number of running jobs."""
        return len({job for parts in self.nodes.values() for job in parts})

    @property
    def shared(self) -> int:
        """Return the number of nodes with parts of several jobs."""
        return sum(len(parts) > 1 for parts in self.nodes.values())


def schedule(policy: str, seed: int) -> Result:
    """Simulate the emulated jobs of a seed under the policy of that name."""
    jobs = congestion.workload(seed, JOBS)
    return simulate(machines(NODES), jobs, policies.get(policy), performance=MODEL, hosts=NODE)


def slots(result: Result) -> list[Slot]:
    """Return the slots of a schedule, in order of time."""
    ran = [record for record in result.records if record.placement is not None]
    times = sorted({time for record in ran for time in (record.start, record.end)})
    found = [Slot(begin, end, {}) for begin, end in pairwise(times)]
    at = {time: number for number, time in enumerate(times)}
    for record in ran:
        assert record.placement is not None
        parts = _parts(record.placement)
        for slot in found[at[record.start] : at[record.end]]:
            for node, colour in parts.items():
                slot.nodes.setdefault(node, {})[record.job_id] = colour
    return found


def _parts(placement: Placement) -> dict[int, str]:
    """Return the colour of a job's part of each node."""
    machine_of: list[int] = placement.topology.machine_of.tolist()
    parts = {machine_of[gpu]: GREEN for gpu in placement.remote}
    hosts, tasks = placement.hosts, len(placement.gpus)
    for number, share in enumerate(hosts):
        own = [gpu for task, gpu in enumerate(placement.gpus) if task * len(hosts) // tasks == number]
        parts[share.machine] = RED if set(own) & set(placement.remote) else BLUE
    return parts


@dataclass(frozen=True, slots=True)
class ComparedSchedules:
    """The schedules of one job list under both queues, compared.

    more, begun: shares of the time until the R queue ends in which it runs more jobs, and in which more have begun.
    shared: share of the nodes' time with several jobs, under both queues. longer: mean execution under the R queue over
    that under the G queue.
    """

    more: float
    begun: float
    shared: tuple[float, float]
    longer: float


def compared(seed: int) -> ComparedSchedules:
    """Simulate the emulated jobs of a seed under both queues, and compare the schedules."""
    before, after = schedule(G_QUEUE, seed), schedule(R_QUEUE, seed)
    each = [slots(before), slots(after)]
    executions = [sum(record.end - record.start for record in result.records) for result in (before, after)]
    return ComparedSchedules(
        more=_more(*each),
        begun=_begun_earlier(before, after),
        shared=(_shared(each[0]), _shared(each[1])),
        longer=executions[1] / executions[0],
    )


def _shared(schedule: Sequence[Slot]) -> float:
    busy = sum(slot.seconds * len(slot.nodes) for slot in schedule)
    return sum(slot.seconds * slot.shared for slot in schedule) / busy


def _more(before: Sequence[Slot], after: Sequence[Slot]) -> float:
    """Return the share of the time of `after` in which more of its jobs run than of `before`."""
    end = after[-1].end
    times = sorted({slot.begin for slot in (*before, *after) if slot.begin < end} | {end})
    more = sum(
        until - since for since, until in pairwise(times) if _running(after, since) > _running(before, since)
    )
    return more / (end - times[0])


def _begun_earlier(before: Result, after: Result) -> float:
    """Return the share of the time of `after` in which more jobs have begun than under `before`."""
    starts = [sorted(record.start for record in result.records) for result in (before, after)]
    end = max(record.end for record in after.records)
    times = sorted({time for column in starts for time in column if time < end} | {end})
    more = sum(
        until - since
        for since, until in pairwise(times)
        if bisect_right(starts[1], since) > bisect_right(starts[0], since)
    )
    return more / (end - times[0])


def _running(schedule: Sequence[Slot], time: float) -> int:
    return next((slot.jobs for slot in schedule if slot.begin <= time < slot.end), 0)


def by_flows(seed: int, num_jobs: int = congestion.JOBS) -> float:
    """Simulate the congested queue with every decision a flow of least cost; return the seconds to the last end.

    Processes and GPUs go anywhere: a GPU may be lent to any node, and processes of a job may share a node.
    """
    result = simulate(
        machines(congestion.NODES),
        congestion.workload(seed, num_jobs),
        DRMaestro(window=_WINDOW),
        performance=MODEL,
        hosts=NODE,
    )
    return result.summary()["makespan"]


def rows(found: Sequence[ComparedSchedules]) -> Iterator[PaperClaim]:
    """Compare figures 7 and 8, as far as the text describes them, with our schedules."""
    size = f"{JOBS} jobs on {NODES} nodes"
    shared = [Sample.of(each.shared[queue] for each in found) for queue in (0, 1)]
    yield ClaimedQuantity(
        "2.16 G", f"Fig. 7, {size}: share of the nodes' time with several jobs, G queue", "none"
    ).identity(f"{shared[0]:.1%}", between(0.0, 0.0, "if 0"), shared[0], note="the rule of Fig. 5")
    yield ClaimedQuantity(
        "2.16 R", f"Fig. 8, {size}: share of the nodes' time with several jobs, R queue", "some"
    ).judged(f"{shared[1]:.0%}", ordered("if above 1 %", (0.01, 1.0)), shared[1])
    more, begun = (Sample.of(getattr(each, name) for each in found) for name in ("more", "begun"))
    yield ClaimedQuantity(
        "2.16 more", f"{size}: share of the time in which the R queue runs more jobs", "most of the time"
    ).judged(
        f"{more:.0%}",
        ordered("if above 50 %", (0.5, 1.0)),
        more,
        note=f"until the R queue's last job ends; for {begun:.0%} of that time more jobs have started under R, "
        "which leaves fewer to run later",
    )
    longer = Sample.of(each.longer for each in found)
    yield ClaimedQuantity(
        "2.16 longer",
        f"{size}: mean execution under the R queue over that under the G queue",
        "longer for some",
    ).judged(f"{longer:.4f}", ordered("if above 1", (1.0 + 1e-9, math.inf)), longer)


def possible(ends: Sequence[tuple[float, float]], flows: Sequence[float]) -> PaperClaim:
    """State how much of the time that flows save in the congested queue the R queue saves.

    ends: seconds to the last end under the G and the R queue, by job list. flows: the same by flows.
    """
    part = Sample.of(
        (before - after) / (before - best) for (before, after), best in zip(ends, flows, strict=True)
    )
    saved = Sample.of(1 - best / before for (before, _), best in zip(ends, flows, strict=True))
    return ClaimedQuantity(
        "2.14 flows",
        "congested queue: time that the R queue saves, over that saved if every decision is an optimal flow",
        "no such figure",
    ).not_comparable(
        f"{part:.2f}",
        f"flows save {saved:.1%}; each decision is a minimum-cost flow of the {_WINDOW} oldest jobs over all free "
        "CPUs and GPUs, by our kernel; like the queues, it does not know future jobs",
    )
