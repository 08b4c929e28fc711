"""The domains of a cluster as a tree, an input of `kernels.pack_groups`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np

from topoplace.engine.level_chain import LevelChains, PlacedLevel
from topoplace.engine.machines.machine_class import Mask
from topoplace.jobs.groups import MACHINE, SOCKET

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from topoplace.engine.gangs.offers import MachineOffer, Offers
    from topoplace.engine.machine_state import ClusterView
    from topoplace.engine.request import JobRequest

    Ints = NDArray[np.int64]

_ANY_ROOM = (1 << 31) - 1


class DomainTree:
    """The tree of the domains of the offered machines, an input of `kernels.pack_groups`; its leaves offer the GPUs."""

    def __init__(self, request: JobRequest, offers: Offers, view: ClusterView) -> None:
        levels = view.cluster.topology.derived(LevelChains).for_job(request.job)
        assert levels is not None  # `engine.requirements` has refused levels that no tree can honour
        self.apart = levels.apart
        self.levels = levels.chain[::-1]
        """The levels from the top down, but for sockets, with the domain of every machine of the cluster."""
        machines = offers.machines
        order = np.lexsort([level.codes[machines] for level in levels.chain])
        self.machines = machines[order]
        """The machines in the order of their domains, top down: those of the leaves, unless these are sockets."""
        self.depth_of: dict[str, int] = {}
        self._domains: dict[str, Ints] = {}
        """For each level, the number of the domain of each machine of the tree."""
        self._parents: list[Ints] = [np.array([-1])]
        self._rooms: list[Ints] = [np.array([_ANY_ROOM])]
        self._size = 1
        self._sockets: dict[int, tuple[int, Mask]] = {}
        self._above = np.zeros(len(machines), dtype=np.int64)
        for level in reversed(levels.chain):
            self._add(level, machines[order])
        sizes = np.minimum(offers.sizes, 1) if request.anti_affine else offers.sizes
        self._rooms[-1] = sizes[order]
        self._machine_of = np.arange(len(order))
        if request.needs_sockets:
            self._add_sockets(list(offers.at(order)), view)
        else:
            self._offers, self._at = offers, order
        self.parent = np.concatenate(self._parents)
        self.room = np.concatenate(self._rooms)
        self.first_leaf = self._size - len(self._machine_of)

    def place(self, leaf: int) -> tuple[int, Mask]:
        """Return the machine of a leaf, and the GPUs that the job may use there."""
        if self._sockets:
            return self._sockets[leaf]
        offer = self._offers[int(self._at[leaf - self.first_leaf])]
        return offer.machine, offer.gpus_for(offer.max_tasks)

    def domains_of(self, level: str) -> Ints:
        """Return the number of each leaf's domain of a level; other levels may cut this domain."""
        if level == SOCKET:
            return np.arange(len(self._machine_of))
        return self._domains[level][self._machine_of]

    def part_of(self, level: str) -> Ints:
        """Return each leaf's domain in the tree, at the depth of a level."""
        found = np.arange(self.first_leaf, self._size)
        for _ in range(len(self._parents) - 1 - self.depth_of[level]):
            found = self.parent[found]
        return found

    def left(self, shares: Ints | None = None) -> Ints:
        """Return the room that `shares` leave in each leaf; all room for None."""
        room = self.room[self.first_leaf :].astype(np.int64)
        if shares is not None:
            np.subtract.at(room, shares[:, 1] - self.first_leaf, shares[:, 2])
        return room

    def name(self, level: str, number: int, view: ClusterView) -> str:
        """Return the name of a domain, for messages; number: one that `domains_of` returns."""
        leaf = int(np.flatnonzero(self.domains_of(level) == number)[0])
        machine = self.place(self.first_leaf + leaf)[0]
        topology = view.cluster.topology
        named = topology.machine_names[machine]
        if level == SOCKET:
            return f"a socket of {named!r}"
        if level == MACHINE:
            return f"{named!r}"
        found = next(one for one in topology.levels if one.name == level).domains[machine]
        return f"{found or named!r}"

    def first_of(self, depth: int) -> int:
        """Return the number of the first domain of a depth; the root, of depth 0, has number 0."""
        return sum(len(parents) for parents in self._parents[:depth])

    def _add(self, level: PlacedLevel, machines: Ints) -> None:
        """Add the domains of a level; machines: those of the same domains so far are neighbours."""
        codes = level.codes[machines]
        starts = np.ones(len(codes), dtype=np.bool_)
        starts[1:] = (codes[1:] != codes[:-1]) | (self._above[1:] != self._above[:-1])
        self._parents.append(self._above[starts])
        self._above = self._size + np.cumsum(starts) - 1
        self._size += int(starts.sum())
        self._rooms.append(np.full(int(starts.sum()), _ANY_ROOM))
        self.depth_of[level.name] = len(self._parents) - 1
        domains = level.domains[machines]
        self._domains[level.name] = np.unique(domains, return_inverse=True)[1].reshape(-1)

    def _add_sockets(self, offered: Iterable[MachineOffer], view: ClusterView) -> None:
        parents: list[int] = []
        rooms: list[int] = []
        machine_of: list[int] = []
        for i, (offer, domain) in enumerate(zip(offered, self._above.tolist(), strict=True)):
            for socket in view.classes.of(offer.machine).sockets:
                usable = socket & offer.usable
                self._sockets[self._size + len(parents)] = offer.machine, usable
                parents.append(domain)
                rooms.append(usable.bit_count())
                machine_of.append(i)
        self._machine_of = np.array(machine_of, dtype=np.int64)
        self._parents.append(np.array(parents, dtype=np.int64))
        self._rooms.append(np.array(rooms, dtype=np.int64))
        self._size += len(parents)
        self.depth_of[SOCKET] = len(self._parents) - 1
