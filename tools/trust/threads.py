"""Kernels asked by several threads under ThreadSanitizer: `make thread-sanitizer`, with what it found."""

from __future__ import annotations

import argparse
import re
import subprocess

from trust.kept import REPOSITORY, Bar, Kept, run

NAME = "threads"
HELP = "C++: data races, by ThreadSanitizer (three minutes of CPU time)"
TESTS = REPOSITORY / "cpp/tests/test_threads.cpp"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add what the command line says about this part: nothing."""


def measure(given: argparse.Namespace, kept: Kept) -> Kept:
    """Build and run the tests with threads; return how many there are and what ThreadSanitizer reports."""
    run(["cmake", "--preset", "thread", "--log-level=WARNING"])
    run(["cmake", "--build", "--preset", "thread", "-j1"])
    program = REPOSITORY / "build/thread/cpp/tests/test_threads"
    done = subprocess.run([program], capture_output=True, text=True, check=False)
    tests = re.findall(r"^TEST\((\w+)\)", TESTS.read_text("utf-8"), re.MULTILINE)
    reports = done.stderr.count("WARNING: ThreadSanitizer")
    return {"tests": len(tests), "reports": reports, "failed": bool(done.returncode)}


def bars(kept: Kept) -> list[Bar]:
    """Return the line of the first table."""
    found = f"{kept['reports']} in {kept['tests']} tests" + (", and a test fails" if kept["failed"] else "")
    return [Bar("reports of ThreadSanitizer", "0", found, not kept["reports"] and not kept["failed"])]


def section(kept: Kept) -> str:
    """Return the section of the page."""
    return f"""## Threads

`make thread-sanitizer` builds the library with ThreadSanitizer and asks every kernel from several threads at once
(`cpp/tests/test_threads.cpp`): {kept["tests"]} tests, {kept["reports"]} reports.
[Measuring](measuring.md#threads) says what happens if a lock is left out.
"""
