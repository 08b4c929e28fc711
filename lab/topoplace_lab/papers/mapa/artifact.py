"""Emulation of MAPA's published simulator (the artifact): reads its job lines and writes its log lines.

By default, the queue is as the paper describes it: first in, first out. Jobs start after they arrive, and none is
refused while enough GPUs are free. `rules="published"` is the queue as published, see `published_queue`. Links are
those of the published code, not of the paper's drawings.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Final, Literal

import numpy as np

from topoplace import _checks, machines
from topoplace.errors import TopologyError
from topoplace.jobs.job_graph import JobGraph
from topoplace.objectives import EffectiveBandwidth, LinkTables
from topoplace.placement import Placement
from topoplace.policies.mapa.search import MapaPolicy
from topoplace.topology.links.link_kinds import LinkKind
from topoplace.topology.topology import Topology
from topoplace_lab.papers.mapa.artifact_order import (
    BaselineOfArtifact,
    GreedyOfArtifact,
    PreserveOfArtifact,
    TopoAwareOfArtifact,
    candidates_of,
    edges_of,
)
from topoplace_lab.papers.mapa.published_queue import PublishedQueue, QueueJob
from topoplace_lab.simulate import FixedTime, Workload, simulate
from topoplace_lab.simulate.metrics import JobRecord

MACHINES: Final[Mapping[str, str]] = {
    "dgx-v": "dgx1-v100",
    "dgx-p": "dgx1-p100",
    "summit": "summit",
    "torus-2d": "torus2d-16",
    "cubeMesh-16": "cubemesh-16",
}
"""Name of each machine in our catalogue, by its name in MAPA's published code."""
PCIE_GB_PER_S: Final = 10.0
"""GB/s of PCIe in the artifact; the paper's Table 1 has 12."""
POLICIES: Final[Mapping[str, type[MapaPolicy]]] = {
    "baseline": BaselineOfArtifact,
    "topoAware": TopoAwareOfArtifact,
    "greedy": GreedyOfArtifact,
    "preserve": PreserveOfArtifact,
}

# Pairs (from 0) whose links differ from the machine as drawn: lanes as the code labels them, and their GB/s.
_DIFFERENT_LINKS: Final[Mapping[str, Mapping[tuple[int, int], tuple[int, float]]]] = {
    "torus-2d": {(0, 4): (0, PCIE_GB_PER_S)},
    "cubeMesh-16": {
        **dict.fromkeys(((0, 11), (1, 5), (3, 8), (9, 13)), (2, 25.0)),
        **dict.fromkeys(((4, 5), (12, 13)), (0, PCIE_GB_PER_S)),
    },
}
# The artifact's table of ideal AggBW by job size, the divisor of normLastScore; several entries are not the optimum.
_IDEAL: Final[Mapping[str, Mapping[int, int]]] = {
    "dgx-v": {2: 100, 3: 125, 4: 175, 5: 210},
    "dgx-p": {2: 40, 3: 60, 4: 80, 5: 100},
    "summit": {2: 100, 3: 150, 4: 170, 5: 220},
    "torus-2d": {2: 100, 3: 110, 4: 175, 5: 210},
    "cubeMesh-16": {2: 100, 3: 110, 4: 175, 5: 210},
}
_NOT_TABULATED: Final[Mapping[int, int]] = {}
_LABELS: Final = ("PCIe", "Single", "Double")
HEADER: Final = (
    "ID startTime endTime queueTime execTime lastScore normLastScore bwSensitive numGpus linkRatio predictedBW "
    "nets schedGpus arvlTime topology preserveScore numDouble numSingle numPCIe"
)

_PUBLISHED_HEADER: Final = HEADER[: HEADER.index(" arvlTime")]
THRESHOLD: Final = 12.3351
"""GB/s: eq. 2 without any link is 12.335063, which predictions must exceed for the published Preserve."""
_CRASHES: Final = ("cubeMesh-16",)


def machine_named(name: str) -> str | None:
    """Return the name that MAPA's published code has for a machine; None for an unknown machine.

    name: the machine's name in the published code or in our catalogue.
    """
    return next((theirs for theirs, ours in MACHINES.items() if name in (theirs, ours)), None)


@cache
def topology_of(name: str) -> Topology:
    """Return a machine with the links that it has in MAPA's published code.

    name: the machine's name in that code, a key of `MACHINES`. Raises ValueError for an unknown name.
    """
    if name not in MACHINES:
        raise ValueError(f"topology = {name!r}: the artifact has {', '.join(MACHINES)}")
    drawn = machines.get(MACHINES[name])
    pairs = {
        (u, v): (link.lanes, link.gb_per_s)
        for u in range(drawn.num_gpus)
        for v in range(u + 1, drawn.num_gpus)
        if (link := drawn.link(u, v)).kind in (LinkKind.NVLINK1, LinkKind.NVLINK2)
    }
    return _assemble(drawn.num_gpus, pairs | dict(_DIFFERENT_LINKS.get(name, {})), name)


