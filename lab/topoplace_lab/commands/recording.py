"""The action `record` of `topoplace profile`: record the traffic between GPUs, and how long a program runs."""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from topoplace.cli import flags, gpu_list, options, writing

if TYPE_CHECKING:
    from collections.abc import Sequence

    from topoplace_lab.measuring.counters import CounterTraffic

_MAX_GPUS = 4096
_MAX_INTERVAL_S = 60.0


def add(actions: Any) -> None:
    """Add the action `record` to `topoplace profile`."""
    record = options.command(
        actions,
        "record",
        "record what this host's GPUs send each other, and a run of a program",
        _record,
        examples=[
            "topoplace profile record --seconds 60 -o traffic.json",
            "topoplace profile record -o traffic.csv --runs runs.csv --name vgg/64 -- python train.py",
        ],
    )
    record.add_argument(
        "program", nargs="*", metavar="PROGRAM", help="program to run, after --; recording stops when it ends"
    )
    record.add_argument(
        "-o",
        dest="output",
        metavar="FILE",
        type=options.path,
        required=True,
        help="write a job graph as NAME.json, or the bytes from GPU to GPU as NAME.csv",
    )
    record.add_argument("--seconds", type=float, help="record for SECONDS if no PROGRAM is given")
    record.add_argument("--interval", type=float, default=0.5, help="seconds between readings (default: 0.5)")
    record.add_argument("--on", metavar="GPUS", help="GPUs that PROGRAM may use, such as 0,1 (default: all)")
    record.add_argument(
        "--runs",
        metavar="FILE",
        type=options.path,
        help="add the run time of PROGRAM to this CSV, for `profile build`; needs --name",
    )
    record.add_argument("--name", metavar="MODEL/BATCH", help="what PROGRAM trains, for --runs")
    options.add_json(record)


def _record(arguments: argparse.Namespace) -> None:
    output: Path = arguments.output
    gpus = _checked(arguments)
    writing.file(output, inputs=[("--runs", arguments.runs)])
    from topoplace_lab.measuring import counters

    runs = arguments.runs and _Runs(arguments.runs, arguments.name)
    wait = _Program(arguments.program, gpus) if arguments.program else _Clock(arguments.seconds)
    try:
        with flags.named(gpus="--on"):
            traffic = counters.record(wait, gpus=gpus, interval_s=arguments.interval)
    finally:
        wait.end()
    wait.check()
    writing.write(output, _written(traffic, output.suffix))
    added = runs.add(traffic.gpus, wait.seconds) if runs else None
    if arguments.json:
        writing.as_json(_as_dict(traffic, output) | {"run_s": wait.seconds if runs else None})
        return
    print(f"wrote {output}: {_summary(traffic)}")
    if added:
        print(f"wrote {arguments.runs}: {added}")


def _checked(arguments: argparse.Namespace) -> list[int] | None:
    """Return the GPUs of --on, None for all; ValueError names an option with a wrong value."""
    if arguments.output.suffix not in (".csv", ".json"):
        raise ValueError(f"-o {arguments.output}: neither .csv nor .json")
    if bool(arguments.program) == (arguments.seconds is not None):
        raise ValueError("give --seconds, or a program after --, and not both")
    for flag, most in (("seconds", 1e6), ("interval", _MAX_INTERVAL_S)):
        value = getattr(arguments, flag)
        if value is not None and not 0 < value <= most:
            raise ValueError(f"--{flag} {value:g}: must be above 0 and at most {most:g}")
    if (arguments.runs is None) != (arguments.name is None) or (arguments.runs and not arguments.program):
        raise ValueError(
            "--runs and --name are for the run of a program: give both, and the program after --"
        )
    if arguments.on is None:
        return None
    gpus = gpu_list.parse(arguments.on, _MAX_GPUS, "--on")
    if not gpus:
        raise ValueError(f"--on {arguments.on!r}: no GPU")
    return gpus


def _written(traffic: CounterTraffic, suffix: str) -> str:
    from topoplace.jobs.job_graph import JobGraph

    matrix = traffic.by_pair()
    if suffix == ".json":
        return JobGraph.from_traffic(matrix, name="recorded").to_json() + "\n"
    return "".join(",".join(f"{value:.0f}" for value in row) + "\n" for row in matrix.tolist())


