"""The API of a local server, as its file declares it, and which of the server's requests lead there."""

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
"""Stands in a file where the server is told the URL of its API, which is one of ours."""

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
    """A request of the server does not pass: the status that says so, and a short sentence without its full stop."""


@frozen
class Api:
    """An API.

    :ivar base: no request leaves it.
    :ivar need: the credential that is added.
    :ivar post_reads: whether a POST passes, too, while an operation executes whose effect is a read.
    """

    base: BaseUrl
    need: CredentialNeed
    post_reads: bool
    private_network: bool

    def allows(self, method: str, call: Request) -> bool:
        """Tell whether a method passes while an operation executes."""
        # guard of the relay: a read alone lets no write through the relay -> RefusedTests.test_read,
        #    instead return True
        return call.effect != READ or method in _READ_METHODS or (method == "POST" and self.post_reads)

    def judge(self, request: Request, target: str, headers: Headers, *, host: str) -> Request:
        """Return a request of the server's as it may pass.

        :param request: what executes, with the method and the body of the server's.
        :param target: what is asked for, as behind the URL that the server was told.
        :param host: and port of that.
        :raises ApiRefused: it does not lead to this API, or could be read in another way there.
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
        """Refuse what makes another method or path of a request than was judged.

        :raises ApiRefused: it has such a parameter or header, or as a request of a read such a field in its body, or a
            body in which none can be found.
        """
        names = [name.decode("ascii") for name, _ in headers.getAllRawHeaders()]
        found = next((each for each in names if is_overriding_header(each)), "") or next(
            overriding_parameters(query), ""
        )
        if not found and request.effect == READ and request.body:
            _refuse_unreadable(headers)
            found = overriding_in_body(request.body.replace(b"\0", b""))  # in two or four bytes a character, too
        # guard of the relay: the relay refuses what overrides a method -> RefusedTests.test_override
        if found:
            raise ApiRefused(403, f"{visible(found)} would make another request of it, and is not passed on")

    def _keep(self, headers: Headers) -> Iterator[tuple[str, str]]:
        """Yield the headers that pass: none of one connection, and none that could stand for a credential."""
        hop = {each.strip() for line in headers.getRawHeaders("Connection", ()) for each in line.split(",")}
        own = {_plain(self.need.header), *KINDS[self.need.kind].reserved}
        for name, values in headers.getAllRawHeaders():
            plain = _plain(name.decode("ascii"))
            # guard of the relay: a server's own credential does not pass the relay -> PassedTests.test_credential,
            #    instead if plain not in {_plain(each) for each in hop} and not is_partial_header(plain)
            if plain not in _DROPPED | own | {_plain(each) for each in hop} and not is_partial_header(plain):
                yield from ((name.decode("ascii"), header_value(each.decode("latin-1"))) for each in values)


def read_api(table: FileTable, need: CredentialNeed | None, *, private_network: bool) -> Api | None:
    """Read C{[mcp.api]}; L{None}: it has faults, which go where the table's go."""
    base = table.read("url", lambda text: own_base_url(text, private_network=private_network), None, required=True)
    post_reads = table.flag("post_reads", default=False)
    if need is None:
        table.fault("url", "must stand beside a [credential], which is added to the requests")
    table.close()
    return None if base is None or need is None else Api(base, need, post_reads, private_network)


def _refuse_unreadable(headers: Headers) -> None:
    """Refuse a body in which no field would be found.

    :raises ApiRefused: it is compressed, or its letters are not those of ASCII.
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
    """Yield every charset that a content type names, whatever quotes and separators it is written with."""
    for part in content_type.lower().replace(",", ";").split(";"):
        name, equals, text = part.partition("=")
        if equals and "charset" in name:
            yield (text.replace('"', " ").replace("'", " ").split() or [""])[0]


def _climbs(path: str) -> bool:
    """Tell whether a path could be read as one that leaves its base; one that is encoded too often could."""
    for _ in range(_MOST_ENCODED):
        segments = {each.partition(";")[0].strip() for each in path.replace("\\", "/").split("/")}
        if {".", ".."} & segments or min(path, default=" ") < " ":
            return True
        before, path = path, unquote(path)
        if path == before:
            return False
    return True


def _plain(name: str) -> str:
    """Return the name of a header as it is compared: some services take an underscore for a hyphen."""
    return name.lower().replace("_", "-")