def parse_topology(text: str) -> Topology:
    """Read a topology from lines `u v gb_per_s Single|Double|PCIe`, the format of MAPA's published code.

    u and v are GPUs, numbered from 1; pairs without a line are joined by PCIe. Raises TopologyError that names a line
    that cannot be read or repeats a pair, or if there is no line.
    """
    pairs: dict[tuple[int, int], tuple[int, float]] = {}
    for number, line in enumerate(text.splitlines(), 1):
        if line.strip():
            pair, lanes, gb_per_s = _edge_line(line, number)
            if pair in pairs:
                raise TopologyError(f"line {number}: the pair {pair[0] + 1} {pair[1] + 1} occurs twice")
            pairs[pair] = (lanes, gb_per_s)
    if not pairs:
        raise TopologyError("no edge lines `u v gb_per_s Single|Double|PCIe`")
    return _assemble(max(v for _, v in pairs) + 1, pairs, "custom")


def run_artifact(
    jobs_text: str, topology_text: str, policy: str, *, rules: Literal["paper", "published"] = "paper"
) -> str:
    """Simulate jobs under one of MAPA's policies and return the log that MAPA's published code would write.

    rules: "paper" for the queue as the paper describes it, "published" for that of the program. The published log has
    fewer columns, and ends at the point at which the program hangs. There is none for cubeMesh-16, because the program
    crashes there.

    jobs_text: job lines in the published format. topology_text: edge lines as for `parse_topology`, or the name of a
    machine in `MACHINES` (a key or a value). policy: baseline, topoAware, greedy or preserve, or our name for one.
    Raises ValueError for unknown rules, an unknown policy, an unreadable line, and a job larger than the topology. It
    is also raised for a pattern or size of job for which the order in which the published code tries GPU sets is
    unknown.
    """
    _checks.one_of(rules, "rules", ("paper", "published"), ValueError)
    machine = machine_named(topology_text)
    topology = topology_of(machine) if machine else parse_topology(topology_text)
    kind = next((kind for name, kind in POLICIES.items() if policy in (name, kind.name)), None)
    if kind is None:
        raise ValueError(f"policy = {policy!r}: the artifact has {', '.join(POLICIES)}")
    if rules == "published":
        if machine in _CRASHES:
            raise ValueError(f"rules = 'published': the published program crashes on {machine}")
        lines: Iterable[str] = (_PUBLISHED_HEADER, *_published_lines(jobs_text, topology, kind))
    else:
        lines = (HEADER, *_log_lines(jobs_text, topology, kind))
    return "".join(f"{line}\n" for line in lines)


def published_run(workload: Workload, topology: Topology, kind: type[MapaPolicy]) -> Iterator[QueueJob]:
    """Yield the jobs of MAPA's published program in the order in which they end; kind: the class of the policy."""
    policy = PreserveOfArtifact(THRESHOLD) if kind is PreserveOfArtifact else kind()
    return PublishedQueue(workload, topology, policy).run()


def _published_lines(jobs_text: str, topology: Topology, kind: type[MapaPolicy]) -> Iterator[str]:
    ideal = _IdealScores(topology)
    for done in published_run(Workload.from_mapa(jobs_text), topology, kind):
        assert done.placement is not None
        graph = JobGraph.independent(1) if done.is_ghost else done.job
        scores = _scores(graph, done.placement, topology, ideal)
        yield " ".join(
            map(
                str,
                (
                    *(done.index, done.start, done.end, done.arrival - done.start, done.end - done.start),
                    *scores[:2],
                    *(int(done.job.bandwidth_sensitive), done.job.num_tasks),
                    *scores[2:4],
                    *("" if done.is_ghost else done.job.profile or "", _gpus(done.placement)),
                ),
            )
        )


def _log_lines(jobs_text: str, topology: Topology, kind: type[MapaPolicy]) -> Iterator[str]:
    listed = Workload.from_mapa(jobs_text)
    # The artifact reads its list in order: it sees a job only after those above it have arrived.
    seen = Workload(listed.jobs, np.maximum.accumulate(listed.submit_time), listed.base_time)
    result = simulate(topology, seen, kind(), performance=FixedTime())
    rejected = next((record for record in result.records if record.rejected), None)
    if rejected:
        raise ValueError(f"job {rejected.submitted.job_id}: {rejected.rejected}")
    ideal = _IdealScores(topology)
    done = sorted(result.records, key=lambda record: (record.end, record.submitted.index))
    arrivals = listed.submit_time
    return (_log_line(record, int(arrivals[record.submitted.index]), topology, ideal) for record in done)


