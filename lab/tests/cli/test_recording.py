"""`topoplace profile record`, with a library of our own in the place of NVML."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import topoplace as tp
from command_line import Call
from fake_counters import Library, put_nvml
from topoplace.jobs.performance_profile import PerformanceProfile, read_measurements


@pytest.fixture
def nvml(monkeypatch: pytest.MonkeyPatch) -> Library:
    library = Library()
    put_nvml(monkeypatch, library)
    return library


def test_the_command_records_a_program(
    nvml: Library, tmp_path: Path, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("topoplace.discovery.live.discover.discover", lambda: tp.machines.get("minsky"))
    seen, runs, graph = tmp_path / "seen", tmp_path / "runs.csv", tmp_path / "job.json"
    script = ["sh", "-c", f"echo $CUDA_VISIBLE_DEVICES $CUDA_DEVICE_ORDER > {seen}"]
    options = ["--on", "0-1", "--interval", "0.05", "--runs", runs, "--name", "net/4"]
    for _ in range(2):
        done = call("profile", "record", "-o", graph, *options, "--", *script)
        assert (done.code, done.err) == (0, "")
        assert "2 GPUs sent" in done.out
        assert "net/4 on 2 GPUs, intra-socket" in done.out
    assert seen.read_text("utf-8") == "0,1 PCI_BUS_ID\n"
    assert tp.JobGraph.from_json(graph.read_text("utf-8")).edges == ((0, 1, 1.0),)
    assert [
        (run.name, run.num_gpus, run.placement) for run in read_measurements(runs.read_text("utf-8"))
    ] == [("net/4", 2, "intra-socket")] * 2
    built = call("profile", "build", runs, "-o", tmp_path / "profile.json")
    assert built.code == 0
    assert PerformanceProfile.from_json((tmp_path / "profile.json").read_text("utf-8")).ideal_time("net/4", 2)


def test_the_command_records_for_a_time(nvml: Library, tmp_path: Path, call: Call) -> None:
    table = tmp_path / "sent.csv"
    done = call("profile", "record", "-o", table, "--seconds", "0.05", "--interval", "0.02")
    assert (done.code, done.err) == (0, "")
    matrix = np.loadtxt(table, delimiter=",")
    assert matrix.shape == (4, 4)
    assert tp.JobGraph.from_traffic(matrix).num_tasks == 4


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--seconds", "1", "--", "true"], "not both"),
        ([], "give --seconds, or a program"),
        (["--", "no-such-program"], "no-such-program: no such program"),
        (["--", "false"], "false: exited with code 1"),
        (["--on", "0,9", "--seconds", "0.1"], "--on = 9: the GPUs are 0, 1, 2, 3"),
        (["--runs", "r.csv", "--", "true"], "give both"),
        (["--runs", "r.csv", "--name", "", "--", "true"], "--name '': must not be empty"),
    ],
)
def test_the_command_refuses(
    nvml: Library, tmp_path: Path, call: Call, arguments: list[str], message: str
) -> None:
    done = call("profile", "record", "-o", tmp_path / "job.json", *arguments)
    assert (done.code, done.out) == (2, "")
    assert message in done.err


def test_an_interrupted_recording_ends_its_program(
    nvml: Library, tmp_path: Path, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    def record(wait: Callable[[float], bool], **_: object) -> None:
        assert not wait(0.01)  # starts the program
        raise KeyboardInterrupt

    monkeypatch.setattr("topoplace_lab.measuring.counters.record", record)
    ended: list[int] = []
    terminate = subprocess.Popen.terminate
    monkeypatch.setattr(
        subprocess.Popen, "terminate", lambda process: (ended.append(process.pid), terminate(process))
    )
    done = call("profile", "record", "-o", tmp_path / "job.json", "--", "sleep", "60")
    assert done.code == 130
    (number,) = ended
    with pytest.raises(ProcessLookupError):
        os.kill(number, 0)


def test_the_command_names_the_tools_that_are_missing(
    tmp_path: Path, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    put_nvml(monkeypatch, None)
    monkeypatch.setenv("PATH", str(tmp_path))
    done = call("profile", "record", "-o", tmp_path / "job.json", "--seconds", "0.1")
    assert done.code == 2
    assert "dcgmi: is not on the PATH" in done.err
