"""Small clusters of many kinds, and for each a stream of operations drawn once: what policies are asked is the same."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import combinations
from typing import Any, Final, NamedTuple

import topoplace as tp
from topoplace.cluster.hosts import HostResources
from topoplace.jobs.job_graph import PATTERNS
from topoplace.topology.devices import Nic

_SEED: Final = 20261126
_PLAIN: Final = ("ring", "chain", "star", "clique", "allreduce", "independent", "tree")
_WEIGHTED: Final = {
    3: tp.JobGraph.from_edges(3, [(0, 1, 4.0), (1, 2, 1.0)], name="uneven"),
    4: tp.JobGraph.from_edges(4, [(0, 3, 5.0), (1, 2, 4.0), (0, 1, 1.0)], name="uneven"),
    6: tp.JobGraph.mesh((2, 3)),
    8: tp.JobGraph.torus((2, 2, 2)),
}


class Operation(NamedTuple):
    """One step of a stream."""

    kind: str
    """place, explain, queue, release, drain, undrain, slice or restore."""
    jobs: tuple[tp.JobGraph, ...] = ()
    choice: float = 0.0
    """0..1: which of the running jobs, GPUs or machines it concerns."""


class Stream(NamedTuple):
    """A cluster to begin with, and the requirements of the jobs that come to it."""

    cluster: Callable[[], tp.Cluster]
    length: int
    sizes: Sequence[int]
    """The numbers of tasks of its jobs, frequent ones more than once."""
    wishes: Sequence[Mapping[str, Any]]
    """Requirements, of which a job has up to three."""

    def operations(self, name: str) -> list[Operation]:
        """Return the operations, which depend on the stream's name and on nothing that a policy decides."""
        rng = random.Random(f"{_SEED} {name}")
        return [self._operation(rng) for _ in range(self.length)]

    def _operation(self, rng: random.Random) -> Operation:
        kind = rng.choice(
            ["place"] * 7
            + ["explain"] * 6
            + ["queue"] * 4
            + ["release"] * 7
            + ["drain", "undrain", "slice"]
            + ["restore"]
        )
        number = {"place": 1, "explain": 1, "queue": rng.randint(1, 4)}.get(kind, 0)
        jobs = [self._job(rng) for _ in range(number)]
        jobs += rng.sample(jobs, rng.randint(0, number)) if kind == "queue" else []
        return Operation(kind, tuple(jobs), rng.random())

    def _job(self, rng: random.Random) -> tp.JobGraph:
        size = rng.choice(self.sizes)
        if not size:
            return tp.JobGraph.without_gpus(
                cpus=rng.choice([1.5, 6.0, 20.0]), memory_gb=rng.choice([None, 20.0])
            )
        job = PATTERNS[rng.choice(_PLAIN)](size)
        if size in _WEIGHTED and rng.random() < 0.25:
            job = _WEIGHTED[size]
        for wish in rng.sample(list(self.wishes), rng.choice([0, 1, 1, 2, 2, 3])):
            try:
                job = job.with_(**wish)
            except tp.JobGraphError:  # it contradicts another one, or is for larger jobs
                continue
        return job.with_(bandwidth_sensitive=rng.random() < 0.5)


def _machine(
    model: str, memory_gb: float, links: Sequence[tuple[int, int, float]], sockets: str
) -> tp.Topology:
    """Return a machine with one GPU for each digit of `sockets`, its socket."""
    plain = tp.Topology.from_links(len(sockets), links, 12.0, name=model, model=model, memory_gb=memory_gb)
    gpus = [replace(gpu, socket=int(socket)) for gpu, socket in zip(plain.gpus, sockets, strict=True)]
    return replace(plain, gpus=tuple(gpus))


_PAIRS = _machine("V100", 16.0, [(0, 1, 50.0), (2, 3, 25.0)], "0011")
_SMALL = _machine("V100", 16.0, [(0, 1, 25.0)], "01")
_LARGE = _machine("A100", 40.0, [(u, v, 50.0) for u, v in combinations(range(6), 2) if u + v != 5], "000111")
_SLOW = _machine("L4", 24.0, [], "0011")


def _partitioned(size: int) -> tp.Topology:
    """Return a machine of which a job gets one GPU, a pair, or all."""
    links = [(gpu, gpu + 1, 50.0) for gpu in range(0, size, 2)]
    machine = _machine("H100", 80.0, links, "0" * size)
    parts = [(gpu,) for gpu in range(size)] + [(gpu, gpu + 1) for gpu in range(0, size, 2)]
    return replace(machine, partitions=tuple(dict.fromkeys((*parts, tuple(range(size))))))


