"""The two sides of an exchange: the terms of the client's requests, and the connection to the provider."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from attrs import frozen

from aileron.errors import AileronError
from aileron.http1 import RelayClient
from aileron.values import Dialect

from ._eager import Write


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


class UpstreamConnection(Protocol):
    """The connection that carries an exchange."""

    write: Write

    def hold(self) -> None:
        """Deliver no more of what the provider sends."""

    def release(self) -> None:
        """Deliver again."""

    def done(self, keep: bool) -> None:
        """Note that the exchange is over.

        :param keep: whether the connection may serve another.
        """

    def abort(self) -> None:
        """Drop the connection at once; the exchange hears nothing more of it."""
