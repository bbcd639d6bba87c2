"""The client's side of an exchange: the terms of its requests, and the gateway's answers in a provider's place."""

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
    """Write a whole answer, which says that the connection closes.

    :param status: of HTTP.
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
    """The terms that one client's requests have in common that differ in their length alone.

    :ivar write: to the client.
    :ivar dialect: in which the client expects errors.
    :ivar keep: whether it may send another request on its connection.
    :ivar most_bytes: of a body, framing included; L{None}: without limit.
    :ivar hindrance: tells why nothing may leave now; asked again where an exchange had to wait for its connection.
    :ivar ended: called with an exchange that is over.
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
    """A L{Route} and L{RelayedExchange} of C{aileron.base.http1} that refuses requests by their heads."""

    answered = False
    completion = ""

    def __init__(self, client: RelayClient, whole_answer: bytes) -> None:
        self._client = client
        self._answer = whole_answer

    def exchange(self, length: int) -> Refusal:
        return self

    def take(self, data: bytes) -> int:
        """Its body is of no interest."""
        return -1

    def start(self) -> None:
        """Say so."""
        self._client.dismiss(self._answer)

    def client_is_slow(self) -> None:
        """There is nothing to wait for."""

    def client_has_caught_up(self) -> None:
        """There is nothing to go on with."""

    def client_left(self) -> None:
        """There is nothing to take down."""