def _rates(traffic: CounterTraffic) -> dict[str, float]:
    """Return what all GPUs together sent over each kind of link, in GB/s."""
    nvlink = traffic.sent.sum() + traffic.elsewhere.sum()
    amounts = {"NVLink": float(nvlink), "PCIe": float(traffic.pcie.sum())}
    return {kind: amount / traffic.seconds / 1e9 for kind, amount in amounts.items()}


def _as_dict(traffic: CounterTraffic, output: Path) -> dict[str, Any]:
    return {
        "wrote": str(output),
        "gpus": traffic.gpus,
        "seconds": traffic.seconds,
        "gb_per_s": _rates(traffic),
        "source": traffic.source,
        "pairs_are_told": traffic.pairs_are_told,
    }


def _summary(traffic: CounterTraffic) -> str:
    rates = ", ".join(f"{rate:.3g} GB/s over {kind}" for kind, rate in _rates(traffic).items())
    pairs = "" if traffic.pairs_are_told else "; pairs are not given: traffic counts evenly to all others"
    return f"{len(traffic.gpus)} GPUs sent {rates} for {traffic.seconds:.1f} s, by {traffic.source}{pairs}"


class _Clock:
    """Waits a given time."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self._deadline: float | None = None

    def __call__(self, interval_s: float) -> bool:
        if self._deadline is None:
            self._deadline = time.monotonic() + self.seconds
        time.sleep(max(0.0, min(interval_s, self._deadline - time.monotonic())))
        return time.monotonic() >= self._deadline

    def end(self) -> None:
        """Do nothing: there is no program to end."""

    def check(self) -> None:
        """Do nothing: a clock cannot fail."""


class _Program:
    """Runs a program on some GPUs until it ends; it starts with the first call."""

    def __init__(self, words: Sequence[str], gpus: Sequence[int] | None) -> None:
        self.seconds = 0.0
        self._words = words
        self._env = dict(os.environ)
        if gpus is not None:
            self._env |= {"CUDA_DEVICE_ORDER": "PCI_BUS_ID", "CUDA_VISIBLE_DEVICES": ",".join(map(str, gpus))}
        if shutil.which(words[0]) is None:
            raise ValueError(f"{words[0]}: no such program")
        self._process: subprocess.Popen[bytes] | None = None
        self._began = 0.0

    def __call__(self, interval_s: float) -> bool:
        if self._process is None:
            self._began = time.monotonic()
            self._process = subprocess.Popen(self._words, env=self._env)
        try:
            self._process.wait(interval_s)
        except subprocess.TimeoutExpired:
            return False
        self.seconds = time.monotonic() - self._began
        return True

    def end(self) -> None:
        """End the program if it still runs, as after Ctrl-C."""
        if self._process is not None and self._process.poll() is None:
            self._process.terminate()
            self._process.wait()

    def check(self) -> None:
        """Raise ValueError if the program failed."""
        if self._process is not None and self._process.returncode:
            raise ValueError(f"{self._words[0]}: exited with code {self._process.returncode}")


class _Runs:
    """A CSV of measured runs that gets one more; ValueError if it cannot be read or written, or the name is empty."""

    def __init__(self, path: Path, name: str) -> None:
        from topoplace.cli import reading
        from topoplace.discovery.live.discover import discover
        from topoplace.jobs.performance_profile import read_measurements

        if not name:
            raise ValueError("--name '': must not be empty")
        writing.file(path, "--runs")
        self._path, self._name = path, name
        self._is_new = not path.exists()
        if not self._is_new:
            with reading.errors_of(str(path)):
                list(read_measurements(path.read_text("utf-8")))
        self._topology = discover()

    def add(self, gpus: tuple[int, ...], seconds: float) -> str:
        """Add a run alone on these GPUs; return what was added."""
        from topoplace.jobs.profile_text import Measurement, write_csv
        from topoplace.placement import Placement
        from topoplace_lab.simulate.performance.models import placement_class

        where = placement_class(Placement(gpus=gpus, topology=self._topology))
        run = Measurement(self._name, len(gpus), where, seconds)
        lines = write_csv([run]).splitlines(keepends=True)
        with self._path.open("a", encoding="utf-8") as file:
            file.writelines(lines if self._is_new else lines[1:])
        return f"{self._name} on {len(gpus)} GPUs, {where}, {seconds:.1f} s"
