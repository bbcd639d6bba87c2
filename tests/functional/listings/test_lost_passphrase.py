"""C{doc/lost-passphrase.md}, played: a vault begun anew, with what the page says of it."""

from __future__ import annotations

from aileron.vault.keys import open_vault
from tests.extent import seldom
from tests.functional.listings.page import PageTestCase, Play
from tests.functional.operated import GATED, PASSPHRASE
from tests.functional.test_first_run import answers_of_new_vault


class LostPassphraseTests(PageTestCase):
    """A user who can no longer open the vault."""

    page = "lost-passphrase.md"

    @seldom
    async def test_played(self) -> None:
        """The old vault is kept beside the new one, what waited waits, and no action is trusted."""
        await self.furnish()
        asked = await self.run_action(await self.session(), GATED)
        answers = [("Type the word reset to continue: ", "reset"), *answers_of_new_vault().items()]
        await self.play(Play("aileron vault reset", answers=answers, shows=["the vault is unlocked", "ed25519:"]))
        open_vault(self.state.root / "secrets.json.before-reset-1", PASSPHRASE).wipe()
        [waiting] = await self.waiting()
        self.assertEqual(waiting["id"], asked.body["run_id"])
        self.assertIn("Not trusted", (await self.command("action", "list")).stderr)
        self.assertEqual((await self.told("binding", "list"))["items"], [])