def _log_line(record: JobRecord, arrival: int, topology: Topology, ideal: _IdealScores) -> str:
    submitted, placement = record.submitted, record.placement
    if placement is None:
        raise ValueError(f"job {submitted.job_id} never ran")
    job = submitted.job
    scores = _scores(job, placement, topology, ideal)
    columns = (
        *(submitted.index, int(record.start), int(record.end), int(record.start) - arrival),
        *(int(record.end - record.start), *scores[:2]),
        *(int(job.bandwidth_sensitive), job.num_tasks, *scores[2:4]),
        *(job.profile or "", _gpus(placement), arrival, job.name, *scores[4:]),
    )
    return " ".join(map(str, columns))


def _scores(
    job: JobGraph, placement: Placement, topology: Topology, ideal: _IdealScores
) -> tuple[object, ...]:
    """Return lastScore, normLastScore, linkRatio, predictedBW, preserveScore, and the numbers of links by kind."""
    gpus, scores = placement.gpus, placement.scores
    aggregated, edges = scores["aggregated_bandwidth"], edges_of(job)
    classes = topology.derived(LinkTables).classes
    double, single, other = (sum(classes[gpus[a]][gpus[b]] == kind for a, b, _ in edges) for kind in range(3))
    return (
        *(int(aggregated), f"{ideal.share(job, aggregated):.6f}"),
        *(f"{other / len(edges) if edges else 0.0:.6f}", f"{scores['effective_bandwidth']:.6f}"),
        *(int(scores["preserved_bandwidth"]), double, single, other),
    )


def _gpus(placement: Placement) -> str:
    return "".join(f"{gpu + 1}," for gpu in placement.gpus)


@dataclass(frozen=True)
class _IdealScores:
    """Ideal aggregated bandwidths by job size, by which the log's column normLastScore is divided.

    They come from the published code's table, for its own machines and the sizes in it. Any other is the best on the
    idle machine.
    """

    topology: Topology

    def share(self, job: JobGraph, aggregated: float) -> float:
        """Return the aggregated bandwidth (GB/s) over the ideal for the job's size; 0 for a job without edges."""
        if not job.edges:
            return 0.0
        table = self._table()
        if job.num_tasks in table:
            return aggregated / table[job.num_tasks]
        return aggregated / float(candidates_of(self.topology, job, EffectiveBandwidth()).aggregated.max())

    def _table(self) -> Mapping[int, int]:
        known = (_IDEAL[name] for name in MACHINES if _same_links(self.topology, topology_of(name)))
        return next(known, _NOT_TABULATED)


def _same_links(a: Topology, b: Topology) -> bool:
    if a is b or a.num_gpus != b.num_gpus:
        return a is b
    one, other = a.derived(LinkTables), b.derived(LinkTables)
    return np.array_equal(one.matrix, other.matrix) and np.array_equal(one.link_class, other.link_class)


def _edge_line(line: str, number: int) -> tuple[tuple[int, int], int, float]:
    """Parse one edge line; return its two GPUs (numbered from 0, ascending), the link's NVLink lanes, and its GB/s.

    number: the line's number, for error messages. PCIe has 0 lanes.
    """
    try:
        first, second, gb_per_s, label = line.split()
        u, v = sorted((int(first) - 1, int(second) - 1))
        lanes, speed = _LABELS.index(label), float(gb_per_s)
    except ValueError:
        raise TopologyError(
            f"line {number}: {line.strip()!r} is not `u v gb_per_s Single|Double|PCIe`"
        ) from None
    if not (0 <= u < v < 64 and 0 < speed < float("inf")):
        raise TopologyError(
            f"line {number}: {line.strip()!r}: must have two GPUs of 1..64 and a speed above 0"
        )
    return (u, v), lanes, speed


def _assemble(n: int, pairs: Mapping[tuple[int, int], tuple[int, float]], name: str) -> Topology:
    links = [
        (u, v, gb_per_s, LinkKind.NVLINK2, lanes) if lanes else (u, v, gb_per_s, LinkKind.PCIE, 1)
        for (u, v), (lanes, gb_per_s) in sorted(pairs.items())
    ]
    return Topology.from_links(n, links, default=PCIE_GB_PER_S, name=name)
