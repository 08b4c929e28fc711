"""The three phases of a decision as flow networks: processes, then GPUs, then drives (thesis, fig. 22 a, b and c).

sub-task ──▶ the places it prefers ──┐
        │ ──▶ aggregator X of its kind ──▶ place ──▶ sink
        └───▶ unscheduled U of its job ─────────────▶ sink

A *sub-task* is the unit that a phase places: a process with its CPUs and memory, a GPU, or a drive. A *place* is a
possible location of it: a machine, or in the GPU phase a machine and a GPU make (model and memory). Every sub-task
ships one unit of flow. There is therefore always an optimal flow in which each sub-task is at one place or waits.
Sub-tasks of one *kind* have equal costs on all places except those they prefer; arcs through the aggregator X represent
these costs.

Only arcs that an optimum may need are built: an aggregator for N sub-tasks offers at most the N cheapest places. If an
optimum used another place, one of the N would be empty and cost no more. The size of a phase therefore depends on the
batch and not on the cluster. Finding the cheapest places takes one pass over numpy columns.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from topoplace import kernels
from topoplace.policies.drmaestro.costs import REMOTE, Prices, sizes, units
from topoplace.policies.drmaestro.free_resources import Ints

if TYPE_CHECKING:
    from topoplace.policies.drmaestro.bundles import Bundle, JobBundles
    from topoplace.policies.drmaestro.free_resources import FreeResources
    from topoplace.policies.drmaestro.network import Reals

WAITS: Final = -1
"""The place of a sub-task that stays unscheduled."""
_ROUNDING: Final = 1e-9
_MEMORY_STEP: Final = 1 << 10
"""Cost of each larger size of GPU memory: of equally near GPUs, the smallest sufficient one is the cheapest."""
_MANY: Final = 1 << 30
"""A number above that of the jobs in any batch."""
_STEPS: Final = 4
"""Number of cost steps of an offer: each further sub-task of the batch at one place costs more, up to this many."""


@dataclass(frozen=True, slots=True)
class Phase:
    """One phase (processes, GPUs or drives) as a flow problem: t sub-tasks of g jobs, each on a place or waiting.

    Sub-tasks of one of k kinds are offered the same places. Costs are integers in units of 1 / `costs.SCALE`.
    """

    job: Ints
    """(t,) the job of each sub-task, 0..g - 1."""
    kind: Ints
    """(t,) the kind of each sub-task, 0..k - 1, which selects its aggregator."""
    aggregated: Ints
    """(t,) the cost of the arc from each sub-task to its aggregator, in addition to the aggregator's own arcs."""
    unscheduled: Ints
    """(g,) the cost per waiting sub-task of each job (eq. 13)."""
    room: Ints
    """(p,) the maximum number of sub-tasks at each place."""
    preferred: tuple[Ints, Ints, Ints]
    """Three arrays: sub-task, place and cost (eq. 12) of each arc from a sub-task to a preferred place."""
    offered: tuple[Ints, Ints, Ints, Ints]
    """Four arrays: kind, place, capacity and cost of each arc from an aggregator to a place."""

    def network(self) -> tuple[int, Ints, Ints, Ints, Ints, Ints]:
        """Return the flow network: number of nodes; tail, head, capacity and cost of each arc; supply of each node.

        The order of nodes is: sub-tasks, U of each job, X of each kind, places, the sink. The order of arcs is:
        preferences, sub-tasks to X, sub-tasks to U, X to places, U to the sink, places to the sink.
        """
        tasks, jobs, places = len(self.job), len(self.unscheduled), len(self.room)
        kinds = int(self.kind.max(initial=-1)) + 1
        first_x, first_place, sink = tasks + jobs, tasks + jobs + kinds, tasks + jobs + kinds + places
        numbers = np.arange(tasks)
        task, place, cost = self.preferred
        x, offered_place, capacity, offered_cost = self.offered
        ones = np.ones(len(task) + 2 * tasks, dtype=np.int64)
        tail = [task, numbers, numbers, first_x + x, np.arange(tasks, first_x), np.arange(first_place, sink)]
        head = [
            *(first_place + place, first_x + self.kind, tasks + self.job, first_place + offered_place),
            np.full(jobs + places, sink),
        ]
        waiting = np.bincount(self.job, minlength=jobs)
        free_of_cost = np.zeros(jobs + places, dtype=np.int64)
        costs = [cost, self.aggregated, self.unscheduled[self.job], offered_cost, free_of_cost]
        supply = np.zeros(sink + 1, dtype=np.int64)
        supply[:tasks], supply[sink] = 1, -tasks
        capacities = [ones, capacity, waiting, self.room]
        return sink + 1, _column(tail), _column(head), _column(capacities), _column(costs), supply

    def places(self, flow: Ints) -> Ints:
        """Return the place of each sub-task in a given flow on the arcs of `network()`; WAITS if it stays unscheduled.

        Sub-tasks that reach places through one aggregator are interchangeable; they get its places in ascending order.
        """
        tasks, (task, place, _) = len(self.job), self.preferred
        found = np.full(tasks, WAITS, dtype=np.int64)
        direct, by_x = flow[: len(task)] > 0, flow[len(task) : len(task) + tasks] > 0
        found[task[direct]] = place[direct]
        first = len(task) + 2 * tasks
        kind, offered = self.offered[0], self.offered[1]
        units = np.repeat(np.arange(len(kind)), flow[first : first + len(kind)])
        units = units[np.lexsort((offered[units], kind[units]))]
        takers = np.flatnonzero(by_x)
        takers = takers[np.argsort(self.kind[takers], kind="stable")]
        found[takers] = offered[units]
        return found

    def solve(self) -> Ints:
        """Return the place of each sub-task in a flow of least total cost; WAITS if it stays unscheduled.

        Raise RuntimeError if there is no such flow; this cannot happen, as every sub-task may wait.
        """
        if not len(self.job):
            return np.empty(0, dtype=np.int64)
        solution = kernels.min_cost_flow(*self.network())
        if solution.status != "optimal":  # every sub-task may wait, so there is always a flow
            raise RuntimeError(f"a phase of {len(self.job)} sub-tasks has no optimum: {solution.status}")
        return self.places(solution.flow)


