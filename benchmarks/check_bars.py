"""Check the promised speeds against their limits in one run: `make bars` (three minutes; `--peers` adds six).

Every row goes through the public API. Times are CPU times, converted to those of the reference machine by a yardstick
that is timed before, in between and after (`timing/yardstick.py`); what they are here stands in parentheses. What
misses its limit is measured up to twice more, and its best figure counts. A time up to 10 % above its limit is `near`
it, as the yardstick may err by that. Exits with 1 if a limit is missed.
"""

from __future__ import annotations

import argparse
import sys

from bars import (
    collectives,
    decisions,
    groups,
    least_time,
    peers,
    planning,
    simulations,
    splits,
    subgraphs,
    topologies,
)
from bars.bar import judged

AREAS = (subgraphs, collectives, splits, planning, simulations, decisions, groups, least_time, topologies)


def main(arguments: list[str]) -> int:
    """Print all bars; return 1 if one is missed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--peers", action="store_true", help="add ratios to other libraries")
    parser.add_argument("areas", nargs="*", help="only these areas, such as subgraphs", metavar="AREA")
    given = parser.parse_args(arguments)
    missed = 0
    for area in (*AREAS, *[peers] * given.peers):
        if given.areas and area.__name__.rpartition(".")[2] not in given.areas:
            continue
        for measure in area.MEASURES:
            for bar in judged(measure):
                print(bar, flush=True)
                missed += bar.missed
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
