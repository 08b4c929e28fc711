"""Containers, nested containers and virtual machines (section 3.1): what the tables say, and a model of layers.

Table 1 is the testbed. Figures 7 and 8 have no numbers; `simulate.ENVIRONMENTS` has the ratios of their text.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from topoplace.policies import DRMaestro
from topoplace_lab.papers.claims import ClaimedQuantity, PaperClaim, listed
from topoplace_lab.papers.drmaestro import rodinia
from topoplace_lab.papers.drmaestro.study import StudyRun
from topoplace_lab.papers.rules import near
from topoplace_lab.simulate import ExecutionEnvironment, NetworkContention, simulate
from topoplace_lab.simulate.processes import Runner
from topoplace_lab.simulate.samples import Sample

Cell = tuple[float, float]
"""Throughput in Gbit/s and latency in microseconds."""
HOST: Final[Cell] = (35.71, 102.77)
CONTAINER: Final[Mapping[str, Cell]] = {
    "host": (35.13, 104.48),
    "bridge": (15.82, 231.97),
    "vswitch": (16.01, 229.37),
}
"""Tables 2 and 3, from a container to its host, by network."""
TO_CONTAINER: Final[Mapping[str, Cell]] = {
    "host": (34.96, 105.0),
    "bridge": (15.96, 230.17),
    "vswitch": (16.86, 217.76),
}
VM: Final[Mapping[str, Cell]] = {"bridge": (8.64, 424.92), "vswitch": (7.94, 465.53)}
TO_VM: Final[Mapping[str, Cell]] = {"bridge": (9.24, 397.53), "vswitch": (8.77, 420.14)}
NESTED: Final[Mapping[tuple[str, str], Cell]] = {
    ("host", "host"): (33.74, 109.31),
    ("host", "bridge"): (16.06, 228.90),
    ("bridge", "host"): (15.56, 236.72),
    ("bridge", "bridge"): (12.53, 293.84),
    ("vswitch", "host"): (16.9, 217.25),
    ("vswitch", "bridge"): (12.19, 301.54),
}
"""Table 4, by the networks of the parent and of the child container."""
_NEAR: Final = 0.1
"""Predictions within 10 % count as the measured value."""
_JOBS: Final = (64, 4)
"""Jobs and machines of the simulation, those of table 9."""


def rows(runner: Runner, seeds: Sequence[int]) -> Iterator[PaperClaim]:
    """Compare section 3.1's tables with themselves and with a model of layers; apply them to DRMaestro's jobs."""
    yield _one_measurement()
    yield from _ratios()
    yield from _layers()
    yield _simulated(runner, seeds)


def predicted(parent: str, child: str) -> float:
    """Return the Gbit/s through two container networks if their times per bit add up."""
    own = (1 / CONTAINER[network][0] - 1 / HOST[0] for network in (parent, child))
    return 1 / (1 / HOST[0] + sum(own))


def _one_measurement() -> PaperClaim:
    cells = [HOST, *(cell for table in (CONTAINER, TO_CONTAINER, VM, TO_VM) for cell in table.values())]
    cells += NESTED.values()
    products = [gbit * microseconds / 1e3 for gbit, microseconds in cells]
    return ClaimedQuantity(
        "3.1 tables 2 to 4", "throughput times latency in each cell (Mbit)", "17 cells of two tables"
    ).of_the_paper(
        f"{min(products):.2f} to {max(products):.2f}",
        "netperf keeps the same data in flight, so latency follows from throughput: each pair is one measurement",
    )


def _ratios() -> Iterator[PaperClaim]:
    """Compare what the text says of the tables with the tables."""
    same = CONTAINER["host"][0] / HOST[0]
    yield ClaimedQuantity(
        "3.1.6 host network", "containers on the host's network: throughput over bare metal", "same"
    ).identity(f"{same:.3f}", near(1.0, tolerance=0.05), same)
    half = [CONTAINER[network][0] / HOST[0] for network in ("bridge", "vswitch")]
    yield ClaimedQuantity(
        "3.1.6 bridge",
        "containers behind a Linux bridge, Open vSwitch: throughput over bare metal",
        "about half",
    ).identity(listed(half, 2), near(0.5, 0.5, tolerance=0.1), *half)
    slower = [CONTAINER[network][0] / VM[network][0] for network in ("bridge", "vswitch")]
    yield ClaimedQuantity(
        "3.1.6 VM", "virtual machines behind these: times as slow as containers", "about 2"
    ).identity(listed(slower, 2), near(2.0, 2.0, tolerance=0.25), *slower)


def _layers() -> Iterator[PaperClaim]:
    """Predict table 4 from table 3: each network adds the time per bit that it adds to a single container."""
    for number, title in ((1, "one"), (2, "two")):
        pairs = [pair for pair in NESTED if len(pair) - pair.count("host") == number]
        ratios = [predicted(*pair) / NESTED[pair][0] for pair in pairs]
        yield ClaimedQuantity(
            f"3.1 nested, {title}",
            f"containers in containers, {title} of the networks not the host's: Gbit/s predicted, for "
            f"{', '.join(f'{child} in {parent}' for parent, child in pairs)}",
            listed(NESTED[pair][0] for pair in pairs),
        ).judged(
            listed(predicted(*pair) for pair in pairs),
            near(*(1.0,) * len(pairs), tolerance=_NEAR),
            *ratios,
            note="the ratio is compared; predicted from table 3, each network adding its time per bit",
        )


def _simulated(runner: Runner, seeds: Sequence[int]) -> PaperClaim:
    names = ("bare-metal", "container", "container-bridge", "vm-bridge")
    found = runner.results(makespan, [(name, seed) for name in names for seed in seeds])
    each = [Sample.of(found[i * len(seeds) : (i + 1) * len(seeds)]) for i in range(len(names))]
    ratios = [one.over(each[0]) for one in each[1:]]
    jobs, machines = _JOBS
    return ClaimedQuantity(
        "3.1 simulated",
        f"{jobs} jobs on {machines} machines, disaggregated: makespan over bare metal, in {', '.join(names[1:])}",
        "no such figure",
    ).not_comparable(
        listed(ratios, 3),
        "without the time to create environments, of which the text has ratios only: 1 to 8 to more than 16 for "
        "containers, nested ones and virtual machines (figure 8)",
    )


def makespan(environment: str, seed: int) -> float:
    """Simulate the jobs of table 9 in an environment, and return the seconds until the last Rodinia job ends."""
    jobs, machines = _JOBS
    result = simulate(
        rodinia.machines(machines),
        rodinia.workload(jobs, machines, seed),
        DRMaestro(profiles=rodinia.PROFILES),
        performance=ExecutionEnvironment(
            environment, NetworkContention(rodinia.PROFILES), profiles=rodinia.PROFILES
        ),
        seed=seed,
        hosts=rodinia.MACHINE,
    )
    return StudyRun.of(result, []).makespan
