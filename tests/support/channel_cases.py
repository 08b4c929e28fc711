"""Jobs on busy fabrics whose rings run in channels (`data/channels`), with the best known placements."""

from __future__ import annotations

import gzip
import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import topoplace as tp
from topoplace import machines
from topoplace.topology.devices import Nic
from topoplace.topology.fabric import Fabric, Level
from topoplace.topology.links.link_kinds import LinkKind


class ChannelCase(NamedTuple):
    """A job, a cluster, and what is known of the best placement."""

    name: str
    job: tp.JobGraph
    cluster: tp.Cluster
    placements: Sequence[Mapping[str, Any]]
    """With `gpus`, `time` and `port_seconds`: the best known one, or all of a case worked out by hand."""
    exact: bool
    """True if no placement is faster than the first."""


def cases(shared: Path, name: str) -> list[ChannelCase]:
    """Return the cases of a file: "instances", "small" or "hand"."""
    folder = shared / "data/channels"
    text = (
        (folder / f"{name}.json").read_bytes()
        if name == "hand"
        else gzip.decompress((folder / f"{name}.json.gz").read_bytes())
    )
    return [case_of(one) for one in json.loads(text)]


def case_of(one: Mapping[str, Any]) -> ChannelCase:
    """Return a case as the file states it."""
    cluster = tp.Cluster(topology_of(one))
    for gpu in one["busy"]:
        cluster.drain(gpu)
    known = one.get("placements") or [one["best_known"]]
    return ChannelCase(one["id"], job_of(one), cluster, known, bool(known[0].get("exact", True)))


def job_of(one: Mapping[str, Any]) -> tp.JobGraph:
    """Return the job of a case: a dimension for each phase."""
    collectives = [
        tp.Collective(each["kind"], tuple(each["tasks"]), each["gigabytes"], phase["name"])
        for phase in one["phases"]
        for each in phase["collectives"]
    ]
    return tp.JobGraph.from_collectives(one["tasks"], collectives)


def topology_of(one: Mapping[str, Any]) -> tp.Topology:
    """Return the fabric of a case."""
    types = {name: _machine(json.dumps(stated)) for name, stated in one["machine_types"].items()}
    levels = [
        Level(
            level["name"],
            tuple(map(str, level["domain_of_machine"])),
            None if level["nvlink_domain"] else level["gb_per_s"],
            1.0 if level["nvlink_domain"] else level["oversubscription"],
            kind=LinkKind.NVSWITCH if level["nvlink_domain"] else LinkKind.NETWORK,
            rail=level["rail"],
            pxn=one["pxn"] and level["rail"],
        )
        for level in one["levels"]
    ]
    names = tuple(f"m{i}" for i in range(len(one["machines"])))
    fabric = Fabric(names, tuple(levels))
    return tp.Topology.cluster([types[name] for name in one["machines"]], fabric=fabric)


@lru_cache(64)
def _machine(text: str) -> tp.Topology:
    stated = json.loads(text)
    whole = machines.get(stated["catalogue"])
    machine = whole.template(0) if whole.num_machines > 1 else whole
    size = machine.num_gpus
    nics = tuple(
        Nic(
            f"nic{i}",
            tuple("PIX" if gpu in each["slots"] else "SYS" for gpu in range(size)),
            each["gb_per_s"],
        )
        for i, each in enumerate(stated["adapters"])
    )
    return replace(machine, nics=nics)
