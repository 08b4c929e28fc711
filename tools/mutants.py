"""Measure the tests: plant small faults in a copy of the repository, one at a time, and count those that no test finds.

The faults are those of `python_faults.py` and `cpp_faults.py`. One in Python is shown to the tests that execute its
line, the quickest first; one in C++ to the C++ tests of its kernel, built with assertions. The copy is build/mutants;
it is kept, so that the next run need not compile everything nor find again which test executes what.
"""

from __future__ import annotations

import argparse
import ast
import filecmp
import json
import math
import os
import random
import re
import resource
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from cpp_faults import cpp_edits
from python_faults import python_edits
from test_changed import REPOSITORY, git

# The copy's sitecustomize.py: no editable install may import the repository's own files instead of the copy's.
UNHOOK = """import sys
sys.meta_path[:] = [finder for finder in sys.meta_path if "ScikitBuild" not in type(finder).__name__]
"""
PYTEST = [sys.executable, "-m", "pytest", "-x", "-q", "--hypothesis-seed=0", "-p", "no:cacheprovider"]
KERNEL_TESTS = [*PYTEST, "tests/kernels"]
# The tests of Python files. Those that set a trace function of their own cannot be traced.
SUITE = [
    *(
        f"tests/{name}"
        for name in ("objectives", "engine", "cluster", "jobs", "simulate", "policies", "contract")
    ),
    "--ignore=tests/cluster/test_interrupts.py",
]
MEMORY_BYTES = 6 << 30  # a fault may allocate without end
SLACK = 4  # how much longer a command may take than without a fault
IDLE = (
    10  # seconds that a command may take for each second of CPU time that it may use: the machine may be busy
)


@dataclass(frozen=True, order=True)
class Mutant:
    """A fault: in the file at `path`, `old` at the offset `begin` (in characters) becomes `new`."""

    path: Path
    begin: int
    line: int
    old: str
    new: str

    def __str__(self) -> str:
        old, new = (re.sub(r"\s+", " ", text)[:60] for text in (self.old, self.new or "(nothing)"))
        return f"{self.path}:{self.line} (at {self.begin}) {old} -> {new}"

    def applied_to(self, text: str) -> str:
        """Return the file's `text` with the fault in it."""
        return text[: self.begin] + self.new + text[self.begin + len(self.old) :]


class Copy:
    """A copy of the repository's files at `root`, in which tests run."""

    def __init__(self, root: Path) -> None:
        self.root = root
        names = git("ls-files", "--cached", "--others", "--exclude-standard")
        for name in names:
            self.restore(Path(name))
        for folder in ("python", "lab", "hosts", "tests", "cpp"):
            for path in (root / folder).rglob("*.[pch]*"):
                if path.is_file() and str(path.relative_to(root)) not in names:
                    path.unlink()  # it is gone since the last run
        (root / "python" / "sitecustomize.py").write_text(UNHOOK)
        self.environment = {
            "TOPOPLACE_SHARED": str(REPOSITORY.parent / "shared"),
            **os.environ,
            "PYTHONPATH": f"{root / 'python'}:{root / 'lab'}:{root / 'hosts'}:{root / 'tools'}",
            "PYTHONDONTWRITEBYTECODE": "1",
        }

    def restore(self, path: Path) -> None:
        """Copy the file at `path`, below the repository, if its copy differs."""
        source, target = REPOSITORY / path, self.root / path
        if source.is_file() and not (target.exists() and filecmp.cmp(source, target, shallow=False)):
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source, target)

    def take_extension(self, folder: Path) -> None:
        """Let the copy's Python tests import the extension in `folder`."""
        extension = next(folder.glob("_core*.so"))
        target = self.root / "python" / "topoplace" / extension.name
        target.unlink(missing_ok=True)  # processes that loaded the old file keep it
        shutil.copyfile(extension, target)

    def run(self, command: Sequence[str], limit_s: float = 3600) -> str:
        """Return what `command` does to a fault in the copy: "survived", "killed" or "timeout".

        limit_s: CPU seconds that each of its processes may use.
        """

        def limited() -> None:
            resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
            resource.setrlimit(resource.RLIMIT_CPU, (math.ceil(limit_s), math.ceil(limit_s) + 5))

        process = subprocess.Popen(
            command,
            cwd=self.root,
            env=self.environment,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            preexec_fn=limited,
        )
        try:
            code = process.wait(IDLE * limit_s)
            return "timeout" if code == -signal.SIGXCPU else "killed" if code else "survived"
        except subprocess.TimeoutExpired:
            return "timeout"
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()


