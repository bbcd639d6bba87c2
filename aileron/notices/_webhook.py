"""Tells a program of the operator's, by HTTP."""

from __future__ import annotations

import hmac
import json
from hashlib import sha256
from typing import Any

from attrs import frozen
from zope.interface import implementer

from aileron.interfaces import IChannel
from aileron.values import Message

from ._posting import post
from ._secret import Secret
from ._undelivered import Undelivered

_NO_USE = range(400, 500)
_TOO_SOON = frozenset((408, 425, 429))


@implementer(IChannel)
@frozen
class Webhook:
    """Posts a message as JSON; a status of 2xx says that it arrived.

    Where a key is bound to it the header C{Aileron-Signature: t=SECONDS,v1=HEX} is an HMAC-SHA256 over the seconds, a
    full stop and the body.

    :param secret: where the key lies; L{None}: nothing is signed.
    :param reactor: connects, and tells the time.
    """

    name: str
    _url: str
    _reactor: Any
    _secret: Secret | None = None
    kind: str = "webhook"

    async def deliver(self, message: Message) -> None:
        """See L{IChannel}."""
        body = json.dumps(message.as_json()).encode("ascii")
        headers = {"Aileron-Delivery": message.id, **self._signature(body)}
        status = await post(self._url, body, self._reactor, headers)
        if not 200 <= status < 300:
            raise Undelivered(f"It answered {status}.", again=status not in _NO_USE or status in _TOO_SOON)

    def _signature(self, body: bytes) -> dict[str, str]:
        if self._secret is None:
            return {}
        seconds = int(self._reactor.seconds())
        signed = hmac.digest(self._secret.open(), b"%d." % seconds + body, sha256).hex()
        return {"Aileron-Signature": f"t={seconds},v1={signed}"}
