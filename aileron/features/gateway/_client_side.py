"""The gateway's side to the client: settings for relaying requests, and error responses of the gateway itself."""

from __future__ import annotations

import json
from collections.abc import Callable
from http import HTTPStatus
from typing import Any

from attrs import frozen

from aileron.base.http1 import RelayClient
from aileron.model.errors import AileronError

from ._eager import Write
from .values import Dialect

_HEAD = (
    "HTTP/1.1 {status} {reason}\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n"
    "Cache-Control: no-store\r\nX-Aileron-Error: {kind}\r\n{more}Connection: close\r\n\r\n"
)


def answer(error: AileronError, status: int, dialect: Dialect) -> bytes:
    """Return the bytes of a complete error response that announces the close of the connection.

    :param status: the HTTP status.
    """
    kind = error.fault().kind
    body = json.dumps(dialect.describe_error(str(error), status, kind)).encode("ascii")
    head = _HEAD.format(
        status=status,
        reason=HTTPStatus(status).phrase,
        length=len(body),
        kind=kind,
        more="Upgrade: HTTP/1.1\r\n" if status == HTTPStatus.UPGRADE_REQUIRED else "",
    )
    return head.encode("ascii") + body


@frozen
class RelayTerms:
    """The settings shared by all requests of a client that differ only in their length.

    :ivar client: the connection to the client.
    :ivar write: sends bytes to the client.
    :ivar dialect: the dialect of error responses to the client.
    :ivar keep: whether the client may send another request on its connection.
    :ivar most_bytes: the limit of a body, framing included, or None if there is no limit.
    :ivar hindrance: returns the error that prevents sending now, such as a locked vault, or None. It is called again
        when a new connection to the provider is open.
    :ivar ended: called with each exchange when it ends.
    """

    client: RelayClient
    write: Write
    method: bytes
    dialect: Dialect
    keep: bool
    most_bytes: int | None
    hindrance: Callable[[], AileronError | None]
    ended: Callable[[Any], None]


class Refusal:
    """Refuses one request without reading its body.

    It stands in for the route and the exchange of a relayed request.
    """

    answered = False
    completion = ""

    def __init__(self, client: RelayClient, whole_answer: bytes) -> None:
        self._client = client
        self._answer = whole_answer

    def exchange(self, length: int) -> Refusal:
        return self

    def take(self, data: bytes) -> int:
        """Ignore the request's body, and return -1, as if the body continued."""
        return -1

    def start(self) -> None:
        """Send the client the error response that refuses its request."""
        self._client.dismiss(self._answer)

    def client_is_slow(self) -> None:
        """Do nothing, since no response is being streamed to the client."""

    def client_has_caught_up(self) -> None:
        """Do nothing, since no response is being streamed to the client."""

    def client_left(self) -> None:
        """Do nothing, since the request has no connection to a provider that must be closed."""
