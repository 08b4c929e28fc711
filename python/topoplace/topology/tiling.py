"""Tilings: the machines of a cluster, of which equal ones share a template.

A machine is stored as a name, the number of its template, and a domain per level. GPUs and links are made on demand.
Stored data therefore grows with the number of machines, not with the number of GPUs or pairs of GPUs.
"""

from __future__ import annotations

import operator
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import accumulate
from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast, overload

from topoplace.topology.cluster_links import ClusterLinks
from topoplace.topology.fabric import Fabric, Level
from topoplace.topology.links.link_kinds import Link

if TYPE_CHECKING:
    from topoplace.topology.devices import Gpu
    from topoplace.topology.links.distance import DistanceWeights
    from topoplace.topology.topology import Topology

Item = TypeVar("Item")
Uuids = tuple[str | None, ...]
"""The UUIDs of one machine's GPUs; () if unknown."""
_MAX_SHOWN = 3


@dataclass(frozen=True, eq=False)
class Tiling:
    """Machines joined by a fabric: machine i is called `fabric.machines[i]` and equals `templates[template_of[i]]`.

    In a template, a topology of one machine, the machine is called "machine0" and GPUs have no UUIDs.
    """

    templates: tuple[Topology, ...]
    template_of: tuple[int, ...]
    fabric: Fabric
    uuids: tuple[Uuids, ...]
    """(m,) the UUIDs of each machine's GPUs; () for a machine without known UUIDs."""

    @classmethod
    def of(cls, machines: Sequence[Topology], fabric: Fabric, uuids: Sequence[Uuids] = ()) -> Tiling:
        """Make machine i of `fabric` a copy of `machines[i]`, a topology of one machine; equal ones share a template.

        uuids: (m,) the UUIDs of each machine's GPUs; () keeps those of `machines`.
        """
        number_of_object: dict[int, int] = {}
        number_of_content: dict[Topology, int] = {}
        uuids_of_object: dict[int, Uuids] = {}
        for machine in machines:
            if id(machine) not in number_of_object:
                own = tuple(gpu.uuid for gpu in machine.gpus)
                template = as_machine(machine, "machine0", (None,) * len(own))
                number_of_object[id(machine)] = number_of_content.setdefault(template, len(number_of_content))
                uuids_of_object[id(machine)] = own if any(own) else ()
        template_of = tuple(number_of_object[id(machine)] for machine in machines)
        known = tuple(uuids) or tuple(uuids_of_object[id(machine)] for machine in machines)
        return cls(tuple(number_of_content), template_of, fabric, known if any(known) else ())

    def template(self, machine: int) -> Topology:
        """Return the template of a machine, given by number."""
        return self.templates[self.template_of[machine]]

    def changed(
        self, change: Callable[[Topology], Topology], levels: Sequence[Level] | None = None
    ) -> Tiling:
        """Return the same machines with `change` applied to every template, and with other levels if given."""
        changed = [change(template) for template in self.templates]
        fabric = self.fabric if levels is None else replace(self.fabric, levels=tuple(levels))
        return self.of([changed[template] for template in self.template_of], fabric, self.uuids)

    def with_machines(self, changed: dict[int, Topology]) -> Tiling:
        """Return the same machines with those in `changed`, by number, replaced."""
        machines = [changed.get(machine, self.template(machine)) for machine in range(len(self.template_of))]
        return self.of(machines, self.fabric, self.uuids)

    def part(self, machines: Sequence[int]) -> Tiling:
        """Return the given machines, in this order, with the levels that join them."""
        chosen = [self.template(machine) for machine in machines]
        uuids = [self.uuids[machine] for machine in machines] if self.uuids else ()
        return self.of(chosen, self.fabric.part(machines), uuids)

    def machine(self, number: int) -> Topology:
        """Return a machine under its name, with its GPUs' UUIDs."""
        uuids = self.uuids[number] if self.uuids else ()
        template = self.template(number)
        return as_machine(template, self.fabric.machines[number], uuids or (None,) * template.num_gpus)

    def links_of_pairs(self, network: float, distances: DistanceWeights) -> ClusterLinks:
        """Return the links of all pairs of GPUs; `network` is GB/s between machines that meet at no level."""
        return ClusterLinks(self, network, distances)

    def is_made(self, items: object) -> bool:
        """Return True if `items`, such as GPUs, are made from those of templates."""
        return isinstance(items, TiledSequence)

    @cached_property
    def offsets(self) -> tuple[int, ...]:
        """Return (m + 1,) the index of the first GPU of each machine, then the number of GPUs."""
        sizes = [template.num_gpus for template in self.templates]
        return (0, *accumulate(sizes[template] for template in self.template_of))

    @cached_property
    def gpus(self) -> TiledSequence[Gpu]:
        """Return the GPUs of all machines."""
        names = self.fabric.machines

        def made(machine: int, gpu: Gpu) -> Gpu:
            uuid = self.uuids[machine][gpu.index] if self.uuids and self.uuids[machine] else None
            return replace(gpu, index=self.offsets[machine] + gpu.index, machine=names[machine], uuid=uuid)

        return TiledSequence(self.template_of, [template.gpus for template in self.templates], made)

    @cached_property
    def links(self) -> TiledSequence[tuple[int, int, Link]]:
        """Return the direct links inside all machines."""

        def made(machine: int, entry: tuple[int, int, Link]) -> tuple[int, int, Link]:
            first, (u, v, link) = self.offsets[machine], entry
            return first + u, first + v, link

        return TiledSequence(self.template_of, [template.links for template in self.templates], made)

    @cached_property
    def partitions(self) -> TiledSequence[tuple[int, ...]]:
        """Return the partitions of all machines."""

        def made(machine: int, partition: tuple[int, ...]) -> tuple[int, ...]:
            return tuple(self.offsets[machine] + gpu for gpu in partition)

        return TiledSequence(self.template_of, [template.partitions for template in self.templates], made)


