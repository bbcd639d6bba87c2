"""The two sides that an exchange stands between, as it sees them: the provider's connection, and who finds that."""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

from attrs import frozen

from aileron.errors import AileronError
from aileron.http1 import Client
from aileron.values import Dialect

from ._eager import Write

if TYPE_CHECKING:
    from ._exchange import Exchange

A = TypeVar("A")


class Upstream(Protocol):
    """A connection to the provider, as an exchange sees it.

    :ivar write: sends, now or as soon as possible.
    """

    write: Write

    def hold(self) -> None:
        """Deliver no more of what the provider sends."""

    def release(self) -> None:
        """Deliver again."""

    def done(self, keep: bool) -> None:
        """The exchange is over.

        :param keep: whether the connection may serve another.
        """

    def abort(self) -> None:
        """Drop the connection at once; the exchange hears nothing more of it."""


class Carrier(Protocol[A]):
    """Finds an upstream for each exchange."""

    def begin(self, exchange: Exchange[A], asked: A) -> None:
        """Call its C{open} and have an upstream attached to it, or call its C{fail}."""

    def hindrance(self) -> AileronError | None:
        """Why nothing may leave now; asked again where an exchange had to wait for its upstream."""

    def refusal(self, exchange: Exchange[A], error: AileronError, status: int) -> bytes:
        """The whole answer in the provider's place."""

    def ended(self, exchange: Exchange[A]) -> None:
        """It is over."""


@frozen
class RelayTerms(Generic[A]):
    """What one client's requests have in common that differ in their length alone.

    :ivar write: to the client.
    :ivar dialect: in which the client expects errors.
    :ivar keep: whether it may send another request on its connection.
    :ivar most_bytes: of a body, framing included; L{None}: without limit.
    """

    client: Client
    write: Write
    carrier: Carrier[A]
    method: bytes
    dialect: Dialect
    keep: bool
    most_bytes: int | None
