"""Topologies of many machines: a few templates (distinct machines), and a fabric whose levels join the machines.

A machine is stored as a name, the number of its template, and a domain per level. GPUs and links are made on demand.
Stored data therefore grows with the number of machines, not with the number of GPUs or pairs of GPUs.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import FrozenInstanceError, replace
from functools import cached_property
from itertools import accumulate
from types import MappingProxyType
from typing import Any, NoReturn, Self

import numpy as np
from numpy.typing import DTypeLike, NDArray

from topoplace import _checks
from topoplace.errors import TopologyError
from topoplace.topology import level_ports, validate
from topoplace.topology.devices import Gpu
from topoplace.topology.fabric import Fabric, Level
from topoplace.topology.links.distance import DISTANCES, DistanceWeights
from topoplace.topology.links.link import NONE, SELF, Link, LinkKind
from topoplace.topology.tiled import TiledSequence
from topoplace.topology.topology import MAX_GPUS, Topology, row_blocks

Uuids = tuple[str | None, ...]
"""The UUIDs of one machine's GPUs; () if unknown."""


class ClusterTopology(Topology):
    """A `Topology` of many machines, in which equal machines share one template; build one with `Topology.cluster`."""

    def __init__(
        self,
        machines: Sequence[Topology],
        fabric: Fabric,
        network: float,
        name: str,
        notes: Sequence[str] = (),
        distances: DistanceWeights = DISTANCES["sc17"],
        uuids: Sequence[Uuids] = (),
    ) -> None:
        """Make machine i of `fabric` a copy of `machines[i]`, a topology of one machine; equal ones share a template.

        uuids: (m,) for each machine the UUIDs of its GPUs; () keeps those of `machines`.
        Only the total is checked here, with a TopologyError for more than 2**20 GPUs: `assemble.join` or the reader of
        JSON has checked the arguments.
        """
        templates, template_of, own = _templates(machines, distances)
        sizes = [template.num_gpus for template in templates]
        offsets = (0, *accumulate(sizes[template] for template in template_of))
        if offsets[-1] > MAX_GPUS:
            raise TopologyError(f"{offsets[-1]} GPUs are more than {MAX_GPUS}")
        known = tuple(uuids) or own
        fill: dict[str, Any] = {
            "default": templates[0].default,
            "network": network,
            "name": name,
            "nics": (),
            "components": (),
            "component_links": (),
            "notes": tuple(notes),
            "assumed": validate.checked_kinds([kind for one in templates for kind in one.assumed], "assumed"),
            "distances": distances,
            "_templates": templates,
            "_template_of": template_of,
            "_offsets": offsets,
            "_fabric": fabric,
            "_uuids": known if any(known) else (),
        }
        for field, value in fill.items():
            object.__setattr__(self, field, value)
        lazy: dict[str, Any] = {
            "gpus": TiledSequence(template_of, [template.gpus for template in templates], self._gpu),
            "links": TiledSequence(template_of, [template.links for template in templates], self._entry),
            "partitions": TiledSequence(
                template_of, [template.partitions for template in templates], self._partition
            ),
            "_ports": [level_ports.ports_into(level, templates, template_of) for level in fabric.levels],
        }
        for field, value in lazy.items():
            object.__setattr__(self, field, value)

    _templates: tuple[Topology, ...]
    _template_of: tuple[int, ...]
    _offsets: tuple[int, ...]
    _fabric: Fabric
    _uuids: tuple[Uuids, ...]
    _ports: list[level_ports.Ports]
    """For each level, by template number, the port into that level of every GPU of the template."""

    def __setattr__(self, field: str, _value: object) -> NoReturn:
        raise FrozenInstanceError(f"cannot assign to field {field!r}")

    def __delattr__(self, field: str) -> NoReturn:
        raise FrozenInstanceError(f"cannot delete field {field!r}")

    # ---- queries -------------------------------------------------------------------------------------------

    @property
    def fabric(self) -> Fabric:
        """Return the names of the machines, and the levels that join the machines."""
        return self._fabric

    @property
    def templates(self) -> tuple[Topology, ...]:
        """Return the distinct machines of the cluster, each as a topology of one machine.

        Machines that differ only in names or UUIDs are the same template.
        """
        return self._templates

    @property
    def template_of(self) -> tuple[int, ...]:
        """Return, for each machine, the index of its template in `templates`."""
        return self._template_of

    @property
    def level_links(self) -> tuple[Link, ...]:
        """Return, for each level of the fabric, the link between two GPUs that meet there through the fastest ports."""
        pairs = zip(self._fabric.levels, self._ports, strict=True)
        return tuple(level_ports.best(level, ports, self.network) for level, ports in pairs)

    @property
    def uuids(self) -> tuple[Uuids, ...]:
        """Return, for each machine, the UUIDs of its GPUs; () if no UUID in the cluster is known."""
        return self._uuids

    @property
    def num_gpus(self) -> int:
        """Return the number of GPUs, n."""
        return self._offsets[-1]

    @cached_property
    def machine_names(self) -> tuple[str, ...]:
        """Return the machines' names, in the order of their first GPU."""
        return self._fabric.machines

    @cached_property
    def gpus_of(self) -> Mapping[str, tuple[int, ...]]:
        """Return the GPUs of each machine, ascending, by the machine's name."""
        ends = zip(self.machine_names, self._offsets, self._offsets[1:], strict=False)
        return MappingProxyType({name: tuple(range(first, end)) for name, first, end in ends})

    @cached_property
    def machine_of(self) -> NDArray[np.int32]:
        """Return (num_gpus,) int32, read-only: the index into `machine_names` of each GPU's machine."""
        found = np.repeat(np.arange(self.num_machines, dtype=np.int32), np.diff(self._offsets))
        found.setflags(write=False)
        return found

    @cached_property
    def socket_of(self) -> NDArray[np.int32]:
        """Return (num_gpus,) int32, read-only: the number of each GPU's socket, counted over all machines."""
        own = [template.socket_of for template in self._templates]
        counts = [int(sockets.max()) + 1 for sockets in own]
        firsts = accumulate((counts[template] for template in self._template_of), initial=0)
        parts = [own[template] + first for template, first in zip(self._template_of, firsts, strict=False)]
        found = np.concatenate(parts).astype(np.int32)
        found.setflags(write=False)
        return found

    @cached_property
    def local_index(self) -> tuple[int, ...]:
        """Return, for each GPU, its index on its own machine, which is the number a process on that machine uses."""
        locals_of = [range(template.num_gpus) for template in self._templates]
        return tuple(local for template in self._template_of for local in locals_of[template])

    def with_unhealthy(self, gpus: Iterable[int]) -> Topology:
        """Return a copy in which `gpus` are marked unhealthy (they must not get jobs); other GPUs are unchanged.

        TopologyError for a number that is not a GPU's.
        """
        broken: dict[int, list[int]] = {}
        for i, gpu in enumerate(_checks.sequence(gpus, "gpus", TopologyError)):
            gpu = _checks.integer(gpu, f"gpus[{i}]", TopologyError, low=0, high=self.num_gpus - 1)
            machine = self._machine_at(gpu)
            broken.setdefault(machine, []).append(gpu - self._offsets[machine])
        machines = [self._templates[template] for template in self._template_of]
        for machine, inside in broken.items():
            machines[machine] = machines[machine].with_unhealthy(inside)
        return type(self)(
            machines, self._fabric, self.network, self.name, self.notes, self.distances, self._uuids
        )

    def select(self, suits: Callable[[Gpu], bool]) -> tuple[int, ...]:
        """Return the numbers of the GPUs for which `suits` is true, ascending.

        `suits` is called for each GPU of a template, not of the cluster, so it must not depend on index, machine name
        or UUID.
        """
        chosen = [template.select(suits) for template in self._templates]
        if not any(chosen):
            return ()
        places = zip(self._offsets, self._template_of, strict=False)
        return tuple(first + gpu for first, template in places for gpu in chosen[template])

    @cached_property
    def partitioned_gpus(self) -> tuple[int, ...]:
        """Return the GPUs of machines with partitions, ascending; a job may get such GPUs only as a whole partition."""
        ends = zip(self._offsets, self._offsets[1:], self._template_of, strict=False)
        ranges = [range(first, end) for first, end, t in ends if self._templates[t].partitions]
        return tuple(gpu for inside in ranges for gpu in inside)

    def machine(self, name: str) -> Topology:
        """Return the machine called `name` as a topology of its own; TopologyError if there is none."""
        number = self._numbers.get(name)
        if number is None:
            raise TopologyError(f"name = {_checks.shown(name)} is not a machine of {self.name}")
        template = self._templates[self._template_of[number]]
        uuids = self._uuids[number] if self._uuids else ()
        if not uuids:
            return template.renamed_machine(name)
        named = zip(template.gpus, uuids, strict=True)
        return replace(template, gpus=tuple(replace(gpu, machine=name, uuid=uuid) for gpu, uuid in named))

    def part(self, machines: Sequence[int]) -> ClusterTopology:
        """Return the cluster of some machines, given by number, with the levels that join them.

        GPUs are renumbered, in the order of `machines`. TopologyError for a number that is not a machine's, or that
        occurs twice.
        """
        chosen = [
            _checks.integer(machine, f"machines[{i}]", TopologyError, low=0, high=self.num_machines - 1)
            for i, machine in enumerate(_checks.sequence(machines, "machines", TopologyError))
        ]
        return type(self)(
            [self._templates[self._template_of[machine]] for machine in chosen],
            self._fabric.part(chosen),
            self.network,
            self.name,
            self.notes,
            self.distances,
            [self._uuids[machine] for machine in chosen] if self._uuids else (),
        )

    def renamed_machine(self, name: str) -> Topology:
        """Return this cluster of one machine as a plain topology, in which the machine is called `name`."""
        return self.machine(self.machine_names[0]).renamed_machine(name)

    def is_legal(self, gpus: Iterable[int]) -> bool:
        """Return True if one job may get `gpus`: of a machine with partitions, none or exactly one partition."""
        if not self.partitioned_gpus:
            return True
        by_machine: dict[int, list[int]] = {}
        for gpu in gpus:
            by_machine.setdefault(self._machine_at(gpu), []).append(gpu)
        return all(
            self._templates[self._template_of[machine]].is_legal(
                gpu - self._offsets[machine] for gpu in inside
            )
            for machine, inside in by_machine.items()
        )

    @cached_property
    def attachments(self) -> Sequence[Hashable] | None:
        """Return (n,) a key of each GPU; those of one machine with equal keys have equal links to other machines.

        Equal keys on two machines mean the same rail. None if all GPUs of each machine have equal links.
        """
        levels = self._fabric.levels
        railed = any(level.rail for level in levels)
        keys: list[list[Hashable]] = [
            [
                (rail if railed else 0, *(ports.get(t, (NONE,) * (gpu + 1))[gpu] for ports in self._ports))
                for gpu, rail in enumerate(rails)
            ]
            for t, rails in enumerate(self._template_rails)
        ]
        if all(len(set(of_template)) == 1 for of_template in keys):
            return None
        return tuple(key for t in self._template_of for key in keys[t])

    def distance(self, u: int, v: int) -> float:
        """Return the distance between GPUs u and v by the weights in `distances`.

        Inside a machine it is the weight of their link; between machines, of the levels their path climbs.
        """
        link = self.link(u, v)
        i, j = self._machine_at(u), self._machine_at(v)
        if i == j or link == NONE:
            return self.distances.of(link)
        return self._level_distances[self._meeting(u, i, v, j)[0]]

    def link_matrix(self, value: Callable[[Link], float], dtype: DTypeLike = np.float64) -> NDArray[Any]:
        """Return (n, n), read-only: `value(link)` for the link of every pair of GPUs; the diagonal is `value(SELF)`.

        Raises TopologyError for more than 16,384 GPUs.
        """
        return self._matrix(value, None, dtype)

    def rebuilt(
        self,
        change: Callable[[Topology], Topology],
        *,
        network: float | None = None,
        levels: Sequence[Level] | None = None,
        distances: DistanceWeights | None = None,
    ) -> Self:
        """Return the same cluster with `change` applied to every template, and with the other arguments where given."""
        changed = [change(template) for template in self._templates]
        return type(self)(
            [changed[template] for template in self._template_of],
            self._fabric if levels is None else replace(self._fabric, levels=tuple(levels)),
            self.network if network is None else network,
            self.name,
            self.notes,
            self.distances if distances is None else distances,
            self._uuids,
        )

    def with_distances(self, distances: DistanceWeights | str) -> Self:
        """Return the same topology with other weights for `distance`: weights, or the name of a preset ("sc17").

        TopologyError for an unknown preset.
        """
        weights = self._templates[0].with_distances(distances).distances
        return self.rebuilt(lambda template: template, distances=weights)

    # ---- inside --------------------------------------------------------------------------------------------

    def _machine_at(self, gpu: int) -> int:
        return bisect_right(self._offsets, gpu) - 1

    @cached_property
    def _numbers(self) -> dict[str, int]:
        return {name: i for i, name in enumerate(self.machine_names)}

    def _link(self, u: int, v: int) -> Link:
        i, j = self._machine_at(u), self._machine_at(v)
        if i != j:
            return self._meeting(u, i, v, j)[1]
        first = self._offsets[i]
        return self._templates[self._template_of[i]].link(u - first, v - first)

    def _meeting(self, u: int, i: int, v: int, j: int) -> tuple[int, Link]:
        """Return (level, link) for GPU u of machine i and GPU v of machine j.

        `level` is the index of the first level at which these GPUs have a path, and `link` the link there. If there is
        none, the result is the number of levels, and the link at `network` GB/s.
        """
        for number, level in enumerate(self._fabric.levels):
            domain = level.domains[i]
            same_domain = domain is not None and domain == level.domains[j]
            if same_domain and (not level.rail or self._rail(u, i) == self._rail(v, j)):
                link = level_ports.link_between(
                    level, self._port(number, u, i), self._port(number, v, j), self.network
                )
                if link != NONE:
                    return number, link
        return len(self._fabric.levels), self._network

    def _gpu(self, machine: int, gpu: Gpu) -> Gpu:
        uuid = self._uuids[machine][gpu.index] if self._uuids and self._uuids[machine] else None
        index = self._offsets[machine] + gpu.index
        return replace(gpu, index=index, machine=self.machine_names[machine], uuid=uuid)

    def _entry(self, machine: int, entry: tuple[int, int, Link]) -> tuple[int, int, Link]:
        first, (u, v, link) = self._offsets[machine], entry
        return first + u, first + v, link

    def _partition(self, machine: int, partition: tuple[int, ...]) -> tuple[int, ...]:
        return tuple(self._offsets[machine] + gpu for gpu in partition)

    def _port(self, level: int, gpu: int, machine: int) -> Link:
        ports = self._ports[level].get(self._template_of[machine])
        return level_ports.PLUGGED if ports is None else ports[gpu - self._offsets[machine]]

    def _rail(self, gpu: int, machine: int) -> int:
        return self._template_rails[self._template_of[machine]][gpu - self._offsets[machine]]

    @cached_property
    def _template_rails(self) -> list[list[int]]:
        return [
            [local if gpu.rail is None else gpu.rail for local, gpu in enumerate(template.gpus)]
            for template in self._templates
        ]

    @cached_property
    def _rail_of(self) -> NDArray[np.int64]:
        """Return (n,) the rail of each GPU."""
        return np.array([rail for t in self._template_of for rail in self._template_rails[t]])

    @cached_property
    def _level_distances(self) -> list[float]:
        """Return, for each level, the distance of two GPUs that meet there; last, of GPUs that meet at no level."""
        weights, climbed = self.distances, 0.0
        distances: list[float] = []
        for level in self._fabric.levels:
            if level.kind is LinkKind.NVSWITCH:
                distances.append(weights.levels.get(level.name, weights.direct))
            else:
                climbed += weights.levels.get(level.name, weights.network)
                distances.append(climbed)
        return [*distances, climbed + weights.of(self._network)]

    @cached_property
    def _distance_matrix(self) -> NDArray[np.float64]:
        return self._matrix(self.distances.of, self._level_distances, np.float64)

    def _matrix(
        self, value: Callable[[Link], float], of_level: Sequence[float] | None, dtype: DTypeLike
    ) -> NDArray[Any]:
        """Return an (n, n) array of `value(link)` for every pair of GPUs.

        `of_level`, if given, has the values for pairs on different machines: one by the level at which they meet, then
        one for pairs that meet at no level.
        """
        self._check_matrix_size()
        n = self.num_gpus
        beyond = value(self._network) if of_level is None else of_level[-1]
        matrix = np.empty((n, n), dtype)
        for rows in row_blocks(n):
            matrix[rows] = beyond
        for number in reversed(range(len(self._fabric.levels))):
            self._fill_level(matrix, number, value, None if of_level is None else of_level[number])
        blocks = [template.link_matrix(value, dtype) for template in self._templates]
        for first, template in zip(self._offsets, self._template_of, strict=False):
            end = first + len(blocks[template])
            matrix[first:end, first:end] = blocks[template]
        np.fill_diagonal(matrix, value(SELF))
        matrix.setflags(write=False)
        return matrix

    def _fill_level(
        self, matrix: NDArray[Any], number: int, value: Callable[[Link], float], same: float | None
    ) -> None:
        """Write `same`, or else `value(link)`, of the pairs that meet at a level or below into the (n, n) `matrix`."""
        level = self._fabric.levels[number]
        domain = _domain_numbers(level)[self.machine_of]
        rails = self._rail_of if level.rail else None
        ports, port_of = self._numbered_ports(number)
        links = [[level_ports.link_between(level, a, b, self.network) for b in ports] for a in ports]
        there = np.array([[link != NONE for link in row] for row in links])
        values = np.array(
            [[value(link) if same is None else same for link in row] for row in links], matrix.dtype
        )
        for rows in row_blocks(self.num_gpus):
            shared = (domain[rows, None] == domain) & (domain >= 0)
            if rails is not None:
                shared &= rails[rows, None] == rails
            shared &= there[port_of[rows, None], port_of]
            matrix[rows][shared] = values[port_of[rows, None], port_of][shared]

    def _numbered_ports(self, level: int) -> tuple[list[Link], NDArray[np.int16]]:
        """Return the distinct ports of the GPUs into `level`, and (n,) the index of each GPU's port in that list."""
        different: dict[tuple[LinkKind, int, float], int] = {}
        ports: list[Link] = []

        def number_of(port: Link) -> int:
            key = (port.kind, port.lanes, port.gb_per_s)
            if key not in different:
                different[key] = len(ports)
                ports.append(port)
            return different[key]

        of_template = [
            [
                number_of(port)
                for port in self._ports[level].get(t, (level_ports.PLUGGED,) * template.num_gpus)
            ]
            for t, template in enumerate(self._templates)
        ]
        return ports, np.array([port for t in self._template_of for port in of_template[t]], np.int16)


