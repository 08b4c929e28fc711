"""Cases of simulated communication (`data/steps`) as jobs and topologies, and why some cannot be said."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

import topoplace as tp
from topoplace.topology.devices import Nic
from topoplace.topology.links.link import LinkKind

Case = Mapping[str, Any]


def is_of_several(case: Case) -> bool:
    """Return True if several jobs run beside each other."""
    return any("placement_of" not in job for job in case["jobs"][1:])


def refusal(case: Case) -> str | None:
    """Return why the model cannot say a case; None if it can."""
    jobs = case["jobs"]
    if case["fabric"].get("spines"):
        return "static hashing"
    if case["fabric"].get("cross_rail") == "pxn":
        return "PXN"
    if any("dst_weights" in phase for job in jobs for phase in job["phases"]):
        return "unequal parts in an all-to-all"
    if case["family"] == "job_free":
        return "groups that do not wait for their phase"
    return None


def jobs_of(case: Case) -> list[tuple[tp.JobGraph, list[int]]]:
    """Return the graph and the GPUs of each job: a dimension for each phase."""
    return [(job_of({"jobs": [job]}), job["placement"]) for job in case["jobs"]]


def job_of(case: Case) -> tp.JobGraph:
    """Return the only job: a dimension for each phase; operations that run at once are one phase."""
    first, *others = case["jobs"]
    phases = [first["phases"], *(job["phases"] for job in others)]
    collectives = [
        one
        for entry in phases
        for number, phase in enumerate(entry)
        for one in _collectives(phase, f"phase {number}")
    ]
    return tp.JobGraph.from_collectives(len(first["placement"]), collectives)


def _collectives(phase: Mapping[str, Any], dimension: str) -> list[tp.Collective]:
    kind, factor = {
        "ring_allreduce": ("all_reduce", 1.0),
        "alltoall": ("all_to_all", 1.0),
        "sendrecv": ("send", 2.0),  # a case counts what goes each way, a job both directions
    }[phase["op"]]
    amounts = phase.get("gb_groups") or [phase["gb"]] * len(phase["groups"])
    return [
        tp.Collective(kind, tuple(group), factor * gigabytes, dimension)
        for group, gigabytes in zip(phase["groups"], amounts, strict=True)
        if len(group) > 1
    ]


def topology_of(case: Case) -> tp.Topology:
    """Return the fabric of a case, with its degraded ports."""
    return _topology(json.dumps([case["fabric"], case.get("degraded", [])]))


@lru_cache(8)
def _topology(text: str) -> tp.Topology:
    fabric, degraded = json.loads(text)
    gpus = fabric["gpus"]
    nvlink: dict[int, dict[int, float]] = defaultdict(dict)
    adapter: dict[int, dict[int, float]] = defaultdict(dict)
    for gpu, part, factor in degraded:
        ({"nvlink": nvlink, "adapter": adapter}[part][gpu // gpus])[gpu % gpus] = factor
    plain = _machine(fabric, {}, {})
    machines = [
        _machine(fabric, nvlink[i], adapter[i]) if i in nvlink or i in adapter else plain
        for i in range(fabric["machines"])
    ]
    names = tuple(f"m{i}" for i in range(len(machines)))
    return tp.Topology.cluster(machines, fabric=tp.Fabric(names, _levels(fabric)))


def _machine(
    fabric: Mapping[str, Any], nvlink: Mapping[int, float], adapter: Mapping[int, float]
) -> tp.Topology:
    gpus = range(fabric["gpus"])
    links = [
        (u, v, min(nvlink.get(u, 1.0), nvlink.get(v, 1.0)) * fabric["nvlink"], LinkKind.NVSWITCH)
        for u in gpus
        for v in range(u)
    ]
    nics = [
        Nic(
            f"nic{i}",
            tuple("PIX" if gpu == i else "SYS" for gpu in gpus),
            adapter.get(i, 1.0) * fabric["adapter"],
        )
        for i in gpus
    ]
    return tp.Topology.from_links(len(gpus), links, nics=nics)


def _levels(fabric: Mapping[str, Any]) -> Sequence[tp.Level]:
    count, speed = fabric["machines"], fabric["adapter"]

    def level(name: str, size: int, oversubscription: float = 1.0, **more: Any) -> tp.Level:
        domains = tuple(f"{name}{i // size}" for i in range(count))
        return tp.Level(name, domains, more.pop("gb_per_s", speed), oversubscription, **more)

    if fabric["kind"] == "leafspine":
        return (level("leaf", fabric["machines_per_leaf"]), level("spine", count, fabric["oversub"]))
    if fabric["kind"] == "rail":
        return (level("pod", fabric["machines_per_pod"], rail=True), level("spine", count, fabric["oversub"]))
    rack = fabric["trays_per_rack"]
    return (
        level("rack", rack, gb_per_s=fabric["nvlink"], kind=LinkKind.NVSWITCH),
        level("pod", rack * fabric["racks_per_pod"], fabric["rack_oversub"]),
        level("core", count, fabric["pod_oversub"]),
    )
