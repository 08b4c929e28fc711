"""Packed texts are read piece by piece; damaged ones, and those that unpack to too much, are refused."""

from __future__ import annotations

import gzip
import io
import json
import tracemalloc
import zipfile

import pytest
from hypothesis import given
from hypothesis import strategies as st

from topoplace_lab.simulate.workloads import json_rows, packed

TEXT = "a,b\r\n1,é\n\n2,3"


def zipped(**files: str) -> bytes:
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in files.items():
            archive.writestr(name.replace("__", "/"), text)
    return data.getvalue()


def lines(data: bytes, most_bytes: int = packed.MAX_UNPACKED) -> list[str]:
    with packed.opened(io.BytesIO(data), most_bytes) as text:
        return list(text.lines())


@pytest.mark.parametrize(
    "data",
    [
        TEXT.encode(),
        b"\xef\xbb\xbf" + TEXT.encode(),
        gzip.compress(TEXT.encode()),
        gzip.compress(TEXT[:5].encode()) + gzip.compress(TEXT[5:].encode()),
        zipped(jobs=TEXT),
        zipped(folder__jobs=TEXT),
    ],
    ids=["plain", "bom", "gzip", "members", "zip", "folder"],
)
def test_a_text_is_the_same_however_it_is_packed(data: bytes) -> None:
    assert lines(data) == ["a,b\r\n", "1,é\n", "\n", "2,3"]
    with packed.opened(io.BytesIO(data)) as text:
        assert text.head == TEXT
        assert "".join(text.chunks()) == TEXT


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "^empty$"),
        (gzip.compress(TEXT.encode())[:-9], "packed, cut off"),
        (gzip.compress(TEXT.encode()) + b"more", "something else after it"),
        (b"\x1f\x8b" + b"x" * 30, "damaged"),
        (b"PK\x03\x04" + b"x" * 30, "damaged zip"),
        (zipped(a=TEXT, b=TEXT), "zip, 2 files instead of one: a, b"),
        (zipped(), "zip, 0 files instead of one"),
        (b"a\xff", "not a text file .a byte is 0xff"),
        (b"a\n\0", "line 2: not a text file .character 0 is 0"),
        (b"a" * (packed.MAX_LINE + 1), "line 1: more than 1048576 characters"),
    ],
    ids=["empty", "cut", "more", "gzip", "zip", "two", "none", "utf8", "zero", "long"],
)
def test_what_cannot_be_read_is_refused(data: bytes, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        lines(data)


@pytest.mark.parametrize(
    "pack", [gzip.compress, lambda data: zipped(bomb=data.decode())], ids=["gzip", "zip"]
)
def test_a_bomb_is_refused_before_it_takes_memory(pack: object) -> None:
    assert callable(pack)
    bomb = pack(b"0\n" * (1 << 23))
    tracemalloc.start()
    with (
        pytest.raises(ValueError, match="more than 1048576 bytes"),
        packed.opened(io.BytesIO(bomb), 1 << 20) as text,
    ):
        for _ in text.lines():
            pass
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 1 << 20


@given(st.lists(st.recursive(st.integers() | st.text() | st.none(), st.lists)), st.integers(1, 9), st.data())
def test_items_of_json_come_one_by_one(items: list[object], size: int, data: st.DataObject) -> None:
    text = json.dumps(items, indent=data.draw(st.sampled_from([None, 1])))
    pieces = [text[i : i + size] for i in range(0, len(text), size)]
    assert list(json_rows.items(pieces)) == items
    with pytest.raises(ValueError, match=r"after [0-9]+ items"):
        list(json_rows.items([*pieces, "]"]))
    with pytest.raises(ValueError, match=r"after [0-9]+ items"):
        list(json_rows.items(pieces[:-1]))


@pytest.mark.parametrize("text", ["{}", "", "[1 2]", "[1,]", "[,1]", "[" * 100_000])
def test_what_is_no_array_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"after [0-9]+ items"):
        list(json_rows.items([text]))
