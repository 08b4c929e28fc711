"""How long a job waits in a queue for one machine, or for whole machines, instead of starting on more.

A job on more machines communicates over more network adapters, or over adapters instead of NVLinks, and so holds its
GPUs for longer. It therefore waits for one machine, or for the number of machines that it would fill on a cluster
without jobs. It waits at most `LeastTime.waits` times the run time that starting now would add. If NVLink domains join
all machines, a job waits for one of these domains.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import chain
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from topoplace.engine.gangs.offers import idle_offers
from topoplace.engine.machines.machine_class import members
from topoplace.jobs.groups import MACHINE
from topoplace.objectives.communication import measured
from topoplace.placement import Placement, Refusal
from topoplace.topology.accelerators import compute_seconds
from topoplace.topology.ports import Ports, switched_levels

if TYPE_CHECKING:
    from topoplace.engine.gangs.offers import MaxTasks
    from topoplace.engine.machine_state import ClusterView
    from topoplace.engine.request import JobRequest
    from topoplace.jobs.job_graph import JobGraph
    from topoplace.topology.links.nccl_rates import Rates
    from topoplace.topology.topology import Topology

Ints = NDArray[np.int64]
UNKNOWN_RUN_TIME: Final = 3600.0
"""Expected run time, in seconds, of a job whose run time is unknown."""
_SHARE: Final = 0.2
"""Share of a step that a job without `tflop` communicates on the best GPUs, as in the simulator's `StepTime`."""


class Awaited(NamedTuple):
    """The machines or NVLink domains that a job waits for."""

    level: str
    """"machine", or the level of the NVLink domains."""
    most: int
    """Limit on the number of domains; 1 for NVLink domains."""

    def limited(self, job: JobGraph) -> JobGraph:
        """Return the job limited to these domains."""
        if self.level != MACHINE:
            return job.with_(within=self.level)
        return job.with_(single_machine=True) if self.most == 1 else job.with_(max_machines=self.most)

    def refusal(self, job: JobGraph, slowdown: float, count: int) -> Refusal:
        """Return the refusal of a waiting job; slowdown: run time on `count` domains divided by that on these."""
        where = self.level.replace("_", " ")
        domains = f"one {where}" if self.most == 1 else f"{self.most} {where}s"
        split = f"split over {count} {where}s it would take {slowdown:.1f} times as long"
        return Refusal(f"waits for {job.num_tasks} GPUs of {domains}: {split}")

    def num_domains(self, placement: Placement, view: ClusterView) -> int:
        """Return the number of domains in which a placement has GPUs."""
        machines = view.cluster.topology.machine_of[list(placement.gpus)]
        return len(np.unique(_codes(self.level, view)[machines]))

    def is_in_service(
        self, request: JobRequest, view: ClusterView, lost: Sequence[int], max_tasks_of: MaxTasks
    ) -> bool:
        """Return True if such domains can hold a job once they are idle.

        lost: the GPUs out of service, held by jobs or not. max_tasks_of: as for `idle_offers`.
        """
        offers = idle_offers(max_tasks_of, request, view, at_best=True)
        missing = np.bincount(
            view.cluster.topology.machine_of[list(lost)], minlength=view.classes.num_machines
        )
        room = np.clip(offers.gpu_counts - missing[offers.machines], 0, offers.sizes)
        codes = _codes(self.level, view)[offers.machines]
        rooms = np.sort(np.bincount(codes[codes >= 0], weights=room[codes >= 0]))
        return float(rooms[-self.most :].sum()) >= request.size


def awaited_by(request: JobRequest, view: ClusterView, alone: Placement) -> Awaited | None:
    """Return the domains that a job with `may_wait` waits for; None for none.

    alone: the job's placement on the cluster without jobs.
    """
    level = view.table(_level, lambda: (_level(view),))[0]
    number = Awaited(level, 1).num_domains(alone, view)
    if number == 1 or (level == MACHINE and _fills_machines(alone, view)):
        return Awaited(level, number)
    return None


def _fills_machines(placement: Placement, view: ClusterView) -> bool:
    """Return True if a placement takes all GPUs of its machines, so that it needs as many others of this size.

    Parts of so many machines may be slower than parts of more, as may be machines with links between them.
    """
    machines = view.classes.by_machine(placement.gpus)
    sizes = (len(view.classes.gpus_of[machine]) for machine in machines)
    return sum(sizes) == len(placement.gpus) and not view.cluster.topology.derived(Ports).join_machines


