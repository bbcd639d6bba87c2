"""The hook by which a feature reads requests for the tools that providers run themselves."""

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

        :param noting: whether tools that have no rule are noted.
        :param head: as sent to the provider.
        :param go: sends the request. Called at once.
        :param go_later: sends the request after it was held, if it may still be sent. Called when the request is
            complete and
            not refused.
        """

    def read_rest(self) -> None:
        """Read all queued requests at once, because the relay has stopped."""

    def describe(self, provider: Provider) -> str:
        """Return a description of the rules for the tools that a provider runs."""

    def counts(self) -> tuple[ToolCount, ...]:
        """Return how many requests asked for each tool since the daemon's start."""
