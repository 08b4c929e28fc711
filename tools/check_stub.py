"""Regenerate the extension's stub and compare it with the committed one, or replace that with --write."""

from __future__ import annotations

import difflib
import subprocess
import sys
import tempfile
from pathlib import Path

COMMITTED = Path(__file__).parents[1] / "python" / "topoplace" / "_core.pyi"


def generate() -> str:
    """Return the stub that pybind11-stubgen generates for the installed extension."""
    with tempfile.TemporaryDirectory() as directory:
        command = ["pybind11-stubgen", "topoplace._core", "--numpy-array-use-type-var", "--exit-code"]
        subprocess.run([*command, "-o", directory], check=True, stderr=subprocess.DEVNULL)
        return (Path(directory) / "topoplace" / "_core.pyi").read_text("utf-8")


def main(arguments: list[str]) -> int:
    """Check the committed stub, or replace it with --write; return 1 if it is stale, else 0."""
    fresh = generate()
    if "--write" in arguments:
        COMMITTED.write_text(fresh)
        return 0
    difference = list(
        difflib.unified_diff(
            COMMITTED.read_text("utf-8").splitlines(),
            fresh.splitlines(),
            "committed",
            "generated",
            lineterm="",
        )
    )
    print("\n".join(difference or ["the stub is fresh"]))
    if difference:
        print("_core.pyi is stale: run `make stubs` and commit it")
    return int(bool(difference))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
