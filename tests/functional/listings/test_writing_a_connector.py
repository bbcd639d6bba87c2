"""C{doc/writing-a-connector.md}, played: the first connector of the page is checked, added, and tested."""

from __future__ import annotations

from importlib.resources import files

from tests.extent import seldom
from tests.functional.listings.page import YES, PageTestCase, Play
from tests.functional.listings.reading import find_listings
from tests.functional.test_first_run import answers_of_new_vault


class WritingConnectorTests(PageTestCase):
    """Somebody who writes a first connector."""

    page = "writing-a-connector.md"

    @seldom
    async def test_played(self) -> None:
        """The connector on the page has no fault, is trusted, and makes of the recorded answers what they say."""
        (text,) = find_listings(self.page_text(), "toml")
        (recorded,) = (each for each in find_listings(self.page_text(), "text") if each.startswith("[[operations."))
        (self.home.project / "tracker.toml").write_text(text)
        (self.home.project / "tracker.fixtures.toml").write_text(recorded)
        await self.play(
            Play("aileron connector check tracker.toml", shows=["tracker.toml: OK"]),
            Play(
                "aileron connector add tracker.toml",
                answers=[*answers_of_new_vault().items(), YES],
                shows=["Trusted: local://me/tracker"],
            ),
            Play("aileron connector trust", shows=["Nothing new to trust."]),
            Play("aileron connector schema > connector.schema.json"),
            Play("aileron connector test tracker.toml", shows=["tracker.toml: OK, 2 recorded answers"]),
        )
        published = files("aileron").joinpath("connectors", "connector.schema.json").read_text("utf-8")
        self.assertEqual((self.home.project / "connector.schema.json").read_text(), published)
