"""Output that several commands share: JSON, files and directories to write to, and shortened lists."""

from __future__ import annotations

import json
import math
import os
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from topoplace.cli import flags

_MAX_SHOWN = 20
"""Maximum number of items of a list that a table shows; JSON output has all items."""
_MAX_NAME_BYTES = 255
_PICTURES = (".png", ".svg", ".pdf")
"""Endings of the option -o that name one picture, not a directory of them."""
_OTHER_PICTURES = (".jpg", ".jpeg", ".gif", ".eps", ".ps", ".tif", ".tiff", ".webp", ".bmp")
"""Endings of pictures that are not written."""


def as_json(value: Any) -> None:
    """Print `value` as JSON; NaN and infinities, which JSON lacks, become null."""
    print(json.dumps(_finite(value), indent=2, allow_nan=False))


def directory(path: Path | None) -> Path | None:
    """Create the directory `path` of the option -o for pictures, and its parents, and return it; None stays None.

    Call this function before a long computation: it raises ValueError if no file can be created in `path`, and
    ImportError if the package that draws pictures is not installed.
    """
    if path is None:
        return None
    _require_drawing()
    return folder(path)


def folder(path: Path, flag: str = "-o") -> Path:
    """Create the directory `path` of the option `flag`, and its parents, and return it.

    Call this function before a long computation: it raises ValueError if no file can be created in `path`, and if
    `path` has the ending of a picture.
    """
    if is_picture(path):
        raise ValueError(f"{flag} {path}: several files are written; name a directory")
    _create(path, flag, path)
    if not os.access(path, os.W_OK):
        raise ValueError(f"{flag} {path}: no permission to write")
    return path


def picture(path: Path | None, name: str) -> Path | None:
    """Return `path` if it has the ending of a picture, else the path of the picture `name` in it; None if `path` is
    None.

    Directories are created. Errors are those of `directory` and `file`.
    """
    if path is not None:
        _require_drawing()
    return _picture(path, name)


def is_picture(path: Path) -> bool:
    """Return True if the value of the option -o names one picture, by its ending .png, .svg or .pdf.

    Raise ValueError for the ending of an unsupported picture format.
    """
    if path.suffix.lower() in _OTHER_PICTURES:
        raise ValueError(f"-o {path}: pictures end in {', '.join(_PICTURES)}")
    return path.suffix in _PICTURES


def topology_picture(path: Path | None, name: str) -> Path | None:
    """Return the path of the picture `name` of a topology, as `picture` does; an SVG needs no package."""
    if path is not None and (path if is_picture(path) else Path(name)).suffix != ".svg":
        _require_drawing("-o (a PNG or PDF; an SVG needs no package)")
    return _picture(path, name)


def _picture(path: Path | None, name: str) -> Path | None:
    if path is None:
        return None
    return file(path) if is_picture(path) else folder(path) / name


def file(path: Path, flag: str = "-o", inputs: Iterable[tuple[str, str | Path | None]] = ()) -> Path:
    """Create the directory of the output file `path` if missing, and return `path`.

    inputs: the arguments that may name files to read, each as its name and its value. Call this function before a long
    computation. Raise ValueError, naming the option `flag`, if `path` cannot be written, is one of the inputs, or is
    `-`.
    """
    if str(path) == "-":
        raise ValueError(f"{flag} -: is not the name of a file, and standard output has the tables")
    _create(path.parent, flag, path)
    if os.path.isdir(path):
        raise ValueError(f"{flag} {path}: a directory; a file is needed")
    if len(os.fsencode(path.name)) > _MAX_NAME_BYTES:
        raise ValueError(f"{flag} {path}: the name has more than {_MAX_NAME_BYTES} bytes")
    if not os.access(path if path.exists() else path.parent, os.W_OK):
        raise ValueError(f"{flag} {path}: no permission to write")
    for name, given in inputs:
        if given is not None and path.exists() and os.path.exists(given) and path.samefile(given):
            raise ValueError(f"{flag} {path}: is also {name} {given}, which would be lost")
    return path


def write(path: Path, text: str) -> None:
    """Write the file `path` of an option; any OSError names the file, also that of a full disk."""
    with flags.of_file(path):
        path.write_text(text, encoding="utf-8")


def wrote(picture: Path, *, beside_json: bool) -> None:
    """Print the path of a written picture; beside_json: to standard error, as standard output contains JSON."""
    print(f"wrote {picture}", file=sys.stderr if beside_json else sys.stdout)


def first_of(items: Sequence[object]) -> str:
    """Return the first 20 items, separated by commas, and the number of further items; "none" if there are no items."""
    more = f" and {len(items) - _MAX_SHOWN} more" if len(items) > _MAX_SHOWN else ""
    return (", ".join(map(str, items[:_MAX_SHOWN])) or "none") + more


def _require_drawing(what: str = "-o (a picture)") -> None:
    from topoplace.errors import require_package

    require_package("matplotlib.figure", what)


def _create(path: Path, flag: str, given: Path) -> None:
    """Create the directory `path` and its parents; ValueError names the option, its value `given` and the reason."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError):
        blocking = next(part for part in (path, *path.parents) if part.exists())
        where = "" if blocking == given else f"{blocking} is "
        raise ValueError(f"{flag} {given}: {where}not a directory") from None
    except OSError as error:
        raise ValueError(f"{flag} {given}: {error.strerror}") from None


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}  # pyright: ignore[reportUnknownVariableType]
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]  # pyright: ignore[reportUnknownVariableType]
    return None if isinstance(value, float) and not math.isfinite(value) else value
