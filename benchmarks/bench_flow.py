"""Minimum-cost flow against OR-tools and LEMON's network simplex: the same networks, one process, one thread.

`python benchmarks/bench_flow.py` solves scheduling graphs and DRMaestro's phase-2 graphs at 50, 95 and 150 % load (also
with spare tasks, with wide costs and on 10 machines), families after NETGEN, GRIDGEN and GOTO, and dense assignments of
2^8 to 2^14 nodes. It prints the minimum CPU time of solving and geometric means of ratios, and checks that all agree on
every optimum. `--quick` leaves out 10,000 machines and 2^14 nodes. `pip install --group peers` installs ortools and
pylmcf.
"""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple

import pytest

from instances.flow_instances import FAMILIES, LOADS, POWERS, SLOTS, TASKS_OF, Instance, Workload, workload
from instances.flow_live import Rounds, churned
from libraries.flow_libraries import LIBRARIES, OURS, Measured, installed, measure

MACHINES = (1_000, 10_000)
SMALL = (10,)
BUILD = Callable[[], Instance]


# ---- measuring ---------------------------------------------------------------------------------------------------


class Row(NamedTuple):
    """A network with the measurements of its solvers."""

    instance: Instance
    measured: dict[str, Measured]

    def over(self, peer: str, ours: str = "auto") -> float:
        """Return the peer's time over ours."""
        return self.measured[peer].milliseconds / self.measured[ours].milliseconds

    def over_best(self, ours: str = "auto") -> float:
        """Return the time of the fastest other library over ours."""
        return min(self.over(peer, ours) for peer in self.measured if peer not in OURS)


def solve(build: BUILD, libraries: Sequence[str]) -> Row:
    instance = build()
    row = Row(instance, {name: measure(LIBRARIES[name], instance) for name in libraries})
    costs = {name: found.cost for name, found in row.measured.items()}
    if len(set(costs.values())) != 1:
        raise AssertionError(f"{instance.name}: not the same optimum: {costs}")
    return row


def mean(rows: Sequence[Row], ratio: Callable[[Row], float]) -> float:
    return statistics.geometric_mean(map(ratio, rows))


def schedules(family: str, load: float, machines: Sequence[int] = MACHINES) -> list[BUILD]:
    """Return networks of one kind and load, one for each number of machines."""
    return [lambda count=count: workload(family, count, load).instance() for count in machines]


def spare(family: str, load: float) -> Instance:
    """Return a network of 1,000 machines in which some of the tasks supply nothing."""
    return workload(family, MACHINES[0], load).instance().with_spares()


def powers(family: str, most: int = POWERS[-1]) -> list[BUILD]:
    return [partial(FAMILIES[family], power) for power in POWERS if power <= most]


# ---- re-solved networks ------------------------------------------------------------------------------------------

LARGEST = 12_500  # machines: Firmament's scale (Gog et al., OSDI 2016)
LARGEST_TASKS = 100_000


def kept(machines: int, load: float) -> Workload:
    """Return a workload to change and re-solve; on the most machines, 100,000 tasks at any load."""
    slots = round(LARGEST_TASKS / (LARGEST * load)) if machines == LARGEST else SLOTS
    return workload("scheduling", machines, load, slots=slots)


def over_cold(rounds: Rounds, peers: Sequence[str]) -> float:
    """Return the time of the fastest other library on the last network from scratch, over ours.

    Only solving counts: updating our network is left out, like building theirs.
    """
    row = solve(rounds.last.instance, ["auto", *peers])
    if row.measured["auto"].cost != rounds.cost:
        raise AssertionError(
            f"{row.instance.name}: re-solved {rounds.cost}, from scratch {row.measured['auto'].cost}"
        )
    return row.over_best() * row.measured["auto"].milliseconds / statistics.median(rounds.solve)


# ---- pytest-benchmark --------------------------------------------------------------------------------------------

QUICK = [workload(family, 1000, load).instance() for family in ("scheduling", "phase 2") for load in LOADS]
QUICK += [build(10) for build in FAMILIES.values()]


@pytest.mark.parametrize("name", LIBRARIES)
@pytest.mark.parametrize("instance", QUICK, ids=lambda instance: instance.name)
def test_flow(benchmark: Any, instance: Instance, name: str) -> None:
    if not LIBRARIES[name].installed:
        pytest.skip(f"{name} is not installed")
    benchmark.group = instance.name
    prepared = []

    def setup() -> None:
        prepared[:] = [LIBRARIES[name].prepare(instance)]

    answer = benchmark.pedantic(lambda: prepared[0].solve(), setup=setup, rounds=5)
    assert prepared[0].cost(answer) > 0


# ---- as a program ------------------------------------------------------------------------------------------------


def report(title: str, builds: Sequence[BUILD], libraries: Sequence[str]) -> list[Row]:
    """Print a table and return its rows."""
    print(f"\n{title}: CPU ms\n")
    print(f"| network | nodes / arcs | {' | '.join(libraries)} |\n|---|---|{'---|' * len(libraries)}")
    rows = []
    for build in builds:
        rows.append(solve(build, libraries))
        instance = rows[-1].instance
        times = " | ".join(f"{found.milliseconds:,.2f}" for found in rows[-1].measured.values())
        size = f"{instance.num_nodes:,} / {len(instance.tail):,}"
        print(f"| {instance.name} | {size} | {times} |", flush=True)
    for peer in (name for name in libraries if name not in OURS):
        print(f"{peer} over ours, geometric mean: {mean(rows, lambda row, peer=peer: row.over(peer)):.2f}")
    return rows


KEPT = [*((machines, load) for machines in MACHINES for load in LOADS), (LARGEST, 8 / 9), (LARGEST, 1)]


def report_kept(peers: Sequence[str], cases: Sequence[tuple[int, float]]) -> None:
    print("\nKept, 1 % of tasks go and come, what waits costs more: CPU ms, medians of ten rounds\n")
    print("| network | update | re-solve | fastest peer from scratch over re-solve |\n|---|---|---|---|")
    for case in cases:
        workload_ = kept(*case)
        rounds = churned(workload_, 10)
        updated, solved = statistics.median(rounds.change), statistics.median(rounds.solve)
        ratio = f"{over_cold(rounds, peers):.1f}" if peers else "-"
        print(f"| {workload_.instance().name} | {updated:.2f} | {solved:.2f} | {ratio} |", flush=True)


def tables(quick: bool) -> Iterator[tuple[str, list[BUILD]]]:
    machines = MACHINES[:1] if quick else MACHINES
    for family in ("scheduling", "phase 2"):
        yield family, [build for load in LOADS for build in schedules(family, load, machines)]
    yield "wide costs", [build for load in LOADS for build in schedules("wide costs", load, machines)]
    yield "spare tasks", [partial(spare, family, load) for family in TASKS_OF for load in LOADS]
    yield (
        "small",
        [build for family in TASKS_OF for load in LOADS for build in schedules(family, load, SMALL)],
    )
    for family in FAMILIES:
        yield family, powers(family, POWERS[-2] if quick else POWERS[-1])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="leave out 10,000 machines and 2^14 nodes")
    arguments = parser.parse_args()
    libraries = [*OURS, *installed()]
    for title, builds in tables(arguments.quick):
        report(title, builds, libraries)
    report_kept(installed(), [(1_000, 0.95)] if arguments.quick else KEPT)


if __name__ == "__main__":
    main()
