"""C{doc/own-tools.md}, played: GitHub is added to the services of own tools, checked, used by C{curl}, and removed."""

from __future__ import annotations

from typing import cast

from twisted.internet.interfaces import IProtocolFactory
from twisted.web.server import Site

from tests.extent import seldom
from tests.functional.github import HOST, GitHub
from tests.functional.listings.internet import HTTPS, Internet
from tests.functional.listings.page import LOG_IN, YES, PageTestCase, Play
from tests.functional.operated import PASSPHRASE

KEY = "github_pat_canary_51307"
AGENT = f"""#!/bin/sh
curl -sS -H "Authorization: Bearer $GH_TOKEN" https://{HOST}/repos/acme/web
"""


class OwnToolsPageTests(PageTestCase):
    """A user who lets tools use GitHub, which is a double in a network of its own."""

    page = "own-tools.md"

    @seldom
    async def test_played(self) -> None:
        """The action is trusted and the check finds nothing missing; the agent reads, and the action is removed."""
        github = GitHub(KEY)
        site = cast(IProtocolFactory, Site(github))
        self.behind = (await Internet.open(self, [HOST], {HTTPS: site})).prefix
        begun = self.home.with_passphrase(PASSPHRASE, "aileron", "vault", "init")
        self._expect(await self.run_command(begun.behind(*self.behind)), 0)
        self.secrets.append(KEY)
        self.put_program("opencode", AGENT)
        action = self.state.root / "actions" / "github-tools.md"
        await self.play(
            Play("aileron credential setup builtin://github", answers=[LOG_IN, (r"\(not shown\): ", KEY)]),
            Play("aileron own-tools add github", answers=[LOG_IN, YES], shows=["github-tools"]),
            Play("aileron own-tools check github", shows=["Ready: "]),
            Play(
                "aileron launch --sandbox --own-tools github opencode",
                shows=["Own tools: github", "acme/web", "api.github.com (own tools)"],
            ),
        )
        self.assertEqual(github.reads, ["GET /repos/acme/web"])
        self.assertIn('name = "github-tools"', action.read_text())
        await self.play(Play("aileron own-tools remove github", answers=[YES, LOG_IN]))
        self.assertFalse(action.exists())
