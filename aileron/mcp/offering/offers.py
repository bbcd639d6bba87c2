"""What there is to be listed and read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from aileron.mcp._cards import Card


class IOffers(Protocol):
    """What there is, as awaited from the loop."""

    async def offered(self, *, hears_changes: bool) -> Sequence[Card]:
        """Every tool that is listed, in order: actions by name, then our own by name.

        :param hears_changes: whether who asks will hear of what is added; if not, those that lead to it are there.
        """

    async def actions(self) -> Sequence[Card]:
        """Every action, listed or not, by name."""

    async def recent_runs(self) -> Sequence[Mapping[str, Any]]:
        """The session's newest runs, newest first.

        :raises DaemonError: they cannot be told.
        """

    async def run_status(self, run_id: str) -> Mapping[str, Any]:
        """How a run of this session stands, with its result.

        :raises DaemonError: it cannot be told; or there is none.
        """
