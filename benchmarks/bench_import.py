"""CPU time of `import topoplace` and of `topoplace --help`, compared with a bare start of Python.

`python benchmarks/bench_import.py` prints the table.
"""

from __future__ import annotations

import resource
import statistics
import subprocess
import sys

import pytest

CASES = {
    "python": "pass",
    "numpy": "import numpy",
    "topoplace": "import topoplace",
    "topoplace --help": "from topoplace.cli import main; main(['--help'])",
    "first placement": (
        "import topoplace as tp; topo = tp.machines.get('dgx1-v100');"
        " tp.policies.get('mapa-preserve').place(tp.JobGraph.ring(3), tp.Cluster(topo))"
    ),
}


def start(statement: str) -> None:
    """Run `statement` in a fresh interpreter; the exit of argparse after --help is not a failure."""
    subprocess.run([sys.executable, "-c", statement], check=True, stdout=subprocess.DEVNULL)


def cpu_seconds(statement: str) -> float:
    """Return the user and system CPU seconds of a fresh interpreter that runs `statement`."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    start(statement)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime


@pytest.mark.parametrize("case", CASES)
def test_start(benchmark: pytest.FixtureDef[object], case: str) -> None:
    benchmark.pedantic(start, args=(CASES[case],), rounds=10, warmup_rounds=2)


def main() -> None:
    for statement in CASES.values():
        start(statement)  # compiles the byte code that later starts use
    bare = statistics.median(cpu_seconds(CASES["python"]) for _ in range(15))
    for case, statement in CASES.items():
        median = statistics.median(cpu_seconds(statement) for _ in range(15))
        print(f"{case:20} {1e3 * median:7.1f} ms CPU, {1e3 * (median - bare):7.1f} over a bare start")


if __name__ == "__main__":
    main()
