"""Topologies of many machines: few templates, many machines of each, joined by the levels of a fabric.

Nothing here grows with the square of the number of GPUs, and little with the number itself: a machine is a name, the
number of its template, and a domain per level. GPUs and links are made when they are asked for.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import accumulate
from types import MappingProxyType
from typing import Any, Generic, Self, TypeVar, overload

import numpy as np
from numpy.typing import DTypeLike, NDArray

from topoplace import _checks
from topoplace.devices import Gpu
from topoplace.errors import TopologyError
from topoplace.fabric import Fabric, Level
from topoplace.links import NONE, SELF, DistanceWeights, Link, LinkKind, nvlink_of
from topoplace.topology import MAX_GPUS, Topology

Item = TypeVar("Item")


class ClusterTopology(Topology):
    """A `Topology` made of machines with shared templates; build one with `Topology.cluster`."""

    def __init__(
        self,
        templates: Sequence[Topology],
        template_of: Sequence[int],
        fabric: Fabric,
        network: float,
        name: str,
        notes: Sequence[str] = (),
        distances: DistanceWeights | None = None,
    ) -> None:
        """Machine i of `fabric` is one of `templates[template_of[i]]`; each of these has a single machine.

        The arguments are checked by whoever calls: `join` or the reader of JSON.
        """
        sizes = [template.num_gpus for template in templates]
        offsets = (0, *accumulate(sizes[template] for template in template_of))
        if offsets[-1] > MAX_GPUS:
            raise TopologyError(f"{offsets[-1]} GPUs are more than {MAX_GPUS}")
        beyond = Link(LinkKind.NETWORK, 1, network) if network else NONE

        def members(level: Level) -> list[Topology]:
            inside = zip(level.domains, template_of, strict=True)
            return [templates[t] for t in sorted({t for domain, t in inside if domain is not None})]

        fill: dict[str, Any] = {
            "_templates": tuple(templates),
            "_template_of": tuple(template_of),
            "_offsets": offsets,
            "_fabric": fabric,
            "_level_links": [
                *(_level_link(level, members(level), network) for level in fabric.levels),
                beyond,
            ],
        }
        fill |= {"default": templates[0].default, "network": network, "name": name, "nics": ()}
        fill |= {"components": (), "component_links": (), "notes": tuple(notes)}
        fill |= {"distances": distances or templates[0].distances}
        for field, value in fill.items():
            object.__setattr__(self, field, value)
        object.__setattr__(self, "gpus", _Joined(self, [template.gpus for template in templates], _gpu))
        object.__setattr__(self, "links", _Joined(self, [template.links for template in templates], _entry))
        legal = [template.partitions for template in templates]
        object.__setattr__(self, "partitions", tuple(_Joined(self, legal, _partition)) if any(legal) else ())

    _templates: tuple[Topology, ...]
    _template_of: tuple[int, ...]
    _offsets: tuple[int, ...]
    _fabric: Fabric
    _level_links: list[Link]
    """How a pair that meets at each level is connected; last, one that meets at none."""

    # ---- what it says --------------------------------------------------------------------------------------

    @property
    def fabric(self) -> Fabric:
        """The machines and the levels that join them."""
        return self._fabric

    @property
    def templates(self) -> tuple[Topology, ...]:
        """The different machines, each once."""
        return self._templates

    @property
    def machine_templates(self) -> tuple[Topology, ...]:
        """(m,) what each machine is like; machines that are alike share one object."""
        return tuple(map(self._templates.__getitem__, self._template_of))

    @property
    def template_of(self) -> tuple[int, ...]:
        """(m,) the index into `templates` of each machine."""
        return self._template_of

    @property
    def num_gpus(self) -> int:
        """How many GPUs there are, n."""
        return self._offsets[-1]

    @cached_property
    def machine_names(self) -> tuple[str, ...]:
        """The machines, in the order of their first GPU."""
        return self._fabric.machines

    @cached_property
    def gpus_of(self) -> Mapping[str, tuple[int, ...]]:
        """The GPUs of each machine, ascending, by the machine's name."""
        ends = zip(self.machine_names, self._offsets, self._offsets[1:], strict=False)
        return MappingProxyType({name: tuple(range(first, end)) for name, first, end in ends})

    @cached_property
    def machine_of(self) -> NDArray[np.int32]:
        """(n,) int32, read-only: the index into `machine_names` of each GPU's machine."""
        found = np.repeat(np.arange(self.num_machines, dtype=np.int32), np.diff(self._offsets))
        found.setflags(write=False)
        return found

    @cached_property
    def local_index(self) -> tuple[int, ...]:
        """(n,) each GPU's index on its own machine, which is what a process there calls it."""
        locals_of = [range(template.num_gpus) for template in self._templates]
        return tuple(local for template in self._template_of for local in locals_of[template])

    @cached_property
    def unhealthy_gpus(self) -> tuple[int, ...]:
        """The GPUs that must not get jobs, ascending."""
        unhealthy = [template.unhealthy_gpus for template in self._templates]
        if not any(unhealthy):
            return ()
        places = zip(self._offsets, self._template_of, strict=False)
        return tuple(first + gpu for first, template in places for gpu in unhealthy[template])

    def machine(self, name: str) -> Topology:
        """The machine called `name` as a topology of its own."""
        return self._templates[self._template_of[self._machine_number(name)]].renamed_machine(name)

    def distance(self, u: int, v: int) -> float:
        """Distance between GPUs u and v: the sum of the weights, in `distances`, of the levels between them."""
        link = self.link_kind(u, v)
        i, j = self._machine_at(u), self._machine_at(v)
        return self.distances.of(link) if i == j else self._level_distances[self._meeting_level(u, v, i, j)]

    def link_matrix(self, value: Callable[[Link], float], dtype: DTypeLike = np.float64) -> NDArray[Any]:
        """(n, n) array of `value(link)` for every pair, of SELF on the diagonal."""
        return self._matrix([value(link) for link in self._level_links], value, dtype)

    def with_templates(self, change: Callable[[Topology], Topology]) -> Topology:
        """The same machines and fabric, with every template changed."""
        changed = [change(template) for template in self._templates]
        return type(self)(
            changed, self._template_of, self._fabric, self.network, self.name, self.notes, self.distances
        )

    def with_distances(self, distances: DistanceWeights | str) -> Self:
        """The same topology with other weights of `distance`; a preset by its name, such as "sc17"."""
        changed = [template.with_distances(distances) for template in self._templates]
        return type(self)(
            changed,
            self._template_of,
            self._fabric,
            self.network,
            self.name,
            self.notes,
            changed[0].distances,
        )

    # ---- inside --------------------------------------------------------------------------------------------

    def _machine_at(self, gpu: int) -> int:
        return bisect_right(self._offsets, gpu) - 1

    def _machine_number(self, name: str) -> int:
        number = self._numbers.get(name)
        if number is None:
            raise TopologyError(f"name = {_checks.shown(name)} is no machine of {self.name}")
        return number

    @cached_property
    def _numbers(self) -> dict[str, int]:
        return {name: i for i, name in enumerate(self.machine_names)}

    def _link(self, u: int, v: int) -> Link:
        i, j = self._machine_at(u), self._machine_at(v)
        if i != j:
            return self._level_links[self._meeting_level(u, v, i, j)]
        first = self._offsets[i]
        return self._templates[self._template_of[i]].link_kind(u - first, v - first)

    def _meeting_level(self, u: int, v: int, i: int, j: int) -> int:
        """The first level that GPUs u and v of machines i and j share; the number of levels where there is none."""
        for number, level in enumerate(self._fabric.levels):
            domain = level.domains[i]
            same_domain = domain is not None and domain == level.domains[j]
            if same_domain and (not level.rail or self._rail(u, i) == self._rail(v, j)):
                return number
        return len(self._fabric.levels)

    def _rail(self, gpu: int, machine: int) -> int:
        return self._template_rails[self._template_of[machine]][gpu - self._offsets[machine]]

    @cached_property
    def _template_rails(self) -> list[list[int]]:
        return [
            [local if gpu.rail is None else gpu.rail for local, gpu in enumerate(template.gpus)]
            for template in self._templates
        ]

    @cached_property
    def _level_distances(self) -> list[float]:
        """The distance of a pair that meets at each level; last, of one that meets at none."""
        weights, climbed = self.distances, 0.0
        distances: list[float] = []
        for level in self._fabric.levels:
            if level.kind is LinkKind.NVSWITCH:
                distances.append(weights.levels.get(level.name, weights.direct))
            else:
                climbed += weights.levels.get(level.name, weights.network)
                distances.append(climbed)
        return [*distances, climbed + self.distances.of(self._level_links[-1])]

    @cached_property
    def _distance_matrix(self) -> NDArray[np.float64]:
        return self._matrix(self._level_distances, self.distances.of, np.float64)

    def _matrix(
        self, of_level: Sequence[float], value: Callable[[Link], float], dtype: DTypeLike
    ) -> NDArray[Any]:
        self._check_matrix_size()
        n, levels, machine_of = self.num_gpus, self._fabric.levels, self.machine_of
        meeting = np.full((n, n), len(levels), np.int8)
        for number in reversed(range(len(levels))):
            domain = _domain_numbers(levels[number])[machine_of]
            shared = (domain[:, None] == domain) & (domain >= 0)
            if levels[number].rail:
                rails = np.array([rail for t in self._template_of for rail in self._template_rails[t]])
                shared &= rails[:, None] == rails
            meeting[shared] = number
        matrix = np.array(of_level, dtype)[meeting]
        blocks = [template.link_matrix(value, dtype) for template in self._templates]
        for first, template in zip(self._offsets, self._template_of, strict=False):
            end = first + len(blocks[template])
            matrix[first:end, first:end] = blocks[template]
        np.fill_diagonal(matrix, value(SELF))
        matrix.setflags(write=False)
        return matrix


