"""Regenerate the extension's stub and compare it with the committed one; --write replaces that."""

from __future__ import annotations

import difflib
import subprocess
import sys
import tempfile
from pathlib import Path

COMMITTED = Path(__file__).parents[1] / "python" / "topoplace" / "_core.pyi"


def generate() -> str:
    """Return what pybind11-stubgen says about the extension that is installed now."""
    with tempfile.TemporaryDirectory() as directory:
        command = ["pybind11-stubgen", "topoplace._core", "--numpy-array-use-type-var", "--exit-code"]
        subprocess.run([*command, "-o", directory], check=True, stderr=subprocess.DEVNULL)
        return (Path(directory) / "topoplace" / "_core.pyi").read_text()


def main(arguments: list[str]) -> int:
    """Check, or with --write rewrite; 1 if the committed stub is stale."""
    fresh = generate()
    if "--write" in arguments:
        COMMITTED.write_text(fresh)
        return 0
    difference = list(
        difflib.unified_diff(
            COMMITTED.read_text().splitlines(), fresh.splitlines(), "committed", "generated", lineterm=""
        )
    )
    print("\n".join(difference or ["the stub is fresh"]))
    if difference:
        print("_core.pyi is stale: run `make stubs` and commit it")
    return int(bool(difference))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
