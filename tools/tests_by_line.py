"""A pytest plugin that finds which tests execute a line of the package, and how long each test takes.

`pytest -p tests_by_line` with this folder on PYTHONPATH writes build/tests_by_line.json: test -> [seconds, {file:
lines}]. It needs the package `coverage`.
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
recorder = coverage.Coverage(source=["python/topoplace"], data_file=None, config_file=False, messages=False)
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


def pytest_sessionfinish() -> None:
    """Write the report."""
    data = recorder.get_data()
    report = {}
    for test, took in seconds.items():
        data.set_query_context(test)
        lines = {os.path.relpath(file): data.lines(file) for file in data.measured_files()}
        report[test] = [round(took, 3), {file: found for file, found in lines.items() if found}]
    REPORT.parent.mkdir(exist_ok=True)
    REPORT.write_text(json.dumps(report))
