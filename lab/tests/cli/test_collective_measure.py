"""`topoplace show measure`, with a program in the place of nccl-tests, and the rates that follow from it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import fake_nccl_tests
from command_line import Call, hear_interrupts


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working directory, and the only folder on the PATH."""
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    return tmp_path


MEASURE = ("show", "measure", "dgx1-v100", "--on", "0,3", "--on", "6,7", "--on", "0,7")


def test_measured_stands_beside_planned(folder: Path, call: Call) -> None:
    fake_nccl_tests.install(folder, {"0,3": 36.0, "6,7": 32.0, "0,7": 9.0})
    done = call(*MEASURE, "-o", "measured.json")
    assert done.code == 0
    assert [" ".join(line.split()) for line in done.out.splitlines()] == [
        "dgx1-v100: all-reduce, measured next to nccl-2.30",
        "order of GPUs planned GB/s measured GB/s share paths",
        "0,3 40 36 0.9 NVL",
        "6,7 40 32 0.8 NVL",
        "0,7 6 9 1.5 SYS",
        "",
        "what is measured of the plan",
        "paths sets factor least most",
        "NVL 2 0.85 0.8 0.9",
        "SYS 1 1.5 1.5 1.5",
        "",
        "median error of the plan: 20.0%, with these factors 5.9%",
        "wrote measured.json; `topoplace show TOPO --collective 2 --rates measured.json` uses its factors",
    ]
    assert done.err.splitlines()[0] == "1 of 3: 0,3: 36 GB/s, planned 40"


def test_measurements_are_rates_of_the_command(folder: Path, call: Call) -> None:
    fake_nccl_tests.install(folder, {"0,3": 36.0, "6,7": 36.0, "0,7": 9.0})
    call(*MEASURE, "-o", "measured.json")
    shown = call("show", "dgx1-v100", "--collective", 2, "--rates", "measured.json").out.splitlines()
    assert shown[0] == "dgx1-v100: all 28 sets of 2 GPUs, nccl-2.30 as measured on dgx1-v100"
    assert "note: The measured factors correct the rings, not the optimum." in shown
    found = json.loads(call("show", "dgx1-v100", "--collective", 2, "--rates", "measured.json", "--json").out)
    assert (found["best"]["ring_gb_per_s"], found["worst"]["ring_gb_per_s"]) == (36, 9)
    again = json.loads(
        call("show", "measure", "dgx1-v100", "--on", "0,3", "--rates", "measured.json", "--json").out
    )
    assert again["sets"][0]["planned_gb_per_s"] == 40  # a plan has no factors


def test_sets_are_chosen_by_size_and_path_type(folder: Path, call: Call) -> None:
    fake_nccl_tests.install(folder, {"else": 5.0})
    done = call("show", "measure", "summit", "--sizes", "2,3", "--most", 1, "--message", 32, "--json")
    assert {len(one["gpus"]) for one in json.loads(done.out)["sets"]} == {2, 3}
    (arguments, *_) = [arguments for _, arguments, _ in fake_nccl_tests.calls(folder)]
    assert arguments[1] == str(4 << 20)


@pytest.mark.parametrize("again", ["0,3", "3,0"])
def test_a_set_is_measured_once(folder: Path, call: Call, again: str) -> None:
    fake_nccl_tests.install(folder, {"0,3": 36.0})
    done = call("show", "measure", "dgx1-v100", "--on", "0,3", "--on", again)
    assert (done.code, done.err) == (2, f"topoplace: --on {again!r}: the same GPUs as --on '0,3'\n")


@pytest.mark.parametrize(
    ("edit", "fault"),
    [
        (
            lambda text: text["efficiencies"][0].update(factor=0.5),
            "efficiencies[0].factor = 0.5 is not 0.9: ",
        ),
        (
            lambda text: text["efficiencies"][0].update(factor=float("nan")),
            "efficiencies[0].factor = nan is not ",
        ),
        (
            lambda text: text["efficiencies"][1].update(path_type="X"),
            "efficiencies[1].path_type = 'X' is not 'SYS'",
        ),
        (lambda text: text["efficiencies"][0].update(more=1), "efficiencies[0] has the keys path_type, "),
        (lambda text: text["efficiencies"].pop(), "efficiencies has 1 entries, not 2: it follows"),
        (lambda text: text.update(efficiencies=[1, 2]), "efficiencies[0] = 1"),
        (
            lambda text: text["rates"].update(achieved={"NVL": 0.5}),
            "rates: achieved = {'NVL': 0.5}: it follows",
        ),
        (lambda text: text["rates"]["gb_per_s"].update(nvlink2=-1), "rates: gb_per_s['nvlink2'] = -1"),
        (lambda text: text["rates"]["gb_per_s"].update(nvlink22=1), "rates: a key of gb_per_s = 'nvlink22'"),
    ],
)
def test_what_would_have_no_effect_in_a_file_of_measurements_is_refused(
    folder: Path, call: Call, edit: Callable[[Any], object], fault: str
) -> None:
    fake_nccl_tests.install(folder, {"0,3": 36.0, "6,7": 36.0, "0,7": 9.0})
    call(*MEASURE, "-o", "measured.json")
    text = json.loads(Path("measured.json").read_text("utf-8"))
    edit(text)
    Path("edited.json").write_text(json.dumps(text), "utf-8")
    done = call("show", "dgx1-v100", "--collective", 4, "--rates", "edited.json")
    assert done.code == 2
    assert done.err.startswith(f"topoplace: edited.json: {fault}")
    assert done.err.count("\n") == 1


