"""Another passphrase, and another vault, with a daemon that runs."""

import attrs

from tests.functional.operated import PASSPHRASE, UNGATED, OperatedTestCase

_NEW = "Rote Halde 58 Torte Brunnen"
_NEW_DESCRIPTOR = 5


class PassphraseTests(OperatedTestCase):
    """``aileron vault passphrase``."""

    async def test_changed(self) -> None:
        """The old passphrase opens nothing any more; what was bound and trusted is as before, and agents stay."""
        await self.furnish()
        session = await self.session()
        command = self._as_operator("vault", "passphrase", "--new-passphrase-fd", str(_NEW_DESCRIPTOR))
        command = attrs.evolve(command, feeds={**command.feeds, _NEW_DESCRIPTOR: _NEW.encode()})
        self._expect(await self.run_command(command), 0)
        self.assertEqual((await self.status())["vault_state"], "unlocked")
        ran = await self.run_action(session, UNGATED, wait=30)
        self.assertEqual((ran.status, len(self.workspace.messages)), (200, 1), ran.body)
        await self.operator("binding", "list", code=1)
        listed = self.home.with_passphrase(_NEW, "aileron", "binding", "list")
        self.assertIn("slack", self._expect(await self.run_command(listed), 0).stdout)


class LostTests(OperatedTestCase):
    """A vault that is gone."""

    async def test_reset(self) -> None:
        """None is made by the way; only who types the word gets an empty one, and what happened stays on record."""
        await self.furnish()
        await self.command("daemon", "stop")
        self.state.secrets.unlink()
        refused = await self.operator("vault", "init", code=1)
        self.assertIn("aileron vault reset", refused.stderr)
        self.assertEqual((await self.status())["vault_state"], "lost")
        await self.reset("yes", code=1)
        self.assertFalse(self.state.secrets.exists())
        await self.reset("reset", code=0)
        self.assertEqual((await self.told("binding", "list"))["items"], [])
        self.assertIn("binding.created", [record["type"] for record in await self.audit()])

    async def reset(self, word: str, code: int) -> None:
        """Begin anew on a terminal."""
        running = self.start(self.home.on_terminal("aileron", "vault", "reset"))
        await running.expect("to go on: ")
        running.send(word)
        if code == 0:
            await running.expect("New passphrase: ")
            running.send(PASSPHRASE)
            await running.expect("The same again: ")
            running.send(PASSPHRASE)
        self._expect(await running.finish(60), code)