class TiledSequence(Sequence[Item], Generic[Item]):
    """The items of all machines in one sequence; each item is made on access from an item of its machine's template."""

    def __init__(
        self,
        template_of: Sequence[int],
        items: Sequence[Sequence[Any]],
        make: Callable[[int, Any], Item],
    ) -> None:
        """Store the arguments; machine i has `make(i, item)` for each item of its template, `items[template_of[i]]`."""
        self._template_of, self._items, self._make = template_of, items, make
        sizes = [len(found) for found in items]
        self._ends = tuple(accumulate(sizes[template] for template in template_of))

    def __len__(self) -> int:
        return self._ends[-1]

    @overload
    def __getitem__(self, index: int) -> Item: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Item, ...]: ...
    def __getitem__(self, index: int | slice) -> Item | tuple[Item, ...]:
        if isinstance(index, slice):
            return tuple(self[i] for i in range(*index.indices(len(self))))
        if not -len(self) <= index < len(self):
            raise IndexError(f"index {index} of {len(self)}")
        place = index % len(self)
        machine = bisect_right(self._ends, place)
        items = self._items[self._template_of[machine]]
        return self._make(machine, items[place - self._ends[machine] + len(items)])

    def __iter__(self) -> Iterator[Item]:
        for machine, template in enumerate(self._template_of):
            for item in self._items[template]:
                yield self._make(machine, item)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, tuple | TiledSequence):
            return NotImplemented
        items = cast("Sequence[object]", other)
        return len(self) == len(items) and all(map(operator.eq, self, items))

    def __hash__(self) -> int:
        return hash(tuple(self))

    def __repr__(self) -> str:
        shown = ", ".join(map(repr, self[:_MAX_SHOWN]))
        return f"({shown}{f', … {len(self)} in all' if len(self) > _MAX_SHOWN else ''})"


def as_machine(topology: Topology, name: str, uuids: Uuids | None = None) -> Topology:
    """Return a one-machine topology without its fabric, under this name, and with these UUIDs if given."""
    if topology.tiling is not None:
        topology = topology.tiling.machine(0)
    named = zip(topology.gpus, uuids or [gpu.uuid for gpu in topology.gpus], strict=True)
    gpus = tuple(
        gpu if (gpu.machine, gpu.uuid) == (name, uuid) else replace(gpu, machine=name, uuid=uuid)
        for gpu, uuid in named
    )
    same = all(gpu is other for gpu, other in zip(gpus, topology.gpus, strict=True))
    return topology if same else replace(topology, gpus=gpus)