def _domain_numbers(level: Level) -> NDArray[np.int32]:
    """Return (m,) the number of each machine's domain in `level`, from 0; -1 for a machine in no domain."""
    number: dict[str | None, int] = {
        domain: i for i, domain in enumerate(dict.fromkeys(filter(None, level.domains)))
    }
    return np.array([number.get(domain, -1) for domain in level.domains], np.int32)


# ---- equal machines --------------------------------------------------------------------------------------------


def _templates(
    machines: Sequence[Topology], distances: DistanceWeights
) -> tuple[tuple[Topology, ...], tuple[int, ...], tuple[Uuids, ...]]:
    """Return the templates (distinct machines), and for each of `machines` the number of its template and its UUIDs.

    In a template the machine is called "machine0" and GPUs have no UUIDs.
    """
    number_of_object: dict[int, int] = {}
    number_of_content: dict[Topology, int] = {}
    uuids_of_object: dict[int, Uuids] = {}
    for machine in machines:
        if id(machine) in number_of_object:
            continue
        uuids = tuple(gpu.uuid for gpu in machine.gpus)
        plain = machine if machine.distances == distances else machine.with_distances(distances)
        if plain.fabric is not None or plain.machine_names != ("machine0",) or any(uuids):
            plain = plain.renamed_machine("machine0")
            plain = replace(plain, gpus=tuple(replace(gpu, uuid=None) for gpu in plain.gpus))
        number_of_object[id(machine)] = number_of_content.setdefault(plain, len(number_of_content))
        uuids_of_object[id(machine)] = uuids if any(uuids) else ()
    template_of = tuple(number_of_object[id(machine)] for machine in machines)
    return tuple(number_of_content), template_of, tuple(uuids_of_object[id(machine)] for machine in machines)