class PythonTests:
    """The tests of Python files: those that execute a line, as far as they take `budget_s` seconds."""

    def __init__(self, copy: Copy, budget_s: float) -> None:
        import topoplace._core

        copy.take_extension(Path(topoplace._core.__file__).parent)
        self.budget_s = budget_s
        report = copy.root / "build" / "tests_by_line.json"
        new = changed_tests(copy, report.stat().st_mtime) if report.exists() else SUITE
        if new and copy.run([*PYTEST, "-p", "tests_by_line", *new]) != "survived":
            sys.exit(f"tests fail without a fault, or `coverage` is not installed: see {copy.root}")
        known = json.loads(report.read_text("utf-8")).items()
        present = [item for item in known if (REPOSITORY / item[0].partition("::")[0]).exists()]
        self.tests = sorted(present, key=lambda item: item[1][0])

    def attempt(self, copy: Copy, mutant: Mutant) -> str:
        """Return what the tests do to `mutant`, which is planted in the copy."""
        lines = set(statement_at((REPOSITORY / mutant.path).read_text("utf-8"), mutant.line))
        chosen, seconds = [], 0.0
        for test, (took, files) in self.tests:
            if seconds + took < self.budget_s and not lines.isdisjoint(files.get(str(mutant.path), ())):
                chosen.append(test)
                seconds += took
        return copy.run([*PYTEST, *chosen], 30 + SLACK * seconds) if chosen else "survived"


def changed_tests(copy: Copy, since: float) -> list[str]:
    """Return the files of SUITE that were copied since a time, as they are new or have changed."""
    ignored = {part.removeprefix("--ignore=") for part in SUITE}
    files = [file for part in SUITE for file in sorted((copy.root / part).rglob("test_*.py"))]
    recent = [str(file.relative_to(copy.root)) for file in files if file.stat().st_mtime > since]
    return [name for name in recent if name not in ignored]


def statement_at(text: str, line: int) -> range:
    """Return the lines of the innermost statement at `line` within a function; outside functions, all lines."""
    functions = (node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.FunctionDef))
    bodies = (node for f in functions for part in f.body for node in ast.walk(part))
    spans = [range(n.lineno, (n.end_lineno or n.lineno) + 1) for n in bodies if isinstance(n, ast.stmt)]
    everything = range(1, text.count("\n") + 2)
    return min((span for span in spans if line in span), key=len, default=everything)


class CppTests:
    """The tests of C++ files: those named after their kernel, and with `python` those of all kernels in Python."""

    def __init__(self, copy: Copy, python: bool) -> None:
        self.build = copy.root / "build" / "dev"
        self.python = python
        self.limits_s: dict[str, float] = {}
        find = [sys.executable, "-m", "pybind11", "--cmakedir"]
        pybind11 = subprocess.run(find, capture_output=True, text=True, check=True).stdout.strip()
        options = {
            "TOPOPLACE_PYTHON": "ON",
            "CMAKE_CXX_FLAGS": "-w",  # an unused variable is a fault to be found by a test
            "pybind11_DIR": pybind11,
            "Python_EXECUTABLE": sys.executable,
        }
        defined = [f"-D{name}={value}" for name, value in options.items()]
        subprocess.run(["cmake", "--preset", "dev", *defined], cwd=copy.root, check=True)
        subprocess.run(["cmake", "--build", "--preset", "dev", "-j1"], cwd=copy.root, check=True)
        copy.take_extension(self.build)
        if python and copy.run(KERNEL_TESTS) != "survived":
            sys.exit(f"tests/kernels fail without a fault: see {copy.root}")
        for kernel in sorted(path.name for path in (copy.root / "cpp" / "src").iterdir()):
            begin = time.monotonic()
            if copy.run(self.ctest(kernel)) != "survived":
                sys.exit(f"tests of {kernel} fail without a fault: see {self.build}")
            self.limits_s[kernel] = 30 + SLACK * (time.monotonic() - begin)

    def ctest(self, kernel: str) -> list[str]:
        """Return the command that runs the C++ tests of `kernel`; all for graphs, which every kernel reads."""
        chosen = "test_|fuzz_" if kernel == "graph" else kernel
        return ["ctest", "--test-dir", str(self.build), "--stop-on-failure", "-R", chosen]

    def attempt(self, copy: Copy, mutant: Mutant) -> str:
        """Return what the tests do to `mutant`, which is planted in the copy."""
        kernel = mutant.path.parts[2]
        names = {
            path.stem for part in ("tests", "fuzz") for path in (copy.root / "cpp" / part).rglob("*_*.cpp")
        }
        targets = [name for name in sorted(names) if kernel in name] or ["all"]
        if copy.run(["cmake", "--build", str(self.build), "-j1", "--target", *targets]) != "survived":
            return "does not compile"
        verdict = copy.run(self.ctest(kernel), self.limits_s[kernel])
        if verdict == "survived" and self.python:
            copy.run(["cmake", "--build", str(self.build), "-j1", "--target", "_core"])
            copy.take_extension(self.build)
            verdict = copy.run(KERNEL_TESTS, 1200)
        return verdict


