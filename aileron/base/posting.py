"""Posts JSON to an address that the operator chose, and returns the status of the answer."""

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
    """Post C{body}, JSON, and return the status of the answer; nothing is followed anywhere.

    :param clock: the reactor.
    :raises Exception: no answer came.
    """
    from twisted.web.client import Agent, BrowserLikePolicyForHTTPS

    from .outgoing import BytesProducer

    sent = {"Content-Type": "application/json", **(headers or {})}
    trusted = None if url.startswith("http:") else _trust_root()  # there is no TLS, so nobody to vouch for
    agent = Agent(clock, BrowserLikePolicyForHTTPS(trusted))
    fields = Headers({name: [text] for name, text in sent.items()})
    asked = agent.request(b"POST", url.encode("ascii"), fields, BytesProducer(body))
    answer = await asked.addTimeout(_ANSWER_SECONDS, clock)
    answer.deliverBody(_HangUp())  # a server may never end it
    return int(answer.code)


@cache
def _trust_root() -> Any:
    """Read the authorities that this system trusts, once; where there are none, no certificate is good."""
    return trustRootFromCertificates([Certificate.loadPEM(each) for each in system_authorities()])


class _HangUp(Protocol):
    """Drops whatever is answered besides a status."""

    def connectionMade(self) -> None:
        """Hang up."""
        if self.transport is not None:
            self.transport.loseConnection()
