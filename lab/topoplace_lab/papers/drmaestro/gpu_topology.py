"""DRMaestro with and without the links between GPUs: jobs of MAPA's kind on a few DGX-1 machines.

The thesis places GPUs by topology in chapter 4 and by flows in chapter 5, and does not join the two. There is no figure
to compare with: each row has the plain policy next to the one that considers links.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from topoplace import machines
from topoplace.policies import DRMaestro, Policy, TopoAware
from topoplace.topology.topology import Topology
from topoplace_lab.papers.claims import ClaimedQuantity, PaperClaim
from topoplace_lab.simulate import MapaSlowdown, Workload, simulate
from topoplace_lab.simulate.processes import Runner
from topoplace_lab.simulate.samples import Sample

JOBS: Final = 300
MACHINES: Final = 4
_NETWORK: Final = 1.25
"""GB/s between machines, as in the thesis' testbed (table 6)."""


class Measured(NamedTuple):
    """The results of one simulation: makespan in seconds; median GB/s and run time of bandwidth-sensitive jobs."""

    makespan: float
    bandwidth: float
    run_time: float


def measure(runner: Runner, seeds: Sequence[int]) -> dict[str, list[Measured]]:
    """Simulate each way for each seed, and return the results by way, in the order of the seeds."""
    calls = [(way, seed) for way in _WAYS for seed in seeds]
    found = runner.results(simulated, calls)
    return {way: found[i * len(seeds) : (i + 1) * len(seeds)] for i, way in enumerate(_WAYS)}


def simulated(way: str, seed: int) -> Measured:
    """Simulate MAPA's random jobs of 1 to 5 GPUs; way: the policy, a key of `_WAYS`."""
    cluster = Topology.cluster(machines.get("dgx1-v100"), count=MACHINES, network=_NETWORK)
    summary = simulate(
        cluster, Workload.mapa(JOBS, seed=seed), _WAYS[way], performance=MapaSlowdown(), seed=seed
    ).summary()
    return Measured(
        summary["makespan"], summary["sensitive_effective_bandwidth_p50"], summary["sensitive_run_time_p75"]
    )


def rows(found: dict[str, list[Measured]]) -> Iterator[PaperClaim]:
    """Yield a row for local and one for remote GPUs: what looking at links changes, and `TopoAware` next to it."""
    other = found["topo-aware"]
    for way, title in (("local", "local GPUs only"), ("remote", "remote GPUs allowed")):
        plain, linked = found[way], found[f"{way}, links"]
        makespan = _samples(linked, "makespan").over(_samples(plain, "makespan"))
        yield ClaimedQuantity(
            f"6.2 {way}",
            f"{JOBS} jobs of 1 to 5 GPUs on {MACHINES} DGX-1, {title}: makespan with GPU topology over that without; "
            "median GB/s of sensitive jobs without and with; their run time (s, 75th percentile)",
            "no such figure",
        ).not_comparable(
            f"{makespan:.3f}; {_each('bandwidth', plain, linked)}; {_each('run_time', plain, linked, form='.0f')}",
            f"the thesis does not combine its chapters 4 and 5; TOPO-AWARE alone: makespan "
            f"{_samples(other, 'makespan').over(_samples(plain, 'makespan')):.3f} times the plain one, "
            f"{_each('bandwidth', other)} GB/s, {_each('run_time', other, form='.0f')} s",
        )


def _samples(found: Sequence[Measured], name: str) -> Sample:
    return Sample.of(getattr(each, name) for each in found)


def _each(name: str, *found: Sequence[Measured], form: str = ".1f") -> str:
    return ", ".join(format(_samples(each, name), form) for each in found)


_WAYS: Final[dict[str, Policy]] = {
    "local": DRMaestro(disaggregate=False),
    "local, links": DRMaestro(disaggregate=False, gpu_topology=True),
    "remote": DRMaestro(),
    "remote, links": DRMaestro(gpu_topology=True),
    "topo-aware": TopoAware(),
}
