"""Files of columns with a text about the whole: Parquet (extra `parquet`), or CSV with the text in the first line.

In Parquet, the text is in the metadata of the schema. None becomes an empty cell.
"""

from __future__ import annotations

import csv
import importlib
import os
from collections.abc import Callable, Generator, Iterable, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, NamedTuple

from topoplace import _checks
from topoplace.errors import require_package

_KEY: Final = b"topoplace"
_LONGEST_CELL: Final = 131_072  # of Python's csv
_PARQUET_MARK: Final = b"PAR1"


class Kind(NamedTuple):
    """How a column stores its values: `text` and `value` convert to and from cells of CSV, where None is empty.

    arrow: the name of the type in Parquet.
    """

    arrow: str
    text: Callable[[Any], str]
    value: Callable[[str], Any]


def _flag_text(value: bool) -> str:
    return str(int(value))


def _flag_of(text: str) -> bool:
    return {"0": False, "1": True}[text]


def _ints_text(values: Iterable[int]) -> str:
    return " ".join(map(str, values))


def _ints_of(text: str) -> list[int]:
    return [int(word) for word in text.split()]


TEXT: Final = Kind("string", str, str)
FLOAT: Final = Kind("float64", repr, float)
INT: Final = Kind("int64", str, int)
FLAG: Final = Kind("bool_", _flag_text, _flag_of)
INTS: Final = Kind("ints", _ints_text, _ints_of)
KindOf = Callable[[str], Kind]
"""Returns the kind of a column by its name."""


class Form(NamedTuple):
    """The functions that write and read a kind of file."""

    write: Callable[[Path, Mapping[str, Kind], Mapping[str, list[Any]], str], None]
    """Write a file: its path, the kinds and values of its columns, and a text about the whole."""
    read: Callable[[Path, KindOf], tuple[str, dict[str, list[Any]]]]
    """Read a file: the text about the whole, and the values of its columns."""


def form_of(path: Path) -> Form:
    """Return the form of a file with this suffix; ValueError for a suffix other than .csv and .parquet."""
    if path.suffix == ".csv":
        return Form(_write_csv, _read_csv)
    if path.suffix != ".parquet":
        raise ValueError(f"path = {_checks.shown(str(path))}: must end in .parquet or .csv")
    require_package("pyarrow.parquet", "a result in Parquet")
    return Form(_write_parquet, _read_parquet)


@contextmanager
def replacing(path: Path) -> Generator[Path]:
    """Yield a file to write, which replaces `path` once it is complete and on the disk; else `path` stays as it is."""
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        yield part
        _to_disk(part, os.O_RDWR)
        os.replace(part, path)
        if hasattr(os, "O_DIRECTORY"):  # on Windows directories cannot be opened
            _to_disk(path.parent, os.O_RDONLY | os.O_DIRECTORY)
    finally:
        part.unlink(missing_ok=True)


def _to_disk(path: Path, flags: int) -> None:
    file = os.open(path, flags)
    try:
        os.fsync(file)
    finally:
        os.close(file)


def _write_csv(path: Path, kinds: Mapping[str, Kind], columns: Mapping[str, list[Any]], about: str) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        file.write(f"# {about}\n")
        writer = csv.writer(file)
        writer.writerow(kinds)
        for values in zip(*columns.values(), strict=True):
            cells = [
                "" if value is None else kind.text(value)
                for kind, value in zip(kinds.values(), values, strict=True)
            ]
            if max(map(len, cells)) > _LONGEST_CELL:
                raise ValueError(
                    f"job {_checks.shown(cells[0])}: too long for a cell of CSV; save it as .parquet"
                )
            writer.writerow(cells)


def _read_csv(path: Path, kind_of: KindOf) -> tuple[str, dict[str, list[Any]]]:
    if _begins_with(path, _PARQUET_MARK):
        raise ValueError("a Parquet file; its name must end in .parquet")
    with path.open(encoding="utf-8", newline="") as file:
        mark, _, about = file.readline().partition(" ")
        if mark != "#":
            raise ValueError("not a result of topoplace: the first line does not begin with #")
        rows = csv.reader(file)
        header = next(rows, list[str]())
        kinds = [kind_of(name) for name in header]
        columns: dict[str, list[Any]] = {name: [] for name in header}
        for number, cells in enumerate(rows, 1):
            try:
                for name, kind, cell in zip(header, kinds, cells, strict=True):
                    columns[name].append(kind.value(cell) if cell else None)
            except (ValueError, KeyError):
                raise ValueError(f"row {number}: cannot be read: {_checks.shown(cells)}") from None
    return about, columns


def _write_parquet(
    path: Path, kinds: Mapping[str, Kind], columns: Mapping[str, list[Any]], about: str
) -> None:
    arrow, parquet = _pyarrow()
    types = {"ints": arrow.list_(arrow.int32())}
    fields = [(name, types.get(kind.arrow) or getattr(arrow, kind.arrow)()) for name, kind in kinds.items()]
    schema = arrow.schema(fields, metadata={_KEY: about.encode()})
    parquet.write_table(arrow.table(dict(columns), schema=schema), path)


def _read_parquet(path: Path, _kind_of: KindOf) -> tuple[str, dict[str, list[Any]]]:
    arrow, parquet = _pyarrow()
    if _begins_with(path, b"#"):
        raise ValueError("a CSV file; its name must end in .csv")
    try:
        table = parquet.read_table(path)
    except (arrow.ArrowInvalid, OSError) as error:
        raise ValueError(f"not a Parquet file: {str(error).partition(chr(10))[0]}") from None
    metadata: dict[bytes, bytes] = table.schema.metadata or dict[bytes, bytes]()
    if _KEY not in metadata:
        raise ValueError("not a result of topoplace: the Parquet file has no such metadata")
    columns: dict[str, list[Any]] = {name: table[name].to_pylist() for name in table.column_names}
    return metadata[_KEY].decode(), columns


def _begins_with(path: Path, mark: bytes) -> bool:
    with path.open("rb") as file:
        return file.read(len(mark)) == mark


def _pyarrow() -> tuple[Any, Any]:
    return importlib.import_module("pyarrow"), importlib.import_module("pyarrow.parquet")
