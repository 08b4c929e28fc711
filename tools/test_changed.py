"""Run the tests of the files changed since main, quickly enough to do so before every commit.

For a changed file of a package, this runs the folder that mirrors its own: of `tests/`, `lab/tests/` or `hosts/tests/`.
A changed test runs itself; any other change (tools, pyproject, docs) runs `tests/house`. For C++, use `make cpp-test`.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

REPOSITORY = Path(__file__).parents[1]
TESTS = {
    "python/topoplace": "tests",
    "lab/topoplace_lab": "lab/tests",
    "hosts/topoplace_hosts": "hosts/tests",
}
"""The folder with the tests of each package."""
# Where the tests of a module or package are, if `tests/` does not mirror it.
ELSEWHERE = {
    "placement.py": "tests/test_placement.py",
    "testing": "tests/contract",
}


def changed(base: str) -> list[Path]:
    """Return the files changed since this branch left `base`, including uncommitted and new files."""
    fork = git("merge-base", base, "HEAD")[0]
    names = [*git("diff", "--name-only", fork), *git("ls-files", "--others", "--exclude-standard")]
    return [Path(name) for name in dict.fromkeys(names)]


def git(*arguments: str) -> list[str]:
    """Run git with `arguments` and return the lines it prints."""
    done = subprocess.run(["git", *arguments], capture_output=True, text=True, check=True, cwd=REPOSITORY)
    return done.stdout.splitlines()


def tests_of(path: Path) -> str | None:
    """Return the nearest test file or folder that covers `path`; None if C++ tests cover it."""
    if "tests" in path.parts and path.name.startswith("test_"):
        return str(path)
    if path.parts[0] == "cpp":
        return None
    for package, tests in TESTS.items():
        if path.is_relative_to(package):
            below = path.relative_to(package)
            if below.parts[0] in ELSEWHERE:
                return ELSEWHERE[below.parts[0]]
            folders = (Path(tests) / part for part in below.parents if part.parts)
            return next((str(found) for found in folders if (REPOSITORY / found).is_dir()), "tests/house")
    return "tests/house"


def main(arguments: list[str]) -> int:
    """Run the tests of the changes since the given branch or commit, by default main; return the exit code."""
    base = arguments[0] if arguments else "main"
    found = {tests for path in changed(base) if (tests := tests_of(path)) and (REPOSITORY / tests).exists()}
    chosen = sorted(
        t for t in found if not any(t != other and Path(t).is_relative_to(other) for other in found)
    )
    if not chosen:
        print(f"nothing has changed since {base} that Python tests cover")
        return 0
    command = [sys.executable, "-m", "pytest", "-q", "-n", str(os.cpu_count() or 1)]
    command += ["-m", "not reproduction and not deep", *chosen]
    print(" ".join(command[1:]))
    return subprocess.run(command, cwd=REPOSITORY).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
