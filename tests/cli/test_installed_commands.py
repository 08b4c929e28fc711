"""Commands of other installed packages: they are listed last, and one that cannot be imported stops no other."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import topoplace as tp
from command_line import Call
from distributions import MISSING
from offered_policies import installer
from topoplace import _installed
from topoplace.discovery import registry

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


@pytest.mark.filterwarnings("default")  # the command line shows them
def test_a_reader_that_cannot_be_imported_is_named(
    call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    installer("1 / 0", tmp_path, monkeypatch, _installed.SNAPSHOTS)("theirs", "other = theirs:Texts")
    (tmp_path / "jobs.txt").write_text("JobId=1\n")
    done = call("when", "1", "--from", tmp_path / "jobs.txt")
    assert "theirs:Texts, which an installed package offers as other: ZeroDivisionError" in done.err


@pytest.mark.parametrize(
    ("module", "why"),
    [
        ("import nowhere_to_be_found", "ModuleNotFoundError: No module named 'nowhere_to_be_found'"),
        ("raise SystemExit(3)", "SystemExit: 3"),
        ("X = 1", "AttributeError: module 'theirs' has no attribute 'add'"),
        ("def add(commands): 1 / 0", "ZeroDivisionError: division by zero"),
        ("def add(commands): commands.add_parser('place')", "ArgumentError: "),
        (
            "class E(Exception):\n    def __str__(self): 1 / 0\nraise E",
            "E: an exception that cannot be printed",
        ),
    ],
)
def test_no_faulty_command_stops_another(
    call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, module: str, why: str
) -> None:
    installer(module, tmp_path, monkeypatch, _installed.COMMANDS)("theirs", "greet = theirs")
    done = call("--help")
    assert done.code == 0
    assert "of other packages" not in done.out
    assert done.err.startswith(f"topoplace: theirs, which an installed package offers as greet: {why}")


@pytest.mark.parametrize("formats", ["5", "(1, 2)", "1 / 0"])
def test_no_faulty_format_stops_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, formats: str
) -> None:
    installer(f"FORMATS = {formats}", tmp_path, monkeypatch, _installed.FORMATS)(
        "theirs", "other = theirs:FORMATS"
    )
    registry.formats.cache_clear()
    with pytest.warns(UserWarning, match="theirs:FORMATS, which an installed package offers as other: "):
        found = registry.formats()
    registry.formats.cache_clear()
    assert "nvidia-smi topo -m" in {one.name for one in found}


def test_a_private_name_is_asked_of_nobody(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    installer("", tmp_path, monkeypatch, _installed.MODULES)("theirs", "_nothing = theirs")
    with pytest.raises(AttributeError, match="no attribute '_nothing'"):
        tp._nothing  # noqa: B018


def test_a_name_of_ours_stays_ours(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    installer("", tmp_path, monkeypatch, _installed.MODULES)("theirs", "simulate = theirs")
    first = _installed.offered_now(_installed.MODULES)["simulate"][0].value
    assert first == ("theirs" if MISSING else "topoplace_lab.simulate")
