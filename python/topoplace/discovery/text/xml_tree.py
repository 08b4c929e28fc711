"""Reader of XML text as a tree of elements that know their lines; hostile XML is refused.

A DOCTYPE is allowed, as hwloc writes one, but files that it names are not opened. Entities are refused, except those
that XML itself defines, and so is a document with more elements, or deeper nesting, than any machine needs.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any
from xml.sax import SAXException, SAXParseException
from xml.sax.handler import ContentHandler, feature_external_ges

from topoplace import _checks
from topoplace.errors import TopologyError, require_package

MAX_ELEMENTS = 100_000
MAX_DEPTH = 64
MAX_ATTRIBUTES = 64
# Real documents have at least 60 characters per element; denser ones would take much more memory than text.
_MIN_CHARACTERS = 24
_ALWAYS_ELEMENTS = 64
_FIRST_TAG = re.compile(r"^[ \t]*<", re.MULTILINE)
_NO_ATTRIBUTES: Mapping[str, str] = MappingProxyType({})


@dataclass(frozen=True, slots=True, eq=False)
class Element:
    """One element of a document."""

    tag: str
    attributes: Mapping[str, str]
    children: tuple[Element, ...]
    text: str
    """The characters directly inside it, without surrounding blanks."""
    line: int
    """The line in which its tag begins, from 1."""

    def get(self, name: str, default: str = "") -> str:
        """Return the attribute `name`, or else `default`."""
        return self.attributes.get(name, default)

    def children_of(self, tag: str) -> Iterator[Element]:
        """Yield the children with this tag, in their order."""
        return (child for child in self.children if child.tag == tag)

    def walk(self) -> Iterator[Element]:
        """Yield this element and all its descendants, parents before children, in the order of the text."""
        left: list[Element] = [self]
        while left:
            element = left.pop()
            yield element
            left.extend(reversed(element.children))


def read(text: str, what: str) -> Element:
    """Return the root element of the XML document in `text`; skip text around it, such as a shell prompt.

    what: the document's name in messages.
    Raise TopologyError naming the line of the first fault, and ModuleNotFoundError if defusedxml is not installed.
    """
    require_package("defusedxml.sax", f"reading {what}")
    import defusedxml.sax

    parser: Any = defusedxml.sax.make_parser()
    parser.forbid_dtd = parser.forbid_external = False  # a DOCTYPE may name a file, which is never opened
    parser.setFeature(feature_external_ges, False)
    max_elements = min(MAX_ELEMENTS, len(text) // _MIN_CHARACTERS + _ALWAYS_ELEMENTS)
    document, skipped = _document(text)
    builder = _XmlBuilder(what, max_elements, lambda: parser.getLineNumber() + skipped)
    parser.setContentHandler(builder)
    try:
        parser.feed(document)
        parser.close()
    except SAXParseException as error:
        message = error.getMessage()
        raise TopologyError(
            f"line {(error.getLineNumber() or 0) + skipped}: {what} is not well-formed: {message}"
        ) from None
    except (SAXException, defusedxml.DefusedXmlException):
        raise TopologyError(
            f"line {builder.line}: {what} declares its own entities, which are not read"
        ) from None
    except UnicodeEncodeError:
        raise TopologyError(f"{what} is not valid Unicode") from None
    return builder.root


def _document(text: str) -> tuple[str, int]:
    """Return the text from the first line that begins with a tag to the last tag, and the number of lines before it."""
    first = _FIRST_TAG.search(text)
    start = first.end() - 1 if first else 0
    return text[start : text.rfind(">") + 1] or text, text.count("\n", 0, start)


@dataclass(slots=True)
class _Open:
    """An element whose end tag has not been read yet."""

    tag: str
    attributes: Mapping[str, str]
    line: int
    children: list[Element] = field(default_factory=list[Element])
    text: list[str] = field(default_factory=list[str])


class _XmlBuilder(ContentHandler):
    """A SAX handler that builds the tree of a document."""

    root: Element

    def __init__(self, what: str, max_elements: int, line: Callable[[], int]) -> None:
        super().__init__()
        self._what = what
        self._left = max_elements
        self._line = line
        self._open: list[_Open] = []

    @property
    def line(self) -> int:
        """Return the parser's current line in the document."""
        return self._line()

    def startElement(self, name: str, attrs: Any) -> None:  # noqa: N802 - the name is SAX's
        self._left -= 1
        if self._left < 0:
            raise TopologyError(f"line {self.line}: {self._what} has too many elements")
        if len(self._open) == MAX_DEPTH:
            raise TopologyError(f"line {self.line}: {self._what} is nested deeper than {MAX_DEPTH}")
        if len(attrs) > MAX_ATTRIBUTES:
            raise TopologyError(f"line {self.line}: an element with more than {MAX_ATTRIBUTES} attributes")
        self._open.append(_Open(name, dict(attrs.items()) or _NO_ATTRIBUTES, self.line))

    def characters(self, content: str) -> None:
        pieces = self._open[-1].text
        if not content.isspace():
            pieces.append(content)
        elif pieces and pieces[-1] != " ":
            pieces.append(" ")

    def skippedEntity(self, name: str) -> None:  # noqa: N802 - the name is SAX's
        raise TopologyError(f"line {self.line}: {self._what} refers to an entity that is not read: {name}")

    def endElement(self, name: str) -> None:  # noqa: N802 - the name is SAX's; expat has checked that it fits
        done = self._open.pop()
        element = Element(
            done.tag, done.attributes, tuple(done.children), "".join(done.text).strip(), done.line
        )
        if self._open:
            self._open[-1].children.append(element)
        else:
            self.root = element


def integer(element: Element, name: str, *, low: int = 0, high: int = 1 << 62) -> int:
    """Return the attribute `name` of `element` as an integer within low..high; TopologyError if it is not one."""
    word = element.get(name)
    if word.isascii() and word.isdigit() and len(word) < 20 and low <= int(word) <= high:
        return int(word)
    where = f"line {element.line}: {element.tag} {name}"
    if name not in element.attributes:
        raise TopologyError(f"{where} is missing")
    raise TopologyError(f"{where} = {_checks.shown(word)} is not an integer in {low}..{high}")
