"""Cases of simulated communication (`data/steps`) as jobs and topologies, and how far the times agree."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

import topoplace as tp
from topoplace.objectives.communication import communication_time
from topoplace.topology.devices import Nic
from topoplace.topology.links.link_kinds import LinkKind

Case = Mapping[str, Any]
SIMULATORS: Final = {
    "simgrid_maxmin": "SimGrid 3.32, max-min fair",
    "simgrid_steps": "SimGrid, rings in steps",
    "simgrid_steps_latency": "SimGrid, rings in steps, latency",
    "simgrid_lv08": "SimGrid, like TCP (LV08)",
    "astra_net_fifo": "ASTRA-sim's network, chunks in FIFO order",
    "astra_sim_ring": "ASTRA-sim, its own rings",
    "htsim_ndp": "htsim, packets (NDP)",
}
"""What each is, by its name in the cases."""


class Row(NamedTuple):
    """The times of one job of a case."""

    family: str
    case: str
    job: int
    estimate: float
    """Of `communication_time`."""
    fair: float
    """Of `communication_time` with max_min."""
    simulated: Mapping[str, float]
    """Seconds of each simulator."""


def rows(cases: Iterable[Case]) -> Iterator[Row]:
    """Yield the times of each job of each case that the model can say: by ports alone, without the library's rings."""
    for case in cases:
        if refusal(case):
            continue
        topology, jobs, cluster = topology_of(case), jobs_of(case), None
        if len(jobs) > 1:
            cluster = tp.Cluster(topology)
            for number, (job, placed) in enumerate(jobs):
                cluster.allocate(str(number), placed, job)
        for number, (job, placed) in enumerate(jobs):
            times = [
                communication_time(job, placed, topology, cluster=cluster, planned=False, max_min=fair)
                for fair in (False, True)
            ]
            simulated = {
                name: result["job_seconds"][number] if cluster else result["seconds"]
                for name, result in case["results"].items()
                if name in SIMULATORS
            }
            yield Row(case["family"], case["id"], number, times[0].seconds, times[1].seconds, simulated)


class Agreement(NamedTuple):
    """How far times agree with simulated ones."""

    correlation: float
    """Of the ranks (Spearman's); 1 for a single one."""
    near: float
    """The share within 1 %."""
    fair: float
    """The share within 5 %."""
    lowest: float
    highest: float
    """Ratios less 1: the time over the simulated one."""

    @classmethod
    def of(cls, times: Sequence[float], simulated: Sequence[float]) -> Agreement:
        """Compare times with simulated ones, in the same order."""
        errors = np.array(times) / np.array(simulated) - 1
        ranks = np.stack([_ranks(times), _ranks(simulated)])
        correlation = float(np.corrcoef(ranks)[0, 1]) if np.ptp(ranks, axis=1).all() else 1.0
        near, fair = (float((np.abs(errors) <= limit).mean()) for limit in (0.01, 0.05))
        return cls(correlation, near, fair, float(errors.min()), float(errors.max()))


def _ranks(times: Sequence[float]) -> NDArray[np.float64]:
    """Return the rank of each time; times that are equal to 7 digits share the mean of theirs."""
    rounded = [float(f"{time:.7g}") for time in times]
    _, place, counts = np.unique(rounded, return_inverse=True, return_counts=True)
    ends = np.cumsum(counts)
    mean: NDArray[np.float64] = (ends - counts + ends - 1) / 2
    return mean[place]


def by_family(found: Sequence[Row]) -> Iterator[str]:
    """Yield the kept table of each family's agreement with max-min fair sharing."""
    families = {row.family: [one for one in found if one.family == row.family] for row in found}
    columns = ("estimate: correlation", "within 1 %", "within 5 %", "error")
    yield f"| family | jobs | {' | '.join(columns)} | `max_min`: correlation | within 1 % | error |"
    yield "|---|---|---|---|---|---|---|---|---|"
    for name, members in (*families.items(), ("all", found)):
        simulated = [row.simulated["simgrid_maxmin"] for row in members]
        rough = Agreement.of([row.estimate for row in members], simulated)
        exact = Agreement.of([row.fair for row in members], simulated)
        cells = (
            *(name, len(members)),
            *(f"{rough.correlation:.4f}", _share(rough.near), _share(rough.fair), _errors(rough)),
            *(f"{exact.correlation:.4f}", _share(exact.near), _errors(exact)),
        )
        yield f"| {' | '.join(map(str, cells))} |"


def by_simulator(found: Sequence[Row]) -> Iterator[str]:
    """Yield the kept table of the agreement of `max_min` with each simulator."""
    yield "| simulator | jobs | correlation | within 5 % | median error | errors |"
    yield "|---|---|---|---|---|---|"
    for key, name in SIMULATORS.items():
        members = [row for row in found if key in row.simulated]
        times, simulated = [row.fair for row in members], [row.simulated[key] for row in members]
        one = Agreement.of(times, simulated)
        median = float(np.median(np.array(times) / np.array(simulated) - 1))
        cells = (name, len(members), f"{one.correlation:.4f}", _share(one.fair), _error(median), _errors(one))
        yield f"| {' | '.join(map(str, cells))} |"


def _errors(one: Agreement) -> str:
    low, high = _error(one.lowest), _error(one.highest)
    return low if low == high else f"{low} to {high}"


def _error(ratio: float) -> str:
    text = f"{100 * ratio:+.1f} %"
    return "0 %" if float(text.split()[0]) == 0 else text


def _share(share: float) -> str:
    return f"{100 * share:.1f} %".replace("100.0", "100")


def refusal(case: Case) -> str | None:
    """Return why the model cannot say a case; None if it can."""
    if case["fabric"].get("spines"):
        return "static hashing"
    return None


def jobs_of(case: Case) -> list[tuple[tp.JobGraph, list[int]]]:
    """Return the graph and the GPUs of each job: a dimension for each phase."""
    entries = case["jobs"]
    if any("placement_of" in entry for entry in entries):  # operations of one job, which run at once
        return [(job_of(entries), entries[0]["placement"])]
    return [(job_of([entry]), entry["placement"]) for entry in entries]


def job_of(entries: Sequence[Mapping[str, Any]]) -> tp.JobGraph:
    """Return one job of these entries: a dimension for each phase; those of all entries run at once."""
    first, *others = entries
    phases = [first["phases"], *(entry["phases"] for entry in others)]
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
    shares = phase.get("dst_weights") or [()] * len(amounts)
    return [
        tp.Collective(kind, tuple(group), factor * gigabytes, dimension, tuple(weights))
        for group, gigabytes, weights in zip(phase["groups"], amounts, shares, strict=True)
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
        pod = level("pod", fabric["machines_per_pod"], rail=True, pxn=fabric["cross_rail"] == "pxn")
        return (pod, level("spine", count, fabric["oversub"]))
    rack = fabric["trays_per_rack"]
    return (
        level("rack", rack, gb_per_s=fabric["nvlink"], kind=LinkKind.NVSWITCH),
        level("pod", rack * fabric["racks_per_pod"], fabric["rack_oversub"]),
        level("core", count, fabric["pod_oversub"]),
    )
