"""The shell that every navigation gets, and the fragments that its script fetches."""

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
    """One request for a page.

    :ivar operator: the operator's login.
    :ivar query: the query string, each name once.
    :ivar body: the request body of a page drawn from posted data.
    """

    operator: OperatorSession
    query: Mapping[str, str]
    body: bytes = b""

    @property
    def only_reads(self) -> bool:
        """True if the login may not decide. A page for it sends nothing to a service and stores nothing."""
        return not self.operator.decides


@frozen
class Drawing:
    """A drawing of foreign data that may take long, so it is rendered in a thread.

    :ivar draw: renders the page; it uses only frozen values and no Deferred.
    """

    draw: Callable[[], Flattenable]


Place: TypeAlias = bool | str | Tag | Element | Mapping[str, Flattenable] | list[Mapping[str, Flattenable]]
"""The content of a slot of a template: see L{Fragment}."""


class Fragment(Element):
    """A template and the content of the slots that it names with C{t:render}.

    A L{bool} shows or hides a slot. A mapping shows it with the mapping's slots filled, and a list shows it once for
    each mapping. A text, tag or element replaces it, as does the result of a function of its tag. A name without
    content fails.
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
    """Return a renderer for the root of a page: its title, and the text that a screen reader announces."""
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


_LINK = '<a href="{path}"><svg class="icon" aria-hidden="true"><use href="#icon-feature"/></svg>{title}</a>\n'


class Shell:
    """The shell and its static files, read once.

    :param navigation: the titles of the features' pages, by path.
    """

    def __init__(self, navigation: Mapping[str, str]) -> None:
        self._files = {path.name: (_TYPES[path.suffix], path.read_bytes()) for path in _list_shipped()}
        template = (STATIC / "shell.html").read_text(encoding="utf-8")
        links = "".join(_LINK.format(path=path, title=html.escape(title)) for path, title in navigation.items())
        told = template.replace("{{navigation}}", links)
        self._template = told.replace("{{advice}}", html.escape(json.dumps(_ADVICE)))

    def page(self, request: IRequest, told: Mapping[str, str] | None = None) -> bytes:
        """Return the shell.

        :param told: settings that the script receives once and removes from the document at once.
        """
        request.setHeader(b"Content-Type", HTML)
        request.setHeader(b"Content-Security-Policy", _POLICY)
        return self._template.replace("{{told}}", html.escape(json.dumps(told or {}))).encode("utf-8")

    def missing(self, request: IRequest) -> bytes:
        """Return the shell with status 404."""
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
    """Return the same static page for every path and client."""
    return (STATIC / "landing.html").read_bytes()


def moved() -> bytes:
    """Return the static page, without a script, for a host name that serves no pages."""
    return (STATIC / "moved.html").read_bytes()
