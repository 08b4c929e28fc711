"""The queue of MAPA's published simulator (github.com/socal-ucr/MAPA at commit 15e58ab), mistakes included.

- Arrival times are ignored: all jobs wait from cycle 0, and a cycle is a second.
- In a cycle, jobs are tried in order until one does not start. A job that starts is deleted from the list during the
  walk. The walk therefore skips the job after it, which is tried in the next cycle.
- The walk does not notice that the list gets shorter. Behind the end, it finds the remains of the last job: its
  numbers, but neither its name nor its pattern. Such a ghost starts if it needs one GPU, possibly several times at
  once. When the first ghost ends, the GPUs of the others stay busy for ever.
- Preserve refuses GPUs for a sensitive job unless eq. 2 predicts more than 12.335 GB/s, its value without any link. It
  also refuses a single GPU if no NVLink remains. The job then waits, and so do all jobs after it.

The content of a ghost is undefined in C++; this module does what GCC 12 does at -O3.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from topoplace.cluster.cluster import Cluster
from topoplace.jobs.job_graph import JobGraph
from topoplace.placement import Placement
from topoplace.policies import Preserve
from topoplace.policies.mapa.search import MapaPolicy
from topoplace.topology.topology import Topology
from topoplace_lab.simulate import Workload


@dataclass(slots=True, eq=False)
class QueueJob:
    """A job of the published simulator, or a ghost: a finished job that stays in its lists. Times are cycles.

    arrival: the first cycle after 0 in which it was tried, or 0.
    """

    index: int
    job: JobGraph
    service: int
    is_ghost: bool = False
    arrival: int = 0
    start: int = 0
    end: int = 0
    placement: Placement | None = None

    def ghost(self) -> QueueJob:
        """Return the copy that stays in the job's slot of the list after the job finished or moved one slot down."""
        return replace(self, is_ghost=True)


class PublishedQueue:
    """Runs a list of jobs as the published simulator does.

    policy: one of the artifact's; Preserve must have the published threshold.
    """

    def __init__(self, workload: Workload, topology: Topology, policy: MapaPolicy) -> None:
        rows = zip(workload.jobs, workload.base_time.tolist(), strict=True)
        self._waiting = [QueueJob(i, job, int(seconds)) for i, (job, seconds) in enumerate(rows)]
        self._running: list[QueueJob] = []
        self._policy = policy
        self._cluster = Cluster(topology)
        self._held = 0
        self._names: dict[int, str] = {}

    def run(self) -> Iterator[QueueJob]:
        """Yield the jobs in the order in which they end; stop early if the simulator would never finish."""
        now = 0
        while self._waiting or self._running:
            yield from self._finish(now)
            started = self._walk(now)
            if started or now == 0:
                now += 1
                continue
            due = [job.start + job.service for job in self._running if job.start + job.service > now]
            if not due:
                return  # no job will free the busy GPUs, so none can start or end
            now = min(due)

    def _finish(self, now: int) -> Iterator[QueueJob]:
        """End the jobs that are due; of several with one number, all leave but only the first frees its GPUs."""
        while due := next((job for job in self._running if job.start + job.service == now), None):
            due.end = now
            self._cluster.release(self._names.pop(id(due)))
            self._running = [job for job in self._running if job.index != due.index]
            yield due

    def _walk(self, now: int) -> bool:
        """Start jobs along the list of waiting ones; return True if any started."""
        slots, size, started = self._waiting, len(self._waiting), False
        for position in range(size):
            job = slots[position]
            job.arrival = job.arrival or now
            placement = self._place(job)
            if placement is None:
                break
            self._start(job, placement, now)
            size, started = _without(slots, size, job.index), True
        self._waiting = slots[:size]
        return started

    def _place(self, job: QueueJob) -> Placement | None:
        if job.job.num_tasks > self._cluster.num_free or (job.is_ghost and job.job.num_tasks > 1):
            return None
        placement = self._policy.place(job.job, self._cluster)
        alone = isinstance(self._policy, Preserve) and job.job.num_tasks == 1
        return None if placement and alone and not placement.scores["preserved_bandwidth"] else placement

    def _start(self, job: QueueJob, placement: Placement, now: int) -> None:
        running = replace(job, start=now, placement=placement)
        self._running.append(running)
        self._names[id(running)] = str(self._held)
        self._cluster.allocate(str(self._held), placement.gpus)
        self._held += 1


def _without(slots: list[QueueJob], size: int, index: int) -> int:
    """Delete the job of that number from the first `size` slots, and return how many are left.

    The jobs behind it move one slot down; the last one leaves a ghost in the slot where it was.
    """
    found = next((i for i in range(size) if slots[i].index == index), None)
    if found is None:
        return size
    last = slots[size - 1]
    slots[found : size - 1] = slots[found + 1 : size]
    slots[size - 1] = last.ghost()
    return size - 1
