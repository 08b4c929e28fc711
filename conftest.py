"""What every test shares: hypothesis profiles, the optional reference data, versions in the header."""

from __future__ import annotations

import gc
import importlib.metadata
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings
from hypothesis.database import DirectoryBasedExampleDatabase, ExampleDatabase, InMemoryExampleDatabase

from command_line import Call, Called, exit_code_of
from distributions import MISSING, cannot_be_imported
from thoroughness import mark_deep
from topoplace import cli

REPOSITORY = Path(__file__).parent


def example_database(folder: Path) -> ExampleDatabase:
    """Where hypothesis keeps failing examples: in `folder`, or in memory if it is read-only."""
    if os.access(folder, os.W_OK):
        return DirectoryBasedExampleDatabase(folder / ".hypothesis" / "examples")
    return InMemoryExampleDatabase()


DATABASE = example_database(REPOSITORY)
settings.register_profile("dev", max_examples=30, deadline=None, database=DATABASE)
# Derandomized examples are always the same: there is nothing to keep.
# Fewer than "dev" has, which are new ones each time: these find what a change broke, and the night looks for the rest.
settings.register_profile(
    "ci", max_examples=10, deadline=None, derandomize=True, print_blob=True, database=None
)
settings.register_profile("deep", max_examples=5000, deadline=None, database=DATABASE)
settings.load_profile("dev")


def pytest_ignore_collect(collection_path: Path) -> bool | None:
    """Leave out a file that imports a distribution that is not installed."""
    if not MISSING or collection_path.is_dir():
        return None
    return (collection_path.suffix == ".py" and cannot_be_imported(collection_path)) or None


def pytest_report_header() -> str:
    names = ("numpy", "networkx", "igraph", "rustworkx", "hypothesis")
    installed = {one.name: one.version for one in importlib.metadata.distributions()}
    return "versions: " + ", ".join(f"{name} {installed.get(name, 'missing')}" for name in names)


@pytest.hookimpl(tryfirst=True)  # before -m chooses
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    mark_deep(items)


def pytest_collection_finish() -> None:
    gc.freeze()  # thousands of tests and all modules, which each full collection would look through


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    from one_process import OneProcessForEachGroup  # xdist need not be installed

    return OneProcessForEachGroup(config, log)


@pytest.fixture(scope="session")
def repository() -> Path:
    """The root of the repository."""
    return REPOSITORY


@pytest.fixture(scope="session")
def shared() -> Path:
    """The reference data next to the checkout or at $TOPOPLACE_SHARED; tests that need it skip without."""
    folder = Path(os.environ.get("TOPOPLACE_SHARED", REPOSITORY.parent / "shared"))
    if not (folder / "data").is_dir():
        pytest.skip(f"needs the reference data, and {folder / 'data'} does not exist (set TOPOPLACE_SHARED)")
    return folder


@pytest.fixture
def call(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Call:
    """Run a command line in this process."""
    monkeypatch.setattr(cli, "_prepare_output", lambda: None)
    monkeypatch.setattr(cli, "_discard_output", lambda: None)

    def run(*arguments: object) -> Called:
        code = exit_code_of([str(argument) for argument in arguments])
        return Called(code, *capsys.readouterr())

    return run


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """A line for each real sample of a machine or fabric: how it was read."""
    rows = [
        (
            report.nodeid.partition("[")[2].rstrip("]"),
            report.outcome,
            dict(report.user_properties).get("says"),
        )
        for outcome in ("passed", "failed")
        for report in terminalreporter.getreports(outcome)
        if report.when == "call" and "test_samples.py::test_sample[" in report.nodeid
    ]
    if rows:
        terminalreporter.section("real samples")
    for name, outcome, says in sorted(rows, key=str):
        terminalreporter.write_line(f"{outcome}  {name:44s} {says}")