def test_runs_that_fail_are_reported_and_the_others_kept(folder: Path, call: Call) -> None:
    fake_nccl_tests.install(folder, {"0,3": 36.0, "6,7": "fail", "0,7": "silent"})
    done = call(*MEASURE, "-o", "measured.json")
    assert done.code == 1
    assert "2 of 3: 6,7: exit code 3: box: Test NCCL failure" in done.err
    assert "3 of 3: 0,7: the measurement has no bus bandwidth" in done.err
    sets = json.loads(Path("measured.json").read_text("utf-8"))["sets"]
    assert [one["measured_gb_per_s"] for one in sets] == [36.0, None, None]


def test_nothing_measured_leaves_no_file(folder: Path, call: Call) -> None:
    fake_nccl_tests.install(folder, {"else": "hang"})
    done = call("show", "measure", "dgx1-v100", "--on", "0,3", "--timeout", 0.3, "-o", "measured.json")
    assert done.code == 1
    assert "0,3: did not answer within 0.3 s" in done.err
    assert not Path("measured.json").exists()


def test_a_single_gpu_has_no_rings(folder: Path, call: Call) -> None:
    fake_nccl_tests.install(folder, {"else": 5.0})
    Path("topo.txt").write_text("\tGPU0\nGPU0\t X \n", encoding="utf-8")
    done = call("show", "measure", "topo.txt")
    assert (done.code, done.out) == (2, "")
    assert "topo: there are no rings among its GPUs" in done.err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("summit",), "--program all_reduce_perf: is not on the PATH; it is part of nccl-tests"),
        (("gb200-nvl72", "--program", "./all_reduce_perf"), "gb200-nvl72 has 18 machines"),
        (("summit", "--on", "0", "--program", "./all_reduce_perf"), "--on '0': at least 2 GPUs are needed"),
        (
            ("summit", "--on", "0,1", "--most", "3", "--program", "./all_reduce_perf"),
            "--most has an effect",
        ),
        (
            ("summit", "--on", "0,1", "--sizes", "2", "--program", "./all_reduce_perf"),
            "--sizes has an effect",
        ),
    ],
)
def test_what_cannot_be_measured_is_refused(
    folder: Path, monkeypatch: pytest.MonkeyPatch, call: Call, arguments: tuple[str, ...], message: str
) -> None:
    fake_nccl_tests.install(folder, {})
    monkeypatch.setenv("PATH", os.devnull)
    done = call("show", "measure", *arguments)
    assert (done.code, done.out) == (2, "")
    assert message in done.err
    assert fake_nccl_tests.calls(folder) == []


def test_an_interrupt_ends_the_program_and_keeps_what_is_done(tmp_path: Path) -> None:
    program = fake_nccl_tests.install(tmp_path, {"0,3": 36.0, "6,7": "hang"})
    process = subprocess.Popen(
        [sys.executable, "-m", "topoplace", *MEASURE, "--program", str(program), "-o", "measured.json"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=tmp_path,
        preexec_fn=hear_interrupts,
    )
    pid = tmp_path / "pid"
    while not (pid.exists() and pid.read_text("utf-8")):
        assert process.poll() is None, "it ended before it was interrupted"
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)  # not to the program, which a terminal would interrupt, too
    process.communicate(timeout=60)
    assert process.returncode == 130
    with pytest.raises(ProcessLookupError):
        os.kill(int(pid.read_text("utf-8")), 0)
    sets = json.loads((tmp_path / "measured.json").read_text("utf-8"))["sets"]
    assert [one["measured_gb_per_s"] for one in sets] == [36.0]
