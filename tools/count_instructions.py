"""Count the instructions of the cases in cpp/tests/instructions/ and compare them with the table there.

python tools/count_instructions.py PROGRAM          compare; exit with 1 if a case takes over 10 % more
python tools/count_instructions.py PROGRAM --write  count and write the table

PROGRAM is build/release/cpp/tests/instructions. Counts depend on the compiler and the C library, not on what else
the machine does: where those differ from the table's, or valgrind is missing, the comparison is skipped.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

TABLE = Path(__file__).parents[1] / "cpp/tests/instructions/counts.json"
MOST = 1.10  # times the count in the table
COUNTED = "instructions::count(void (*)(void*), void*)"
# Copying and comparing use the same instructions on every x86-64 processor, not the widest that one has.
TUNABLES = "glibc.cpu.hwcaps=-AVX2,-AVX_Fast_Unaligned_Load,-AVX2_Usable,-ERMS,-FSRM"
WRITE = "make counts COUNTS=--write"


class Table(NamedTuple):
    """Instructions of each case, and what they were counted with."""

    built_with: Mapping[str, str]
    """Compiler and C library, each as `name major.minor`, and the processor's architecture."""
    instructions: Mapping[str, int]

    @classmethod
    def read(cls, path: Path) -> Table:
        """Read a table from its file."""
        return cls(**json.loads(path.read_text(encoding="utf-8")))

    def write(self, path: Path) -> None:
        """Write this table to a file, a case in each line."""
        path.write_text(json.dumps(self._asdict(), indent=2) + "\n", encoding="utf-8")


def main(arguments: list[str]) -> int:
    """Count, then compare with the table or write it; return 1 if a case is dearer, unknown or missing."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("program", type=Path, help="the built cases")
    parser.add_argument("--write", action="store_true", help="write the table")
    given = parser.parse_args(arguments)
    kept = Table.read(TABLE) if TABLE.exists() else None
    built_with = dict(line.split("\t") for line in run(given.program, "--built-with").splitlines())
    if reason := why_not(built_with, None if given.write else kept):
        print(f"instruction counts: skipped, {reason}", file=sys.stderr)
        return int(given.write)
    counted = Table(built_with, count(given.program))
    if given.write or kept is None:
        counted.write(TABLE)
        return 0
    faults = list(differences(kept.instructions, counted.instructions))
    print(*faults, *hints(kept.instructions, counted.instructions), sep="\n", file=sys.stderr, end="")
    return int(bool(faults))


def why_not(built_with: Mapping[str, str], kept: Table | None) -> str | None:
    """Return why counts cannot be taken here or compared with a table; None if they can."""
    if shutil.which("valgrind") is None:
        return "there is no valgrind"
    for what, there in kept.built_with.items() if kept else ():
        here = built_with[what]
        # a compiler's minor releases mend faults and keep its code; those of the C library change it
        same = here.split(".")[0] == there.split(".")[0] if what == "compiler" else here == there
        if not same:
            return f"the table was counted with {there}, and this is {here}"
    return None


def count(program: Path) -> dict[str, int]:
    """Return the instructions of each case."""
    names = run(program, "--list").split()
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(os.cpu_count()) as threads:
        return dict(
            zip(names, threads.map(lambda name: count_one(program, name, Path(folder)), names), strict=True)
        )


def count_one(program: Path, name: str, folder: Path) -> int:
    """Return the instructions of one case, in its own process: what ran before would change them."""
    profile = folder / name
    run(
        "valgrind",
        *("--tool=callgrind", "--quiet", f"--callgrind-out-file={profile}", f"--toggle-collect={COUNTED}"),
        *(program, name),
        environment={"GLIBC_TUNABLES": TUNABLES, "PATH": os.environ["PATH"]},
    )
    found = re.search(r"^(?:summary|totals): (\d+)$", profile.read_text(encoding="utf-8"), re.MULTILINE)
    if found is None or int(found[1]) == 0:
        raise RuntimeError(f"{name}: callgrind counted nothing in {COUNTED}")
    return int(found[1])


def run(*command: str | Path, environment: Mapping[str, str] | None = None) -> str:
    """Run a program and return what it prints; its errors are shown."""
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, env=environment).stdout


def differences(kept: Mapping[str, int], counted: Mapping[str, int]) -> Iterator[str]:
    """Yield a line for each case that takes over 10 % more, or that only one of both tables has."""
    for name, now in counted.items():
        before = kept.get(name)
        if before is None:
            yield f"{name}: {now:,} instructions, and no count is kept: run {WRITE}"
        elif now > MOST * before:
            yield f"{name}: {before:,} instructions before, {now:,} now, {now / before - 1:+.1%} (at most +10 %)"
    for name in kept.keys() - counted.keys():
        yield f"{name}: a count is kept, and there is no such case: run {WRITE}"


def hints(kept: Mapping[str, int], counted: Mapping[str, int]) -> Iterator[str]:
    """Yield a line for each case that takes over 10 % less: a later rise to the old count would go unseen."""
    for name, before in kept.items():
        now = counted.get(name, before)
        if now * MOST < before:
            yield f"{name}: {before:,} instructions before, {now:,} now, {now / before - 1:+.1%}: keep it by {WRITE}"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
