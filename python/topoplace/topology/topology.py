"""Topology: how the GPUs of a machine or a cluster are connected."""

from __future__ import annotations

import hashlib
from bisect import bisect_right
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import combinations
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Self, SupportsIndex, TypeVar

import numpy as np

from topoplace import _checks
from topoplace._lazy import above
from topoplace._similar_names import did_you_mean
from topoplace.errors import TopologyError
from topoplace.topology import devices, validate
from topoplace.topology.devices import Component, Gpu, Nic
from topoplace.topology.fabric import Fabric, Level, checked_notes
from topoplace.topology.links.distance import DISTANCES, DistanceWeights
from topoplace.topology.links.link_kinds import NETWORK_GB_PER_S, PCIE3_X16_GB_PER_S, Link, LinkKind
from topoplace.topology.machine_links import MachineLinks
from topoplace.topology.validate import LinkSpec

if TYPE_CHECKING:
    import networkx as nx
    from numpy.typing import ArrayLike, DTypeLike, NDArray

    from topoplace.kernels import Graph
    from topoplace.topology.cluster_links import ClusterLinks
    from topoplace.topology.tiling import Tiling

Derived = TypeVar("Derived")
_discover: Callable[..., Topology] = above("discover")
_from_networkx: Callable[..., Topology] = above("from_networkx")
_from_system_xml: Callable[..., Topology] = above("from_system_xml")
_from_topo_matrix: Callable[..., Topology] = above("from_topo_matrix")
_join: Callable[..., Topology] = above("join")
_parsed: Callable[[str], Topology] = above("parsed_topology")
_svg: Callable[..., str] = above("svg")
_to_networkx: Callable[[Topology], nx.Graph[int]] = above("to_networkx")
_with_degraded: Callable[[Topology, Mapping[int, float]], Topology] = above("with_degraded")
_with_links: Callable[[Topology, Mapping[tuple[int, int], float | Link]], Topology] = above("with_links")
_written: Callable[[Topology], str] = above("written_topology")

MAX_GPUS = 1 << 20
"""Limit on GPUs in a topology; more are refused as a mistake."""
_OF_MACHINES = ("gpus", "links", "partitions", "nics", "components", "component_links")


