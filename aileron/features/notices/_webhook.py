"""Tells a program of the operator's, by HTTP."""

from __future__ import annotations

import hmac
import json
from collections.abc import Awaitable, Callable, Mapping
from functools import cache
from hashlib import sha256
from typing import Any

from twisted.internet.protocol import Protocol
from twisted.internet.ssl import Certificate, trustRootFromCertificates
from twisted.web.http_headers import Headers

from aileron.base.addresses import system_authorities
from aileron.base.converter import to_json

from ._delivery import Undelivered
from .values import Message

_ANSWER_SECONDS = 30.0
_NO_USE = range(400, 500)
_TOO_SOON = frozenset((408, 425, 429))


async def post_message(
    url: str, reactor: Any, open_key: Callable[[], Awaitable[bytes]] | None, message: Message
) -> None:
    """Post a message as JSON; a status of 2xx says that it arrived.

    Where a key is bound to it the header C{Aileron-Signature: t=SECONDS,v1=HEX} is an HMAC-SHA256 over the seconds, a
    full stop and the body.

    :param reactor: connects, and tells the time.
    :param open_key: opens the key; L{None}: nothing is signed.
    :raises Undelivered: it was refused.
    """
    body = json.dumps(to_json(message)).encode("ascii")
    headers = {"Aileron-Delivery": message.id}
    if open_key is not None:
        seconds = int(reactor.seconds())
        signed = hmac.digest(await open_key(), b"%d." % seconds + body, sha256).hex()
        headers["Aileron-Signature"] = f"t={seconds},v1={signed}"
    status = await post(url, body, reactor, headers)
    if not 200 <= status < 300:
        raise Undelivered(f"It answered {status}.", again=status not in _NO_USE or status in _TOO_SOON)


async def post(url: str, body: bytes, clock: Any, headers: Mapping[str, str] | None = None) -> int:
    """Post C{body}, JSON, and return the status of the answer; nothing is followed anywhere.

    :param clock: the reactor.
    :raises Exception: no answer came.
    """
    from twisted.web.client import Agent, BrowserLikePolicyForHTTPS

    from aileron.base.outgoing import BytesProducer

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
