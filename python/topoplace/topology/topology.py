"""Topology: how the GPUs of a machine or a cluster are connected."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import combinations
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Self, SupportsIndex, TypeVar

import numpy as np

from topoplace import _checks
from topoplace.errors import TopologyError
from topoplace.topology import devices, validate
from topoplace.topology.devices import Component, Gpu, Nic
from topoplace.topology.fabric import Fabric, Level, checked_notes
from topoplace.topology.links.distance import DISTANCES, DistanceWeights
from topoplace.topology.links.link import NONE, SELF, Link, LinkKind
from topoplace.topology.links.link_catalogue import NETWORK_GB_PER_S, PCIE3_X16_GB_PER_S
from topoplace.topology.routing import Paths
from topoplace.topology.validate import LinkSpec

if TYPE_CHECKING:
    import networkx as nx
    from numpy.typing import ArrayLike, DTypeLike, NDArray

    from topoplace.kernels import Graph
    from topoplace.topology.compare import Change, Finding
    from topoplace.topology.speed_overrides import Speeds

Derived = TypeVar("Derived")

MAX_GPUS = 1 << 20
"""Limit on GPUs in a topology; more are refused as a mistake."""
MAX_MATRIX_GPUS = 1 << 14
"""Limit on GPUs for (n, n) matrices; one of float64 then takes 2 GiB."""
_BLOCK = 1 << 20  # entries of a matrix that are filled at a time


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

    Two topologies are equal when all their content is, names included. TopologyError names the argument, the index and
    the value of a wrong one.
    """

    gpus: Sequence[Gpu]
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
    """Facts a reader must know, such as what the source text leaves open; one sentence each."""
    assumed: tuple[LinkKind, ...] = field(default=(), kw_only=True)
    """The kinds of NVLinks and similar links whose speed the source text does not tell, so that it is a guess."""
    distances: DistanceWeights = field(default=DISTANCES["sc17"], kw_only=True)
    """The weights that `distance` adds up."""

    def __post_init__(self) -> None:
        keep = object.__setattr__  # the only place that writes: it canonicalises before anyone reads
        keep(self, "name", _checks.text(self.name, "name", TopologyError))
        keep(self, "default", _checks.real(self.default, "default", TopologyError))
        keep(self, "network", _checks.real(self.network, "network", TopologyError))
        keep(self, "gpus", devices.checked_gpus(self.gpus, MAX_GPUS))
        keep(self, "nics", devices.checked_nics(self.nics, self.num_gpus))
        keep(self, "components", devices.checked_components(self.components))
        keep(self, "component_links", self._checked_component_links())
        keep(self, "partitions", devices.checked_partitions(self.partitions, self.num_gpus))
        keep(self, "notes", checked_notes(self.notes))
        keep(self, "assumed", validate.checked_kinds(self.assumed, "assumed"))
        _checks.instance(self.distances, DistanceWeights, "distances", TopologyError)
        entries = validate.checked_links(self.links, self.num_gpus)
        keep(self, "links", self._without_ruled(entries))

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

        links: one tuple per linked pair, in either order, each pair at most once. The forms are (u, v, gb_per_s), (u,
        v, gb_per_s, kind), (u, v, gb_per_s, kind, lanes) and (u, v, Link). Speeds are GB/s in one direction, all lanes
        together; the kind defaults to `LinkKind.UNKNOWN`.
        default: GB/s of every other pair inside a machine.
        network: GB/s between machines. 0 means no path.
        model, memory_gb: of every GPU.
        sockets, machines, names: one entry per GPU.
        Raises TopologyError naming the argument, the index and the value.
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
        options: other arguments of `from_links`; `default` and `network` default to 0.
        Raises TopologyError naming the index and the value, as in `bandwidth[2, 5] = nan`.
        """
        matrix = _checks.symmetric_matrix(bandwidth, "bandwidth", TopologyError)
        u, v = np.nonzero(np.triu(matrix))
        speeds, which = np.unique(matrix[u, v], return_inverse=True)
        link_of = [Link(LinkKind.UNKNOWN, 1, gb_per_s) for gb_per_s in speeds.tolist()]
        links = zip(u.tolist(), v.tolist(), map(link_of.__getitem__, which.tolist()), strict=True)
        defaults: dict[str, Any] = {"default": 0.0, "network": 0.0}
        return cls.from_links(len(matrix), links, **defaults | options)

    @classmethod
    def from_networkx(
        cls,
        g: nx.Graph[Any],
        weight: str = "bandwidth",
        *,
        default: float | None = None,
        network: float | None = None,
        name: str | None = None,
    ) -> Topology:
        """Build a topology from an undirected networkx graph whose edges carry GB/s in the attribute `weight`.

        GPU i is the i-th node. Optional attributes, as `to_networkx` writes them: `kind` and `lanes` of edges; `name`,
        `model`, `machine`, `socket` and `memory_gb` of nodes; `default`, `network` and `name` of the graph. An argument
        that is not None overrides the graph's attribute. Raises TopologyError as `from_links` does.
        """
        given: dict[str, Any] = {"default": default, "network": network, "name": name}
        from topoplace.topology import topology_networkx

        return topology_networkx.read(g, weight, given)

    @classmethod
    def from_nvidia_smi(cls, text: str | bytes, gpu_model: str | None = None, **options: Any) -> Topology:
        """Read the topology, network adapters included, from the output of `nvidia-smi topo -m`.

        The matrix contains no speeds. An NVLink gets the speed of `gpu_model` (such as "V100" or "NVIDIA
        A100-SXM4-40GB"), or else that of the model which other lines of the text name, as `nvidia-smi -L` does. Without
        either its speed is guessed, and `assumed` says so.
        options: arguments of `topoplace.discovery.nvidia.topo_matrix.parse`, such as pcie_gb_per_s, the speed of every
        other path.
        Raises TopologyError naming the line and the cell.
        """
        from topoplace.discovery.nvidia import topo_matrix

        return topo_matrix.parse(text, gpu_model, **options)

    @classmethod
    def from_nccl_xml(cls, text: str | bytes, gpu_model: str | None = None, **options: Any) -> Topology:
        """Read the topology from a system file of NCCL or RCCL, such as NCCL_TOPO_DUMP_FILE writes.

        options: arguments of `topoplace.discovery.nccl.system_xml.parse`.
        Raises TopologyError naming the line.
        """
        from topoplace.discovery.nccl import system_xml

        return system_xml.parse(text, gpu_model, **options)

    @classmethod
    def from_hwloc_xml(cls, text: str | bytes, **options: Any) -> Topology:
        """Read the topology from a file that `lstopo machine.xml` of hwloc 1 to 3 wrote.

        options: arguments of `topoplace.discovery.hwloc.hwloc_xml.parse`.
        Raises TopologyError naming the line.
        """
        from topoplace.discovery.hwloc import hwloc_xml

        return hwloc_xml.parse(text, **options)

    @classmethod
    def from_rocm_smi(cls, text: str | bytes, gpu_model: str | None = None, **options: Any) -> Topology:
        """Read the topology from the output of `rocm-smi --showtopo` or `amd-smi topology`.

        options: arguments of `topoplace.discovery.amd.smi_tables.parse`.
        Raises TopologyError naming the line and the cell.
        """
        from topoplace.discovery.amd import smi_tables

        return smi_tables.parse(text, gpu_model, **options)

    @classmethod
    def from_text(cls, text: str | bytes, **options: Any) -> Topology:
        """Read machines from a text in any format of `topoplace.discovery.FORMATS`.

        options: such as gpu_model="A100"; a format ignores options it has no use for.
        Raises TopologyError with line and reason. A text that describes only a network is refused; read it with
        `topoplace.discovery.read` and pass it to `cluster`.
        """
        from topoplace import discovery

        _checks.refuse_path(text, "text", TopologyError)
        found = discovery.read(text, **options)
        if not isinstance(found, Topology):
            raise TopologyError(
                f"text describes a {type(found).__name__}, not machines with GPUs; see topoplace.discovery.read"
            )
        return found

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

        machines: one topology that every machine copies, or one per machine, in a list or by name. Each is a single
        machine, several machines without links between them, or a cluster, whose levels are kept.
        count: number of copies of a single topology; by default the number of names or of machines in the fabric.
        fabric: the levels that join the machines, see `topoplace.Fabric`. Its entries may also be the topologies that
        are joined, such as 26 racks of 18 machines; if one topology is copied, `count` must then be given.
        names: the machines' names.
        racks: machines per rack, or the rack of each machine. Racks become a level "rack", outside NVLink domains and
        inside all other levels.
        network: GB/s in one direction between two machines that meet at no level, and of network levels without a
        speed. The default is 12.5, or the network of the clusters to be joined.
        Two GPUs of different machines have the speed of the first level at which they meet, divided by that level's
        oversubscription. They meet where their machines share a domain; on a level of rails they must also be on one
        rail. Raises TopologyError if arguments contradict each other, such as numbers of machines.
        """
        from topoplace.topology.assemble import join

        return join(machines, count, fabric, racks, names, network, name)

    @classmethod
    def discover(cls) -> Topology:
        """Find this host's GPUs and their connections with the vendor's tools.

        Without a GPU, raises TopologyError that lists what was tried. See `topoplace.discovery.live.discover`.
        """
        from topoplace.discovery.live import discover

        return discover.discover()

    @classmethod
    def from_json(cls, text: str) -> Topology:
        """Read a topology that `to_json` wrote; TopologyError names the fault of any other text."""
        from topoplace.topology import topology_json

        return topology_json.parsed(text)

    # ---- ways out ------------------------------------------------------------------------------------------

    def to_json(self) -> str:
        """Return the topology as canonical JSON: equal content gives equal text; read it back with `from_json`."""
        from topoplace.topology import topology_json

        return topology_json.written(self)

    def digest(self) -> str:
        """Return SHA-256 of the canonical JSON, in hexadecimal: equal for equal content, in every release."""
        return self._digest

    def to_networkx(self) -> nx.Graph[int]:
        """Return all pairs that have a path as a networkx graph on 0..n-1; `from_networkx` reads it back.

        Edges carry `bandwidth` (GB/s), `distance`, `kind` (LinkKind) and `lanes`; nodes carry the fields of `Gpu`.
        Adapters, components, partitions, notes, assumed kinds and levels are lost. Raises TopologyError for more than
        2,048 GPUs.
        """
        from topoplace.topology import topology_networkx

        return topology_networkx.written(self)

    # ---- queries -------------------------------------------------------------------------------------------

    @property
    def fabric(self) -> Fabric | None:
        """Return the machines and levels of a topology made by `cluster`; None for any other topology."""
        return None

    @property
    def templates(self) -> tuple[Topology, ...]:
        """Return the distinct machines of a topology made by `cluster`; (itself,) for any other topology."""
        return (self,)

    @property
    def template_of(self) -> tuple[int, ...]:
        """Return, for each machine, the index of its template in `templates`; (0,) for a topology without a fabric."""
        return (0,)

    @property
    def level_links(self) -> tuple[Link, ...]:
        """Return, for each level of the fabric, the link between two GPUs that meet there through the fastest ports.

        The result is () for a topology without a fabric.
        """
        return ()

    def machine(self, name: str) -> Topology:
        """Return the machine called `name` as a topology of its own; TopologyError if there is none.

        If there are other machines, the result has the links of its pairs but no components, and the partitions inside
        the machine; TopologyError if all partitions lie elsewhere.
        """
        gpus = self.gpus_of.get(_checks.text(name, "name", TopologyError))
        if gpus is None:
            raise TopologyError(f"name = {_checks.shown(name)} is not a machine of {self.name}")
        if self.num_machines == 1:
            return self
        local = {gpu: i for i, gpu in enumerate(gpus)}
        pairs = combinations(gpus, 2) if self.components else (pair[:2] for pair in self.links)
        inside = [(local[u], local[v], self._link(u, v)) for u, v in pairs if local.keys() >= {u, v}]
        nics = [replace(nic, paths=tuple(nic.paths[gpu] for gpu in gpus)) for nic in self.nics]
        return replace(
            self,
            gpus=tuple(replace(self.gpus[gpu], index=i) for i, gpu in enumerate(gpus)),
            links=tuple(inside),
            nics=tuple(nics),
            components=(),
            component_links=(),
            partitions=self._partitions_in(name, local),
            name=name,
        )

    def _partitions_in(self, name: str, local: Mapping[int, int]) -> tuple[tuple[int, ...], ...]:
        inside = [part for part in self.partitions if local.keys() >= set(part)]
        if self.partitions and not inside:
            raise TopologyError(f"no partition of {self.name} is inside machine {_checks.shown(name)}")
        return tuple(tuple(map(local.__getitem__, part)) for part in inside)

    def renamed_machine(self, name: str) -> Topology:
        """Return a copy of this topology of one machine, in which the machine is called `name`."""
        if self.machine_names == (name,):
            return self
        return replace(self, gpus=tuple(replace(gpu, machine=name) for gpu in self.gpus))

    def rebuilt(
        self,
        change: Callable[[Topology], Topology],
        *,
        network: float | None = None,
        levels: Sequence[Level] | None = None,
    ) -> Topology:
        """Return `change(self)`; for a cluster, apply `change` to each template and join the results as before.

        network, levels: replacements for those of a cluster; any other topology ignores them.
        """
        return change(self)

    def with_unhealthy(self, gpus: Iterable[int]) -> Topology:
        """Return a copy in which `gpus` are marked unhealthy (they must not get jobs); other GPUs are unchanged.

        TopologyError for a number that is not a GPU's.
        """
        broken = {
            _checks.integer(gpu, f"gpus[{i}]", TopologyError, low=0, high=self.num_gpus - 1)
            for i, gpu in enumerate(_checks.sequence(gpus, "gpus", TopologyError))
        }
        described = (replace(gpu, healthy=False) if gpu.index in broken else gpu for gpu in self.gpus)
        return replace(self, gpus=tuple(described))

    def select(self, suits: Callable[[Gpu], bool]) -> tuple[int, ...]:
        """Return the numbers of the GPUs for which `suits` is true, ascending.

        In a cluster, `suits` gets the GPUs of templates, so it must not depend on index, machine name or UUID.
        """
        if not callable(suits):
            raise TopologyError(f"suits = {_checks.shown(suits)} is not a function")
        return tuple(gpu.index for gpu in self.gpus if suits(gpu))

    def is_legal(self, gpus: Iterable[int]) -> bool:
        """Return True if one job may get exactly `gpus`: they are one of the partitions, or there are no partitions."""
        return not self.partitions or frozenset(gpus) in self._partition_set

    @property
    def num_gpus(self) -> int:
        """Return the number of GPUs, n."""
        return len(self.gpus)

    @cached_property
    def machine_names(self) -> tuple[str, ...]:
        """Return the machines' names, in the order of their first GPU."""
        return tuple(self.gpus_of)

    @cached_property
    def gpus_of(self) -> Mapping[str, tuple[int, ...]]:
        """Return the GPUs of each machine, ascending, by the machine's name."""
        members: dict[str, list[int]] = {}
        for gpu in self.gpus:
            members.setdefault(gpu.machine, []).append(gpu.index)
        return MappingProxyType({machine: tuple(gpus) for machine, gpus in members.items()})

    @property
    def num_machines(self) -> int:
        """Return the number of machines."""
        return len(self.machine_names)

    @cached_property
    def machine_of(self) -> NDArray[np.int32]:
        """Return (num_gpus,) int32, read-only: the index into `machine_names` of each GPU's machine."""
        number = {name: i for i, name in enumerate(self.machine_names)}
        return _frozen(np.fromiter((number[gpu.machine] for gpu in self.gpus), np.int32, self.num_gpus))

    @cached_property
    def socket_of(self) -> NDArray[np.int32]:
        """Return (num_gpus,) int32, read-only: the number of each GPU's socket, counted over all machines.

        Sockets are numbered in the order of their first GPU. The GPUs of a machine whose socket is unknown share one
        number.
        """
        numbers: dict[tuple[str, int | None], int] = {}
        found = (numbers.setdefault((gpu.machine, gpu.socket), len(numbers)) for gpu in self.gpus)
        return _frozen(np.fromiter(found, np.int32, self.num_gpus))

    @cached_property
    def local_index(self) -> tuple[int, ...]:
        """Return, for each GPU, its index on its own machine, which is the number a process on that machine uses."""
        local = {gpu: i for gpus in self.gpus_of.values() for i, gpu in enumerate(gpus)}
        return tuple(local[gpu] for gpu in range(self.num_gpus))

    def link(self, u: int, v: int) -> Link:
        """Return the link of GPUs u and v, with `kind`, `lanes` and `gb_per_s`; TopologyError for a wrong number."""
        u = _checks.integer(u, "u", TopologyError, low=0, high=self.num_gpus - 1)
        v = _checks.integer(v, "v", TopologyError, low=0, high=self.num_gpus - 1)
        return self._link(u, v)

    @cached_property
    def attachments(self) -> Sequence[Hashable] | None:
        """Return (n,) a key of each GPU; those of one machine with equal keys have equal links to other machines.

        None if this holds for all GPUs of each machine.
        """
        if self.num_machines == 1:
            return None
        if self.component_links:
            return range(self.num_gpus)  # paths may lead anywhere
        links: dict[int, list[tuple[int, Link]]] = {}
        for u, v, link in self.links:
            if self.machine_of[u] != self.machine_of[v]:
                links.setdefault(u, []).append((v, link))
                links.setdefault(v, []).append((u, link))
        return [tuple(links.get(gpu, ())) for gpu in range(self.num_gpus)] if links else None

    def default_link(self, u: int, v: int) -> Link:
        """Return the link assumed between GPUs u and v if there is neither a direct link nor a path through components.

        Its kind is HOST, SYSTEM (different sockets), NETWORK (different machines), or NONE if its speed is 0.
        """
        a, b = self.gpus[u], self.gpus[v]
        if u == v:
            return SELF
        if a.machine != b.machine:
            return self._network
        if a.socket is None or b.socket is None or a.socket == b.socket:
            return self._host
        return self._system

    def bandwidth(self, u: int, v: int) -> float:
        """Return GB/s in one direction between GPUs u and v; 0 for u = v and without a path."""
        return self.link(u, v).gb_per_s

    def distance(self, u: int, v: int) -> float:
        """Return the distance between GPUs u and v, by the weights in `distances`; larger means farther apart."""
        return self.distances.of(self.link(u, v))

    def bandwidth_matrix(self) -> NDArray[np.float64]:
        """Return (n, n) float64, read-only: `bandwidth` of every pair, 0 on the diagonal; errors: see `link_matrix`."""
        return self._bandwidth_matrix

    def distance_matrix(self) -> NDArray[np.float64]:
        """Return (n, n) float64, read-only: `distance` of every pair, 0 on the diagonal; errors: see `link_matrix`."""
        return self._distance_matrix

    def link_matrix(self, value: Callable[[Link], float], dtype: DTypeLike = np.float64) -> NDArray[Any]:
        """Return (n, n), read-only: `value(link)` for the link of every pair of GPUs; the diagonal is `value(SELF)`.

        Raises TopologyError for more than 16,384 GPUs.
        """
        self._check_matrix_size()
        n, machine = self.num_gpus, self.machine_of
        socket = np.array([-1 if gpu.socket is None else gpu.socket for gpu in self.gpus])
        host, system, network = (value(link) for link in (self._host, self._system, self._network))
        matrix = np.empty((n, n), dtype)
        for rows in row_blocks(n):
            matrix[rows] = host
            apart = (socket[rows, None] != socket) & (socket[rows, None] >= 0) & (socket >= 0)
            matrix[rows][apart] = system
            matrix[rows][machine[rows, None] != machine] = network
        self._paths.fill(matrix, value)
        for u, v, link in self.links:
            matrix[u, v] = matrix[v, u] = value(link)
        np.fill_diagonal(matrix, value(SELF))
        return _frozen(matrix)

    @cached_property
    def partitioned_gpus(self) -> tuple[int, ...]:
        """Return the GPUs of machines with partitions, ascending; a job may get such GPUs only as a whole partition."""
        return tuple(range(self.num_gpus)) if self.partitions else ()

    @cached_property
    def unhealthy_gpus(self) -> tuple[int, ...]:
        """Return the GPUs that must not get jobs, ascending."""
        return self.select(lambda gpu: not gpu.healthy)

    @cached_property
    def speeds(self) -> str:
        """Return which column of `topoplace.links.SPEEDS` the speeds match: "nominal", "achievable" or "given".

        "given" means that not all links between GPUs match one column, as after a measurement, or that the table has no
        figure for any link. "assumed": there are only paths over PCIe and unknown links, none with a given speed.
        """
        from topoplace.topology import speed_overrides

        return speed_overrides.basis(self)

    def with_link_speeds(self, speeds: Speeds) -> Topology:
        """Return the same links at other speeds.

        speeds: one of
        - "nominal" or "achievable", a column of the table `topoplace.links.SPEEDS`;
        - GB/s of one link in one direction by kind, such as {LinkKind.NVSWITCH: 21.5, LinkKind.HOST: 20.0}, where
        NVSWITCH also covers an NVLink into a switch;
        - an (n, n) matrix of measured GB/s, which replaces the speed of every pair and keeps its kind.
        Raises TopologyError if the table has no figure for a link, if no link has a given kind, or if the matrix is not
        symmetric.
        """
        from topoplace.topology import speed_overrides

        return speed_overrides.changed(self, speeds)

    def with_distances(self, distances: DistanceWeights | str) -> Self:
        """Return the same topology with other weights for `distance`: weights, or the name of a preset ("sc17").

        TopologyError for an unknown preset.
        """
        if isinstance(distances, str):
            if distances not in DISTANCES:
                raise TopologyError(
                    f"distances = {_checks.shown(distances)} is none of {', '.join(DISTANCES)}"
                )
            distances = DISTANCES[distances]
        return replace(self, distances=distances)

    def diff(self, other: Topology) -> tuple[Change, ...]:
        """Return what differs in `other` from this topology, such as a lost link; () if both are equal.

        GPUs and machines are matched by name. Clusters are compared template by template, any other topology by its
        pairs of GPUs. Raises TopologyError for more than 1,024 GPUs in a template, or in a topology that is no cluster.
        """
        from topoplace.topology import compare

        _checks.instance(other, Topology, "other", TopologyError)
        return compare.changes(self, other)

    def check(self) -> tuple[Finding, ...]:
        """Return findings for an operator: notes, assumed speeds, unhealthy GPUs, unknown links, odd machines."""
        from topoplace.topology import compare

        return compare.findings(self)

    def derived(self, build: Callable[[Topology], Derived]) -> Derived:
        """Return `build(self)`, computed on the first call and kept as long as this topology exists.

        Other modules keep tables here that they derive from a topology. Of threads that ask at the same time, each may
        call `build`; all get the same result.
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

        TopologyError for more than 16,384 GPUs.
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

    def _check_matrix_size(self) -> None:
        if self.num_gpus > MAX_MATRIX_GPUS:
            raise TopologyError(
                f"a matrix of {self.num_gpus} x {self.num_gpus} is too large (at most {MAX_MATRIX_GPUS}); "
                "ask for single pairs"
            )

    def _without_ruled(self, entries: tuple[tuple[int, int, Link], ...]) -> tuple[tuple[int, int, Link], ...]:
        """Return `entries` without those whose link the pair would have anyway, by components or by default.

        The few distinct links are tested before the many entries.
        """
        distinct = {id(link): link for _, _, link in entries}
        rules = (self._host, self._system, self._network)
        ruled = {key for key, link in distinct.items() if link in rules or self.components}
        if not ruled:
            return entries
        return tuple(
            (u, v, link) for u, v, link in entries if id(link) not in ruled or link != self._indirect(u, v)
        )

    def _checked_component_links(self) -> tuple[tuple[int, int, Link], ...]:
        vertices = self.num_gpus + len(self.components)
        entries = validate.checked_links(self.component_links, vertices, "component_links", parallel=True)
        for a, b, _ in entries:
            if max(a, b) < self.num_gpus:
                raise TopologyError(
                    f"component_links: ({a}, {b}) joins two GPUs; such a pair belongs in links"
                )
        return entries

    def _link(self, u: int, v: int) -> Link:
        pair = (u, v) if u < v else (v, u)
        return self._link_of.get(pair) or self._indirect(u, v)

    def _indirect(self, u: int, v: int) -> Link:
        """Return the link of a pair without a direct one: its best path through components, or the default link."""
        found = self._paths.link(u, v) if u != v and self.components else None
        return found or self.default_link(u, v)

    @cached_property
    def _host(self) -> Link:
        return Link(LinkKind.HOST, 1, self.default) if self.default else NONE

    @cached_property
    def _system(self) -> Link:
        return Link(LinkKind.SYSTEM, 1, self.default) if self.default else NONE

    @cached_property
    def _network(self) -> Link:
        return Link(LinkKind.NETWORK, 1, self.network) if self.network else NONE

    @cached_property
    def _partition_set(self) -> frozenset[frozenset[int]]:
        return frozenset(map(frozenset, self.partitions))

    @cached_property
    def _paths(self) -> Paths:
        return Paths(self.num_gpus, self.components, self.component_links)

    @cached_property
    def _link_of(self) -> Mapping[tuple[int, int], Link]:
        return {(u, v): link for u, v, link in self.links}

    @cached_property
    def _digest(self) -> str:
        return hashlib.sha256(self.to_json().encode("ascii")).hexdigest()

    @cached_property
    def _bandwidth_matrix(self) -> NDArray[np.float64]:
        return self.link_matrix(lambda link: link.gb_per_s)

    @cached_property
    def _distance_matrix(self) -> NDArray[np.float64]:
        return self.link_matrix(self.distances.of)


def row_blocks(n: int) -> Iterator[slice]:
    """Yield slices of the rows of an (n, n) matrix; one takes milliseconds to fill, and Ctrl-C acts in between."""
    step = max(1, _BLOCK // max(1, n))
    for first in range(0, n, step):
        yield slice(first, first + step)


def _per_gpu(values: Sequence[Any], what: str, n: int) -> tuple[Any, ...]:
    found = _checks.sequence(values, what, TopologyError)
    if len(found) != n:
        raise TopologyError(f"{what} has {len(found)} entries for {n} GPUs")
    return found


def _frozen(array: NDArray[Any]) -> NDArray[Any]:
    array.setflags(write=False)
    return array
