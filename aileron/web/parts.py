"""The shell, which any navigation gets and whose script fetches what is shown, and the fragments that it fetches."""

from __future__ import annotations

import html
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TypeAlias

from attrs import frozen
from twisted.web.iweb import IRequest
from twisted.web.template import Element, Flattenable, Tag, XMLString

from aileron.model.faults import ADVICE
from aileron.model.sessions import OperatorSession

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


HTML = b"text/html; charset=utf-8"
_TYPES = {
    ".css": b"text/css; charset=utf-8",
    ".js": b"text/javascript; charset=utf-8",
    ".svg": b"image/svg+xml",
    ".webmanifest": b"application/manifest+json",
}
_POLICY = (
    b"default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; "
    b"manifest-src 'self'; worker-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)


_ADVICE = {kind: [advice.kept, advice.on_page] for kind, advice in ADVICE.items()}


class Shell:
    """The shell and the files that it names, read once.

    :param navigation: titles of the features' pages, by path.
    """

    def __init__(self, navigation: Mapping[str, str]) -> None:
        self._files = {path.name: (_TYPES[path.suffix], path.read_bytes()) for path in _list_shipped()}
        template = (STATIC / "shell.html").read_text(encoding="utf-8")
        links = "".join(f'<a href="{path}">{html.escape(title)}</a>\n' for path, title in navigation.items())
        told = template.replace("{{navigation}}", links)
        self._template = told.replace("{{advice}}", html.escape(json.dumps(_ADVICE)))

    def page(self, request: IRequest, told: Mapping[str, str] | None = None) -> bytes:
        """Draw the shell.

        :param told: what its script is told this once; it takes it out of the document before anything else.
        """
        request.setHeader(b"Content-Type", HTML)
        request.setHeader(b"Content-Security-Policy", _POLICY)
        return self._template.replace("{{told}}", html.escape(json.dumps(told or {}))).encode("utf-8")

    def missing(self, request: IRequest) -> bytes:
        """Draw the same shell where nothing is."""
        request.setResponseCode(404)
        return self.page(request)

    def file(self, request: IRequest, name: str) -> bytes:
        """Serve a script, a style sheet, an icon or the manifest."""
        if name not in self._files:
            return self.missing(request)
        kind, content = self._files[name]
        request.setHeader(b"Content-Type", kind)
        return content


def _list_shipped() -> list[Path]:
    return [path for path in STATIC.iterdir() if path.suffix in _TYPES]


LANDING_POLICY = (
    "default-src 'none'; script-src 'self'; worker-src 'none'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'"
)


def landing() -> bytes:
    """Serve the same page for every path and every client."""
    return (STATIC / "landing.html").read_bytes()


def moved() -> bytes:
    """Serve the page, without a script, of a name by which there are no pages."""
    return (STATIC / "moved.html").read_bytes()
