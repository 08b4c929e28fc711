"""Lower bounds on the time of gangs by their definitions alone, from what `GangRoom` says of the machines."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations, pairwise
from typing import NamedTuple

import networkx as nx
import numpy as np

import topoplace as tp
from topoplace import kernels
from topoplace.collective.networks import collective_network
from topoplace.collective.rated_sets import rated_sets
from topoplace.deciding import ranked_sets
from topoplace.deciding.bounds import Rooms
from topoplace.engine.machine_state import ClusterView
from topoplace.jobs.collectives import Batch
from topoplace.objectives.communication import RING_KINDS
from topoplace.topology.ports import Ports

ROUNDING = 1 - 1e-9
IN_CHANNELS = RING_KINDS - {"broadcast"}


class Case(NamedTuple):
    """A gang in units, and the room of the machines that are offered to it."""

    job: tp.JobGraph
    units: list[list[int]]
    has_groups: bool
    rooms: Rooms
    view: ClusterView
    rates: str

    @property
    def ports(self) -> Ports:
        return self.view.cluster.topology.derived(Ports)

    @property
    def unit_of(self) -> dict[int, int]:
        return {task: unit for unit, tasks in enumerate(self.units) for task in tasks}

    def owners(self, batch: Batch) -> list[list[int]]:
        """Return the units of the tasks of each collective, sorted."""
        unit_of, rows = self.unit_of, batch.tasks.tolist()
        return [sorted(unit_of[task] for task in row) for row in rows]

    def entry(self, port_class: int, unit: int) -> float:
        entries = self.ports.fastest_entries[: port_class + 1]
        return max(min(unit * of_gpu, of_machine) for of_gpu, of_machine in entries)

    def fastest(self, depth: int, unit: int = 1) -> float:
        return max(self.entry(port_class, unit) for port_class in self.rooms.own_class[:depth])


def pairs_of(batch: Batch) -> list[tuple[int, int]]:
    """Return the positions of both ends of each pair of a collective that communicates."""
    n = batch.tasks.shape[1]
    if batch.kind == "all_to_all":
        return list(combinations(range(n), 2))
    return [*pairwise(range(n)), *([(n - 1, 0)] if batch.kind in IN_CHANNELS else [])]


def exchanges(case: Case, *, rings: bool) -> list[dict[tuple[int, int], float]]:
    """Return the GB of each pair of units in each phase."""
    found: list[dict[tuple[int, int], float]] = []
    for batches in case.job.traffic.values():
        sums: dict[tuple[int, int], float] = defaultdict(float)
        for batch in batches:
            if batch.kind in RING_KINDS and not rings:
                continue
            for row, gigabytes in zip(batch.tasks.tolist(), batch.carried.tolist(), strict=True):
                for here, there in pairs_of(batch):
                    pair = case.unit_of[row[here]], case.unit_of[row[there]]
                    if pair[0] != pair[1]:
                        sums[min(pair), max(pair)] += gigabytes
        found.append(dict(sorted(sums.items())))
    return found


def largest_flows(case: Case) -> list[float]:
    """Return the GB of the largest flow in one direction between units in each phase."""
    return [
        max(
            (
                gigabytes if batch.kind in RING_KINDS else gigabytes / 2
                for batch in batches
                for owners, gigabytes in zip(case.owners(batch), batch.carried.tolist(), strict=True)
                if owners[0] != owners[-1]
            ),
            default=0.0,
        )
        for batches in case.job.traffic.values()
    ]


# ---- rings -----------------------------------------------------------------------------------------------------


def _rings_of_machines(case: Case, size: int) -> float:
    """Return GB/s of the fastest rings of so many GPUs of a machine; infinity where unknown."""
    most = 0.0
    for machine in (one.alone for one in case.view.classes.classes):
        n = machine.num_gpus
        if size > n:
            continue
        if math.comb(n, size) > 13_000:
            return math.inf

        def rates(of: int, alone: tp.Topology = machine) -> list[float]:
            masks = [sum(1 << gpu for gpu in gpus) for gpus in combinations(range(alone.num_gpus), of)]
            return rated_sets(alone, case.rates).gb_per_s(np.array(masks, np.uint64)).tolist()

        if not all(rates(2)):
            return math.inf
        most = max(most, *rates(size))
    return most


def inside(case: Case, batch: Batch, size: int | None) -> float:
    """Return GB/s of `size` tasks in one domain, or any number of them, at most."""
    network = collective_network(case.view.cluster.topology, case.rates)
    found = float(network.switched.rings.max())
    if not network.switched.rings.all():
        found = max(found, _rings_of_machines(case, size) if size else math.inf)
    if batch.kind != "all_reduce" or not network.reduces:
        return found
    limits = float(network.switched.reducing.max()), float(network.switched.most_reduced.max())
    most = size or max(2, *case.rooms.native.ring_tasks.tolist())
    return max(found, kernels.reduced_bandwidth(most, *limits))


def channels(case: Case, batch: Batch) -> float:
    is_relayed = batch.kind == "broadcast" and case.ports.has_relays
    way_out = case.ports.fastest_entries[0][0] if is_relayed else 0.0
    return case.rooms.native.channels(batch.tasks.shape[1], way_out)


def of_rings(case: Case, batches: Sequence[Batch]) -> float:
    """Return the least seconds of the rings of a phase, each inside one domain or over several."""
    least = [0.0]
    for batch in (one for one in batches if one.kind in RING_KINDS):
        size, fit = batch.tasks.shape[1], case.rooms.native.fit_rings(batch.tasks.shape[1])
        over_several = channels(case, batch)
        apart = 1 / over_several if over_several else math.inf
        if size > len(case.rooms.native.ring_tasks) and (any_number := inside(case, batch, None)):
            apart = max(apart, 1 / any_number)
        together = inside(case, batch, size) if fit else 0.0
        largest, smallest = float(batch.carried.max()), float(batch.carried.min())
        least.append(largest * min(apart, 1 / together if together else math.inf))
        if fit < _apart(batch):
            least.append((smallest if fit else largest) * apart)
    return max(least)


def _apart(batch: Batch) -> int:
    """Return the number of collectives, or 1 if some have tasks in common."""
    return len(batch.tasks) if len(set(batch.tasks.ravel().tolist())) == batch.tasks.size else 1


def by_all_ports(case: Case, batches: Sequence[Batch]) -> float:
    """Return the least seconds where tasks on different machines have direct links, or no path."""
    least = [0.0]
    for batch in batches:
        is_ring, fastest = batch.kind in RING_KINDS, [case.ports.most_of_a_gpu]
        if is_ring:
            fastest += [inside(case, batch, size) for size in range(2, batch.tasks.shape[1] + 1)]
        if max(fastest):
            least.append(float(batch.carried.max()) / (1 if is_ring else 2) / max(fastest))
    return max(least)


# ---- whole units -----------------------------------------------------------------------------------------------


def of_whole_units(case: Case) -> list[float]:
    """Return the least seconds of each phase if no unit is divided."""
    ends = np.cumsum([len(one) for one in exchanges(case, rings=False)]).tolist()
    rows = [(*pair, gb) for one in exchanges(case, rings=False) for pair, gb in one.items()]
    columns = np.array(rows).reshape(-1, 3).T
    edges = kernels.Exchanges(
        len(case.units), ends, columns[0].astype(int), columns[1].astype(int), columns[2]
    )
    of_pairs = kernels.tree_bound(_tree(case), edges).phases.tolist()
    phases, exchanged = case.job.traffic.values(), exchanges(case, rings=False)
    return [
        max(of_rings(case, batches), _shared(case, batches), pairs, _apart_in_domains(case, of_units))
        for batches, pairs, of_units in zip(phases, of_pairs, exchanged, strict=True)
    ]


def _apart_in_domains(case: Case, exchanged: Mapping[tuple[int, int], float]) -> float:
    """Return the least seconds of pairs of units of which some have to be in different domains.

    If all that exchange so much or more were together, there would be more sets of some size than fit.
    """
    least, size = 0.0, len(case.units[0])
    for depth in range(1, len(case.rooms.own_class) + 1):
        for gigabytes in set(exchanged.values()):
            together = nx.Graph()
            together.add_nodes_from(range(len(case.units)))
            together.add_edges_from(pair for pair, gb in exchanged.items() if gb >= gigabytes)
            sets = [len(one) for one in nx.connected_components(together)]
            fit = case.rooms.native.fit
            if any(sum(one >= n for one in sets) > fit(n * size)[depth] for n in range(2, max(sets) + 1)):
                least = max(least, gigabytes / 2 / case.fastest(depth, size))
    return least


def _shared(case: Case, batches: Sequence[Batch]) -> float:
    """Return the least seconds of the rings of a unit that cross domains, by the adapters of its domain."""
    most, load = max(case.rooms.native.ring_tasks.tolist()) // len(case.units[0]), Counter[int]()
    for batch in (one for one in batches if one.kind in IN_CHANNELS):
        for owners, gigabytes in zip(case.owners(batch), batch.carried.tolist(), strict=True):
            if len(set(owners)) > most:
                load.update(dict.fromkeys(set(owners), gigabytes))
    return max(load.values(), default=0.0) / case.rooms.native.most_of_adapters


def _tree(case: Case) -> kernels.PortTree:
    """Return the domain of the most room at each depth in that of the depth above, and the rest of its room beside."""
    most = [min(len(case.units), tasks // len(case.units[0])) for tasks in case.rooms.native.most_tasks]
    parent, room, spine = [-1], list[int](), 0
    for depth, within in enumerate(most[1:]):
        left = most[depth] - within
        while left > 0:
            room.append(min(most[-1], left))
            left -= max(1, most[-1])
            parent.append(spine)
            for _ in most[depth + 2 :]:
                parent.append(len(parent) - 1)
        parent.append(spine)
        spine = len(parent) - 1
    room.append(most[-1])
    classes = range(max(case.rooms.own_class) + 1)
    own = [[case.entry(one, len(case.units[0]))] * len(room) for one in classes]
    return kernels.PortTree(parent, room, np.zeros(len(parent)), case.rooms.own_class, np.array(own))


# ---- all placements --------------------------------------------------------------------------------------------


def least_seconds(case: Case) -> tuple[float, float]:
    """Return lower bounds on the seconds of all placements, and of those that divide no unit."""
    phases = list(case.job.traffic.values())
    if not case.rooms.native.has_adapters or case.ports.join_machines:
        least = sum(by_all_ports(case, batches) for batches in phases)
        return _rounded(least), _rounded(least)
    whole = of_crossing_rings(case, of_whole_units(case))
    if len(case.units[0]) == 1 or case.has_groups:
        return _rounded(whole), _rounded(whole)
    of_all = [max(of_rings(case, one), _crossing(case, one), _if_divided(case, one)) for one in phases]
    return _rounded(min(whole, of_crossing_rings(case, of_all))), _rounded(whole)


def _rounded(seconds: float) -> float:
    return seconds * ROUNDING if math.isfinite(seconds) else 0.0


def _crossing(case: Case, batches: Sequence[Batch]) -> float:
    """Return the least seconds of collectives, other than rings, that do not all fit into domains."""
    least = [0.0]
    for batch in (one for one in batches if one.kind not in RING_KINDS):
        fit = case.rooms.native.fit(batch.tasks.shape[1])
        for depth in [depth for depth in range(1, len(fit)) if fit[depth] < _apart(batch)][:1]:
            gigabytes = float(batch.carried.min() if fit[depth] else batch.carried.max())
            least.append(gigabytes / 2 / case.fastest(depth))
    return max(least)


def _if_divided(case: Case, batches: Sequence[Batch]) -> float:
    """Return the least seconds if some unit is divided; 0 unless each unit is a collective of its own."""
    rows = [owners for batch in batches for owners in case.owners(batch)]
    are_units = all(len(row) == len(case.units[0]) and row[0] == row[-1] for row in rows)
    if not are_units or len({row[0] for row in rows}) < len(case.units):
        return 0.0
    return min(_of_one_apart(case, batch) for batch in batches)


def _of_one_apart(case: Case, batch: Batch) -> float:
    least = float(batch.carried.min())
    if batch.kind not in RING_KINDS:
        return least / 2 / case.fastest(len(case.rooms.own_class))
    speed = 0.0 if 1 in case.rooms.own_class else channels(case, batch)
    return least / speed if speed else 0.0


# ---- rings of two phases ---------------------------------------------------------------------------------------


def of_crossing_rings(case: Case, least: Sequence[float]) -> float:
    """Return the least seconds of all phases together; least: those of each alone.

    A machine with k tasks is passed by p rings of one phase and q of another, with p q c at least k if two rings have
    at most c tasks in common.
    """
    found = sum(least)
    if (case.ports.adapters < 0).any() or any(case.rooms.own_class):
        return found
    rooms = sorted(case.rooms.native.ring_tasks.tolist(), reverse=True)
    enough = [count for count in range(1, len(rooms) + 1) if sum(rooms[:count]) >= case.job.num_tasks]
    rings = [_rings_of_all(case, batches) for batches in case.job.traffic.values()]
    for one, other in combinations([phase for phase, row in enumerate(rings) if row is not None], 2):
        both = _of_two(
            case, (rings[one], rings[other]), (least[one], least[other]), rooms[: min(enough, default=0)]
        )
        found = max(found, sum(least) - least[one] - least[other] + both)
    return found


class _Rings(NamedTuple):
    """Rings of equal size that have each task of a job once."""

    tasks: list[set[int]]
    gigabytes: float

    def of_passing(self, case: Case, tasks: int, count: int) -> float:
        """Return the least seconds of `count` rings that share `tasks` tasks on a machine."""
        size = len(self.tasks[0])
        passing = min(
            (count - whole for whole in range(count + 1) if whole * size + count - whole <= tasks), default=0
        )
        if not passing:
            return 0.0
        own = self.gigabytes / case.entry(0, tasks // count)
        return max(own, passing * self.gigabytes / case.entry(0, tasks))


def _rings_of_all(case: Case, batches: Sequence[Batch]) -> _Rings | None:
    own = [one for one in batches if one.kind in IN_CHANNELS]
    rings = [set(row) for one in own for row in one.tasks.tolist()]
    is_each_once = sum(map(len, rings)) == case.job.num_tasks == len(set[int]().union(*rings))
    if len({len(one) for one in rings}) != 1 or not is_each_once:
        return None
    return _Rings(rings, min(float(one.carried.min()) for one in own))


def _of_two(case: Case, rings: Sequence[_Rings], least: Sequence[float], rooms: Sequence[int]) -> float:
    """Return the least seconds of two phases; rooms: those of the largest machines that have room for all tasks."""
    one, other = rings
    in_common = max(len(a & b) for a in one.tasks for b in other.tasks)
    return min(
        (
            max(least[0], one.of_passing(case, tasks, p)) + max(least[1], other.of_passing(case, tasks, q))
            for tasks in range(1, (rooms[-1] if rooms else 0) + 1)
            for p in range(1, tasks + 1)
            for q in range(1, tasks + 1)
            if p * q * in_common >= tasks
            and p * len(one.tasks[0]) >= tasks
            and q * len(other.tasks[0]) >= tasks
        ),
        default=0.0,
    )


# ---- what one machine has --------------------------------------------------------------------------------------


class Limits:
    """The definitions of `MachineLimits`."""

    def __init__(self, case: Case) -> None:
        self._case, ports = case, case.ports
        self._has_channels = not (
            (ports.adapters < 0).any() or ports.join_machines or any(case.rooms.own_class)
        )
        self._phases = list(case.job.traffic.values())
        self._least = of_whole_units(case) if self._has_channels else [0.0] * len(self._phases)
        self._chains = next(self._all_chains(), None)
        batches = [one for batches in self._phases for one in batches]
        are_all = all(one.kind in IN_CHANNELS and one.tasks.shape[1] == len(case.units) for one in batches)
        self.are_rings = self._has_channels and are_all and len(case.units[0]) == 1

    def _all_chains(self) -> Iterator[set[tuple[int, ...]]]:
        """Yield the units of each collective of a batch, other than of rings, if each unit is in one."""
        for batch in (one for batches in self._phases for one in batches if one.kind not in RING_KINDS):
            rows = set(map(tuple, self._case.owners(batch)))
            if sorted(unit for row in rows for unit in row) == list(range(len(self._case.units))):
                yield rows

    def of_count(self, count: int) -> float:
        if not count or not self._has_channels:
            return 0.0
        options = [False]
        if self._chains and count % len(next(iter(self._chains))) == 0:
            options.append(True)
        return min(self._with_few(count, is_whole=is_whole) for is_whole in options) * ROUNDING

    def _with_few(self, count: int, *, is_whole: bool) -> float:
        few = [[self._few(batch, count, is_whole=is_whole) for batch in batches] for batches in self._phases]
        return sum(max(least, *own) for least, own in zip(self._least, few, strict=True))

    def _few(self, batch: Batch, count: int, *, is_whole: bool) -> float:
        case, least, rows = self._case, float(batch.carried.min()), self._case.owners(batch)
        if batch.kind not in RING_KINDS:
            is_apart = not is_whole and self._chains == set(map(tuple, rows))
            return least / 2 / case.fastest(1) if is_apart else 0.0
        passed = Counter(unit for row in rows for unit in set(row))
        if batch.kind == "broadcast" or len(passed) < len(case.units):
            return 0.0
        of_ring = count
        if is_whole and self._chains is not None:
            chain_of = {unit: i for i, chain in enumerate(self._chains) for unit in chain}
            if all(len({chain_of[unit] for unit in row}) == len(set(row)) for row in rows):
                of_ring = count // len(next(iter(self._chains)))
        most = of_ring * max(max(Counter(row).values()) for row in rows)
        if batch.tasks.shape[1] <= most:
            return 0.0
        all_rings = min(passed.values()) * least
        return max(least / case.fastest(1, most), all_rings / case.fastest(1, count * len(case.units[0])))

    def of_sets(self, machine: int) -> list[float]:
        case, own = self._case, self._case.view.classes.of(machine)
        if not self.are_rings or own.num_gpus > 8 or ranked_sets.is_alike(own):
            return []
        gpus = case.view.classes.gpus_of[machine]
        return [self._of_set(own.alone, mask, gpus) for mask in range(1 << own.num_gpus)]

    def _of_set(self, alone: tp.Topology, mask: int, gpus: Sequence[int]) -> float:
        inside = [gpu for place, gpu in enumerate(gpus) if mask >> place & 1]
        ports, speeds = self._case.ports, [math.inf]
        if len(inside) < self._case.job.num_tasks:
            fastest = max((float(ports.ways_out[gpu]) for gpu in inside), default=0.0)
            speeds.append(len({int(ports.adapters[gpu]) for gpu in inside}) * fastest)
        if len(inside) > 1:
            rings = rated_sets(alone, self._case.rates).gb_per_s(np.array([mask], np.uint64))
            speeds += rings[rings > 0].tolist()
        carried = [max(float(one.carried.max()) for one in batches) for batches in self._phases]
        needed = [one / min(speeds) if min(speeds) else 0.0 for one in carried]
        return sum(max(pair) for pair in zip(self._least, needed, strict=True)) * ROUNDING


# ---- jobs that fit one machine ---------------------------------------------------------------------------------


def of_one(case: Case, seconds_of_classes: Sequence[float]) -> float:
    """Return the least seconds of a job on one machine or several; seconds_of_classes: on one machine of each class."""
    least = list(seconds_of_classes)
    if case.view.classes.num_machines > 1:
        least.append(_over_machines(case))
    return min(least) * ROUNDING


def _over_machines(case: Case) -> float:
    batches = [one for batches in case.job.traffic.values() for one in batches]
    reached, rows = {0}, [set(row) for one in batches for row in one.tasks.tolist()]
    for _ in range(case.job.num_tasks):
        reached |= {task for row in rows if row & reached for task in row}
    if len(reached) < case.job.num_tasks or case.ports.join_machines:
        return 0.0
    least: list[float] = []
    for batch in batches:
        is_ring, most = batch.kind in RING_KINDS, batch.tasks.shape[1] // 2
        speeds = [min(most * one, all_of) if is_ring else one for one, all_of in case.ports.fastest_entries]
        least.append(float(batch.carried.min()) / (1 if is_ring else 2) / max(speeds))
    return min(least)


def if_split(case: Case) -> float:
    """Return the least seconds over all divisions of a job into two, by all ways out of the smaller part."""
    n, topology = case.job.num_tasks, case.view.cluster.topology
    is_alone = topology.num_machines == 1 or not case.job.edges or not case.ports.has_adapters
    if is_alone or n > 10 or ranked_sets.are_alike(topology):
        return math.inf
    fastest = max(one for one, _ in case.ports.fastest_entries)
    if case.ports.join_machines:
        fastest = case.ports.most_of_a_gpu
    least = math.inf
    for part in (set(part) for size in range(1, n) for part in combinations(range(n), size)):
        ports = min(len(part), n - len(part)) * fastest
        least = min(least, sum(_across(one, part) for one in case.job.traffic.values()) / ports)
    return least * ROUNDING


def _across(batches: Sequence[Batch], part: set[int]) -> float:
    of_rings, of_others = 0.0, 0.0
    for batch in batches:
        for row, gigabytes in zip(batch.tasks.tolist(), batch.carried.tolist(), strict=True):
            inside = [task in part for task in row]
            if batch.kind not in RING_KINDS:
                of_others += sum(inside[a] != inside[b] for a, b in pairs_of(batch)) * gigabytes / 2
            elif any(inside) and not all(inside):
                of_rings = max(of_rings, gigabytes)
    return max(of_rings, of_others)
