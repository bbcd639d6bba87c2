"""The page on proofs shows what the command prints."""

from __future__ import annotations

import re
from functools import partial
from pathlib import Path

from aileron.cli.output import capture_lines
from aileron.features.proving.commands import show_card

from .test_prove import ProofTestCase

DOC = Path(__file__).parents[3] / "doc"
LISTING = re.compile(r"^```(?:toml|text|console)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


class PageTests(ProofTestCase):
    """C{doc/proving-a-connector.md}."""

    async def test_cards(self) -> None:
        """The cards on the page are those of the connector that the page on writing connectors has, right and wrong."""
        file, *others = LISTING.findall((DOC / "writing-a-connector.md").read_text("utf-8"))
        (fixtures,) = [each for each in others if each.startswith("[[operations.")]
        cards = [each for each in LISTING.findall(self.page) if each.startswith("local://")]
        wrong = file.replace("refused = [503]", "refused = [504]")
        self.assertNotEqual(file, wrong)
        for text, shown in zip((file, wrong), cards, strict=True):
            (card,) = await self.proved(self.written(text, fixtures))
            self.assertEqual("\n".join(capture_lines(partial(show_card, card))), shown)

    async def test_again(self) -> None:
        """The recorded answer on the page, by which the service takes two requests for one, keeps it at one effect."""
        (fixtures,) = [each for each in LISTING.findall(self.page) if "again = " in each]
        text = (
            '[connector]\nname = "local://me/tracker"\nversion = "1.0.0"\nhosts = ["tracker.example:443"]\n'
            'base_url = { default = "https://tracker.example" }\n[operations.close_issue]\nmethod = "POST"\n'
            'path = "/issues/${in.id}/close"\neffect = "write"\nidempotent = true\nresult = { id = "id" }\n'
        )
        bare = "\n".join(line for line in fixtures.splitlines() if not line.startswith("again"))
        proved = await self.proved(self.written(text, fixtures), self.written(text, bare))
        self.assertEqual([card.checks["once"].verdict for card in proved], ["holds", "fails"], proved)

    def setUp(self) -> None:
        self.page = (DOC / "proving-a-connector.md").read_text("utf-8")
