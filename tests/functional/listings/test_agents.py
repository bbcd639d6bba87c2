"""C{doc/agents.md}, played with a program that stands for OpenCode."""

from __future__ import annotations

import re

from tests.extent import seldom
from tests.functional.listings.page import PageTestCase, Play

AGENT = """#!/bin/sh
test -n "$OPENCODE_CONFIG_CONTENT" && echo "the agent has its tools"
ls "$HOME/.aileron/secrets.json" >/dev/null 2>&1 || echo "and not the vault"
"""


class AgentsTests(PageTestCase):
    """A user with an open vault."""

    page = "agents.md"

    @seldom
    async def test_played(self) -> None:
        """The agent is given its tools in and out of a sandbox; a token for an agent elsewhere opens a session."""
        await self.furnish()
        self.put_program("opencode", AGENT)
        shown = await self.play(Play("aileron launch opencode", shows=["the agent has its tools", "session"]))
        self.assertNotIn("and not the vault", shown)
        given = await self.play(Play("aileron session open builder --hours 4", shows=["AILERON_TOKEN="]))
        found = dict(re.findall(r"^(AILERON_\w+)=(\S+)$", given, re.MULTILINE))
        reply = await self.web.ask("GET", f"{found['AILERON_URL']}/v1/actions", found["AILERON_TOKEN"])
        self.assertEqual(reply.status, 200)
        await self.play(
            Play("aileron launch --sandbox opencode", shows=["the agent has its tools", "and not the vault"])
        )
