"""Measure the tests, keep the numbers in docs/trust/ and write docs/trust.md from them.

python tools/write_trust.py                  measure all parts (about three hours of CPU time)
python tools/write_trust.py coverage         measure one part: coverage, kernels, mutants, threads, fuzz
python tools/write_trust.py mutants --again  try the survivors again, after a test was added
python tools/write_trust.py page             write the page from what is kept, in a second
python tools/write_trust.py --check          say whether the page is that of what is kept, with survivors explained
"""

from __future__ import annotations

import argparse
import sys

from trust import fuzzing, kept, kernel_coverage, mutation, page, python_coverage, threads

PARTS = {part.NAME: part for part in (python_coverage, kernel_coverage, mutation, threads, fuzzing)}
PAGE = kept.REPOSITORY / "docs/trust.md"


def main(arguments: list[str]) -> int:
    """Measure what the arguments say and write the page, or compare it; return 1 if it differs."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--check", action="store_true", help="measure and write nothing")
    commands = parser.add_subparsers(dest="part", metavar="PART")
    for name, part in PARTS.items():
        part.add_arguments(commands.add_parser(name, help=part.HELP, description=part.__doc__))
    commands.add_parser("page", help="measure nothing")
    given = parser.parse_args(arguments)
    if given.check:
        return check()
    for name in PARTS if given.part is None else {given.part} - {"page"}:
        options = given if given.part else parser.parse_args([name])
        kept.write(name, PARTS[name].measure(options, kept.read(name)))
    PAGE.write_text(text(), "utf-8")
    return 0


def text() -> str:
    """Return the page as what is kept gives it."""
    return page.page(PARTS, {name: kept.read(name) for name in PARTS})


def check() -> int:
    """Return 1, and say what is wrong, if the page is another one or a survivor has no explanation."""
    faults = [
        f"docs/trust/mutants.json: not explained: {line}"
        for line in mutation.unexplained(kept.read("mutants"))
    ]
    if not PAGE.exists() or PAGE.read_text("utf-8") != text():
        faults.append("docs/trust.md is not current: run python tools/write_trust.py page")
    print("".join(f"{fault}\n" for fault in faults), end="", file=sys.stderr)
    return int(bool(faults))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
