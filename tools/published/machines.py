"""The machines of published measurements as topologies, from what the threads say of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import Any

import topoplace as tp

Row = Mapping[str, Any]


def cluster_of(row: Row, machines: Mapping[str, Row]) -> tuple[tp.Topology, list[int]]:
    """Return the machines of a measurement as a cluster, joined by one switch, and the numbers of its GPUs."""
    machine = machine_of(machines[row["machine"]])
    count, adapters = row["machines"], row.get("adapters")
    if adapters:
        machine = _with_adapters(machine, adapters["slots"], adapters["gb_per_s"])
    gpus = [i * machine.num_gpus + gpu for i in range(count) for gpu in row["gpus"]]
    if count == 1:
        return machine, gpus
    names = tuple(f"machine{i}" for i in range(count))
    levels = [tp.Level("switch", ("all",) * count, gb_per_s=adapters["gb_per_s"] if adapters else None)]
    if size := row.get("machines_of_a_domain"):
        domains = tuple(f"domain{i // size}" for i in range(count))
        levels.insert(0, tp.Level("nvlink_domain", domains, kind=tp.LinkKind.NVSWITCH))
    return tp.Topology.cluster(machine, fabric=tp.Fabric(names, tuple(levels))), gpus


def machine_of(described: Row) -> tp.Topology:
    """Return a machine: of the catalogue, of a matrix of `nvidia-smi topo -m`, or of GPUs on one NVSwitch."""
    if name := described.get("catalogue"):
        return _of_catalogue(name)
    if matrix := described.get("matrix"):
        options = {} if "NV" in _labels(matrix) else {"assume_no_nvlink": True}
        return tp.Topology.from_nvidia_smi(_text(matrix), matrix["model"], **options)
    switch = described["nvswitch"]
    gpus = [tp.Gpu(i, f"GPU{i}", switch["model"]) for i in range(switch["gpus"])]
    nvlinks = tp.Link(tp.LinkKind.NVSWITCH, switch["lanes"], switch["gb_per_s"])
    return tp.Topology(
        gpus,
        name=switch["model"],
        components=(tp.Component(tp.ComponentKind.NVSWITCH, "NVSwitch0"),),
        component_links=tuple((gpu.index, len(gpus), nvlinks) for gpu in gpus),
    )


@cache
def _of_catalogue(name: str) -> tp.Topology:
    return tp.machines.get(name).template(0)


def _labels(matrix: Row) -> str:
    return f"{matrix['near']} {matrix.get('pairs', '')}"


def _text(matrix: Row) -> str:
    """Return what `nvidia-smi topo -m` prints of GPUs with one label in a socket, another in pairs, and SYS else."""
    count, socket = matrix["gpus"], matrix["socket"]

    def label(u: int, v: int) -> str:
        if u == v:
            return "X"
        if u // socket != v // socket:
            return "SYS"
        return str(matrix["pairs"] if "pairs" in matrix and u // 2 == v // 2 else matrix["near"])

    lines = ["\t".join(["", *(f"GPU{i}" for i in range(count)), "NUMA Affinity"])]
    cells = ([f"GPU{u}", *(label(u, v) for v in range(count)), str(u // socket)] for u in range(count))
    lines.extend(map("\t".join, cells))
    return "\n".join(lines)


def _with_adapters(machine: tp.Topology, slots: Sequence[Sequence[int]], gb_per_s: float) -> tp.Topology:
    """Return a machine with these adapters alone, each near the GPUs in its slots."""
    return replace(
        machine,
        nics=tuple(
            tp.Nic(
                f"nic{i}",
                tuple("PIX" if gpu in near else "SYS" for gpu in range(machine.num_gpus)),
                gb_per_s,
            )
            for i, near in enumerate(slots)
        ),
    )
