"""The GPUs of a machine that NVIDIA's device plugin prefers: a set of the best division of all free GPUs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import combinations
from typing import TYPE_CHECKING, Final, NamedTuple

from topoplace.engine.machines.machine_class import Mask, mask_of, members
from topoplace.policies.sc17.first_come import FirstComeFirstServed, connected
from topoplace.topology.links.link_kinds import LinkKind

if TYPE_CHECKING:
    from topoplace.engine.machines.machine_class import MachineClass
    from topoplace.engine.request import JobRequest
    from topoplace.topology.topology import Topology

Gpus = tuple[int, ...]
_NVLINK: Final = 100
_PCIE: Final = {LinkKind.PCIE: 50, LinkKind.HOST: 20, LinkKind.SYSTEM: 10}
_MOST_SETS: Final = 20_000
"""Limit on the sets of GPUs that are examined; the original has none."""


class NvidiaAllocator(FirstComeFirstServed):
    """Takes the GPUs that NVIDIA's go-gpuallocator prefers (best effort), on the first machine with room.

    All free GPUs are divided into sets of the job's size; one set may be smaller. From the division with the greatest
    sum of scores, the policy takes the set with the greatest score; ties go to the first. Two GPUs score 100 for each
    NVLink between them, and 10 to 50 for the nearest PCIe level that they share. Links to an NVSwitch score 0. On
    machines with more than eight GPUs, the original may take minutes. There, the best division among the first 20,000
    sets is taken.

    The source is github.com/NVIDIA/go-gpuallocator, `gpuallocator/besteffort_policy.go`, which chooses no machine.
    """

    name = "nvidia-allocator"

    def mappings(
        self, request: JobRequest, machine_class: MachineClass, free: Mask
    ) -> Iterable[tuple[int, ...]]:
        """Return one candidate; none if the machine has too few free GPUs."""
        scores = machine_class.alone.derived(Scores)
        return [
            connected(request, machine_class, region, scores.preferred(region, request.size))
            for region in request.regions(machine_class, free)
        ]


class Scores:
    """The scores of the pairs of a machine's GPUs, and the sets that they prefer."""

    def __init__(self, topology: Topology) -> None:
        pairs = combinations(range(topology.num_gpus), 2)
        self._of_pair = {pair: _score(topology, *pair) for pair in pairs}

    def preferred(self, free: Mask, size: int, required: Mask = 0) -> Gpus:
        """Return the preferred set of `size` free GPUs, of which some may be required, ascending."""
        division = _Divisions(self.of_set, size, required).best(tuple(members(free)))
        sets = [some for some in division.sets if len(some) == size and not required & ~mask_of(some)]
        return max(sets, key=self.of_set)

    def of_set(self, gpus: Gpus) -> int:
        """Return the sum over all pairs of a set, given ascending."""
        return sum(map(self._of_pair.__getitem__, combinations(gpus, 2)))


class _Division(NamedTuple):
    score: int
    sets: tuple[Gpus, ...]


class _Divisions:
    """The ways to divide GPUs into sets of one size, of which one set may be smaller."""

    def __init__(self, score: Callable[[Gpus], int], size: int, required: Mask) -> None:
        self._score, self._size, self._required = score, size, required
        self._left = _MOST_SETS
        self._known: dict[Gpus, _Division] = {(): _Division(0, ())}

    def best(self, gpus: Gpus) -> _Division:
        """Return the first of the divisions with the greatest score in which one set has all required GPUs."""
        if gpus not in self._known:
            self._known[gpus] = self._searched(gpus)
        return self._known[gpus]

    def _searched(self, gpus: Gpus) -> _Division:
        best = _Division(-1, ())
        for some in self._first_sets(gpus):
            self._left -= 1
            taken = set(some)
            rest = self.best(tuple([gpu for gpu in gpus if gpu not in taken]))
            if rest.score >= 0 and self._score(some) + rest.score > best.score:
                best = _Division(self._score(some) + rest.score, (some, *rest.sets))
            if self._left < 0 and best.score >= 0:
                break
        return best

    def _first_sets(self, gpus: Gpus) -> Iterator[Gpus]:
        """Yield the sets that the first GPU may be in; a full one has all required GPUs or none, a small one none."""
        first, *others = gpus
        rest = len(gpus) % self._size
        for length in (self._size, rest) if rest else (self._size,):
            for more in combinations(others, length - 1):
                some = (first, *more)
                inside = mask_of(some) & self._required
                if not inside or (inside == self._required and length == self._size):
                    yield some


def _score(topology: Topology, one: int, other: int) -> int:
    link = topology.link(one, other)
    is_near = topology.gpus[one].socket == topology.gpus[other].socket
    pcie = _PCIE.get(link.kind, _PCIE[LinkKind.HOST if is_near else LinkKind.SYSTEM])
    return pcie + (_NVLINK * link.lanes if link.kind.name.startswith("NVLINK") else 0)
