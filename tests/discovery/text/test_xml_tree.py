from __future__ import annotations

import sys
import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

import topoplace as tp
from topoplace.discovery.text import xml_tree

DOCUMENT = """\
<?xml version="1.0" encoding="ISO-8859-1"?>
<!DOCTYPE rack SYSTEM "rack.dtd">
<!-- two -->
<rack size="2">
  <box name="ü" cpus="4"/>
  <box name="b">
    one
    <disk/> two
  </box>
</rack>
"""


def test_elements_know_their_lines_attributes_and_text() -> None:
    root = xml_tree.read(DOCUMENT, "a rack")
    assert (root.tag, root.attributes, root.line, root.text) == ("rack", {"size": "2"}, 4, "")
    first, second = root.children_of("box")
    assert (first.get("name"), first.get("none"), first.line) == ("ü", "", 5)
    assert (second.text.split(), second.line) == (["one", "two"], 6)
    assert [element.tag for element in root.walk()] == ["rack", "box", "box", "disk"]
    assert xml_tree.integer(first, "cpus") == 4


def test_what_was_copied_along_is_skipped() -> None:
    root = xml_tree.read("$ cat rack.xml > out\n```xml\n" + DOCUMENT + "```\n$ ", "a rack")
    assert (root.tag, root.line) == ("rack", 6)
    with pytest.raises(tp.TopologyError, match=r"^line 2: a rack is not well-formed"):
        xml_tree.read("$ cat rack.xml\n<a></b>\n", "a rack")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "line 1: a rack is not well-formed: no element found"),
        ("<a>\n<b></a>", "line 2: a rack is not well-formed: mismatched tag"),
        ("<a/>\n<b/>", "line 2: a rack is not well-formed"),
        ('<!DOCTYPE a [\n<!ENTITY b "c">]>\n<a>&b;</a>', "line 2: a rack declares its own entities"),
        ('<!DOCTYPE a [\n<!ENTITY b SYSTEM "file:///etc/passwd">]><a>&b;</a>', "line 2: a rack declares"),
        ('<!DOCTYPE a [\n<!ENTITY % b SYSTEM "b">%b;]><a/>', "line 2: a rack declares"),
        ("\n<a>&b;</a>", "line 2: a rack is not well-formed: undefined entity"),
        ('<!DOCTYPE a SYSTEM "b">\n<a>&b;</a>', "line 2: a rack refers to an entity that is not read: b"),
        ("<a>\n" * 100 + "</a>" * 100, "line 65: a rack is nested deeper than 64"),
        ("<a>" + "\n<b/>" * 1000 + "</a>", "line [0-9]+: a rack has too many elements"),
        ("<a>\ud800</a>", "a rack is not valid Unicode"),
    ],
)
def test_bad_documents_are_refused_with_their_line(text: str, message: str) -> None:
    with pytest.raises(tp.TopologyError, match=message):
        xml_tree.read(text, "a rack")


@pytest.mark.parametrize(
    ("attribute", "message"),
    [
        ("", "line 1: a n is missing"),
        ('n="x"', "line 1: a n = 'x' is not an integer in 0..9"),
        ('n="-1"', "line 1: a n = '-1' is not"),
        ('n="10"', "line 1: a n = '10' is not"),
        ('n="²"', "line 1: a n = '²' is not"),
        (f'n="{"1" * 5000}"', "is not an integer"),
    ],
)
def test_integers_are_checked(attribute: str, message: str) -> None:
    with pytest.raises(tp.TopologyError, match=message):
        xml_tree.integer(xml_tree.read(f"<a {attribute}/>", "it"), "n", high=9)


def test_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "defusedxml.sax", None)
    with pytest.raises(ModuleNotFoundError, match=r"a rack needs .* 'topoplace\[discovery\]'"):
        xml_tree.read(DOCUMENT, "a rack")


@pytest.mark.parametrize("piece", ["<a/>", '<abcd e="1" f=""/>\n', "x\n", "<a>" * 50 + "</a>" * 50 + "\n"])
def test_memory_stays_in_proportion(piece: str) -> None:
    text = "<r>" + piece * (300_000 // len(piece)) + "</r>"
    tracemalloc.start()
    try:
        xml_tree.read(text, "a rack")
    except tp.TopologyError:
        pass
    finally:
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    assert peak <= 20 * len(text)


@given(st.text(st.sampled_from("<>/a =\"'&;!-[]?\n")) | st.text())
def test_any_text_is_read_or_refused(text: str) -> None:
    for candidate in (text, f"<a>{text}</a>"):
        try:
            assert xml_tree.read(candidate, "it").line >= 1
        except tp.TopologyError as error:
            assert str(error)  # noqa: PT017 - either outcome is right, any other exception is not
