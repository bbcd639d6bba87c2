"""The API that a local server uses, as its file declares it, and the check of the server's requests to the API."""

from __future__ import annotations

from collections.abc import Iterator
from urllib.parse import unquote, unquote_plus

from attrs import evolve, frozen
from twisted.web.http_headers import Headers

from aileron.base.addresses import (
    BaseUrl,
    is_overriding_header,
    is_partial_header,
    overriding_in_body,
    overriding_parameters,
    read_url,
)
from aileron.base.tables import FileTable
from aileron.base.text import visible
from aileron.connectors._headers import OURS, header_value
from aileron.connectors._places import own_base_url
from aileron.credentials import KINDS
from aileron.model.connectors import READ, CredentialNeed, Request

API_URL = "${api.url}"
"""The placeholder in a connector's file for the URL under which the server reaches its API through the relay."""

API = "api"
"""The setting of a credential that is added to requests to an API: the URL of that."""

METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE")
_READ_METHODS = ("GET", "HEAD")

_DROPPED = OURS | {"authorization"}
"""Headers that the server must not set."""

_MOST_ENCODED = 4
_LIKE_ASCII = frozenset(
    {"utf-8", "utf8", "us-ascii", "ascii", "iso-8859-1", "latin1", "windows-1252", "utf-16", "utf-16le", "utf-16be"}
)
"""Charsets in which a name is found: each letter of ASCII is itself, beside null bytes at most."""


class ApiRefused(Exception):
    """A refused request of the server.

    The arguments are the HTTP status, and the reason as a sentence without its full stop.
    """


@frozen
class Api:
    """The API that a local server may use through the relay.

    :ivar base: the API's URL; every request must stay below its path.
    :ivar need: the credential that the relay adds.
    :ivar post_reads: whether POST is allowed during an operation whose effect is a read.
    :ivar private_network: whether the API may be at a loopback or private address.
    """

    base: BaseUrl
    need: CredentialNeed
    post_reads: bool
    private_network: bool

    def allows(self, method: str, call: Request) -> bool:
        """Return True if an HTTP method is allowed during an operation.

        :param call: the request of the operation.
        """
        # guard of the relay: a read alone lets no write through the relay -> RefusedTests.test_read,
        #    instead return True
        return call.effect != READ or method in _READ_METHODS or (method == "POST" and self.post_reads)

    def judge(self, request: Request, target: str, headers: Headers, *, host: str) -> Request:
        """Check a request of the server, and return the request to send to the API.

        :param request: the request of the operation that executes, with the method and body of the server's request.
        :param target: the path and query of the server's request, without the relay's prefix.
        :param headers: the headers of the server's request.
        :param host: the host and port of the relay.
        :raises ApiRefused: if the request is not allowed during the operation, does not lead to this API, or the API
            could read it in another way.
        """
        if request.method not in METHODS or not target.startswith("/"):
            raise ApiRefused(405, f"Only {', '.join(METHODS)} to a path are passed on")
        # guard of the relay: a request of the relay is for its own host -> RefusedTests.test_elsewhere
        if headers.getRawHeaders(b"Host") != [host.encode("ascii")]:
            raise ApiRefused(421, "The request is for another host")
        # guard of the relay: the relay passes a write on for no read -> RefusedTests.test_read
        if not self.allows(request.method, request):
            raise ApiRefused(403, f"No {request.method} is passed on while only reads execute")
        try:
            url, kept = read_url(self.base.origin.url + target), tuple(self._keep(headers))
        except ValueError as error:
            raise ApiRefused(400, f"The URL or a header {error}") from None
        if (url.origin, url.user_info, url.fragment) != (self.base.origin, None, None):
            raise ApiRefused(400, "The URL leads elsewhere")
        if (
            # guard of the relay: a request of the relay stays below the API's path -> RefusedTests.test_elsewhere
            not f"{url.path}/".startswith(f"{self.base.path}/")
            # guard of the relay: no dot segment of the relay climbs, however encoded -> RefusedTests.test_elsewhere
            or _climbs(url.path)
        ):
            raise ApiRefused(403, f"Only requests to {self.base.url} are passed on")
        self._refuse_override(url.query or "", headers, request)
        pairs = (url.query or "").split("&")
        query = "&".join(each for each in pairs if unquote_plus(each.partition("=")[0]) != self.need.query)
        request = evolve(request, url=f"{self.base.origin.url}{url.path}{query and '?'}{query}", headers=kept)
        return evolve(request, credential_header=self.need.header or None, credential_query=self.need.query)

    def _refuse_override(self, query: str, headers: Headers, request: Request) -> None:
        """Check that a request does not override its method or path.

        :raises ApiRefused: if a parameter or header overrides them. During a read, also if a field of the body does, or
            the body cannot be searched for such fields.
        """
        names = [name.decode("ascii") for name, _ in headers.getAllRawHeaders()]
        found = next((each for each in names if is_overriding_header(each)), "") or next(
            overriding_parameters(query), ""
        )
        if not found and request.effect == READ and request.body:
            _refuse_unreadable(headers)
            found = overriding_in_body(request.body.replace(b"\0", b""))  # so that UTF-16 and UTF-32 are searched, too
        # guard of the relay: the relay refuses what overrides a method -> RefusedTests.test_override
        if found:
            raise ApiRefused(403, f"{visible(found)} would make another request of it, and is not passed on")

    def _keep(self, headers: Headers) -> Iterator[tuple[str, str]]:
        """Yield name and value of each header to pass on.

        Left out are those of one connection and those that could be a credential.

        :raises ValueError: if a value is not valid in a header.
        """
        hop = {each.strip() for line in headers.getRawHeaders("Connection", ()) for each in line.split(",")}
        own = {_plain(self.need.header), *KINDS[self.need.kind].reserved}
        for name, values in headers.getAllRawHeaders():
            plain = _plain(name.decode("ascii"))
            # guard of the relay: a server's own credential does not pass the relay -> PassedTests.test_credential,
            #    instead if plain not in {_plain(each) for each in hop} and not is_partial_header(plain)
            if plain not in _DROPPED | own | {_plain(each) for each in hop} and not is_partial_header(plain):
                yield from ((name.decode("ascii"), header_value(each.decode("latin-1"))) for each in values)


