"""Decodes XML into the tables, arrays and texts of JSON."""

from __future__ import annotations

from collections.abc import Collection
from typing import NoReturn
from xml.parsers import expat

from attrs import define, field

from aileron.base.json import JSON

_MOST_DEPTH = 64
_MOST_ELEMENTS = 200_000
_ENCODINGS = frozenset({"utf-8", "utf-16", "us-ascii", "iso-8859-1"})  # supported by expat itself


def decode_xml(body: bytes, lists: Collection[str]) -> JSON:
    """Decode an XML document, in linear time.

    An element with children becomes a table by name, any other its text. Attributes, comments, text between elements
    and prefixes of names are omitted.

    :param lists: names of elements that may be repeated. Each becomes an array, even if it occurs once.
    :raises ValueError: if the document is not XML, declares a document type, an entity or an unsupported encoding, or
        is nested too deep. The message contains nothing of the document.
    """
    reader = _TreeBuilder(frozenset(lists))
    parser = expat.ParserCreate()
    parser.buffer_text = True
    parser.XmlDeclHandler = _declared
    parser.StartElementHandler = reader.start
    parser.EndElementHandler = reader.end
    parser.CharacterDataHandler = reader.text
    parser.StartDoctypeDeclHandler = _refuse  # no document type: no own entities
    try:
        parser.Parse(body, True)
    except (expat.ExpatError, LookupError):  # LookupError: the encoding has no codec
        raise ValueError("no XML") from None
    return reader.open[0].members


def _declared(_version: str, encoding: str | None, _standalone: int) -> None:
    if encoding is not None and encoding.lower() not in _ENCODINGS:
        raise ValueError("an encoding that is not read")


def _refuse(*_declared: object) -> NoReturn:
    raise ValueError("a document type")


@define
class _Element:
    """An XML element whose end was not read yet."""

    members: dict[str, JSON] = field(factory=dict)
    texts: list[str] = field(factory=list)


@define
class _TreeBuilder:
    """The builder of the value.

    :ivar open: the elements that are not closed yet, after one for the document.
    """

    lists: Collection[str]
    open: list[_Element] = field(factory=lambda: [_Element()])
    count: int = 0

    def start(self, _name: str, _attributes: object) -> None:
        """Open an element.

        :raises ValueError: if the document is nested too deep, or has too many elements.
        """
        self.count += 1
        if len(self.open) > _MOST_DEPTH or self.count > _MOST_ELEMENTS:
            raise ValueError("nested too deep, or too many elements")
        self.open.append(_Element())

    def text(self, text: str) -> None:
        """Add text to the innermost element that is open."""
        self.open[-1].texts.append(text)

    def end(self, name: str) -> None:
        """Add an element to its parent. If its name is not in C{lists}, the last one of the name counts.

        If its name is in C{lists}, the element is appended to an array.
        """
        closed, name = self.open.pop(), name.rpartition(":")[2]
        value: JSON = closed.members or "".join(closed.texts)
        members = self.open[-1].members
        if name in self.lists:
            array = members.setdefault(name, [])
            array.append(value)  # type: ignore[union-attr]
        else:
            members[name] = value
