"""`topoplace profile` records runs, builds a performance profile from measurements, or shows one."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from topoplace.cli import flags, options, reading, writing
from topoplace_lab.commands import recording

if TYPE_CHECKING:
    from topoplace.jobs.performance_profile import JobKind, PerformanceProfile

_CSV = "CSV with columns kind (solo or collocation), model, batch, gpus, placement, with_model, with_batch, with_gpus, "


def add(commands: Any) -> None:
    """Add `topoplace profile` to the command line, with its actions `build`, `show` and `record`."""
    what = "record runs, build a performance profile from measurements, or show one"
    actions = options.group(commands, "profile", what, "ACTION")
    build = options.command(
        actions,
        "build",
        "build a profile from measured runs, several of each kind",
        _build,
        examples=["topoplace profile build runs.csv -o profile.json"],
    )
    build.add_argument(
        "measurements", metavar="FILE", help=f"{_CSV}seconds, a row for each run; - for standard input"
    )
    build.add_argument(
        "-o",
        dest="output",
        metavar="PROFILE",
        type=options.path,
        required=True,
        help="write NAME.csv or NAME.json",
    )
    build.add_argument(
        "--percentile",
        type=float,
        default=95.0,
        help="take this percentile of the runs of a kind (default: 95, as in SC'17)",
    )
    options.add_json(build)
    show = options.command(
        actions,
        "show",
        "print run times alone, and next to other jobs",
        _show,
        examples=["topoplace profile show profile.json"],
    )
    show.add_argument(
        "profile", metavar="PROFILE", help=f"JSON of `profile build`, or {_CSV}seconds; also gzipped"
    )
    options.add_json(show)
    recording.add(actions)


def _build(arguments: argparse.Namespace) -> None:
    from topoplace.jobs.performance_profile import PerformanceProfile, read_measurements

    output: Path = arguments.output
    if output.suffix not in (".csv", ".json"):
        raise ValueError(f"-o {output}: neither .csv nor .json")
    writing.file(output, inputs=[("FILE", arguments.measurements)])
    text = reading.text(arguments.measurements)
    with reading.errors_of(arguments.measurements):
        runs = list(read_measurements(text))
        if not any(run.seconds for run in runs):
            raise ValueError("no measurement")
    with flags.named(percentile="--percentile"):
        profile = PerformanceProfile.build(runs, percentile=arguments.percentile)
    writing.write(output, profile.to_csv() if output.suffix == ".csv" else profile.to_json())
    if arguments.json:
        counts = {"runs": len(runs), "solo": len(profile.solo), "pairs": len(profile.colocation)}
        writing.as_json({"wrote": str(output), **counts})
    else:
        print(f"wrote {output}: {profile!r}")


def _show(arguments: argparse.Namespace) -> None:
    profile = reading.profile(arguments.profile)
    if arguments.json:
        writing.as_json({"solo": list(_alone(profile)), "pairs": list(_beside(profile))})
        return
    from topoplace.drawing import tables

    keys = ("pack_s", "spread_s", "network_s", "spread_over_pack")
    rows = [[row["name"], row["gpus"], *(_shown(row[key]) for key in keys)] for row in _alone(profile)]
    columns = ("name", "GPUs", "one socket s", "two sockets s", "two machines s", "two sockets / one")
    tables.show(columns, rows, "run time alone, by where the GPUs are")
    for num_gpus, other_gpus in sorted({(pair[1], pair[3]) for pair in profile.colocation}):
        print()
        _show_pairs(profile, num_gpus, other_gpus)


def _shown(value: float | None) -> float | str:
    return "-" if value is None else value


def _show_pairs(profile: PerformanceProfile, num_gpus: int, other_gpus: int) -> None:
    from topoplace.drawing import tables

    pairs = [pair for pair in profile.colocation if pair[1] == num_gpus and pair[3] == other_gpus]
    others = list(
        dict.fromkeys(pair[2] for pair in sorted(pairs, key=lambda pair: _by_batch((pair[2], other_gpus))))
    )
    names = sorted({pair[0] for pair in pairs}, key=lambda name: _by_batch((name, num_gpus)))
    rows = [
        [name, *(_percent(profile, (name, num_gpus, other, other_gpus)) for other in others)]
        for name in names
    ]
    title = f"run time in % longer on {num_gpus} GPU{'s'[: num_gpus > 1]}, next to a job on {other_gpus}"
    tables.show(["name", *others], rows, title)


def _percent(profile: PerformanceProfile, pair: tuple[str, int, str, int]) -> float | str:
    measured = pair in profile.colocation and pair[:2] in profile.kinds
    return (profile.slowdown(*pair) - 1) * 100 if measured else "-"


def _alone(profile: PerformanceProfile) -> Iterator[dict[str, Any]]:
    """Yield for each job kind (name, number of GPUs) its run times alone, as one row of the JSON output."""
    for name, num_gpus in sorted(profile.kinds, key=_by_batch):
        pack, spread, network = (
            profile.solo.get((name, num_gpus, placement))
            for placement in ("intra-socket", "inter-socket", "inter-machine")
        )
        yield {
            "name": name,
            "gpus": num_gpus,
            "pack_s": pack,
            "spread_s": spread,
            "network_s": network,
            "spread_over_pack": spread / pack if spread and pack else None,
        }


def _beside(profile: PerformanceProfile) -> Iterator[dict[str, Any]]:
    """Yield for each measured pair of jobs the slowdown of the first, as one row of the JSON output."""
    for name, num_gpus, other, other_gpus in profile.colocation:
        slowdown = profile.slowdown(name, num_gpus, other, other_gpus)
        yield {"name": name, "gpus": num_gpus, "other": other, "other_gpus": other_gpus, "slowdown": slowdown}


def _by_batch(kind: JobKind) -> tuple[str, float, str, int]:
    """Return a sort key for job kinds: model, then batch size as a number (0 if it is none), then name and GPUs."""
    name, num_gpus = kind
    model, _, batch = name.rpartition("/")
    return model or name, float(batch) if model and batch.isdecimal() else 0.0, name, num_gpus
