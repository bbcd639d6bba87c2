"""C{doc/importing-an-api.md}, played: from the document on the page to the first approved call."""

from __future__ import annotations

from typing import cast

from twisted.internet.interfaces import IProtocolFactory
from twisted.protocols.portforward import ProxyFactory

from tests.extent import seldom
from tests.functional.listings.internet import HTTPS, Internet
from tests.functional.listings.page import LOG_IN, YES, PageTestCase, Play
from tests.functional.listings.reading import find_approval, find_listings
from tests.functional.test_first_run import answers_of_new_vault

CHARACTERS_A_MINUTE = 150
"""Of somebody who types slowly."""


class ImportingTests(PageTestCase):
    """A user whose chat describes its API."""

    page = "importing-an-api.md"

    @seldom
    async def test_played(self) -> None:
        """Five minutes of typing, of somebody who types slowly, lead to a message that was posted with the key."""
        (document,) = find_listings(self.page_text(), "yaml")
        (self.home.project / "chat.yaml").write_text(document)
        service = cast(IProtocolFactory, ProxyFactory("127.0.0.1", self.service.port))
        self.behind = (await Internet.open(self, ["chat.example"], {HTTPS: service})).prefix
        trusting = [LOG_IN, YES]
        plays = [
            Play(
                "aileron connector import chat.yaml --search message",
                answers=[("Enter to leave: ", "")],
                shows=["postMessage"],
            ),
            Play("aileron connector import chat.yaml --op postMessage", shows=["TODO(import)"]),
            Play("aileron connector add chat.toml", answers=[*answers_of_new_vault().items(), YES]),
            Play("aileron action add chat-post-message.md", answers=trusting),
            Play(
                "aileron credential setup local://me/chat",
                answers=[LOG_IN, (r"Secret for .+ \(not shown\): ", self.workspace.token)],
            ),
            Play(
                "aileron action run chat-post-message --arg channel=#general --arg text=Hello",
                code=75,
            ),
        ]
        asked = await self.play(*plays)
        approve = Play(
            "aileron approve ID",
            replace={"ID": find_approval(asked)},
            answers=trusting,
            shows=["Approved and completed"],
        )
        await self.play(approve)
        self.assertEqual([each.text for each in self.workspace.messages], ["Hello"])
        typed = sum(len(each.line) + sum(len(answer) for _, answer in each.answers) for each in [*plays, approve])
        self.assertLess(typed / CHARACTERS_A_MINUTE, 5)
