"""C{doc/network-access.md}, played: hosts that a sandboxed agent was refused are allowed and denied."""

from __future__ import annotations

from tests.extent import seldom
from tests.functional.listings.page import LOG_IN, PageTestCase, Play
from tests.functional.reactor import until

HOST = "files.example.com"
AGENT = f"""#!/bin/sh
curl -sS -m 60 -o /dev/null https://{HOST}/ >answer 2>&1
touch tried
while [ ! -e go ]; do sleep 0.1; done
"""


class NetworkAccessTests(PageTestCase):
    """A user whose agent asks for a host that no preset has."""

    page = "network-access.md"

    @seldom
    async def test_played(self) -> None:
        """The host is refused and waits; each decision is taken, and the one for always is in the file."""
        await self.operator("vault", "init")
        self.put_program("opencode", AGENT)
        agent = self.begin(Play("aileron launch --sandbox --egress npm,pypi opencode", shows=["checked: TCP, UDP"]))
        tried = self.home.project / "tried"
        await until(self.reactor, tried.exists, 60, f"the agent's first try: {agent.running!r}")
        self.assertIn("403", (self.home.project / "answer").read_text())
        await self.play(
            Play("aileron network list", shows=[HOST], environment={"COLUMNS": "160"}),
            Play("aileron network allow files.example.com", answers=[LOG_IN]),
            Play("aileron network allow files.example.com --always", answers=[LOG_IN]),
        )
        self.assertIn(f'hosts = ["{HOST}:443"]', (self.state.root / "egress.toml").read_text())
        await self.play(Play("aileron network deny files.example.com", answers=[LOG_IN]))
        (self.home.project / "go").touch()
        await self.finish(agent)
        types = [event["type"] for event in await self.audit() if event["type"].startswith("egress")]
        self.assertEqual((types.count("egress.allowed"), types.count("egress.denied")), (2, 1), types)
