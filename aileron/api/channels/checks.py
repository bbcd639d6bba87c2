"""The checks of a request's head that precede every route."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from attrs import define, evolve, field, frozen
from twisted.internet.interfaces import ITransport

from aileron.api.faults import Answer, describe_failure, failure, http_failure
from aileron.base.http1 import RequestHead
from aileron.model.errors import Unauthorized, refuse_while_stopping

MAX_BODY_BYTES = 1024 * 1024

_SAFE = frozenset((b"GET", b"HEAD", b"OPTIONS"))
_API = b"/v1/"
_FORM = b"application/x-www-form-urlencoded"
_NO_WORKER = "No service worker may be registered at this address."
_CLEARED = '"cache", "storage"'
_ENDED = "The daemon was restarted: its address is another now, and logins ended with it."


@define(eq=False)
class RequestRefused(Exception):
    """A request that is refused by its head. Its connection is closed.

    :ivar status: the HTTP status.
    :ivar message: the message for the user.
    """

    status: int
    message: str


@define(eq=False)
class StaticAnswer(Exception):
    """A request that is answered with one static page.

    It follows a link from another site, uses a host name without pages, or is for the script of a service worker that
    is to be removed.
    """

    answer: Answer


def _name(host: str) -> bytes:
    return host.lower().encode("ascii")


def _names(hosts: Iterable[str]) -> frozenset[bytes]:
    return frozenset(map(_name, hosts))


@frozen
class OtherNames:
    """The host names at which a site serves no pages, because pages of other programs may have stored data there.

    :ivar hosts: the C{name:port} by which programs may call the API.
    :ivar domain: the suffix that the C{name:port} of each earlier start of the daemon has.
    :ivar api: the first segments of the API's paths.
    :ivar answer: makes the answer to a request for a page, by its path. A program that calls the API by the name of an
        earlier start gets an error of the same status, with the message that its login has ended.
    """

    hosts: frozenset[bytes] = field(converter=_names)
    domain: bytes = field(converter=_name)
    api: frozenset[bytes]
    answer: Callable[[bytes], Answer]

    def check(self, host: bytes, path: bytes) -> bool:
        """Return whether this is a request for the API by one of these names. Any other host name is False.

        :raises StaticAnswer: if the request is for a page, or uses a name of an earlier start.
        """
        known, calls = host in self.hosts, path[1:].partition(b"/")[0] in self.api
        if known and calls:
            return True
        if known or host.endswith(self.domain):
            page = self.answer(path)
            raise StaticAnswer(failure(Unauthorized(_ENDED).fault(), status=page.status) if calls else page)
        return False


@frozen
class SiteRules:
    """The rules of a site: which processes may connect, and which requests are accepted.

    :ivar hosts: the C{name:port} of every bound address of this site. If empty, every request is refused.
    :ivar form_posts: the paths that accept a form from our own page, or from a page without origin such as a private
        file: a single-use code in the form is the proof.
    :ivar bare_deletes: the paths that accept a DELETE without a body, and so without a content type.
    :ivar peer_uid: returns the user of the connecting process, or None if this system cannot tell.
    :ivar own_uid: the user that may connect, if C{peer_uid} is set.
    :ivar other_uids: further users that may connect.
    :ivar landing: makes the answer to a navigation from another site, or None to refuse it.
    :ivar other_names: the names beside C{hosts} without pages, or None.
    :ivar workers: the paths of scripts that a browser may run as a service worker. There are none unless the pages keep
        their address.
    :ivar scheme: the scheme of our pages' origin.
    :ivar removes_workers: whether a browser that asks for the script of any other service worker is told to delete
        what it stores for this address. Pages that keep their address need it: another program may have listened there.
    :ivar is_stopping: whether only reads of the API are accepted, because the daemon stops and others go on.
    """

    hosts: frozenset[bytes] = field(converter=_names, default=())
    form_posts: frozenset[bytes] = frozenset()
    peer_uid: Callable[[ITransport], int | None] | None = None
    own_uid: int = -1
    landing: Callable[[], Answer] | None = None
    other_uids: frozenset[int] = frozenset()
    bare_deletes: frozenset[bytes] = frozenset()
    other_names: OtherNames | None = None
    workers: frozenset[bytes] = frozenset()
    scheme: bytes = b"http"
    removes_workers: bool = False
    is_stopping: bool = False

    def admits(self, transport: ITransport) -> bool:
        """Return whether the connecting process belongs to an allowed user. An unknown user is not allowed.

        If no C{peer_uid} is set, every process is allowed.
        """
        return self.peer_uid is None or self.peer_uid(transport) in {self.own_uid, *self.other_uids}

    def check_address(self, head: RequestHead) -> None:
        """Check the HTTP version, the form of the target, and the Host field.

        :raises RequestRefused: with 400, if one of the three is invalid.
        :raises StaticAnswer: if the request is for a page by a name without pages, or the daemon is stopping.
        """
        if head.minor != 1:
            raise RequestRefused(400, "Only HTTP/1.1 is spoken here.")
        if not head.target.startswith(b"/"):
            raise RequestRefused(400, "The request's target is not a path.")
        host, others = head.fields.get(b"host", b"").lower(), self.other_names
        if host not in self.hosts and (others is None or not others.check(host, head.path)):
            raise RequestRefused(400, "The Host is not an address of this daemon.")
        # guard of several daemons: a daemon that stops leaves new requests to the others
        #    -> api.test_stopping.SiteTests.test_refused
        if self.is_stopping and not (head.method in _SAFE and head.path.startswith(_API)):
            raise StaticAnswer(describe_failure(refuse_while_stopping()))

    def check_browser(self, head: RequestHead) -> None:
        """Refuse requests that a page of another origin could send, service worker scripts, and unsuitable bodies.

        A service worker may outlive the daemon and answer in its place. So every request for the script of a
        service worker is refused, except for those in L{workers}, which answer no requests.

        :raises RequestRefused: if the request is refused, with 403, 413 or 415.
        :raises StaticAnswer: if the request is a navigation from another site, or for the script of a service worker
            that is to be removed.
        """
        # guard against attack: only the script of a feature is a service worker, where the address stays
        #    -> test_push.WorkerTests.test_other_scripts
        if b"service-worker" in head.fields and head.path not in self.workers:
            self._refuse_worker(head)
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
            _check_origin(head, self.scheme)
        if head.length > MAX_BODY_BYTES:
            raise too_long()
        bare = head.method == b"DELETE" and head.length == 0 and head.path in self.bare_deletes
        if head.method not in _SAFE and not bare:
            _check_type(head, _FORM if form else b"application/json")

    def _refuse_worker(self, head: RequestHead) -> None:
        """Refuse the script of a service worker.

        A browser asks for the script of a registered worker again when one of its pages was loaded. If the answer is
        404 and clears what the browser stores for this address, the worker and the pages that it serves are gone. A 404
        alone, and a 403, leave both there.

        :raises RequestRefused: if no worker is to be removed, or a page of another origin asks.
        :raises StaticAnswer: with 404, if the worker is to be removed.
        """
        if self.removes_workers:
            _check_origin(head, self.scheme)
            removed = http_failure(404, _NO_WORKER)
            # guard against attack: a worker that another program left at an address that stays is removed
            #    -> test_planted.PlantedTests.test_removed
            raise StaticAnswer(evolve(removed, headers={**removed.headers, "Clear-Site-Data": _CLEARED}))
        raise RequestRefused(403, _NO_WORKER)


def too_long() -> RequestRefused:
    """Return the error for a request whose body is longer than allowed."""
    return RequestRefused(413, f"The body is longer than {MAX_BODY_BYTES} bytes.")


def _lands(head: RequestHead) -> bool:
    """Return whether the request is a navigation from another site in a top-level window, such as a followed link."""
    foreign = head.fields.get(b"sec-fetch-site") in (b"cross-site", b"same-site")
    whole = head.fields.get(b"sec-fetch-dest") == b"document" and head.fields.get(b"sec-fetch-mode") == b"navigate"
    return foreign and whole and head.method == b"GET" and b"origin" not in head.fields


def _check_origin(head: RequestHead, scheme: bytes) -> None:
    origin = head.fields.get(b"origin")
    if origin is not None and origin.lower() != scheme + b"://" + head.fields[b"host"].lower():
        raise RequestRefused(403, "Pages of another origin may not speak to this daemon.")
    site = head.fields.get(b"sec-fetch-site")
    if site is None or site == b"same-origin":
        return
    navigates = head.method == b"GET" and head.fields.get(b"sec-fetch-mode") == b"navigate"
    if site != b"none" or not navigates:
        raise RequestRefused(403, "Pages of another site may not speak to this daemon.")


def _check_without_origin(head: RequestHead) -> None:
    """Check a request without origin: only a top-level navigation may be sent, such as the form of a private file.

    :raises RequestRefused: with 403, if a script or a frame sent the request, or a page at another port of this host.
    """
    whole = {b"sec-fetch-mode": b"navigate", b"sec-fetch-dest": b"document"}
    partial = any(head.fields.get(name, wanted) != wanted for name, wanted in whole.items())
    if partial or head.fields.get(b"sec-fetch-site") == b"same-site":
        raise RequestRefused(403, "Pages of another site may not speak to this daemon.")


def _check_type(head: RequestHead, wanted: bytes) -> None:
    kind, _, parameter = head.fields.get(b"content-type", b"").lower().partition(b";")
    if kind.strip() != wanted or parameter.strip() not in {b"", b"charset=utf-8"}:
        raise RequestRefused(415, f"The Content-Type must be {wanted.decode('ascii')}.")