def _domain_numbers(level: Level) -> NDArray[np.int32]:
    """(m,) the number of each machine's domain of `level`, -1 for none."""
    number: dict[str | None, int] = {
        domain: i for i, domain in enumerate(dict.fromkeys(filter(None, level.domains)))
    }
    return np.array([number.get(domain, -1) for domain in level.domains], np.int32)


class _Joined(Sequence[Item], Generic[Item]):
    """The items of all machines one after the other, each made from its template's when it is asked for."""

    def __init__(
        self,
        cluster: ClusterTopology,
        items: Sequence[Sequence[Any]],
        make: Callable[[Any, int, str], Item],
    ) -> None:
        self._cluster, self._items, self._make = cluster, items, make
        sizes = [len(found) for found in items]
        self._ends = tuple(accumulate(sizes[template] for template in cluster.template_of))

    def __len__(self) -> int:
        return self._ends[-1]

    @overload
    def __getitem__(self, index: int) -> Item: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Item, ...]: ...
    def __getitem__(self, index: int | slice) -> Item | tuple[Item, ...]:
        if isinstance(index, slice):
            return tuple(self[i] for i in range(*index.indices(len(self))))
        place = range(len(self))[index]
        machine = bisect_right(self._ends, place)
        items = self._items[self._cluster.template_of[machine]]
        return self._made(items[place - self._ends[machine] + len(items)], machine)

    def __iter__(self) -> Iterator[Item]:
        for machine, template in enumerate(self._cluster.template_of):
            for item in self._items[template]:
                yield self._made(item, machine)

    def _made(self, item: Any, machine: int) -> Item:
        first: int = self._cluster._offsets[machine]  # pyright: ignore[reportPrivateUsage]
        return self._make(item, first, self._cluster.machine_names[machine])


