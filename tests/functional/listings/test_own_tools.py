"""C{doc/own-tools.md}, played: GitHub is added to the services of own tools, checked and removed."""

from __future__ import annotations

from tests.extent import seldom
from tests.functional.listings.page import LOG_IN, YES, PageTestCase, Play

KEY = "github_pat_canary_51307"


class OwnToolsPageTests(PageTestCase):
    """A user who lets tools use GitHub.

    No agent is launched, because its tools would send requests to GitHub.
    """

    page = "own-tools.md"

    @seldom
    async def test_played(self) -> None:
        """The action is written and trusted, the check finds nothing missing, and the action is removed again."""
        await self.operator("vault", "init")
        self.secrets.append(KEY)
        action = self.state.root / "actions" / "github-tools.md"
        await self.play(
            Play("aileron credential setup builtin://github", answers=[LOG_IN, (r"\(not shown\): ", KEY)]),
            Play("aileron own-tools add github", answers=[LOG_IN, YES], shows=["github-tools"]),
            Play("aileron own-tools check github", shows=["Ready: "]),
        )
        self.assertIn('name = "github-tools"', action.read_text())
        await self.play(Play("aileron own-tools remove github", answers=[YES, LOG_IN]))
        self.assertFalse(action.exists())
