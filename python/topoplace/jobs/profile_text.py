"""Read and write measured runs: CSV for profiles and single measurements, JSON for profiles."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from typing import Any, Final, cast

from topoplace import _checks
from topoplace.jobs.requirements import MAX_TASKS
from topoplace.text_formats.csv_rows import MAX_NUMBER, number, records

FORMAT: Final = "topoplace.profile"
PLACEMENTS: Final = ("intra-socket", "inter-socket", "inter-machine")
"""Placement classes, which state how far apart a job's GPUs are, from near to far."""
JobKind = tuple[str, int]
"""A job kind: (name, number of GPUs)."""
Solo = tuple[str, int, str]
"""The key of a run alone: (name, number of GPUs, placement class)."""
Pair = tuple[str, int, str, int]
"""The key of a run next to another job: (name, number of GPUs, other's name, other's number of GPUs)."""
_COLUMNS: Final = (
    *("kind", "model", "batch", "gpus", "placement"),
    *("with_model", "with_batch", "with_gpus", "seconds"),
)
_LEAST_SECONDS: Final = 1e-9
_TIMES_ALONE: Final = re.compile(r"\{('(intra|inter)-socket': [0-9.]+(, )?)+\}")
_WITH: Final = ("with_model", "with_batch", "with_gpus")


@dataclass(frozen=True, slots=True)
class Measurement:
    """The run time of one measured run of a job, alone or next to another job.

    name: profile name of the job. seconds: run time, 1e-9 to 1e15 to keep ratios finite; 0 means not measured. other,
    other_gpus: profile name and number of GPUs of the job that ran next to it; None if it ran alone. Raise ValueError
    for an invalid field.
    """

    name: str
    num_gpus: int
    placement: str | None
    """One of PLACEMENTS; None if unknown, which is allowed only next to another job."""
    seconds: float
    other: str | None = None
    other_gpus: int | None = None

    def __post_init__(self) -> None:
        _checks.text(self.name, "name", ValueError)
        _checks.integer(self.num_gpus, "num_gpus", ValueError, low=1, high=MAX_TASKS)
        seconds = _checks.real(self.seconds, "seconds", ValueError)
        if seconds and not _LEAST_SECONDS <= seconds <= MAX_NUMBER:
            limits = f"{_LEAST_SECONDS:g}..{MAX_NUMBER:g}"
            raise ValueError(f"seconds = {_checks.shown(self.seconds)} is neither 0 nor in {limits}")
        object.__setattr__(self, "seconds", seconds)
        if (self.other is None) != (self.other_gpus is None):
            raise ValueError(
                f"other = {_checks.shown(self.other)}, other_gpus = {self.other_gpus}: give both or neither"
            )
        if self.other is not None:
            _checks.text(self.other, "other", ValueError)
            _checks.integer(self.other_gpus, "other_gpus", ValueError, low=1, high=MAX_TASKS)
        if self.placement not in PLACEMENTS and not (self.placement is None and self.other):
            raise ValueError(
                f"placement = {_checks.shown(self.placement)}, not one of {', '.join(PLACEMENTS)}"
            )


def read_csv(text: str) -> Iterator[tuple[int, Measurement]]:
    """Yield the line number and the measurement of each row of a CSV text.

    Columns: kind (solo or collocation), model, batch, gpus, placement, with_model, with_batch, with_gpus, seconds. The
    profile name of a measurement is model/batch, or the model if the batch is empty. ValueError names an invalid line.
    """
    for line, row in records(text, _COLUMNS):
        kind = row["kind"].strip()
        if kind not in ("solo", "collocation"):
            raise ValueError(f"line {line}: kind = {_checks.shown(kind)}, not solo or collocation")
        alone = kind == "solo"
        if alone and any(row[column] for column in _WITH):
            raise ValueError(f"line {line}: a solo run must have no value in {', '.join(_WITH)}")
        try:
            yield (
                line,
                Measurement(
                    _joined_name(row["model"], row["batch"]),
                    int(number(row["gpus"], int, line, "gpus", low=1)),
                    row["placement"].strip() or None,
                    _seconds(row["seconds"], line),
                    None if alone else _joined_name(row["with_model"], row["with_batch"]),
                    None if alone else int(number(row["with_gpus"], int, line, "with_gpus", low=1)),
                ),
            )
        except ValueError as error:
            text = str(error)
            raise ValueError(text if text.startswith("line ") else f"line {line}: {text}") from None


def _seconds(text: str, line: int) -> float:
    """Parse the column of seconds; return 0 if it is empty.

    Two of SC'17's published profiles contain, by mistake, a list of solo times in rows of pairs that were not measured.
    Such a text also gives 0.
    """
    text = text.strip()
    return 0.0 if not text or _TIMES_ALONE.fullmatch(text) else number(text, float, line, "seconds")


def write_csv(measurements: Iterable[Measurement]) -> str:
    """Return `measurements` as CSV text, which `read_csv` can read."""
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(_COLUMNS)
    for run in measurements:
        other = ("", "", "") if run.other is None else (*_split_name(run.other), run.other_gpus)
        kind = "solo" if run.other is None else "collocation"
        writer.writerow(
            (kind, *_split_name(run.name), run.num_gpus, run.placement or "", *other, repr(run.seconds))
        )
    return text.getvalue()


def _joined_name(model: str, batch: str) -> str:
    return f"{model}/{batch}" if batch else model


def _split_name(name: str) -> tuple[str, str]:
    model, _, batch = name.rpartition("/")
    return (model, batch) if model and batch else (name, "")


def write_json(measurements: Iterable[Measurement]) -> str:
    """Return `measurements` as canonical JSON: equal measurements give equal text."""
    runs = [{key: value for key, value in asdict(run).items() if value is not None} for run in measurements]
    return json.dumps({"format": FORMAT, "version": 1, "runs": runs}, sort_keys=True, separators=(",", ":"))


def read_json(text: str) -> Iterator[tuple[int, Measurement]]:
    """Yield the index and the measurement of each run in JSON that `write_json` wrote; ValueError for other text."""
    record = _object(text)
    if record.get("format") != FORMAT or record.get("version") != 1:
        found = _checks.shown((record.get("format"), record.get("version")))
        raise ValueError(f"format and version = {found}, not {(FORMAT, 1)}")
    for i, run in enumerate(_checks.sequence(record.get("runs"), "runs", ValueError)):
        _checks.instance(run, dict, f"runs[{i}]", ValueError)
        try:
            fields: dict[str, Any] = {"placement": None, **run}
            yield i, Measurement(**fields)
        except (TypeError, ValueError) as error:
            raise ValueError(f"runs[{i}]: {str(error).removeprefix('Measurement.__init__() ')}") from None


def _object(text: str) -> dict[str, Any]:
    try:
        record = json.loads(text)
    except (ValueError, TypeError, RecursionError) as error:
        raise ValueError(f"not JSON: {error}") from None
    _checks.instance(record, dict, "the text", ValueError)
    return cast("dict[str, Any]", record)