@dataclass(frozen=True, slots=True)
class Offer:
    """The places that any sub-task of one kind may take: place, capacity and cost of each arc from its aggregator."""

    place: Ints
    capacity: Ints
    cost: Ints


class Builder:
    """A collection of the sub-tasks of a phase, which builds and solves the flow problem."""

    def __init__(self) -> None:
        self._job: list[int] = []
        self._kind: list[int] = []
        self._aggregated: list[int] = []
        self._preferred: list[tuple[int, int, int]] = []
        self._kinds: dict[Hashable, int] = {}

    def add(
        self, job: int, kind: Hashable, aggregated: int = 0, preferred: Sequence[tuple[int, int]] = ()
    ) -> None:
        """Add a sub-task (a process, GPU or drive to place) of a job.

        kind: sub-tasks of one kind are offered the same places. aggregated: cost added to every offered place.
        preferred: (place, cost) of further places for this sub-task alone.
        """
        task = len(self._job)
        self._job.append(job)
        self._kind.append(self._kinds.setdefault(kind, len(self._kinds)))
        self._aggregated.append(aggregated)
        self._preferred.extend((task, place, cost) for place, cost in preferred)

    def counts(self) -> dict[Hashable, int]:
        """Return, for each kind of sub-task, the number of places to offer: that of all sub-tasks of the phase."""
        return dict.fromkeys(self._kinds, len(self._job))

    def solve(self, offers: dict[Hashable, Offer], room: Ints, unscheduled: Ints) -> Ints:
        """Solve the phase: return the place of each added sub-task in a flow of least total cost, or WAITS.

        offers: the places that each kind of sub-task may take. room: number of sub-tasks that each place can take.
        unscheduled: cost of each waiting sub-task, by job.
        """
        preferred = np.array(self._preferred, dtype=np.int64).reshape(-1, 3)
        listed = [offers[kind] for kind in self._kinds]
        kind = np.repeat(np.arange(len(listed)), [len(offer.place) for offer in listed])
        offered = _column([offer.place for offer in listed])
        if not len(offered) and not len(preferred):
            return np.full(len(self._job), WAITS)
        used, local = np.unique(np.concatenate([preferred[:, 1], offered]), return_inverse=True)
        here = len(preferred)
        phase = Phase(
            job=np.array(self._job, dtype=np.int64),
            kind=np.array(self._kind, dtype=np.int64),
            aggregated=np.array(self._aggregated, dtype=np.int64),
            unscheduled=unscheduled,
            room=room[used],
            preferred=(preferred[:, 0], local[:here], preferred[:, 2]),
            offered=(
                *(kind, local[here:]),
                _column([offer.capacity for offer in listed]),
                _column([offer.cost for offer in listed]),
            ),
        )
        places = phase.solve()
        return np.where(places == WAITS, WAITS, used[places])


