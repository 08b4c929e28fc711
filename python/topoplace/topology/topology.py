"""Topology: how the accelerators of a machine or a cluster are connected."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import combinations
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Self, SupportsIndex, TypeVar

import numpy as np

from topoplace import _checks
from topoplace.errors import TopologyError, warn_deprecated
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
"""More GPUs than this are refused, as a mistake."""
MAX_MATRIX_GPUS = 1 << 14
"""The largest topology that hands out (n, n) matrices: 2 GiB of float64."""


@dataclass(frozen=True, eq=False, repr=False)
class Topology:
    """Accelerators and the links between them; immutable, hashable, picklable.

    Build one with a `from_…` method, `cluster` or `discover`, or take one from `topoplace.machines`.

    How a pair of GPUs is connected, the first that applies: its direct link in `links`; the best path through
    `components` (see `topoplace.topology.routing`); the rule: through the host at `default` GB/s inside a machine,
    through the network at `network` GB/s between machines (0: there is no path). Links that say no more than what would
    hold without them are not stored.

    Two topologies are equal when all their content is, names included.
    """

    gpus: Sequence[Gpu]
    links: Sequence[tuple[int, int, Link]] = ()
    """(u, v, link) with u < v, sorted: the direct links between GPUs."""
    default: float = PCIE3_X16_GB_PER_S
    network: float = NETWORK_GB_PER_S
    name: str = "custom"
    nics: tuple[Nic, ...] = ()
    components: tuple[Component, ...] = field(default=(), kw_only=True)
    """The sockets, NUMA nodes, PCIe switches and NVSwitches, where they are known."""
    component_links: tuple[tuple[int, int, Link], ...] = field(default=(), kw_only=True)
    """(a, b, link) with a < b, sorted: vertex i is GPU i, vertex `num_gpus` + j is component j."""
    partitions: Sequence[tuple[int, ...]] = field(default=(), kw_only=True)
    """The sets of GPUs that may be given to a job, as on virtual machines with NVSwitches; (): any set may."""
    notes: tuple[str, ...] = field(default=(), kw_only=True)
    """What a reader must know, such as what the text it was read from does not tell; one sentence each."""
    distances: DistanceWeights = field(default=DISTANCES["sc17"], kw_only=True)
    """The weights that `distance` adds up."""

    def __post_init__(self) -> None:
        keep = object.__setattr__  # the one place that may write: it canonicalises before anybody looks
        keep(self, "name", _checks.text(self.name, "name", TopologyError))
        keep(self, "default", _checks.real(self.default, "default", TopologyError))
        keep(self, "network", _checks.real(self.network, "network", TopologyError))
        keep(self, "gpus", devices.checked_gpus(self.gpus, MAX_GPUS))
        keep(self, "nics", devices.checked_nics(self.nics, self.num_gpus))
        keep(self, "components", devices.checked_components(self.components))
        keep(self, "component_links", self._checked_component_links())
        keep(self, "partitions", devices.checked_partitions(self.partitions, self.num_gpus))
        keep(self, "notes", checked_notes(self.notes))
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
        """A topology of `n` GPUs from its links.

        links: (u, v, gb_per_s), (u, v, gb_per_s, kind), (u, v, gb_per_s, kind, lanes) or (u, v, Link) per linked
        pair, in GB/s one direction with all lanes together; each pair at most once, in either order; without a kind
        it is `LinkKind.UNKNOWN`.
        default: GB/s of every other pair inside a machine, network: between machines; 0 means no path.
        model, memory_gb: of every GPU. sockets, machines, names: one entry per GPU.
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
        """A topology from its (n, n) bandwidth matrix in GB/s: symmetric, 0 on the diagonal, 0 for no path.

        Links have kind `LinkKind.UNKNOWN`. options: the per-GPU arguments of `from_links`.
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
        """A topology from an undirected networkx graph whose edges carry GB/s in the attribute `weight`.

        GPU i is the i-th node. Optional attributes, as `to_networkx` writes them: of edges `kind`, `lanes`;
        of nodes `name`, `model`, `machine`, `socket` and `memory_gb`; of the graph `default`, `network` and
        `name`, which stand in for the arguments that are None. Raises TopologyError as `from_links` does.
        """
        given: dict[str, Any] = {"default": default, "network": network, "name": name}
        from topoplace.topology import topology_networkx

        return topology_networkx.read(g, weight, given)

    @classmethod
    def from_nvidia_smi(cls, text: str | bytes, gpu_model: str | None = None, **options: Any) -> Topology:
        """The topology that `text`, printed by `nvidia-smi topo -m`, shows, network adapters included.

        The text tells no speeds: an NVLink has that of `gpu_model` (such as "V100" or "NVIDIA A100-SXM4-40GB"),
        25 GB/s without. options: of `topoplace.discovery.nvidia.topo_matrix.parse`, such as pcie_gb_per_s, the speed of
        every other path. Raises TopologyError naming the line and the cell.
        """
        from topoplace.discovery.nvidia import topo_matrix

        return topo_matrix.parse(text, gpu_model, **options)

    @classmethod
    def from_nccl_xml(cls, text: str | bytes, gpu_model: str | None = None, **options: Any) -> Topology:
        """The topology that `text`, a system file of NCCL or RCCL (as of NCCL_TOPO_DUMP_FILE), describes.

        options: of `topoplace.discovery.nccl.system_xml.parse`. Raises TopologyError naming the line.
        """
        from topoplace.discovery.nccl import system_xml

        return system_xml.parse(text, gpu_model, **options)

    @classmethod
    def from_hwloc_xml(cls, text: str | bytes, **options: Any) -> Topology:
        """The topology that `text`, written by `lstopo machine.xml` of hwloc 2 or 3, describes.

        options: of `topoplace.discovery.hwloc.hwloc_xml.parse`. Raises TopologyError naming the line.
        """
        from topoplace.discovery.hwloc import hwloc_xml

        return hwloc_xml.parse(text, **options)

    @classmethod
    def from_rocm_smi(cls, text: str | bytes, gpu_model: str | None = None, **options: Any) -> Topology:
        """The topology that `text`, printed by `rocm-smi --showtopo` or `amd-smi topology`, shows.

        options: of `topoplace.discovery.amd.smi_tables.parse`. Raises TopologyError naming the line and the cell.
        """
        from topoplace.discovery.amd import smi_tables

        return smi_tables.parse(text, gpu_model, **options)

    @classmethod
    def from_text(cls, text: str | bytes, **options: Any) -> Topology:
        """The machines that `text`, in any format of `topoplace.discovery.FORMATS`, describes.

        options: such as gpu_model="A100"; a format that has no use for one ignores it. Raises TopologyError with line
        and reason, also for text about a network alone, which `topoplace.discovery.read` and `cluster` make use of.
        """
        from topoplace import discovery

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
        """Machines joined by a fabric: thousands of machines of few kinds cost as little as their names.

        machines: one topology, which every machine is like; or one per machine, in a list, or by name. Each has a
        single machine, or several that no link joins, or is a cluster itself, whose levels come along.
        count: how many, where one is given; otherwise as many as there are names or machines of the fabric.
        fabric: the levels that join the machines, see `topoplace.Fabric`. racks: machines per rack, or the rack of each
        machine: a level "rack" outside of NVLink domains and inside of all other levels. names: of the machines.
        network: GB/s in one direction between two machines that meet at no level, and of levels without a speed;
        12.5, or that of the clusters to be joined.

        Two GPUs of different machines have the speed of the first level at which their machines are in one domain,
        divided by its oversubscription. Raises TopologyError where the numbers of machines do not agree.
        """
        from topoplace.topology.assemble import join

        return join(machines, count, fabric, racks, names, network, name)

    @classmethod
    def discover(cls) -> Topology:
        """This host's accelerators and how they are connected, as its vendor's tools tell.

        Raises TopologyError that says what was tried where there is no accelerator. See
        `topoplace.discovery.live.discover`.
        """
        from topoplace.discovery.live import discover

        return discover.discover()

    @classmethod
    def from_json(cls, text: str) -> Topology:
        """The topology that `to_json` wrote; TopologyError names what is wrong with any other text."""
        from topoplace.topology import topology_json

        return topology_json.parsed(text)

    # ---- ways out ------------------------------------------------------------------------------------------

    def to_json(self) -> str:
        """The topology as canonical JSON: the same content gives the same text; read it with `from_json`."""
        from topoplace.topology import topology_json

        return topology_json.written(self)

    def digest(self) -> str:
        """SHA-256 of the canonical JSON, in hexadecimal: the same for the same content in every release."""
        return self._digest

    def to_networkx(self) -> nx.Graph[int]:
        """All pairs that have a path, as a networkx graph on 0..n-1; `from_networkx` reads it back.

        Edges carry `bandwidth` (GB/s), `distance`, `kind` (LinkKind) and `lanes`; nodes the fields of `Gpu`. Adapters,
        components, partitions, notes and levels have no place in it. TopologyError for more than 2,048 GPUs.
        """
        from topoplace.topology import topology_networkx

        return topology_networkx.written(self)

    # ---- what it says --------------------------------------------------------------------------------------

    @property
    def fabric(self) -> Fabric | None:
        """The machines and the levels that join them, of a topology made by `cluster`; None for any other."""
        return None

    @property
    def templates(self) -> tuple[Topology, ...]:
        """The different machines of a topology made by `cluster`, each once; any other has itself."""
        return (self,)

    @property
    def template_of(self) -> tuple[int, ...]:
        """(m,) the index into `templates` of each machine of a topology made by `cluster`; (0,) for any other."""
        return (0,)

    @property
    def level_links(self) -> tuple[Link, ...]:
        """How two GPUs that meet at each level of the fabric, and have all its links, are connected."""
        return ()

    def machine(self, name: str) -> Topology:
        """The machine called `name` as a topology of its own; TopologyError where there is none."""
        gpus = self.gpus_of.get(name)
        if gpus is None:
            raise TopologyError(f"name = {_checks.shown(name)} is no machine of {self.name}")
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
        """A topology of one machine with that machine called `name`."""
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
        """What `change` makes of this topology; of one made by `cluster`, of each template, joined as they were.

        network, levels: of a topology made by `cluster`, what else is to change.
        """
        return change(self)

    def with_unhealthy(self, gpus: Iterable[int]) -> Topology:
        """The same topology with these GPUs not healthy, and all others as they were."""
        broken = {
            _checks.integer(gpu, f"gpus[{i}]", TopologyError, low=0, high=self.num_gpus - 1)
            for i, gpu in enumerate(_checks.sequence(gpus, "gpus", TopologyError))
        }
        described = (replace(gpu, healthy=False) if gpu.index in broken else gpu for gpu in self.gpus)
        return replace(self, gpus=tuple(described))

    def select(self, suits: Callable[[Gpu], bool]) -> tuple[int, ...]:
        """The GPUs for which `suits` is true, ascending."""
        return tuple(gpu.index for gpu in self.gpus if suits(gpu))

    def is_legal(self, gpus: Iterable[int]) -> bool:
        """Whether the partitions allow to give `gpus` to one job; where there are none, any set may be given."""
        return not self.partitions or frozenset(gpus) in self._partition_set

    @property
    def num_gpus(self) -> int:
        """How many GPUs there are, n."""
        return len(self.gpus)

    @cached_property
    def machine_names(self) -> tuple[str, ...]:
        """The machines, in the order of their first GPU."""
        return tuple(self.gpus_of)

    @cached_property
    def gpus_of(self) -> Mapping[str, tuple[int, ...]]:
        """The GPUs of each machine, ascending, by the machine's name."""
        members: dict[str, list[int]] = {}
        for gpu in self.gpus:
            members.setdefault(gpu.machine, []).append(gpu.index)
        return MappingProxyType({machine: tuple(gpus) for machine, gpus in members.items()})

    @property
    def num_machines(self) -> int:
        """How many machines there are."""
        return len(self.machine_names)

    @cached_property
    def machine_of(self) -> NDArray[np.int32]:
        """(n,) int32, read-only: the index into `machine_names` of each GPU's machine."""
        number = {name: i for i, name in enumerate(self.machine_names)}
        return _frozen(np.fromiter((number[gpu.machine] for gpu in self.gpus), np.int32, self.num_gpus))

    @cached_property
    def socket_of(self) -> NDArray[np.int32]:
        """(n,) int32, read-only: the number of each GPU's socket, counted over all machines in the order of their first
        GPU; the GPUs of a machine whose socket is unknown share one.
        """
        numbers: dict[tuple[str, int | None], int] = {}
        found = (numbers.setdefault((gpu.machine, gpu.socket), len(numbers)) for gpu in self.gpus)
        return _frozen(np.fromiter(found, np.int32, self.num_gpus))

    @cached_property
    def local_index(self) -> tuple[int, ...]:
        """(n,) each GPU's index on its own machine, which is what a process there calls it."""
        local = {gpu: i for gpus in self.gpus_of.values() for i, gpu in enumerate(gpus)}
        return tuple(local[gpu] for gpu in range(self.num_gpus))

    def link_kind(self, u: int, v: int) -> Link:
        """Deprecated name of `link`, whose result has the kind as `.kind`."""
        warn_deprecated("Topology.link_kind", "Topology.link")
        return self.link(u, v)

    def link(self, u: int, v: int) -> Link:
        """Return the link between GPUs u and v, with `kind`, `lanes` and `gb_per_s`."""
        u = _checks.integer(u, "u", TopologyError, low=0, high=self.num_gpus - 1)
        v = _checks.integer(v, "v", TopologyError, low=0, high=self.num_gpus - 1)
        return self._link(u, v)

    def default_link(self, u: int, v: int) -> Link:
        """The link that GPUs u and v have where there is no direct one and no path through components."""
        a, b = self.gpus[u], self.gpus[v]
        if u == v:
            return SELF
        if a.machine != b.machine:
            return self._network
        if a.socket is None or b.socket is None or a.socket == b.socket:
            return self._host
        return self._system

    def bandwidth(self, u: int, v: int) -> float:
        """GB/s in one direction between GPUs u and v; 0 for u = v and where there is no path."""
        return self.link(u, v).gb_per_s

    def distance(self, u: int, v: int) -> float:
        """Distance between GPUs u and v: the sum of the weights, in `distances`, of the levels between them."""
        return self.distances.of(self.link(u, v))

    def bandwidth_matrix(self) -> NDArray[np.float64]:
        """(n, n) float64, read-only: `bandwidth` of every pair, 0 on the diagonal."""
        return self._bandwidth_matrix

    def distance_matrix(self) -> NDArray[np.float64]:
        """(n, n) float64, read-only: `distance` of every pair, 0 on the diagonal."""
        return self._distance_matrix

    def link_matrix(self, value: Callable[[Link], float], dtype: DTypeLike = np.float64) -> NDArray[Any]:
        """(n, n) array of `value(link)` for every pair, of SELF on the diagonal."""
        self._check_matrix_size()
        n, machine = self.num_gpus, self.machine_of
        socket = np.array([-1 if gpu.socket is None else gpu.socket for gpu in self.gpus])
        matrix = np.full((n, n), value(self._host), dtype)
        apart = (socket[:, None] != socket) & (socket[:, None] >= 0) & (socket >= 0)
        matrix[apart] = value(self._system)
        matrix[machine[:, None] != machine] = value(self._network)
        self._paths.fill(matrix, value)
        for u, v, link in self.links:
            matrix[u, v] = matrix[v, u] = value(link)
        np.fill_diagonal(matrix, value(SELF))
        return _frozen(matrix)

    @cached_property
    def partitioned_gpus(self) -> tuple[int, ...]:
        """The GPUs of machines that have partitions, ascending: of these, only such sets may be given to a job."""
        return tuple(range(self.num_gpus)) if self.partitions else ()

    @cached_property
    def unhealthy_gpus(self) -> tuple[int, ...]:
        """The GPUs that must not get jobs, ascending."""
        return self.select(lambda gpu: not gpu.healthy)

    @cached_property
    def speeds(self) -> str:
        """Which figures of `topoplace.links.SPEEDS` the links between GPUs have: "nominal", "achievable" or "given".

        "given": neither throughout, as after a measurement; also where there is no link that the table knows.
        """
        from topoplace.topology import speed_overrides

        return speed_overrides.basis(self)

    def with_link_speeds(self, speeds: Speeds) -> Topology:
        """The same links at other speeds.

        speeds: "nominal" or "achievable", of the table `topoplace.links.SPEEDS`; or GB/s of one link in one direction
        by kind, such as {LinkKind.NVSWITCH: 21.5, LinkKind.HOST: 20.0}, where NVSWITCH is also an NVLink into a switch;
        or an (n, n) matrix of measured GB/s, which replaces the speed of every pair and keeps its kind.
        Raises TopologyError where the table has no figure for a link, where there is no link of a kind, or where the
        matrix is not symmetric.
        """
        from topoplace.topology import speed_overrides

        return speed_overrides.changed(self, speeds)

    def with_distances(self, distances: DistanceWeights | str) -> Self:
        """The same topology with other weights of `distance`; a preset by its name, such as "sc17"."""
        if isinstance(distances, str):
            if distances not in DISTANCES:
                raise TopologyError(
                    f"distances = {_checks.shown(distances)} is none of {', '.join(DISTANCES)}"
                )
            distances = DISTANCES[distances]
        return replace(self, distances=distances)

    def diff(self, other: Topology) -> tuple[Change, ...]:
        """What is different in `other`, such as a link that was lost: nothing where the two are equal.

        GPUs and machines are the same where their names are. Machines of clusters that share templates cost nothing;
        any other topology is compared pair by pair. Raises TopologyError for one that is too large for that.
        """
        from topoplace.topology import compare

        _checks.instance(other, Topology, "other", TopologyError)
        return compare.changes(self, other)

    def check(self) -> tuple[Finding, ...]:
        """What an operator should look at: notes, sick GPUs, unknown links, GPUs or machines unlike their fellows."""
        from topoplace.topology import compare

        return compare.findings(self)

    def derived(self, build: Callable[[Topology], Derived]) -> Derived:
        """`build(self)`, built on first use and kept as long as the topology: for tables of those who read it."""
        kept: dict[Callable[[Topology], Any], Any] = self._derived
        if build not in kept:
            kept[build] = build(self)
        found: Derived = kept[build]
        return found

    @cached_property
    def graph(self) -> Graph:
        """The bandwidth matrix as a handle the kernels take, built once."""
        from topoplace import kernels

        return kernels.Graph(self.bandwidth_matrix())

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        return self._digest == other._digest if isinstance(other, Topology) else NotImplemented

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
        """The entries that are not what `_rule` gives; few different links are asked, not each of many entries."""
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
        entries = validate.checked_links(self.component_links, vertices, "component_links")
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
        """The link of a pair that no direct one is there for."""
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
    def _derived(self) -> dict[Callable[[Topology], Any], Any]:
        return {}

    @cached_property
    def _digest(self) -> str:
        return hashlib.sha256(self.to_json().encode("ascii")).hexdigest()

    @cached_property
    def _bandwidth_matrix(self) -> NDArray[np.float64]:
        return self.link_matrix(lambda link: link.gb_per_s)

    @cached_property
    def _distance_matrix(self) -> NDArray[np.float64]:
        return self.link_matrix(self.distances.of)


def _per_gpu(values: Sequence[Any], what: str, n: int) -> tuple[Any, ...]:
    found = _checks.sequence(values, what, TopologyError)
    if len(found) != n:
        raise TopologyError(f"{what} has {len(found)} entries for {n} GPUs")
    return found


def _frozen(array: NDArray[Any]) -> NDArray[Any]:
    array.setflags(write=False)
    return array