def _alone() -> tp.Cluster:
    return tp.Cluster(tp.machines.get("dgx1-v100"), HostResources(32, 128.0, drives=2))


def _unjoined() -> tp.Cluster:
    """Return three machines that no fabric joins, with GPUs of two sizes; one is broken and two are isolated."""
    links = [(0, 1, 50.0), (1, 2, 25.0), (3, 4, 50.0), (4, 5, 50.0), (6, 7, 25.0)]
    plain = tp.Topology.from_links(9, links, 10.0, machines=["a"] * 3 + ["b"] * 3 + ["c"] * 3, model="V100")
    gpus = [
        replace(gpu, memory_gb=32.0 if gpu.index > 5 else 16.0, healthy=gpu.index != 2) for gpu in plain.gpus
    ]
    return tp.Cluster(replace(plain, gpus=tuple(gpus)))


def _racks() -> tp.Cluster:
    """Return seven machines of four kinds in racks and rows, with hosts of their own; one is in no rack."""
    machines = {
        "v0": _PAIRS,
        "v1": _PAIRS,
        "a0": _LARGE,
        "l0": _SLOW,
        "v2": _PAIRS,
        "a1": _LARGE,
        "l1": _SLOW,
    }
    racks = tp.Level("rack", ("r0", "r0", "r1", "r1", "r2", "r2", None), gb_per_s=25.0)
    rows = tp.Level("row", ("east", "east", "east", "east", "west", "west", "west"), oversubscription=2.0)
    fabric = tp.Fabric(tuple(machines), (racks, rows))
    small, large = HostResources(16, 64.0, drives=1), HostResources(48, 256.0, drives=2)
    hosts = {name: large if name.startswith("a") else small for name in machines}
    return tp.Cluster(tp.Topology.cluster(machines, fabric=fabric, network=12.5), hosts)


def _equal() -> tp.Cluster:
    """Return eight equal machines of two GPUs, of which two lend theirs to their pool."""
    fabric = tp.Fabric.regular(8, {"rack": 2, "row": 4})
    hosts = [HostResources(8, 32.0, drives=1, pool="lent" if number > 5 else None) for number in range(8)]
    return tp.Cluster(tp.Topology.cluster(_SMALL, fabric=fabric), hosts)


def _partitions() -> tp.Cluster:
    """Return machines with fixed partitions next to one without."""
    machines = {"p0": _partitioned(4), "whole": _PAIRS, "p1": _partitioned(4), "p2": _partitioned(2)}
    return tp.Cluster(tp.Topology.cluster(machines, racks=2, network=12.5), HostResources(12, 48.0))


def _divided() -> tp.Cluster:
    """Return machines with shares and MIG slices of GPUs, some of them in use."""
    machine = _machine("A100", 40.0, [(0, 1, 50.0), (1, 2, 50.0)], "001")
    cluster = tp.Cluster(tp.Topology.cluster({"m0": machine, "m1": machine, "v": _PAIRS}, network=12.5))
    cluster.slice_gpu(0, ("3g.20gb", "2g.10gb", "1g.5gb"))
    cluster.slice_gpu(4, ("1g.5gb",) * 4)
    cluster.allocate("sliced", [0], tp.JobGraph.independent(1).with_(mig="2g.10gb"))
    cluster.allocate("shared", [7], tp.JobGraph.independent(1).with_(gpu_fraction=0.3))
    return cluster


def _divided_alone() -> tp.Cluster:
    """Return one machine with sliced and shared GPUs."""
    machine = _machine("A100", 40.0, [(0, 1, 50.0), (1, 2, 50.0), (2, 3, 25.0)], "0011")
    cluster = tp.Cluster(machine, HostResources(24, 96.0))
    cluster.slice_gpu(1, ("3g.20gb", "1g.5gb"))
    return cluster


