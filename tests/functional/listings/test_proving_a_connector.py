"""C{doc/proving-a-connector.md}, played: a connector that comes with Aileron is proved, and one of one's own."""

from __future__ import annotations

from tests.extent import seldom
from tests.functional.listings.page import PageTestCase, Play
from tests.functional.listings.reading import find_listings, pages


class ProvingTests(PageTestCase):
    """An author, in the directory of a connector."""

    page = "proving-a-connector.md"

    @seldom
    async def test_played(self) -> None:
        """Both hold, and the cards are those of the page; nothing is made in the home."""
        writing = (pages() / "writing-a-connector.md").read_text("utf-8")
        (text,) = find_listings(writing, "toml")
        (recorded,) = (each for each in find_listings(writing, "text") if each.startswith("[[operations."))
        (self.home.project / "tracker.toml").write_text(text)
        (self.home.project / "tracker.fixtures.toml").write_text(recorded)
        card, _ = (each for each in find_listings(self.page_text(), "text") if each.startswith("local://"))
        await self.play(
            Play("aileron connector prove slack"),
            Play("aileron connector prove --file tracker.toml", shows=card.splitlines()),
        )
        self.assertFalse(self.state.root.exists())
