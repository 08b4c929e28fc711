"""Commands of other installed packages: they are listed last, and one that cannot be imported stops no other."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from command_line import Call
from offered_policies import installer
from topoplace import _installed

COMMAND = '''
from topoplace.cli import options

def add(commands):
    """Add a command."""
    options.command(commands, "greet", "say hello", lambda _: print("hello"), examples=["topoplace greet"])
'''


@pytest.fixture(autouse=True)
def looked_up_again() -> Iterator[None]:
    _installed.entry_points.cache_clear()
    yield
    _installed.entry_points.cache_clear()


def test_a_command_of_another_package_is_one_of_ours(
    call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    installer(COMMAND, tmp_path, monkeypatch, _installed.COMMANDS)("theirs", "greet = theirs")
    assert call("greet").out == "hello\n"
    assert "  of other packages\n    greet" in call("--help").out


def test_a_command_that_cannot_be_imported_is_named_and_stops_no_other(
    call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    installer("import nowhere_to_be_found", tmp_path, monkeypatch, _installed.COMMANDS)(
        "theirs", "greet = theirs"
    )
    done = call("place", "dgx1-v100", "--gpus", 4)
    assert done.code == 0
    assert done.err == (
        "topoplace: theirs, which an installed package offers as greet: ModuleNotFoundError: No module named "
        "'nowhere_to_be_found'\n"
    )


def test_a_reader_that_cannot_be_imported_is_named(
    call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    installer("1 / 0", tmp_path, monkeypatch, _installed.SNAPSHOTS)("theirs", "other = theirs:Texts")
    (tmp_path / "jobs.txt").write_text("JobId=1\n")
    done = call("when", "1", "--from", tmp_path / "jobs.txt")
    assert done.code == 2
    assert "theirs:Texts, which an installed package offers as other: ZeroDivisionError" in done.err
