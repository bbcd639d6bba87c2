"""Reads an answer that is XML as the same tables, arrays and texts that JSON has."""

from __future__ import annotations

from collections.abc import Collection
from typing import NoReturn
from xml.parsers import expat

from attrs import define, field

from aileron.base.json import JSON

_MOST_DEPTH = 64
_MOST_ELEMENTS = 200_000
_ENCODINGS = frozenset({"utf-8", "utf-16", "us-ascii", "iso-8859-1"})  # those of expat itself: no codec is looked up


def decode_xml(body: bytes, lists: Collection[str]) -> JSON:
    """Read an XML document, in time that grows as its length.

    An element with others inside is a table of them by name; any other is its text.  Attributes, comments and text
    between elements are left out, and so is the prefix of a name.

    :param lists: names of elements that may come several times: each is an array, also if it comes once.
    :raises ValueError: it is no XML, declares a document type, an entity or another encoding, or is nested too
        deep; what the service wrote is not in the message.
    """
    reader = _TreeBuilder(frozenset(lists))
    parser = expat.ParserCreate()
    parser.buffer_text = True
    parser.XmlDeclHandler = _declared
    parser.StartElementHandler = reader.start
    parser.EndElementHandler = reader.end
    parser.CharacterDataHandler = reader.text
    parser.StartDoctypeDeclHandler = _refuse  # what has no document type has no entities of its own either
    try:
        parser.Parse(body, True)
    except (expat.ExpatError, LookupError):  # a lookup for the codec of an encoding that the service made up
        raise ValueError("no XML") from None
    return reader.open[0].members


def _declared(_version: str, encoding: str | None, _standalone: int) -> None:
    if encoding is not None and encoding.lower() not in _ENCODINGS:
        raise ValueError("an encoding that is not read")


def _refuse(*_declared: object) -> NoReturn:
    raise ValueError("a document type")


@define
class _Element:
    """One element while it is read."""

    members: dict[str, JSON] = field(factory=dict)
    texts: list[str] = field(factory=list)


@define
class _TreeBuilder:
    """Builds the value.

    :ivar open: the elements that are not closed yet, behind one that stands for the document.
    """

    lists: Collection[str]
    open: list[_Element] = field(factory=lambda: [_Element()])
    count: int = 0

    def start(self, _name: str, _attributes: object) -> None:
        """Open an element."""
        self.count += 1
        if len(self.open) > _MOST_DEPTH or self.count > _MOST_ELEMENTS:
            raise ValueError("nested too deep, or too many elements")
        self.open.append(_Element())

    def text(self, text: str) -> None:
        """Take text of the innermost element."""
        self.open[-1].texts.append(text)

    def end(self, name: str) -> None:
        """Put an element into the one that holds it; of a name that is no list the last one counts."""
        closed, name = self.open.pop(), name.rpartition(":")[2]
        value: JSON = closed.members or "".join(closed.texts)
        members = self.open[-1].members
        if name in self.lists:
            array = members.setdefault(name, [])
            array.append(value)  # type: ignore[union-attr]
        else:
            members[name] = value
