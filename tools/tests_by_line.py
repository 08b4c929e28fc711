"""A pytest plugin that finds which tests execute a line of the package, and how long each test takes.

`pytest -p tests_by_line` with this folder on PYTHONPATH writes build/tests_by_line.json: test -> [seconds, {file:
lines}]; the rows of files that did not run stay. It needs the package `coverage`.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Generator
from pathlib import Path

import coverage
import pytest

REPORT = Path("build/tests_by_line.json")
recorder = coverage.Coverage(
    source=["python/topoplace", "lab/topoplace_lab", "hosts/topoplace_hosts"],
    data_file=None,
    config_file=False,
    messages=False,
)
seconds: dict[str, float] = {}


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Record the lines that a test executes, its fixtures' included, under its name."""
    recorder.start()  # again for each test, as some set their own trace function
    recorder.switch_context(item.nodeid)
    begin = time.perf_counter()
    try:
        return (yield)
    finally:
        seconds[item.nodeid] = time.perf_counter() - begin
        recorder.stop()


def pytest_sessionfinish(exitstatus: int) -> None:
    """Write the report, unless a test failed: the next run then takes the same tests as new or changed."""
    if exitstatus != pytest.ExitCode.OK:
        return
    data = recorder.get_data()
    former = json.loads(REPORT.read_text("utf-8")) if REPORT.exists() else {}
    run_now = {file_of(test) for test in seconds}
    report = {test: row for test, row in former.items() if file_of(test) not in run_now}
    executed: dict[str, dict[str, list[int]]] = {test: {} for test in seconds}
    for file in data.measured_files():
        for line, tests in data.contexts_by_lineno(file).items():
            for test in tests:
                executed[test].setdefault(os.path.relpath(file), []).append(line)
    report |= {test: [round(took, 3), executed[test]] for test, took in seconds.items()}
    REPORT.parent.mkdir(exist_ok=True)
    REPORT.write_text(json.dumps(report), "utf-8")


def file_of(test: str) -> str:
    """Return the file of a test."""
    return test.partition("::")[0]
