"""`all_reduce_perf` as it is run, with a program of our own in its place."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

import fake_nccl_tests
from topoplace.discovery.live.programs import NotHereError
from topoplace_lab.measuring.nccl_tests import AllReducePerf


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The only folder on the PATH."""
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("NCCL_ALGO", raising=False)
    return tmp_path


def test_the_program_sees_the_gpus_in_order(folder: Path) -> None:
    fake_nccl_tests.install(folder, {"3,0,2": 41.25})
    assert AllReducePerf(largest_mib=64).bus_bandwidth([3, 0, 2]) == 41.25
    arguments = ["-b", str(8 << 20), "-e", str(64 << 20), "-f", "2", "-g", "3"]
    assert fake_nccl_tests.calls(folder) == [("3,0,2", arguments, ["PCI_BUS_ID", "Ring"])]


def test_another_algorithm_may_be_chosen(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NCCL_ALGO", "NVLS")
    path = fake_nccl_tests.install(folder, {"else": 480.0})
    monkeypatch.setenv("PATH", os.devnull)
    assert AllReducePerf(str(path)).bus_bandwidth([0, 1]) == 480.0
    assert fake_nccl_tests.calls(folder)[0][2] == ["PCI_BUS_ID", "NVLS"]


@pytest.mark.parametrize(
    ("figure", "message"),
    [
        ("fail", r"exit code 3: box: Test NCCL failure common\.cu:1005 'unhandled cuda error'"),
        ("silent", "the measurement has no bus bandwidth"),
        ("one", "measured 2 GPUs instead of 3"),
        ("nan", "'nan' is not a speed"),
        ("hang", r"did not answer within 0\.5 s"),
    ],
)
def test_runs_that_fail_tell_why(folder: Path, figure: str, message: str) -> None:
    fake_nccl_tests.install(folder, {"else": figure})
    limit_s = 0.5 if figure == "hang" else 60.0
    with pytest.raises(NotHereError, match=message):
        AllReducePerf(timeout_s=limit_s).bus_bandwidth([0, 1, 2])


def test_it_must_be_installed(folder: Path) -> None:
    assert not AllReducePerf().installed
    with pytest.raises(NotHereError, match="is not on the PATH"):
        AllReducePerf().bus_bandwidth([0, 1])
    fake_nccl_tests.install(folder, {})
    assert AllReducePerf().installed


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"program": ""}, "program = ''"),
        ({"largest_mib": 0}, "largest_mib = 0"),
        ({"largest_mib": True}, "largest_mib = True"),
        ({"timeout_s": 0.0}, "timeout_s"),
    ],
)
def test_wrong_arguments_are_named(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        AllReducePerf(**arguments)
