"""Measure every kernel next to other libraries, every policy at four sizes; five minutes. The site shows what is kept.

python benchmarks/page.py                keep what was measured
python benchmarks/page.py -o other.json  write it elsewhere
python benchmarks/page.py --seconds 0.1  measure each case for a shorter time (2 s of CPU time by default)

Libraries that are not installed are left out, and named. `make bench` installs those that pip has.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from duels import record
from duels.duel import fight
from duels.kernel_duels import duels
from duels.page_text import this_machine
from duels.policy_times import SIZES, decision_times


def main(arguments: list[str]) -> int:
    """Measure everything and write the record."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("-o", "--output", type=Path, default=record.KEPT, help="the file to write")
    parser.add_argument("--seconds", type=float, default=2.0, help="CPU time for each case")
    given = parser.parse_args(arguments)
    machine = this_machine()
    outcomes = []
    for duel in duels():
        print(f"{duel.kernel}: {duel.what}", file=sys.stderr, flush=True)
        outcomes.append(fight(duel, given.seconds))
    times = []
    for size in SIZES:
        print(f"policies: {size:,} GPUs", file=sys.stderr, flush=True)
        times += decision_times(size)
    record.Record(machine, outcomes, times).write(given.output)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
