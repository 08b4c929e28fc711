"""Topology: how the accelerators of a machine or a cluster are connected."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Self, TypeVar

import numpy as np

from topoplace import _checks, _topology_json, devices
from topoplace import links as _links
from topoplace.devices import Gpu, Nic
from topoplace.errors import TopologyError
from topoplace.links import NETWORK_GBPS, NONE, PCIE3_X16_GBPS, SELF, Link, LinkKind, LinkSpec, distance_of

if TYPE_CHECKING:
    import networkx as nx
    from numpy.typing import ArrayLike, DTypeLike, NDArray

    from topoplace.kernels import Graph

Derived = TypeVar("Derived")

MAX_GPUS = 1 << 20
"""More GPUs than this are refused, as a mistake."""
MAX_MATRIX_GPUS = 1 << 14
"""The largest topology that hands out (n, n) matrices: 2 GiB of float64."""


@dataclass(frozen=True, eq=False, repr=False)
class Topology:
    """Accelerators and the links between them; immutable, hashable, picklable.

    Build one with `from_links`, `from_matrix`, `from_networkx`, `from_json`, `from_nvidia_smi`, or take one
    from `topoplace.machines`. Only links that differ from the rule for all other pairs are stored: any other
    pair of one machine goes through the host at `default` GB/s, and any other pair of two machines through
    the network at `network` GB/s (0: there is no path).

    Two topologies are equal when all their content is, names included.
    """

    gpus: tuple[Gpu, ...]
    links: tuple[tuple[int, int, Link], ...] = ()
    """(u, v, link) with u < v, sorted: every pair that does not follow the rule."""
    default: float = PCIE3_X16_GBPS
    network: float = NETWORK_GBPS
    name: str = "custom"
    nics: tuple[Nic, ...] = ()

    def __post_init__(self) -> None:
        keep = object.__setattr__  # the one place that may write: it canonicalises before anybody looks
        keep(self, "name", _checks.text(self.name, "name", TopologyError))
        keep(self, "default", _checks.real(self.default, "default", TopologyError))
        keep(self, "network", _checks.real(self.network, "network", TopologyError))
        keep(self, "gpus", devices.checked_gpus(self.gpus, MAX_GPUS))
        keep(self, "nics", devices.checked_nics(self.nics, self.num_gpus))
        entries = _links.checked_links(self.links, self.num_gpus)
        keep(self, "links", self._without_ruled(entries))

    # ---- ways in -------------------------------------------------------------------------------------------

    @classmethod
    def from_links(
        cls,
        n: int,
        links: Iterable[LinkSpec],
        default: float = PCIE3_X16_GBPS,
        *,
        name: str = "custom",
        model: str | None = None,
        memory_gb: float | None = None,
        sockets: Sequence[int | None] | None = None,
        machines: Sequence[str] | None = None,
        names: Sequence[str] | None = None,
        network: float = NETWORK_GBPS,
        nics: Sequence[Nic] = (),
    ) -> Self:
        """A topology of `n` GPUs from its links.

        links: (u, v, gbps), (u, v, gbps, kind), (u, v, gbps, kind, lanes) or (u, v, Link) per linked pair, in GB/s
        one direction with all lanes together; each pair at most once, in either order; without a kind it is
        `LinkKind.UNKNOWN`.
        default: GB/s of every other pair inside a machine, network: between machines; 0 means no path.
        model, memory_gb: of every GPU. sockets, machines, names: one entry per GPU.
        Raises TopologyError naming the argument, the index and the value.
        """
        n = _checks.integer(n, "n", TopologyError, low=1, high=MAX_GPUS)
        name_of = _per_gpu(names, "names", n) if names is not None else [f"GPU{i}" for i in range(n)]
        machine_of = _per_gpu(machines, "machines", n) if machines is not None else ["machine0"] * n
        socket_of = _per_gpu(sockets, "sockets", n) if sockets is not None else [None] * n
        gpus = tuple(Gpu(i, name_of[i], model, machine_of[i], socket_of[i], memory_gb) for i in range(n))
        entries = _links.parsed_links(links, "links")
        return cls(gpus, entries, default, network, name, _checks.sequence(nics, "nics", TopologyError))

    @classmethod
    def from_matrix(cls, bandwidth: ArrayLike, **options: Any) -> Self:
        """A topology from its (n, n) bandwidth matrix in GB/s: symmetric, 0 on the diagonal, 0 for no path.

        Links have kind `LinkKind.UNKNOWN`. options: the per-GPU arguments of `from_links`.
        Raises TopologyError naming the index and the value, as in `bandwidth[2, 5] = nan`.
        """
        matrix = _checks.symmetric_matrix(bandwidth, "bandwidth", TopologyError)
        u, v = np.nonzero(np.triu(matrix))
        speeds, which = np.unique(matrix[u, v], return_inverse=True)
        link_of = [Link(LinkKind.UNKNOWN, 1, gbps) for gbps in speeds.tolist()]
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
    ) -> Self:
        """A topology from an undirected networkx graph whose edges carry GB/s in the attribute `weight`.

        GPU i is the i-th node. Optional attributes, as `to_networkx` writes them: of edges `kind`, `lanes`;
        of nodes `name`, `model`, `machine`, `socket` and `memory_gb`; of the graph `default`, `network` and
        `name`, which stand in for the arguments that are None. Raises TopologyError as `from_links` does.
        """
        _checks.simple_graph(g, "g", TopologyError)
        index = {node: i for i, node in enumerate(g.nodes)}
        gpus = tuple(_networkx_gpu(i, data) for i, data in enumerate(g.nodes.values()))
        specs = [_networkx_link(index[a], index[b], data, weight) for a, b, data in g.edges(data=True)]
        links = _links.parsed_links(specs, "edges")
        given: dict[str, Any] = {"default": default, "network": network, "name": name}
        settings = {key: g.graph[key] for key in given if key in g.graph}
        return cls(
            gpus, links, **settings | {key: value for key, value in given.items() if value is not None}
        )

    @classmethod
    def from_nvidia_smi(
        cls,
        text: str,
        gpu_model: str | None = None,
        *,
        pcie_gbps: float = PCIE3_X16_GBPS,
        name: str = "nvidia-smi",
        machine: str = "machine0",
    ) -> Topology:
        """The topology that `text`, printed by `nvidia-smi topo -m`, shows, network adapters included.

        The text tells no speeds: an NVLink has that of `gpu_model` (such as "V100" or "NVIDIA A100-SXM4-40GB"),
        25 GB/s without; every other path is assumed to have `pcie_gbps`. Raises TopologyError naming the line and
        the cell. See `topoplace.discovery.nvidia_smi`.
        """
        from topoplace.discovery import nvidia_smi

        return nvidia_smi.parse(text, gpu_model, pcie_gbps=pcie_gbps, name=name, machine=machine)

    @classmethod
    def from_json(cls, text: str) -> Self:
        """The topology that `to_json` wrote; TopologyError names what is wrong with any other text."""
        return cls(**_topology_json.parsed(text))

    # ---- ways out ------------------------------------------------------------------------------------------

    def to_json(self) -> str:
        """The topology as canonical JSON: the same content gives the same text; read it with `from_json`."""
        return _topology_json.written(self)

    def digest(self) -> str:
        """SHA-256 of the canonical JSON, in hexadecimal: the same for the same content in every release."""
        return self._digest

    def to_networkx(self) -> nx.Graph[int]:
        """All pairs that have a path, as a networkx graph on 0..n-1; `from_networkx` reads it back.

        Edges carry `bandwidth` (GB/s), `distance`, `kind` (LinkKind) and `lanes`; nodes the fields of `Gpu`.
        """
        import networkx as nx

        g: nx.Graph[int] = nx.Graph(name=self.name, default=self.default, network=self.network)
        for gpu in self.gpus:
            g.add_node(gpu.index, **{key: getattr(gpu, key) for key in devices.GPU_KEYS})
        for u in range(self.num_gpus):
            for v in range(u + 1, self.num_gpus):
                link = self._link(u, v)
                if link != NONE or self._rule(u, v) != NONE:
                    g.add_edge(
                        u,
                        v,
                        bandwidth=link.gbps,
                        distance=distance_of(link),
                        kind=link.kind,
                        lanes=link.lanes,
                    )
        return g

    # ---- what it says --------------------------------------------------------------------------------------

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
    def local_index(self) -> tuple[int, ...]:
        """(n,) each GPU's index on its own machine, which is what a process there calls it."""
        local = {gpu: i for gpus in self.gpus_of.values() for i, gpu in enumerate(gpus)}
        return tuple(local[gpu] for gpu in range(self.num_gpus))

    def link_kind(self, u: int, v: int) -> Link:
        """How GPUs u and v are connected; the result equals its `LinkKind` too."""
        u = _checks.integer(u, "u", TopologyError, low=0, high=self.num_gpus - 1)
        v = _checks.integer(v, "v", TopologyError, low=0, high=self.num_gpus - 1)
        return self._link(u, v)

    def bandwidth(self, u: int, v: int) -> float:
        """GB/s in one direction between GPUs u and v; 0 for u = v and where there is no path."""
        return self.link_kind(u, v).gbps

    def distance(self, u: int, v: int) -> float:
        """Distance between GPUs u and v by the weights of `topoplace.links.distance_of` (after SC'17)."""
        return distance_of(self.link_kind(u, v))

    def bandwidth_matrix(self) -> NDArray[np.float64]:
        """(n, n) float64, read-only: `bandwidth` of every pair, 0 on the diagonal."""
        return self._bandwidth_matrix

    def distance_matrix(self) -> NDArray[np.float64]:
        """(n, n) float64, read-only: `distance` of every pair, 0 on the diagonal."""
        return self._distance_matrix

    def link_matrix(self, value: Callable[[Link], float], dtype: DTypeLike = np.float64) -> NDArray[Any]:
        """(n, n) array of `value(link)` for every pair, of SELF on the diagonal."""
        n = self.num_gpus
        if n > MAX_MATRIX_GPUS:
            raise TopologyError(
                f"a matrix of {n} x {n} is too large (at most {MAX_MATRIX_GPUS}); ask for single pairs"
            )
        machine = self.machine_of
        socket = np.array([-1 if gpu.socket is None else gpu.socket for gpu in self.gpus])
        matrix = np.full((n, n), value(self._host), dtype)
        apart = (socket[:, None] != socket) & (socket[:, None] >= 0) & (socket >= 0)
        matrix[apart] = value(self._system)
        matrix[machine[:, None] != machine] = value(self._network)
        for u, v, link in self.links:
            matrix[u, v] = matrix[v, u] = value(link)
        np.fill_diagonal(matrix, value(SELF))
        return _frozen(matrix)

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

    def __reduce__(self) -> tuple[Callable[[str], Topology], tuple[str]]:
        return type(self).from_json, (self.to_json(),)

    # ---- inside --------------------------------------------------------------------------------------------

    def _without_ruled(self, entries: tuple[tuple[int, int, Link], ...]) -> tuple[tuple[int, int, Link], ...]:
        """The entries that are not what `_rule` gives; few different links are asked, not each of many entries."""
        distinct = {id(link): link for _, _, link in entries}
        ruled = {key for key, link in distinct.items() if link in (self._host, self._system, self._network)}
        if not ruled:
            return entries
        return tuple(
            (u, v, link) for u, v, link in entries if id(link) not in ruled or link != self._rule(u, v)
        )

    def _link(self, u: int, v: int) -> Link:
        pair = (u, v) if u < v else (v, u)
        return self._link_of.get(pair) or self._rule(u, v)

    def _rule(self, u: int, v: int) -> Link:
        """The link of a pair that none was given for."""
        a, b = self.gpus[u], self.gpus[v]
        if u == v:
            return SELF
        if a.machine != b.machine:
            return self._network
        if a.socket is None or b.socket is None or a.socket == b.socket:
            return self._host
        return self._system

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
        return self.link_matrix(lambda link: link.gbps)

    @cached_property
    def _distance_matrix(self) -> NDArray[np.float64]:
        return self.link_matrix(distance_of)


def _per_gpu(values: Sequence[Any], what: str, n: int) -> tuple[Any, ...]:
    found = _checks.sequence(values, what, TopologyError)
    if len(found) != n:
        raise TopologyError(f"{what} has {len(found)} entries for {n} GPUs")
    return found


def _networkx_gpu(i: int, data: Mapping[str, Any]) -> Gpu:
    known = {key: data[key] for key in devices.GPU_KEYS if key in data}
    return Gpu(i, known.pop("name", f"GPU{i}"), **known)


def _networkx_link(u: int, v: int, data: Mapping[str, Any], weight: str) -> LinkSpec:
    if weight not in data:
        raise TopologyError(f"edge ({u}, {v}) has no attribute {weight!r}")
    return u, v, data[weight], data.get("kind", LinkKind.UNKNOWN), data.get("lanes", 1)


def _frozen(array: NDArray[Any]) -> NDArray[Any]:
    array.setflags(write=False)
    return array
