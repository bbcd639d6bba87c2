"""The checks that every request must pass before any route sees it, made on its head alone."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from attrs import define, field, frozen
from twisted.internet.interfaces import ITransport

from aileron.api.faults import Answer, failure
from aileron.base.http1 import RequestHead
from aileron.model.errors import Unauthorized

MAX_BODY_BYTES = 1024 * 1024

_SAFE = frozenset((b"GET", b"HEAD", b"OPTIONS"))
_FORM = b"application/x-www-form-urlencoded"
_ENDED = "The daemon was restarted: its address is another now, and logins ended with it."


@define(eq=False)
class RequestRefused(Exception):
    """The request is refused by its head, and its connection closed.

    :ivar status: of HTTP.
    :ivar message: fit for the user's eyes.
    """

    status: int
    message: str


@define(eq=False)
class StaticAnswer(Exception):
    """A link of another site led here, or a name without pages: one page is the answer, whatever the path."""

    answer: Answer


def _name(host: str) -> bytes:
    return host.lower().encode("ascii")


def _names(hosts: Iterable[str]) -> frozenset[bytes]:
    return frozenset(map(_name, hosts))


@frozen
class OtherNames:
    """The names of a site at which no page is served, since another program's page may have left something there.

    :ivar hosts: C{name:port} of each by which programs may call the API.
    :ivar domain: how C{name:port} of every earlier start ends.
    :ivar api: the first parts of the API's paths.
    :ivar answer: makes what everything else gets; a program that calls the API by an earlier name gets a refusal of
        the same status, which says that its login has ended.
    """

    hosts: frozenset[bytes] = field(converter=_names)
    domain: bytes = field(converter=_name)
    api: frozenset[bytes]
    answer: Callable[[], Answer]

    def check(self, host: bytes, path: bytes) -> bool:
        """Tell whether this is a request for the API, by one of its names.

        :raises StaticAnswer: it is for a page, or by a name of an earlier start.
        """
        known, calls = host in self.hosts, path[1:].partition(b"/")[0] in self.api
        if known and calls:
            return True
        if known or host.endswith(self.domain):
            page = self.answer()
            raise StaticAnswer(failure(Unauthorized(_ENDED).fault(), status=page.status) if calls else page)
        return False


@frozen
class SiteRules:
    """The rules of a site: who may speak to it, and how.

    :ivar hosts: C{name:port} of every address that we bound for this site; empty refuses everything.
    :ivar form_posts: paths that take a form from our own page, or from one of no origin such as a private file: their
        own single-use code is their proof.
    :ivar bare_deletes: paths that take a DELETE without a body, which then needs no type.
    :ivar peer_uid: whose process is at the other end; L{None}: not asked (this system cannot tell).
    :ivar own_uid: the user that may connect, where C{peer_uid} is asked.
    :ivar other_uids: users that may as well.
    :ivar landing: makes what a navigation gets that another site began; L{None}: it is refused.
    :ivar other_names: names beside C{hosts}, without pages; L{None}: there are none.
    """

    hosts: frozenset[bytes] = field(converter=_names, default=())
    form_posts: frozenset[bytes] = frozenset()
    peer_uid: Callable[[ITransport], int | None] | None = None
    own_uid: int = -1
    landing: Callable[[], Answer] | None = None
    other_uids: frozenset[int] = frozenset()
    bare_deletes: frozenset[bytes] = frozenset()
    other_names: OtherNames | None = None

    def admits(self, transport: ITransport) -> bool:
        """Tell whether the other end belongs to a user that may connect; a peer that cannot be told does not."""
        return self.peer_uid is None or self.peer_uid(transport) in {self.own_uid, *self.other_uids}

    def check_address(self, head: RequestHead) -> None:
        """Refuse another version, another form of target, and any Host but ours.

        :raises RequestRefused: with 400.
        :raises StaticAnswer: a page is asked for by a name that has none.
        """
        if head.minor != 1:
            raise RequestRefused(400, "Only HTTP/1.1 is spoken here.")
        if not head.target.startswith(b"/"):
            raise RequestRefused(400, "The request's target is not a path.")
        host, others = head.fields.get(b"host", b"").lower(), self.other_names
        if host not in self.hosts and (others is None or not others.check(host, head.path)):
            raise RequestRefused(400, "The Host is not an address of this daemon.")

    def check_browser(self, head: RequestHead) -> None:
        """Refuse what a page of another origin could send, scripts of service workers, and unsuitable bodies.

        A service worker would outlive the daemon, and answer in its place. No page has one, so whatever asks for the
        script of one is refused.

        :raises RequestRefused: with 403, 413 or 415.
        :raises StaticAnswer: a link led here.
        """
        if b"service-worker" in head.fields:
            raise RequestRefused(403, "No service worker may be registered at this address.")
        form = head.method == b"POST" and head.path in self.form_posts
        if self.landing is not None and _lands(head):
            raise StaticAnswer(self.landing())
        if (
            form
            # guard against attack: the hand-over's form comes from no page of another origin
            #    -> test_operator_door.PageTests.test_form
            and head.fields.get(b"origin", b"null").lower() == b"null"
        ):
            _check_without_origin(head)
        else:
            _check_origin(head)
        if head.length > MAX_BODY_BYTES:
            raise too_long()
        bare = head.method == b"DELETE" and head.length == 0 and head.path in self.bare_deletes
        if head.method not in _SAFE and not bare:
            _check_type(head, _FORM if form else b"application/json")


def too_long() -> RequestRefused:
    """Refuse a body beyond the cap."""
    return RequestRefused(413, f"The body is longer than {MAX_BODY_BYTES} bytes.")


def _lands(head: RequestHead) -> bool:
    """Tell whether a person followed a link of another site, in a window of its own."""
    foreign = head.fields.get(b"sec-fetch-site") in (b"cross-site", b"same-site")
    whole = head.fields.get(b"sec-fetch-dest") == b"document" and head.fields.get(b"sec-fetch-mode") == b"navigate"
    return foreign and whole and head.method == b"GET" and b"origin" not in head.fields


def _check_origin(head: RequestHead) -> None:
    origin = head.fields.get(b"origin")
    if origin is not None and origin.lower() != b"http://" + head.fields[b"host"].lower():
        raise RequestRefused(403, "Pages of another origin may not speak to this daemon.")
    site = head.fields.get(b"sec-fetch-site")
    if site is None or site == b"same-origin":
        return
    navigates = head.method == b"GET" and head.fields.get(b"sec-fetch-mode") == b"navigate"
    if site != b"none" or not navigates:
        raise RequestRefused(403, "Pages of another site may not speak to this daemon.")


def _check_without_origin(head: RequestHead) -> None:
    """Let a private file's form pass, which a browser calls cross-site and which fills a window.

    A page of another port that hides its origin is none, nor is a script or a frame of any page.
    """
    whole = {b"sec-fetch-mode": b"navigate", b"sec-fetch-dest": b"document"}
    partial = any(head.fields.get(name, wanted) != wanted for name, wanted in whole.items())
    if partial or head.fields.get(b"sec-fetch-site") == b"same-site":
        raise RequestRefused(403, "Pages of another site may not speak to this daemon.")


def _check_type(head: RequestHead, wanted: bytes) -> None:
    kind, _, parameter = head.fields.get(b"content-type", b"").lower().partition(b";")
    if kind.strip() != wanted or parameter.strip() not in {b"", b"charset=utf-8"}:
        raise RequestRefused(415, f"The Content-Type must be {wanted.decode('ascii')}.")
