"""What becomes of one client's requests that differ in their length alone."""

from __future__ import annotations

from attrs import field, frozen

from aileron.http1 import Client, Likeness

from ._exchange import Exchange
from ._routes import RelayTo
from ._terms import Terms


@frozen
class Asked:
    """They are carried on.  It is L{aileron.http1.Way}.

    :ivar digest: SHA-256 of the gateway key that they bring; L{None}: they bring none.
    :ivar onward: their heads as they go to the provider, but for what a proxy wants or a credential changes.
    """

    terms: Terms[Asked]
    to: RelayTo
    digest: bytes | None = field(repr=False)
    onward: Likeness

    def taken(self, length: int) -> Exchange[Asked]:
        """See L{aileron.http1.Way}."""
        return Exchange(self.terms, length, self)


class Dismissed:
    """They are refused by their heads.  It is L{aileron.http1.Way}, and L{aileron.http1.Taken} as well."""

    answered = False

    def __init__(self, client: Client, whole_answer: bytes) -> None:
        self._client = client
        self._answer = whole_answer

    def taken(self, length: int) -> Dismissed:
        """See L{aileron.http1.Way}."""
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