def _islands() -> tp.Cluster:
    """Return machines in two racks without a path between them; and some GPUs of one machine without a path."""
    pairs = tp.Topology.from_links(4, [(0, 1, 50.0), (2, 3, 25.0)], 0.0, model="V100")
    chain = tp.Topology.from_links(4, [(0, 1, 50.0), (1, 2, 25.0)], 0.0, model="V100")
    machines = {"p0": pairs, "c0": chain, "p1": pairs, "c1": chain, "p2": pairs}
    racks = tp.Fabric(tuple(machines), (tp.Level("rack", ("a", "b", "b", "a", "b"), gb_per_s=12.5),))
    return tp.Cluster(tp.Topology.cluster(machines, fabric=racks, network=0.0), HostResources(8, 32.0))


def _rails() -> tp.Cluster:
    """Return machines each of whose GPUs has its own network adapter, on rails; one has adapters for pairs."""
    machine = replace(_PAIRS, nics=tuple(_nic(rail, {rail}) for rail in range(4)))
    other = replace(_SLOW, nics=(_nic(0, {0, 1}), _nic(1, {2, 3})))
    machines = {"r0": machine, "r1": machine, "odd": other, "r2": machine, "r3": machine}
    levels = (tp.Level("rails", ("x",) * 5, rail=True), tp.Level("rack", ("p", "p", "q", "q", "q")))
    fabric = tp.Fabric(tuple(machines), levels)
    return tp.Cluster(tp.Topology.cluster(machines, fabric=fabric, network=12.5), HostResources(16, 64.0))


def _nic(rail: int, near: set[int]) -> Nic:
    return Nic(f"NIC{rail}", tuple("PIX" if gpu in near else "SYS" for gpu in range(4)), 25.0, rail)


_HOST: Final = ({"cpus": 6.0}, {"cpus": 2.5, "memory_gb": 20.0}, {"memory_gb": 40.0, "processes": 2})
_APART: Final = ({"single_machine": True}, {"anti_affinity": True})
_SC17: Final = (
    {"min_utility": 0.8},
    {"min_utility": 0.95},
    {"profile": "alexnet/1"},
    {"memory_bandwidth": 20.0},
)
_BY_LEVEL: Final = (
    {"within": "rack"},
    {"within": "row", "prefer": "rack"},
    {"prefer": "rack"},
    {"spread": "rack"},
    {"max_machines": 2},
    {"same_gpus": True},
    {"same_gpus": True, "max_machines": 3},
)
_PARTS: Final = (
    *({"gpu_fraction": share} for share in (0.2, 0.5, 0.7)),
    *({"mig": profile} for profile in ("1g.5gb", "2g.10gb", "3g.20gb", "7g.40gb", "1g.10gb")),
)

STREAMS: Final = {
    "alone": Stream(_alone, 48, (0, 0, 1, 2, 2, 3, 4, 5, 8), (*_HOST, *_APART, *_SC17, {"drives": 1})),
    "unjoined": Stream(
        _unjoined,
        *(36, (1, 2, 2, 3, 3, 4, 5)),
        (*_APART, {"gpu_memory_gb": 10.0}, {"gpu_memory_gb": 20.0}, {"cpus": 1.0}, {"max_machines": 1}),
    ),
    "racks": Stream(
        _racks,
        *(72, (1, 2, 3, 4, 4, 6, 8, 12)),
        (
            *(*_HOST, *_APART, *_BY_LEVEL, *_SC17[:2], {"gpu_memory_gb": 16.0}, {"gpu_memory_gb": 20.0}),
            *({"gpu_model": ("A100", "L4")}, {"gpu_model": "V100"}, {"gpu_model": "T4"}, {"drives": 2}),
        ),
    ),
    "equal": Stream(
        *(_equal, 56, (0, 0, 1, 2, 2, 3, 4, 4, 6)),
        (*_HOST, *_APART, *_BY_LEVEL, *_SC17, {"gpu_fraction": 0.5}),
    ),
    "partitions": Stream(_partitions, 48, (1, 2, 2, 3, 4, 6, 8), (*_HOST, *_APART, *_BY_LEVEL)),
    "divided": Stream(_divided, 60, (1, 1, 2, 2, 3), (*_PARTS, *_PARTS, *_APART, {"max_machines": 1})),
    "divided alone": Stream(_divided_alone, 36, (1, 1, 2, 3), (*_PARTS, *_HOST)),
    "islands": Stream(_islands, 36, (1, 2, 2, 3, 4, 5), (*_APART, *_BY_LEVEL, *_HOST)),
    "rails": Stream(_rails, 16, (1, 2, 3, 4, 4, 6), (*_APART, *_BY_LEVEL, *_APART)),
}
