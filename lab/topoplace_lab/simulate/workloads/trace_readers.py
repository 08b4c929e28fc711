"""Read a file of jobs in any supported format, which is recognised by its first lines."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import IO, TYPE_CHECKING, Any, Final

from topoplace import _checks
from topoplace_lab.simulate.workloads import packed, pbs, philly, swf
from topoplace_lab.simulate.workloads.batch_systems import sacct
from topoplace_lab.simulate.workloads.packed import PackedText
from topoplace_lab.simulate.workloads.workload import Workload

if TYPE_CHECKING:
    from topoplace.jobs.performance_profile import PerformanceProfile
    from topoplace_lab.simulate.workloads.job_columns import Sensitive


@dataclass(frozen=True)
class _Reader:
    """A format: its name, the options it has a use for, and what reads it."""

    name: str
    recognised: Callable[[str], bool]
    options: frozenset[str]
    read: Callable[..., Workload]


_UNSAID: Final = frozenset(("pattern", "bandwidth_sensitive"))
_MANIFESTS_HEAD: Final = ("{", "[")


def _read_philly(text: PackedText, **options: Any) -> Workload:
    return Workload.from_philly(text.chunks(), **options)


def _read_manifests(text: PackedText, **options: Any) -> Workload:
    return Workload.from_manifests("".join(text.chunks()), **options)


def _by_lines(method: Callable[..., Workload]) -> Callable[..., Workload]:
    def read(text: PackedText, **options: Any) -> Workload:
        return method(text.lines(), **options)

    return read


_SKIP: Final = frozenset(("skip_bad_rows",))
_READERS: Final = (
    _Reader("Philly's JSON", philly.recognised, _SKIP | _UNSAID | {"duration"}, _read_philly),
    _Reader(
        "SC'17's manifests",
        lambda head: head.lstrip()[:1] in _MANIFESTS_HEAD,
        _SKIP | {"profile"},
        _read_manifests,
    ),
    _Reader(
        "the Standard Workload Format",
        swf.recognised,
        _SKIP | _UNSAID | {"gpus_per_node", "cpus_per_node", "seed"},
        _by_lines(Workload.from_swf),
    ),
    _Reader(
        "a PBS log, which has the GPUs of its jobs",
        pbs.recognised,
        _SKIP | _UNSAID | {"without_gpus", "seed"},
        _by_lines(Workload.from_pbs),
    ),
    _Reader(
        "a dump of sacct, which has the GPUs of its jobs",
        sacct.recognised,
        _SKIP | _UNSAID | {"without_gpus", "seed"},
        _by_lines(Workload.from_sacct),
    ),
    _Reader(
        "MAPA's job lines",
        lambda head: head.lstrip()[:1].isdigit() and head.lstrip().split("\n", 1)[0].count(",") == 5,
        frozenset(),
        _by_lines(Workload.from_mapa),
    ),
    _Reader(
        "CSV of pattern, gpus, submit and run_time",
        lambda head: {"pattern", "gpus", "submit", "run_time"} <= set(_names(head)),
        frozenset(),
        _by_lines(Workload.from_csv),
    ),
    _Reader(
        "a CSV trace",
        lambda head: True,
        _SKIP | _UNSAID | {"duration", "profile", "columns", "without_gpus"},
        _by_lines(Workload.from_trace),
    ),
)
_HARMLESS: Final = frozenset(("seed", "cpus_per_node", "skip_bad_rows", "profile"))
"""Options without effect in some formats, because nothing is drawn, looked up or skipped there."""


def read_workload(
    source: str | os.PathLike[str] | IO[bytes],
    *,
    pattern: str | None = None,
    bandwidth_sensitive: Sensitive = None,
    duration: float | None = None,
    profile: PerformanceProfile | None = None,
    columns: Mapping[str, str] = MappingProxyType({}),
    without_gpus: bool = False,
    gpus_per_node: int | None = None,
    cpus_per_node: int | None = None,
    seed: int | None = None,
    skip_bad_rows: bool = False,
) -> Workload:
    """Read the jobs in a file, plain or packed by gzip or zip, piece by piece.

    Args:
        source: Path of the file, or the open, seekable file. Formats are a trace in CSV, Philly's JSON, the Standard
            Workload Format, a PBS log, a dump of sacct, manifests, and MAPA's job lines. The `Workload.from_…` methods
            describe them and the options.

    Raises:
        ValueError: Names a damaged file, a row that cannot be read, or an option for something that the format itself
            states.
    """
    given = {
        "pattern": pattern,
        "bandwidth_sensitive": bandwidth_sensitive,
        "duration": duration,
        "profile": profile,
        "columns": columns or None,
        "without_gpus": _checks.flag(without_gpus, "without_gpus", ValueError) or None,
        "gpus_per_node": gpus_per_node,
        "cpus_per_node": cpus_per_node,
        "seed": seed,
        "skip_bad_rows": skip_bad_rows or None,
    }
    stated = {name: value for name, value in given.items() if value is not None}
    if isinstance(source, str | os.PathLike):
        with open(source, "rb") as file:
            return _read(file, stated)
    return _read(source, stated)


def _read(file: IO[bytes], stated: Mapping[str, Any]) -> Workload:
    with packed.opened(file) as text:
        if not text.head.strip():
            raise ValueError("empty")
        sacct.refuse_other_forms(text.head)
        reader = next(one for one in _READERS if one.recognised(text.head))
        useless = [name for name in stated if name not in reader.options | _HARMLESS]
        if useless:
            raise ValueError(f"{useless[0]} = {_checks.shown(stated[useless[0]])}: not for {reader.name}")
        return reader.read(text, **{name: value for name, value in stated.items() if name in reader.options})


def _names(head: str) -> list[str]:
    return [name.strip() for name in head.lstrip().split("\n", 1)[0].split(",")]
