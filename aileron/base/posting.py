"""Posts JSON to a URL that the operator chose, and returns the status of the response."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

from twisted.internet.protocol import Protocol
from twisted.internet.ssl import Certificate, trustRootFromCertificates
from twisted.web.http_headers import Headers

from .addresses import system_authorities

_ANSWER_SECONDS = 30.0


async def post(url: str, body: bytes, clock: Any, headers: Mapping[str, str] | None = None) -> int:
    """Post C{body}, which is JSON, and return the status code of the response.  Redirects are not followed.

    :param clock: the reactor.
    :raises Exception: if no response arrived in time.
    """
    from twisted.web.client import Agent, BrowserLikePolicyForHTTPS

    from .outgoing import BytesProducer

    sent = {"Content-Type": "application/json", **(headers or {})}
    trusted = None if url.startswith("http:") else _trust_root()  # no TLS, so no certificates
    agent = Agent(clock, BrowserLikePolicyForHTTPS(trusted))
    fields = Headers({name: [text] for name, text in sent.items()})
    asked = agent.request(b"POST", url.encode("ascii"), fields, BytesProducer(body))
    answer = await asked.addTimeout(_ANSWER_SECONDS, clock)
    answer.deliverBody(_HangUp())  # a server may never end it
    return int(answer.code)


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
