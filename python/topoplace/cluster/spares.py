"""Spares: idle machines of each domain of a level that are held back until something breaks.

Lent spares are still held. A pre-emptible job may run on them, as running jobs keep held GPUs; until it is placed, a
what-if ends the hold.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, TypeVar

import numpy as np

from topoplace import _checks
from topoplace._core import Transaction
from topoplace.cluster.job_data import GRAPH
from topoplace.errors import AllocationError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from topoplace._core import ClusterState
    from topoplace.cluster.hosts import HostAllocation, Hosts
    from topoplace.jobs.job_graph import JobGraph
    from topoplace.topology.fabric import Level
    from topoplace.topology.topology import Topology

    Ints = NDArray[np.int64]
    Flags = NDArray[np.bool_]

SPARE: Final = "spare"
"""The reason for which spares are held that stay idle."""
LENT: Final = "lent spare"
"""The reason for which spares are held on which pre-emptible jobs may run."""
SPARES: Final = (SPARE, LENT)
Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class Spares:
    """The machines that `Cluster.hold_spares` has held, and what is missing."""

    held: tuple[str, ...]
    """The machines that this call has held; those held before are not among them."""
    short: Mapping[str, int] = field(hash=False)
    """For each domain without enough idle machines, the number of spares that it lacks."""
    surplus: tuple[str, ...] = ()
    """The spares that domains have beyond the number, as when a broken one is back; `Cluster.unhold` gives them back.
    """


def chosen(topology: Topology, state: ClusterState, hosts: Hosts, level: str, machines: int) -> Spares:
    """Return the machines to hold so that each domain of a level has so many spares, and the domains that lack some."""
    placed = _level(level, topology)
    floor = _checks.integer(machines, "machines", AllocationError, low=1, high=1 << 30)
    idle, spare = _idle(topology, state, hosts), _spare(topology, state, hosts)
    names, template_of = topology.machine_names, np.array(topology.template_of)
    held: list[str] = []
    short: dict[str, int] = {}
    surplus: list[str] = []
    for domain, members in _members(placed):
        alike = np.bincount(template_of[members])
        best_first = sorted(members.tolist(), key=lambda one: (-alike[template_of[one]], -one))
        own, possible = ([one for one in best_first if its[one]] for its in (spare, idle))
        lacking = max(0, floor - len(own))
        held += [names[machine] for machine in sorted(possible[:lacking])]
        surplus += [names[machine] for machine in sorted(own[floor:])]
        if len(possible) < lacking:
            short[domain] = lacking - len(possible)
    return Spares(tuple(held), short, tuple(surplus))


def preemptible_on(
    gpus: Sequence[int], topology: Topology, state: ClusterState, hosts: Hosts
) -> tuple[str, ...]:
    """Return the pre-emptible jobs, sorted, on some GPUs, or with CPUs, memory or drives of their machines."""
    machines = set(topology.machine_of[list(gpus)].tolist())
    found = set(state.occupants(gpus)[1])
    for job_id, held in hosts.held.items():
        if not machines.isdisjoint(_machines(held)):
            found.add(job_id)
    graphs: dict[str, JobGraph | None] = {job_id: state.note(job_id)[GRAPH] for job_id in found}
    return tuple(sorted(job_id for job_id, graph in graphs.items() if graph and graph.is_preemptible))


@contextmanager
def lending(job: JobGraph | None, state: ClusterState) -> Generator[bool]:
    """Do what `Cluster.lending` says."""
    gpus, machines = _lent(state) if job is not None and job.is_preemptible else ([], [])
    with Transaction(state, state, always_undo=True):
        yield bool(gpus) and state.unhold(gpus, machines)


def on_lent(
    state: ClusterState, gpus: Collection[int], hosts: HostAllocation | None, allocate: Callable[[], Result]
) -> Result:
    """Return the result of `allocate`, during which those of its GPUs and machines that are lent are not held."""
    wanted = set(gpus), _machines(hosts) if hosts else ()
    targets = [[one for one in lent if one in its] for lent, its in zip(_lent(state), wanted, strict=True)]
    with Transaction(state, state, always_undo=False):
        state.unhold(*targets)
        found = allocate()
        state.hold(LENT, *targets)
    return found


def _machines(hosts: HostAllocation) -> set[int]:
    return {*(share.machine for share in hosts.shares), *hosts.drives}


def num_lent(state: ClusterState) -> int:
    """Return `Cluster.num_lent`."""
    gpus = _lent(state)[0]
    return len(gpus) - len({gpu for its in state.occupants(gpus)[1].values() for gpu in its})


def _lent(state: ClusterState) -> tuple[list[int], list[int]]:
    """Return the GPUs and the machines of lent spares."""
    gpus, machines = state.held()
    return [one for one in gpus if gpus[one] == LENT], [one for one in machines if machines[one] == LENT]


def _level(name: object, topology: Topology) -> Level:
    """Return the level of this name; AllocationError if its domains are not sets of machines, or there is none."""
    known = {level.name: level for level in topology.levels if not level.rail}
    if _checks.text(name, "level", AllocationError) not in known:
        levels = ", ".join(map(repr, known)) or "none"
        raise AllocationError(f"level = {name!r}: the levels whose domains are machines are {levels}")
    return known[str(name)]


def _members(level: Level) -> Iterator[tuple[str, Ints]]:
    """Yield each domain of a level with the numbers of its machines, ascending."""
    order = np.argsort(level.codes, kind="stable")
    ends = np.cumsum(np.bincount(level.codes + 1))
    for members in np.split(order, ends[:-1])[1:]:  # the first are in no domain
        domain = level.domains[int(members[0])]
        assert domain is not None
        yield domain, members


def _idle(topology: Topology, state: ClusterState, hosts: Hosts) -> Flags:
    """Return (m,) True for machines in service with all GPUs free, on which no job has CPUs, memory or drives."""
    return _have_all(topology, state.free_gpus()) & _unused(hosts, hosts.out_of_service)


def _spare(topology: Topology, state: ClusterState, hosts: Hosts) -> Flags:
    """Return (m,) True for spares that are idle but for pre-emptible jobs to which they are lent."""
    held = [gpu for gpu, reason in state.held()[0].items() if reason in SPARES]
    with Transaction(state, state, always_undo=True):
        for job_id in preemptible_on(_lent(state)[0], topology, state, hosts):
            state.release(job_id)
        state.unhold(held)
        return _have_all(topology, state.occupants(held)[0]) & _unused(hosts, hosts.drained)


def _have_all(topology: Topology, gpus: Iterable[int]) -> Flags:
    """Return (m,) True for machines all of whose GPUs are among `gpus`."""
    machine_of, count = topology.machine_of, topology.num_machines
    found = np.bincount(machine_of[np.fromiter(gpus, np.int64)], minlength=count)
    whole: Flags = found == np.bincount(machine_of, minlength=count)
    return whole


def _unused(hosts: Hosts, closed: Iterable[int]) -> Flags:
    """Return (m,) True for machines that are not `closed` and whose CPUs, memory and drives no job has."""
    found: Flags = hosts.processes == 0
    if hosts.resources:
        found &= (hosts.free == hosts.capacity).all(axis=1)
    found[list(closed)] = False
    return found
