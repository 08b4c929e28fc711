"""Simulation throughput: MAPA's 300 jobs under four policies on its five machines, ours and those of its artifact.

`python benchmarks/bench_simulate.py` prints the seconds of all twenty runs.
"""

from __future__ import annotations

import time
from typing import Any

import pytest

import topoplace as tp
from topoplace_lab.papers import mapa
from topoplace_lab.simulate import Workload, simulate

RULES = ("ours", "artifact")


def twenty_runs(rules: str) -> int:
    """Simulate 300 jobs x 4 policies x 5 machines and return the number of jobs that ran."""
    workload = Workload.mapa(300)
    jobs = 0
    for machine, name in mapa.MACHINES.items():
        topology = mapa.topology_of(machine) if rules == "artifact" else tp.machines.get(name)
        for kind in mapa.POLICIES.values():
            policy = kind() if rules == "artifact" else tp.policies.get(kind.name)
            jobs += sum(not record.rejected for record in simulate(topology, workload, policy).records)
    return jobs


@pytest.mark.parametrize("rules", RULES)
def test_twenty_simulations(benchmark: Any, rules: str) -> None:
    assert benchmark.pedantic(twenty_runs, args=(rules,), rounds=5, warmup_rounds=1) == 6000


def main() -> None:
    for rules in RULES:
        started = time.perf_counter()
        jobs = twenty_runs(rules)
        print(f"{time.perf_counter() - started:6.2f} s for {jobs} jobs in 20 runs, {rules}")


if __name__ == "__main__":
    main()
