"""C{doc/spending.md}, played: limits are set, listed, raised and removed, and what was used is shown."""

from __future__ import annotations

from tests.extent import seldom
from tests.functional.listings.page import LOG_IN, PageTestCase, Play


class SpendingTests(PageTestCase):
    """A user who limits what agents may spend."""

    page = "spending.md"

    @seldom
    async def test_played(self) -> None:
        """Each command does what the page says of it."""
        await self.operator("vault", "init")
        await self.play(
            Play("aileron gateway limit set --per day --tokens 5000000", answers=[LOG_IN]),
            Play("aileron gateway limit set --per session --requests 300", answers=[LOG_IN]),
            Play("aileron gateway limit list", shows=["5,000,000 tokens", "300 requests"]),
            Play("aileron gateway limit raise da989f99", answers=[LOG_IN], shows=["0 tokens of 10,000,000 tokens"]),
            Play(
                "aileron gateway limit raise da989f99 --by 500000",
                answers=[LOG_IN],
                shows=["0 tokens of 10,500,000 tokens"],
            ),
            Play("aileron gateway limit remove da989f99", answers=[LOG_IN]),
            Play("aileron gateway usage", shows=["No LLM requests"]),
            Play("aileron gateway usage --json", shows=['"requests": 0']),
        )
