"""Posts JSON to a URL that the operator chose, and returns the response or its status."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from functools import cache
from typing import Any

from attrs import frozen
from twisted.internet.defer import CancelledError
from twisted.internet.protocol import Protocol
from twisted.internet.ssl import Certificate, trustRootFromCertificates
from twisted.web.http_headers import Headers
from twisted.web.iweb import IResponse

from .addresses import connectable, system_authorities
from .retry_after import read_retry_after

_ANSWER_SECONDS = 30.0


@frozen
class PostAnswer:
    """The answer to a post.

    :ivar retry_after: the seconds that the server asks to wait before the next post, or None.
    :ivar body: the body, or empty if it was too long or incomplete.
    """

    status: int
    retry_after: float | None
    body: bytes


async def post(url: str, body: bytes, clock: Any, headers: Mapping[str, str] | None = None) -> int:
    """Post C{body}, which is JSON, and return the status code of the response.  Redirects are not followed.

    :param clock: the reactor.
    :raises Exception: if no response arrived in time.
    """
    answer = await _send(url, body, clock, headers)
    answer.deliverBody(_HangUp())  # a server may never end it
    return int(answer.code)


async def post_and_read(
    url: str, body: bytes, clock: Any, headers: Mapping[str, str], most_bytes: int = 64 * 1024
) -> PostAnswer:
    """Post C{body}, which is JSON, and return the response.  Redirects are not followed.

    :param clock: the reactor.
    :param most_bytes: the largest body of a response. A longer one is not read.
    :raises Exception: if no head of a response arrived in time.
    """
    from .outgoing import read_body

    answer = await _send(url, body, clock, headers)
    said = (answer.headers.getRawHeaders("Retry-After") or [""])[0]
    wait = read_retry_after(said, datetime.fromtimestamp(clock.seconds(), UTC))
    try:
        read = await read_body(answer, most_bytes).addTimeout(_ANSWER_SECONDS, clock)
    except CancelledError:
        raise
    except Exception:  # noqa: BLE001 - the status has arrived, and decides without the body
        read = b""
    return PostAnswer(int(answer.code), wait, read)


async def _send(url: str, body: bytes, clock: Any, headers: Mapping[str, str] | None) -> IResponse:
    from twisted.web.client import Agent, BrowserLikePolicyForHTTPS

    from .outgoing import BytesProducer

    host, place = _keep_here(url.encode("ascii"))
    sent = {"Content-Type": "application/json", **host, **(headers or {})}
    trusted = None if url.startswith("http:") else _trust_root()  # no TLS, so no certificates
    agent = Agent(clock, BrowserLikePolicyForHTTPS(trusted))
    fields = Headers({name: [text] for name, text in sent.items()})
    asked = agent.request(b"POST", place, fields, BytesProducer(body))
    return await asked.addTimeout(_ANSWER_SECONDS, clock)


def _keep_here(url: bytes) -> tuple[Mapping[str, str], bytes]:
    """Return the header C{Host} and the URL for plain HTTP to C{localhost} without resolving it, else only the URL."""
    from twisted.web.client import URI

    uri = URI.fromBytes(url)
    host = uri.host.decode("ascii").lower()
    # guard of monitoring: plain HTTP to this machine stays there, whatever a resolver says of its name
    #    -> base.test_posting.PostTests.test_name, instead return {}, url
    if uri.scheme != b"http" or connectable(host) == host:
        return {}, url
    sent = {"Host": uri.netloc.decode("ascii")}
    uri.netloc = b"%b:%d" % (connectable(host).encode("ascii"), uri.port)
    return sent, uri.toBytes()


@cache
def _trust_root() -> Any:
    """Return the trust root of the system's authorities.  If there are none, no certificate is accepted."""
    return trustRootFromCertificates([Certificate.loadPEM(each) for each in system_authorities()])


class _HangUp(Protocol):
    """A protocol that closes the connection instead of reading the body of a response."""

    def connectionMade(self) -> None:
        """Close the connection at once, so that the body of the response is not read."""
        if self.transport is not None:
            self.transport.loseConnection()