@dataclass(frozen=True, eq=False, repr=False)
class Topology:
    """GPUs and the links between them; immutable, hashable, picklable.

    Build one with a `from_…` method, `cluster` or `discover`, or take one from `topoplace.machines`.

    The connection of a pair of GPUs is the first of these that exists:
    - its direct link in `links`;
    - the best path through `components` (see `topoplace.topology.routing`);
    - the default link: inside a machine through the host at `default` GB/s, between machines through the network at
    `network` GB/s. A speed of 0 means no path.

    Entries of `links` that only repeat the pair's path or default link are not stored.

    Two topologies are equal when all their content is, names included.

    Raises:
        TopologyError: Names the argument, the index and the value of a wrong one.
    """

    gpus: Sequence[Gpu] = ()
    links: Sequence[tuple[int, int, Link]] = ()
    """(u, v, link) with u < v, sorted: the direct links between GPUs."""
    default: float = PCIE3_X16_GB_PER_S
    network: float = NETWORK_GB_PER_S
    name: str = "custom"
    nics: tuple[Nic, ...] = ()
    components: tuple[Component, ...] = field(default=(), kw_only=True)
    """The sockets, NUMA nodes, PCIe switches and NVSwitches, if known."""
    component_links: tuple[tuple[int, int, Link], ...] = field(default=(), kw_only=True)
    """(a, b, link) with a < b, sorted: vertex i is GPU i, vertex `num_gpus` + j is component j.

    Links of several kinds may join a pair, such as NVLinks and PCIe between a GPU and its CPU.
    """
    partitions: Sequence[tuple[int, ...]] = field(default=(), kw_only=True)
    """The sets of GPUs that a job may get, as on virtual machines with NVSwitches; () allows any set."""
    notes: tuple[str, ...] = field(default=(), kw_only=True)
    """Facts that a reader must know, such as what the source text does not state; one sentence each."""
    assumed: tuple[LinkKind, ...] = field(default=(), kw_only=True)
    """The kinds of NVLinks and similar links whose speed is a guess, as the source text does not state it."""
    distances: DistanceWeights = field(default=DISTANCES["sc17"], kw_only=True)
    """The weights that `distance` adds up."""
    tiling: Tiling | None = field(default=None, kw_only=True)
    """The machines of a topology made by `cluster`; its `gpus`, `links` and `partitions` are made from them."""
    pairs: MachineLinks | ClusterLinks = field(init=False)
    """The links of all pairs of GPUs; its methods do not check the GPUs' numbers."""

    def __post_init__(self) -> None:
        keep = object.__setattr__  # the only place that writes: it canonicalises before anyone reads
        keep(self, "name", _checks.text(self.name, "name", TopologyError))
        keep(self, "default", _checks.real(self.default, "default", TopologyError))
        keep(self, "network", _checks.real(self.network, "network", TopologyError))
        _checks.instance(self.distances, DistanceWeights, "distances", TopologyError)
        keep(self, "notes", checked_notes(self.notes))
        if self.tiling is None:
            self._keep_machine()
        else:
            self._keep_cluster(self.tiling)

    def _keep_machine(self) -> None:
        keep = object.__setattr__
        keep(self, "gpus", devices.checked_gpus(self.gpus, MAX_GPUS))
        keep(self, "nics", devices.checked_nics(self.nics, len(self.gpus)))
        keep(self, "components", devices.checked_components(self.components))
        between = validate.checked_component_links(self.component_links, len(self.gpus), len(self.components))
        keep(self, "component_links", between)
        keep(self, "partitions", devices.checked_partitions(self.partitions, len(self.gpus)))
        keep(self, "assumed", validate.checked_kinds(self.assumed, "assumed"))
        pairs = MachineLinks(self.gpus, self.components, between, self.default, self.network, self.distances)
        keep(self, "pairs", pairs)
        keep(self, "links", pairs.keep(validate.checked_links(self.links, len(self.gpus))))

    def _keep_cluster(self, tiling: Tiling) -> None:
        keep = object.__setattr__
        if tiling.offsets[-1] > MAX_GPUS:
            raise TopologyError(f"{tiling.offsets[-1]} GPUs are more than {MAX_GPUS}")
        if any(template.distances != self.distances for template in tiling.templates):
            tiling = tiling.changed(lambda template: replace(template, distances=self.distances))
        self._refuse_own_machines(tiling)
        kinds = [kind for template in tiling.templates for kind in template.assumed]
        made = {
            "gpus": tiling.gpus,
            "links": tiling.links,
            "partitions": tiling.partitions,
            "default": tiling.templates[0].default,
            "assumed": validate.checked_kinds(kinds, "assumed"),
            "tiling": tiling,
            "pairs": tiling.links_of_pairs(self.network, self.distances),
        }
        for key, value in made.items():
            keep(self, key, value)

    def _refuse_own_machines(self, tiling: Tiling) -> None:
        """Raise TopologyError if a field says of a cluster what only its machines can say."""
        given = {key: getattr(self, key) for key in _OF_MACHINES}
        wrong = [key for key, value in given.items() if value and not tiling.is_made(value)]
        if wrong:
            raise TopologyError(
                f"{wrong[0]}: a cluster has what its machines have; change them, and join them by Topology.cluster"
            )

    # ---- ways in -------------------------------------------------------------------------------------------

    @classmethod
    def from_links(
        cls,
        n: int,
        links: Iterable[LinkSpec],
        default: float = PCIE3_X16_GB_PER_S,
        *,
        name: str = "custom",
        model: str | None = None,
        memory_gb: float | None = None,
        sockets: Sequence[int | None] | None = None,
        machines: Sequence[str] | None = None,
        names: Sequence[str] | None = None,
        network: float = NETWORK_GB_PER_S,
        nics: Sequence[Nic] = (),
    ) -> Topology:
        """Build a topology of `n` GPUs from its links.

        Args:
            links: One tuple per linked pair, in either order, each pair at most once. The forms are (u, v, gb_per_s),
                (u, v, gb_per_s, kind), (u, v, gb_per_s, kind, lanes) and (u, v, Link). Speeds are GB/s in one
                direction, all lanes together; the kind defaults to `LinkKind.UNKNOWN`.
            default: GB/s of every other pair inside a machine.
            network: GB/s between machines. 0 means no path.
            model: The model of every GPU.
            memory_gb: The memory of every GPU.
            sockets: The socket of each GPU.
            machines: The machine of each GPU.
            names: The name of each GPU.

        Raises:
            TopologyError: Names the argument, the index and the value of a wrong one.
        """
        n = _checks.integer(n, "n", TopologyError, low=1, high=MAX_GPUS)
        name_of = _per_gpu(names, "names", n) if names is not None else [f"GPU{i}" for i in range(n)]
        machine_of = _per_gpu(machines, "machines", n) if machines is not None else ["machine0"] * n
        socket_of = _per_gpu(sockets, "sockets", n) if sockets is not None else [None] * n
        gpus = tuple(Gpu(i, name_of[i], model, machine_of[i], socket_of[i], memory_gb) for i in range(n))
        entries = validate.parsed_links(links, "links")
        return Topology(gpus, entries, default, network, name, _checks.sequence(nics, "nics", TopologyError))

    @classmethod
    def from_matrix(cls, bandwidth: ArrayLike, **options: Any) -> Topology:
        """Build a topology from an (n, n) matrix of bandwidths in GB/s: symmetric, 0 on the diagonal, 0 for no path.

        Links have kind `LinkKind.UNKNOWN`.

        Args:
            options: Other arguments of `from_links`; `default` and `network` default to 0.

        Raises:
            TopologyError: Names the index and the value of a wrong entry, as in `bandwidth[2, 5] = nan`.
        """
        matrix = _checks.symmetric_matrix(bandwidth, "bandwidth", TopologyError)
        u, v = np.nonzero(np.triu(matrix))
        speeds, which = np.unique(matrix[u, v], return_inverse=True)
        link_of = [Link(LinkKind.UNKNOWN, 1, gb_per_s) for gb_per_s in speeds.tolist()]
        links = zip(u.tolist(), v.tolist(), map(link_of.__getitem__, which.tolist()), strict=True)
        defaults: dict[str, Any] = {"default": 0.0, "network": 0.0}
        return cls.from_links(len(matrix), links, **defaults | options)

    @classmethod
    def from_networkx(cls, g: nx.Graph[Any], weight: str = "bandwidth", **settings: Any) -> Topology:
        """Build a topology from an undirected networkx graph whose edges carry GB/s in the attribute `weight`.

        Arguments and errors are those of `topoplace.topology.topology_networkx.from_networkx`.
        """
        return _from_networkx(g, weight, **settings)

    @classmethod
    def from_nvidia_smi(cls, text: str | bytes, gpu_model: str | None = None, **options: Any) -> Topology:
        """Read the topology, network adapters included, from the output of `nvidia-smi topo -m`.

        The matrix contains no speeds. An NVLink gets the speed of `gpu_model` (such as "V100" or "NVIDIA
        A100-SXM4-40GB"), or else of the model in other lines of the text, such as those of `nvidia-smi -L`. Without
        either, the speed is guessed, and `assumed` contains the link's kind.

        Args:
            options: Arguments of `topoplace.discovery.nvidia.topo_matrix.parse`, such as pcie_gb_per_s, the speed of
                every other path.

        Raises:
            TopologyError: Names the line and the cell that cannot be read.
        """
        return _from_topo_matrix(text, gpu_model, **options)

    @classmethod
    def from_nccl_xml(cls, text: str | bytes, gpu_model: str | None = None, **options: Any) -> Topology:
        """Read the topology from a system file of NCCL or RCCL, such as NCCL_TOPO_DUMP_FILE writes.

        Args:
            options: Arguments of `topoplace.discovery.nccl.system_xml.parse`.

        Raises:
            TopologyError: Names the line that cannot be read.
        """
        return _from_system_xml(text, gpu_model, **options)

    @classmethod
    def cluster(
        cls,
        machines: Topology | Sequence[Topology] | Mapping[str, Topology],
        count: int | None = None,
        *,
        fabric: Fabric | None = None,
        racks: SupportsIndex | Sequence[str | None] | None = None,
        names: Sequence[str] | None = None,
        network: float | None = None,
        name: str = "cluster",
    ) -> Topology:
        """Join machines into a cluster by a fabric; equal machines share memory, so thousands are cheap.

        Two GPUs of different machines have the speed of the first level at which they meet, divided by that level's
        oversubscription. They meet where their machines share a domain; on a level of rails they must also be on one
        rail.

        Args:
            machines: One topology that every machine copies, or one per machine, in a list or by name. Each is a single
                machine, several machines without links between them, or a cluster, whose levels are kept.
            count: Number of copies of a single topology; by default the number of names or of machines in the fabric.
            fabric: The levels that join the machines, see `topoplace.Fabric`. Its entries may also be the topologies
                that are joined, such as 26 racks of 18 machines; if one topology is copied, `count` must then be given.
            names: The machines' names.
            racks: Machines per rack, or the rack of each machine. Racks become a level "rack", outside NVLink domains
                and inside all other levels.
            network: GB/s in one direction between two machines that meet at no level, and of network levels without a
                speed. The default is 12.5, or the network of the clusters to be joined.

        Raises:
            TopologyError: Arguments contradict each other, such as numbers of machines.
        """
        return _join(machines, count, fabric, racks, names, network, name)

    @classmethod
    def discover(cls) -> Topology:
        """Find this host's GPUs and their connections with the vendor's tools.

        Raise TopologyError, which lists what was tried, if there is no GPU. See `topoplace.discovery.live.discover`.
        """
        return _discover()

    @classmethod
    def from_json(cls, text: str) -> Topology:
        """Read a topology that `to_json` wrote; TopologyError names the fault of any other text."""
        return _parsed(text)

    # ---- ways out ------------------------------------------------------------------------------------------

    def to_json(self) -> str:
        """Return the topology as canonical JSON: equal content gives equal text; read it back with `from_json`."""
        return _written(self)

    def to_networkx(self) -> nx.Graph[int]:
        """Return all pairs that have a path as a networkx graph; see `topoplace.topology.topology_networkx`."""
        return _to_networkx(self)

    def _repr_svg_(self) -> str:
        """Return a drawing, which notebooks show; see `topoplace.drawing.svg`."""
        return _svg(self)

    def digest(self) -> str:
        """Return SHA-256 of the canonical JSON, in hexadecimal: equal for equal content, in every release."""
        return self._digest

    # ---- queries -------------------------------------------------------------------------------------------

    @property
    def fabric(self) -> Fabric | None:
        """Return the machines and levels of a topology made by `cluster`; None for any other topology."""
        return None if self.tiling is None else self.tiling.fabric

    @property
    def levels(self) -> tuple[Level, ...]:
        """Return the levels of the fabric, innermost first; () without a fabric."""
        return () if self.tiling is None else self.tiling.fabric.levels

    @property
    def templates(self) -> tuple[Topology, ...]:
        """Return the distinct machines of a topology made by `cluster`; (itself,) for any other topology.

        Machines that differ only in names or UUIDs are the same template.
        """
        return (self,) if self.tiling is None else self.tiling.templates

    @property
    def template_of(self) -> tuple[int, ...]:
        """Return, for each machine, the index of its template in `templates`; (0,) for a topology without a fabric."""
        return (0,) if self.tiling is None else self.tiling.template_of

    def machine(self, name: str) -> Topology:
        """Return the machine called `name` as its own topology; TopologyError if there is none.

        If the machine is joined to others without a fabric, the result has the links of its pairs but no components,
        and the partitions inside the machine; TopologyError if all partitions lie elsewhere.
        """
        if _checks.text(name, "name", TopologyError) not in self.gpus_of:
            raise TopologyError(f"name = {_checks.shown(name)} is not a machine of {self.name}")
        if self.tiling is not None:
            return self.tiling.machine(int(self.machine_of[self.gpus_of[name][0]]))
        return self if self.num_machines == 1 else self._cut_out(name)

    def template(self, machine: int) -> Topology:
        """Return the template of a machine, given by number: a one-machine topology whose names and UUIDs have no
        meaning.

        Equal machines of a cluster share a template.
        """
        if self.tiling is not None:
            return self.tiling.template(machine)
        if machine not in self._machines:
            self._machines[machine] = self.machine(self.machine_names[machine])
        return self._machines[machine]

    def _cut_out(self, name: str) -> Topology:
        gpus = self.gpus_of[name]
        local = {gpu: i for i, gpu in enumerate(gpus)}
        pairs = combinations(gpus, 2) if self.components else (pair[:2] for pair in self.links)
        inside = [(local[u], local[v], self.pairs.link(u, v)) for u, v in pairs if local.keys() >= {u, v}]
        partitions = [part for part in self.partitions if local.keys() >= set(part)]
        if self.partitions and not partitions:
            raise TopologyError(f"no partition of {self.name} is inside machine {_checks.shown(name)}")
        return replace(
            self,
            gpus=tuple(replace(self.gpus[gpu], index=i) for i, gpu in enumerate(gpus)),
            links=tuple(inside),
            nics=tuple(replace(nic, paths=tuple(nic.paths[gpu] for gpu in gpus)) for nic in self.nics),
            components=(),
            component_links=(),
            partitions=tuple(tuple(map(local.__getitem__, part)) for part in partitions),
            name=name,
        )

    def with_unhealthy(self, targets: Iterable[int | str]) -> Topology:
        """Return a copy in which GPUs, and all GPUs of machines given by name, are unhealthy: they must not get jobs.

        Other GPUs are unchanged; `with_healthy` undoes it.

        Raises:
            TopologyError: Names a number that is not a GPU's, or a name that is no machine's.
        """
        return self._with_health(targets, healthy=False)

    def with_healthy(self, targets: Iterable[int | str]) -> Topology:
        """Return a copy in which GPUs, and all GPUs of machines given by name, are healthy, as after a repair.

        Raises:
            TopologyError: Names a number that is not a GPU's, or a name that is no machine's.
        """
        return self._with_health(targets, healthy=True)

    def _with_health(self, targets: Iterable[int | str], *, healthy: bool) -> Topology:
        if isinstance(targets, str):
            raise TopologyError(f"targets = {targets!r}: must be several GPUs or machines, not one text")
        gpus: list[int] = []
        for i, target in enumerate(_checks.sequence(targets, "targets", TopologyError)):
            if not isinstance(target, str):
                gpus.append(
                    _checks.integer(target, f"targets[{i}]", TopologyError, low=0, high=self.num_gpus - 1)
                )
            elif target in self.gpus_of:
                gpus += self.gpus_of[target]
            else:
                hint = did_you_mean(target, self.machine_names)
                is_none = f"targets[{i}] = {_checks.shown(target)} is no machine of the topology"
                raise TopologyError(is_none + (f"; {hint}" if hint else ""))
        parts = self._by_part(gpus).items()
        changed = {
            part: self.templates[self.template_of[part]]._marked(own, healthy=healthy) for part, own in parts
        }
        if self.tiling is not None:
            return replace(self, tiling=self.tiling.with_machines(changed))
        return changed.get(0, self)

    def _marked(self, gpus: Collection[int], *, healthy: bool) -> Topology:
        marked = (replace(gpu, healthy=healthy) if gpu.index in gpus else gpu for gpu in self.gpus)
        return replace(self, gpus=tuple(marked))

    def with_links(self, links: Mapping[tuple[int, int], float | Link]) -> Topology:
        """Return a copy in which pairs of GPUs have other links.

        Args:
            links: By pair, in either order: a `Link`, or GB/s in one direction for a link of the same kind and lanes; 0
                for no path. In a cluster, both GPUs must be on one machine.

        Raises:
            TopologyError: Names a wrong pair or value.
        """
        return _with_links(self, links)

    def with_degraded(self, shares: Mapping[int, float]) -> Topology:
        """Return a copy in which GPUs have lost some of the lanes of their NVLinks, xGMI or ICI links.

        All these links of a GPU get slower; PCIe and adapters stay as they are. A link between two such GPUs has the
        smaller share.

        Args:
            shares: The share of its present lanes that is left, by GPU, such as 14 / 18.

        Raises:
            TopologyError: Names a wrong GPU or share, or a GPU without such links.
        """
        return _with_degraded(self, shares)

    def select(self, suits: Callable[[Gpu], bool]) -> tuple[int, ...]:
        """Return the numbers of the GPUs for which `suits` is true, ascending.

        In a cluster, `suits` gets the GPUs of templates, so it must not depend on index, machine name or UUID.
        """
        if not callable(suits):
            raise TopologyError(f"suits = {_checks.shown(suits)} is not a function")
        chosen = [[gpu.index for gpu in template.gpus if suits(gpu)] for template in self.templates]
        if not any(chosen):
            return ()
        parts = zip(self._offsets, self.template_of, strict=False)
        return tuple(first + gpu for first, template in parts for gpu in chosen[template])

    def is_legal(self, gpus: Iterable[int]) -> bool:
        """Return True if one job may get exactly `gpus`: on a machine with partitions, no GPU or one whole partition.

        In a topology without a fabric, `gpus` must be one of its partitions if there are any.
        """
        if not self.partitioned_gpus:
            return True
        by_part = self._by_part(gpus)
        if self.tiling is None:
            by_part.setdefault(0, set())
        return all(
            not (allowed := self.templates[self.template_of[part]]._partition_set)
            or frozenset(own) in allowed
            for part, own in by_part.items()
        )

    @property
    def num_gpus(self) -> int:
        """Return the number of GPUs, n."""
        return self._offsets[-1]

    @cached_property
    def machine_names(self) -> tuple[str, ...]:
        """Return the machines' names, in the order of their first GPU."""
        if self.tiling is not None:
            return self.tiling.fabric.machines
        return tuple(dict.fromkeys(gpu.machine for gpu in self.gpus))

    @property
    def num_machines(self) -> int:
        """Return the number of machines."""
        return len(self.machine_names)

    @cached_property
    def gpus_of(self) -> Mapping[str, tuple[int, ...]]:
        """Return the GPUs of each machine, ascending, by the machine's name."""
        order = np.argsort(self.machine_of, kind="stable").tolist()
        ends = np.cumsum(np.bincount(self.machine_of, minlength=self.num_machines)).tolist()
        firsts = [0, *ends]
        members = (tuple(order[first:end]) for first, end in zip(firsts, ends, strict=False))
        return MappingProxyType(dict(zip(self.machine_names, members, strict=True)))

    @cached_property
    def machine_of(self) -> NDArray[np.int32]:
        """Return (num_gpus,) int32, read-only: the index into `machine_names` of each GPU's machine."""
        return self._numbered(lambda gpu: gpu.machine)

    @cached_property
    def socket_of(self) -> NDArray[np.int32]:
        """Return (num_gpus,) int32, read-only: the number of each GPU's socket, counted over all machines.

        Sockets are numbered in the order of their first GPU. The GPUs of a machine whose socket is unknown share one
        number.
        """
        return self._numbered(lambda gpu: (gpu.machine, gpu.socket))

    @cached_property
    def local_index(self) -> tuple[int, ...]:
        """Return, for each GPU, its index on its own machine, which is the number a process on that machine uses."""
        own: list[list[int]] = []
        for template in self.templates:
            local = {gpu: i for gpus in template.gpus_of.values() for i, gpu in enumerate(gpus)}
            own.append([local[gpu] for gpu in range(template.num_gpus)])
        return tuple(local for template in self.template_of for local in own[template])

    def link(self, u: int, v: int) -> Link:
        """Return the link of GPUs u and v, with `kind`, `lanes` and `gb_per_s`; TopologyError for a wrong number."""
        return self.pairs.link(*self._pair(u, v))

    def bandwidth(self, u: int, v: int) -> float:
        """Return GB/s in one direction between GPUs u and v; 0 for u = v and without a path."""
        return self.link(u, v).gb_per_s

    def distance(self, u: int, v: int) -> float:
        """Return the distance between GPUs u and v, by the weights in `distances`; larger means farther apart."""
        return self.pairs.distance(*self._pair(u, v))

    def bandwidth_matrix(self) -> NDArray[np.float64]:
        """Return (n, n) float64, read-only: `bandwidth` of every pair, 0 on the diagonal; errors: see `link_matrix`."""
        return self._bandwidth_matrix

    def distance_matrix(self) -> NDArray[np.float64]:
        """Return (n, n) float64, read-only: `distance` of every pair, 0 on the diagonal; errors: see `link_matrix`."""
        return self._distance_matrix

    def link_matrix(self, value: Callable[[Link], float], dtype: DTypeLike = np.float64) -> NDArray[Any]:
        """Return (n, n), read-only: `value(link)` for the link of every pair of GPUs; the diagonal is `value(SELF)`.

        Raises:
            TopologyError: The topology has more than 16,384 GPUs.
        """
        return _frozen(self.pairs.matrix(value, dtype))

    @cached_property
    def partitioned_gpus(self) -> tuple[int, ...]:
        """Return the GPUs of machines with partitions, ascending; a job may get such GPUs only as a whole partition."""
        ends = zip(self._offsets, self._offsets[1:], self.template_of, strict=False)
        ranges = [range(first, end) for first, end, t in ends if self.templates[t].partitions]
        return tuple(gpu for inside in ranges for gpu in inside)

    @cached_property
    def unhealthy_gpus(self) -> tuple[int, ...]:
        """Return the GPUs that must not get jobs, ascending."""
        return self.select(lambda gpu: not gpu.healthy)

    def with_distances(self, distances: DistanceWeights | str) -> Topology:
        """Return a copy with other weights for `distance`; distances: weights, or the name of a preset ("sc17").

        Raises:
            TopologyError: The preset is unknown.
        """
        if isinstance(distances, str):
            if distances not in DISTANCES:
                raise TopologyError(
                    f"distances = {_checks.shown(distances)} is none of {', '.join(DISTANCES)}"
                )
            distances = DISTANCES[distances]
        return replace(self, distances=distances)

    def derived(self, build: Callable[[Topology], Derived]) -> Derived:
        """Return `build(self)`, computed on the first call and kept as long as this topology exists.

        Other modules keep tables here that they derive from a topology. Threads may each call `build` at the same time;
        all get the same result.
        """
        # Not a cached property: a thread that is late would put an empty dictionary in its place.
        kept: dict[Callable[[Topology], Any], Any] = self.__dict__.setdefault("_derived", {})
        if build not in kept:
            kept.setdefault(build, build(self))
        found: Derived = kept[build]
        return found

    @cached_property
    def graph(self) -> Graph:
        """Return a graph for the C++ kernels: vertices are GPUs, edge weights the `bandwidth` of each pair in GB/s.

        Raises:
            TopologyError: The topology has more than 16,384 GPUs.
        """
        from topoplace import kernels

        return kernels.Graph(self.bandwidth_matrix())

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if not isinstance(other, Topology):
            return NotImplemented
        return hash(self) == hash(other) and self._digest == other._digest

    def __hash__(self) -> int:
        return hash(
            (self.name, self.num_gpus, len(self.links))
        )  # the digest of a large topology takes its time

    def __repr__(self) -> str:
        size = f"{self.num_gpus} GPUs, {self.num_machines} machines, {len(self.links)} links"
        return f"Topology({self.name!r}, {size})"

    def __copy__(self) -> Self:
        return self  # immutable

    def __deepcopy__(self, _memo: object) -> Self:
        return self

    def __reduce__(self) -> tuple[Callable[[str], Topology], tuple[str]]:
        return type(self).from_json, (self.to_json(),)

    # ---- inside --------------------------------------------------------------------------------------------

    @cached_property
    def _offsets(self) -> tuple[int, ...]:
        """Return the number of the first GPU of each part, a machine or the whole, then the number of GPUs."""
        return (0, len(self.gpus)) if self.tiling is None else self.tiling.offsets

    @cached_property
    def _machines(self) -> dict[int, Topology]:
        return {}

    def _pair(self, u: int, v: int) -> tuple[int, int]:
        high = self.num_gpus - 1
        return (
            _checks.integer(u, "u", TopologyError, low=0, high=high),
            _checks.integer(v, "v", TopologyError, low=0, high=high),
        )

    def _by_part(self, gpus: Iterable[int]) -> dict[int, set[int]]:
        """Return the GPUs of each part that has some, by their numbers there."""
        found: dict[int, set[int]] = {}
        for gpu in gpus:
            part = bisect_right(self._offsets, gpu) - 1
            found.setdefault(part, set()).add(gpu - self._offsets[part])
        return found

    def _numbered(self, key: Callable[[Gpu], Hashable]) -> NDArray[np.int32]:
        """Return (n,) int32, read-only: the GPUs' keys as numbers from 0, in the order of each key's first GPU.

        GPUs of two parts have different keys.
        """
        own: list[int] = []  # of all templates, one after the other
        counts: list[int] = []
        for template in self.templates:
            numbers: dict[Hashable, int] = {}
            own += [numbers.setdefault(key(gpu), len(numbers)) for gpu in template.gpus]
            counts.append(len(numbers))
        template_of, offsets = np.array(self.template_of), np.array(self._offsets)
        before = np.cumsum([0, *(template.num_gpus for template in self.templates)])
        first = np.cumsum([0, *np.array(counts)[template_of]])
        shift = np.repeat(before[template_of] - offsets[:-1], np.diff(offsets))
        place = shift + np.arange(self.num_gpus)
        found = np.array(own)[place] + np.repeat(first[:-1], np.diff(offsets))
        return _frozen(found.astype(np.int32))

    @cached_property
    def _partition_set(self) -> frozenset[frozenset[int]]:
        return frozenset(map(frozenset, self.partitions))

    @cached_property
    def _digest(self) -> str:
        return hashlib.sha256(self.to_json().encode("ascii")).hexdigest()

    @cached_property
    def _bandwidth_matrix(self) -> NDArray[np.float64]:
        return self.link_matrix(lambda link: link.gb_per_s)

    @cached_property
    def _distance_matrix(self) -> NDArray[np.float64]:
        return _frozen(self.pairs.distance_matrix())


def _per_gpu(values: Sequence[Any], what: str, n: int) -> tuple[Any, ...]:
    found = _checks.sequence(values, what, TopologyError)
    if len(found) != n:
        raise TopologyError(f"{what} has {len(found)} entries for {n} GPUs")
    return found


def _frozen(array: NDArray[Any]) -> NDArray[Any]:
    array.setflags(write=False)
    return array
