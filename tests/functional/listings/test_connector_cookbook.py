"""C{doc/connector-cookbook.md}, played: a recipe is checked and tested as it stands there, added and bound."""

from __future__ import annotations

from tests.extent import seldom
from tests.functional.listings.page import LOG_IN, YES, PageTestCase, Play
from tests.functional.listings.reading import find_listings
from tests.functional.test_first_run import answers_of_new_vault

PAIR = "ada@example.org:key-canary-9a02"


class CookbookTests(PageTestCase):
    """A user whose service has a host for each customer."""

    page = "connector-cookbook.md"

    @seldom
    async def test_played(self) -> None:
        """The recipe is saved, checked, tested and added, and its credential is bound for the customer's host."""
        recipe = self.page_text().partition("\n## One host per customer\n")[2].partition("\n## ")[0]
        (text,), (recorded,) = (find_listings(recipe, kind) for kind in ("toml", "text"))
        (self.home.project / "mine.toml").write_text(text)
        (self.home.project / "mine.fixtures.toml").write_text(recorded)
        self.secrets.append(PAIR.partition(":")[2])
        await self.play(
            Play("aileron connector check mine.toml", shows=["mine.toml: OK"]),
            Play("aileron connector test mine.toml", shows=["mine.toml: OK, 2 recorded answers"]),
            Play("aileron connector add mine.toml", answers=[*answers_of_new_vault().items(), YES]),
            Play(
                "aileron credential setup local://me/crm --set site=acme",
                answers=[LOG_IN, (r"Secret for .+ \(not shown\): ", PAIR)],
                shows=["acme.crm.example:443, files-acme.crm.example:443", "is bound to local://me/crm"],
            ),
        )