def _gpu(gpu: Gpu, first: int, machine: str) -> Gpu:
    return replace(gpu, index=first + gpu.index, machine=machine)


def _entry(entry: tuple[int, int, Link], first: int, _machine: str) -> tuple[int, int, Link]:
    u, v, link = entry
    return first + u, first + v, link


def _partition(partition: tuple[int, ...], first: int, _machine: str) -> tuple[int, ...]:
    return tuple(first + gpu for gpu in partition)


def _level_link(level: Level, machines: Sequence[Topology], network: float) -> Link:
    """How a pair that meets at `level`, which joins `machines`, is connected."""
    if not machines:
        return NONE
    if level.kind is LinkKind.NVSWITCH:
        ports = [_nvlinks(level, machine) for machine in machines]
        gbps = level.gbps or min(port.gbps for port in ports)
        return Link(LinkKind.NVSWITCH, min(port.lanes for port in ports), gbps / level.oversubscription)
    gbps = level.gbps or network
    return Link(LinkKind.NETWORK, 1, gbps / level.oversubscription) if gbps else NONE


def _nvlinks(level: Level, machine: Topology) -> Link:
    """All NVLinks of one GPU of `machine`: those to its neighbours, or else what its model has."""
    inside = [machine.link_kind(0, gpu) for gpu in range(1, machine.num_gpus)]
    if switched := [link for link in inside if link == LinkKind.NVSWITCH]:
        return max(switched, key=lambda link: link.gbps)
    model = machine.gpus[0].model
    if speed := nvlink_of(model) if model else None:
        return Link(LinkKind.NVSWITCH, speed.most_links, speed.gbps * speed.most_links)
    if level.gbps:
        return Link(LinkKind.NVSWITCH, 1, level.gbps)
    raise TopologyError(
        f"level {_checks.shown(level.name)}: the NVLinks of GPU model {model} are not known; give the level gbps"
    )