class Pace(NamedTuple):
    """The times of a step, from which the slowdown by slower communication follows."""

    compute: float
    """Time of computing in a step, in the unit of `inside`: seconds, or for a job without bytes, its own."""
    inside: float
    """Time of communication in a step on the domains that the job waits for; 0 if links do not count."""
    split: float
    """Least time of communication in a step on more domains; `inside` if unknown."""

    @classmethod
    def of(
        cls, request: JobRequest, awaited: Awaited, view: ClusterView, inside: float, rates: Rates | str
    ) -> Pace:
        """Return the pace of a job.

        Args:
            inside: Time of communication in a step on the domains that the job waits for.
            rates: Those of links by which the library plans rings.
        """
        job, topology = request.job, view.cluster.topology
        if not 0 < inside < math.inf:
            return cls(1.0, 0.0, 0.0)
        pools = _pools(request, awaited.level, view)
        split = _seconds_split(job, pools, topology, rates) if awaited.most == 1 else inside
        used = map(topology.gpus.__getitem__, chain(*pools))
        compute = compute_seconds(job.tflop, used) or inside * (1 - _SHARE) / _SHARE
        return cls(compute, inside, split if split < math.inf else inside)

    @property
    def slowdown_if_split(self) -> float:
        """Return the least run time on more domains, divided by that on the domains that the job waits for."""
        return self.slowdown(self.split)

    def slowdown(self, seconds: float) -> float:
        """Return the run time with `seconds` of communication in a step, divided by that on the awaited domains; at
        least 1.
        """
        return max(1.0, (self.compute + seconds) / (self.compute + self.inside)) if self.inside else 1.0


def _level(view: ClusterView) -> str:
    """Return the level of NVLink domains that join all machines, else that of machines."""
    joined = (level.name for level in switched_levels(view.cluster.topology) if (level.codes >= 0).all())
    return next(joined, MACHINE)


def _codes(level: str, view: ClusterView) -> Ints:
    """Return (m,) the domain of each machine; -1 for none."""
    if level == MACHINE:
        return np.arange(view.classes.num_machines)
    return next(one.codes for one in view.cluster.topology.levels if one.name == level)


def may_wait(request: JobRequest, view: ClusterView) -> bool:
    """Return True for a job that may be split, is slower if split, and has no requirements on its machines."""
    if view.cluster.topology.num_machines == 1:
        return False
    job = request.job
    is_slower = job.edges and (job.bandwidth_sensitive or job.stated_collectives or job.tflop)
    is_bound = job.single_machine or request.limits_machines or request.anti_affine or request.needs_sockets
    return bool(is_slower) and not (is_bound or request.takes_parts or request.asks_utility)


def _largest(codes: Ints, room: Ints) -> tuple[int, int]:
    """Return the domain with the most room, and how much that is; (0, 0) if there is no domain."""
    inside = codes >= 0
    totals = np.bincount(codes[inside], weights=room[inside], minlength=1)
    first = int(totals.argmax())
    return first, int(totals[first])


def _nearest(codes: Ints, first: int, room: Ints, topology: Topology) -> Ints:
    """Return the machines with room of the domain that is nearest in the network; none if there is no other."""
    others = (codes != first) & (codes >= 0) & (room > 0)
    machine = int(np.argmax(codes == first))
    for level in topology.levels:
        near = others & (level.codes == level.codes[machine]) & (level.codes >= 0)
        if near.any() and not level.rail:
            others = near
            break
    return np.flatnonzero(others & (codes == codes[int(np.argmax(others))]))


def _pools(request: JobRequest, level: str, view: ClusterView) -> tuple[list[int], list[int]]:
    """Return GPUs for all tasks of a job in a domain that can hold it, and those in the nearest other one."""
    codes = _codes(level, view)
    suitable = [(request.suitable(one) & one.healthy).bit_count() for one in view.classes.classes]
    room = np.array(suitable, np.int64)[view.classes.class_of]
    first, _ = _largest(codes, room)
    near = _nearest(codes, first, room, view.cluster.topology)
    return _gpus(request, view, np.flatnonzero(codes == first)), _gpus(request, view, near)


def _gpus(request: JobRequest, view: ClusterView, machines: Ints) -> list[int]:
    """Return GPUs of these machines for the tasks of a job, the lowest first."""
    found: list[int] = []
    ordered: list[int] = machines.tolist()
    for machine in ordered:
        if len(found) >= request.size:
            break
        one, numbers = view.classes.of(machine), view.classes.gpus_of[machine]
        usable = members(request.suitable(one) & one.healthy)
        found += [numbers[local] for local in usable]
    return found[: request.size]


def _seconds_split(
    job: JobGraph, pools: Sequence[Sequence[int]], topology: Topology, rates: Rates | str
) -> float:
    """Return how long a job communicates at best if its first tasks are in one domain, and the others in another.

    It is infinite if the job cannot be divided so.
    """
    size, (here, there) = job.num_tasks, pools
    least, most = max(1, size - len(there)), min(size - 1, len(here))
    cuts = {least, size // 2, most} if least <= size // 2 <= most else {least, most} if least <= most else ()
    splits = ([*here[:cut], *there[: size - cut]] for cut in cuts)
    placed = [np.array(gpus, np.int64) for gpus in splits if topology.is_legal(gpus)]
    return min((measured(job, gpus, topology, rates=rates).seconds for gpus in placed), default=math.inf)
