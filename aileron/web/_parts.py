"""The fragments that pages are made of, and where their files lie."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TypeAlias

from attrs import frozen
from twisted.web.iweb import IRequest
from twisted.web.template import Element, Flattenable, Tag, XMLString

from aileron.values import OperatorSession

STATIC = Path(__file__).with_name("static")
_TEMPLATES = Path(__file__).with_name("templates")


@frozen
class Visit:
    """One look at a page.

    :ivar operator: whose login it is.
    :ivar query: what stands behind the question mark, each name once.
    :ivar body: what was sent, where the page is drawn of that.
    """

    operator: OperatorSession
    query: Mapping[str, str]
    body: bytes = b""


@frozen
class Drawing:
    """A drawing that may take long, since others wrote what it shows: it is drawn beside the reactor.

    :ivar draw: needs nothing but frozen values, and waits for nothing.
    """

    draw: Callable[[], Flattenable]


Place: TypeAlias = bool | str | Tag | Element | Mapping[str, Flattenable] | list[Mapping[str, Flattenable]]
"""The content of a place of a template: see L{Fragment}."""


class Fragment(Element):
    """A template and what stands in the places that it names with C{t:render}.

    A place is shown or not (a L{bool}), shown with its slots filled (a mapping), shown once for each mapping of a list,
    replaced by a text, tag or element, or by what a function makes of its tag.  A name that nobody gave fails.
    """

    def __init__(self, loader: XMLString, **places: Place | Callable[[Tag], Flattenable]) -> None:
        super().__init__(loader)
        self._places = places

    def lookupRenderMethod(self, name: str) -> Callable[[IRequest | None, Tag], Flattenable]:
        place = self._places[name]
        return lambda request, tag: _render_place(place, tag)


def _render_place(place: Place | Callable[[Tag], Flattenable], tag: Tag) -> Flattenable:
    match place:
        case bool():
            return tag if place else ""
        case Mapping():
            return tag.fillSlots(**place)
        case list():
            return [tag.clone().fillSlots(**slots) for slots in place]
        case str() | Tag() | Element():
            return place
        case _:
            return place(tag)


def titled(title: str, said: str) -> Callable[[Tag], Tag]:
    """Make the root of a page: its title, and what is read aloud when that changes."""
    return lambda tag: tag(**{"data-title": title, "data-said": said})


def template(name: str) -> XMLString:
    """Load a fragment's template."""
    return XMLString((_TEMPLATES / name).read_text(encoding="utf-8"))
