"""Placement of one job as in SC'17's published code: choose a machine by repeated halving, then GPUs the same way.

Machines have two sockets with GPUs 0 and 1, and 2 and 3. Unlike the paper, the code has no Fiduccia-Mattheyses
partitioning. It deals the machines into two parts with about equally many free GPUs and keeps the part with the machine
of highest utility. This repeats until one machine is left. It splits that machine's GPUs into two halves and compares
all sets of free GPUs by utility. It then continues inside each half that has chosen GPUs.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Final

from topoplace.jobs.performance_profile import PerformanceProfile
from topoplace.objectives import authors_utility as utility
from topoplace_lab.papers.sc17.published_simulator.python2 import copied

GPUS: Final = range(4)
SOCKETS: Final = range(2)
SOCKET_OF: Final = (0, 0, 1, 1)
GPUS_PER_SOCKET: Final = 2
DISTANCE: Final = tuple(
    tuple(0.0 if u == v else 1.0 if SOCKET_OF[u] == SOCKET_OF[v] else 20.0 for v in GPUS) for u in GPUS
)
MAX_TASKS: Final = 3
"""Largest job: the published code has communication costs for 1 to 3 GPUs only."""

Gpus = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class SimulatedNeighbour:
    """The properties of a running job on which its interference with others depends: application, GPUs and sockets."""

    name: str
    num_gpus: int
    sockets: frozenset[int]


@dataclass(frozen=True, slots=True)
class SimulatedPart:
    """A machine's GPUs, or some of them, with the jobs running on the machine.

    lists: for each of the two sockets, its GPUs in the order in which they are tried.
    """

    lists: tuple[Gpus, Gpus]
    taken: frozenset[int]
    """GPUs in the lists that are no longer free, because another job of the same step got them."""
    neighbours: tuple[SimulatedNeighbour, ...]
    near: frozenset[int] = frozenset(GPUS)
    """GPUs whose distances to other GPUs count towards the communication cost in this part."""

    @property
    def free(self) -> Gpus:
        """Return the free GPUs, in the order in which they are tried."""
        return tuple(gpu for gpus in self.lists for gpu in gpus if gpu not in self.taken)


def sockets_of(gpus: Iterable[int]) -> frozenset[int]:
    """Return the sockets (0 or 1) that `gpus` belong to."""
    return frozenset(SOCKET_OF[gpu] for gpu in gpus)


class SimulatedPlacer:
    """Chooses a machine and GPUs for one job at a time; results are cached per class of machines in equal state.

    profile: measured run times. python2: iterate over dictionaries in the order of CPython 2.7.
    """

    def __init__(self, profile: PerformanceProfile, *, python2: bool = True) -> None:
        self.profile = profile
        self._copied = copied if python2 else list[int]
        self.parts: list[SimulatedPart] = []
        """One example machine of each class."""
        self._class_of: dict[SimulatedPart, int] = {}
        self._scores: defaultdict[tuple[str, int], dict[int, float]] = defaultdict(dict)
        self._mappings: dict[tuple[str, int, int, bool], Gpus] = {}

    def class_of(self, machine: SimulatedPart) -> int:
        """Return the class number of a machine; machines in equal state have the same number."""
        number = self._class_of.setdefault(machine, len(self.parts))
        if number == len(self.parts):
            self.parts.append(machine)
        return number

    # ---- a cluster -----------------------------------------------------------------------------------------

    def place(
        self, name: str, num_gpus: int, classes: Sequence[int], free: Sequence[int]
    ) -> tuple[int, Gpus]:
        """Return the machine for a job and its GPUs there.

        name: the job's application. classes, free: class and number of free GPUs of each machine; at least one must
        have enough. The result may have fewer than `num_gpus` GPUs, as in the published code.
        """
        scores = self._scores[name, num_gpus]
        for unknown in {
            c for c, count in zip(classes, free, strict=True) if count >= num_gpus
        } - scores.keys():
            part = self.parts[unknown]
            scores[unknown] = self._compared(name, num_gpus, part.free, (part,), beyond=False)[0]
        order = list(range(len(free)))
        among_many = sum(map(bool, free)) > 1
        while len(candidates := [m for m in order if free[m]]) > 1:
            halves = _dealt(candidates, free)
            first, second = (
                max((scores[classes[m]] for m in half if free[m] >= num_gpus), default=-1.0)
                for half in halves
            )
            lost = frozenset(halves[1] if first > second else halves[0])
            order = [m for m in self._copied(order) if m not in lost]
        machine = candidates[0]
        key = name, num_gpus, classes[machine], among_many
        if key not in self._mappings:
            part = self.parts[classes[machine]]
            self._mappings[key] = self._mapped(name, num_gpus, part, among_many, beyond=False)
        return machine, self._mappings[key]

    # ---- one machine ---------------------------------------------------------------------------------------

    def _mapped(
        self, name: str, num_gpus: int, part: SimulatedPart, among_many: bool, *, beyond: bool
    ) -> Gpus:
        """Return the job's GPUs in a part of a machine, found by splitting the part into halves again and again.

        among_many: other machines have free GPUs. beyond: the part is one half of a machine or socket, and the other
        half has free GPUs too. If both are true, distances to the part's GPUs that stay free count as well.
        """
        free = part.free
        if not num_gpus or not free:
            return ()
        if len(free) == 1:
            return (next(gpus[-1] for gpus in part.lists if any(gpu not in part.taken for gpu in gpus)),)
        halves = _halved(part)
        shares = [num_gpus if half.free else 0 for half in halves]
        shared = all(shares)
        if shared:
            both = halves[0].free + halves[1].free
            _, chosen = self._compared(name, num_gpus, both, halves, beyond=beyond and among_many)
            shares[0] = sum(gpu in halves[0].free for gpu in chosen)
            shares[1] = len(chosen) - shares[0]
        return tuple(
            gpu
            for half, share in zip(halves, shares, strict=True)
            for gpu in self._mapped(name, share, half, among_many, beyond=shared)
        )

    def _compared(
        self, name: str, num_gpus: int, free: Gpus, parts: Sequence[SimulatedPart], *, beyond: bool
    ) -> tuple[float, Gpus]:
        """Return the highest utility to the cluster of any `num_gpus` of the `free` GPUs, and the last set that has it.

        parts: the halves that `free` belongs to, or the machine. beyond: as for `_system_utility`.
        """
        candidates = combinations(free, num_gpus)
        scored = ((self._system_utility(name, gpus, free, parts, beyond), gpus) for gpus in candidates)
        best: tuple[float, Gpus] = (-1.0, ())
        for score, gpus in scored:
            if score >= best[0]:
                best = (score, gpus)
        return best

    def _system_utility(
        self, name: str, gpus: Gpus, free: Gpus, parts: Sequence[SimulatedPart], beyond: bool
    ) -> float:
        """Return the utility to the cluster (0 to 1, larger is better) of giving `gpus` to a job.

        Communication costs are added up over the `parts` that contain some of the GPUs; other costs are averaged.
        beyond: also count distances to the other `free` GPUs.
        """
        inside = [part for part in parts if any(gpu in part.free for gpu in gpus)]
        communication = sum(communication_of(gpus, part.near, free if beyond else ()) for part in inside)
        interference = sum(self.interference(name, gpus, part.neighbours) for part in inside) / len(inside)
        fragmentation = sum(_fragmentation(part, gpus) for part in inside) / len(inside)
        neighbours = parts[0].neighbours
        return utility.system_utility(
            communication_scaled(len(gpus), communication),
            interference,
            max(fragmentation, utility.MIN_COST),
            self.on_others(name, gpus, neighbours) if neighbours else None,
        )

    def job_utility(self, name: str, gpus: Gpus, neighbours: Sequence[SimulatedNeighbour]) -> float:
        """Return the utility to the job (0 to 1, larger is better) of some GPUs of a machine next to `neighbours`."""
        communication = communication_scaled(len(gpus), communication_of(gpus, frozenset(GPUS), ()))
        return utility.job_utility(communication, self.interference(name, gpus, neighbours))

    # ---- interference --------------------------------------------------------------------------------------

    def interference(self, name: str, gpus: Gpus, neighbours: Sequence[SimulatedNeighbour]) -> float:
        """Return the interference that a job on `gpus` would suffer from its neighbours, as a cost.

        Each neighbour on the job's sockets gives a ratio: the job's time alone over its time next to that neighbour.
        The ratios below 1 are added up and divided by the number of all neighbours on the machine. Without such a
        ratio, the result is the small constant MIN_COST.
        """
        sockets = sockets_of(gpus)
        alone = self.profile.solo.get((name, len(gpus), placement_of(sockets)), 0.0)
        ratios = [
            alone / shared
            for job in neighbours
            if job.sockets & sockets
            and (shared := self.profile.colocation.get((name, len(gpus), job.name, job.num_gpus))) is not None
            and alone / shared < 1
        ]
        return sum(ratios) / len(neighbours) or utility.MIN_COST if ratios else utility.MIN_COST

    def on_others(self, name: str, gpus: Gpus, neighbours: Sequence[SimulatedNeighbour]) -> float:
        """Return the mean interference, as a cost, that a job on `gpus` would cause to the neighbours on its sockets.

        A neighbour's interference is its time alone over its time next to the job; ratios of 1 or more are left out.
        The two jobs' numbers of GPUs are mixed up, a mistake of the published code that is repeated here.
        """
        sockets = sockets_of(gpus)
        ratios: list[float] = []
        for job in neighbours:
            shared = self.profile.colocation.get((job.name, len(gpus), name, job.num_gpus))
            if shared is None or not job.sockets & sockets:
                continue
            alone = self.profile.solo.get((job.name, len(gpus), placement_of(sockets)), 0.0)
            if alone / shared < 1:
                ratios.append(alone / shared)
        return sum(ratios) / len(ratios) or utility.MIN_COST if ratios else utility.MIN_COST


def placement_of(sockets: frozenset[int]) -> str:
    """Return "intra-socket" if all GPUs are on one socket, else "inter-socket"."""
    return "intra-socket" if len(sockets) == 1 else "inter-socket"


def communication_of(gpus: Gpus, near: frozenset[int], free: Gpus) -> float:
    """Return the communication cost of `gpus`: the sum of their pairwise distances, minus the smallest possible sum.

    near: only pairs with one of these GPUs count. free: if not empty, all pairwise distances are added once more, and
    also the distances to the other free GPUs.
    """
    cost = 0.0
    for a, b in combinations(gpus, 2):
        cost += DISTANCE[b][a] if free else 0.0
        cost += DISTANCE[a][b] if a in near or b in near else 0.0
    others = [gpu for gpu in free if len(gpus) == 1 or gpu not in gpus]
    cost += sum(DISTANCE[other][gpu] for gpu in gpus for other in others)
    least = utility.LEAST_DISTANCE.get(len(gpus), utility.MIN_COST)
    return (cost - least if cost > 0 else cost) or utility.MIN_COST


def communication_scaled(num_gpus: int, cost: float) -> float:
    """Return the communication cost `cost` of `num_gpus` GPUs divided by the worst possible one, at least MIN_COST."""
    return (
        max(cost / utility.WORST_DISTANCE[num_gpus], utility.MIN_COST) if num_gpus > 1 else utility.MIN_COST
    )


def _fragmentation(part: SimulatedPart, gpus: Gpus) -> float:
    """Return the fragmentation cost of giving `gpus` to a job: the mean fraction of free GPUs left per socket.

    The published code has a mistake that is repeated here. It counts free GPUs that are *not* among `gpus` as used by
    the job, up to the number of `gpus`, starting with the first socket.
    """
    left = len(gpus)
    total = 0.0
    for members in part.lists:
        free = [gpu for gpu in members if gpu not in part.taken]
        used = min(left, sum(gpu not in gpus for gpu in free))
        left -= used
        total += (len(free) - used) / GPUS_PER_SOCKET
    mean = total / len(SOCKETS)
    return utility.MIN_COST if mean in (0.0, 1.0) else mean


def _dealt(candidates: Sequence[int], free: Sequence[int]) -> tuple[list[int], list[int]]:
    """Split machines into two lists: each in turn goes to the list with fewer free GPUs so far.

    candidates: machine numbers. free: number of free GPUs of every machine.
    """
    halves: tuple[list[int], list[int]] = ([], [])
    counts = [0, 0]
    for machine in candidates:
        side = int(counts[0] > counts[1])
        halves[side].append(machine)
        counts[side] += free[machine]
    return halves


def _halved(part: SimulatedPart) -> tuple[SimulatedPart, SimulatedPart]:
    """Split the free GPUs of a machine, or of a part of it, into two halves; the first gets one more if odd."""
    count = len(part.free)
    first = _cut(part, count - count // 2, frozenset())
    gone = frozenset(gpu for gpus in part.lists for gpu in gpus) - frozenset(
        gpu for gpus in first.lists for gpu in gpus
    )
    return first, _cut(part, count // 2, gone)


def _cut(part: SimulatedPart, half: int, keep: frozenset[int]) -> SimulatedPart:
    """Return a part with GPUs removed until `half` are left, first from the socket with fewer GPUs.

    GPUs in `keep` are never removed. Before that, each socket's first GPU is removed if it is taken, else moved to the
    end of the socket's list.
    """
    lists = [list(gpus) for gpus in part.lists]
    order = sorted(SOCKETS, key=lambda socket: len(lists[socket]))
    for gpus in filter(None, lists):
        gpu = gpus.pop(0)
        if gpu not in part.taken:
            gpus.append(gpu)
    total = sum(map(len, lists))
    for socket in order:
        total -= _drop(lists[socket], total - half, keep)
    near = part.near & frozenset(gpu for gpus in lists for gpu in gpus)
    return replace(part, lists=(tuple(lists[0]), tuple(lists[1])), near=near)


def _drop(gpus: list[int], excess: int, keep: frozenset[int]) -> int:
    """Remove up to `excess` GPUs from the front of a list, skipping those in `keep`; return the number removed."""
    dropped = 0
    for _ in range(len(gpus)):
        if dropped >= excess:
            break
        gpu = gpus.pop(0)
        if gpu in keep:
            gpus.append(gpu)
        else:
            dropped += 1
    return dropped
