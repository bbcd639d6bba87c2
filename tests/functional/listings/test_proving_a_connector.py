"""C{doc/proving-a-connector.md}, played: a connector that comes with Aileron is proved, and one of one's own."""

from __future__ import annotations

import re

from tests.extent import seldom
from tests.functional.listings.page import PageTestCase, Play
from tests.functional.listings.reading import pages

_TABLE = re.compile(r"^```toml\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_RECORDED = re.compile(r"^```text\n(\[\[operations\..*?)^```$", re.MULTILINE | re.DOTALL)


class ProvingTests(PageTestCase):
    """An author, in the directory of a connector."""

    page = "proving-a-connector.md"

    @seldom
    async def test_played(self) -> None:
        """Both hold, and the cards are those of the page; nothing is made in the home."""
        writing = (pages() / "writing-a-connector.md").read_text("utf-8")
        (text,), (recorded,) = _TABLE.findall(writing), _RECORDED.findall(writing)
        (self.home.project / "tracker.toml").write_text(text)
        (self.home.project / "tracker.fixtures.toml").write_text(recorded)
        card = self.page_text().partition("it prints:\n\n```text\n")[2].partition("```")[0]
        await self.play(
            Play("aileron prove slack"),
            Play("aileron prove --file tracker.toml", shows=card.splitlines()),
        )
        self.assertFalse(self.state.root.exists())
