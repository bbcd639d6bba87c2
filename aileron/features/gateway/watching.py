"""The hooks by which features see requests before they are sent: for tools that providers run, and for limits."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from .exchange import UpstreamExchange
    from .values import Provider, ToolCount


class RequestWatch(Protocol):
    """Reads requests for the tools that their provider is to run, and may refuse them."""

    @property
    def providers(self) -> frozenset[str]:
        """The names of the providers whose requests are read in every session."""

    def watch(
        self,
        exchange: UpstreamExchange,
        provider: Provider,
        session_id: str | None,
        *,
        noting: bool,
        head: bytes,
        go: Callable[[], None],
        go_later: Callable[[], None],
    ) -> None:
        """Read a request that has just started.

        :param noting: whether tools without a rule are recorded.
        :param head: the head to send to the provider.
        :param go: sends the request. Called at once if the request need not be held.
        :param go_later: sends a held request. Called when the request is complete and was not refused. It checks again
            whether the request may be sent.
        """

    def read_rest(self) -> None:
        """Read all queued requests now. Called when the relay has stopped."""

    def describe(self, provider: Provider) -> str:
        """Return a description of the rules for the tools that a provider runs."""

    def counts(self) -> tuple[ToolCount, ...]:
        """Return how many requests asked for each tool since the daemon's start."""


class SpendGuard(Protocol):
    """Decides before a request is sent whether the limits on spending let it pass."""

    @property
    def reading(self) -> frozenset[str]:
        """The names of the providers whose requests are read before they are sent."""

    def admit(self, exchange: UpstreamExchange, provider: str, session_id: str | None) -> bool:
        """Decide by the head of a request whether the limits let it pass. If so, return True.

        If not, fail the exchange.
        """

    def admit_read(
        self, exchange: UpstreamExchange, provider: str, session_id: str | None, head: bytes, body: bytes
    ) -> bool:
        """Decide by a complete request whether the limits let it pass. If so, return True. If not, fail the exchange.

        :param head: the head to send to the provider.
        :param body: the body, framing included.
        """

    def hold(
        self,
        exchange: UpstreamExchange,
        provider: str,
        session_id: str | None,
        *,
        head: bytes,
        go_later: Callable[[], None],
    ) -> None:
        """Hold a request until it is complete, then decide whether the limits let it pass. If not, fail the exchange.

        :param head: the head to send to the provider.
        :param go_later: continues with the request. It checks again whether the request may be sent.
        """