def attempt(copy: Copy, tests: PythonTests | CppTests, mutant: Mutant) -> str:
    """Plant `mutant` in the copy, return what the tests do to it, and restore the file."""
    target = copy.root / mutant.path
    target.write_text(mutant.applied_to(target.read_text("utf-8")), "utf-8")
    try:
        return tests.attempt(copy, mutant)
    finally:
        copy.restore(mutant.path)


def mutants_of(paths: Sequence[Path]) -> list[Mutant]:
    """Return every mutant of the files below `paths`."""
    found = [file for path in paths for file in ([path] if path.is_file() else sorted(path.rglob("*.*")))]
    every = []
    for file in (file.resolve() for file in found if file.suffix in (".py", ".cpp", ".hpp")):
        text, path = file.read_text("utf-8"), file.relative_to(REPOSITORY)
        edits = sorted(set(python_edits(text) if file.suffix == ".py" else cpp_edits(text)))
        every += [Mutant(path, at, text.count("\n", 0, at) + 1, old, new) for at, old, new in edits]
    return every


def sample(paths: Sequence[Path], count: int, seed: int, again: Path | None) -> list[Mutant]:
    """Return `count` mutants of the files below `paths`, or those that the report `again` says survived."""
    every = mutants_of(paths)
    if again:
        lines = [line for line in again.read_text("utf-8").splitlines() if line.startswith("survived")]
        return [mutant for mutant in every if any(line.endswith(str(mutant)) for line in lines)]
    return sorted(random.Random(seed).sample(every, min(count, len(every))))


def main() -> int:
    """Try the sampled mutants, print a line for each and the share that the tests detect."""
    parser = argparse.ArgumentParser(description="Plant small faults, and count those that no test finds.")
    parser.add_argument("paths", nargs="+", type=Path, help="files or folders, all Python or all C++")
    parser.add_argument("--count", type=int, default=20, help="how many mutants to draw (20)")
    parser.add_argument("--seed", type=int, default=0, help="which ones to draw (0)")
    parser.add_argument("--budget", type=float, default=60, help="Python: seconds of tests for a mutant (60)")
    parser.add_argument(
        "--python", action="store_true", help="C++: show survivors to tests in Python as well"
    )
    parser.add_argument("--again", type=Path, help="a former report: try what survived there")
    parser.add_argument("--copy", type=Path, default=REPOSITORY / "build" / "mutants", help="where to work")
    arguments = parser.parse_args()
    mutants = sample(arguments.paths, arguments.count, arguments.seed, arguments.again)
    copy = Copy(arguments.copy.resolve())
    python = all(mutant.path.suffix == ".py" for mutant in mutants)
    tests = PythonTests(copy, arguments.budget) if python else CppTests(copy, arguments.python)
    verdicts: Counter[str] = Counter()
    for mutant in mutants:
        begin = time.monotonic()
        verdict = attempt(copy, tests, mutant)
        verdicts[verdict] += 1
        print(f"{verdict:8} {time.monotonic() - begin:5.1f} s  {mutant}", flush=True)
    detected = verdicts["killed"] + verdicts["timeout"]
    valid = detected + verdicts["survived"]
    print(f"{detected} of {valid} mutants detected ({detected / max(1, valid):.1%}); {dict(verdicts)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
