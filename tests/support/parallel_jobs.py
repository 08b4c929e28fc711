"""Hybrid jobs on busy fabrics, with the best placements that simulated annealing found (data/parallel)."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import topoplace as tp
from topoplace import LinkKind
from topoplace.topology.fabric import Fabric, Level

_TENSOR_GB = 100.0  # over each edge of the ring of a unit


class Instance(NamedTuple):
    name: str
    job: tp.JobGraph
    cluster: tp.Cluster
    best: tuple[int, ...]
    """The GPU of each task in the best known placement."""

    def time(self, gpus: tuple[int, ...]) -> tuple[float, float]:
        """Return seconds, and port-seconds of uplinks, without what the units do inside their machines."""
        found = tp.communication_time(self.job, gpus, self.cluster.topology, planned=False)
        return found.seconds - found.by_dimension["tensor"], found.port_seconds


def instances(shared: Path) -> list[Instance]:
    path = shared / "data/parallel/instances.json.gz"
    return [_instance(one) for one in json.loads(gzip.decompress(path.read_bytes()))]


def _instance(one: dict[str, Any]) -> Instance:
    topology = _topology(one)
    size, tensor = one["machines"][0][0], one["tensor"]
    cluster = tp.Cluster(topology)
    for machine, free in enumerate(one["free"]):
        for gpu in range(size * machine + free, size * (machine + 1)):
            cluster.drain(gpu)
    best: list[int] = []
    used = dict.fromkeys(range(len(one["machines"])), 0)
    for machine in one["best_known"]["machine_of_unit"]:
        first = machine * size + used[machine] * tensor
        used[machine] += 1
        best += range(first, first + tensor)
    return Instance(one["id"], _job(one), cluster, tuple(best))


def _topology(one: dict[str, Any]) -> tp.Topology:
    size, number = one["machines"][0][0], len(one["machines"])
    has_racks = len(one["ports"]) > 1
    speed = 900.0 if has_racks else 450.0
    pairs = [(u, v, speed, LinkKind.NVSWITCH) for u in range(size) for v in range(u)]
    leaf, pod = (tuple(map(str, one[key])) for key in ("leaf_of", "pod_of"))

    def oversubscription(of: str, uplinks: str) -> float:
        entering = np.bincount(one[of]) * size * 50.0
        return max(1.0, float(np.median(entering / np.array(one[uplinks]))))

    kind = LinkKind.NVSWITCH if has_racks else LinkKind.NETWORK
    levels = (
        Level("leaf", leaf, 900.0 if has_racks else 50.0, kind=kind),
        Level("pod", pod, 50.0, oversubscription("leaf_of", "leaf_uplinks")),
        Level("core", ("core",) * number, 50.0, oversubscription("pod_of", "pod_uplinks")),
    )
    fabric = Fabric(tuple(f"m{i}" for i in range(number)), levels)
    return tp.Topology.cluster(tp.Topology.from_links(size, pairs), fabric=fabric)


def _job(one: dict[str, Any]) -> tp.JobGraph:
    tensor, units = one["tensor"], one["units"]
    gigabytes = _TENSOR_GB / (2 * (tensor - 1) / tensor)
    found = [
        tp.Collective("all_reduce", tuple(range(u * tensor, (u + 1) * tensor)), gigabytes, "tensor")
        for u in range(units)
    ]
    for name, edges in one["dimensions"].items():
        for a, b, both in edges:
            peers = ((a * tensor + i, b * tensor + i) for i in range(tensor))
            found += [tp.Collective("send", pair, both / tensor, name) for pair in peers]
    return tp.JobGraph.from_collectives(units * tensor, found)