def _column(parts: Sequence[NDArray[np.signedinteger[Any]]]) -> Ints:
    return np.concatenate(parts).astype(np.int64) if parts else np.empty(0, dtype=np.int64)


def cheapest(cost: Ints, usable: NDArray[np.bool_], count: int) -> Ints:
    """Return the numbers of the usable places with the lowest cost, at most `count`; ties go to the lowest number.

    cost, usable: one entry per place.
    """
    found = np.flatnonzero(usable)
    if len(found) <= count:
        return found
    key = cost[found]
    least = np.partition(key, count - 1)[count - 1]
    below, equal = found[key < least], found[key == least]
    return np.concatenate([below, equal[: count - len(below)]])


def offer_hosts(
    free: FreeResources,
    job: JobBundles,
    bundle: Bundle,
    without: Sequence[int],
    *,
    count: int,
    prices: Prices,
) -> Offer:
    """Return the cheapest machines for a bundle (a process with its CPUs, memory and GPUs).

    Machines with enough local GPUs have the local cost. If GPUs may be remote, machines with fewer local GPUs have a
    cost between local and remote, and machines without any have the remote cost. without: machines to exclude because
    they already have a process of the job. count: maximum number of machines to offer.
    """
    fits = fitting(free.hosts[:, :2], np.array(bundle.needs))
    fits[list(without)] = 0
    near, some = _near(free, job, bundle)
    near = np.minimum(near, fits)
    far = np.zeros_like(fits) if bundle.gpus_local else fits - near
    apart = job.gpu_topology.shares(free) if job.gpu_topology else 0.0
    here = prices.local(job.profile, apart=apart) + _cost_of_memory(free, job, bundle)
    there = prices.remote(job.profile)
    partly = np.rint(there + (here - there) * some).astype(np.int64)
    mixed = np.where(some > 0, np.minimum(far, 1), 0)
    far = far - mixed
    first = np.where(near > 0, here, np.where(mixed > 0, partly, there))
    found = cheapest(first, near + mixed + far > 0, count)
    if job.anti_affine:  # all its GPUs are local
        near = np.minimum(near, 1)
    parts = [
        _in_steps(found, near[found], here[found], prices.shared(job.profile, remote=False)),
        _in_steps(found, mixed[found], partly[found], 0),
        _in_steps(found, far[found], there[found], prices.shared(job.profile, remote=True)),
    ]
    return Offer(*(np.concatenate(columns) for columns in zip(*parts, strict=True)))


def _in_steps(place: Ints, capacity: Ints, cost: Ints, more: int) -> tuple[Ints, Ints, Ints]:
    """Return place, capacity and cost of several parallel arcs to each place, to spread the jobs of a batch.

    Each arc has capacity 1 and costs `more` than the one before; the last arc has the rest of the capacity.
    """
    steps = _STEPS if more else 1
    number = np.arange(steps)
    taken = np.clip(capacity[:, None] - number, 0, 1)
    taken[:, -1] = np.maximum(capacity - (steps - 1), 0)
    costs = cost[:, None] + number * more
    some = taken.ravel() > 0
    return np.repeat(place, steps)[some], taken.ravel()[some], costs.ravel()[some]


def _near(free: FreeResources, job: JobBundles, bundle: Bundle) -> tuple[Ints, Reals]:
    """Return two arrays with one entry per machine, about its free local GPUs.

    The first is the number of bundles like `bundle` that could have all their GPUs there; it is 2**30 if a bundle needs
    no GPU. The second is the fraction of one more bundle's GPUs that would be left, 0..1.
    """
    if not bundle.gpus:
        return np.full(len(free.hosts), _MANY, dtype=np.int64), np.zeros(len(free.hosts))
    local = free.gpus if job.own_machine_only else free.local_gpus()
    suitable: Ints = local[:, job.suits].sum(axis=1)
    return suitable // bundle.gpus, suitable % bundle.gpus / bundle.gpus


def _cost_of_memory(free: FreeResources, job: JobBundles, bundle: Bundle) -> Ints:
    """Return (m,) the extra cost of the GPU memory with which each machine has enough local GPUs for a bundle."""
    cost = np.zeros(len(free.hosts), dtype=np.int64)
    suitable = free.gpus * job.suits
    for rank in range(int(job.memory_rank.max(initial=0))):
        enough = suitable[:, job.memory_rank <= rank].sum(axis=1) >= bundle.gpus
        cost += np.where(enough, 0, _MEMORY_STEP)
    return cost


