"""A complete scheduler on the library: a queue, priorities, gangs, why a job waits, repairs, and a journal.

What starts processes is left out: `start` and `stop` print. Everything else is what a real one needs.
"""

from __future__ import annotations

import math
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from topoplace import Cluster, JobGraph, MoveCosts, Topology, machines, make_room, policies, repair
from topoplace.placement import Placement
from topoplace_hosts.journal import Entry, Journal, Stage, carry_out, reconcile
from topoplace_hosts.journal.entry import named

Launcher = Callable[[str, Sequence[int]], None]
Running = Mapping[str, Sequence[int]]


@dataclass
class Job:
    """A gang: all its tasks start together, on one machine or several, or none does."""

    job_id: str
    graph: JobGraph
    priority: int = 0
    why: str = "not decided yet"


class ToyScheduler:
    """Decides in order of priority and age; a job may stop others of lower priority, which then wait again.

    running: the GPUs of jobs that run already, as the machines themselves say, after a restart.
    """

    def __init__(
        self, topology: Topology, journal: Journal, start: Launcher, stop: Launcher, running: Running
    ) -> None:
        self.cluster = Cluster(topology)
        self.jobs: dict[str, Job] = {}
        self._policy = policies.get(policies.DEFAULT)
        self._journal, self._start, self._stop = journal, start, stop
        self.differences = reconcile(self.cluster, running, journal)

    def submit(self, job: Job) -> None:
        """Take a job; one that runs already, as after a restart, goes on. A job that cannot be asked for raises."""
        self._policy.place(job.graph, self.cluster)
        self.jobs[job.job_id] = job
        self.decide()

    def end(self, job_id: str) -> None:
        """Note that a job has ended, or was cancelled; others may start."""
        if self.cluster.runs(job_id):
            self._release(job_id)
        del self.jobs[job_id]
        self.decide()

    def lose(self, *broken: int | str) -> None:
        """Note GPUs, or machines by name, that have died; their jobs move as little as possible, or wait again."""
        self.cluster = self.cluster.with_topology(self.cluster.topology.with_unhealthy(broken))
        dead = set(self.cluster.topology.unhealthy_gpus)
        for job_id, gpus in dict(self.cluster.allocations).items():
            if dead.isdisjoint(gpus):
                continue
            front = repair(job_id, self.cluster)
            if front.unrepaired:
                self.jobs[job_id].why = next(iter(front.unrepaired.values()))
                self._release(job_id)
                continue
            self._stop(job_id, gpus)
            carry_out(front.plans[0], self.cluster, self._journal, why="its GPUs have died")
            self._begin(job_id)
        self.decide()

    def waiting(self) -> list[Job]:
        """Return the jobs that wait, in the order in which they are decided; `why` says what they wait for."""
        jobs = [job for job in self.jobs.values() if not self.cluster.runs(job.job_id)]
        return sorted(jobs, key=lambda job: -job.priority)  # stable: the oldest first among equals

    def decide(self) -> None:
        """Start every waiting job that fits, and those for which others of lower priority can stop."""
        for job in self.waiting():
            placement = self._policy.place(job.graph, self.cluster) or self._room_for(job)
            if placement is not None:
                self._run(job, placement)
                continue
            refusal = self._policy.explain(job.graph, self.cluster, top=1).refusal
            job.why = refusal.reason if refusal else "others could leave, but it would gain nothing"

    def _room_for(self, job: Job) -> Placement | None:
        running = [one for one in self.jobs.values() if self.cluster.runs(one.job_id)]
        lower = tuple(one.job_id for one in running if one.priority < job.priority)
        costs = MoveCosts(move=math.inf)  # jobs stop; none moves
        plan = make_room(
            job.graph, self.cluster, movable=lower, cost=costs, policy=self._policy, job_id=job.job_id
        )
        for job_id in plan.preempt:
            self.jobs[job_id].why = f"stopped for {job.job_id}"
            self._release(job_id)
        return plan.start[0][1] if plan.start else None

    def _run(self, job: Job, placement: Placement) -> None:
        gpus = named(self.cluster.topology, placement.gpus)
        self._journal.append(Entry(job.job_id, Stage.INTENT, gpus, f"priority {job.priority}"))
        self.cluster.allocate(job.job_id, placement)
        self._begin(job.job_id)

    def _begin(self, job_id: str) -> None:
        gpus = self.cluster.gpus_of(job_id)
        # A crash here leaves an intent, or a repair, and `reconcile` sees it.
        self._start(job_id, gpus)
        self._journal.append(Entry(job_id, Stage.CONFIRMED, named(self.cluster.topology, gpus)))

    def _release(self, job_id: str) -> None:
        self._stop(job_id, self.cluster.gpus_of(job_id))
        self.cluster.release(job_id)
        self._journal.append(Entry(job_id, Stage.ENDED))


def main() -> None:
    """Run a few jobs on two machines, with a restart in between."""
    topology = Topology.cluster(machines.get("dgx1-v100"), 2, names=["n0", "n1"])
    really: dict[str, Sequence[int]] = {}  # what the machines would say

    def start(job_id: str, gpus: Sequence[int]) -> None:
        really[job_id] = gpus
        print("start", job_id, "on", *named(topology, gpus))

    def stop(job_id: str, gpus: Sequence[int]) -> None:
        del really[job_id]
        print("stop", job_id)

    with tempfile.TemporaryDirectory() as folder:
        with Journal(Path(folder) / "journal") as journal:
            toy = ToyScheduler(topology, journal, start, stop, {})
            toy.submit(Job("gang", JobGraph.ring(10)))
            toy.submit(Job("small", JobGraph.ring(4)))
            toy.submit(Job("late", JobGraph.ring(4)))
            print("late waits:", toy.jobs["late"].why)
            toy.submit(Job("urgent", JobGraph.ring(4), priority=5))
        with Journal(Path(folder) / "journal") as journal:  # killed and started again
            again = ToyScheduler(topology, journal, start, stop, dict(really))
            print("after a restart:", sorted(again.cluster.allocations))
            print("differences:", len(again.differences))
            for job in toy.jobs.values():
                again.submit(job)
            again.end("gang")
            again.lose("n0")
            print("waiting:", [job.job_id for job in again.waiting()])


if __name__ == "__main__":
    main()
