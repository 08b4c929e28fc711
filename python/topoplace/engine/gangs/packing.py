"""The tree of the domains of offered machines, into which the groups of a job are packed (`task_packing.hpp`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from topoplace import _core
from topoplace.engine.level_chain import LevelChains, required_of
from topoplace.engine.machines.machine_class import Mask, members
from topoplace.errors import SearchTimeoutError
from topoplace.jobs.groups import MACHINE, SOCKET

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from topoplace.engine.gangs.offers import MachineOffer, Offers
    from topoplace.engine.level_chain import Together
    from topoplace.engine.machine_state import ClusterView
    from topoplace.engine.request import JobRequest
    from topoplace.jobs.job_graph import JobGraph

    Ints = NDArray[np.int64]
    Rows = tuple[NDArray[np.int32], Ints, NDArray[np.int32]]

_NONE = np.empty(0, np.int32)


class Forest(NamedTuple):
    """Groups for `kernels.pack_groups`: nested or disjoint, without groups that others imply."""

    parent: list[int]
    depth: list[int]
    inner: Ints
    """(k,) the innermost group of each task."""


def forest_of(together: Sequence[Together], depth_of: Mapping[str, int], num_tasks: int) -> Forest:
    """Return all tasks of a job in groups of these depths."""
    tasks = np.arange(num_tasks, dtype=np.int32)
    parent, depth, inner = _core.task_forest(rows_of(together, depth_of), tasks, num_tasks)
    return Forest(parent.tolist(), depth.tolist(), inner.astype(np.int64))


def rows_of(together: Sequence[Together], depth_of: Mapping[str, int]) -> Rows:
    """Return groups for the kernels: the number of the level of each, where it ends, and the tasks of all."""
    return (
        np.array([depth_of[one.level] - 1 for one in together], np.int32),
        np.cumsum([len(one.tasks) for one in together], dtype=np.int64),
        np.array([task for one in together for task in one.tasks], np.int32),
    )


class DomainTree:
    """The tree of the domains of the offered machines; its leaves offer the GPUs."""

    def __init__(self, request: JobRequest, offers: Offers, view: ClusterView) -> None:
        levels = view.cluster.topology.derived(LevelChains).for_job(request.job)
        assert levels is not None  # `engine.requirements` has refused levels that no tree can honour
        self.apart = levels.apart
        self.levels = levels.chain[::-1]
        """The levels from the top down, but for sockets, with the domain of every machine of the cluster."""
        self.depth_of = {level.name: depth for depth, level in enumerate(self.levels, 1)}
        self._classes, self._topology = view.classes, view.cluster.topology
        self._usable: list[list[Mask]] = []
        """The GPUs of each socket of each offer."""
        if request.needs_sockets:
            self.depth_of[SOCKET] = len(self.levels) + 1
            self._usable = [
                [socket & offer.usable for socket in view.classes.of(offer.machine).sockets]
                for offer in offers
            ]
        sizes = np.minimum(offers.sizes, 1) if request.anti_affine else offers.sizes
        self.native = _core.DomainTree(
            [(level.codes, level.domains) for level in self.levels],
            offers.machines.astype(np.int32),
            sizes.astype(np.int32),
            np.cumsum([len(one) for one in self._usable], dtype=np.int32) if self._usable else _NONE,
            np.array([mask.bit_count() for one in self._usable for mask in one], np.int32),
        )
        self.first_leaf: int = self.native.first_leaf
        self._offers, self._order = offers, self.native.order
        self._machine_of = self.native.machine_of

    @cached_property
    def machines(self) -> Ints:
        """Return the machines in the order of their domains, top down; those of the leaves, if these are machines."""
        machines: Ints = self._offers.machines[self._order]
        return machines

    @cached_property
    def parent(self) -> Ints:
        """Return (d,) the parent of each domain."""
        return self.native.parent.astype(np.int64)

    @cached_property
    def room(self) -> Ints:
        """Return (d,) the largest number of tasks of each domain; an inner one is also limited by its children."""
        return self.native.room.astype(np.int64)

    @property
    def leaf_machines(self) -> Ints:
        """Return the machine of each leaf."""
        return self.machines[self._machine_of]

    @cached_property
    def _sockets(self) -> list[tuple[int, Mask]]:
        """The machine and the GPUs of each leaf, if leaves are sockets."""
        at: list[int] = self._order.tolist()
        return [(int(self._offers.machines[i]), usable) for i in at for usable in self._usable[i]]

    def place(self, leaf: int) -> tuple[int, Mask]:
        """Return the machine of a leaf, and the GPUs that the job may use there."""
        if self._usable:
            return self._sockets[leaf - self.first_leaf]
        offer = self._offer_of(leaf)
        return offer.machine, offer.gpus_for(offer.max_tasks)

    def usable(self, leaf: int) -> tuple[int, Mask]:
        """Return the machine of a leaf, and all GPUs there that the job may use, even if its room is smaller."""
        if self._usable:
            return self._sockets[leaf - self.first_leaf]
        offer = self._offer_of(leaf)
        return offer.machine, offer.usable

    def _offer_of(self, leaf: int) -> MachineOffer:
        return self._offers[int(self._order[leaf - self.first_leaf])]

    def first_gpus(self) -> NDArray[np.int32]:
        """Return (leaves,) the first GPU of each leaf that the job may use, by its number in the topology."""
        if self._usable:
            places = [(machine, next(members(usable), 0)) for machine, usable in self._sockets]
            machines, numbers = np.array(places, np.int64).T
        else:
            machines, numbers = self.machines, self._offers.first_gpus[self._order]
        return self._classes.numbers_of(machines, numbers).astype(np.int32)

    def required(self, job: JobGraph) -> tuple[Rows, Rows]:
        """Return the required groups for the kernels: those that the tree can hold, and those apart."""
        together = [group for group in required_of(job) if group not in self.apart]
        return rows_of(together, self.depth_of), rows_of(self.apart, self.depth_of)

    def packed(self, together: Sequence[Together], tasks: Sequence[int], num_tasks: int) -> Ints | None:
        """Return (s, 3) group, leaf and number of tasks of a packing of these tasks; None if there is none.

        Raise SearchTimeoutError if the search reaches a limit without an answer.
        """
        apart = [group for group in self.apart if group in together]
        others = [group for group in together if group not in apart]
        is_complete, found = _core.pack_tasks(
            self.native,
            num_tasks,
            np.array(tasks, np.int32),
            rows_of(others, self.depth_of),
            rows_of(apart, self.depth_of),
        )
        if not is_complete:
            raise SearchTimeoutError("no packing found within the limits, although one may exist", None)
        return None if found is None else found[3].astype(np.int64)

    def domains_of(self, level: str) -> Ints:
        """Return the number of each leaf's domain of a level; other levels may cut this domain."""
        return self.native.domains_of(self.depth_of[level] - 1).astype(np.int64)

    def part_of(self, level: str) -> Ints:
        """Return each leaf's domain in the tree, at the depth of a level."""
        return self.native.part_of(self.depth_of[level] - 1).astype(np.int64)

    def left(self, shares: Ints | None = None) -> Ints:
        """Return the room that `shares` leave in each leaf; all room for None."""
        room: Ints = self.room[self.first_leaf :].copy()
        if shares is not None:
            np.subtract.at(room, shares[:, 1] - self.first_leaf, shares[:, 2])
        return room

    def name(self, level: str, number: int) -> str:
        """Return the name of a domain, for messages; number: one that `domains_of` returns."""
        leaf = int(np.flatnonzero(self.domains_of(level) == number)[0])
        machine = self.place(self.first_leaf + leaf)[0]
        named = self._topology.machine_names[machine]
        if level == SOCKET:
            return f"a socket of {named!r}"
        if level == MACHINE:
            return f"{named!r}"
        found = next(one for one in self._topology.levels if one.name == level).domains[machine]
        return f"{found or named!r}"

    def first_of(self, depth: int) -> int:
        """Return the number of the first domain of a depth; the root, of depth 0, has number 0."""
        return self.native.first_of(depth)
