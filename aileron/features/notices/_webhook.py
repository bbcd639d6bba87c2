"""Sends notifications to a program of the operator's by HTTP."""

from __future__ import annotations

import hmac
import json
from collections.abc import Awaitable, Callable
from hashlib import sha256
from typing import Any

from aileron.base.converter import to_json
from aileron.base.posting import post

from ._delivery import Undelivered
from .values import Message

_NO_USE = range(400, 500)
_TOO_SOON = frozenset((408, 425, 429))


async def post_message(
    url: str, reactor: Any, open_key: Callable[[], Awaitable[bytes]] | None, message: Message
) -> None:
    """Post a message as JSON. A status of 2xx means that it was delivered.

    If a key is bound, the header C{Aileron-Signature: t=SECONDS,v1=HEX} is an HMAC-SHA256 over the seconds, a full
    stop and the body.

    :param reactor: connects, and is the clock.
    :param open_key: decrypts the key, or None if messages are not signed.
    :raises Undelivered: if the program answered with another status, or could not be reached, or the key cannot be
        decrypted.
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
