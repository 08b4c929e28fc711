"""Reader of the regular files of an uncompressed tar archive in memory; no file is written, no link followed.

Each member is a header of 512 bytes and its content padded to 512. Names too long for a header are in a separate member
before it, as GNU and POSIX tar write them. The archive ends with blocks of zeros.
"""

from __future__ import annotations

from collections.abc import Iterator

from topoplace.errors import TopologyError

MAX_BYTES = 64 << 20
MAX_MEMBERS = 100_000

_BLOCK = 512
_END = bytes(_BLOCK)
_REGULAR = b"0\0"
_LONG_NAME = b"L"
_EXTENDED = b"x"


def is_tar(data: bytes) -> bool:
    """Return True if `data` begins like a tar archive."""
    return data[257:262] == b"ustar"


def files(data: bytes) -> Iterator[tuple[str, bytes]]:
    """Yield (path, content) of every regular file, in the order of the archive.

    Raise TopologyError naming the byte at which the archive is too large, truncated or damaged.
    """
    if len(data) > MAX_BYTES:
        raise TopologyError(f"the archive has {len(data)} bytes, more than {MAX_BYTES}")
    place, long_name, members = 0, "", 0
    while not data.startswith(_END, place):
        members += 1
        if members > MAX_MEMBERS:
            raise TopologyError(f"byte {place}: the archive has more than {MAX_MEMBERS} members")
        header = data[place : place + _BLOCK]
        size = _size(header, place)
        content = data[place + _BLOCK : place + _BLOCK + size]
        if len(content) < size:
            raise TopologyError(f"byte {place}: the archive ends inside a member")
        kind = header[156:157]
        if kind in (_LONG_NAME, _EXTENDED):
            long_name = _long_name(kind, content) or long_name
        else:
            if kind in _REGULAR:
                yield long_name or _name(header), content
            long_name = ""
        place += _BLOCK + -(-size // _BLOCK) * _BLOCK


def _size(header: bytes, place: int) -> int:
    """Return the size of a member in bytes; TopologyError if its header is incomplete or has a wrong checksum."""
    if len(header) < _BLOCK:
        raise TopologyError(f"byte {place}: the archive ends inside a header")
    checksum = sum(header) - sum(header[148:156]) + 8 * ord(" ")
    if _octal(header[148:156]) != checksum:
        raise TopologyError(f"byte {place}: the archive has a header with a wrong checksum")
    size = _octal(header[124:136])
    if size is None:
        raise TopologyError(f"byte {place}: the archive has a member without a size")
    return size


def _octal(field: bytes) -> int | None:
    digits = field.strip(b" \0")
    return int(digits, 8) if digits and not digits.strip(b"01234567") else None


def _name(header: bytes) -> str:
    name, prefix = (
        part.split(b"\0")[0].decode("utf-8", "replace") for part in (header[:100], header[345:500])
    )
    return f"{prefix}/{name}" if prefix and header[257:263] == b"ustar\0" else name


def _long_name(kind: bytes, content: bytes) -> str:
    """Return the name in a member that only carries a name; "" if it carries something else."""
    if kind == _LONG_NAME:
        return content.split(b"\0")[0].decode("utf-8", "replace")
    for record in content.split(b"\n"):
        key, _, value = record.partition(b" ")[2].partition(b"=")
        if key == b"path":
            return value.decode("utf-8", "replace")
    return ""
