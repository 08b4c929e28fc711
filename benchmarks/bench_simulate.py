"""Simulation throughput: MAPA's 300 jobs under four policies on its five machines, with both orders of ties.

`python benchmarks/bench_simulate.py` prints the seconds of all twenty runs.
"""

from __future__ import annotations

import time
from typing import Any

import pytest

import topoplace as tp
from topoplace_lab.papers.mapa import MACHINES, topology_of
from topoplace_lab.simulate import Workload, simulate

TIE_BREAKS = ("lexicographic", "artifact")
POLICIES = ("baseline", "mapa-topo-aware", "mapa-greedy", "mapa-preserve")


def twenty_runs(tie_break: str) -> int:
    """Simulate 300 jobs x 4 policies x 5 machines and return the number of jobs that ran."""
    workload = Workload.mapa(300)
    jobs = 0
    for machine, name in MACHINES.items():
        topology = topology_of(machine) if tie_break == "artifact" else tp.machines.get(name)
        for policy in POLICIES:
            result = simulate(topology, workload, tp.policies.get(policy, tie_break=tie_break))
            jobs += sum(not record.rejected for record in result.records)
    return jobs


@pytest.mark.parametrize("tie_break", TIE_BREAKS)
def test_twenty_simulations(benchmark: Any, tie_break: str) -> None:
    assert benchmark.pedantic(twenty_runs, args=(tie_break,), rounds=5, warmup_rounds=1) == 6000


def main() -> None:
    for tie_break in TIE_BREAKS:
        started = time.perf_counter()
        jobs = twenty_runs(tie_break)
        print(f"{time.perf_counter() - started:6.2f} s for {jobs} jobs in 20 runs, {tie_break}")


if __name__ == "__main__":
    main()
