"""C{doc/writing-an-action.md}, played: the first action of the page is checked, added, and begun anew from nothing."""

from __future__ import annotations

from tests.extent import seldom
from tests.functional.listings.page import YES, PageTestCase, Play
from tests.functional.listings.reading import find_listings
from tests.functional.test_first_run import answers_of_new_vault


class WritingActionTests(PageTestCase):
    """Somebody who writes a first action."""

    page = "writing-an-action.md"

    @seldom
    async def test_played(self) -> None:
        """The file on the page has no fault and is trusted; where it is not there, the command writes such a file."""
        (self.home.project / "ship-update.md").write_text(find_listings(self.page_text(), "text")[0])
        await self.play(
            Play("aileron action check ship-update.md", shows=["ship-update.md: OK"]),
            Play(
                "aileron action add ship-update.md",
                answers=[*answers_of_new_vault().items(), YES],
                shows=["Trusted: ship-update"],
            ),
        )
        (self.state.actions / "ship-update.md").unlink()
        await self.play(
            Play("aileron action new ship-update --connector builtin://slack --op post_message --gated"),
        )
        await self.command("action", "check", str(self.state.actions / "ship-update.md"))
