"""C{doc/another-user.md}, played as far as it needs no root; L{tests.functional.test_other_user} has such an agent."""

from __future__ import annotations

from tests.extent import seldom
from tests.functional.listings.page import LOG_IN, YES, PageTestCase, Play


class AnotherUserTests(PageTestCase):
    """A user who lets another one's processes be agents."""

    page = "another-user.md"

    @seldom
    async def test_played(self) -> None:
        """What is written into C{config.yaml} is trusted, and the daemon takes it up."""
        await self.operator("vault", "init")
        self.state.config.write_text("agent_uids: [1001]\n")
        await self.play(
            Play("aileron config trust", answers=[LOG_IN, YES], shows=["Trusted: config.yaml"]),
            Play("aileron daemon stop"),
            Play("aileron vault unlock", answers=[LOG_IN], shows=["the vault is unlocked"]),
        )
