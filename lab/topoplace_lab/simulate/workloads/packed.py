"""Texts that are read piece by piece from a file, plain or packed by gzip or zip, with a limit on the unpacked size."""

from __future__ import annotations

import gzip
import io
import zipfile
import zlib
from collections.abc import Generator, Iterator
from contextlib import ExitStack, contextmanager
from typing import IO, TYPE_CHECKING, Final, cast

if TYPE_CHECKING:
    from typing_extensions import Buffer

MAX_UNPACKED: Final = 4 << 30
"""Limit on the bytes of a text; more are refused as a mistake, or as a small file made to unpack to a large one."""
MAX_LINE: Final = 1 << 20
"""Limit on the characters of a line."""
_HEAD: Final = 4096
_GZIP: Final = b"\x1f\x8b"
_ZIP: Final = (b"PK\x03\x04", b"PK\x05\x06")


class PackedText:
    """An open text, which is read once, from its start."""

    def __init__(self, data: io.BufferedIOBase) -> None:
        """Begin to read `data`, unpacked bytes; the encoding is UTF-8."""
        buffered = io.BufferedReader(cast("io.RawIOBase", data), 1 << 16)
        self.head: str = buffered.peek(_HEAD)[:_HEAD].decode("utf-8-sig", "replace")
        """The first characters of the text."""
        self._text = io.TextIOWrapper(buffered, encoding="utf-8-sig", newline="\n")

    def lines(self) -> Iterator[str]:
        """Yield the lines with their ends; ValueError names a line that is too long, or is not text."""
        number = 0
        while True:
            number += 1
            try:
                line = self._text.readline(MAX_LINE + 1)
            except UnicodeDecodeError as error:
                raise ValueError(_not_text(error)) from None
            if len(line) > MAX_LINE:
                raise ValueError(f"line {number}: more than {MAX_LINE} characters")
            if "\0" in line:
                raise ValueError(f"line {number}: not a text file (character {line.index(chr(0))} is 0)")
            if not line:
                return
            yield line

    def chunks(self) -> Iterator[str]:
        """Yield the text in pieces of any length; ValueError if it is not text."""
        while True:
            try:
                chunk = self._text.read(1 << 16)
            except UnicodeDecodeError as error:
                raise ValueError(_not_text(error)) from None
            if "\0" in chunk:
                raise ValueError("not a text file (a character is 0)")
            if not chunk:
                return
            yield chunk


def _not_text(error: UnicodeDecodeError) -> str:
    return f"not a text file (a byte is 0x{error.object[error.start]:02x})"


@contextmanager
def opened(file: IO[bytes], most_bytes: int = MAX_UNPACKED) -> Generator[PackedText]:
    """Open the text in `file`, which must be seekable, and is unpacked while it is read if it is a gzip or zip file.

    most_bytes: limit on the unpacked bytes. Raise ValueError, also during reading, for a file that is empty, damaged or
    larger than the limit, or a zip file with a password or not exactly one file.
    """
    size = file.seek(0, io.SEEK_END)
    file.seek(0)
    start = file.read(4)
    file.seek(0)
    if not start:
        raise ValueError("empty")
    if size > most_bytes:
        raise ValueError(f"more than {most_bytes} bytes")
    with ExitStack() as stack:
        stream: IO[bytes] = file
        if start.startswith(_GZIP):
            stream = cast("IO[bytes]", stack.enter_context(gzip.GzipFile(fileobj=file)))
        elif start in _ZIP:
            stream = stack.enter_context(_only_member(file))
        yield PackedText(cast("io.BufferedIOBase", _Limited(stream, most_bytes)))


@contextmanager
def _only_member(file: IO[bytes]) -> Generator[IO[bytes]]:
    try:
        with zipfile.ZipFile(file) as archive:
            members = [
                one for one in archive.infolist() if not one.is_dir() and not _is_resource(one.filename)
            ]
            if len(members) != 1:
                some = ", ".join(ascii(one.filename)[1:-1] for one in members[:3])
                raise ValueError(f"zip, {len(members)} files instead of one{': ' if some else ''}{some}")
            if members[0].flag_bits & 1:
                raise ValueError("zip, with a password; unpack it first")
            with archive.open(members[0]) as member:
                yield member
    except (zipfile.BadZipFile, NotImplementedError, OSError) as error:
        raise ValueError(f"damaged zip ({error})") from None


def _is_resource(name: str) -> bool:
    """Return True for what macOS adds to a zip file next to each file."""
    return name.startswith("__MACOSX/")


class _Limited(io.RawIOBase):
    """Bytes of a stream, up to a limit; damage in a packed stream raises ValueError."""

    def __init__(self, stream: IO[bytes], most_bytes: int) -> None:
        self._stream = stream
        self._most = most_bytes
        self._left = most_bytes

    def readable(self) -> bool:
        """Return True."""
        return True

    def readinto(self, buffer: Buffer) -> int:
        """Fill the buffer and return the number of bytes read, 0 at the end; ValueError beyond the limit."""
        view = memoryview(buffer).cast("B")
        try:
            data = self._stream.read(len(view))
        except EOFError:
            raise ValueError("packed, cut off") from None
        except (zlib.error, gzip.BadGzipFile, zipfile.BadZipFile) as error:
            raise ValueError(f"damaged, or something else after it ({error})") from None
        self._left -= len(data)
        if self._left < 0:
            raise ValueError(f"more than {self._most} bytes")
        view[: len(data)] = data
        return len(data)
