"""The shell (the static page that a browser gets at every address), and the fragments that its script fetches."""

from __future__ import annotations

import gzip
import html
import json
import re
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from hashlib import blake2b
from pathlib import Path
from secrets import token_bytes
from types import MappingProxyType
from typing import TypeAlias

from attrs import frozen
from twisted.web.http import CACHED
from twisted.web.iweb import IRequest
from twisted.web.template import Element, Flattenable, Tag, XMLString

from aileron.model.faults import ADVICE
from aileron.model.people import Role
from aileron.model.sessions import OperatorSession

from .scripts import join_scripts

STATIC = Path(__file__).with_name("static")
_TEMPLATES = Path(__file__).with_name("templates")


@frozen
class Visit:
    """One request for a page.

    :ivar operator: the operator's login.
    :ivar query: the query string, each name once.
    :ivar body: the request body of a page drawn from posted data.
    :ivar role: the role of the login's account, or None for the operator.
    """

    operator: OperatorSession
    query: Mapping[str, str]
    body: bytes = b""
    role: Role | None = None

    @property
    def only_reads(self) -> bool:
        """True if the login may not decide. A page for it sends nothing to a service and stores nothing."""
        return not self.operator.decides


@frozen
class Drawing:
    """A drawing that may take long because of foreign data, so it is rendered in a thread.

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
    """Return a function that adds to the root of a page its title, and the text that a screen reader announces."""
    return lambda tag: tag(**{"data-title": title, "data-said": said})


def template(name: str) -> XMLString:
    """Load the HTML template of a part of a page."""
    return XMLString((_TEMPLATES / name).read_text(encoding="utf-8"))


HTML = b"text/html; charset=utf-8"
_TYPES = {
    ".css": b"text/css; charset=utf-8",
    ".js": b"text/javascript; charset=utf-8",
    ".png": b"image/png",
    ".svg": b"image/svg+xml",
    ".webmanifest": b"application/manifest+json",
}
_POLICY = (
    b"default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; "
    b"manifest-src 'self'; worker-src %s; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_NO_WORKERS = b"'none'"
_WORKER_POLICY = b"default-src 'none'; img-src 'self'"


_ADVICE = {kind: [advice.kept, advice.on_page] for kind, advice in ADVICE.items()}


SCRIPTS = "scripts.js"
"""The name of the file with the scripts that every page uses."""

_FIRST = "page.js"
_STYLE = "style.css"

_LINK = '<a href="{path}"><svg class="icon" aria-hidden="true"><use href="#icon-feature"/></svg>{title}</a>\n'


_SALT = token_bytes(16)
_FRESH_NAMES = b".aileron.localhost"
_KEPT, _ASKED_EACH_TIME = b"private, max-age=43200, immutable", b"no-cache"
_PACKING = b"gzip"
_AROUND_MARKS = re.compile(rb" ?([{};>,]|(?<=[a-z]):(?= )) ?")
_MOST_PACKED, _FAST = 200_000, 5


def _shorten_style(style: bytes) -> bytes:
    """Return the style sheet without its comments, and without the white space that has no meaning.

    A string of the sheet may hold single spaces only, and no comment.
    """
    first, *others = style.split(b"/*")
    plain = first + b"".join(other.partition(b"*/")[2] for other in others)
    return _AROUND_MARKS.sub(rb"\1", b" ".join(plain.split())).replace(b";}", b"}")


def is_known(request: IRequest, body: bytes) -> bool:
    """Set the ETag of the response, and return True if the client already has C{body}. The status is then 304.

    The ETag depends on a secret of this process, so a server that had this address earlier cannot have set it.
    """
    tag = blake2b(body, digest_size=16, key=_SALT).hexdigest()
    return request.setETag(b'"%s"' % tag.encode("ascii")) is CACHED


def pack(request: IRequest, body: bytes) -> bytes:
    """Return C{body}, compressed if the client accepts gzip and C{body} is not so large that compression takes long."""
    request.setHeader(b"Vary", b"Accept-Encoding")
    if len(body) > _MOST_PACKED or not _accepts_gzip(request):
        return body
    request.setHeader(b"Content-Encoding", _PACKING)
    return gzip.compress(body, _FAST, mtime=0)


@frozen
class _Served:
    """A file that is the same for everyone, in memory and also compressed.

    :ivar packed: the content compressed with gzip.
    """

    kind: bytes
    content: bytes
    packed: bytes

    @classmethod
    def pack(cls, kind: bytes, content: bytes) -> _Served:
        """Compress C{content}, and return both forms, of which a client gets the one that it accepts."""
        return cls(kind, content, gzip.compress(content, mtime=0))

    def send(self, request: IRequest) -> bytes:
        """Return the body of the response, compressed if the client accepts that."""
        request.setHeader(b"Content-Type", self.kind)
        request.setHeader(b"Vary", b"Accept-Encoding")
        if not _accepts_gzip(request):
            return self.content
        request.setHeader(b"Content-Encoding", _PACKING)
        return self.packed


def _accepts_gzip(request: IRequest) -> bool:
    """Return True if Accept-Encoding names gzip without the weight zero."""
    given = b",".join(request.requestHeaders.getRawHeaders(b"Accept-Encoding", []))
    codings = [each.partition(b";") for each in given.lower().replace(b" ", b"").split(b",")]
    return any(name == _PACKING and weight.rstrip(b"0.") != b"q=" for name, _, weight in codings)


@cache
def _read_files(scripts: tuple[Path, ...], more: tuple[Path, ...]) -> Mapping[str, _Served]:
    """Return the static files by name, read, joined and compressed once in this process.

    :param scripts: as for L{Shell}.
    :param more: as for L{Shell}.
    :raises ValueError: if a script cannot be joined, or has the name of another.
    """
    files = {path.name: path.read_bytes() for path in _list_shipped()}
    for path in (*scripts, *more):
        if path.name in files:
            raise ValueError(f"{path}: there is a script of this name")
        files[path.name] = path.read_bytes()
    sources = {name: text.decode("utf-8") for name, text in files.items() if name.endswith(".js")}
    joined = join_scripts(sources, SCRIPTS, *(path.name for path in scripts), _FIRST)
    for name in (path.name for path in more if path.suffix == ".js"):
        joined |= join_scripts(sources, name, name)
    files |= {name: text.encode("utf-8") for name, text in joined.items()}
    files[_STYLE] = _shorten_style(files[_STYLE])
    packed = {name: _Served.pack(_TYPES[Path(name).suffix], content) for name, content in files.items()}
    return MappingProxyType(packed)


class Shell:
    """The static page that a browser gets at every address, with its scripts and other files, read and compressed once.

    :param navigation: the titles of the features' pages, by path.
    :param scripts: the features' scripts, which run on every page.
    :param workers: the scripts that a browser may run as service workers, by path.
    :param changes: texts in the page, each with the text that replaces it.
    :param more: further static files. The scripts among them may import those of the pages, and each is joined.
    :raises ValueError: if a script cannot be joined, or has the name of another, or a text to change does not occur
        exactly once.
    """

    def __init__(
        self,
        navigation: Mapping[str, str],
        scripts: Sequence[Path] = (),
        workers: Mapping[str, Path] | None = None,
        changes: Mapping[str, str] | None = None,
        more: Sequence[Path] = (),
    ) -> None:
        self.files = _read_files(tuple(scripts), tuple(more))
        template = _change((STATIC / "shell.html").read_text(encoding="utf-8"), changes or {})
        links = "".join(_LINK.format(path=path, title=html.escape(title)) for path, title in navigation.items())
        told = template.replace("{{navigation}}", links)
        self._template = told.replace("{{advice}}", html.escape(json.dumps(_ADVICE)))
        self._plain = _Served.pack(HTML, self._fill({}))
        self._workers = {
            path.encode("ascii"): _Served.pack(_TYPES[".js"], file.read_bytes())
            for path, file in (workers or {}).items()
        }

    def page(self, request: IRequest, told: Mapping[str, str] | None = None) -> bytes:
        """Return the static page. If it contains the settings of a login, it is never compressed.

        :param told: settings that the script receives once and removes from the document at once.
        """
        request.setHeader(b"Content-Security-Policy", _POLICY % self._list_workers(request))
        if not told:
            return self._plain.send(request)
        request.setHeader(b"Content-Type", HTML)
        return self._fill(told)

    def _fill(self, told: Mapping[str, str]) -> bytes:
        return self._template.replace("{{told}}", html.escape(json.dumps(told))).encode("utf-8")

    def _list_workers(self, request: IRequest) -> bytes:
        """Return the URLs of the service workers that a page may register, in the form of a content security policy."""
        host = request.requestHeaders.getRawHeaders(b"Host", [b""])[0].lower()
        return b" ".join(host + path for path in self._workers) or _NO_WORKERS

    def worker(self, request: IRequest) -> bytes:
        """Serve the script of a service worker. It may load icons and nothing else."""
        request.setHeader(b"Content-Security-Policy", _WORKER_POLICY)
        request.setHeader(b"Cache-Control", _ASKED_EACH_TIME)
        return self._workers[request.path].send(request)

    def missing(self, request: IRequest) -> bytes:
        """Return the static page with status 404."""
        request.setResponseCode(404)
        return self.page(request)

    def file(self, request: IRequest, name: str) -> bytes:
        """Serve a script, a style sheet, an icon or the manifest. A name without a file gets status 404.

        If the host name is new at each start of the daemon, the browser may cache the file. If the host name stays
        the same, the browser must check each time whether the file has changed.
        """
        if name not in self.files:
            return self.missing(request)
        is_fresh = request.getRequestHostname().endswith(_FRESH_NAMES)
        request.setHeader(b"Cache-Control", _KEPT if is_fresh else _ASKED_EACH_TIME)
        body = self.files[name].send(request)
        return b"" if is_known(request, body) else body


def _change(text: str, changes: Mapping[str, str]) -> str:
    for old, new in changes.items():
        if text.count(old) != 1:
            raise ValueError(f"the shell does not contain exactly one {old}")
        text = text.replace(old, new)
    return text


def _list_shipped() -> list[Path]:
    return [path for path in STATIC.iterdir() if path.suffix in _TYPES]


LANDING_POLICY = (
    "default-src 'none'; script-src 'self'; worker-src 'none'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'"
)


def landing() -> bytes:
    """Return the page for a browser that followed a link from another site: the same for every path and client."""
    return (STATIC / "landing.html").read_bytes()


_REQUEST = re.compile(rb"/(?:approvals|runs)/([0-9A-HJKMNP-TV-Z]{26})")
_OPEN = b"<code>aileron open</code>"


def moved(path: bytes = b"/") -> bytes:
    """Return the page, without a script, for a browser that used a host name that serves no pages.

    :param path: the path of the link that led there. If it is the path of a request, the page says how to open that
        request. Nothing else of the path is repeated.
    """
    page = (STATIC / "moved.html").read_bytes()
    found = _REQUEST.fullmatch(path)
    return page if found is None else page.replace(_OPEN, b"<code>aileron open approval %s</code>" % found[1])
