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
        """The names of the providers whose requests are read, whatever the session."""

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
        """Read a request that was just begun.

        :param noting: whether tools that have no rule are noted.
        :param head: as it goes to the provider.
        :param go: sends the request, and is called at once.
        :param go_later: sends the request instead, if it may still be sent; called when it has come whole and is not
            refused.
        """

    def read_rest(self) -> None:
        """Read at once what is still to be read: nothing is relayed any more."""

    def describe(self, provider: Provider) -> str:
        """Return the rules for the tools that a provider runs, in words."""

    def counts(self) -> tuple[ToolCount, ...]:
        """Return how many requests asked for each tool since the daemon's start."""
