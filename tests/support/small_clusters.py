"""Random clusters of a few small machines, with every kind of port that counts, and random jobs for them."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Final

import topoplace as tp
from topoplace import LinkKind
from topoplace.topology.devices import Nic

Link = tuple[int, int, float, LinkKind]
RING_KINDS: Final = ("all_reduce", "all_gather", "reduce_scatter", "broadcast")
FAMILIES: Final = (
    "shared adapters",
    "slow adapters",
    "leaves of different adapters",
    "rails",
    "rails with PXN",
    "trays",
    "PCIe boxes",
    "irregular links",
    "oversubscribed",
    "three levels",
    "different machines",
    "trays outside racks",
    "racks across leaves",
)


def small_cluster(family: str, draws: random.Random) -> tp.Cluster:
    """Return a cluster of a family with some GPUs drained."""
    topology = _joined(family, draws)
    cluster, share = tp.Cluster(topology), draws.choice([0.0, 0.15, 0.4])
    for gpu in range(topology.num_gpus):
        if draws.random() < share:
            cluster.drain(gpu)
    return cluster


def _joined(family: str, draws: random.Random) -> tp.Topology:
    count = draws.choice([1, 2, 2, 3, 3, 4, 5])
    size = draws.choice([2, 3, 4]) if count < 4 else draws.choice([1, 2, 3])
    leaves = [f"l{draws.randrange(1 + count // 2)}" for _ in range(count)]
    slow_leaf = draws.choice(leaves)
    made = [
        _machine(family, size, draws, is_slow=family == "leaves of different adapters" and leaf == slow_leaf)
        for leaf in leaves
    ]
    names = tuple(f"m{i}" for i in range(count))
    fabric = tp.Fabric(names, tuple(_levels(family, leaves, draws)))
    return tp.Topology.cluster(made, fabric=fabric)


def _levels(family: str, leaves: Sequence[str], draws: random.Random) -> list[tp.Level]:
    count = len(leaves)
    names = tuple(leaves)
    spine = tp.Level("spine", ("s",) * count, 50.0, draws.choice([1.0, 4.0]))
    if family in {"trays", "trays outside racks", "racks across leaves"}:
        lost = 0.4 if family == "trays outside racks" else 0.0
        racks = tuple(None if draws.random() < lost else name for name in names)
        found = [tp.Level("rack", racks, kind=LinkKind.NVSWITCH), spine]
        if family == "racks across leaves":
            found.insert(1, tp.Level("leaf", tuple(draws.choice("ab") for _ in names), 50.0))
        return found
    rail = family.startswith("rails")
    leaf = tp.Level("leaf", names, 50.0, rail=rail, pxn="PXN" in family)
    over = draws.choice([2.0, 4.0]) if family == "oversubscribed" else 1.0
    found = [leaf, replace(spine, oversubscription=over)]
    if family == "three levels":
        pods = tuple("p" if name == "l0" else "q" for name in names)
        found.insert(1, tp.Level("pod", pods, 50.0, draws.choice([1.0, 2.0])))
    return found


def _machine(family: str, size: int, draws: random.Random, *, is_slow: bool) -> tp.Topology:
    if family == "different machines":
        family = draws.choice(["PCIe boxes", "irregular links", "shared adapters", "slow adapters"])
    links, model = _links(family, size, draws)
    machine = tp.Topology.from_links(
        size, links, model=model, sockets=[gpu * 2 // size for gpu in range(size)]
    )
    return replace(machine, nics=_adapters(family, size, draws, is_slow=is_slow))


def _links(family: str, size: int, draws: random.Random) -> tuple[list[Link], str]:
    pairs = [(u, v) for v in range(size) for u in range(v)]
    if family in {"PCIe boxes", "irregular links"}:
        near = {True: (LinkKind.PCIE, 24.0), False: (LinkKind.SYSTEM, 12.0)}
        found: list[Link] = []
        for u, v in pairs:
            kind, gb_per_s = near[u * 2 // size == v * 2 // size]
            if family == "irregular links" and draws.random() < 0.6:
                kind, gb_per_s = LinkKind.NVLINK2, draws.choice([25.0, 50.0])
            found.append((u, v, gb_per_s, kind))
        return found, "V100" if family == "irregular links" else "L40S"
    return [(u, v, 450.0, LinkKind.NVSWITCH) for u, v in pairs], draws.choice(["A100", "H100"])


def _adapters(family: str, size: int, draws: random.Random, *, is_slow: bool) -> tuple[Nic, ...]:
    """Return adapters of a machine, each the nearest of some of its GPUs; none for one of its own for each GPU."""
    shared = family == "shared adapters" or (family != "trays" and draws.random() < 0.2)
    owners = [[u for u in range(size) if u // 2 == one] for one in range((size + 1) // 2)]
    if not shared:
        owners = [[gpu] for gpu in range(size)]
    found: list[Nic] = []
    for number, users in enumerate(owners):
        gb_per_s = 25.0 if is_slow else 50.0
        if family != "shared adapters" and draws.random() < (0.4 if family == "slow adapters" else 0.1):
            gb_per_s = draws.choice([12.5, 40.0])
        paths = tuple("PIX" if gpu in users else "SYS" for gpu in range(size))
        found.append(Nic(f"nic{number}", paths, gb_per_s))
    return tuple(found)


def linked_cluster(draws: random.Random) -> tp.Cluster:
    """Return machines in one topology, with direct links between GPUs of different ones."""
    size, count = draws.choice([(2, 2), (2, 3), (3, 2), (2, 4), (4, 2)])
    n = size * count
    links: list[tuple[int, int, float]] = [
        (u, v, draws.choice([10.0, 25.0, 50.0]))
        for v in range(n)
        for u in range(v)
        if draws.random() < (0.7 if u // size == v // size else 0.3)
    ]
    names = [f"m{gpu // size}" for gpu in range(n)]
    network = draws.choice([0.0, 5.0, 12.5])
    topology = tp.Topology.from_links(n, links, draws.choice([0.0, 8.0]), machines=names, network=network)
    cluster = tp.Cluster(topology)
    for gpu in range(n):
        if draws.random() < 0.15:
            cluster.drain(gpu)
    return cluster


# ---- jobs ----------------------------------------------------------------------------------------------------


def small_job(size: int, draws: random.Random, levels: Sequence[str] = ()) -> tp.JobGraph:
    """Return a job of this many tasks; levels: of which a group of tasks may have to be in one domain."""
    job = draws.choice(_JOBS)(size, draws)
    if levels and size % 2 == 0 and draws.random() < 0.25:
        job = job.grouped(draws.choice([2, size // 2, size]), within=draws.choice(["machine", *levels]))
    return job


def of_all(size: int, draws: random.Random) -> tp.JobGraph:
    """Return one collective, or two at once, of all tasks."""
    kinds = draws.sample((*RING_KINDS, "all_to_all"), draws.choice([1, 1, 2]))
    dimension = draws.choice(["all", None])
    return tp.JobGraph.from_collectives(
        size,
        [
            tp.Collective(
                kind,
                tuple(range(size)),
                draws.choice([1.0, 4.0]),
                dimension or kind,
                _shares(kind, size, draws),
            )
            for kind in kinds
        ],
    )


def _shares(kind: str, size: int, draws: random.Random) -> tuple[float, ...]:
    is_uneven = kind == "all_to_all" and draws.random() < 0.3
    return (*(draws.choice([0.0, 1.0, 5.0]) for _ in range(size - 1)), 1.0) if is_uneven else ()


def _grid(size: int, draws: random.Random) -> tp.JobGraph:
    """Groups of neighbours and of strides, such as tensor x data or shards x replicas."""
    inner = draws.choice([one for one in range(1, size + 1) if size % one == 0])
    kinds = draws.choice(RING_KINDS), draws.choice((*RING_KINDS, "all_to_all", "send"))
    near = [tuple(range(i, i + inner)) for i in range(0, size, inner)]
    far = [tuple(range(i, size, inner)) for i in range(inner)]
    found = [
        tp.Collective(kind, tasks, gigabytes, name)
        for kind, groups, name in zip(kinds, (near, far), ("near", "far"), strict=True)
        for gigabytes in [draws.choice([0.1, 1.0, 1.0, 5.0])]
        for tasks in groups
        if len(tasks) > 1
    ]
    return tp.JobGraph.from_collectives(size, found)


def _pairs(size: int, draws: random.Random) -> tp.JobGraph:
    """Weights without collectives."""
    pairs = [(a, b) for b in range(size) for a in range(b)]
    chosen = draws.sample(pairs, draws.randint(1, len(pairs)))
    return tp.JobGraph.from_edges(size, [(a, b, draws.choice([1.0, 3.0, 10.0])) for a, b in chosen])


def _pattern(size: int, draws: random.Random) -> tp.JobGraph:
    names = (tp.JobGraph.ring, tp.JobGraph.chain, tp.JobGraph.allreduce, tp.JobGraph.clique)
    return draws.choice(names)(size)


def _any_groups(size: int, draws: random.Random) -> tp.JobGraph:
    """Any groups in any dimensions, some of which overlap."""
    found: list[tp.Collective] = []
    for number in range(draws.randint(1, 4)):
        tasks = tuple(draws.sample(range(size), draws.randint(2, size)))
        kind = draws.choice((*RING_KINDS, "all_to_all", "send"))
        gigabytes = draws.choice([0.5, 1.0, 4.0])
        found.append(tp.Collective(kind, tasks, gigabytes, draws.choice(["one", "other", str(number)])))
    return tp.JobGraph.from_collectives(size, found)


_JOBS: Final[Sequence[Callable[[int, random.Random], tp.JobGraph]]] = (
    of_all,
    of_all,
    _grid,
    _grid,
    _pairs,
    _pattern,
    _any_groups,
)


# ---- other adapters ------------------------------------------------------------------------------------------


def with_adapters(
    topology: tp.Topology, draws: random.Random, *, factor: float = 1.0, split: bool = False
) -> tp.Topology:
    """Return the cluster with one adapter faster, or a shared one replaced by one for each of its GPUs."""
    made = [topology.template(machine) for machine in range(topology.num_machines)]
    chosen = draws.randrange(len(made))
    nics = list(made[chosen].nics)
    at = draws.randrange(len(nics))
    users = [gpu for gpu, path in enumerate(nics[at].paths) if path == "PIX"]
    own = [[user] for user in users] if split else [users]
    nics[at : at + 1] = [
        replace(
            nics[at],
            name=f"{nics[at].name}{part}",
            paths=tuple("PIX" if gpu in one else "SYS" for gpu in range(len(nics[at].paths))),
            gb_per_s=(nics[at].gb_per_s or 0.0) * factor,
        )
        for part, one in enumerate(own)
    ]
    made[chosen] = replace(made[chosen], nics=tuple(nics))
    return tp.Topology.cluster(made, fabric=topology.fabric)
