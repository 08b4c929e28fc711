"""Measure the tests and keep the numbers, of which the site makes the page of trust.

python tools/write_trust.py                  measure all parts (about three hours of CPU time)
python tools/write_trust.py coverage         measure one part: coverage, kernels, mutants, threads, fuzz
python tools/write_trust.py mutants --again  try the survivors again, after a test was added
python tools/write_trust.py --check          say whether all survivors are explained
"""

from __future__ import annotations

import argparse
import sys

from trust import fuzzing, kept, kernel_coverage, mutation, page, python_coverage, threads

PARTS = {part.NAME: part for part in (python_coverage, kernel_coverage, mutation, threads, fuzzing)}


def main(arguments: list[str]) -> int:
    """Measure what the arguments say, or check what is kept; return 1 if a survivor has no explanation."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--check", action="store_true", help="measure nothing")
    commands = parser.add_subparsers(dest="part", metavar="PART")
    for name, part in PARTS.items():
        part.add_arguments(commands.add_parser(name, help=part.HELP, description=part.__doc__))
    given = parser.parse_args(arguments)
    if given.check:
        return check()
    for name in PARTS if given.part is None else [given.part]:
        options = given if given.part else parser.parse_args([name])
        kept.write(name, PARTS[name].measure(options, kept.read(name)))
    return 0


def text() -> str:
    """Return the page as what is kept gives it."""
    return page.page(PARTS, {name: kept.read(name) for name in PARTS})


def check() -> int:
    """Return 1, and name them, if survivors have no explanation."""
    unexplained = list(mutation.unexplained(kept.read("mutants")))
    for line in unexplained:
        print(f"tools/trust/measured/mutants.json: not explained: {line}", file=sys.stderr)
    return int(bool(unexplained))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
