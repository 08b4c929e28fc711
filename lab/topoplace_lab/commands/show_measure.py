"""`topoplace show measure` runs nccl-tests among sets of this host's GPUs, and compares them with plans."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from topoplace.cli import flags, gpu_list, options, reading, writing

if TYPE_CHECKING:
    from topoplace.topology.links.nccl_rates import Rates
    from topoplace.topology.topology import Topology
    from topoplace_lab.measuring import MeasuredSet, Measurements
    from topoplace_lab.measuring.nccl_tests import AllReducePerf

_SETS = 3
_MOST_SETS = 1000
_MOST_MIB = 65_536


def add(commands: Any) -> None:
    """Add `topoplace show measure` and its arguments to the command line."""
    parser = options.command(
        commands,
        "show measure",
        "run all_reduce_perf of nccl-tests among GPUs of this host, and compare it with the plan",
        _run,
        examples=[
            "topoplace show measure -o measured.json",
            "topoplace show measure dgx1-v100 --on 0,3 --on 0,1,2,3",
        ],
        negative="a run failed",
    )
    options.add_host_machine(parser, "this host's")
    parser.add_argument(
        "--on",
        action="append",
        default=[],
        metavar="GPUS",
        help="measure this set of GPUs, such as 0,3; repeat it for others (default: some of each path type)",
    )
    parser.add_argument(
        "--sizes",
        metavar="N,N",
        help="numbers of GPUs of the sets to choose (default: 2, 4, 8 and so on, and all)",
    )
    options.add_count(
        parser, "--most", _SETS, "number of sets to choose for each size and path type", _MOST_SETS
    )
    parser.set_defaults(most=None)  # so that it is known whether it was given
    options.add_rates(parser)
    parser.add_argument(
        "--program",
        default="all_reduce_perf",
        metavar="NAME",
        help="the program, on the PATH or with its directory (default: %(default)s)",
    )
    options.add_count(
        parser, "--message", 1024, "largest message in MiB; the smallest is an eighth of it", _MOST_MIB
    )
    options.add_timeout(parser, "end a run", default_s=300.0)
    parser.add_argument(
        "-o",
        dest="output",
        metavar="FILE",
        type=options.path,
        help="write measurements and topology as JSON, for `topoplace show --collective N --rates`",
    )
    options.add_json(parser)


def _run(arguments: argparse.Namespace) -> int:
    from topoplace_lab import measuring
    from topoplace_lab.measuring import Measurements

    inputs = [("TOPO", arguments.topology), ("--rates", arguments.rates)]
    output = writing.file(arguments.output, inputs=inputs) if arguments.output else None
    rates = measuring.planning_rates(reading.rates(arguments.rates))
    benchmark = _benchmark(arguments)
    topology = _topology(arguments)
    sets = _sets(arguments, topology, rates)
    found: list[MeasuredSet] = []
    try:
        with flags.named(gpus="--on"):
            for one in measuring.measured_sets(topology, sets, benchmark=benchmark, rates=rates):
                found.append(one)
                print(_line(one, len(found), len(sets)), file=sys.stderr)
    finally:  # also after Ctrl-C: runs take minutes, and what is done counts
        measurements = Measurements(topology, rates, tuple(found))
        if output and measurements.efficiencies():
            writing.write(output, f"{measurements.to_json()}\n")
    _report(arguments, measurements, output)
    return int(any(one.failure for one in found))


def _benchmark(arguments: argparse.Namespace) -> AllReducePerf:
    from topoplace_lab.measuring.nccl_tests import AllReducePerf

    with flags.named(program="--program", timeout_s="--timeout"):
        benchmark = AllReducePerf(arguments.program, arguments.message, arguments.timeout)
    if not benchmark.installed:
        raise ValueError(f"--program {arguments.program}: is not on the PATH; it is part of nccl-tests")
    return benchmark


def _topology(arguments: argparse.Namespace) -> Topology:
    found = reading.host_machine(arguments)
    if found.num_machines > 1:
        raise ValueError(f"{found.name} has {found.num_machines} machines; only this host can be measured")
    return found


def _sets(arguments: argparse.Namespace, topology: Topology, rates: Rates) -> list[tuple[int, ...]]:
    from topoplace_lab import measuring

    if arguments.on:
        for flag in ("sizes", "most"):
            if getattr(arguments, flag) is not None:
                raise ValueError(f"--{flag} has an effect only without --on")
        return _named_sets(arguments.on, topology.num_gpus)
    sizes = None if arguments.sizes is None else _numbers(arguments.sizes)
    with flags.named(sizes="--sizes"):
        found = measuring.sets_to_measure(topology, sizes=sizes, most=arguments.most or _SETS, rates=rates)
    if not found:
        raise ValueError(f"{topology.name}: there are no rings among its GPUs")
    return found


def _named_sets(texts: Sequence[str], num_gpus: int) -> list[tuple[int, ...]]:
    """Return the GPUs of each --on; ValueError for a set that is named twice, in whatever order."""
    known: dict[frozenset[int], str] = {}
    found: list[tuple[int, ...]] = []
    for text in texts:
        gpus = gpu_list.parse(text, num_gpus, "--on")
        if len(gpus) < 2:
            raise ValueError(f"--on {text!r}: at least 2 GPUs are needed")
        earlier = known.setdefault(frozenset(gpus), text)
        if len(known) == len(found):
            raise ValueError(f"--on {text!r}: the same GPUs as --on {earlier!r}")
        found.append(tuple(gpus))
    return found


def _numbers(text: str) -> list[int]:
    words = text.split(",")
    if not all(word.isascii() and word.isdigit() and len(word) < 6 for word in words):
        raise ValueError(f"--sizes = {text[:60]!r} is not a list of numbers such as 2,4")
    return [int(word) for word in words]


def _line(one: MeasuredSet, number: int, count: int) -> str:
    result = one.failure or f"{one.measured_gb_per_s:g} GB/s, planned {one.planned_gb_per_s:g}"
    return f"{number} of {count}: {gpu_list.text(one.gpus)}: {result}"


def _report(arguments: argparse.Namespace, measurements: Measurements, output: Path | None) -> None:
    if arguments.json:
        print(measurements.to_json())
        return
    from topoplace.drawing import tables

    title = f"{measurements.topology.name}: all-reduce, measured next to {measurements.rates.name}"
    tables.show(
        ("order of GPUs", "planned GB/s", "measured GB/s", "share", "paths"),
        [
            (
                gpu_list.text(one.gpus),
                one.planned_gb_per_s,
                "-" if one.measured_gb_per_s is None else one.measured_gb_per_s,
                "-" if one.measured_gb_per_s is None else one.measured_gb_per_s / one.planned_gb_per_s,
                one.path_type,
            )
            for one in measurements.sets
        ],
        title,
    )
    if not measurements.efficiencies():
        return
    print()
    tables.show(
        ("paths", "sets", "factor", "least", "most"),
        [
            (one.path_type, one.num_sets, one.factor, one.least, one.most)
            for one in measurements.efficiencies()
        ],
        "what is measured of the plan",
    )
    before, after = (measurements.median_error(corrected=corrected) for corrected in (False, True))
    print(f"\nmedian error of the plan: {before:.1%}, with these factors {after:.1%}")
    if output:
        print(f"wrote {output}; `topoplace show TOPO --collective 2 --rates {output}` uses its factors")