def slots(free: FreeResources, bundles: Sequence[Bundle], tasks: int) -> Ints:
    """Return an array with a limit on the number of bundles on each machine, at most `tasks`.

    CPUs and memory are added up to one number, each relative to the largest machine (eq. 10). This overestimates
    machines that lack one of the two, so the caller checks each assignment.
    """
    left = np.maximum(free.hosts[:, :2], 0)
    largest = left.max(axis=0)
    smallest = float(sizes(np.array([bundle.needs for bundle in bundles]), largest).min())
    if smallest <= _ROUNDING:
        return np.full(len(left), tasks, dtype=np.int64)
    times: Reals = sizes(left, largest) / smallest + _ROUNDING
    return np.minimum(times, tasks).astype(np.int64)


def offer_gpus(free: FreeResources, job: JobBundles, count: int, prices: Prices) -> Offer:
    """Return the cheapest places (machine and GPU make) with free suitable GPUs, at the cost of remote GPUs.

    count: maximum number of places to offer.
    """
    capacity = (free.gpus * job.suits).ravel()
    cost = (prices.remote(job.profile)[:, None] + _MEMORY_STEP * job.memory_rank).ravel()
    found = cheapest(cost, capacity > 0, count)
    return Offer(*_in_steps(found, capacity[found], cost[found], prices.shared(job.profile, remote=True)))


def local_gpus(
    free: FreeResources, job: JobBundles, hosts: Sequence[int], prices: Prices
) -> Iterator[tuple[int, list[tuple[int, int]]]]:
    """Yield, for each task, the extra cost of a remote GPU and the (place, cost) pairs of free suitable local GPUs.

    hosts: the machine of each task's process. The extra cost comes from network load at that machine; `offer_gpus`
    includes the load at the GPU's machine. A place is a machine and a GPU make.
    """
    makes = free.gpus.shape[1]
    more = prices.slowdown(job.profile, hosts, remote=True) - 1
    far = units(more / prices.costs.goal * REMOTE).tolist()
    near = prices.local(job.profile, hosts).tolist()
    usable = free.gpus * job.suits > 0
    larger: list[int] = (_MEMORY_STEP * job.memory_rank).tolist()
    places = dict[int, list[tuple[int, int]]]()
    for host, added, cost in zip(hosts, far, near, strict=True):
        if host not in places:
            machines = free.pool(host)
            rows = zip(machines, usable[machines].tolist(), strict=True)
            places[host] = [
                (m * makes + make, cost + larger[make])
                for m, row in rows
                for make, some in enumerate(row)
                if some
            ]
        yield added, places[host]


def offer_drives(free: FreeResources, count: int, prices: Prices) -> Offer:
    """Return up to `count` machines with free drives; a drive of any of them costs as much as a remote one."""
    left = free.hosts[:, 2]
    cost = np.full(len(left), prices.costs.place(np.ones(()), REMOTE))
    found = cheapest(cost, left > 0, count)
    return Offer(found, left[found], cost[found])


def room(free: FreeResources, job: JobBundles) -> int:
    """Return an upper bound on the number of jobs with these needs that fit at the same time.

    The bound is exact for jobs of one bundle that may not use remote GPUs, unless GPUs belong to fixed partitions.
    """
    most = _MANY
    if free.columns.partitions_of:
        return most
    if not job.gpus_local and job.job.num_tasks:
        most = int(free.gpus[:, job.suits].sum()) // job.job.num_tasks
    for bundle in set(job.bundles):
        fits = fitting(free.hosts[:, :2], np.array(bundle.needs))
        if bundle.gpus_local:
            fits = np.minimum(fits, _near(free, job, bundle)[0])
        most = min(most, int(fits.sum()) // job.bundles.count(bundle))
    return most


def fitting(free: Ints, needs: Ints) -> Ints:
    """Return, for each row of `free`, the number of times that `needs` fits into it; 0 for negative rows.

    If all needs are 0, return 2**30 for the other rows.
    """
    asked = needs > 0
    if not asked.any():
        return np.where((free >= 0).all(axis=1), _MANY, 0)
    times: Ints = (free[:, asked] // needs[asked]).min(axis=1)
    return np.maximum(times, 0)