def read_api(table: FileTable, need: CredentialNeed | None, *, private_network: bool) -> Api | None:
    """Return the API read from C{[mcp.api]}, or None if there are faults, which are recorded in the table."""
    base = table.read("url", lambda text: own_base_url(text, private_network=private_network), None, required=True)
    post_reads = table.flag("post_reads", default=False)
    if need is None:
        table.fault("url", "must stand beside a [credential], which is added to the requests")
    table.close()
    return None if base is None or need is None else Api(base, need, post_reads, private_network)


def _refuse_unreadable(headers: Headers) -> None:
    """Check that fields can be found in a body.

    :raises ApiRefused: if the body is compressed, or has a charset that is not a superset of ASCII.
    """
    said = [
        (_plain(name.decode("ascii")), b" ".join(values).decode("latin-1"))
        for name, values in headers.getAllRawHeaders()
    ]
    if any(name == "content-encoding" and value.strip().lower() not in ("", "identity") for name, value in said):
        raise ApiRefused(415, "A compressed body is not passed on while only reads execute")
    charsets = [each for name, value in said if name == "content-type" for each in _charsets(value)]
    if not _LIKE_ASCII.issuperset(charsets):
        raise ApiRefused(415, "A body with this charset is not passed on while only reads execute")


def _charsets(content_type: str) -> Iterator[str]:
    """Yield each charset that a content type names, with any quotes and separators."""
    for part in content_type.lower().replace(",", ";").split(";"):
        name, equals, text = part.partition("=")
        if equals and "charset" in name:
            yield (text.replace('"', " ").replace("'", " ").split() or [""])[0]


def _climbs(path: str) -> bool:
    """Return True if a path could be read as one outside of its base, or is percent-encoded too many times to check."""
    for _ in range(_MOST_ENCODED):
        segments = {each.partition(";")[0].strip() for each in path.replace("\\", "/").split("/")}
        if {".", ".."} & segments or min(path, default=" ") < " ":
            return True
        before, path = path, unquote(path)
        if path == before:
            return False
    return True


def _plain(name: str) -> str:
    """Return a header's name in the form used for comparison, since some services treat underscores as hyphens."""
    return name.lower().replace("_", "-")
